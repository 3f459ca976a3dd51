"""Stages of a search: everybody whom a stage leaves without an answer gets a reason from it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from bank import bank, score
from mcce import MCCE, ExactSearch
from mcce.postprocess.filters import ExcludeUnstable
from mcce.search import plan
from mcce.search.outcome import Outcome
from mcce.search.sampling import STOPPED
from searches import bounded, explain

TRAIN, PEOPLE = bank(300), bank(30, seed=1)
# Bounds that leave some people without an answer, and few draws, so that stages are many.
BOUNDS = {"max_sparsity": 2, "max_distance": 0.15}
TIGHT = {"max_sparsity": 2, "max_distance": 0.05}
SEARCHES = {
    "paper": bounded("paper", n_samples=20, max_samples=80, **BOUNDS),
    "fast": bounded("fast", n_samples=20, max_samples=80, **BOUNDS),
    "balanced": bounded("balanced", n_samples=10, max_samples=200, **TIGHT),
    "near": bounded("near", n_samples=10, max_samples=20, **TIGHT),
    "exact": ExactSearch(**BOUNDS),
    "exact with few rows": ExactSearch(max_rows=4, n_samples=20, max_samples=40, **BOUNDS),
    "exact with few nodes": ExactSearch(max_nodes=30, n_samples=20, max_samples=40, **BOUNDS),
}


def planned(search, callback=None, **settings):
    """The stages of a search on a few people, which are not run, and the people."""
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search=search, random_state=0)
    explainer.set_params(**settings).fit(TRAIN)
    plans = []

    def keep(task, stages, people):
        plans.append((list(stages(task)), people))
        return Outcome.empty(task.factuals, people, "not searched for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "run_search", keep)
        explain(explainer, PEOPLE, callback=callback)
    # Those that follow look for remedies.
    return plans[0]


def pairs(answers):
    return set(zip(answers.owner.tolist(), answers.draw.tolist(), strict=True))


def assert_everybody_is_settled(outcome, people):
    """Either answers or a reason, and nearest misses for nobody else than the latter."""
    answered = set(outcome.answers.owner.tolist())
    assert set(outcome.reasons) == set(people.tolist()) - answered
    assert all(outcome.reasons.values())
    assert set(outcome.misses.owner.tolist()) <= set(outcome.reasons)


@pytest.mark.parametrize("n_counterfactuals", [1, 3])
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_whoever_a_stage_does_not_answer_gets_a_reason(search, n_counterfactuals):
    stages, people = planned(search, n_counterfactuals=n_counterfactuals)

    outcomes = [stage.run(people) for stage in stages]

    for outcome in outcomes:
        assert_everybody_is_settled(outcome, people)
        assert not outcome.stopped
        assert outcome.proven <= set(people.tolist())
    assert any(outcome.reasons for outcome in outcomes)
    assert any(outcome.answers.owner.size for outcome in outcomes)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_stage_searches_for_nobody_but_the_people_it_is_given(search):
    stages, people = planned(search)

    for stage in stages:
        assert_everybody_is_settled(stage.run(people[1::3]), people[1::3])


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_stage_for_nobody_has_nothing_to_say(search):
    stages, people = planned(search)

    for stage in stages:
        outcome = stage.run(people[:0])
        assert_everybody_is_settled(outcome, people[:0])
        assert not outcome.answers.owner.size


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_stage_that_is_stopped_says_so_to_everybody_who_is_left(search):
    # Blocks of one person each, so that most are not searched for at all.
    search = bounded(search, max_sparsity=None, max_distance=None)
    stages, people = planned(search, callback=lambda progress: True, memory=1e-6)

    for stage in stages:
        outcome = stage.run(people)
        assert outcome.stopped
        assert_everybody_is_settled(outcome, people)
        assert STOPPED in outcome.reasons.values()


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_what_failed_the_final_call_is_not_returned_again(search):
    stages, people = planned(search)

    for stage in stages:
        first = stage.run(people).answers
        again = stage.excluding(ExcludeUnstable(first.owner, first.draw)).run(people)
        assert_everybody_is_settled(again, people)
        assert not pairs(first) & pairs(again.answers)
        # The stage itself is as it was, but a search that is led remembers what it was told.
        once_more = stage.run(people).answers
        assert set(once_more.owner) >= set(first.owner)
        assert stage.task.led is not None or pairs(once_more) == pairs(first)


def test_an_outcome_does_not_change():
    stages, people = planned("paper")
    outcome = stages[0].run(people)
    reasons = dict(outcome.reasons)

    with pytest.raises(FrozenInstanceError):
        outcome.stopped = True
    assert not outcome.without_reasons(people).reasons
    assert outcome.without_answers(people).answers.owner.size == 0
    assert outcome.with_seconds({"rank": 1.0}).seconds["rank"] >= 1.0

    assert outcome.reasons == reasons
    assert np.isin(outcome.answers.owner, people).all()


@pytest.mark.parametrize("name", ["balanced", "fast"])
def test_a_search_that_begins_again_by_laxer_rules_may_have_fewer_draws(name):
    lax = {"allow_implausible": True} if name == "balanced" else {"copies": "last"}
    search = bounded(name, n_samples=10, max_samples=80, max_distance=0.02, **lax)
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search=search, random_state=0)

    result = explain(explainer.fit(TRAIN), PEOPLE)

    assert result.people["status"].isin(["answered", "no answer", "already desired"]).all()
    assert (result.people["status"] == "no answer").any()
