"""Which of a person's rows to return, among those that the walks have come to.

Beyond the paper. Rows inside the support come first. Among them, rows of at most so many changes
above the person's fewest stand in the order of what is preferred: near to real accepted rows, near
to the person, or both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .candidates import Candidates
from .diversity import diverse_ranks
from .kernels import BoolArray, FloatArray, IntArray, differences
from .nearness import Nearness
from .postprocess import Ranking
from .schema import OWN
from .searches import Prefer
from .walk import Walk

# The cost of "both": nearness, so much of l1, and so much for each change above the fewest.
L1, CHANGE = 0.5, 0.2


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
    nearness: Nearness
    ranking: Ranking


@dataclass(frozen=True, eq=False)
class Selection:
    """Walks whose rows are returned: which, its rank for its person, and what it costs."""

    walk: IntArray
    rank: IntArray
    sparsity: IntArray
    gower: FloatArray


def choose(choice: Choice, candidates: Candidates, walk: Walk) -> Selection:
    """The best rows of everybody, among distinct ones that may be returned."""
    ranking = choice.ranking
    found, block, row, place = _arrivals(candidates, walk)
    allowed: BoolArray = np.zeros(block.shape, dtype=bool)
    outside, nearness = np.zeros(block.shape, dtype=bool), np.zeros(block.shape)
    at = walk.at[found]
    chosen = walk.register.chosen(at)
    allowed[row, place] = True
    outside[row, place] = walk.register.n_outside[at] > 0
    nearness[row, place] = choice.nearness(walk.register.lookup.points(chosen.owner, chosen.codes))
    sparsity, gower = _costs(block, ranking.tolerance)
    distance = ranking.distance(block)
    if ranking.max_sparsity is not None:
        allowed &= sparsity <= ranking.max_sparsity
    if ranking.max_distance is not None:
        allowed &= distance <= ranking.max_distance

    inside: BoolArray = allowed & ~outside
    best = np.where(inside.any(axis=1, keepdims=True), inside, allowed)
    fewest = np.where(best, sparsity, len(block.comparison.codes)).min(axis=1)
    above = sparsity - fewest[:, None]
    cost = {
        "nearness": nearness,
        "distance": distance,
        "both": nearness + L1 * distance * block.comparison.n_features + CHANGE * above,
    }[choice.prefer]
    order = np.lexsort((cost, np.maximum(above - choice.slack, 0), outside, ~allowed), axis=-1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(1, order.shape[1] + 1)[None], axis=1)
    rank = np.where(allowed, rank, 0)[row, place]
    if ranking.diversity is not None:
        kept = np.flatnonzero(rank)
        rank[kept] = diverse_ranks(
            block.comparison,
            row[kept],
            place[kept].astype(np.int32),
            rank[kept] - 1,
            gower[row[kept], place[kept]],
            n_counterfactuals=ranking.n_counterfactuals,
            diversity=ranking.diversity,
        )
    taken = np.flatnonzero((rank > 0) & (rank <= ranking.n_counterfactuals))
    row, place = row[taken], place[taken]
    return Selection(found[taken], rank[taken], sparsity[row, place], gower[row, place])


def _arrivals(
    candidates: Candidates, walk: Walk
) -> tuple[IntArray, Candidates, IntArray, IntArray]:
    """Walks to distinct rows, all rows as candidates of their people, and where each stands."""
    may = np.flatnonzero(walk.arrived & walk.register.allowed[walk.at])
    found = may[np.unique(walk.at[may], return_index=True)[1]]
    found = found[np.lexsort((found, walk.person[found]))]
    people, first, row, count = np.unique(
        walk.person[found], return_index=True, return_inverse=True, return_counts=True
    )
    place = np.arange(found.size) - first[row]
    own = candidates.comparison.own_codes[:, people]
    codes = np.repeat(own[:, :, None], max(int(count.max(initial=0)), 1), axis=2)
    cells = walk.register.cells[walk.at[found], 1:].T
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


def _costs(block: Candidates, tolerance: float) -> tuple[IntArray, FloatArray]:
    """Sparsity and Gower distance of each candidate."""
    sparsity, total = np.zeros(block.shape, dtype=np.int64), np.zeros(block.shape)
    for feature, numbers in enumerate(block.comparison.numbers):
        changed, gap = differences(block.comparison, feature)
        sparsity += changed & (gap > tolerance) if tolerance and numbers is not None else changed
        total += gap
    return sparsity, total / block.comparison.n_features
