"""Which of a person's rows to return, among those that the walks have come to.

Beyond the paper. Rows inside the support come first, and copies of accepted training rows last.
Among them, rows of at most so many changes above the person's fewest stand in the order of what is
preferred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..candidates import Candidates
from ..kernels import BoolArray, FloatArray, IntArray, differences
from ..plausibility.neighbours import KnnDistance
from ..postprocess.diversity import Pool, diverse_ranks
from ..postprocess.ranking import Ranking
from ..tables.schema import OWN
from .config import Prefer
from .greedy import Register, Walk

# The cost of "both": nearness, so much of l1, and for each change above the fewest so much, and so
# much of the nearness that is usual.
L1, CHANGE, USUAL = 0.1, 0.1, 0.1
# What "sparsity" wants for one more change: nearness at most this share of the nearest without it,
# and this much less.
SHARE, GAIN = 0.6, 0.25


@dataclass(frozen=True, eq=False)
class Choice:
    """How to choose.

    Parameters
    ----------
    prefer, slack
        What decides among rows of so many changes above the fewest.
    nearness
        The accepted training rows.
    ranking
        How many each person gets, and within which bounds.
    """

    prefer: Prefer
    slack: int
    knn_distance: KnnDistance
    ranking: Ranking


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of the register that are returned: which, its rank for its person, what it costs."""

    row: IntArray
    rank: IntArray
    sparsity: IntArray
    gower: FloatArray


def select(choice: Choice, candidates: Candidates, walk: Walk) -> Selection:
    """The best rows of everybody, among all that may be returned."""
    ranking = choice.ranking
    found, block, person, place = _arrivals(candidates, walk)
    sparsity, gower = _costs(block, ranking.tolerance)
    distance = ranking.distance(block)
    allowed, outside = np.zeros((2, *block.shape), dtype=bool)
    allowed[person, place] = True
    outside[person, place] = walk.register.n_outside[found] > 0
    if ranking.max_sparsity is not None:
        allowed &= sparsity <= ranking.max_sparsity
    if ranking.max_distance is not None:
        allowed &= distance <= ranking.max_distance
    inside = allowed & ~outside
    first = np.where(inside.any(axis=1, keepdims=True), inside, allowed)
    fewest = np.where(first, sparsity, len(block.comparison.codes)).min(axis=1)
    above = sparsity - fewest[:, None]
    over = np.maximum(above - choice.slack, 0)

    knn_distance, copy = np.zeros(block.shape), np.zeros(block.shape, dtype=bool)
    some = np.flatnonzero(allowed[person, place] & (over[person, place] == 0))
    at = person[some], place[some]
    knn_distance[at], copy[at] = _knn_distance(choice.knn_distance, walk.register, found[some])
    if choice.prefer == "sparsity":
        without = np.where(first & (above == 0) & ~copy, knn_distance, np.inf).min(axis=1)[:, None]
        worth = (knn_distance <= SHARE * without) & (knn_distance <= without - GAIN)
        over = np.where(worth, over, above)
    price = CHANGE + USUAL * choice.knn_distance.usual
    cost = {
        "sparsity": knn_distance,
        "knn_distance": knn_distance,
        "distance": distance,
        "both": knn_distance + L1 * distance * block.comparison.n_features + price * above,
    }[choice.prefer]
    order = np.lexsort((cost, over, copy, outside, ~allowed), axis=-1)
    ranks = np.argsort(order, axis=-1) + 1
    if ranking.diversity is not None:
        ranks = _diverse(ranking, block, order, allowed, gower)
    rank = np.where(allowed, ranks, 0)[person, place]
    taken = np.flatnonzero((rank > 0) & (rank <= ranking.n_counterfactuals))
    at = person[taken], place[taken]
    return Selection(found[taken], rank[taken], sparsity[at], gower[at])


def _diverse(
    ranking: Ranking, block: Candidates, order: IntArray, allowed: BoolArray, gower: FloatArray
) -> IntArray:
    """Ranks of several answers of a person that differ, 0 if not taken; see :mod:`.diversity`."""
    people = np.arange(len(order))
    pool = Pool(block.comparison, min(ranking.n_wanted, order.shape[1]))
    listed = np.take_along_axis(allowed, order, axis=1)
    person, at = np.nonzero(pool.keep(people, order.astype(np.int32), listed))
    draw, first = order[person, at], np.searchsorted(person, people)
    ranks = np.zeros_like(order)
    ranks[person, draw] = diverse_ranks(
        block,
        person,
        draw.astype(np.int32),
        np.arange(person.size) - first[person],
        gower[person, draw],
        distance=ranking.distance,
        n_counterfactuals=ranking.n_counterfactuals,
        diversity=ranking.diversity or 0.0,
    )
    return ranks


def _arrivals(
    candidates: Candidates, walk: Walk
) -> tuple[IntArray, Candidates, IntArray, IntArray]:
    """Rows that may be returned, as candidates of their people, and where each stands."""
    register = walk.register
    may, come_to = np.zeros(len(register.cells), dtype=bool), np.flatnonzero(register.came >= 0)
    may[come_to] = register.good(come_to)
    may[walk.at[walk.arrived]] |= register.allowed[walk.at[walk.arrived]]
    found = np.flatnonzero(may)
    found = found[np.lexsort((register.came[found], register.cells[found, 0]))]
    people, first, row, count = np.unique(
        register.cells[found, 0], return_index=True, return_inverse=True, return_counts=True
    )
    place = np.arange(found.size) - first[row]
    own = candidates.comparison.own_codes[:, people]
    codes = np.repeat(own[:, :, None], max(int(count.max(initial=0)), 1), axis=2)
    cells = register.cells[found, 1:].T
    codes[:, row, place] = np.where(cells == OWN, own[:, row], cells)
    block = replace(
        candidates,
        people=candidates.people[people],
        comparison=replace(
            candidates.comparison.of(people), codes=codes, group=np.arange(people.size)
        ),
        draws=np.arange(codes.shape[2]),
        distinct=np.ones(codes.shape[1:], dtype=bool),
    )
    return found, block, row, place


def _knn_distance(
    knn_distance: KnnDistance, register: Register, numbers: IntArray
) -> tuple[FloatArray, BoolArray]:
    """How near rows are to real accepted ones, and whether they are copies of one."""
    chosen = register.chosen(numbers)
    return knn_distance(register.lookup.points(chosen.owner, chosen.codes))


def _costs(block: Candidates, tolerance: float) -> tuple[IntArray, FloatArray]:
    """Sparsity and Gower distance of each candidate."""
    sparsity, total = np.zeros(block.shape, dtype=np.int64), np.zeros(block.shape)
    for feature, numbers in enumerate(block.comparison.numbers):
        changed, gap = differences(block.comparison, feature)
        sparsity += changed & (gap > tolerance) if tolerance and numbers is not None else changed
        total += gap
    return sparsity, total / block.comparison.n_features
