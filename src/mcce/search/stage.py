"""Stages of a search: what they share, how they run, and what comes out.

A search runs its stages one after the other, each for the people that the stages before left
without an answer. ``SearchTask`` is what all stages of one call have in common. ``run_search`` runs
them and calls the predictor once more on what is returned. ``SearchOutcome`` holds the answers and,
for everyone else, a reason and the nearest miss.

Always true: the outcome does not depend on blocks, threads or the order of people; every
counterfactual was valid in a final, fresh call of the predictor on the rows that are returned.
People whose answer the label rule accepts and the predictor refuses are searched for again without
the rule. Outcomes never change; their methods return new ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ..candidates import ColumnCache, MeasuredRows
from ..constraints.collection import Constraints
from ..constraints.limits import FactualLimits
from ..counterfactuals.people import Reason
from ..errors import ConstraintError
from ..fitted import Fitted
from ..generate import FactualBlock, blocks
from ..kernels import (
    BoolArray,
    Cancellation,
    ExpiredError,
    IntArray,
    cancellable,
    times_seen_before,
)
from ..postprocess.validation import ScoreStore
from ..predictors.decision import Decision, ScoredRows
from ..protocols import Callback, Progress
from ..runtime.threads import in_caller, is_caller
from ..tables.schema import EncodedRows
from .config import ExactSearch, Search, find_search

if TYPE_CHECKING:
    from .computed import ComputedColumn
    from .consequences import Consequences

STOPPED = Reason("stopped", "The search was stopped before an answer was found.")
UNSTABLE = Reason(
    "unknown",
    "The predictor is unstable: it accepted rows during the search, but refused each of them in "
    "the final call.",
)
# Searches per person, at most, if answers fail the final call.
MAX_WITHDRAWN = 8
# Between two reports of a block that runs in another thread.
SECONDS_BETWEEN = 0.1
# With a time limit, this many blocks are smaller; the first has a 64th of a whole one.
SMALLER_BLOCKS = 6


class Stage(Protocol):
    """One way of finding counterfactuals."""

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for the factuals at these positions.

        Those without an answer have a reason in the outcome.
        """
        ...


@dataclass(frozen=True)
class ExplainSettings:
    """The parameters of an explainer that may change between ``fit`` and ``explain``."""

    search: Search | ExactSearch
    n_samples: int | None = None
    n_counterfactuals: int = 1
    diversity: float | None = None
    ignore_relations: bool | Sequence[str] = False
    memory: float = 256.0
    n_jobs: int | None = None
    max_seconds: float | None = None
    verbose: bool = False

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> ExplainSettings:
        """The settings among the parameters of an explainer."""
        named = {f.name: parameters[f.name] for f in fields(cls) if f.name in parameters}
        return cls(**named | {"search": find_search(parameters["search"], parameters["generator"])})


class Monitor:
    """Reports what all searches of a call have come to, and remembers whether to stop."""

    def __init__(self, n_people: int, callback: Callback) -> None:
        self.stopped = False
        self._n_people, self._callback = n_people, callback
        # What earlier searches have come to, and the blocks of this one.
        self._n_others = self._n_settled = self._n_evaluated = 0
        self._blocks: list[BlockMonitor] = []

    def start(self, n_people: int) -> None:
        """Start to count for a search for some of the people; the others are settled."""
        self._n_others = self._n_people - n_people
        self._n_evaluated += sum(block.n_evaluated for block in self._blocks)
        self._blocks = []

    def block(self) -> BlockMonitor:
        """The monitor of one more block, which may be in another thread."""
        self._blocks.append(BlockMonitor(self))
        return self._blocks[-1]

    def report(self) -> None:
        """Report the progress of all searches so far."""
        n_settled = self._n_others + sum(block.n_settled for block in self._blocks)
        self._n_settled = max(self._n_settled, n_settled)
        n_evaluated = self._n_evaluated + sum(block.n_evaluated for block in self._blocks)
        progress = Progress(self._n_people, self._n_settled, n_evaluated)
        self.stopped = bool(self._callback(progress)) or self.stopped


class BlockMonitor:
    """The progress of one block of people."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._reported = -math.inf
        self.n_settled = self.n_evaluated = 0

    @property
    def stopped(self) -> bool:
        """Whether the call is to stop."""
        return self._monitor.stopped

    def stop(self) -> None:
        """Stop the call, because its time is up."""
        self._monitor.stopped = True

    def report(self, n_settled: int, n_evaluated: int) -> bool:
        """Report what the block has come to, in threads not too often; returns ``stopped``."""
        self.finish(n_settled, n_evaluated)
        if is_caller() or time.monotonic() - self._reported > SECONDS_BETWEEN:
            in_caller(self._monitor.report)
            self._reported = time.monotonic()
        return self.stopped

    def finish(self, n_settled: int, n_evaluated: int) -> None:
        """Count what the block has come to."""
        self.n_settled, self.n_evaluated = n_settled, n_evaluated


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """One search: what ``fit`` learned, whom to explain, and the deadline."""

    fitted: Fitted
    settings: ExplainSettings
    constraints: Constraints
    factuals: EncodedRows
    # Of the factuals to explain, among all.
    positions: IntArray
    # Of the factuals themselves.
    scored: ScoredRows
    monitor: Monitor
    # By time.monotonic().
    deadline: float = math.inf
    # "answers" gives no reasons and, in the paper's search, draws all at once; "brief" does not
    # widen the search either.
    effort: Literal["full", "answers", "brief"] = "full"


@dataclass(frozen=True, eq=False)
class SearchTask:
    """What all stages of one call of ``explain`` share.

    ``scores`` and ``column_cache`` are filled while the stages run. Threads search for different
    people, so they add to different entries; what two of them compute at once is the same.
    """

    request: SearchRequest
    decision: Decision
    factual_limits: FactualLimits
    scores: ScoreStore
    consequences: Consequences | None = None
    column_cache: ColumnCache = field(default_factory=dict)

    @property
    def settings(self) -> ExplainSettings:
        """The settings of the call."""
        return self.request.settings

    @property
    def factuals(self) -> EncodedRows:
        """All factuals of the call."""
        return self.request.factuals

    @property
    def computed_places(self) -> list[int]:
        """Places of the mutable features that are only recomputed from others."""
        return [] if self.consequences is None else self.consequences.places

    def within_deadline(self) -> AbstractContextManager[Cancellation]:
        """A block in which kernels raise ``ExpiredError`` once the time is up."""
        return cancellable(self.request.deadline - time.monotonic())


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """The result of a search, or of one of its stages."""

    answers: MeasuredRows
    misses: MeasuredRows
    reasons: Mapping[int, Reason] = field(default_factory=dict)
    n_evaluated: int = 0
    n_unstable: int = 0
    stopped: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    proven: frozenset[int] = frozenset()
    misjudged: frozenset[int] = frozenset()
    computed: Sequence[ComputedColumn] = ()

    @classmethod
    def merge(cls, factuals: EncodedRows, parts: Sequence[SearchOutcome]) -> SearchOutcome:
        """All parts as one, by factual."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            answers=MeasuredRows.concat(factuals, [part.answers for part in parts]),
            misses=MeasuredRows.concat(factuals, [part.misses for part in parts]),
            reasons={person: why for part in parts for person, why in part.reasons.items()},
            n_evaluated=sum(part.n_evaluated for part in parts),
            n_unstable=sum(part.n_unstable for part in parts),
            stopped=any(part.stopped for part in parts),
            seconds=_sum_seconds([part.seconds for part in parts]),
            proven=frozenset[int]().union(*(part.proven for part in parts)),
            misjudged=frozenset[int]().union(*(part.misjudged for part in parts)),
        )

    def fill_reasons(self, positions: IntArray, *, stopped: bool) -> SearchOutcome:
        """The outcome with STOPPED for everyone who has neither an answer nor a reason."""
        left = set(positions.tolist()).difference(self.answers.owner.tolist())
        reasons = dict.fromkeys(sorted(left), STOPPED)
        return replace(self, reasons=reasons | dict(self.reasons), stopped=stopped)

    def with_seconds(self, more: Mapping[str, float]) -> SearchOutcome:
        """The outcome with further seconds added."""
        return replace(self, seconds=_sum_seconds([self.seconds, more]))

    def with_answers(self, mask: BoolArray) -> SearchOutcome:
        """The outcome with some of its answers, ranked from 1 again."""
        answers = self.answers.take(mask)
        return replace(self, answers=replace(answers, rank=1 + times_seen_before(answers.owner)))

    def without(self, positions: IntArray) -> SearchOutcome:
        """The outcome without what it says of some factuals."""
        gone = set(positions.tolist())
        return replace(
            self,
            answers=self.answers.take(~np.isin(self.answers.owner, positions)),
            misses=self.misses.take(~np.isin(self.misses.owner, positions)),
            reasons={person: why for person, why in self.reasons.items() if person not in gone},
            proven=self.proven - gone,
        )


def _sum_seconds(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    steps = dict.fromkeys(step for part in parts for step in part)
    return {step: sum(part.get(step, 0.0) for part in parts) for step in steps}


def blocks_of(
    task: SearchTask, positions: IntArray, n_rows: int, n_least: int = 1
) -> Iterator[FactualBlock]:
    """People in blocks, given how many rows each of them needs in memory.

    With a time limit the first blocks are small, so that some people get answers in time.
    """
    n_smaller = SMALLER_BLOCKS if math.isfinite(task.request.deadline) else 0
    memory = task.settings.memory
    return blocks(task.factual_limits, positions, n_rows, memory, n_smaller, n_least)


def run_blocks(
    task: SearchTask,
    positions: IntArray,
    in_blocks: Iterable[FactualBlock],
    run: Callable[[Iterator[tuple[FactualBlock, BlockMonitor]]], Iterable[SearchOutcome]],
) -> SearchOutcome:
    """All outcomes that ``run`` yields, for blocks of people until the search is stopped."""
    monitor = task.request.monitor
    monitor.start(positions.size)
    watched = ((block, monitor.block()) for block in in_blocks if not monitor.stopped)
    parts = list[SearchOutcome]()
    try:
        for part in run(watched):
            parts.append(part)
    except ExpiredError:
        monitor.stopped = True
    outcome = SearchOutcome.merge(task.factuals, parts)
    return outcome.fill_reasons(positions, stopped=monitor.stopped)


def run_search(
    task: SearchTask, stages: Callable[[SearchTask], Sequence[Stage]], positions: IntArray
) -> SearchOutcome:
    """Counterfactuals for factuals; each stage searches for those still without an answer."""
    outcome = _run_stages(task, stages(task), positions)
    if not outcome.misjudged:
        return outcome
    # Starts with an empty store: earlier decisions came from the label rule.
    certain = replace(
        task, decision=replace(task.decision, rule=None), scores=task.scores.cleared()
    )
    misjudged = np.array(sorted(outcome.misjudged), dtype=np.int64)
    again = _run_stages(certain, stages(certain), misjudged)
    return _update(certain, outcome, again, misjudged)


def _run_stages(task: SearchTask, stages: Sequence[Stage], positions: IntArray) -> SearchOutcome:
    """Run one stage after the other."""
    parts: list[SearchOutcome] = []
    for stage in stages:
        if parts:
            parts[-1] = parts[-1].without(positions)
        outcome = _run_confirmed(task, stage, positions)
        parts.append(outcome)
        left = outcome.reasons.keys() - outcome.proven
        positions = np.array(sorted(left), dtype=np.int64)
        if not positions.size or outcome.stopped:
            break
    return SearchOutcome.merge(task.factuals, parts)


def _run_confirmed(task: SearchTask, stage: Stage, positions: IntArray) -> SearchOutcome:
    """Run one stage until every answer survives a fresh call of the predictor.

    An answer that fails is withdrawn, and its person is searched for again without it.
    """
    outcome, failed = _confirm(task, stage.run(positions))
    for _ in range(MAX_WITHDRAWN - 1):
        if not failed.size or outcome.stopped:
            break
        again, failed_again = _confirm(task, stage.run(failed))
        outcome, failed = _update(task, outcome, again, failed), failed_again
    return outcome


def _update(
    task: SearchTask, before: SearchOutcome, again: SearchOutcome, positions: IntArray
) -> SearchOutcome:
    """Both outcomes as one: for some factuals the later one, unless it has fewer answers."""
    answers = before.answers
    withdrawn = task.scores.are_withdrawn(answers.key) & np.isin(answers.owner, positions)
    before = before.with_answers(~withdrawn)
    n_before, n_again = (
        np.bincount(one.answers.owner, minlength=len(task.factuals))[positions]
        for one in (before, again)
    )
    fewer = n_again < n_before
    parts = [before.without(positions[~fewer]), again.without(positions[fewer])]
    return SearchOutcome.merge(task.factuals, parts)


def _confirm(task: SearchTask, outcome: SearchOutcome) -> tuple[SearchOutcome, IntArray]:
    """The outcome with fresh scores, without answers that fail them; and whose answers failed.

    The latter leaves out people with an answer that the label rule misjudged. The reason of people
    who lost all their answers is UNSTABLE, and nothing of them is proven.
    """
    started = time.perf_counter()
    answers = outcome.answers
    broken = task.request.constraints.broken(task.factuals, answers.owner, answers.frame)
    for name, breaks in broken.items():
        if breaks.any():
            raise ConstraintError(
                f"{name!r} does not hold for {int(breaks.sum())} of {breaks.size} answers, "
                "although it did when it was first checked. A condition must give the same result "
                "for a row each time."
            )
    fresh, wrong = task.decision.confirm(answers.frame, answers.score)
    rejected = answers.take(~fresh.valid & ~wrong)
    task.scores.withdraw(rejected.owner, rejected.key)
    confirmed = replace(outcome, answers=replace(answers, score=fresh.score))
    confirmed = confirmed.with_answers(fresh.valid)
    failed = set(rejected.owner.tolist())
    lost = failed.difference(confirmed.answers.owner.tolist())
    lost |= {person for person in outcome.reasons if task.scores.unstable[person]}
    misjudged = frozenset(answers.owner[wrong].tolist())
    confirmed = replace(
        confirmed,
        reasons=dict(outcome.reasons) | dict.fromkeys(sorted(lost - misjudged), UNSTABLE),
        n_unstable=outcome.n_unstable + rejected.owner.size,
        proven=outcome.proven - failed - lost - misjudged,
        misjudged=misjudged,
    )
    again = np.array(sorted(failed - misjudged), dtype=np.int64)
    return confirmed.with_seconds({"confirm": time.perf_counter() - started}), again
