"""Trees in NumPy: as flat arrays, the descent through them, and growing by any rule of splitting.

Paper, section "Model". The compiled kernels grow and sample the trees of the method; here is what
other trees, saved files and densities need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ._random import absorb
from .structs import (
    LEAF,
    WORD_BITS,
    BoolArray,
    Codes,
    FloatArray,
    Growth,
    Int32Array,
    IntArray,
    SplitColumns,
    Trees,
    WordArray,
)

# Bits for sums over all training rows.
SUM_BITS = 62
# What the key of a node absorbs to give the keys of its children; no column has such a number.
LEFT_KEY, RIGHT_KEY = 2**32, 2**32 + 1


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


def join_trees(trees: Sequence[Trees], by_set: BoolArray) -> Trees:
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


def descend(trees: Trees, tree: int, codes: Codes, by_set: BoolArray) -> IntArray:
    """Leaf that each row reaches."""
    node = np.full(codes.shape[1], trees.roots[tree])
    walking = np.flatnonzero(trees.feature[node] != LEAF)
    while walking.size:
        split = node[walking]
        column = trees.feature[split]
        code = codes[column, walking]
        goes_left = np.where(by_set[column], in_set(trees, split, code), code <= trees.cut[split])
        node[walking] = np.where(goes_left, trees.left[split], trees.right[split])
        walking = walking[trees.feature[node[walking]] != LEAF]
    return node


def in_set(trees: Trees, node: IntArray, code: Codes) -> BoolArray:
    """Whether each code is in its node's set; arbitrary where a node has no set."""
    if not trees.sets.size:
        return np.zeros(code.shape, dtype=bool)
    word = trees.sets[(trees.cut[node] + code // WORD_BITS) % trees.sets.size]
    return (word >> (code % WORD_BITS).astype(np.uint64)) & np.uint64(1) == 1


def leaf_frequency(trees: Trees, leaf: IntArray, codes: Codes) -> tuple[IntArray, IntArray]:
    """How often each row's code occurs among the values of its leaf, and how many there are."""
    leaves = np.flatnonzero(trees.feature == LEAF)
    width = int(max(trees.values.max(initial=0), codes.max(initial=0))) + 2
    # Leaves and the values in them ascend, so the pairs (leaf, value) are sorted.
    held = np.repeat(leaves, trees.count[leaves]) * width + trees.values + 1
    wanted = leaf * width + codes + 1
    hits = np.searchsorted(held, wanted, side="right") - np.searchsorted(held, wanted, side="left")
    return hits, trees.count[leaf].astype(np.int64)


def fixed_point(values: FloatArray) -> IntArray:
    """Values as centred integers, scaled by a power of two so that any sum of them fits.

    Examples
    --------
    >>> units = fixed_point(np.array([1.0, 2.0, 4.0]))
    >>> (units - units[0]) // (units[1] - units[0])
    array([0, 1, 3])
    """
    low, high = values.min(), values.max()
    centred = values - (low + (high - low) / 2)
    largest = float(np.abs(centred).max())
    if largest == 0.0:
        return np.zeros(values.size, dtype=np.int64)
    exponent = SUM_BITS - 1 - values.size.bit_length() - math.frexp(largest)[1]
    return np.rint(np.ldexp(centred, exponent)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class NodeRows:
    """The rows of a node that is still to be split, its depth, and its random key."""

    row_numbers: IntArray
    depth: int
    key: WordArray


@dataclass(frozen=True, slots=True)
class Split:
    """A division of a node's rows: ``left_levels[code]`` for sets, ``code <= cut`` otherwise."""

    column: int
    gain: float
    cut: int
    left_levels: BoolArray | None
    goes_left: BoolArray


def grow_with(
    find_split: Callable[[NodeRows], Split | None],
    row_numbers: IntArray,
    response_codes: Codes,
    growth: Growth,
) -> Trees:
    """Tree whose splits a function chooses, as a struct of one."""
    draft = TreeDraft()
    waiting = [NodeRows(row_numbers, 0, np.array([growth.key], dtype=np.uint64))]
    while waiting:
        node = waiting.pop()
        split = find_split(node)
        if split is None:
            draft.add_leaf(np.sort(response_codes[node.row_numbers]))
            continue
        draft.add_split(split.column, split.cut, split.left_levels)
        left, right = node.row_numbers[split.goes_left], node.row_numbers[~split.goes_left]
        if split.column == growth.decision_column and not growth.grow_undesired:
            left = left[:0]
        for row_numbers, word in ((right, RIGHT_KEY), (left, LEFT_KEY)):
            waiting.append(NodeRows(row_numbers, node.depth + 1, absorb(node.key, word)))
    return draft.finish()


def split_after(
    columns: SplitColumns, column: int, gain: float, levels: Codes, last: int, goes_left: BoolArray
) -> Split:
    """The split after ``levels[last]``, with a side for every level the node does not hold."""
    cut = (int(levels[last]) + int(levels[last + 1])) // 2
    if not columns.by_set[column]:
        return Split(column, gain, cut, None, goes_left)
    left_is_larger = 2 * np.count_nonzero(goes_left) >= goes_left.size
    members = np.full(columns.n_codes[column] + 1, left_is_larger)
    if columns.ordered[column]:
        members[:-1] = np.arange(columns.n_codes[column]) <= cut
    else:
        members[levels[: last + 1]] = True
        members[levels[last + 1 :]] = False
    return Split(column, gain, cut, members, goes_left)


class TreeDraft:
    """A tree that is written node by node, in preorder."""

    def __init__(self) -> None:
        self.nodes: list[tuple[int, int, int, int]] = []
        self.sets: list[WordArray] = [np.empty(0, dtype=np.uint64)]
        self.values: list[Codes] = [np.empty(0, dtype=np.int32)]
        self.n_words = self.n_values = 0

    def add_leaf(self, values: Codes) -> None:
        """Add a leaf with values in ascending order."""
        self.nodes.append((LEAF, 0, self.n_values, values.size))
        self.values.append(values)
        self.n_values += values.size

    def add_split(self, column: int, cut: int, left_levels: BoolArray | None) -> None:
        """Add a split: ``left_levels[code]`` go left for sets, ``code <= cut`` otherwise."""
        if left_levels is not None:
            cut = self.n_words
            self.sets.append(pack_set(left_levels))
            self.n_words += self.sets[-1].size
        self.nodes.append((column, cut, 0, 0))

    def finish(self) -> Trees:
        """The tree, as a struct of one."""
        feature, cut, start, count = np.array(self.nodes, dtype=np.int64).T
        left, right = _children(feature)
        return Trees(
            roots=np.zeros(1, dtype=np.int64),
            feature=feature.astype(np.int32),
            cut=cut.astype(np.int32),
            left=left,
            right=right,
            start=start.copy(),
            count=count.astype(np.int32),
            sets=np.concatenate(self.sets),
            values=np.concatenate(self.values),
        )


def _children(feature: IntArray) -> tuple[Int32Array, Int32Array]:
    """Child nodes of a tree whose nodes stand in preorder: left is next, right is after it."""
    left, right = np.zeros((2, feature.size), dtype=np.int32)
    open_splits: list[int] = []
    for node, column in enumerate(feature):
        if node and feature[node - 1] == LEAF:
            right[open_splits.pop()] = node
        if column != LEAF:
            left[node] = node + 1
            open_splits.append(node)
    return left, right
