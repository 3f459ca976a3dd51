"""Labels that follow from probabilities, learned from rows and used for others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.predictors.desired import make_decision
from mcce.predictors.labels import LabelRule, Probabilities
from mcce.predictors.output import list_labels


class Scorer:
    """Probabilities in three columns of the frame; a label by a function of them."""

    _estimator_type = "classifier"
    classes_ = np.array(["a", "b", "c"])

    def __init__(self, decide):
        self.decide = decide
        self.calls: list[tuple[str, int]] = []

    def predict_proba(self, frame):
        self.calls.append(("predict_proba", len(frame)))
        return frame[["a", "b", "c"]].to_numpy()

    def predict(self, frame):
        self.calls.append(("predict", len(frame)))
        return self.classes_[self.decide(frame[["a", "b", "c"]].to_numpy())]


def by_largest(numbers):
    return numbers.argmax(axis=1)


def by_threshold(numbers):
    return np.where(numbers[:, 0] >= 0.375, 0, 2)


def rows(n_rows, seed, parts=64):
    """Probabilities in 64ths, with ties among them."""
    counts = np.random.default_rng(seed).multinomial(parts, [1 / 3] * 3, n_rows)
    return pd.DataFrame(counts / parts, columns=["a", "b", "c"])


def two(scores):
    second = np.asarray(scores, dtype=float)
    return Probabilities(np.column_stack([1 - second, second]), (1,))


def test_the_ends_are_the_highest_refused_and_the_lowest_accepted_row():
    rule = LabelRule.learn(two([0.125, 0.25, 0.75, 1.0]), np.array([False, False, True, True]))

    accepted, unclear = rule.divide(two([0.2, 0.25, 0.5, 0.75, 0.8]))

    assert accepted.tolist() == [False, False, False, False, True]
    assert unclear.tolist() == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("scores", "accepted"),
    [
        ([0.2, 0.6, 0.8], [False, True, False]),
        ([0.2, 0.6], [False, False]),
        ([0.2, 0.6], [True, True]),
        ([-math.inf, 0.6], [False, True]),
    ],
)
def test_there_is_no_rule_without_a_finite_threshold(scores, accepted):
    assert LabelRule.learn(two(scores), np.array(accepted)) is None


@pytest.mark.parametrize(
    ("own_threshold", "ends"), [(False, (0.0, 0.0)), (True, (-0.0078125, 0.0))]
)
def test_hardly_any_room_around_the_most_probable_label_is_none(own_threshold, ends):
    scores, accepted = two([0.49609375, 0.5, 0.75]), np.array([False, True, True])

    rule = LabelRule.learn(scores, accepted, own_threshold=own_threshold)

    assert (rule.low, rule.high) == ends


def test_missing_probabilities_of_other_labels_leave_the_score():
    numbers = np.array([[0.25, np.nan, 0.5], [0.75, 0.125, np.nan]])

    rule = LabelRule.learn(Probabilities(numbers, (0,)), np.array([False, True]))

    assert rule == LabelRule("score", 0.25, 0.75)


def test_a_margin_that_is_missing_is_unclear():
    numbers = np.array([[0.75, np.nan, 0.125]])

    accepted, unclear = LabelRule("margin", 0.0, 0.0).divide(Probabilities(numbers, (0,)))

    assert not accepted.any()
    assert unclear.all()


@given(
    seed=st.integers(0, 10_000),
    desired=st.sampled_from([["a"], ["b"], ["a", "b"], ["b", "c"]]),
    decide=st.sampled_from([by_largest, by_threshold]),
)
def test_decisions_by_a_rule_are_those_by_labels(seed, desired, decide):
    if decide is by_threshold:
        desired = ["a"]
    decision = make_decision(Scorer(decide), desired)
    scored, rule = decision.learn_rule(rows(400, seed))
    new = rows(300, seed + 1)

    by_rule = replace(decision, rule=rule).score(new)

    expected = decision.score(new)
    assert rule is not None
    assert np.array_equal(scored.valid, decision.score(rows(400, seed)).valid)
    assert np.array_equal(by_rule.score, expected.score)
    outside = ~np.isclose(new["a"], 0.375, atol=0.05) if decide is by_threshold else True
    assert np.array_equal(by_rule.valid & outside, expected.valid & outside)


@given(seed=st.integers(0, 10_000), place=st.integers(0, 49))
def test_what_a_rule_says_of_a_row_does_not_depend_on_other_rows(seed, place):
    decision = make_decision(Scorer(by_largest), ["b"])
    by_rule = replace(decision, rule=decision.learn_rule(rows(60, seed))[1])
    new = rows(50, seed + 1)

    together, alone = by_rule.score(new), by_rule.score(new.iloc[[place]])

    assert together.valid[place] == alone.valid[0]


def test_labels_are_asked_for_only_between_the_ends():
    scorer = Scorer(by_threshold)
    decision = make_decision(scorer, ["a"])
    by_rule = replace(decision, rule=LabelRule("score", 0.25, 0.5))
    frame = pd.DataFrame({"a": [0.125, 0.25, 0.375, 0.5, 0.75]}).assign(b=0.0, c=0.0)

    valid = by_rule.score(frame).valid

    assert valid.tolist() == [False, False, True, True, True]
    assert scorer.calls == [("predict_proba", 5), ("predict", 3)]


def test_margins_need_no_second_call():
    scorer = Scorer(by_largest)
    decision = make_decision(scorer, ["a"]).with_margin(0.25)
    frame = pd.DataFrame({"a": [0.5, 0.75], "b": [0.375, 0.125], "c": [0.125, 0.125]})

    scored, margins = decision.score_margins(frame)

    assert scored.valid.tolist() == [False, True]
    assert margins.tolist() == [0.125, 0.625]
    assert scorer.calls == [("predict_proba", 2), ("predict", 1)]


def test_a_fresh_call_tells_misjudged_rows_from_unstable_ones():
    decision = make_decision(Scorer(by_threshold), ["a"])
    by_rule = replace(decision, rule=LabelRule("score", 0.125, 0.25))
    # Above the ends, between them, below them, and valid.
    frame = pd.DataFrame({"a": [0.3125, 0.1875, 0.0625, 0.5]}).assign(b=0.0, c=0.0)

    scored, misjudged = by_rule.confirm(frame, np.ones(4))

    assert scored.valid.tolist() == [False, False, False, True]
    assert misjudged.tolist() == [True, False, False, False]


@pytest.mark.parametrize("desired", [(0.5, 1.0), ["a"]])
def test_decisions_without_probabilities_of_labels_have_no_rule(desired):
    def function(frame):
        return frame["a"] if isinstance(desired, tuple) else by_largest(frame.to_numpy())

    decision = make_decision(function, desired if isinstance(desired, tuple) else [0])

    assert decision.learn_rule(rows(50, 0))[1] is None


@pytest.mark.parametrize("unit", ["Y", "M", "D", "h", "s", "ns"])
def test_labels_may_be_times_of_any_unit(unit):
    class Dated(Scorer):
        classes_ = np.array(["2020", "2021", "2022"], dtype=f"datetime64[{unit}]")

    frame = rows(50, 3)
    desired = list_labels(Dated.classes_)[0]

    scored = make_decision(Dated(by_largest), [desired]).score(frame)

    assert np.array_equal(scored.valid, frame.to_numpy().argmax(axis=1) == 0)
