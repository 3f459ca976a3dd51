"""How unusual levels are to a forest: the nodes on their rows' paths that do not hold them.

A node holds a level if one of its training rows has it; with ``contradictions``, every level that
it does not contradict. What it holds is a set of levels, or, where a set per node would take too
much memory, found by counting the level among the node's values. Both give the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._types import BoolArray, Codes, IntArray, WordArray
from ._trees import LEAF, WORD_BITS, Forest, in_set, pack_set

# A node contradicts a level that fewer than one in CONTRADICTION of the expected rows have, given
# the level's share of all rows. Below CHANCE expected rows, the lack may be chance.
CONTRADICTION, CHANCE = 100, 5
# Nodes have sets of levels of categories with at most so many.
MOST_LEVELS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """A forest and the levels that each node holds of the category that its tree predicts."""

    forest: Forest
    contradictions: bool
    size: Codes
    offset: IntArray
    sets: WordArray


def gather_holdings(
    forest: Forest, *, contradictions: bool, most_levels: int = MOST_LEVELS
) -> Holdings:
    """The levels that every node holds."""
    trees = forest.trees
    n_nodes = trees.feature.size
    held = Holdings(
        forest,
        contradictions,
        size=np.zeros(n_nodes, dtype=np.int32),
        offset=np.full(n_nodes, -1, dtype=np.int64),
        sets=np.empty(0, dtype=np.uint64),
    )
    ends, words = [*trees.roots[1:].tolist(), n_nodes], [held.sets]
    for tree, (first, last) in enumerate(zip(trees.roots.tolist(), ends, strict=True)):
        values = _values_of_nodes(forest, first, last)
        n = int(forest.n_levels[forest.responses[tree]])
        for node in range(first, last):
            held.size[node] = values[node].size
            if n <= most_levels:
                held.offset[node] = sum(map(np.size, words))
                words.append(pack_set(_levels_of(values[node], values[first], n, contradictions)))
    return replace(held, sets=np.concatenate(words))


def _values_of_nodes(forest: Forest, first: int, last: int) -> dict[int, Codes]:
    """Response codes of the training rows of each node of one tree."""
    trees, values = forest.trees, dict[int, Codes]()
    for node in reversed(range(first, last)):
        children = int(trees.left[node]), int(trees.right[node])
        leaf = trees.values[trees.start[node] :][: trees.count[node]]
        inner = trees.feature[node] != LEAF
        values[node] = np.concatenate([values[c] for c in children]) if inner else leaf
    return values


def _levels_of(values: Codes, everybody: Codes, n_levels: int, contradictions: bool) -> BoolArray:
    """Levels that a node with these values holds."""
    count, overall = (np.bincount(v, minlength=n_levels) for v in (values, everybody))
    return _fits(count, values.size, overall, everybody.size, contradictions)


def _fits(
    count: IntArray, size: IntArray | int, overall: IntArray, total: int, contradictions: bool
) -> BoolArray:
    """Whether nodes hold a level that ``count`` of their rows have, and ``overall`` of all."""
    if not contradictions:
        return count > 0
    expected = size * overall
    return (count * CONTRADICTION * total >= expected) | (expected < CHANCE * total)


def nonconformity(held: Holdings, codes: Codes) -> Codes:
    """Nonconformity score of each row per tree: size of the largest node that lacks its level."""
    trees, responses, n_levels = held.forest.trees, held.forest.responses, held.forest.n_levels
    score = np.zeros((responses.size, codes.shape[1]), dtype=np.int32)
    for tree, column in enumerate(responses):
        value = codes[column]
        walking = np.flatnonzero(value < n_levels[column])
        node = np.full(walking.size, trees.roots[tree])
        while walking.size:
            holds = _holds(held, tree, node, value[walking])
            score[tree, walking[~holds]] = held.size[node[~holds]]
            on = holds & (trees.feature[node] != LEAF)
            walking, node = walking[on], node[on]
            split = trees.feature[node]
            code = codes[split, walking]
            left = np.where(n_levels[split] > 0, in_set(trees, node, code), code <= trees.cut[node])
            node = np.where(left, trees.left[node], trees.right[node])
    return score


def _holds(held: Holdings, tree: int, node: IntArray, value: Codes) -> BoolArray:
    """Whether nodes of a tree hold levels, one each."""
    if held.offset[held.forest.trees.roots[tree]] < 0:
        return _counts_level(held, tree, node, value)
    return _has_level(held, node, value)


def _has_level(held: Holdings, node: IntArray, value: Codes) -> BoolArray:
    """Whether levels are in the sets of nodes."""
    word = held.sets[held.offset[node] + value // WORD_BITS]
    return (word >> (value % WORD_BITS).astype(np.uint64)) & np.uint64(1) == 1


def _counts_level(held: Holdings, tree: int, node: IntArray, value: Codes) -> BoolArray:
    """The same by counting: the values of a node are adjacent, as leaves stand in preorder."""
    trees, root = held.forest.trees, held.forest.trees.roots[tree]
    start = np.cumsum(trees.count) - trees.count

    def count(at: IntArray) -> IntArray:
        pairs = zip(at, value, strict=True)
        hits = [trees.values[start[n] :][: held.size[n]] == v for n, v in pairs]
        return np.array([np.count_nonzero(hit) for hit in hits], dtype=np.int64)

    overall, total = count(np.full(node.size, root)), int(held.size[root])
    return _fits(count(node), held.size[node].astype(np.int64), overall, total, held.contradictions)
