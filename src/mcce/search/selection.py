"""Which of a person's visited rows to return.

Beyond the paper. Plausible rows come first, and copies of accepted training rows last unless they
are allowed. Among equals in that, rows with few enough changes are ordered by what is preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..candidates import Candidates
from ..distances import is_mean
from ..kernels import BoolArray, FloatArray, IntArray
from ..plausibility.model import KnnDistance
from ..postprocess.diversity import Pool, diverse_ranks
from ..postprocess.ranking import Ranking
from ..postprocess.validation import Answers
from .config import Preference
from .costs import as_block
from .greedy import GreedyWalk
from .visited import VisitedRows


@dataclass(frozen=True)
class PreferenceWeights:
    """What the preferences weigh against each other."""

    l1: float = 0.1
    change: float = 0.1
    typical_change: float = 0.1
    gain_share: float = 0.6
    min_gain: float = 0.25


WEIGHTS = PreferenceWeights()


@dataclass(frozen=True, eq=False)
class SelectionSettings:
    """How to select."""

    prefer: Preference
    extra_changes: int
    knn_distance: KnnDistance | None
    ranking: Ranking
    copies_last: bool = True
    count_actions: bool = False


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
    settings: SelectionSettings, walk: GreedyWalk, may_return: IntArray, first: IntArray
) -> SelectedRows:
    """The best visited rows of everybody, among those that may be returned."""
    ranking, visited = settings.ranking, walk.visited
    numbers = may_return[np.lexsort((visited.step[may_return], visited.person[may_return]))]
    numbers = numbers[_order(settings, walk, numbers, np.isin(numbers, first))]
    person = Groups(visited.person[numbers])
    rank = person.place + 1
    if ranking.diversity is not None:
        rank = _diverse_ranks(ranking, walk, numbers, person)
    taken = (rank > 0) & (rank <= ranking.n_counterfactuals)
    rows = numbers[taken]
    return SelectedRows(rows, rank[taken], visited.sparsity[rows], visited.gower[rows])


def _order(
    settings: SelectionSettings, walk: GreedyWalk, numbers: IntArray, is_first: BoolArray
) -> IntArray:
    """By person, the best row first."""
    visited = walk.visited
    person = Groups(visited.person[numbers])
    visited.assess(numbers)
    implausible = ~visited.plausible[numbers]
    eligible = ~implausible | person.all(implausible)
    n_changes = (visited.n_actions if settings.count_actions else visited.sparsity)[numbers]
    above = n_changes - person.min(np.where(eligible, n_changes, visited.cells.shape[1]))
    excess = np.maximum(above - settings.extra_changes, 0)
    knn_distance, copy = _knn_distances(settings, visited, numbers, person, excess)
    if settings.prefer == "sparsity":
        best = person.min(np.where(eligible & (above == 0) & ~copy, knn_distance, np.inf))
        worth_it = knn_distance <= WEIGHTS.gain_share * best
        worth_it &= knn_distance <= best - WEIGHTS.min_gain
        excess = np.where(worth_it, excess, above)
    distance = visited.distance[numbers]
    cost = {"sparsity": knn_distance, "knn_distance": knn_distance, "distance": distance}.get(
        settings.prefer
    )
    if cost is None:
        mean = is_mean(settings.ranking.distance)
        n_features = visited.candidates.comparison.n_features if mean else 1
        typical = settings.knn_distance.median if settings.knn_distance is not None else 0.0
        price = WEIGHTS.change + WEIGHTS.typical_change * typical
        cost = knn_distance + WEIGHTS.l1 * distance * n_features + price * above
    return np.lexsort((cost, excess, copy, implausible, ~is_first, person.of))


def returnable(ranking: Ranking, walk: GreedyWalk, person: IntArray | None = None) -> IntArray:
    """Numbers of the rows that may be returned: good ones that were reached, and ends of walks."""
    visited = walk.visited
    theirs = np.ones(visited.people.size, dtype=bool)
    if person is not None:
        theirs = np.isin(np.arange(theirs.size), person)
    may = np.zeros(len(visited.cells), dtype=bool)
    reached = np.flatnonzero((visited.step >= 0) & visited.valid & theirs[visited.person])
    may[reached] = visited.good(reached)
    ends = walk.at[walk.arrived & theirs[walk.person]]
    may[ends] |= visited.allowed[ends] & (visited.valid[ends] | (walk.settings.led is None))
    numbers = np.flatnonzero(may)
    return numbers[within_bounds(ranking, visited, numbers)]


def within_bounds(ranking: Ranking, visited: VisitedRows, numbers: IntArray) -> BoolArray:
    """Which visited rows keep the bounds on changes and distance."""
    visited.price(ranking, numbers)
    most_changes = np.inf if ranking.max_sparsity is None else ranking.max_sparsity
    most = np.inf if ranking.max_distance is None else ranking.max_distance
    return (visited.sparsity[numbers] <= most_changes) & (visited.distance[numbers] <= most)


def _knn_distances(
    settings: SelectionSettings,
    visited: VisitedRows,
    numbers: IntArray,
    person: Groups,
    excess: IntArray,
) -> tuple[FloatArray, BoolArray]:
    """Distance to accepted training rows, and whether a row copies one; 0 if not in question.

    In question are rows with few enough changes, then with one more, until enough are no copies.
    """
    knn_distance, copy = np.zeros(numbers.size), np.zeros(numbers.size, dtype=bool)
    if settings.knn_distance is None:
        return knn_distance, copy
    looked_at, plausible = np.zeros(numbers.size, dtype=bool), visited.plausible[numbers]
    level: IntArray = np.zeros(numbers.size, dtype=np.int64)
    while True:
        here = np.flatnonzero(~looked_at & (excess <= level))
        visited.measure(settings.knn_distance, numbers[here])
        knn_distance[here] = visited.knn_distance[numbers[here]]
        copy[here] = settings.copies_last & visited.copy[numbers[here]]
        looked_at[here] = True
        n_better = person.sum(looked_at & ~copy & plausible)
        if (looked_at | (n_better >= settings.ranking.n_wanted)).all():
            return knn_distance, copy
        left = person.min(np.where(looked_at, np.iinfo(np.int64).max, excess))
        level = np.where(n_better < settings.ranking.n_wanted, left, level)


def copies(settings: SelectionSettings, visited: VisitedRows, numbers: IntArray) -> BoolArray:
    """Which visited rows come last because they copy an accepted training row."""
    if settings.knn_distance is None or not settings.copies_last:
        return np.zeros(numbers.size, dtype=bool)
    visited.measure(settings.knn_distance, numbers)
    return visited.copy[numbers]


def _diverse_ranks(
    ranking: Ranking, walk: GreedyWalk, numbers: IntArray, person: Groups
) -> IntArray:
    """Ranks of answers that differ, 0 if not selected; see :mod:`mcce.postprocess.diversity`.

    Takes rows by person, the best first.
    """
    visited = walk.visited
    block = as_block(
        visited.candidates, visited.values, visited.cells[numbers], person.number, person.place
    )
    listed = np.zeros(block.shape, dtype=bool)
    listed[person.number, person.place] = True
    people, places = block.shape
    pool = Pool(block.comparison, min(ranking.n_wanted, places))
    draw = np.tile(np.arange(places, dtype=np.int32), (people, 1))
    pooled = pool.keep(np.arange(people), draw, listed)[person.number, person.place]
    some = Groups(person.number[pooled])
    rank = np.zeros(numbers.size, dtype=np.int64)
    rank[pooled] = diverse_ranks(
        block,
        some.of,
        person.place[pooled].astype(np.int32),
        some.place,
        visited.gower[numbers[pooled]],
        distance=ranking.distance,
        n_counterfactuals=ranking.n_counterfactuals,
        diversity=ranking.diversity or 0.0,
    )
    return rank


class Groups:
    """Neighbouring entries that are equal, as groups.

    Examples
    --------
    >>> groups = Groups(np.array([3, 3, 7]))
    >>> groups.number, groups.place, groups.min(np.array([5, 4, 9]))
    (array([0, 0, 1]), array([0, 1, 0]), array([4, 4, 9]))
    """

    def __init__(self, of: IntArray) -> None:
        self.of = of
        starts = np.diff(of, prepend=-1) != 0
        self._first = np.flatnonzero(starts)
        self.number: IntArray = np.cumsum(starts) - 1
        self.place: IntArray = np.arange(of.size) - self._first[self.number]

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
