"""Step 2's inner loop: draw candidates from the leaves of the chain.

Paper, Algorithm 1. Every row carries the immutable codes of its person and the decision; each
tree in turn sends the rows to their leaves, where one training value is drawn uniformly: of all
that the leaf holds, or of those within a person's limits. Beyond the paper, a draw backs off: where
the leaf holds too few of these, it is drawn from the smallest node above that holds enough. And of
several trees that predict a column, one is drawn before the row descends it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import BoolArray, Codes, IntArray, WordArray
from ._random import draw_keys, happens, pick, pick_other
from ._trees import LEAF, NO_NODE, Forest, NodeSlices, Trees, descend, node_slices

# The own value may stay whatever a leaf holds.
ANY_LEAF = -2


@dataclass(frozen=True, slots=True)
class Limits:
    """What the draws of each group are restricted to.

    The own value is kept where a node holds no allowed code, and where the code drawn is near the
    own one. So a column without runs never changes.
    """

    own: Codes
    first: IntArray
    last: IntArray
    runs: Codes
    near: Codes


@dataclass(frozen=True, slots=True)
class Guide:
    """Own values that draws prefer to keep."""

    own: Codes
    stays: Codes
    often: int


def sample(
    forest: Forest,
    given: Codes,
    keys: WordArray,
    draws: IntArray,
    limits: Limits | None = None,
    guide: Guide | None = None,
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
        if guide is not None:
            own, needed = np.repeat([guide.own[column], guide.stays[column]], draws.size, axis=1)
            stays = _holds(trees, held, node, needed)
            stays |= needed == ANY_LEAF
            stays &= happens(row_keys, column + len(given), guide.often)
            kept |= stays
            drawn[column] = np.where(kept, own, drawn[column])
        codes[column] = np.where(kept, codes[column], drawn[column])
    responses = np.unique(forest.responses)
    return drawn[responses].reshape(responses.size, keys.size, draws.size)


def _find_leaves(
    forest: Forest, column: int, codes: Codes, row_keys: WordArray, limits: Limits | None
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


def _count_allowed(trees: Trees, leaves: IntArray, column: int, limits: Limits | None) -> IntArray:
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
    limits: Limits | None,
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


def _holds(trees: Trees, held: NodeSlices, node: IntArray, codes: Codes) -> BoolArray:
    """Whether each row's code is among the values of its node."""
    slices = zip(held.first[node], held.end[node], codes, strict=True)
    return np.array([code in trees.values[first:end] for first, end, code in slices], dtype=bool)


def _within(
    limits: Limits, column: int, group: int, nodes: list[Codes], row_keys: WordArray
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


def hold(limits: Limits, codes: Codes, columns: IntArray) -> Codes:
    """Codes of a generator without limits, replaced by the own ones where they are not allowed."""
    held = codes.copy()
    for row, column in enumerate(columns):
        for group in np.flatnonzero(limits.first[column] >= 0):
            runs = limits.runs[limits.first[column, group] : limits.last[column, group]]
            low, high = limits.near[column, group]
            drawn = codes[row, group]
            inside = np.zeros(drawn.size, dtype=bool)
            for a, b in runs:
                inside |= (drawn >= a) & (drawn <= b)
            inside &= ~((drawn >= low) & (drawn <= high))
            held[row, group] = np.where(inside, drawn, limits.own[column, group])
    return held


def leaf_frequency(trees: Trees, leaf: IntArray, codes: Codes) -> tuple[IntArray, IntArray]:
    """How often each row's code occurs among the values of its leaf, and how many there are."""
    leaves = np.flatnonzero(trees.feature == LEAF)
    width = int(max(trees.values.max(initial=0), codes.max(initial=0))) + 2
    # Leaves and the values in them ascend, so the pairs (leaf, value) are sorted.
    held = np.repeat(leaves, trees.count[leaves]) * width + trees.values + 1
    wanted = leaf * width + codes + 1
    hits = np.searchsorted(held, wanted, side="right") - np.searchsorted(held, wanted, side="left")
    return hits, trees.count[leaf].astype(np.int64)
