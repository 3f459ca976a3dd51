"""Which of a person's visited rows to return, without a needless change.

Beyond the paper. Plausible rows come first, and copies of accepted training rows last unless they
are allowed. Among these, rows with few enough changes are ordered by ``prefer``.

What was selected is tried again with some of its changes undone: any of them, or single ones and
pairs of many. A row that stays good without some of its changes is needless: the better one takes
part in the selection instead, until nothing selected is needless. What follows from changes is
undone with them, and what changes only together is undone together.

Always true: the first answer of a person is the one they would get alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates, MeasuredRows
from ..distances import is_mean
from ..kernels import BoolArray, FloatArray, IntArray
from ..plausibility.model import KnnDistance
from ..postprocess.diversity import NonRedundant, diverse_ranks
from ..postprocess.ranking import Ranking
from ..tables.schema import OWN
from .config import Preference
from .greedy import GreedyWalk
from .visited import VisitedRows, as_block

# Any subset of up to 5 changes may be undone; of more changes, at most two at once.
ALL_SUBSETS_OF, MAX_UNDONE = 5, 2
# "balanced" adds to the distance to accepted rows: the distance to the person, summed over
# features, and for each change a fixed cost and a share of the typical distance to accepted rows.
L1_WEIGHT, CHANGE_WEIGHT, TYPICAL_WEIGHT = 0.1, 0.1, 0.1
# "sparsity" makes one more change if that reduces the distance to accepted rows to this share, and
# by at least this much.
MAX_SHARE, MIN_GAIN = 0.6, 0.25


@dataclass(frozen=True, eq=False)
class SelectionSettings:
    """How to select."""

    prefer: Preference
    extra_changes: int
    knn_distance: KnnDistance | None
    ranking: Ranking
    copies_last: bool = True
    count_actions: bool = False


class SelectedVisits(NamedTuple):
    """Visited rows that were selected, by id, with their ranks."""

    row_ids: IntArray
    rank: IntArray

    def take(self, index: BoolArray) -> SelectedVisits:
        """The rows where a mask is true."""
        return SelectedVisits(self.row_ids[index], self.rank[index])

    @classmethod
    def concat(cls, parts: Sequence[SelectedVisits]) -> SelectedVisits:
        """All parts as one."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def to_measured(self, candidates: Candidates, visited: VisitedRows) -> MeasuredRows:
        """The rows with their measures, by person and rank."""
        draw = visited.draw[self.row_ids]
        return MeasuredRows(
            rows=visited.rows(self.row_ids).compacted(),
            # Rows that no draw led to have a negative number of their own.
            draw=np.where(draw < 0, draw, candidates.draws[np.maximum(draw, 0)]),
            rank=self.rank,
            score=visited.score[self.row_ids],
            sparsity=visited.sparsity[self.row_ids],
            gower=visited.gower[self.row_ids],
        ).sort()


def _best_rows(
    settings: SelectionSettings, walk: GreedyWalk, may_return: IntArray, first: IntArray
) -> SelectedVisits:
    """The best visited rows of each person, among those that may be returned."""
    ranking, visited = settings.ranking, walk.visited
    row_ids = may_return[np.lexsort((visited.reach_order[may_return], visited.person[may_return]))]
    row_ids = row_ids[_order(settings, walk, row_ids, np.isin(row_ids, first))]
    person = Groups(visited.person[row_ids])
    rank = person.index + 1
    if ranking.diversity is not None:
        rank = _diverse_ranks(ranking, walk, row_ids, person)
    taken = (rank > 0) & (rank <= ranking.n_counterfactuals)
    return SelectedVisits(row_ids[taken], rank[taken])


def _order(
    settings: SelectionSettings, walk: GreedyWalk, row_ids: IntArray, is_first: BoolArray
) -> IntArray:
    """By person, the best row first."""
    visited = walk.visited
    person = Groups(visited.person[row_ids])
    visited.check_plausibility(row_ids)
    implausible = ~visited.plausible[row_ids]
    eligible = ~implausible | person.all(implausible)
    n_changes = (visited.n_actions if settings.count_actions else visited.sparsity)[row_ids]
    above = n_changes - person.min(np.where(eligible, n_changes, visited.cells.shape[1]))
    excess = np.maximum(above - settings.extra_changes, 0)
    knn_distance, copy = _knn_distances(settings, visited, row_ids, person, excess)
    if settings.prefer == "sparsity":
        best = person.min(np.where(eligible & (above == 0) & ~copy, knn_distance, np.inf))
        worth_it = knn_distance <= MAX_SHARE * best
        worth_it &= knn_distance <= best - MIN_GAIN
        excess = np.where(worth_it, excess, above)
    distance = visited.distance[row_ids]
    cost = {"sparsity": knn_distance, "knn_distance": knn_distance, "distance": distance}.get(
        settings.prefer
    )
    if cost is None:
        mean = is_mean(settings.ranking.distance)
        n_features = visited.candidates.comparison.n_features if mean else 1
        typical = settings.knn_distance.median if settings.knn_distance is not None else 0.0
        price = CHANGE_WEIGHT + TYPICAL_WEIGHT * typical
        cost = knn_distance + L1_WEIGHT * distance * n_features + price * above
    return np.lexsort((cost, excess, copy, implausible, ~is_first, person.of))


def returnable(ranking: Ranking, walk: GreedyWalk, person: IntArray | None = None) -> IntArray:
    """Numbers of the rows that may be returned: good ones that were reached, and ends of walks."""
    visited = walk.visited
    theirs = np.ones(visited.positions.size, dtype=bool)
    if person is not None:
        theirs = np.isin(np.arange(theirs.size), person)
    may = np.zeros(len(visited.cells), dtype=bool)
    reached = np.flatnonzero((visited.reach_order >= 0) & visited.valid & theirs[visited.person])
    may[reached] = visited.are_good(reached)
    ends = walk.current_row[walk.arrived & theirs[walk.person]]
    may[ends] |= visited.allowed[ends] & (
        visited.valid[ends] | (walk.settings.task.surrogate_run is None)
    )
    row_ids = np.flatnonzero(may)
    return row_ids[within_bounds(ranking, visited, row_ids)]


def within_bounds(ranking: Ranking, visited: VisitedRows, row_ids: IntArray) -> BoolArray:
    """Which visited rows keep the bounds on changes and distance."""
    visited.compute_costs(ranking, row_ids)
    most_changes = np.inf if ranking.max_sparsity is None else ranking.max_sparsity
    most = np.inf if ranking.max_distance is None else ranking.max_distance
    return (visited.sparsity[row_ids] <= most_changes) & (visited.distance[row_ids] <= most)


def _knn_distances(
    settings: SelectionSettings,
    visited: VisitedRows,
    row_ids: IntArray,
    person: Groups,
    excess: IntArray,
) -> tuple[FloatArray, BoolArray]:
    """Distance to accepted training rows, and whether a row copies one; 0 if not measured.

    Rows with few enough changes are measured, then those with one more, until enough of them are
    no copies.
    """
    knn_distance, copy = np.zeros(row_ids.size), np.zeros(row_ids.size, dtype=bool)
    if settings.knn_distance is None:
        return knn_distance, copy
    looked_at, plausible = np.zeros(row_ids.size, dtype=bool), visited.plausible[row_ids]
    level: IntArray = np.zeros(row_ids.size, dtype=np.int64)
    while True:
        here = np.flatnonzero(~looked_at & (excess <= level))
        visited.compute_knn_distance(settings.knn_distance, row_ids[here])
        knn_distance[here] = visited.knn_distance[row_ids[here]]
        copy[here] = settings.copies_last & visited.copy[row_ids[here]]
        looked_at[here] = True
        n_better = person.sum(looked_at & ~copy & plausible)
        if (looked_at | (n_better >= settings.ranking.n_wanted)).all():
            return knn_distance, copy
        left = person.min(np.where(looked_at, np.iinfo(np.int64).max, excess))
        level = np.where(n_better < settings.ranking.n_wanted, left, level)


def are_copies_ranked_last(
    settings: SelectionSettings, visited: VisitedRows, row_ids: IntArray
) -> BoolArray:
    """Which visited rows come last because they copy an accepted training row."""
    if settings.knn_distance is None or not settings.copies_last:
        return np.zeros(row_ids.size, dtype=bool)
    visited.compute_knn_distance(settings.knn_distance, row_ids)
    return visited.copy[row_ids]


def _diverse_ranks(
    ranking: Ranking, walk: GreedyWalk, row_ids: IntArray, person: Groups
) -> IntArray:
    """Ranks of answers that differ, 0 if not selected; see :mod:`mcce.postprocess.diversity`.

    Takes rows by person, the best first.
    """
    visited = walk.visited
    block = as_block(
        visited.candidates, visited.values, visited.cells[row_ids], person.number, person.index
    )
    listed = np.zeros(block.shape, dtype=bool)
    listed[person.number, person.index] = True
    n_people, n_rows = block.shape
    nonredundant = NonRedundant(block.comparison, min(ranking.n_wanted, n_rows))
    draw = np.tile(np.arange(n_rows, dtype=np.int32), (n_people, 1))
    pooled = nonredundant.keep(np.arange(n_people), draw, listed)[person.number, person.index]
    some = Groups(person.number[pooled])
    rank = np.zeros(row_ids.size, dtype=np.int64)
    rank[pooled] = diverse_ranks(
        block,
        some.of,
        person.index[pooled].astype(np.int32),
        some.index,
        visited.gower[row_ids[pooled]],
        ranking,
    )
    return rank


class Groups:
    """Neighbouring entries that are equal, as groups."""

    def __init__(self, of: IntArray) -> None:
        self.of = of
        starts = np.diff(of, prepend=-1) != 0
        self._first = np.flatnonzero(starts)
        self.number: IntArray = np.cumsum(starts) - 1
        self.index: IntArray = np.arange(of.size) - self._first[self.number]

    def min(self, values: np.ndarray) -> np.ndarray:
        """The smallest value of each entry's group."""
        return self._each(np.minimum, values)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The sum of the values of each entry's group."""
        return self._each(np.add, values.astype(np.int64))

    def all(self, values: BoolArray) -> BoolArray:
        """Whether all values of each entry's group are true."""
        return self._each(np.logical_and, values)

    def _each(self, reduce: np.ufunc, values: np.ndarray) -> np.ndarray:
        return reduce.reduceat(values, self._first)[self.number] if values.size else values


def select_rows(
    settings: SelectionSettings,
    walk: GreedyWalk,
    person: IntArray | None = None,
    answers: SelectedVisits | None = None,
) -> SelectedVisits:
    """The best rows of each person, none with a needless change: one, or all after the first.

    Changes are undone and rows selected again for people with a needless change.
    """
    first = np.empty(0, dtype=np.int64) if answers is None else answers.row_ids
    if answers is None:
        one = replace(settings.ranking, n_counterfactuals=1, diversity=None)
        settings = replace(settings, ranking=one)
    visited, parts = walk.visited, list[SelectedVisits]()
    may_return = returnable(settings.ranking, walk, person)
    needless = np.empty(0, dtype=np.int64)
    while True:
        selected = _best_rows(settings, walk, may_return, first)
        parent, child = _undo(walk, selected.row_ids[~np.isin(selected.row_ids, first)])
        if parent.size:
            may_return = returnable(settings.ranking, walk, person)
        # Rows that one with fewer of their changes can replace.
        lesser = np.unique(parent[np.isin(child, may_return)])
        needless = np.concatenate([needless, lesser])
        owner, again = visited.person, visited.person[lesser]
        parts.append(selected.take(~np.isin(owner[selected.row_ids], again)))
        if not lesser.size:
            return SelectedVisits.concat(parts)
        theirs = np.isin(owner[may_return], again)
        may_return = may_return[theirs & ~np.isin(may_return, needless)]


def _undo(walk: GreedyWalk, row_ids: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of rows and their versions without some changes, where the version is good."""
    visited = walk.visited
    parent, child = undone(walk, row_ids)
    visited.evaluate(child)
    good: BoolArray = visited.are_good(child) & (child != parent)
    visited.reach(child[good])
    return parent[good], child[good]


def undone(walk: GreedyWalk, row_ids: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of rows and their versions without some changes, all of them visited rows."""
    visited, feature_sets = walk.visited, walk.settings.feature_sets
    row, undone = _subsets((visited.cells[row_ids, 1:] != OWN) @ feature_sets.T)
    parent = row_ids[row]
    codes = np.where(undone @ feature_sets, OWN, visited.cells[parent, 1:]).T
    child = visited.number_rows(visited.person[parent], visited.draw[parent], codes)
    return parent, child


def _subsets(changed: BoolArray) -> tuple[IntArray, BoolArray]:
    """Changes to undo at once, smallest sets first: the row, and which of its sets."""
    rows, undone = [np.empty(0, dtype=np.int64)], [np.empty((0, changed.shape[1]), dtype=bool)]
    n_changed = changed.sum(axis=1)
    for n in np.unique(n_changed[n_changed > 1]).tolist():
        most = n if n <= ALL_SUBSETS_OF else MAX_UNDONE + 1
        taken = _all_subsets(n, most)
        here = np.flatnonzero(n_changed == n)
        found = np.zeros((here.size, len(taken), changed.shape[1]), dtype=bool)
        which, feature_set = np.nonzero(changed[here])
        found[which, :, feature_set] = np.tile(taken.T, (here.size, 1))
        rows.append(np.repeat(here, len(taken)))
        undone.append(found.reshape(-1, changed.shape[1]))
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    return row[order], np.concatenate(undone)[order]


@lru_cache
def _all_subsets(n: int, most: int) -> BoolArray:
    """The sets of fewer than ``most`` out of n, smallest first, shape (n_sets, n)."""
    sets = [some for size in range(1, most) for some in combinations(range(n), size)]
    return np.array([[at in some for at in range(n)] for some in sets])
