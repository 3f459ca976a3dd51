"""Explaining under constraints: what they add to a call, its reasons and its limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import score
from constrained import PEOPLE, TRAIN, before_and_after, changed, explain
from mcce import MCCE, McceWarning
from mcce import constraints as c
from mcce.candidates import Draws
from mcce.protocols import Capabilities
from searches import bounded

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


def test_no_constraints_change_nothing():
    plain = explain(None)

    for nothing in ([], [c.not_up("age"), c.weight("age", 1.0)][1:]):
        pd.testing.assert_frame_equal(explain(nothing).frame, plain.frame)


def test_constraints_of_one_call_are_added_to_those_of_the_explainer():
    explainer = MCCE(
        score, (0.8, 10), constraints=[c.only_up("years")], n_samples=60, random_state=3
    )
    explainer.fit(TRAIN)

    usual = explainer.explain(PEOPLE)
    once = explainer.explain(PEOPLE, constraints=[c.frozen("salary")])

    assert changed(*before_and_after(usual))["salary"].any()
    assert not changed(*before_and_after(once))["salary"].any()
    assert not (once.frame["years"].to_numpy() < PEOPLE["years"].to_numpy()[once.owner]).any()


def test_a_reason_names_the_constraint_that_excluded_what_was_valid():
    with pytest.warns(McceWarning, match="no counterfactual"):
        result = explain([c.relation("nobody is so young", "age > 1000")])

    reasons = result.missing["reason"]
    assert len(reasons)
    assert reasons.str.contains("nobody is so young").any()


def test_further_draws_find_more_and_change_no_answer():
    few = explain([c.max_changes(1)], n_samples=5)
    further = bounded(n_samples=5, max_samples=320)
    more = explain([c.max_changes(1)], n_samples=None, search=further)

    answered = np.unique(few.owner)
    assert set(answered) < set(more.owner.tolist())
    pd.testing.assert_frame_equal(more.frame[np.isin(more.owner, answered)], few.frame)
    assert more.missing["reason"].str.contains("320|excluded").all()


def test_a_call_ends_when_its_time_is_up_and_says_so():
    result = explain([], max_seconds=1e-9)

    assert result.stopped
    assert result.missing["reason"].str.contains("stopped").all()
    assert not explain([]).stopped


def test_draws_of_a_generator_without_limits_are_held_to_the_constraints():
    class Anything:
        capabilities = Capabilities()

        def fit(self, rows, decision, *, seed, n_jobs, verbose):
            self.rows = rows
            return self

        def sample(self, given, keys, draws):
            sizes = [self.rows.schema.features[at].n_codes for at in self.rows.schema.mutable]
            codes = [
                (keys[:, None] % np.uint64(97) + draws[None, :] * 31 + i).astype(np.int64) % size
                for i, size in enumerate(sizes)
            ]
            return Draws(np.array(codes, dtype=np.int32))

    result = explain(
        [c.only_up("salary"), c.frozen("age"), c.step("years", 4)], generator=Anything()
    )

    before, after = before_and_after(result)
    moved = changed(before, after)
    assert len(after)
    assert not moved["age"].any()
    assert (after["salary"] >= before["salary"])[moved["salary"]].all()
    assert ((after["years"] - before["years"]).abs()[moved["years"]] >= 4).all()


def test_an_interrupted_call_leaves_an_explainer_that_explains_as_before():
    explainer = MCCE(score, (0.8, 10), n_samples=60, n_jobs=2, random_state=3).fit(TRAIN)
    before = explainer.explain(PEOPLE).frame

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explainer.explain(PEOPLE, callback=interrupt)

    pd.testing.assert_frame_equal(explainer.explain(PEOPLE).frame, before)


def test_an_interrupted_fit_leaves_what_was_fitted_before():
    calls = iter([False] * 2 + [True])

    def moody(frame):
        if next(calls, False):
            raise KeyboardInterrupt
        return score(frame)

    explainer = MCCE(moody, (0.8, 10), n_samples=60, random_state=3).fit(TRAIN)
    next(calls)

    with pytest.raises(KeyboardInterrupt):
        explainer.fit(TRAIN.head(50))

    assert len(explainer.explain(PEOPLE).people) == len(PEOPLE)
    assert explainer.schema_.features[0].n_codes == TRAIN["age"].nunique()


@pytest.mark.parametrize("search", ["paper", "sparse", "balanced", "fast", "exact"])
def test_a_function_never_gets_a_frame_without_rows(search):
    sizes = []

    def holds(frame):
        sizes.append(len(frame))
        return frame["salary"] <= frame["salary"].iloc[0] + 1000

    rule = c.relation("near the first", holds)
    explainer = MCCE(score, (0.8, 10), constraints=[rule], search=search, random_state=0)

    explainer.fit(TRAIN).explain(PEOPLE)

    assert min(sizes) > 0
