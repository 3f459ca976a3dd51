"""The greedy walk: from the person towards valid draws, then back over what is not needed.

Beyond the paper. A person's targets are valid candidates. A walk goes from the person towards each
of them, changing one feature at a time, the one that raises the score most, until the row is good:
valid, plausible and allowed. It also ends at the target itself. Then single changes are
reverted while the row stays as good. All walks of a block move together, one call per round: of
the predictor, or of the surrogate in a search that has one.

Always true: no row is scored twice; a person's walks depend on no other person; every row where a
walk ends is valid, and allowed and plausible if its target is.
"""

from __future__ import annotations

import numpy as np

from ..kernels import BoolArray, Codes, IntArray
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.validation import PredictionCache, SelectedDraws
from ..predictors.decision import ScoredRows
from ..tables.schema import OWN
from .visited import PredictedRows, VisitedRows, WalkSettings, influential_sets


class GreedyWalk:
    """The walks of a block of people towards their targets."""

    def __init__(
        self,
        settings: WalkSettings,
        cache: PredictionCache,
        valid: SelectedDraws,
        unstable: ExcludeUnstable,
        *,
        whole_block: bool,
    ) -> None:
        self.settings, run = settings, settings.task.surrogate_run
        self.n_wanted = 1
        # Labels without scores show no direction, so the walk starts at the target.
        self._backwards = settings.backwards or not settings.task.decision.has_scores
        # By person and rank, so that of equal rows the one of the better target is kept.
        order = np.lexsort((valid.rank, valid.person))
        self.person, self.draw = valid.person[order], valid.draw[order]
        self.n_people = cache.candidates.people.size
        if run is None:
            self.visited = VisitedRows(settings, cache.candidates)
            self._store_known_scores(cache, ~unstable(cache.candidates), whole_block=whole_block)
        else:
            self.visited = PredictedRows(settings, run, cache.candidates, unstable)
        self._influential = influential_sets(settings, cache.candidates.rows.schema)
        self.targets: Codes = cache.candidates.select(self.person, self.draw).codes
        self.current_row: IntArray = np.zeros_like(self.person)
        self.arrived: BoolArray = np.zeros(self.person.size, dtype=bool)
        self.abandoned = self._later = valid.rank[order] > settings.n_targets
        self._reverting: IntArray | None = None
        # Which walks move; the others have ended.
        self._active: BoolArray = ~self._later
        self._start(np.flatnonzero(~self._later))

    def _start(self, walks: IntArray) -> None:
        targets = self.targets[:, walks]
        start = targets if self._backwards else np.full_like(targets, OWN)
        self.visited.mark_plausible(self._visit(walks, targets))
        self.current_row[walks] = self._visit(walks, start)
        # With an unstable predictor even the person's own row may be a target.
        self.arrived = self.arrived.copy()
        self.arrived[walks] = (start == targets).all(axis=0)

    def reconsider(self, person: IntArray) -> None:
        """Go on with the walks of people for whose rows there are new scores."""
        theirs = np.isin(self.person, person) & ~self._later
        walks = np.flatnonzero(theirs)
        at_target = (self._codes(walks) == self.targets[:, walks]).all(axis=0)
        self.arrived = self.arrived.copy()
        good = self.visited.are_good(self.current_row[walks])
        self.arrived[walks] = at_target | good
        # Longer walks go on only for people without one that has arrived.
        has_one = np.isin(self.person, self.person[walks[good]])
        self.abandoned = self.abandoned & (has_one | ~theirs)
        self._active, self._reverting = theirs, None

    def resume(self, n_wanted: int) -> None:
        """Start the later walks, and go on with abandoned ones until ``n_wanted`` have arrived."""
        self.n_wanted = n_wanted
        self._start(np.flatnonzero(self._later))
        self.abandoned = np.zeros_like(self.abandoned)
        self._later = np.zeros_like(self.abandoned)
        self._active = ~self._later
        self._reverting = None

    def _store_known_scores(
        self, cache: PredictionCache, unstable: BoolArray, *, whole_block: bool
    ) -> None:
        """Take over the predictor's scores of candidates, except unstable ones."""
        candidates = cache.candidates
        person = np.arange(self.n_people) if whole_block else np.unique(self.person)
        group = candidates.group[person]
        who, draw = np.nonzero(cache.known[group] & ~unstable[person])
        codes = candidates.select(person[who], draw).codes
        row = self.visited.number_rows(person[who], draw, codes)
        at = group[who], draw
        self.visited.store_scores(row, ScoredRows(cache.score[at], cache.valid[at]))

    @property
    def ended(self) -> bool:
        """Whether no walk moves any more."""
        return self._reverting is not None and not self._reverting.size

    def next_round(self) -> None:
        """One move of every walk: forward until all have arrived, then back."""
        walking = np.flatnonzero(~self.arrived & ~self.abandoned & self._active)
        if walking.size:
            self._step(walking)
            self._abandon()
            return
        if self._reverting is None:
            self._reverting = np.flatnonzero(self.arrived & self._active)
        self._reverting = self._revert(self._reverting)

    def _step(self, walking: IntArray) -> None:
        """Copy one more set of features from the target: one that ends the walk, or the best."""
        visited, here, there = self.visited, self._codes(walking), self.targets[:, walking]
        walk, moved = self._influential_moves(*self._moves(here != there))
        codes = np.where(self.settings.feature_sets[moved].T, there[:, walk], here[:, walk])
        row = self._visit(walking[walk], codes)
        visited.evaluate(row)
        order = np.lexsort((moved, -visited.desirability(row), ~visited.are_good(row), walk))
        best = order[_starts(walk[order])]
        self.current_row[walking] = row[best]
        ends = visited.are_good(row[best]) | (self._codes(walking) == there).all(axis=0)
        self.arrived[walking[ends]] = True

    def _abandon(self) -> None:
        """Abandon walks that are longer than finished ones of the person, by ``extra_changes``."""
        n_changes, most = self.n_changes, self.targets.shape[0]
        arrived, person = np.flatnonzero(self.arrived), self.person
        n_arrived = np.bincount(person[arrived], minlength=self.n_people)
        fewest = np.full(self.n_people, most)
        np.minimum.at(fewest, person[arrived], n_changes[arrived])
        enough = (n_arrived >= self.n_wanted)[person]
        too_long = n_changes >= fewest[person] + self.settings.extra_changes
        self.abandoned = self.abandoned | (enough & too_long & ~self.arrived)

    def _revert(self, walks: IntArray) -> IntArray:
        """Revert one set of features where the row stays as good; returns the walks that moved."""
        visited, here = self.visited, self._codes(walks)
        walk, moved = self._moves(here != OWN)
        codes = np.where(self.settings.feature_sets[moved].T, OWN, here[:, walk])
        # A row that changes nothing but consequences is no move.
        changed = (codes[self.settings.feature_sets.any(axis=0)] != OWN).any(axis=0)
        walk, moved, codes = walk[changed], moved[changed], codes[:, changed]
        row, now = self._visit(walks[walk], codes), self.current_row[walks[walk]]
        left = np.flatnonzero(self._as_good(row, now))
        walk, moved, row = walk[left], moved[left], row[left]
        order = np.lexsort((moved, -visited.desirability(row), ~visited.plausible[row], walk))
        best = order[_starts(walk[order])]
        self.current_row[walks[walk[best]]] = row[best]
        return walks[walk[best]]

    def _as_good(self, row: IntArray, now: IntArray) -> BoolArray:
        """Valid rows that are allowed and plausible if the present ones are; cheap checks first."""
        visited = self.visited
        visited.check_filters(np.concatenate([row, now]))
        as_good: BoolArray = visited.allowed[row] >= visited.allowed[now]
        visited.evaluate(row[as_good])
        as_good &= visited.valid[row]
        visited.check_plausibility(np.concatenate([row[as_good], now]))
        return as_good & (visited.plausible[row] >= visited.plausible[now])

    def _visit(self, walks: IntArray, codes: Codes) -> IntArray:
        row = self.visited.number_rows(self.person[walks], self.draw[walks], codes)
        self.visited.reach(row)
        return row

    def _moves(self, differs: BoolArray) -> tuple[IntArray, IntArray]:
        """All possible moves: which walk, and which set of features."""
        of, feature = np.nonzero(self.settings.feature_sets)
        moves = np.logical_or.reduceat(differs[feature], _starts(of), axis=0)
        walk, moved = np.nonzero(moves.T)
        return walk, moved

    def _influential_moves(self, walk: IntArray, moved: IntArray) -> tuple[IntArray, IntArray]:
        """The moves of influential sets; all moves of a walk that has none."""
        influential = self._influential[moved]
        has_influential = np.bincount(walk[influential], minlength=walk.max(initial=0) + 1) > 0
        kept = influential | ~has_influential[walk]
        return walk[kept], moved[kept]

    def _codes(self, walks: IntArray) -> Codes:
        return np.ascontiguousarray(self.visited.cells[self.current_row[walks], 1:].T)

    @property
    def n_changes(self) -> IntArray:
        """Changed features of each walk so far."""
        return np.asarray((self.visited.cells[self.current_row, 1:] != OWN).sum(axis=1))


def _starts(numbers: IntArray) -> IntArray:
    """Where each new number begins in an ascending list."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))
