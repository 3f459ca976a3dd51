"""The sampling stage: draw candidates, rank them, validate the best; then walk, if configured.

Paper, sections "Generation" and "Post-processing": without a walk, the best valid draws are the
answers. With one, they are the targets of :mod:`mcce.search.greedy`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from ..candidates import Candidates
from ..execution.threads import map_ordered
from ..generate import Block, blocks, generate
from ..kernels import ExpiredError, IntArray
from ..postprocess.answers import Answers
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.misses import explain_misses
from ..postprocess.ranking import RankedCandidates, Ranking
from ..postprocess.validation import LazyValidation, PredictionCache, Selection
from ..tables.schema import OWN
from .direct import MAX_CHANGES, DirectSearch, DirectSettings, Stop
from .greedy import GreedyWalk
from .minimal import select_answers, select_first
from .outcome import Outcome
from .selection import SelectedRows, SelectionSettings, copies, returnable
from .stage import Monitor, Task, no_unstable
from .visited import WalkSettings

T = TypeVar("T")

STOPPED = "stopped before an answer was found"
TOO_FAR = "every row on the way to a valid candidate is excluded by max_distance"
# Memory of a walk, in draws.
DRAWS_PER_WALK = 40
# With a time limit, this many blocks are smaller; the first has a 64th of a whole one.
SMALLER_BLOCKS = 6


@dataclass(frozen=True, eq=False)
class Walk:
    """How to make answers of valid candidates: where walks may go, and which row to return.

    Parameters
    ----------
    settings, selection
        Where walks may go, and which row to return.
    n_targets
        Targets for the first answer; further ones are for further answers.
    direct
        How to try changes directly; None does not.
    backwards
        Whether walks start at their targets, and only undo changes that are not needed.
    fewest
        Whether to try directly whether fewer changes than those of the answer would do, and on
        small tables whether others would be better.
    answers_all
        Whether to search directly for everybody who has no answer yet.
    """

    settings: WalkSettings
    selection: SelectionSettings
    n_targets: int
    direct: DirectSettings | None = None
    backwards: bool = False
    fewest: bool = False
    answers_all: bool = False


@dataclass(frozen=True, eq=False)
class SamplingStage:
    """Search among draws of the generator.

    Parameters
    ----------
    task
        What all stages share.
    ranking
        How candidates are ranked and filtered.
    n_samples
        Draws per person.
    keep_probability
        Probability that a draw keeps the person's own value where it can.
    n_from_leaves
        Draws from leaves of the model; further ones back off to larger nodes. None: none does.
    walk
        How to go on from valid candidates; None returns them.
    final
        Whether people without an answer get a full reason and a nearest miss, because no later
        stage searches for them.
    unstable
        Candidates that failed the final call and must not come back.
    """

    task: Task
    ranking: Ranking
    n_samples: int
    keep_probability: float = 0.0
    n_from_leaves: int | None = None
    walk: Walk | None = None
    final: bool = True
    unstable: ExcludeUnstable = field(default_factory=no_unstable)

    def excluding(self, unstable: ExcludeUnstable) -> SamplingStage:
        """The same stage without candidates that failed the final call."""
        return replace(self, unstable=unstable)

    def with_more_draws(self, max_samples: int) -> Iterator[SamplingStage]:
        """The stage with more draws each time: all of them, since cached scores are reused."""
        stage = self
        while stage.n_samples < max_samples:
            doubled = min(2 * stage.n_samples, max_samples)
            stage = replace(stage, n_samples=doubled if self.task.gradual else max_samples)
            yield stage

    def run(self, people: IntArray) -> Outcome:
        """Search for people, block by block."""
        self.task.scores.start_stage()
        monitor = Monitor(self.task.callback, people.size)
        outcome = Outcome.merge(self.task.factuals, list(self._run_blocks(people, monitor)))
        reasons = unsettled_reasons(people, outcome, stopped=monitor.stopped)
        return replace(outcome, reasons=reasons, stopped=monitor.stopped)

    def _run_blocks(self, people: IntArray, monitor: Monitor) -> Iterator[Outcome]:
        task, n_draws = self.task, self.n_samples
        if self.walk is not None:
            n_draws += DRAWS_PER_WALK * self.ranking.n_counterfactuals
            if self.walk.direct is not None:
                n_draws += self.walk.direct.max_rows * self.walk.answers_all
        # With a time limit the first blocks are small, so that it does not pass without answers.
        n_smaller = SMALLER_BLOCKS if math.isfinite(task.ends) else 0
        in_blocks = blocks(task.personal, people, n_draws, task.memory, n_smaller)
        try:
            for block, ranked, seconds in map_ordered(self._prepare, in_blocks, task.n_jobs):
                yield self._settle(block, ranked, monitor).with_seconds(seconds)
                if monitor.stopped:
                    return
        except ExpiredError:
            monitor.stopped = True

    def _prepare(self, block: Block) -> tuple[Block, RankedCandidates, dict[str, float]]:
        """Draw and rank: what needs no predictor, in any thread."""
        with self.task.limited():
            return self._draw(block)

    def _draw(self, block: Block) -> tuple[Block, RankedCandidates, dict[str, float]]:
        task, started = self.task, time.perf_counter()
        draws = np.arange(self.n_samples, dtype=np.int64)
        candidates = generate(
            task.generator,
            task.personal,
            block,
            draws,
            task.seed,
            self.keep_probability,
            self.n_from_leaves,
        )
        if task.consequences is not None:
            candidates = task.consequences.complete_candidates(candidates)
        generated = time.perf_counter()
        filters = self.ranking.filters
        if self.unstable.person.size:
            filters = (*filters, self.unstable)
        ranked = RankedCandidates(candidates, replace(self.ranking, filters=filters))
        done = time.perf_counter()
        return block, ranked, {"generate": generated - started, "rank": done - generated}

    def _settle(self, block: Block, ranked: RankedCandidates, monitor: Monitor) -> Outcome:
        """Validate and walk: what calls the predictor, in the caller's thread."""
        task, started = self.task, time.perf_counter()
        groups = np.unique(block.group)
        cache = PredictionCache(
            ranked.candidates, task.decision, groups, task.scores.recall(), task.remembered
        )
        validation = LazyValidation(ranked, cache)
        while not monitor.stopped and not validation.settled.all():
            validation.next_batch()
            monitor.report(int(validation.settled.sum()), cache.n_evaluated)
        misses, reasons = Answers.concat(task.factuals, []), dict[int, str]()
        if self.final and task.gradual:
            misses, reasons = explain_misses(validation)
        answers, n_walked = self._answers(ranked, cache, validation.selection(), monitor)
        n_evaluated = cache.n_evaluated + n_walked
        task.scores.store(cache.added, one_group=block.group[0] == block.group[-1])
        monitor.finish_block(block.people.size, n_evaluated)
        return Outcome(
            answers=answers,
            misses=misses,
            reasons=reasons,
            n_evaluated=n_evaluated,
            seconds={"validity": time.perf_counter() - started},
        )

    def _answers(
        self,
        ranked: RankedCandidates,
        cache: PredictionCache,
        valid: Selection,
        monitor: Monitor,
    ) -> tuple[Answers, int]:
        """The answers that valid candidates lead to, and how many further rows were scored."""
        how = self.walk
        if how is None:
            return valid.to_answers(cache), 0
        walk = self._start_walk(how, ranked, cache, valid)

        def go_on() -> None:
            while not monitor.stopped and not walk.ended:
                walk.next_round()
                monitor.report(0, cache.n_evaluated + walk.visited.n_evaluated)

        def stop() -> bool:
            return monitor.stopped or monitor.report(0, walk.visited.n_evaluated)

        go_on()
        candidates, selection = ranked.candidates, how.selection
        direct = None
        if how.direct is not None:
            unstable_rows = self.unstable.person, self.unstable.draw
            direct = DirectSearch(how.direct, candidates, walk.visited, unstable_rows)
        if direct is not None and how.answers_all:
            _answer_directly(how, candidates, walk, direct, stop)
        first = self._select(select_first, selection, monitor, candidates, walk)
        if direct is not None and how.fewest:
            better = _improve(how, walk, direct, first, stop)
            kept = first.take(~np.isin(walk.visited.cells[first.numbers, 0], better))
            again = self._select(select_first, selection, monitor, candidates, walk, better)
            first = SelectedRows.concat([kept, again])
        if selection.ranking.n_counterfactuals > 1:
            walk.resume(selection.ranking.n_wanted)
            go_on()
            if direct is not None and how.fewest:
                _improve(how, walk, direct, first, stop, several=True)
        answers = self._select(select_answers, selection, monitor, candidates, walk, first)
        return answers, walk.visited.n_evaluated

    def _start_walk(
        self, how: Walk, ranked: RankedCandidates, cache: PredictionCache, valid: Selection
    ) -> GreedyWalk:
        """The walks to valid candidates, before their first move."""
        # By person and rank, so that of equal rows the one of the better target is kept.
        order = np.lexsort((valid.rank, valid.person))
        unstable = ~self.unstable(ranked.candidates)
        targets, later = (valid.person[order], valid.draw[order]), valid.rank[order] > how.n_targets
        return GreedyWalk(
            how.settings,
            cache,
            *targets,
            unstable=unstable,
            later=later,
            whole_block=how.answers_all,
            backwards=how.backwards,
        )

    def _select(
        self, select: Callable[..., T], selection: SelectionSettings, monitor: Monitor, *given: Any
    ) -> T:
        """Select visited rows; once the time is up, without distances to accepted rows."""
        try:
            with self.task.limited():
                return select(selection, *given)
        except ExpiredError:
            monitor.stopped = True
        return select(replace(selection, knn_distance=None), *given)


def _answer_directly(
    how: Walk, candidates: Candidates, walk: GreedyWalk, direct: DirectSearch, stop: Stop
) -> None:
    """Try changes directly for people without any answer."""
    has_one = walk.visited.cells[returnable(how.selection.ranking, candidates, walk), 0]
    left = np.setdiff1d(np.arange(candidates.people.size), has_one)
    most = np.full(left.size, direct.settings.max_sparsity or MAX_CHANGES)
    direct.search(left, max_rows=direct.settings.max_rows, most=most, stop=stop)


def _improve(
    how: Walk,
    walk: GreedyWalk,
    direct: DirectSearch,
    first: SelectedRows,
    stop: Stop,
    *,
    several: bool = False,
) -> IntArray:
    """Try directly what may be better than the first answers; gives the people with new rows."""
    visited = walk.visited
    changed = visited.cells[first.numbers, 1:] != OWN
    if how.selection.count_actions:
        changed[:, visited.recomputed] = False
    # Anything that is no copy may be better than one.
    copied = copies(how.selection, visited, first.numbers)
    fewest = np.where(copied, changed.shape[1], changed.sum(axis=1))
    last = visited.step.max(initial=-1)
    direct.improve(visited.cells[first.numbers, 0].astype(np.int64), fewest, several, stop)
    return np.unique(visited.cells[visited.step > last, 0])


def unsettled_reasons(people: IntArray, outcome: Outcome, *, stopped: bool) -> dict[int, str]:
    """The reasons of an outcome, and one for everybody else without an answer."""
    left = set(people.tolist()).difference(outcome.answers.owner.tolist())
    # Only a distance that grows with fewer changes leaves a walk to an allowed target nothing.
    reason = STOPPED if stopped else TOO_FAR
    return dict.fromkeys(sorted(left), reason) | dict(outcome.reasons)
