"""Several answers that differ: the greedy rule, what it promises, and that nothing else changes."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
import mcce.postprocess.ranking
import mcce.postprocess.validation
from mcce import MCCE, Gower, Interval, McceWarning, TreeChain
from mcce.candidates import Draws
from mcce.protocols import Capabilities
from searches import bounded
from tables import cases

DESIRED = Interval(0.55, np.inf, closed="left")


def explain(explainer, people, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people, **given)


@st.composite
def diverse(draw):
    # Few immutable features, so that there is something to choose from.
    case = draw(cases(max_columns=5))
    case = replace(case, immutable=case.immutable[:1])
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        generator=TreeChain(min_samples_leaf=draw(st.integers(1, 20))),
        n_samples=draw(st.sampled_from([5, 60])),
        n_counterfactuals=draw(st.integers(2, 5)),
        diversity=draw(st.sampled_from([0, 0.3, 0.5, 0.8, 1])),
        search=bounded(
            max_sparsity=draw(st.none() | st.integers(1, 3)),
            copies=draw(st.sampled_from(["allow", "never"])),
            rank_by=draw(
                st.sampled_from([("sparsity", "distance"), ("distance",), ("distance", "sparsity")])
            ),
        ),
        random_state=draw(st.integers(0, 5)),
    )
    return case, explainer.fit(case.train)


def entries(explainer, result, case):
    """Position, row and returned entries of everybody who was searched for."""
    for person in np.flatnonzero(result.people["status"] != "already desired"):
        if explainer.n_desired_:
            yield case.people.iloc[[person]], brute_force.returned(result, person)


@pytest.mark.slow
@given(diverse(), st.sampled_from([1, 2, 10]))
def test_what_is_returned_is_what_the_rule_says(work, pool):
    case, explainer = work

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mcce.postprocess.ranking, "POOL", pool)
        result = explain(explainer, case.people)

    n_pool = pool * explainer.n_counterfactuals
    for row, returned in entries(explainer, result, case):
        assert returned == brute_force.diverse(explainer, row, case.train, n_pool)


@pytest.mark.slow
@given(diverse())
def test_the_first_answer_is_that_without_diversity_and_all_are_valid(work):
    case, explainer = work

    several = explain(explainer, case.people)
    plain = explain(explainer.set_params(diversity=None), case.people)

    firsts = [r.frame[r.frame.index.get_level_values("rank") == 1] for r in (several, plain)]
    pd.testing.assert_frame_equal(*firsts)
    assert several.people["status"].equals(plain.people["status"])
    assert several.people["reason"].equals(plain.people["reason"])
    assert DESIRED.contains(case.score(several.frame)).all()


@pytest.mark.slow
@given(diverse())
def test_no_answer_makes_all_changes_of_another_at_no_lower_distance(work):
    case, explainer = work

    result = explain(explainer, case.people)

    for row, returned in entries(explainer, result, case):
        ordered = sorted(returned, key=lambda entry: entry[:2])
        assert brute_force.needful(row, ordered) == ordered


@pytest.mark.slow
@given(diverse())
def test_there_are_fewer_answers_than_requested_only_if_no_other_needful_one_exists(work):
    case, explainer = work

    result = explain(explainer, case.people)

    for row, returned in entries(explainer, result, case):
        needful = brute_force.needful(row, brute_force.ranked(explainer, row, case.train))
        assert len(returned) == min(explainer.n_counterfactuals, len(needful))


@pytest.mark.slow
@given(diverse())
def test_with_full_diversity_the_least_difference_is_at_least_half_of_the_best_possible(work):
    case, explainer = work
    explainer.set_params(diversity=1.0, n_counterfactuals=3, n_samples=15)

    result = explain(explainer, case.people)

    def least(chosen):
        pairs = itertools.combinations(chosen, 2)
        return min(brute_force.difference(explainer, *pair) for pair in pairs)

    for row, returned in entries(explainer, result, case):
        if len(returned) == 3:
            pool = brute_force.needful(row, brute_force.ranked(explainer, row, case.train))
            best = max(least(chosen) for chosen in itertools.combinations(pool, 3))
            assert least(returned) >= best / 2 - 1e-12


@pytest.mark.slow
@given(diverse())
def test_two_answers_differ_the_more_the_more_diversity_is_requested(work):
    case, explainer = work
    explainer.set_params(n_counterfactuals=2)

    results = [
        explain(explainer.set_params(diversity=weight), case.people)
        for weight in (0.0, 0.2, 0.5, 0.9, 1.0)
    ]

    for person in range(len(case.people)):
        returned = [brute_force.returned(result, person) for result in results]
        if len(returned[0]) == 2:
            apart = [brute_force.difference(explainer, *two) for two in returned]
            assert (np.diff(apart) >= -1e-12).all()


TRAIN = pd.DataFrame({"salary": np.arange(80), "savings": np.arange(80) // 2 * 10})


def score(frame):
    return frame["salary"] + frame["savings"] / 5.0


def bank(predictor=score, **settings):
    settings = {"n_counterfactuals": 3, "diversity": 0.5, "random_state": 0} | settings
    return MCCE(predictor, (60, 1000), **settings).fit(TRAIN)


PERSON = pd.DataFrame({"salary": [10], "savings": [0]}, index=["p"])


def test_diverse_answers_differ_more_than_the_best_ones():
    plain = bank(diversity=None).explain(PERSON)
    several = bank(diversity=0.8).explain(PERSON)

    spread = [np.ptp(result.frame["savings"]) for result in (plain, several)]
    assert spread[0] < spread[1]
    assert several.frame.index.get_level_values("rank").tolist() == [1, 2, 3]


@pytest.mark.parametrize("settings", [{"n_counterfactuals": 1}, {"n_samples": 1}])
def test_for_one_answer_diversity_scores_nothing_more(settings):
    plain = explain(bank(diversity=None, **settings), PERSON)
    several = explain(bank(**settings), PERSON)

    pd.testing.assert_frame_equal(plain.frame, several.frame)
    assert plain.n_evaluated == several.n_evaluated


def test_a_needless_candidate_is_dropped_even_if_every_draw_is_requested():
    train = pd.DataFrame({"a": [0, 1] * 20, "b": [0, 0, 1, 1] * 10})
    person = pd.DataFrame({"a": [0], "b": [0]})
    settings = {"n_samples": 50, "n_counterfactuals": 50, "random_state": 0}

    plain = MCCE(lambda f: f["a"], (1, 1), **settings).fit(train).explain(person)
    several = MCCE(lambda f: f["a"], (1, 1), diversity=0.5, **settings).fit(train).explain(person)

    assert plain.frame.to_numpy().tolist() == [[1, 0], [1, 1]]
    assert several.frame.to_numpy().tolist() == [[1, 0]]


class Forgetful:
    """A black box that refuses some salaries the second time it sees them."""

    def __init__(self):
        self.seen = {}

    def __call__(self, frame):
        scores = []
        for salary, savings in frame.itertuples(index=False):
            self.seen[salary, savings] = self.seen.get((salary, savings), 0) + 1
            refused = self.seen[salary, savings] > 1 and salary % 3
            scores.append(0.0 if refused else salary + savings / 5.0)
        return np.array(scores)


def test_answers_that_fail_when_scored_again_are_replaced():
    explainer = bank(Forgetful(), n_counterfactuals=4)
    explainer.decision_.predictor.seen.clear()

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(PERSON)

    seen = explainer.decision_.predictor.seen
    assert result.n_unstable >= 1
    assert not (result.frame["salary"] % 3).any()
    assert result.frame.index.get_level_values("rank").tolist() == [1, 2, 3, 4]
    assert result.n_evaluated == len(seen) - 1


def test_stopping_keeps_what_was_found():
    result = bank().explain(PERSON, callback=lambda progress: True)

    assert result.people["status"].tolist() == ["answered"]
    assert result.frame.index.get_level_values("rank").tolist() == [1, 2, 3]


class Lattice:
    """A generator that invents numbers half-way between those of training."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        self.tables = [pd.Series(np.arange(60, 80, 0.5)), pd.Series(np.arange(0, 20, 0.5))]
        return self

    def sample(self, given, keys, draws):
        codes = np.tile(draws % 40, (2, keys.size, 1)).astype(np.int32)
        return Draws(codes, self.tables)


def test_invented_values_differ_by_what_they_are():
    train = TRAIN.astype(float)
    explainer = MCCE(
        score,
        (60, 1000),
        generator=Lattice(),
        n_samples=30,
        n_counterfactuals=3,
        diversity=1.0,
        random_state=0,
    ).fit(train)

    result = explainer.explain(PERSON.astype(float))

    assert result.frame["salary"].tolist() == [60.0, 74.5, 67.0]


@pytest.mark.parametrize("diversity", [0.0, 0.5, 1.0])
def test_infinite_distances_can_be_weighed(diversity):
    table = pd.DataFrame({"e": [0.0, 1e-300] * 6, "level": [0, 1, 1] * 4})
    explainer = MCCE(
        lambda f: f["level"], (1, 1), n_counterfactuals=2, diversity=diversity, random_state=0
    ).fit(table)

    result = explainer.explain(pd.DataFrame({"e": [1e10], "level": [0]}))

    assert np.isinf(result.measures["gower"]).all()
    assert len(result.frame) == 2


class Salary:
    """A distance that sees the salary alone."""

    name = "salary_gap"

    def fit(self, schema, rows, decision):
        return self

    def __call__(self, candidates):
        block = candidates.comparison
        return np.abs(block.numbers[0][block.codes[0][block.group]] - block.own_numbers[0][:, None])


@pytest.mark.parametrize("generator", ["trees", Lattice()])
def test_a_custom_distance_separates_answers_and_is_measured(generator):
    explainer = MCCE(
        score,
        (60, 1000),
        generator=generator,
        n_counterfactuals=2,
        diversity=1.0,
        distance=Salary(),
        random_state=0,
    ).fit(TRAIN.astype(float))

    result = explainer.explain(PERSON.astype(float))

    gap = (result.frame["salary"] - PERSON["salary"].iloc[0]).abs()
    assert result.measures["salary_gap"].tolist() == gap.tolist()
    assert gap.iloc[1] > gap.iloc[0]


def test_a_distance_that_equals_gower_chooses_the_same_answers():
    class Same(Gower):
        name = "same"

    settings = {"n_counterfactuals": 3, "diversity": 0.5, "random_state": 0}
    gower, same = (
        MCCE(score, (60, 1000), distance=distance, **settings).fit(TRAIN).explain(PERSON)
        for distance in ("gower", Same())
    )

    pd.testing.assert_frame_equal(same.frame, gower.frame)
    assert same.measures["same"].tolist() == gower.measures["gower"].tolist()
