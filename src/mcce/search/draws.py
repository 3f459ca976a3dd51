"""The paper's search: draw candidates, rank them, validate the best, which are the answers.

Paper, sections "Generation" and "Post-processing". People without an answer get a reason and, where
there is one, the nearest miss.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.people import Reason
from ..generate import DrawPlan, FactualBlock, blocks, generate
from ..kernels import ExpiredError, IntArray
from ..postprocess.ranking import RankedCandidates, Ranking
from ..postprocess.validation import LazyValidation
from ..runtime.threads import map_ordered
from .reasons import explain_misses
from .stage import BlockMonitor, Monitor, SearchOutcome, SearchTask

# With a time limit, this many blocks are smaller; the first has a 64th of a whole one.
SMALLER_BLOCKS = 6


@dataclass(frozen=True, eq=False)
class DrawStage:
    """Search among draws of the generator."""

    task: SearchTask
    ranking: Ranking
    n_samples: int
    draw_plan: DrawPlan
    final: bool = True

    def with_more_draws(self, max_samples: int) -> Iterator[DrawStage]:
        """The stage with more draws each time: all of them, since scores are remembered."""
        stage = self
        while stage.n_samples < max_samples:
            doubled = min(2 * stage.n_samples, max_samples)
            stage = replace(stage, n_samples=max_samples if self.task.answers_only else doubled)
            yield stage

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for people, block by block."""
        monitor = Monitor(self.task.callback, positions.size)
        parts = list(self._run_blocks(positions, monitor))
        outcome = SearchOutcome.merge(self.task.factuals, parts)
        return outcome.complete(positions, stopped=monitor.stopped)

    def _run_blocks(self, positions: IntArray, monitor: Monitor) -> Iterator[SearchOutcome]:
        whole = blocks_of(self.task, positions, self.n_samples)
        in_blocks = takewhile(lambda _: not monitor.stopped, whole)
        try:
            for prepared in map_ordered(self._prepare, in_blocks, self.task.n_jobs):
                if monitor.stopped:
                    return
                yield self._settle(*prepared, monitor.block())
        except ExpiredError:
            monitor.stopped = True

    def _prepare(
        self, block: FactualBlock
    ) -> tuple[FactualBlock, RankedCandidates, dict[str, float]]:
        """Draw and rank: what needs no predictor, in any thread."""
        task, started = self.task, time.perf_counter()
        with task.within_deadline():
            draws = np.arange(self.n_samples, dtype=np.int64)
            candidates = generate(task.generator, task.factual_limits, block, draws, self.draw_plan)
            if task.consequences is not None:
                candidates = task.consequences.complete_candidates(candidates)
            generated = time.perf_counter()
            ranked = RankedCandidates(candidates, self.ranking)
        done = time.perf_counter()
        return block, ranked, {"generate": generated - started, "rank": done - generated}

    def _settle(
        self,
        block: FactualBlock,
        ranked: RankedCandidates,
        seconds: dict[str, float],
        monitor: BlockMonitor,
    ) -> SearchOutcome:
        """Validate: what needs the predictor."""
        task, started = self.task, time.perf_counter()
        groups = np.unique(block.group)
        validation = LazyValidation(ranked, task.decision, task.scores, groups, task.recomputed)
        while not monitor.stopped and not validation.settled.all():
            validation.next_batch()
            monitor.report(int(validation.settled.sum()), validation.n_evaluated)
        misses, reasons = MeasuredRows.empty(task.factuals), dict[int, Reason]()
        if self.final and not task.answers_only:
            misses, reasons = explain_misses(validation)
        answers = validation.to_measured(validation.selection())
        monitor.finish(block.positions.size, validation.n_evaluated)
        return SearchOutcome(
            answers=answers,
            misses=misses,
            reasons=reasons,
            n_evaluated=validation.n_evaluated,
            seconds=seconds | {"validity": time.perf_counter() - started},
        )


def blocks_of(
    task: SearchTask, positions: IntArray, n_rows: int, n_least: int = 1
) -> Iterator[FactualBlock]:
    """People in blocks, given how many rows each of them needs in memory.

    With a time limit the first blocks are small, so that some people get answers in time.
    """
    n_smaller = SMALLER_BLOCKS if math.isfinite(task.deadline) else 0
    return blocks(task.factual_limits, positions, n_rows, task.memory, n_smaller, n_least)
