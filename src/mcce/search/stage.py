"""What the stages of a search share, how they run in blocks, and what comes out.

A search runs its stages one after the other, each for the people that the stages before left
without an answer. ``SearchTask`` is what all stages of one search have in common. ``SearchOutcome``
holds the answers and, for everyone else, a reason and the nearest miss. ``Monitor`` counts.

Always true: the outcome does not depend on blocks, threads or the order of people. Outcomes never
change; their methods return new ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..candidates import MeasuredRows
from ..constraints.collection import Constraints
from ..constraints.limits import FactualLimits
from ..counterfactuals.parts import Reason
from ..encodings import ColumnCache
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
from .config import ExplainSettings

if TYPE_CHECKING:
    from ..relations.consequences import ComputedColumn, Consequences

STOPPED = Reason("stopped", "The search was stopped before an answer was found.")
UNSTABLE = Reason(
    "unknown",
    "The predictor is unstable: it accepted rows during the search, but refused each of them in "
    "the final call.",
)
# The least time between two reports of blocks that run in other threads.
SECONDS_BETWEEN_REPORTS = 0.1
# With a time limit, this many blocks are smaller, the first one a 64th of a whole block.
SMALLER_BLOCKS = 6


class Stage(Protocol):
    """One way of finding counterfactuals."""

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for the factuals at these positions.

        Those without an answer have a reason in the outcome.
        """
        ...


class Monitor:
    """Adds up the progress of all searches of a call, reports it, and knows whether to stop.

    Blocks of people may run in threads; the callback is called from the caller's thread alone.
    """

    def __init__(self, n_people: int, callback: Callback) -> None:
        self.stopped = False
        self._n_people, self._callback = n_people, callback
        self._n_others = self._n_settled = self._n_before = 0
        # People settled and rows scored in each block of the current search.
        self._blocks: dict[FactualBlock, tuple[int, int]] = {}
        self._reported = -math.inf

    @property
    def n_evaluated(self) -> int:
        """Rows scored so far by the predictor."""
        # As a list at once, because threads add blocks.
        return self._n_before + sum(n_evaluated for _, n_evaluated in list(self._blocks.values()))

    def start(self, n_people: int) -> None:
        """Begin a search for this many people; all others are settled."""
        self._n_before, self._n_others = self.n_evaluated, self._n_people - n_people
        self._blocks = {}

    def record(self, block: FactualBlock, n_settled: int, n_evaluated: int) -> None:
        """Record the progress of a block: people settled and rows scored."""
        self._blocks[block] = n_settled, n_evaluated

    def report(self, block: FactualBlock, n_settled: int, n_evaluated: int) -> bool:
        """Record the progress of a block and, now and then, report it; returns whether to stop."""
        self.record(block, n_settled, n_evaluated)
        if is_caller() or time.monotonic() - self._reported > SECONDS_BETWEEN_REPORTS:
            self._reported = time.monotonic()
            in_caller(self._report)
        return self.stopped

    def _report(self) -> None:
        n_settled = sum(n_settled for n_settled, _ in list(self._blocks.values()))
        self._n_settled = max(self._n_settled, self._n_others + n_settled)
        progress = Progress(self._n_people, self._n_settled, self.n_evaluated)
        self.stopped = bool(self._callback(progress)) or self.stopped


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """One search: what ``fit`` learned, the people, and the deadline."""

    fitted: Fitted
    settings: ExplainSettings
    constraints: Constraints
    factuals: EncodedRows
    # Of the factuals themselves.
    scored: ScoredRows
    monitor: Monitor
    # By time.monotonic().
    deadline: float = math.inf
    # Without reasons, the paper's search draws all at once.
    gives_reasons: bool = True
    # Whether a search beyond the paper adds rows for people without an answer.
    widens: bool = True
    # The same for answers that need not last.
    without_survival: SearchRequest | None = None


def make_request(
    fitted: Fitted,
    settings: ExplainSettings,
    constraints: Constraints,
    factuals: EncodedRows,
    scored: ScoredRows,
    monitor: Monitor,
) -> SearchRequest:
    """A search for those of the people who do not have the desired decision."""
    request = SearchRequest(fitted, settings, constraints, factuals, scored, monitor)
    answering = fitted.answering
    if answering is fitted:
        return request
    # What is required of answers is not required of people who are accepted as they are.
    declined = np.flatnonzero(~scored.valid)
    score = np.full(len(factuals), np.nan)
    score[declined] = answering.decision.score(factuals.take(declined).frame).score
    own = ScoredRows(score, scored.valid)
    return replace(request, fitted=answering, scored=own, without_survival=request)


@dataclass(frozen=True, eq=False)
class SearchTask:
    """What all stages of one search share.

    ``scores`` and ``column_cache`` are filled while the stages run. Threads search for different
    people, so they add to different entries; what two of them compute at once is the same.
    """

    request: SearchRequest
    decision: Decision
    factual_limits: FactualLimits
    scores: ScoreStore
    consequences: Consequences | None = None
    # Whether discouraged changes are left out, in limits and answers.
    excludes_discouraged: bool = False
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
    n_unstable: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    proven: frozenset[int] = frozenset()
    # People with an answer that the label rule accepts and the predictor refuses.
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
            reasons={key: reason for part in parts for key, reason in part.reasons.items()},
            n_unstable=sum(part.n_unstable for part in parts),
            seconds=_sum_seconds([part.seconds for part in parts]),
            proven=frozenset[int]().union(*(part.proven for part in parts)),
            misjudged=frozenset[int]().union(*(part.misjudged for part in parts)),
        )

    def updated(self, later: SearchOutcome, positions: IntArray) -> SearchOutcome:
        """What a later outcome says of some factuals, and this one of all others."""
        factuals = self.answers.rows.factuals
        others = np.setdiff1d(np.arange(len(factuals)), positions)
        return SearchOutcome.merge(factuals, [self._take(others), later._take(positions)])

    def with_seconds(self, more: Mapping[str, float]) -> SearchOutcome:
        """The outcome with further seconds added."""
        return replace(self, seconds=_sum_seconds([self.seconds, more]))

    def with_answers(self, mask: BoolArray) -> SearchOutcome:
        """The outcome with fewer answers, ranked from 1 again."""
        answers = self.answers.take(mask)
        return replace(self, answers=replace(answers, rank=1 + times_seen_before(answers.owner)))

    def _take(self, positions: IntArray) -> SearchOutcome:
        """What the outcome says of some factuals, with all its counts."""
        taken = set(positions.tolist())
        return replace(
            self,
            answers=self.answers.take(np.isin(self.answers.owner, positions)),
            misses=self.misses.take(np.isin(self.misses.owner, positions)),
            reasons={key: reason for key, reason in self.reasons.items() if key in taken},
            proven=self.proven & taken,
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
    run: Callable[[Iterator[FactualBlock]], Iterable[SearchOutcome]],
) -> SearchOutcome:
    """All outcomes that ``run`` yields, for blocks of people until the search is stopped.

    The reason of those who have neither an answer nor a reason is STOPPED.
    """
    monitor, parts = task.request.monitor, list[SearchOutcome]()
    monitor.start(positions.size)
    try:
        for part in run(takewhile(lambda _: not monitor.stopped, in_blocks)):
            parts.append(part)
    except ExpiredError:
        monitor.stopped = True
    outcome = SearchOutcome.merge(task.factuals, parts)
    left = dict.fromkeys(np.setdiff1d(positions, outcome.answers.owner).tolist(), STOPPED)
    return replace(outcome, reasons=left | dict(outcome.reasons))
