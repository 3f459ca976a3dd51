"""Many trees as one flat struct of arrays, and the descent through them.

Shared by growing, sampling, saving and the equality tests. A node is an entry of the node arrays;
the nodes of a tree are adjacent, in preorder, left child before right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from .._types import BoolArray, Codes, IntArray, WordArray

LEAF = -1
NO_NODE = -1
WORD_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Flat arrays of all nodes, all level sets and all leaf values of a list of trees."""

    roots: IntArray
    feature: Codes
    cut: Codes
    left: Codes
    right: Codes
    start: IntArray
    count: Codes
    sets: WordArray
    values: Codes


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees with the columns that they predict and split."""

    trees: Trees
    responses: IntArray
    n_levels: IntArray
    pooled: bool = False


def pack_set(members: BoolArray) -> WordArray:
    """Bitset of the true positions, 64 positions a word.

    Examples
    --------
    >>> pack_set(np.array([True, False, True]))
    array([5], dtype=uint64)
    """
    padded = np.zeros(-(-members.size // WORD_BITS) * WORD_BITS, dtype=bool)
    padded[: members.size] = members
    shifts = np.arange(WORD_BITS, dtype=np.uint64)
    words = padded.reshape(-1, WORD_BITS).astype(np.uint64) << shifts
    return np.bitwise_or.reduce(words, axis=1)


def join(trees: Sequence[Trees], by_set: BoolArray) -> Trees:
    """One struct that holds all the trees, in order; ``by_set`` marks the categorical columns."""
    joined = Trees(
        *(np.concatenate([getattr(tree, f.name) for tree in trees]) for f in fields(Trees))
    )
    n_nodes, n_words, n_values = np.int32(0), np.int32(0), 0
    for number, tree in enumerate(trees):
        own = slice(int(n_nodes), int(n_nodes) + tree.feature.size)
        inner = tree.feature != LEAF
        joined.roots[number] += n_nodes
        joined.cut[own] += n_words * (inner & by_set[tree.feature])
        joined.left[own] += n_nodes * inner
        joined.right[own] += n_nodes * inner
        joined.start[own] += n_values * ~inner
        n_nodes += np.int32(tree.feature.size)
        n_words += np.int32(tree.sets.size)
        n_values += tree.values.size
    return joined


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


def descend(trees: Trees, tree: int, codes: Codes, by_set: BoolArray) -> IntArray:
    """Leaf that each row reaches."""
    node = np.full(codes.shape[1], trees.roots[tree])
    walking = np.flatnonzero(trees.feature[node] != LEAF)
    while walking.size:
        at = node[walking]
        column = trees.feature[at]
        code = codes[column, walking]
        left = np.where(by_set[column], in_set(trees, at, code), code <= trees.cut[at])
        node[walking] = np.where(left, trees.left[at], trees.right[at])
        walking = walking[trees.feature[node[walking]] != LEAF]
    return node


def in_set(trees: Trees, node: IntArray, code: Codes) -> BoolArray:
    """Whether each code is in its node's set; meaningless, but harmless, where there is none."""
    if not trees.sets.size:
        return np.zeros(code.shape, dtype=bool)
    word = trees.sets[(trees.cut[node] + code // WORD_BITS) % trees.sets.size]
    return (word >> (code % WORD_BITS).astype(np.uint64)) & np.uint64(1) == 1
