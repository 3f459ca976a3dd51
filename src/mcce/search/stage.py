"""Stages of a search: their interface and their shared data.

A search runs its stages one after the other, each for the people that the stages before left
without an answer. ``Task`` is what all stages of one call have in common.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from ..candidates import ReadColumns
from ..constraints.collection import Constraints
from ..constraints.limits import FactualLimits
from ..kernels import Cancellation, IntArray, cancellable
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.validation import CachedScores, RememberedScores
from ..predictors.decision import Decision
from ..protocols import Callback, Generator, Progress
from ..runtime.threads import in_caller, is_caller
from ..tables.schema import EncodedRows
from .outcome import Outcome

if TYPE_CHECKING:
    from .consequences import Consequences
    from .replies import Led

# Between two reports of a block that runs in another thread.
SECONDS_BETWEEN = 0.1


class Stage(Protocol):
    """One way of finding counterfactuals."""

    def run(self, people: IntArray) -> Outcome:
        """Search for the factuals at these positions.

        Everybody without an answer has a reason in the outcome.
        """
        ...

    def excluding(self, unstable: ExcludeUnstable) -> Self:
        """The same stage, never returning candidates that failed the final call."""
        ...


class ScoreMemory:
    """The predictor's scores of candidates, kept across blocks and stages of one search."""

    def __init__(self) -> None:
        self._earlier: list[CachedScores] = []
        self._current: list[CachedScores] = []
        self._last_block: list[CachedScores] = []

    def start_stage(self) -> None:
        """Make everything stored so far available to all blocks of a new stage."""
        self._earlier += self._current
        self._current, self._last_block = [], []

    def recall(self) -> Sequence[CachedScores]:
        """Scores that candidates of the next block may have: a group can continue in it."""
        return (*self._earlier, *self._last_block)

    def store(self, scores: Sequence[CachedScores], *, one_group: bool) -> None:
        """Keep the scores of a block; ``one_group``: all its people share candidates."""
        self._last_block = [*(self._last_block if one_group else ()), *scores]
        self._current += scores


@dataclass(frozen=True, eq=False)
class Task:
    """What all stages of one call of ``explain`` share."""

    generator: Generator
    decision: Decision
    seed: int
    constraints: Constraints
    personal: FactualLimits
    memory: float
    n_jobs: int | None
    callback: Callback
    ends: float = math.inf
    gradual: bool = True
    consequences: Consequences | None = None
    scores: ScoreMemory = field(default_factory=ScoreMemory)
    remembered: RememberedScores | None = None
    read: ReadColumns = field(default_factory=dict)
    led: Led | None = None

    @property
    def factuals(self) -> EncodedRows:
        """All factuals of the call."""
        return self.personal.rows

    def laxer(self) -> Task:
        """The same for stages that allow more rows: those tried in vain before do not count."""
        return replace(self, led=None if self.led is None else self.led.laxer())

    def limited(self) -> AbstractContextManager[Cancellation]:
        """A block in which kernels raise ``ExpiredError`` once the time is up."""
        return cancellable(self.ends - time.monotonic())


class Monitor:
    """Reports the progress of one run of a stage, and remembers whether to stop."""

    def __init__(self, callback: Callback, n_people: int) -> None:
        self.stopped = False
        self._callback = callback
        self._n_people = n_people
        self._blocks: list[BlockMonitor] = []

    def block(self) -> BlockMonitor:
        """The monitor of one more block, which may be in another thread."""
        self._blocks.append(BlockMonitor(self))
        return self._blocks[-1]

    def report(self) -> None:
        """Report the progress of all blocks."""
        n_settled = sum(block.n_settled for block in self._blocks)
        n_evaluated = sum(block.n_evaluated for block in self._blocks)
        progress = Progress(self._n_people, n_settled, n_evaluated)
        self.stopped = bool(self._callback(progress)) or self.stopped


class BlockMonitor:
    """The progress of one block of people."""

    def __init__(self, stage: Monitor) -> None:
        self._stage = stage
        self._reported = -math.inf
        self.n_settled = self.n_evaluated = 0

    @property
    def stopped(self) -> bool:
        """Whether the stage is to stop."""
        return self._stage.stopped

    def stop(self) -> None:
        """Stop the stage, because its time is up."""
        self._stage.stopped = True

    def report(self, n_settled: int, n_evaluated: int) -> bool:
        """Report what the block has come to, in threads not too often; returns ``stopped``."""
        self.finish(n_settled, n_evaluated)
        if is_caller() or time.monotonic() - self._reported > SECONDS_BETWEEN:
            in_caller(self._stage.report)
            self._reported = time.monotonic()
        return self.stopped

    def finish(self, n_settled: int, n_evaluated: int) -> None:
        """Count what the block has come to."""
        self.n_settled, self.n_evaluated = n_settled, n_evaluated


def no_unstable() -> ExcludeUnstable:
    """The filter before anything has failed."""
    nobody = np.empty(0, dtype=np.int64)
    return ExcludeUnstable(nobody, nobody)
