"""Draws that are valid and unique, features that change, and copies: by hand on small data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.experiments.case import Case, MethodResult, measure_result, run_mcce
from mcce.experiments.circumstances import count_changes
from mcce.experiments.draws import share_of_valid_draws


@pytest.fixture
def case():
    """A bank that accepts all salaries above 60, whatever the rest."""
    chance = np.random.default_rng(0)
    salary = chance.integers(20, 100, 400)
    rows = pd.DataFrame(
        {
            "age": chance.choice([20, 40], 400),
            "salary": salary,
            "pet": pd.Categorical(chance.choice(["cat", "dog"], 400)),
        }
    )
    declined = rows[rows["salary"] <= 60].head(30)
    return Case(
        "bank", rows, declined, ["age"], lambda frame: (frame["salary"] > 60).to_numpy() * 1.0
    )


def test_with_the_decision_nearly_all_draws_are_valid_and_without_it_as_many_as_in_training(case):
    given, left_out = (
        share_of_valid_draws(case, 0, n_samples=500, condition_on_decision=flag)
        for flag in (True, False)
    )

    assert given["valid_%"] > 95
    accepted = 100 * (case.train["salary"] > 60).mean()
    assert left_out["valid_%"] == pytest.approx(accepted, abs=8)
    for shares in (given, left_out):
        assert 0 < shares["valid_and_unique_%"] <= shares["valid_%"]
    # Few values: 39 salaries above 60 and two pets make at most 78 rows for each age.
    assert given["valid_and_unique_%"] <= 100 * 78 / 500


def test_shares_are_means_over_people_not_over_sets_of_draws(case):
    ages = case.factuals["age"].to_numpy()
    alone = {}
    for age in (20, 40):
        part = Case(
            *("bank", case.train, case.factuals[ages == age]), case.immutable, case.predictor
        )
        alone[age] = share_of_valid_draws(part, 0, n_samples=100, condition_on_decision=False)

    both = share_of_valid_draws(case, 0, n_samples=100, condition_on_decision=False)

    weights = {age: (ages == age).mean() for age in (20, 40)}
    expected = sum(weights[age] * alone[age]["valid_%"] for age in weights)
    assert both["valid_%"] == pytest.approx(expected)


def test_changes_are_counted_by_feature_and_direction(case):
    result = run_mcce(case, 0, n_samples=200).counterfactuals

    salary, pet = count_changes(case, result)

    assert (salary["feature"], pet["feature"]) == ("salary", "pet")
    assert salary["changed_%"] == salary["up_%"] == 100, "nothing else helps"
    assert salary["down_%"] == 0
    changes = result.changes()
    assert pet["changed_%"] == 100 * (changes["feature"] == "pet").sum() / len(result.frame)


def test_copies_and_values_of_one_training_row_are_counted():
    rows = pd.DataFrame({"age": [20, 30, 40, 50], "salary": [10, 20, 20, 70]})
    case = Case("bank", rows, rows.head(2), ["age"], lambda frame: frame["salary"].to_numpy() / 50)
    # The first copies the last training row; the second takes a salary that two rows have.
    answers = pd.DataFrame({"age": [50, 30], "salary": [70, 20]}, index=case.factuals.index)

    values = measure_result(case, MethodResult(answers, 0.0))

    assert (values["copies"], values["copies_%"]) == (2, 100), "the second is its own row"
    # Changed numbers: age 50 and salary 70, each of exactly one training row.
    assert values["value_copies_%"] == 100


def test_a_value_that_two_training_rows_have_points_to_nobody():
    rows = pd.DataFrame({"age": [20, 30, 40, 50], "salary": [10, 20, 20, 70]})
    case = Case("bank", rows, rows.head(1), ["age"], lambda frame: frame["salary"].to_numpy() / 50)

    shares = [
        measure_result(case, MethodResult(case.factuals.assign(salary=salary), 0.0))
        for salary in (20, 70)
    ]

    assert [one["copies_%"] for one in shares] == [0, 0]
    assert [one["value_copies_%"] for one in shares] == [0, 100]
