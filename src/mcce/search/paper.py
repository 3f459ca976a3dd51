"""The paper's search: draw candidates, rank them, validate the best, which are the answers.

Paper, sections "Generation" and "Post-processing". People without an answer get a reason and, where
there is one, the nearest miss.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.parts import Reason
from ..generate import FactualBlock, generate
from ..kernels import BoolArray, IntArray, Listing
from ..postprocess.filters import RowFilter
from ..postprocess.ranking import RankedCandidates, Ranking
from ..postprocess.validation import LazyValidation
from ..runtime.threads import map_ordered
from .reasons import reason_of
from .stage import Monitor, SearchOutcome, SearchTask, blocks_of, run_blocks

NO_CHANGE = Reason("unknown", "Nothing was drawn but the person's own values.")


@dataclass(frozen=True, eq=False)
class PaperStage:
    """Search among draws of the generator."""

    task: SearchTask
    ranking: Ranking
    n_samples: int
    explains_misses: bool = False

    def with_more_draws(self, max_samples: int) -> Iterator[PaperStage]:
        """The stage with more draws each time: all of them, since scores are remembered."""
        stage = self
        in_turn = self.task.request.gives_reasons
        while stage.n_samples < max_samples:
            doubled = min(2 * stage.n_samples, max_samples)
            stage = replace(stage, n_samples=doubled if in_turn else max_samples)
            yield stage

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for people, block by block."""
        in_blocks = blocks_of(self.task, positions, self.n_samples)
        return run_blocks(self.task, positions, in_blocks, self._run_blocks)

    def _run_blocks(self, in_blocks: Iterator[FactualBlock]) -> Iterator[SearchOutcome]:
        for prepared in map_ordered(self._prepare, in_blocks, self.task.settings.n_jobs):
            if self.task.monitor.stopped:
                return
            yield self._settle(*prepared)

    def _prepare(
        self, block: FactualBlock
    ) -> tuple[FactualBlock, RankedCandidates, dict[str, float]]:
        """Draw and rank: what needs no predictor, in any thread."""
        task, started = self.task, time.perf_counter()
        fitted, draws = task.fitted, np.arange(self.n_samples, dtype=np.int64)
        with task.within_deadline():
            candidates = generate(fitted.generator, task.factual_limits, block, draws, fitted.seed)
            if task.consequences is not None:
                candidates = task.consequences.complete_candidates(candidates)
            generated = time.perf_counter()
            ranked = RankedCandidates(candidates, self.ranking)
        done = time.perf_counter()
        seconds = {"generate": generated - started, "rank": done - generated}
        return block, ranked, seconds

    def _settle(
        self, block: FactualBlock, ranked: RankedCandidates, seconds: dict[str, float]
    ) -> SearchOutcome:
        """Validate: what needs the predictor."""
        task, started = self.task, time.perf_counter()
        monitor = task.monitor
        validation = LazyValidation(
            ranked, task.decision, task.scores, block.group, computed_places=task.computed_places
        )
        while not monitor.stopped and not validation.settled.all():
            validation.next_batch()
            monitor.report(block, int(validation.settled.sum()), validation.n_evaluated)
        misses, reasons = MeasuredRows.empty(task.factuals), dict[int, Reason]()
        if self.explains_misses:
            explained = _score_excluded(validation, block, monitor)
            misses, reasons = _reasons_and_misses(validation, explained)
        monitor.record(block, block.positions.size, validation.n_evaluated)
        return SearchOutcome(
            answers=validation.answers(),
            misses=misses,
            reasons=reasons,
            seconds=seconds | {"validity": time.perf_counter() - started},
        )


def _score_excluded(validation: LazyValidation, block: FactualBlock, monitor: Monitor) -> IntArray:
    """Score all candidates of people without a valid one; the people done before a stop."""
    people = np.flatnonzero(validation.settled & (validation.n_valid == 0))
    if monitor.stopped:
        return people[:0]
    n_settled = int(validation.settled.sum())
    for n_done in validation.score_all(people):
        if monitor.report(block, n_settled, validation.n_evaluated):
            return people[:n_done]
    return people


def _reasons_and_misses(
    validation: LazyValidation, people: IntArray
) -> tuple[MeasuredRows, dict[int, Reason]]:
    """Why people without a valid candidate have none, and which came nearest."""
    ranked = validation.ranked
    listing, listed, valid, score = validation.list_all(people)
    shortfall = validation.decision.shortfall(score)
    nearest = np.arange(people.size), np.lexsort((shortfall, ~valid, ~listed), axis=-1)[:, 0]
    values = score[nearest], listing.sparsity[nearest], listing.gower[nearest]
    rank = np.zeros_like(people)
    misses = validation.to_measured(people, listing.draw[nearest], rank, *values).sort()
    excluding = _excluding(ranked, people, listing, valid)
    changes = np.any(listed & (listing.sparsity > 0), axis=1)
    reasons = {
        int(ranked.candidates.positions[person]): reason_of(
            validation.decision,
            n_rows=int(listing.n_allowed[row]),
            n_scored=int(listing.n_allowed[row]),
            n_accepted=int(valid[row].sum()),
            best_score=float(score[nearest][row]),
            excluding=[check for check, excludes in excluding.items() if excludes[row]],
        )
        if changes[row]
        else NO_CHANGE
        for row, person in enumerate(people.tolist())
    }
    return misses, reasons


def _excluding(
    ranked: RankedCandidates, people: IntArray, listing: Listing, valid: BoolArray
) -> dict[RowFilter, BoolArray]:
    """Whether each filter and bound excludes any valid draw of each person."""
    rules, draw = ranked.ranking.rules, listing.draw.astype(np.int64)
    keeps: dict[RowFilter, BoolArray] = {
        check: np.take_along_axis(passed[people], draw, axis=1)
        for check, passed in zip(rules.filters, ranked.passed, strict=True)
    }
    if rules.plausible is not None:
        keeps[rules.plausible] = ranked.plausible(people, listing.draw, valid)
    for bound in rules.bounds:
        cost: np.ndarray = listing.sparsity if bound.distance is None else listing.distance
        keeps[bound] = cost <= bound.most
    return {check: np.any(valid & ~kept, axis=1) for check, kept in keeps.items()}
