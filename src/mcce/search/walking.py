"""From the valid candidates of a block to its answers: walks, direct changes, and the selection.

Beyond the paper. Walks go to valid candidates; where these find nothing, or to show that fewer
changes would not do, changes are tried directly; then the best visited rows are selected.

Always true: the first answer of a person is selected before the walks go on for further ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..kernels import ExpiredError, IntArray
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.ranking import RankedCandidates
from ..postprocess.validation import Answers, PredictionCache, Selection
from ..tables.schema import OWN
from .direct import MAX_CHANGES, DirectSearch, DirectSettings
from .greedy import GreedyWalk
from .minimal import select_first, select_more
from .selection import SelectedRows, SelectionSettings, copies, returnable
from .stage import BlockMonitor, Task
from .visited import WalkSettings

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Walk:
    """How to make answers of valid candidates: where walks may go, and which row to return."""

    settings: WalkSettings
    selection: SelectionSettings
    n_targets: int
    direct: DirectSettings | None = None
    backwards: bool = False
    fewest: bool = False
    answers_all: bool = False
    max_tries: int = 0


class WalkedBlock:
    """The walks of a block of people, and the answers that they lead to."""

    def __init__(
        self,
        how: Walk,
        task: Task,
        monitor: BlockMonitor,
        ranked: RankedCandidates,
        cache: PredictionCache,
        valid: Selection,
        unstable: ExcludeUnstable,
    ) -> None:
        self.how, self.candidates = how, ranked.candidates
        self._task, self._monitor, self._cache = task, monitor, cache
        # By person and rank, so that of equal rows the one of the better target is kept.
        order = np.lexsort((valid.rank, valid.person))
        self.walk = GreedyWalk(
            how.settings,
            cache,
            valid.person[order],
            valid.draw[order],
            unstable=unstable,
            later=valid.rank[order] > how.n_targets,
            whole_block=how.answers_all,
            backwards=how.backwards,
        )
        self.visited = self.walk.visited
        self._direct: DirectSearch | None = None
        if how.direct is not None:
            self._direct = DirectSearch(how.direct, self.candidates, self.visited, unstable)

    def find_answers(self) -> Answers:
        """Walk, try changes directly, and select."""
        how, direct = self.how, self._direct
        self._go_on()
        if direct is not None and how.answers_all:
            self._answer_directly(direct)
        first = self._first()
        if how.selection.ranking.n_counterfactuals > 1:
            self.walk.resume(how.selection.ranking.n_wanted)
            self._go_on()
            if direct is not None and how.fewest:
                self._improve(direct, first, several=True)
        return self._select(select_more, first).to_answers(self.candidates, self.visited)

    def _first(self, person: IntArray | None = None) -> SelectedRows:
        """The best row of people, everybody by default; if asked for, with the fewest changes."""
        first = self._select(select_first, person)
        if self._direct is None or not self.how.fewest:
            return first
        better = self._improve(self._direct, first, several=False)
        kept = first.take(~np.isin(self.visited.person[first.numbers], better))
        return SelectedRows.concat([kept, self._select(select_first, better)])

    def _go_on(self) -> None:
        """Walk until all walks have ended."""
        while not self._monitor.stopped and not self.walk.ended:
            self.walk.next_round()
            self._report()

    def _report(self) -> bool:
        return self._monitor.report(0, self._cache.n_evaluated + self.visited.n_evaluated)

    def _stop(self) -> bool:
        return self._monitor.stopped or self._report()

    def _answer_directly(self, direct: DirectSearch) -> None:
        """Try changes directly for people without any answer."""
        left = np.setdiff1d(np.arange(self.candidates.people.size), self._answered())
        most = np.full(left.size, direct.settings.max_sparsity or MAX_CHANGES)
        direct.search(left, max_rows=direct.settings.max_rows, most=most, stop=self._stop)

    def _answered(self) -> IntArray:
        """Who has a row that may be returned."""
        ranking = self.how.selection.ranking
        whose = self.visited.cells[returnable(ranking, self.walk), 0]
        return np.unique(whose).astype(np.int64)

    def _improve(self, direct: DirectSearch, first: SelectedRows, *, several: bool) -> IntArray:
        """Try directly what may be better than first answers; gives the people with new rows."""
        visited, selection = self.visited, self.how.selection
        changed = visited.cells[first.numbers, 1:] != OWN
        if selection.count_actions:
            changed[:, visited.recomputed] = False
        # Anything that is no copy may be better than one.
        copied = copies(selection, visited, first.numbers)
        fewest = np.where(copied, changed.shape[1], changed.sum(axis=1))
        whose = visited.person[first.numbers]
        return direct.improve(whose, fewest, several, self._stop)

    def _select(self, select: Callable[..., T], *given: Any) -> T:
        """Select visited rows; once the time is up, without distances to accepted rows."""
        selection = self.how.selection
        try:
            if not self._monitor.stopped:
                with self._task.limited():
                    return select(selection, self.walk, *given)
        except ExpiredError:
            self._monitor.stop()
        return select(replace(selection, knn_distance=None), self.walk, *given)
