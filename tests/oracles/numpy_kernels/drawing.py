"""Step 2's inner loop, and every row that it could draw for one person, nearest first.

Paper, Algorithm 1. Every row carries the immutable codes of its person and the decision; each
tree in turn sends the rows to their leaves, where one training value is drawn uniformly: of all
that the leaf holds, or of those within a person's limits. Beyond the paper, a draw backs off: where
the leaf holds too few of these, it is drawn from the smallest node above that holds enough. And of
several trees that predict a column, one is drawn before the row descends it.

To list all rows, the search visits the trees in order and tries every value of the leaf reached,
the own value first. It backtracks once the row can no longer have the requested number of changes
or, with enough rows listed, be nearer than the last of them.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

import numpy as np

from mcce.kernels import (
    ANY_LEAF,
    LEAF,
    BoolArray,
    Codes,
    DrawLimits,
    Enumerated,
    Forest,
    IntArray,
    Person,
    Trees,
    WordArray,
    descend,
    draw_keys,
    pick,
)
from mcce.kernels._random import absorb
from mcce.kernels.trees import in_set

NO_NODE = -1
# Sums in another order of addition differ by less.
CLOSE = 1.0 - 2.0**-30


def sample(
    forest: Forest,
    given: Codes,
    keys: WordArray,
    draws: IntArray,
    limits: DrawLimits | None = None,
    least: IntArray | None = None,
) -> Codes:
    """Codes drawn for each response, in column order, shape (n_responses, n_groups, n_draws)."""
    trees = forest.trees
    held = node_slices(trees)
    codes = np.repeat(given, draws.size, axis=1)
    drawn = codes.copy()
    row_keys = draw_keys(keys, draws).ravel()
    for column in dict.fromkeys(forest.responses.tolist()):
        node = _find_leaves(forest, column, codes, row_keys, limits)
        if least is not None:
            node = _back_off(trees, held, node, limits, column, least)
        chosen = pick(row_keys, column, held.end[node] - held.first[node])
        drawn[column] = trees.values[held.first[node] + chosen]
        kept = np.zeros(row_keys.size, dtype=bool)
        if limits is not None:
            for group in np.flatnonzero(limits.first[column] >= 0):
                rows = np.arange(group * draws.size, (group + 1) * draws.size)
                values = [trees.values[held.first[at] : held.end[at]] for at in node[rows]]
                drawn[column, rows], kept[rows] = _within(
                    limits, column, int(group), values, row_keys[rows]
                )
        codes[column] = np.where(kept, codes[column], drawn[column])
    responses = np.unique(forest.responses)
    return drawn[responses].reshape(responses.size, keys.size, draws.size)


def _find_leaves(
    forest: Forest, column: int, codes: Codes, row_keys: WordArray, limits: DrawLimits | None
) -> IntArray:
    """The leaf of each row: in the tree of a column, or in the one drawn of several."""
    own, by_set = np.flatnonzero(forest.responses == column), forest.n_levels > 0
    leaves = np.array([descend(forest.trees, int(tree), codes, by_set) for tree in own])
    if own.size == 1:
        return leaves[0]
    weights = np.ones(leaves.shape, dtype=np.int64)
    if forest.pooled:
        weights = _count_allowed(forest.trees, leaves, column, limits)
    ends = np.cumsum(weights, axis=0)
    place = pick_other(row_keys, column, ends[-1])
    # Where no leaf holds an allowed value, the first tree stands for all.
    chosen = np.where(ends[-1] > 0, (ends <= place).sum(axis=0), 0)
    return leaves[chosen, np.arange(row_keys.size)]


def _count_allowed(
    trees: Trees, leaves: IntArray, column: int, limits: DrawLimits | None
) -> IntArray:
    """How many values of each leaf, shape (n_trees, n_rows), the group of a row may have."""
    counts = trees.count[leaves].astype(np.int64)
    if limits is None:
        return counts
    n_draws = leaves.shape[1] // limits.first.shape[1]
    for group in np.flatnonzero(limits.first[column] >= 0):
        runs = limits.runs[limits.first[column, group] : limits.last[column, group]]
        n_before = np.append(0, np.cumsum(_inside(runs, trees.values)))
        rows = slice(group * n_draws, (group + 1) * n_draws)
        start = trees.start[leaves[:, rows]]
        counts[:, rows] = n_before[start + counts[:, rows]] - n_before[start]
    return counts


def _back_off(
    trees: Trees,
    held: NodeSlices,
    leaf: IntArray,
    limits: DrawLimits | None,
    column: int,
    least: IntArray,
) -> IntArray:
    """The leaf of each row, or the first node above that holds enough allowed values."""
    nodes = leaf.reshape(-1, least.size).copy()
    for group, node in enumerate(nodes):
        allowed = np.ones(trees.values.size, dtype=bool)
        if limits is not None and limits.first[column, group] >= 0:
            runs = limits.runs[limits.first[column, group] : limits.last[column, group]]
            allowed = _inside(runs, trees.values)
        n_before = np.append(0, np.cumsum(allowed))
        n_allowed = n_before[held.end] - n_before[held.first]
        while True:
            small = (n_allowed[node] < least) & (held.above[node] != NO_NODE)
            if not small.any():
                break
            node[small] = held.above[node[small]]
    return nodes.ravel()


def _within(
    limits: DrawLimits, column: int, group: int, nodes: list[Codes], row_keys: WordArray
) -> tuple[Codes, BoolArray]:
    """The code drawn in each row, and whether it is the own one."""
    runs = limits.runs[limits.first[column, group] : limits.last[column, group]]
    low, high = limits.near[column, group]
    drawn = np.full(row_keys.size, limits.own[column, group], dtype=np.int32)
    kept = np.ones(row_keys.size, dtype=bool)
    for row, values in enumerate(nodes):
        allowed = values[_inside(runs, values)]
        if allowed.size:
            chosen = pick(row_keys[row : row + 1], column, np.array([allowed.size]))
            code = allowed[chosen[0]]
            if not low <= code <= high:
                drawn[row], kept[row] = code, False
    return drawn, kept


def _inside(runs: Codes, values: Codes) -> BoolArray:
    """Which values are in a run."""
    low, high = runs.T
    inside: BoolArray = ((low <= values[:, None]) & (values[:, None] <= high)).any(axis=1)
    return inside


def pick_other(row_keys: WordArray, position: int, counts: IntArray) -> IntArray:
    """The same with the low 32 bits of the draw, which say nothing of the high ones."""
    low = absorb(row_keys, position) & np.uint64(2**32 - 1)
    return ((low * counts.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class NodeSlices:
    """What every node holds: the values of the leaves below it are adjacent."""

    above: IntArray
    first: IntArray
    end: IntArray


def node_slices(trees: Trees) -> NodeSlices:
    """The parent and the values of every node."""
    above = np.full(trees.feature.size, NO_NODE)
    first, end = trees.start.copy(), trees.start + trees.count
    # Children come after their parents.
    for node in np.flatnonzero(trees.feature != LEAF)[::-1]:
        left, right = trees.left[node], trees.right[node]
        above[left] = above[right] = node
        first[node], end[node] = first[left], end[right]
    return NodeSlices(above, first, end)


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
