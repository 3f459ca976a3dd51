"""Every row that the chain could draw for one person, nearest first.

Beyond the paper, which draws some of them. The search visits the trees in order and tries every
value of the leaf reached, the own value first. It backtracks once the row can no longer have the
requested number of changes or, with enough rows listed, be nearer than the last of them.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

import numpy as np

from .._types import Codes, FloatArray, IntArray
from ._sample import ANY_LEAF, Limits
from ._trees import LEAF, Forest, descend, in_set

# Sums in another order of addition differ by less.
CLOSE = 1.0 - 2.0**-30


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """The person whose rows are listed."""

    given: Codes
    own: Codes
    stays: Codes
    limits: Limits | None
    costs: FloatArray
    offsets: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Enumerated:
    """Rows in order of total cost, then codes."""

    codes: Codes
    totals: FloatArray
    n_nodes: int
    complete: bool


def enumerate_rows(
    forest: Forest,
    person: Person,
    *,
    n_changes: int,
    n_best: int,
    max_nodes: int,
    after: tuple[float, Codes] | None = None,
) -> Enumerated:
    """The nearest rows with exactly ``n_changes`` changes that the forest could draw."""
    responses = forest.responses
    search = _Search(forest, person, n_changes, n_best, max_nodes, after)
    search.enter(0, 0, 0.0)
    codes = np.array([row for _, row in search.best], dtype=np.int32).reshape(-1, responses.size).T
    totals = np.array([total for total, _ in search.best], dtype=np.float64)
    return Enumerated(np.ascontiguousarray(codes), totals, search.n_nodes, search.complete)


@dataclass(slots=True, eq=False)
class _Search:
    forest: Forest
    person: Person
    n_changes: int
    n_best: int
    max_nodes: int
    after: tuple[float, Codes] | None
    n_nodes: int = 0
    complete: bool = True
    best: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    now: Codes = field(init=False)
    row: dict[int, tuple[int, float]] = field(default_factory=dict)
    forced: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.person.given.copy()
        n_trees = self.forest.responses.size
        must = [not self._can_stay(tree) for tree in range(n_trees)]
        self.forced = [sum(must[tree:]) for tree in range(n_trees + 1)]

    def enter(self, tree: int, n_changed: int, total: float) -> None:
        forest = self.forest
        n_left = forest.responses.size - tree
        if n_changed + self.forced[tree] > self.n_changes or n_changed + n_left < self.n_changes:
            return
        if len(self.best) == self.n_best and total * CLOSE > self.best[-1][0]:
            return
        if n_left == 0:
            self._offer()
            return
        self.complete &= self.n_nodes < self.max_nodes
        if not self.complete:
            return
        self.n_nodes += 1
        column = int(forest.responses[tree])
        leaf = int(descend(forest.trees, tree, self.now[:, None], forest.n_levels > 0)[0])
        stays, codes = self._outcomes(column, leaf)
        if stays:
            self.row[column] = int(self.person.own[column]), 0.0
            self.enter(tree + 1, n_changed, total)
        for code in codes if n_changed < self.n_changes else ():
            cost = float(self.person.costs[self.person.offsets[column] + code])
            self.row[column], self.now[column] = (code, cost), code
            self.enter(tree + 1, n_changed + 1, total + cost)
        self.now[column] = self.person.given[column]

    def _outcomes(self, column: int, leaf: int) -> tuple[bool, list[int]]:
        """Whether a leaf can give the own value, and which others."""
        trees, limits, own = self.forest.trees, self.person.limits, self.person.own[column]
        values = np.unique(trees.values[trees.start[leaf] :][: trees.count[leaf]])
        needed = self.person.stays[column]
        stays = bool(needed == ANY_LEAF or (values == needed).any())
        if limits is None or limits.first[column, 0] < 0:
            return stays, values[values != own].tolist()
        runs = limits.runs[limits.first[column, 0] : limits.last[column, 0]]
        low, high = limits.near[column, 0]
        values = np.concatenate(
            [values[:0], *(values[(values >= a) & (values <= b)] for a, b in runs)]
        )
        near = (low <= values) & (values <= high)
        stays = stays or not values.size or bool(near.any())
        return stays, values[~near & (values != own)].tolist()

    def _can_stay(self, tree: int) -> bool:
        """Whether some leaf can give the own value, whatever the trees before it give."""
        trees, responses = self.forest.trees, self.forest.responses
        column = int(responses[tree])
        open_nodes = [int(trees.roots[tree])]
        while open_nodes:
            at = open_nodes.pop()
            feature = trees.feature[at]
            if feature == LEAF:
                if trees.count[at] and self._outcomes(column, at)[0]:
                    return True
                continue
            code = self.now[feature]
            by_set = self.forest.n_levels[feature] > 0
            node, codes = np.array([at]), np.array([code])
            left = bool(in_set(trees, node, codes)[0]) if by_set else code <= trees.cut[at]
            both = feature in responses
            if both or not left:
                open_nodes.append(int(trees.right[at]))
            if both or left:
                open_nodes.append(int(trees.left[at]))
        return False

    def _offer(self) -> None:
        """Insert the current row among the best."""
        cells = [self.row[column] for column in sorted(self.row)]
        total = 0.0
        for _, cost in cells:
            total += cost
        entry = total, tuple(code for code, _ in cells)
        if self.after is None or entry > (self.after[0], tuple(self.after[1].tolist())):
            insort(self.best, entry)
            del self.best[self.n_best :]
