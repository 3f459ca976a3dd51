"""What every baseline without networks promises, on random tables and by a conformance suite."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from bank import bank, score
from mcce.testing import check_explainer
from row_methods import FORMS, SURE, Spheres, answers, bits, explain, shares
from tables import cases

DESIRED = (0.85, 10.0)
IMMUTABLE = ["age", "sex"]
# An auto-encoder per random table takes too long.
QUICK = [name for name in FORMS if name != "NICE, plausibility"]


@pytest.fixture(scope="module")
def train():
    """Applicants in a few groups of equal age and sex, with missing cells."""
    frame = bank(150)
    return frame.assign(age=frame["age"] // 20 * 20)


@pytest.fixture(scope="module")
def people():
    frame = bank(8, seed=1)
    return frame.assign(age=frame["age"] // 20 * 20).set_axis(list("abcdefgh"))


@pytest.mark.parametrize("name", FORMS)
def test_a_baseline_is_an_explainer(name):
    check_explainer(lambda f, desired, fixed: FORMS[name](f, desired, immutable=fixed))


@pytest.mark.parametrize("name", QUICK)
@given(case=cases(max_rows=25))
@settings(max_examples=12)
def test_answers_are_valid_by_a_fresh_call_and_keep_immutable_cells_bit_by_bit(name, case):
    desired = (0.5, 1.0)
    method = FORMS[name](case.score, desired, immutable=case.immutable)
    if not _has_place(name, case.train):
        return

    result = explain(method.fit(case.train), case.people)

    declined = case.score(case.people) < desired[0]
    assert (result.people["status"] == "already desired").tolist() == (~declined).tolist()
    assert (result.missing["reason"] != "").all()
    assert (case.score(result.frame) >= desired[0]).all()
    own = case.people.iloc[result.owner]
    for column in case.immutable:
        assert bits(result.frame[column]) == bits(own[column])
    pd.testing.assert_series_equal(result.frame.dtypes, case.people.dtypes)
    if name in SURE:
        _assert_all_answered_who_can_be(case, result, desired)


def _has_place(name, train):
    """Whether a method takes the table: random points need a number in every numeric column."""
    return "Spheres" not in name or not (train.isna() & train.apply(_is_number)).all().any()


def _is_number(column):
    return pd.Series(pd.api.types.is_numeric_dtype(column), index=column.index)


def _assert_all_answered_who_can_be(case, result, desired):
    accepted = case.train[case.score(case.train) >= desired[0]]
    for label in result.missing.index:
        person = case.people.loc[label]
        assert not any(shares(row, person, case.immutable) for _, row in accepted.iterrows())


@pytest.mark.parametrize("name", FORMS)
def test_one_by_one_gives_the_same_as_all_at_once_in_any_order(name, train, people):
    method = FORMS[name](score, DESIRED, immutable=IMMUTABLE).fit(train)

    together = answers(explain(method, people))

    assert len(together) >= 3
    one_by_one = [answers(explain(method, people.loc[[label]])) for label in people.index]
    assert {label: rows for part in one_by_one for label, rows in part.items()} == together
    assert answers(explain(method, people.sample(frac=1, random_state=2))) == together


@pytest.mark.parametrize("name", FORMS)
def test_people_with_equal_rows_get_equal_answers(name, train, people):
    method = FORMS[name](score, DESIRED, immutable=IMMUTABLE).fit(train)
    twice = pd.concat([people.head(6), people.head(6).rename(index=str.upper)])

    found = answers(explain(method, twice))

    lower = {label: rows for label, rows in found.items() if label.islower()}
    assert lower
    assert {label.lower(): rows for label, rows in found.items() if label.isupper()} == lower


@pytest.mark.parametrize("name", FORMS)
def test_other_names_of_columns_change_nothing(name, train, people):
    names = {column: f"the {column}" for column in train}
    fixed = [names[column] for column in IMMUTABLE]
    plain = FORMS[name](score, DESIRED, immutable=IMMUTABLE).fit(train)
    back = {new: old for old, new in names.items()}
    named = FORMS[name](lambda rows: score(rows.rename(columns=back)), DESIRED, immutable=fixed)

    renamed = explain(named.fit(train.rename(columns=names)), people.rename(columns=names))

    assert answers(renamed) == answers(explain(plain, people))


@pytest.mark.parametrize("name", FORMS)
def test_a_predictor_that_accepts_nobody_is_a_reason_without_a_search(name, train, people):
    n_scored = []

    def never(rows):
        n_scored.append(len(rows))
        return np.zeros(len(rows))

    method = FORMS[name](never, DESIRED, immutable=IMMUTABLE).fit(train)
    n_scored.clear()

    result = explain(method, people)

    reason = "the predictor declines all training rows"
    assert result.missing["reason"].tolist() == [reason] * len(people)
    assert sum(n_scored) == 2 * len(people)
    assert result.n_evaluated == 0


@pytest.mark.parametrize("name", FORMS)
def test_one_accepted_row_is_enough(name):
    train = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0], "k": list("aabba")})
    method = FORMS[name](lambda rows: rows["x"], (4.0, 9.0)).fit(train)

    result = explain(method, train.head(4))

    found = result.frame["x"].to_numpy()
    assert (found == 4.0).all()
    assert len(found) == 4 or name == "FACE, radius"


@pytest.mark.parametrize("name", FORMS)
def test_one_column_without_immutable_ones_is_enough(name):
    train = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    method = FORMS[name](lambda rows: rows["x"], (2.0, 9.0)).fit(train)

    result = method.explain(train.head(2))

    # By hops, 3 is as near as 2, which comes first.
    assert result.frame["x"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("name", FORMS)
def test_a_score_at_the_edge_of_the_desired_interval_is_valid(name):
    train = pd.DataFrame({"x": [0.0, 0.25, 0.5]})
    method = FORMS[name](lambda rows: rows["x"], (0.5, 0.5)).fit(train)

    result = method.explain(train)

    assert result.people["status"].tolist() == ["answered", "answered", "already desired"]
    assert result.frame["x"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", FORMS)
def test_answers_are_at_least_as_far_away_as_the_boundary_of_a_linear_model(name):
    chance = np.random.default_rng(3)
    train = pd.DataFrame({"x": chance.random(80), "y": chance.random(80)})
    train.iloc[:2] = [[0.0, 0.0], [1.0, 1.0]]
    method = FORMS[name](lambda rows: rows["x"] + rows["y"], (1.2, 2.0)).fit(train)

    result = explain(method, train)

    own = train.loc[result.frame.index.get_level_values("factual")].to_numpy()
    moved = np.abs(result.frame.to_numpy() - own).sum(axis=1)
    assert len(moved) > 20
    assert (moved >= 1.2 - own.sum(axis=1) - 1e-9).all()


def test_a_seed_decides_about_random_points(train, people):
    def found(seed):
        method = Spheres(score, DESIRED, immutable=IMMUTABLE, random_state=seed)
        return answers(explain(method.fit(train), people))

    assert found(0) == found(0)
    assert found(0) != found(1)


@pytest.mark.parametrize("name", FORMS)
def test_rows_that_the_predictor_refuses_later_are_not_returned(name):
    train = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    n_calls = []

    def fickle(rows):
        # Declines everything once it has been called on training rows and people.
        n_calls.append(len(rows))
        return rows["x"] * (len(n_calls) < limit)

    limit = 99
    FORMS[name](fickle, (2.0, 9.0)).fit(train).explain(train.head(1))
    limit, n_calls[:] = len(n_calls), []

    result = explain(FORMS[name](fickle, (2.0, 9.0)).fit(train), train.head(1))

    reason = "the predictor refuses the row that was found when it is called again"
    assert result.frame.empty
    assert result.missing["reason"].tolist() == [reason]


@pytest.mark.parametrize("name", FORMS)
def test_every_row_that_the_search_asks_about_is_counted(name, train, people):
    n_scored = []
    method = FORMS[name](
        lambda rows: n_scored.append(len(rows)) or score(rows), DESIRED, immutable=IMMUTABLE
    ).fit(train)
    n_scored.clear()

    result = explain(method, people)

    # Beside the search: everybody's own row, to choose whom to explain and for the result, and a
    # fresh call on the answers.
    assert sum(n_scored) == 2 * len(people) + result.n_evaluated + len(result.frame)
