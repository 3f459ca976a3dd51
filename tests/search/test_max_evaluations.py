"""``max_evaluations`` is kept exactly for every person, whoever else is explained."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bank import bank, score
from mcce import MCCE, ParameterError, Search
from mcce import constraints as c
from searches import assert_same, explain

LED = ["sparse", "balanced", "plausible", "near"]
USED_UP = "the predictor scored the 1 row that max_evaluations=1 allows and refused it; the surr"


class Recorder:
    """A predictor that counts the rows of each person, by a column that nobody can change."""

    def __init__(self, function):
        self.function = function
        self.n_rows: Counter[int] = Counter()

    def __call__(self, frame):
        self.n_rows.update(frame["person"].tolist())
        return self.function(frame)


def wild(frame):
    """Scores that no surrogate can imitate."""
    numbers = frame["salary"].fillna(0).to_numpy() * 7919 + frame["years"].to_numpy() * 104729
    return np.sin(numbers) * 1000 % 1 + score(frame) / 10


def table(n_rows, seed, first=0):
    return bank(n_rows, seed=seed).assign(person=np.arange(first, first + n_rows))


def n_asked(recorder, result, people):
    """Rows of each person scored in the search, without their own and the final call."""
    answers = result.frame["person"].value_counts()
    explained = people["person"][(result.people["status"] != "already desired").to_numpy()]
    rows = {person: recorder.n_rows[person] - 1 for person in explained}
    return {person: n - answers.get(person, 0) for person, n in rows.items()}


def fitted(recorder, search, train, **more):
    explainer = MCCE(
        recorder, (0.9, 99.0), immutable=["sex", "person"], search=search, random_state=0, **more
    )
    explainer.fit(train)
    recorder.n_rows.clear()
    return explainer


RULES = {
    "none": None,
    "few": [c.max_changes(2)],
    "tight": [c.only_up("years"), c.frozen("education"), c.relation("low", "salary < 50")],
}


@settings(max_examples=12, deadline=None)
@given(
    most=st.integers(1, 20),
    name=st.sampled_from(LED),
    n_counterfactuals=st.integers(1, 3),
    rules=st.sampled_from(sorted(RULES)),
    max_distance=st.sampled_from([None, 0.05]),
    function=st.sampled_from([score, wild]),
    n_train=st.sampled_from([8, 40, 120]),
    seed=st.integers(0, 5),
)
def test_nobody_has_more_rows_scored(
    most, name, n_counterfactuals, rules, max_distance, function, n_train, seed
):
    recorder, people = Recorder(function), table(6, seed + 100, first=1000)
    search = Search.preset(name, max_evaluations=most, max_samples=200, max_distance=max_distance)
    more = {"n_counterfactuals": n_counterfactuals, "constraints": RULES[rules]}
    explainer = fitted(recorder, search, table(n_train, seed), **more)

    result = explain(explainer, people)

    asked = n_asked(recorder, result, people)
    assert all(0 <= n <= most for n in asked.values())
    assert sum(asked.values()) == result.n_evaluated


@pytest.mark.parametrize("name", LED)
@pytest.mark.parametrize("most", [1, 3, 8])
def test_a_batch_changes_nothing(name, most):
    train, people = table(200, 1), table(12, 2, first=1000)
    search = Search.preset(name, max_evaluations=most, max_samples=400)
    recorder = Recorder(score)
    explainer = fitted(recorder, search, train, n_counterfactuals=2)
    together = explain(explainer, people)
    asked = n_asked(recorder, together, people)

    for at in range(len(people)):
        recorder.n_rows.clear()
        alone = explain(explainer, people.iloc[[at]])
        one = together.people.iloc[[at]]

        pd.testing.assert_frame_equal(alone.people, one, check_exact=True)
        expected = together.frame[together.frame["person"] == people["person"].iloc[at]]
        pd.testing.assert_frame_equal(alone.frame, expected, check_exact=True)
        assert n_asked(recorder, alone, people.iloc[[at]]).items() <= asked.items()


def test_without_rows_to_ask_about_the_best_so_far_is_returned():
    train, people = table(300, 1), table(60, 2, first=1000)
    sizes = {}
    for most in [1, 2, 4, 16, None]:
        search = Search.preset("sparse", max_evaluations=most)
        result = explain(fitted(Recorder(score), search, train), people)
        assert (score(result.frame) >= 0.9).all()
        sizes[most] = len(result.frame)

    assert sizes[1] <= sizes[2] <= sizes[16] <= sizes[None]
    assert sizes[1] > 0.5 * sizes[None]


def test_a_reason_names_what_was_used_up():
    train, people = table(300, 1), table(60, 2, first=1000)
    search = Search.preset("sparse", max_evaluations=1, max_samples=200)
    recorder = Recorder(lambda frame: np.where(frame["person"] < 1000, score(frame), 0.1))

    result = explain(fitted(recorder, search, train), people)

    reasons = result.missing["reason"]
    assert len(reasons)
    assert len(result.frame) == 0
    assert reasons.str.startswith(USED_UP).all()


def test_a_reason_says_of_a_margin_that_no_score_has_it():
    train, people = table(300, 1), table(60, 2, first=1000)
    search = Search.preset("sparse", margin=0.9, max_samples=200)

    reasons = explain(fitted(Recorder(score), search, train), people).missing["reason"]

    assert len(reasons)
    assert reasons.str.contains(r"scored \d+ rows?, and no score has the required margin").all()


def test_few_of_very_many_rows_are_tried(monkeypatch):
    train, people = table(300, 1), table(20, 2, first=1000)
    recorder = Recorder(lambda frame: np.where(frame["person"] < 1000, score(frame), 0.1))
    explainer = fitted(recorder, Search.preset("sparse", max_samples=3000), train)
    n_tried = {}
    for of_many in (10, 40):
        recorder.n_rows.clear()
        monkeypatch.setattr("mcce.search.led.TRIED_OF_MANY", of_many)
        for name in ("MAX_TRIES", "MAX_LAST_TRIES"):
            monkeypatch.setattr(f"mcce.search.plan.{name}", 100)
        result = explain(explainer, people)
        n_tried[of_many] = np.median([*n_asked(recorder, result, people).values()])

    assert len(result.missing) == len(people)
    # Plausible rows are tried first, then implausible ones.
    assert n_tried == {10: 2 * 10, 40: 2 * 40}


def test_a_nearest_miss_carries_the_score_of_the_predictor():
    train, people = table(300, 1), table(60, 2, first=1000)
    bounds = [{"max_distance": 0.01}, {"margin": 0.9}, {"max_evaluations": 2, "margin": 0.9}]
    for changes in bounds:
        search = Search.preset("near", max_samples=200, **changes)
        result = explain(fitted(Recorder(score), search, train), people)
        misses = result.nearest_misses

        assert len(misses)
        true = score(misses)
        assert np.array_equal(result.missing["nearest_score"].dropna().to_numpy(), true)


def test_rows_beyond_the_bounds_are_not_put_to_the_predictor():
    train, people = table(300, 1), table(30, 2, first=1000)
    search = Search.preset("sparse", max_distance=0.001, max_samples=200)
    recorder = Recorder(score)
    explainer = fitted(recorder, replace(search, max_evaluations=50), train)

    result = explain(explainer, people)

    assert max(n_asked(recorder, result, people).values()) <= 1
    scored = "the predictor scored 1 row, and what it accepted is excluded by max_distance=0.001"
    assert result.missing["reason"].str.startswith(scored).any()


def test_a_table_too_small_to_imitate_keeps_the_bound_too():
    recorder, people = Recorder(score), table(10, 2, first=1000)
    search = Search.preset("sparse", max_evaluations=4)
    explainer = fitted(recorder, search, table(10, 1))

    result = explain(explainer, people)

    assert explainer.surrogate_ is None
    assert max(n_asked(recorder, result, people).values()) <= 4
    assert len(result.frame)


def test_enough_rows_change_nothing():
    train, people = table(300, 1), table(20, 2, first=1000)
    plain = Search.preset("balanced")

    free = explain(fitted(Recorder(score), plain, train), people)
    bounded = explain(fitted(Recorder(score), replace(plain, max_evaluations=500), train), people)

    assert_same(free, bounded)


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, np.nan])
def test_other_values_are_refused(value):
    with pytest.raises(ParameterError, match="max_evaluations"):
        Search.preset("sparse", max_evaluations=value)


@pytest.mark.parametrize("name", ["paper", "fast"])
def test_a_search_without_targets_says_what_to_do(name):
    with pytest.raises(ParameterError, match="max_samples"):
        Search.preset(name, max_evaluations=5)
