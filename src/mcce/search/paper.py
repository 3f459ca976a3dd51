"""The paper's search: draw candidates, rank them, validate the best, which are the answers.

Paper, sections "Generation" and "Post-processing". People without an answer get a reason and, where
there is one, the nearest miss.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.people import Reason
from ..generate import FactualBlock, generate
from ..kernels import BoolArray, IntArray, Listing
from ..postprocess.filters import RowFilter
from ..postprocess.ranking import RankedCandidates, Ranking
from ..postprocess.validation import LazyValidation
from ..runtime.threads import map_ordered
from .reasons import UNSTABLE, is_refused, kind_of_filters
from .stage import Monitor, SearchOutcome, SearchTask, blocks_of, run_blocks


@dataclass(frozen=True, eq=False)
class PaperStage:
    """Search among draws of the generator."""

    task: SearchTask
    ranking: Ranking
    n_samples: int
    gives_reasons: bool = False

    def with_more_draws(self, max_samples: int) -> Iterator[PaperStage]:
        """The stage with more draws each time: all of them, since scores are remembered."""
        stage = self
        at_once = self.task.request.effort != "full"
        while stage.n_samples < max_samples:
            doubled = min(2 * stage.n_samples, max_samples)
            stage = replace(stage, n_samples=max_samples if at_once else doubled)
            yield stage

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for people, block by block."""
        in_blocks = blocks_of(self.task, positions, self.n_samples)
        return run_blocks(self.task, positions, in_blocks, self._run_blocks)

    def _run_blocks(self, some: Iterator[FactualBlock]) -> Iterator[SearchOutcome]:
        for prepared in map_ordered(self._prepare, some, self.task.settings.n_jobs):
            if self.task.request.monitor.stopped:
                return
            yield self._settle(prepared)

    def _prepare(self, block: FactualBlock) -> _Prepared:
        """Draw and rank: what needs no predictor, in any thread."""
        task, started = self.task, time.perf_counter()
        fitted, draws = task.request.fitted, np.arange(self.n_samples, dtype=np.int64)
        with task.within_deadline():
            candidates = generate(fitted.generator, task.factual_limits, block, draws, fitted.seed)
            if task.consequences is not None:
                candidates = task.consequences.complete_candidates(candidates)
            generated = time.perf_counter()
            ranked = RankedCandidates(candidates, self.ranking)
        done = time.perf_counter()
        seconds = {"generate": generated - started, "rank": done - generated}
        return _Prepared(block, ranked, seconds)

    def _settle(self, prepared: _Prepared) -> SearchOutcome:
        """Validate: what needs the predictor."""
        task, started = self.task, time.perf_counter()
        (block, ranked, seconds), monitor = prepared, task.request.monitor
        validation = LazyValidation(
            ranked, task.decision, task.scores, block.group, task.computed_places
        )
        while not monitor.stopped and not validation.settled.all():
            validation.next_batch()
            monitor.report(block, int(validation.settled.sum()), validation.n_evaluated)
        misses, reasons = MeasuredRows.empty(task.factuals), dict[int, Reason]()
        if self.gives_reasons and task.request.effort == "full":
            explained = _score_excluded(validation, block, monitor)
            misses, reasons = _reasons_and_misses(validation, explained)
        monitor.count(block, block.positions.size, validation.n_evaluated)
        return SearchOutcome(
            answers=validation.answers(),
            misses=misses,
            reasons=reasons,
            seconds=seconds | {"validity": time.perf_counter() - started},
        )


class _Prepared(NamedTuple):
    """A block of people with their ranked draws."""

    block: FactualBlock
    ranked: RankedCandidates
    seconds: dict[str, float]


def _score_excluded(validation: LazyValidation, block: FactualBlock, monitor: Monitor) -> IntArray:
    """Score all candidates of people without a valid one; the people done before a stop."""
    person = np.flatnonzero(validation.settled & (validation.n_valid == 0))
    if monitor.stopped:
        return person[:0]
    n_settled = int(validation.settled.sum())
    for n_done in validation.score_all(person):
        if monitor.report(block, n_settled, validation.n_evaluated):
            return person[:n_done]
    return person


def _reasons_and_misses(
    validation: LazyValidation, person: IntArray
) -> tuple[MeasuredRows, dict[int, Reason]]:
    """Why people without a valid candidate have none, and which came nearest."""
    ranked = validation.ranked
    listing, listed, valid, score = validation.list_all(person)
    shortfall = validation.decision.shortfall(score)
    nearest = np.arange(person.size), np.lexsort((shortfall, ~valid, ~listed), axis=-1)[:, 0]
    values = score[nearest], listing.sparsity[nearest], listing.gower[nearest]
    rank = np.zeros_like(person)
    misses = validation.to_measured(person, listing.draw[nearest], rank, *values).sort()
    positions = ranked.candidates.positions[person].tolist()
    reasons = dict(zip(positions, _reasons(ranked, person, listing, valid), strict=True))
    withdrawn = validation.scores.are_withdrawn(misses.key).tolist()
    nearest_scores = zip(misses.owner.tolist(), misses.score.tolist(), withdrawn, strict=True)
    for position, best, is_withdrawn in nearest_scores:
        if reasons[position].kind == "refused" and is_withdrawn:
            reasons[position] = UNSTABLE
        elif reasons[position].kind == "refused" and not is_refused(validation.decision, best):
            reasons[position] = Reason("unknown", reasons[position].text)
    return misses, reasons


def _reasons(
    ranked: RankedCandidates, person: IntArray, listing: Listing, valid: BoolArray
) -> Iterator[Reason]:
    """Why no draw of these people is an answer."""
    excluded = _exclusions(ranked, person, listing, valid)
    allowed = np.arange(valid.shape[1]) < listing.n_allowed[:, None]
    for out in excluded.values():
        allowed &= ~out
    for row, n_valid in enumerate(valid.sum(axis=1).tolist()):
        n_distinct, n_allowed = listing.n_allowed[row], int(allowed[row].sum())
        noun = "draw" if valid.shape[1] == 1 else "draws"
        draws = f"{valid.shape[1]} {noun} ({n_distinct} distinct, {n_allowed} allowed)"
        counts = {one: int((out[row] & valid[row]).sum()) for one, out in excluded.items()}
        yield _reason(draws, n_valid, {one: n for one, n in counts.items() if n})


def _exclusions(
    ranked: RankedCandidates, person: IntArray, listing: Listing, valid: BoolArray
) -> dict[RowFilter, BoolArray]:
    """Which draws each filter and bound excludes."""
    rules, draw = ranked.ranking.rules, listing.draw.astype(np.int64)
    excluded: dict[RowFilter, BoolArray] = {
        keep: ~np.take_along_axis(passed[person], draw, axis=1)
        for keep, passed in zip(rules.filters, ranked.passed, strict=True)
    }
    if rules.plausible is not None:
        plausible = ranked.plausible(person, listing.draw, valid)
        excluded[rules.plausible] = valid & ~plausible
    for bound in rules.bounds:
        cost: np.ndarray = listing.sparsity if bound.distance is None else listing.distance
        excluded[bound] = cost > bound.most
    return excluded


def _reason(draws: str, n_valid: int, excluded: Mapping[RowFilter, int]) -> Reason:
    """Why nothing that was drawn is an answer; what excludes how many valid draws."""
    if not n_valid:
        return Reason("refused", f"No valid candidate among {draws}.")
    named = ", ".join(f"{one.name} ({count})" for one, count in excluded.items())
    those = "The 1 valid candidate" if n_valid == 1 else f"All {n_valid} valid candidates"
    verb = "is" if n_valid == 1 else "are"
    text = f"{those} among {draws} {verb} excluded by {named}."
    return Reason(kind_of_filters(excluded), text)
