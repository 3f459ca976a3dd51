"""Run a search: stage after stage, and a fresh call of the predictor on what is returned.

Takes the stages and the factuals to explain; gives the counterfactuals found and, for everybody
else, a reason and the nearest miss.

Always true: the outcome does not depend on blocks, threads or the order of people; every
counterfactual was valid in a final, fresh call of the predictor on the rows that are returned.
Whoever had an answer that the label rule accepts and the predictor does not is searched for again
without the rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ..errors import ConstraintError
from ..kernels import IntArray
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.validation import Answers
from .outcome import Outcome
from .stage import ScoreMemory, Stage, Task, no_unstable


def run_search(task: Task, stages: Callable[[Task], Iterable[Stage]], people: IntArray) -> Outcome:
    """Counterfactuals for factuals; each stage searches for those still without an answer."""
    outcome = _run_stages(task, stages(task), people)
    if not outcome.misjudged:
        return outcome
    decision = replace(task.decision, rule=None)
    # Nothing is remembered, because scores so far come with what the rule said.
    certain = replace(
        task,
        decision=decision,
        scores=ScoreMemory(),
        remembered=None,
        led=None if task.led is None else task.led.without_replies(),
    )
    again = np.array(sorted(outcome.misjudged), dtype=np.int64)
    return Outcome.merge(task.factuals, [outcome, _run_stages(certain, stages(certain), again)])


def _run_stages(task: Task, stages: Iterable[Stage], people: IntArray) -> Outcome:
    """Run one stage after the other."""
    parts: list[Outcome] = []
    for stage in list(stages):
        if parts:
            parts[-1] = parts[-1].without_reasons(people)
        outcome = _run_confirmed(task, stage, people)
        parts.append(outcome)
        left = outcome.reasons.keys() - outcome.proven
        people = np.array(sorted(left), dtype=np.int64)
        if not people.size or outcome.stopped:
            break
    return Outcome.merge(task.factuals, parts)


def _run_confirmed(task: Task, stage: Stage, people: IntArray) -> Outcome:
    """Run one stage until every answer survives a fresh call of the predictor.

    An answer that fails is dropped, and its person is searched for again without it.
    """
    unstable, parts = no_unstable(), list[Outcome]()
    while True:
        outcome, rejected = _confirm(task, stage.run(people))
        if not rejected.owner.size:
            return Outcome.merge(task.factuals, [*parts, outcome])
        people = np.unique(rejected.owner)
        parts.append(outcome.without_answers(people))
        unstable = ExcludeUnstable(
            np.concatenate([unstable.person, rejected.owner]),
            np.concatenate([unstable.draw, rejected.draw]),
        )
        stage = stage.excluding(unstable)


def _confirm(task: Task, outcome: Outcome) -> tuple[Outcome, Answers]:
    """The outcome with fresh scores, and the answers that fail them.

    People with an answer that the label rule misjudged have none in either.
    """
    started = time.perf_counter()
    answers = outcome.answers
    broken = task.constraints.broken(task.factuals, answers.owner, answers.frame)
    for name, breaks in broken.items():
        if breaks.any():
            raise ConstraintError(
                f"{name!r} does not hold for {int(breaks.sum())} of {breaks.size} answers, "
                "although it did when it was first checked. A condition must give the same result "
                "for a row each time."
            )
    fresh, wrong = task.decision.confirm(answers.frame, answers.score)
    misjudged = np.unique(answers.owner[wrong])
    rejected = answers.take(~fresh.valid & ~wrong)
    confirmed = replace(
        outcome,
        answers=replace(answers, score=fresh.score),
        n_unstable=outcome.n_unstable + rejected.owner.size,
        misjudged=frozenset(misjudged.tolist()),
    ).without_answers(misjudged)
    rejected = rejected.take(~np.isin(rejected.owner, misjudged))
    return confirmed.with_seconds({"confirm": time.perf_counter() - started}), rejected
