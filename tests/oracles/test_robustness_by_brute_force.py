"""Robustness of counterfactuals equals brute force, whatever the batch, for random data."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import same
from mcce import MCCE, Interval
from searches import explain
from tables import cases

DESIRED = Interval(0.55, np.inf, closed="left")


@st.composite
def explained(draw):
    """A case, its explainer and answers, and the rows that the predictor is asked about."""
    case, scored = draw(cases()), []

    def listen(frame):
        scored.append(frame)
        return case.score(frame)

    explainer = MCCE(
        listen,
        DESIRED,
        immutable=case.immutable,
        n_samples=25,
        n_counterfactuals=draw(st.integers(1, 3)),
        random_state=draw(st.integers(0, 5)),
    )
    return case, explainer.fit(case.train), explain(explainer, case.people), scored


def neighbours(explainer, row, changed, scale):
    """Per column of a counterfactual the values that a move may give it."""
    allowed = []
    for feature in explainer.schema_.features:
        value = row[feature.name]
        near = []
        if feature.name in changed and feature.kind == "numeric" and not pd.isna(value):
            reach = scale * feature.spread
            near = [
                other
                for other in feature.known
                if value - reach <= other <= value + reach and other != value
            ]
        allowed.append(near or [value])
    return allowed


def brute_force(explainer, before, after, scale):
    """All moves and all parts of one counterfactual, as rows."""
    changed = [name for name in before.index if not same(before[name], after[name])]
    allowed = neighbours(explainer, after, changed, scale)
    moves = [list(cells) for cells in itertools.product(*allowed)]
    own = after.tolist()
    if len(moves) == 1 and all(same(a, b) for a, b in zip(moves[0], own, strict=True)):
        moves = []
    parts = []
    for size in range(1, len(changed)):
        for some in itertools.combinations(changed, size):
            parts.append([after[n] if n in some else before[n] for n in before.index])
    return moves, parts


def is_valid(case, rows):
    frame = pd.DataFrame(rows, columns=case.people.columns, dtype=object)
    return DESIRED.contains(case.score(frame))


@given(explained(), st.sampled_from([0.01, 0.1, 0.5, 1.0]))
def test_the_numbers_are_those_of_trying_everything_one_by_one(work, scale):
    case, explainer, result, _ = work

    measured = explainer.robustness(result, n_perturbations=1000, scale=scale)

    factuals, answers = result.factuals.astype(object), result.frame.astype(object)
    for place in range(len(result.frame)):
        moves, parts = brute_force(
            explainer, factuals.iloc[result.owner[place]], answers.iloc[place], scale
        )
        row = measured.iloc[place]
        assert row["n_evaluated"] == 1 + min(len(moves), 1000) + len(parts)
        if not moves:
            assert np.isnan(row["stability"])
        elif len(moves) <= 1000:
            assert row["stability"] == is_valid(case, moves).mean()
        if parts:
            assert row["partial"] == is_valid(case, parts).mean()
            assert row["minimal"] == (row["partial"] == 0)
        else:
            assert np.isnan(row["partial"])
            assert row["minimal"]
    assert np.array_equal(measured["margin"], result.measures["score"] - 0.55)


@settings(max_examples=15)
@given(explained(), st.integers(1, 5))
def test_moves_at_random_are_moves_that_may_be_made(work, n_perturbations):
    case, explainer, result, scored = work
    for place in range(len(result.frame)):
        one = only(result, [place])
        before = one.factuals.astype(object).iloc[one.owner[0]]
        after = one.frame.astype(object).iloc[0]
        moves, parts = brute_force(explainer, before, after, 0.3)
        scored.clear()

        explainer.robustness(one, n_perturbations=n_perturbations, scale=0.3)

        (frame,) = scored
        assert frame.dtypes.equals(case.people.dtypes)
        n_moves = len(frame) - 1 - len(parts)
        assert n_moves == min(len(moves), n_perturbations)
        for cells in frame.astype(object).iloc[1 : 1 + n_moves].to_numpy().tolist():
            assert any(all(map(same, cells, move)) for move in moves)


def only(result, places):
    """A result with some of the counterfactuals in another order."""
    return replace(result, frame=result.frame.iloc[places], owner=result.owner[places])


@settings(max_examples=15)
@given(explained(), st.integers(0, 2**32 - 1))
def test_batch_and_order_change_nothing(work, seed):
    _, explainer, result, _ = work
    places = np.random.default_rng(seed).permutation(len(result.frame))[: 1 + seed % 5]

    everything = explainer.robustness(result, n_perturbations=3, scale=0.3)
    some = explainer.robustness(only(result, places), n_perturbations=3, scale=0.3)

    pd.testing.assert_frame_equal(some, everything.iloc[places], check_exact=True)
