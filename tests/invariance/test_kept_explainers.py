"""An explainer that was saved and loaded, or pickled, gives the answers that it gave before."""

from __future__ import annotations

import pickle
from functools import cache

import pandas as pd
import pytest

import mcce
from bank import bank, score
from bills import bills, value
from mcce import MCCE, ExactSearch, Search
from searches import assert_same, bounded, explain

SEARCHES = {
    "paper": "paper",
    "balanced": "balanced",
    "plausible": bounded("plausible", copies="never"),
    "own": Search("nearest", min_plausibility=0.1, max_evaluations=9),
    "exact": ExactSearch(max_rows=77),
}


@cache
def applicants(name):
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search=SEARCHES[name], random_state=0)
    return explainer.fit(bank(200))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_loaded_explainer_has_the_search_and_gives_the_same_answers(name, tmp_path):
    explainer, people = applicants(name), bank(15, seed=1)
    explainer.save(tmp_path / "explainer.mcce")

    again = mcce.load(tmp_path / "explainer.mcce", score)

    assert again.search == SEARCHES[name]
    assert_same(explain(again, people), explain(explainer, people))


@pytest.mark.parametrize("name", ["paper", "balanced"])
def test_a_pickled_explainer_gives_the_same_answers(name):
    explainer, people = applicants(name), bank(15, seed=1)

    again = pickle.loads(pickle.dumps(explainer))

    assert_same(explain(again, people), explain(explainer, people))


def test_what_follows_analyses_and_relations_are_the_same_after_loading(tmp_path):
    people = bills(6, seed=1)
    explainer = MCCE(value, (2.0, 100), search="near", random_state=0)
    explainer.fit(bills(300)).save(tmp_path / "bills.mcce")

    again = mcce.load(tmp_path / "bills.mcce", value)

    result, other = explain(explainer, people), explain(again, people)
    assert_same(other, result)
    pd.testing.assert_frame_equal(other.changes(), result.changes())
    pd.testing.assert_frame_equal(again.relations_, explainer.relations_)
    pd.testing.assert_frame_equal(again.ranges(other), explainer.ranges(result))
    pd.testing.assert_frame_equal(again.robustness(other), explainer.robustness(result))


def test_a_fit_that_learned_less_than_the_search_needs_is_not_saved(tmp_path):
    explainer = MCCE(score, (0.8, 10), search="paper", random_state=0).fit(bank(60))

    for search in ("balanced", bounded(copies="never")):
        with pytest.raises(mcce.NotFittedError, match="changed after fit"):
            explainer.set_params(search=search).save(tmp_path / "explainer.mcce")

    assert not list(tmp_path.iterdir())
