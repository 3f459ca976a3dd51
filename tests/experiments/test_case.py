"""The case of a data set: factuals, measures and means over seeds."""

import numpy as np
import pandas as pd
import pytest

from mcce.datasets import load
from mcce.errors import PredictorError
from mcce.experiments.case import (
    MethodResult,
    authors_visit_order,
    average_over_seeds,
    measure_result,
    prepare_case,
    run_mcce,
)
from mcce.experiments.experiment import Options
from mcce.experiments.predictors import black_box


@pytest.fixture
def options(tmp_path):
    return Options(("german",), None, 1, tmp_path, True)


@pytest.fixture
def case(options, bench_cache):
    return prepare_case("german", options)


def test_the_paper_explains_the_first_people_of_the_file_whom_the_predictor_declines(case):
    declined = case.predictor(case.train) < 0.5
    assert case.factuals.index.tolist() == np.flatnonzero(declined)[:40].tolist()


def test_a_full_run_explains_200_people_of_german_credit_or_all_whom_it_declines(
    options, bench_cache
):
    case = prepare_case("german", Options(("german",), None, 1, options.out, False))
    n_declined = int((case.predictor(case.train) < 0.5).sum())
    assert len(case.factuals) == min(200, n_declined)


def test_the_predictor_was_not_trained_on_heldout_people(options, bench_cache):
    case = prepare_case("german", Options(("german",), None, 1, options.out, True, "heldout"))
    heldout = black_box(load("german", form="paper")).heldout
    assert case.factuals.index.isin(heldout).all()
    assert (case.predictor(case.factuals) < 0.5).all()


def test_a_predictor_that_declines_nobody_is_an_error(options, bench_cache, monkeypatch):
    kind = "mcce.experiments.predictors.Network.__call__"
    monkeypatch.setattr(kind, lambda self, frame: np.ones(len(frame)))
    with pytest.raises(PredictorError, match="declines nobody of German Credit"):
        prepare_case("german", options)


def test_measures_can_be_checked_by_hand(case):
    rows = case.factuals.copy()
    rows["Duration"] = rows["Duration"].astype(float)
    rows["Duration"] += 6.8  # a tenth of the range from 4 to 72
    rows.iloc[0] = case.factuals.iloc[0]
    values = measure_result(case, MethodResult(rows, 1.5))
    n_factuals = len(case.factuals)
    assert values["l0"] == values["l0_exact"] == (n_factuals - 1) / n_factuals
    assert values["l1"] == pytest.approx(0.1 * (n_factuals - 1) / n_factuals)
    assert values["violation"] == 0
    assert values["n_ce"] == n_factuals
    assert values["coverage"] == 1
    assert values["seconds"] == 1.5
    assert values["copies"] >= 1, "the person in front is a training row"


def test_a_row_of_missing_cells_is_no_counterfactual(case):
    rows = case.factuals.astype(object)
    rows.iloc[:10] = None
    values = measure_result(case, MethodResult(rows, 0.0))
    assert values["n_ce"] == len(case.factuals) - 10
    assert values["coverage"] == pytest.approx(1 - 10 / len(case.factuals))


def test_a_method_without_counterfactuals_is_measured_too(case):
    rows = pd.DataFrame(
        None, index=case.factuals.index, columns=case.factuals.columns, dtype=object
    )
    values = measure_result(case, MethodResult(rows, 0.0))
    assert values["coverage"] == values["n_ce"] == 0
    assert np.isnan(values["l0"])


def test_our_counterfactuals_are_valid_and_keep_immutable_features(case):
    values = measure_result(case, run_mcce(case, 0))
    assert (values["coverage"], values["success"], values["violation"]) == (1, 1, 0)


def test_the_same_seed_gives_the_same_counterfactuals(case):
    one, other = (run_mcce(case, 3, n_samples=50).counterfactuals.frame for _ in range(2))
    pd.testing.assert_frame_equal(one, other)


def test_seeds_are_averaged_with_the_spread_of_their_means():
    values = average_over_seeds(
        [{"l0": 1.0, "l1": 2.0, "n_ce": 10}, {"l0": 3.0, "l1": 2.0, "n_ce": 20}]
    )
    assert (values["l0"], values["l1"], values["n_ce"]) == (2, 2, 15)
    assert values["l0_seeds"] == pytest.approx(np.sqrt(2))
    assert values["l1_seeds"] == 0
    assert np.isnan(average_over_seeds([{"l0": 1.0, "l1": 2.0}])["l0_seeds"])


def test_the_most_frequent_levels_are_kept_and_the_others_become_one(case, options):
    from mcce.experiments.case import _merge_rare_levels

    job = pd.Series(list("aaabbccd")).astype("category")
    values = _merge_rare_levels(pd.DataFrame({"job": job, "age": range(8)}), 2)
    assert values["job"].tolist() == ["a", "a", "a", "b", "b", "other", "other", "other"]
    assert _merge_rare_levels(pd.DataFrame({"job": job}), 4)["job"].tolist() == job.tolist()


def test_numbers_are_visited_before_categories_and_those_by_name(case):
    german = load("german", form="paper")
    order = authors_visit_order(case)
    assert order[:3] == ["Duration", "CreditAmount", "InstallmentRate"]
    levels = order[6:]
    assert levels == sorted(levels)
    assert set(order) == set(german.features.columns) - set(german.immutable)


@pytest.mark.parametrize(
    ("name", "rows", "l0", "l1", "auc"),
    [("adult", None, 2.70, 0.56, 0.90), ("gmc", "filtered", 4.52, 0.61, 0.82)],
)
def test_costs_are_near_what_the_paper_prints_and_not_only_below(
    name, rows, l0, l1, auc, data_folder, tmp_path, cache
):
    pytest.importorskip("torch")
    case = prepare_case(name, Options((name,), data_folder, 1, tmp_path, False), rows=rows)
    values = measure_result(case, run_mcce(case, 0))
    assert (values["coverage"], values["success"], values["violation"]) == (1, 1, 0)
    assert values["n_ce"] == 1000
    assert values["l0"] == pytest.approx(l0, abs=0.4)
    assert values["l1"] == pytest.approx(l1, abs=0.1)
    assert case.auc == pytest.approx(auc, abs=0.025)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own: the networks are trained here."""
    monkeypatch.setenv("MCCE_CACHE", str(tmp_path))
