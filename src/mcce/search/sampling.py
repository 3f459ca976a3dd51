"""The sampling stage: draw candidates, rank them, validate the best; then walk, if configured.

Paper, sections "Generation" and "Post-processing": without a walk, the best valid draws are the
answers. With one, they are the targets of :mod:`mcce.search.walking`; in a search with a surrogate,
the best that it predicts valid.

People without an answer get a reason and, where there is one, the nearest miss.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.people import Reason
from ..generate import DrawPlan, FactualBlock, blocks, generate
from ..kernels import ExpiredError, IntArray
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.ranking import RankedCandidates, Ranking
from ..postprocess.validation import LazyValidation, PredictionCache, SelectedDraws
from ..runtime.threads import map_ordered, n_threads
from .reasons import explain_misses
from .stage import BlockMonitor, Monitor, SearchOutcome, SearchTask

# The paper's search has no walks, and does not load this.
if TYPE_CHECKING:
    from .walking import Walk, WalkedBlock

# A walk needs as much memory as this many draws.
DRAWS_PER_WALK = 40
# With a time limit, this many blocks are smaller; the first has a 64th of a whole one.
SMALLER_BLOCKS = 6
# Draws for people for whom the predictor may not be called any more.
FEW_DRAWS = 100
# Most threads of a search with a surrogate: much of it is Python, and more threads would wait.
MAX_THREADS = 4
# Blocks of such a search for each thread, but of no fewer draws than these.
BLOCKS_PER_THREAD, MIN_DRAWS = 2, 100_000


@dataclass(frozen=True, eq=False)
class SamplingStage:
    """Search among draws of the generator."""

    task: SearchTask
    ranking: Ranking
    n_samples: int
    draw_plan: DrawPlan
    walk: Walk | None = None
    final: bool = True
    unstable: ExcludeUnstable = field(default_factory=ExcludeUnstable)

    def excluding(self, unstable: ExcludeUnstable) -> SamplingStage:
        """The same stage without candidates that failed the final call."""
        return replace(self, unstable=unstable)

    def with_more_draws(self, max_samples: int) -> Iterator[SamplingStage]:
        """The stage with more draws each time: all of them, since cached scores are reused."""
        stage = self
        while stage.n_samples < max_samples:
            doubled = min(2 * stage.n_samples, max_samples)
            stage = replace(stage, n_samples=max_samples if self.task.answers_only else doubled)
            yield stage

    @property
    def uses_surrogate(self) -> bool:
        """Whether a surrogate predicts which candidates are valid."""
        return self.walk is not None and self.task.surrogate_run is not None

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for people, block by block."""
        run = self.task.surrogate_run
        may_score = np.ones(positions.size, dtype=bool) if run is None else run.may_score(positions)
        # People for whom the predictor may not be called any more only get a reason.
        some, last = positions[may_score], positions[~may_score & self.final]
        monitor = Monitor(self.task.callback, some.size + last.size)
        parts = [*self._run_blocks(some, monitor), *self._briefly()._run_blocks(last, monitor)]
        outcome = SearchOutcome.merge(self.task.factuals, parts)
        return outcome.complete(positions, stopped=monitor.stopped)

    def _run_blocks(self, positions: IntArray, monitor: Monitor) -> Iterator[SearchOutcome]:
        in_blocks = takewhile(lambda _: not monitor.stopped, self._blocks(positions))
        if self.uses_surrogate:
            # The predictor is rarely called, so whole blocks run in threads.
            run = partial(self._run_block, monitor=monitor)
            yield from filter(None, map_ordered(run, in_blocks, self._n_threads))
            return
        try:
            for prepared in map_ordered(self._prepare, in_blocks, self.task.n_jobs):
                if monitor.stopped:
                    return
                yield self._settle(*prepared, monitor.block())
        except ExpiredError:
            monitor.stopped = True

    def _briefly(self) -> SamplingStage:
        """The stage with few draws, and nothing tried."""
        if self.walk is None:
            return self
        walk = replace(self.walk, answers_all=False, max_tries=0)
        return replace(self, n_samples=min(self.n_samples, FEW_DRAWS), walk=walk)

    def _blocks(self, positions: IntArray) -> Iterator[FactualBlock]:
        task, n_draws = self.task, self.n_samples
        if self.walk is not None:
            n_draws += DRAWS_PER_WALK * self.ranking.n_counterfactuals
            if self.walk.direct is not None:
                n_draws += task.max_direct_rows * self.walk.answers_all
        # With a time limit the first blocks are small, so that some people get answers in time.
        n_smaller = SMALLER_BLOCKS if math.isfinite(task.deadline) else 0
        n_least = BLOCKS_PER_THREAD * self._n_threads if self.uses_surrogate else 1
        n_least = min(n_least, positions.size * n_draws // MIN_DRAWS)
        return blocks(task.factual_limits, positions, n_draws, task.memory, n_smaller, n_least)

    @property
    def _n_threads(self) -> int:
        """Threads of a search with a surrogate."""
        return min(n_threads(self.task.n_jobs), MAX_THREADS)

    def _run_block(self, block: FactualBlock, monitor: Monitor) -> SearchOutcome | None:
        """The outcome of a block, in any thread; None if the time is up."""
        try:
            return self._settle(*self._prepare(block), monitor.block())
        except ExpiredError:
            monitor.stopped = True
            return None

    def _prepare(
        self, block: FactualBlock
    ) -> tuple[FactualBlock, RankedCandidates, dict[str, float]]:
        """Draw and rank: what needs no predictor, in any thread."""
        task, started, ranking = self.task, time.perf_counter(), self.ranking
        if self.unstable.person.size:
            ranking = replace(ranking, filters=(*ranking.filters, self.unstable))
        with task.within_deadline():
            candidates = generate(
                task.generator,
                task.factual_limits,
                block,
                np.arange(self.n_samples, dtype=np.int64),
                self.draw_plan,
            )
            if task.consequences is not None:
                candidates = task.consequences.complete_candidates(candidates)
            generated = time.perf_counter()
            ranked = RankedCandidates(candidates, ranking)
        done = time.perf_counter()
        return block, ranked, {"generate": generated - started, "rank": done - generated}

    def _settle(
        self,
        block: FactualBlock,
        ranked: RankedCandidates,
        seconds: dict[str, float],
        monitor: BlockMonitor,
    ) -> SearchOutcome:
        """Validate and walk: what needs the predictor."""
        task, started = self.task, time.perf_counter()
        groups = np.unique(block.group)
        run = task.surrogate_run
        surrogate = None if run is None else run.surrogate
        cache = PredictionCache(
            ranked.candidates,
            task.decision,
            groups,
            task.draw_scores,
            task.row_scores,
            surrogate,
        )
        validation = LazyValidation(ranked, cache)
        while not monitor.stopped and not validation.settled.all():
            validation.next_batch()
            monitor.report(int(validation.settled.sum()), cache.n_evaluated)
        misses, reasons = MeasuredRows.concat(task.factuals, []), dict[int, Reason]()
        if self.final and not task.answers_only and run is None:
            misses, reasons = explain_misses(validation)
        valid = validation.selection()
        walked = self._walked(cache, valid, monitor)
        answers = valid.to_measured(cache) if walked is None else walked.find_answers()
        if self.final and not task.answers_only and run is not None and not monitor.stopped:
            from .walking import SurrogateBlock, explain_unanswered

            assert isinstance(walked, SurrogateBlock)
            misses, reasons = explain_unanswered(walked, validation, answers.owner)
        n_evaluated = cache.n_evaluated + (0 if walked is None else walked.visited.n_evaluated)
        monitor.finish(block.positions.size, n_evaluated)
        return SearchOutcome(
            answers=answers,
            misses=misses,
            reasons=reasons,
            n_evaluated=n_evaluated,
            seconds=seconds | {"validity": time.perf_counter() - started},
        )

    def _walked(
        self, cache: PredictionCache, valid: SelectedDraws, monitor: BlockMonitor
    ) -> WalkedBlock | None:
        """The walks to valid candidates; None if these are the answers."""
        if self.walk is None:
            return None
        from .walking import SurrogateBlock, WalkedBlock

        make = WalkedBlock if self.task.surrogate_run is None else SurrogateBlock
        return make(self.walk, monitor, cache, valid, self.unstable)
