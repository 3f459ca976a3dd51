"""Which of a person's visited rows to return.

Beyond the paper. Plausible rows come first, and copies of accepted training rows last unless they
are allowed. Among equals in that, rows with few enough changes are ordered by what is preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..candidates import Candidates
from ..kernels import BoolArray, FloatArray, IntArray, differences
from ..plausibility.neighbours import KnnDistance
from ..postprocess.answers import Answers
from ..postprocess.diversity import Pool, diverse_ranks
from ..postprocess.ranking import Ranking
from ..tables.schema import OWN
from .config import Preference
from .consequences import Consequences
from .greedy import GreedyWalk
from .visited import VisitedRows


@dataclass(frozen=True)
class PreferenceWeights:
    """What the preferences weigh against each other.

    Parameters
    ----------
    l1
        "balanced": cost of one unit of l1, where one unit of knn distance costs 1.
    change, typical_change
        "balanced": cost of a change above the fewest, fixed and as a share of the knn distance
        that is typical of accepted rows.
    gain_share, min_gain
        "sparsity": one more change is worth it if it brings the knn distance down to this share of
        the best without it, and by at least this much.
    """

    l1: float = 0.1
    change: float = 0.1
    typical_change: float = 0.1
    gain_share: float = 0.6
    min_gain: float = 0.25


WEIGHTS = PreferenceWeights()


@dataclass(frozen=True, eq=False)
class SelectionSettings:
    """How to select.

    Parameters
    ----------
    prefer, extra_changes
        What decides among rows with at most so many changes above the fewest.
    knn_distance
        Distances to accepted training rows, which take most of the time; None does without.
    ranking
        How many answers each person gets, and within which bounds.
    copies_last
        Whether copies of accepted training rows come after everything else.
    count_actions
        Whether recomputed columns do not count as changes.
    """

    prefer: Preference
    extra_changes: int
    knn_distance: KnnDistance | None
    ranking: Ranking
    copies_last: bool = True
    count_actions: bool = False


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows that may be returned, by person and place, shape (n_people, n_places) each.

    ``numbers``, ``person`` and ``place`` (n_rows,) say which visited row is where; the other places
    are not ``allowed`` and hold nothing.
    """

    block: Candidates
    numbers: IntArray
    person: IntArray
    place: IntArray
    sparsity: IntArray
    gower: FloatArray
    distance: FloatArray
    allowed: BoolArray
    implausible: BoolArray


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """Visited rows that were selected, by number, with their ranks and costs."""

    numbers: IntArray
    rank: IntArray
    sparsity: IntArray
    gower: FloatArray

    def take(self, places: BoolArray) -> SelectedRows:
        """The rows at the given places."""
        return SelectedRows(*(getattr(self, field.name)[places] for field in fields(self)))

    @classmethod
    def concat(cls, parts: Sequence[SelectedRows]) -> SelectedRows:
        """All parts as one."""
        return cls(
            *(
                np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields(cls)
            )
        )

    def to_answers(self, candidates: Candidates, visited: VisitedRows) -> Answers:
        """The rows as answers, by person and rank."""
        draw = visited.draw[self.numbers]
        return Answers(
            rows=visited.rows(self.numbers).compacted(),
            # Rows that no draw led to have a negative number of their own.
            draw=np.where(draw < 0, draw, candidates.draws[np.maximum(draw, 0)]),
            rank=self.rank,
            score=visited.score[self.numbers],
            sparsity=self.sparsity,
            gower=self.gower,
        ).sort()


def select_rows(
    settings: SelectionSettings,
    candidates: Candidates,
    walk: GreedyWalk,
    may_return: IntArray,
    first: IntArray,
) -> SelectedRows:
    """The best visited rows of everybody, among those that may be returned.

    Parameters
    ----------
    settings
        How to select.
    candidates, walk
        The block of people, and their finished walks.
    may_return : (n_rows,)
        Numbers of the rows that may be returned, see :func:`returnable`.
    first : (n_first,)
        Those that come first whatever else there is.

    Returns
    -------
    SelectedRows
        At most ``n_counterfactuals`` rows per person.
    """
    ranking, rows = settings.ranking, _as_rows(settings.ranking, candidates, walk, may_return)
    order = _order(settings, rows, walk, np.isin(rows.numbers, first))
    ranks = np.argsort(order, axis=-1) + 1
    if ranking.diversity is not None:
        ranks = _diverse_ranks(ranking, rows, order)
    rank = np.where(rows.allowed, ranks, 0)[rows.person, rows.place]
    taken = np.flatnonzero((rank > 0) & (rank <= ranking.n_counterfactuals))
    at = rows.person[taken], rows.place[taken]
    return SelectedRows(rows.numbers[taken], rank[taken], rows.sparsity[at], rows.gower[at])


def _order(
    settings: SelectionSettings, rows: _Rows, walk: GreedyWalk, is_first: BoolArray
) -> IntArray:
    """Places of each person's rows, the best first."""
    later = np.ones(rows.block.shape, dtype=bool)
    later[rows.person, rows.place] = ~is_first
    plausible = rows.allowed & ~rows.implausible
    eligible = np.where(plausible.any(axis=1, keepdims=True), plausible, rows.allowed)
    n_changes = rows.sparsity
    if settings.count_actions and walk.settings.consequences is not None:
        n_changes = n_changes - _n_consequences(rows, walk.settings.consequences)
    fewest = np.where(eligible, n_changes, len(rows.block.comparison.codes)).min(axis=1)
    above = n_changes - fewest[:, None]
    excess = np.maximum(above - settings.extra_changes, 0)
    knn_distance, copy = _knn_distances(settings, rows, walk, excess)
    if settings.prefer == "sparsity":
        best = np.where(eligible & (above == 0) & ~copy, knn_distance, np.inf).min(axis=1)[:, None]
        worth_it = knn_distance <= WEIGHTS.gain_share * best
        worth_it &= knn_distance <= best - WEIGHTS.min_gain
        excess = np.where(worth_it, excess, above)
    cost = {"sparsity": knn_distance, "knn_distance": knn_distance, "distance": rows.distance}.get(
        settings.prefer
    )
    if cost is None:
        n_features = rows.block.comparison.n_features
        typical = settings.knn_distance.median if settings.knn_distance is not None else 0.0
        price = WEIGHTS.change + WEIGHTS.typical_change * typical
        cost = knn_distance + WEIGHTS.l1 * rows.distance * n_features + price * above
    return np.lexsort((cost, excess, copy, rows.implausible, later, ~rows.allowed), axis=-1)


def returnable(
    ranking: Ranking, candidates: Candidates, walk: GreedyWalk, person: IntArray | None = None
) -> IntArray:
    """Numbers of the rows that may be returned: good ones that were reached, and ends of walks.

    Of the people given, as numbered in the block; None for everybody.
    """
    visited = walk.visited
    theirs = np.ones(candidates.people.size, dtype=bool)
    if person is not None:
        theirs = np.isin(np.arange(theirs.size), person)
    may = np.zeros(len(visited.cells), dtype=bool)
    reached = np.flatnonzero((visited.step >= 0) & visited.valid & theirs[visited.person])
    may[reached] = visited.good(reached)
    ends = walk.at[walk.arrived & theirs[walk.person]]
    may[ends] |= visited.allowed[ends] & (visited.valid[ends] | (walk.settings.led is None))
    rows = _as_rows(ranking, candidates, walk, np.flatnonzero(may))
    return rows.numbers[rows.allowed[rows.person, rows.place]]


def _as_rows(
    ranking: Ranking, candidates: Candidates, walk: GreedyWalk, numbers: IntArray
) -> _Rows:
    """Visited rows with their costs, and which are within the bounds."""
    visited = walk.visited
    numbers = numbers[np.lexsort((visited.step[numbers], visited.person[numbers]))]
    block, person, place = _as_block(candidates, visited, numbers)
    sparsity, gower = _costs(block, ranking.tolerance)
    distance = ranking.distance(block)
    allowed, implausible = np.zeros((2, *block.shape), dtype=bool)
    allowed[person, place] = True
    visited.assess(numbers)
    implausible[person, place] = ~visited.plausible[numbers]
    if ranking.max_sparsity is not None:
        allowed &= sparsity <= ranking.max_sparsity
    if ranking.max_distance is not None:
        allowed &= distance <= ranking.max_distance
    return _Rows(block, numbers, person, place, sparsity, gower, distance, allowed, implausible)


def row_distances(
    ranking: Ranking, candidates: Candidates, walk: GreedyWalk, numbers: IntArray
) -> FloatArray:
    """The distance of visited rows from their people."""
    return row_costs(ranking, candidates, walk, numbers)[2]


def within_bounds(
    ranking: Ranking, candidates: Candidates, walk: GreedyWalk, numbers: IntArray
) -> BoolArray:
    """Which visited rows keep the bounds on changes and distance."""
    sparsity, _, distance = row_costs(ranking, candidates, walk, numbers)
    most_changes = np.inf if ranking.max_sparsity is None else ranking.max_sparsity
    most = np.inf if ranking.max_distance is None else ranking.max_distance
    return (sparsity <= most_changes) & (distance <= most)


def row_costs(
    ranking: Ranking, candidates: Candidates, walk: GreedyWalk, numbers: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Sparsity, Gower distance and the distance of the ranking of visited rows."""
    rows = _as_rows(ranking, candidates, walk, numbers)
    place = np.empty(len(walk.visited.cells), dtype=np.int64)
    place[rows.numbers] = np.arange(rows.numbers.size)
    at = rows.person[place[numbers]], rows.place[place[numbers]]
    return rows.sparsity[at], rows.gower[at], rows.distance[at]


def _as_block(
    candidates: Candidates, visited: VisitedRows, rows: IntArray
) -> tuple[Candidates, IntArray, IntArray]:
    """Visited rows as candidates of their people, and the person and place of each."""
    cells: Any = visited.cells[rows]
    people, first, person, count = np.unique(
        cells[:, 0], return_index=True, return_inverse=True, return_counts=True
    )
    place = np.arange(len(cells)) - first[person]
    own = candidates.comparison.own_codes[:, people]
    codes = np.repeat(own[:, :, None], max(int(count.max(initial=0)), 1), axis=2)
    changed = cells[:, 1:].T
    codes[:, person, place] = np.where(changed == OWN, own[:, person], changed)
    known = candidates.comparison.numbers
    numbers = [None if own is None else visited.values.numbers(at) for at, own in enumerate(known)]
    comparison = replace(
        candidates.comparison.of(people),
        codes=codes,
        numbers=numbers,
        group=np.arange(people.size),
    )
    block = replace(
        candidates,
        tables=visited.values.tables,
        people=candidates.people[people],
        comparison=comparison,
        draws=np.arange(codes.shape[2]),
        distinct=np.ones(codes.shape[1:], dtype=bool),
    )
    return block, person, place


def _knn_distances(
    settings: SelectionSettings, rows: _Rows, walk: GreedyWalk, excess: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Distance to accepted training rows, and whether a row copies one; 0 if not in question.

    In question are rows with few enough changes, then with one more, until enough are no copies.
    """
    knn_distance, copy = np.zeros(rows.block.shape), np.zeros(rows.block.shape, dtype=bool)
    if settings.knn_distance is None:
        return knn_distance, copy
    level = np.zeros(len(excess), dtype=np.int64)
    looked_at = ~rows.allowed
    while True:
        here = ~looked_at & (excess <= level[:, None])
        if here.any():
            _look_at(settings, rows, walk, here, knn_distance, copy)
            looked_at |= here
        n_better = (rows.allowed & looked_at & ~copy & ~rows.implausible).sum(axis=1)
        left = np.where(looked_at, np.iinfo(np.int64).max, excess).min(axis=1)
        more = (n_better < settings.ranking.n_wanted) & ~looked_at.all(axis=1)
        if not more.any():
            return knn_distance, copy
        level = np.where(more, left, level)


def _look_at(
    settings: SelectionSettings,
    rows: _Rows,
    walk: GreedyWalk,
    here: BoolArray,
    knn_distance: FloatArray,
    copy: BoolArray,
) -> None:
    """Put in the distances of some places, and which are copies."""
    assert settings.knn_distance is not None
    visited, some = walk.visited, np.flatnonzero(here[rows.person, rows.place])
    at = rows.person[some], rows.place[some]
    visited.measure(settings.knn_distance, rows.numbers[some])
    knn_distance[at] = visited.knn_distance[rows.numbers[some]]
    copy[at] = settings.copies_last & visited.copy[rows.numbers[some]]


def copies(settings: SelectionSettings, visited: VisitedRows, numbers: IntArray) -> BoolArray:
    """Which visited rows come last because they copy an accepted training row."""
    if settings.knn_distance is None or not settings.copies_last:
        return np.zeros(numbers.size, dtype=bool)
    visited.measure(settings.knn_distance, numbers)
    return visited.copy[numbers]


def _diverse_ranks(ranking: Ranking, rows: _Rows, order: IntArray) -> IntArray:
    """Ranks of answers that differ, 0 if not selected; see :mod:`mcce.postprocess.diversity`."""
    comparison, people = rows.block.comparison, np.arange(len(order))
    pool = Pool(comparison, min(ranking.n_wanted, order.shape[1]))
    listed = np.take_along_axis(rows.allowed, order, axis=1)
    person, at = np.nonzero(pool.keep(people, order.astype(np.int32), listed))
    draw, first = order[person, at], np.searchsorted(person, people)
    ranks = np.zeros_like(order)
    ranks[person, draw] = diverse_ranks(
        rows.block,
        person,
        draw.astype(np.int32),
        np.arange(person.size) - first[person],
        rows.gower[person, draw],
        distance=ranking.distance,
        n_counterfactuals=ranking.n_counterfactuals,
        diversity=ranking.diversity or 0.0,
    )
    return ranks


def _n_consequences(rows: _Rows, consequences: Consequences) -> IntArray:
    """Recomputed columns that change in each row."""
    changed = [differences(rows.block.comparison, at)[0] for at in consequences.rows]
    return np.sum(changed, axis=0, dtype=np.int64)


def _costs(block: Candidates, tolerance: float) -> tuple[IntArray, FloatArray]:
    """Sparsity and Gower distance of each candidate."""
    sparsity, total = np.zeros(block.shape, dtype=np.int64), np.zeros(block.shape)
    for feature in block.comparison.changed_features:
        numbers = block.comparison.numbers[feature]
        changed, gap = differences(block.comparison, feature)
        sparsity += changed & (gap > tolerance) if tolerance and numbers is not None else changed
        total += gap
    return sparsity, total / block.comparison.n_features
