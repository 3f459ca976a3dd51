"""The paper's search returns the best of all draws, and several that differ, by plain Python."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from mcce import MCCE, Interval, TreeChain
from searches import altered, bounded, explain
from tables import cases

DESIRED = Interval(0.55, np.inf, closed="left")
RANKS = [("sparsity", "distance"), ("distance",), ("distance", "sparsity")]


@st.composite
def explainers(draw, max_columns=4, n_samples=40):
    # Few immutable features, so that there is something to choose from.
    case = draw(cases(max_columns=max_columns))
    case = replace(case, immutable=case.immutable[:1])
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        generator=TreeChain(
            min_samples_leaf=draw(st.integers(1, 20)), condition_on_decision=draw(st.booleans())
        ),
        n_samples=draw(st.integers(1, n_samples)),
        search=bounded(
            max_sparsity=draw(st.none() | st.integers(0, 3)),
            max_distance=draw(st.none() | st.sampled_from([0.1, 0.4])),
            copies=draw(st.sampled_from(["allow", "never"])),
            rank_by=draw(st.sampled_from(RANKS)),
        ),
        n_counterfactuals=draw(st.integers(1, 3)),
        random_state=draw(st.integers(0, 5)),
    )
    return case, explainer.fit(case.train)


def answers(case, explainer):
    """Person and returned entries of everybody who was searched for."""
    result = explain(explainer, case.people)
    for person in np.flatnonzero(result.people["status"] != "already desired"):
        if explainer.n_desired_:
            yield case.people.iloc[[person]], brute_force.returned(result, person)


@given(explainers())
def test_what_is_returned_is_the_best_of_all_draws(work):
    case, explainer = work

    for person, returned in answers(case, explainer):
        assert returned == brute_force.best(explainer, person, case.train)


@given(explainers(max_columns=5, n_samples=20), st.sampled_from([0, 0.3, 0.5, 0.8, 1]))
def test_diverse_answers_are_those_of_the_greedy_rule(work, diversity):
    case, explainer = work
    explainer = altered(explainer, diversity=diversity, n_counterfactuals=3)

    # So few draws all compete.
    for person, returned in answers(case, explainer):
        assert returned == brute_force.diverse(explainer, person, case.train, 20)


@settings(max_examples=12)
@given(explainers(max_columns=5, n_samples=15))
def test_with_full_diversity_the_least_difference_is_at_least_half_of_the_best_possible(work):
    case, explainer = work
    explainer = altered(explainer, diversity=1.0, n_counterfactuals=3)

    def least(chosen):
        pairs = itertools.combinations(chosen, 2)
        return min(brute_force.difference(explainer, *pair) for pair in pairs)

    for person, returned in answers(case, explainer):
        pool = brute_force.needful(person, brute_force.ranked(explainer, person, case.train))
        assert len(returned) == min(3, len(pool))
        if len(returned) == 3:
            best = max(least(chosen) for chosen in itertools.combinations(pool, 3))
            assert least(returned) >= best / 2 - 1e-12
