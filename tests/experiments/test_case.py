"""What every experiment on a real data set shares: people, measures, means over seeds."""

import numpy as np
import pandas as pd
import pytest

from mcce.datasets import load
from mcce.errors import PredictorError
from mcce.experiments.case import Answers, explained, measured, over_seeds, prepare, visit_order
from mcce.experiments.experiment import Options


@pytest.fixture
def options(tmp_path):
    return Options(("german",), None, 1, tmp_path, True)


@pytest.fixture
def case(options, bench_cache):
    return prepare("german", options)


def test_the_paper_explains_the_first_people_of_the_file_whom_the_black_box_declines(case):
    declined = case.box.predict(case.data.features) < 0.5
    assert case.people.index.tolist() == np.flatnonzero(declined)[:40].tolist()


def test_a_full_run_explains_200_people_of_german_credit_or_all_whom_it_declines(
    options, bench_cache
):
    case = prepare("german", Options(("german",), None, 1, options.out, False))
    n_declined = int((case.box.predict(case.data.features) < 0.5).sum())
    assert len(case.people) == min(200, n_declined)


def test_heldout_people_were_not_seen_by_the_black_box(options, bench_cache):
    case = prepare("german", Options(("german",), None, 1, options.out, True, "heldout"))
    assert case.people.index.isin(case.box.heldout).all()
    assert (case.box.predict(case.people) < 0.5).all()


def test_a_black_box_that_declines_nobody_is_an_error(options, bench_cache, monkeypatch):
    kind = "mcce.experiments.predictors.Network.__call__"
    monkeypatch.setattr(kind, lambda self, frame: np.ones(len(frame)))
    with pytest.raises(PredictorError, match="declines nobody of German Credit"):
        prepare("german", options)


def test_measures_of_answers_that_are_made_by_hand(case):
    answers = case.people.copy()
    answers["Duration"] = answers["Duration"].astype(float)
    answers["Duration"] += 6.8  # a tenth of the range from 4 to 72
    answers.iloc[0] = case.people.iloc[0]
    told = measured(case, Answers(answers, 1.5))
    n_people = len(case.people)
    assert told["l0"] == told["l0_exact"] == (n_people - 1) / n_people
    assert told["l1"] == pytest.approx(0.1 * (n_people - 1) / n_people)
    assert told["violation"] == 0
    assert told["n_ce"] == n_people
    assert told["coverage"] == 1
    assert told["seconds"] == 1.5
    assert told["copies"] >= 1, "the person in front is a training row"


def test_a_row_of_missing_cells_is_no_answer(case):
    answers = case.people.astype(object)
    answers.iloc[:10] = None
    told = measured(case, Answers(answers, 0.0))
    assert told["n_ce"] == len(case.people) - 10
    assert told["coverage"] == pytest.approx(1 - 10 / len(case.people))


def test_a_method_without_any_answer_is_measured_too(case):
    answers = pd.DataFrame(None, index=case.people.index, columns=case.people.columns, dtype=object)
    told = measured(case, Answers(answers, 0.0))
    assert told["coverage"] == told["n_ce"] == 0
    assert np.isnan(told["l0"])


def test_our_answers_are_valid_and_leave_the_immutable_alone(case):
    told = measured(case, explained(case, 0))
    assert (told["coverage"], told["success"], told["violation"]) == (1, 1, 0)


def test_the_same_seed_gives_the_same_answers(case):
    one, other = (explained(case, 3, n_samples=50).counterfactuals.frame for _ in range(2))
    pd.testing.assert_frame_equal(one, other)


def test_over_seeds_are_means_and_the_scatter_of_means():
    told = over_seeds([{"l0": 1.0, "l1": 2.0, "n_ce": 10}, {"l0": 3.0, "l1": 2.0, "n_ce": 20}])
    assert (told["l0"], told["l1"], told["n_ce"]) == (2, 2, 15)
    assert told["l0_seeds"] == pytest.approx(np.sqrt(2))
    assert told["l1_seeds"] == 0
    assert np.isnan(over_seeds([{"l0": 1.0, "l1": 2.0}])["l0_seeds"])


def test_the_most_frequent_levels_are_kept_and_the_others_become_one(case, options):
    from mcce.experiments.case import _coarser

    job = pd.Series(list("aaabbccd")).astype("category")
    told = _coarser(pd.DataFrame({"job": job, "age": range(8)}), 2)
    assert told["job"].tolist() == ["a", "a", "a", "b", "b", "other", "other", "other"]
    assert _coarser(pd.DataFrame({"job": job}), 4)["job"].tolist() == job.tolist()


def test_numbers_are_visited_before_categories_and_those_by_name():
    german = load("german", form="paper")
    order = visit_order(german)
    assert order[:3] == ["Duration", "CreditAmount", "InstallmentRate"]
    levels = order[6:]
    assert levels == sorted(levels)
    assert set(order) == set(german.features.columns) - set(german.immutable)


@pytest.mark.parametrize(
    ("name", "l0", "l1", "auc"), [("adult", 2.70, 0.56, 0.90), ("gmc", 4.52, 0.61, 0.82)]
)
def test_costs_are_at_most_what_the_paper_prints(name, l0, l1, auc, data_folder, tmp_path, cache):
    pytest.importorskip("torch")
    case = prepare(name, Options((name,), data_folder, 1, tmp_path, False))
    told = measured(case, explained(case, 0))
    assert (told["coverage"], told["success"], told["violation"]) == (1, 1, 0)
    assert told["n_ce"] == 1000
    assert told["l0"] <= l0 + 0.05
    assert told["l1"] <= l1 + 0.05
    assert case.box.auc == pytest.approx(auc, abs=0.025)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own: the networks are trained here."""
    monkeypatch.setenv("MCCE_CACHE", str(tmp_path))
