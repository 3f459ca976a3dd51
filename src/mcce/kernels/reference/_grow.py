"""One exact CART tree on integer codes: the specification of step 1's inner loop.

Paper, section "Model". A node takes the admissible split of largest gain: every cut of a numeric
or ordered column, every prefix of the level order of a categorical one, with at least
``min_samples_leaf`` rows on both sides. Ties go to the lowest column, then the lowest cut. As in
CART the best split is made even if it gains nothing; only a pure node, or one without an
admissible split, is a leaf. As in a random forest, a node may check some columns only, and the
splits may be chosen on a sample of the rows. Rules of :class:`Growth` keep columns of very many
levels near n log n; they never touch columns of up to 128 levels, and nodes of up to 1,024.

Always true: the order of rows cannot change a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...caching import cached_property
from .._types import BoolArray, Codes, IntArray, WordArray
from ._random import absorb
from ._responses import Response, run_ends
from ._trees import LEAF, WORD_BITS, Trees, descend, pack_set

# What the key of a node absorbs to give the keys of its children; no column has such a number.
LEFT_KEY, RIGHT_KEY = 2**32, 2**32 + 1


@dataclass(frozen=True, slots=True)
class Growth:
    """Which splits are admissible, and which column, if any, is a decision to skip."""

    min_samples_leaf: int = 5
    min_samples_split: int = 2
    max_depth: int | None = None
    decision_column: int | None = None
    grow_undesired: bool = False
    levels_per_row: int = WORD_BITS
    many_levels: int = 1024
    smallest_part: int = 10
    max_features: int | None = None
    key: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """The rows of a node that is still to be split, its depth, and its random key."""

    rows: IntArray
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


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns' codes and how each column may be split."""

    codes: Codes | Sequence[Codes]
    by_set: BoolArray
    ordered: BoolArray
    n_codes: IntArray

    @cached_property
    def narrow(self) -> list[np.ndarray]:
        """Each column in the smallest unsigned integers that hold its codes; views if possible."""
        narrow = []
        for codes, n in zip(self.codes, self.n_codes, strict=True):
            dtype = np.min_scalar_type(int(n) - 1)
            unsigned = codes.view(np.uint32) if dtype == np.uint32 else codes.astype(dtype)
            narrow.append(np.ascontiguousarray(unsigned))
        return narrow


def grow_tree(
    columns: Columns,
    inputs: IntArray,
    response: Response,
    response_codes: Codes,
    growth: Growth,
    drawn: IntArray | None = None,
) -> Trees:
    """Tree of ``response`` given the columns numbered in ``inputs``, as a struct of one."""

    def find_split(node: Node) -> Split | None:
        return _best_split(columns, inputs, node, response, growth)

    rows = np.arange(response_codes.size) if drawn is None else drawn
    tree = grow_with(find_split, rows, response_codes, growth)
    return tree if drawn is None else _fill(tree, columns, response_codes)


def grow_with(
    find_split: Callable[[Node], Split | None],
    rows: IntArray,
    response_codes: Codes,
    growth: Growth,
) -> Trees:
    """Tree whose splits a function chooses, as a struct of one."""
    draft = _Draft()
    waiting = [Node(rows, 0, np.array([growth.key], dtype=np.uint64))]
    while waiting:
        node = waiting.pop()
        split = find_split(node)
        if split is None:
            draft.add_leaf(np.sort(response_codes[node.rows]))
            continue
        draft.add_split(split)
        left, right = node.rows[split.goes_left], node.rows[~split.goes_left]
        if split.column == growth.decision_column and not growth.grow_undesired:
            left = left[:0]
        for rows, word in ((right, RIGHT_KEY), (left, LEFT_KEY)):
            waiting.append(Node(rows, node.depth + 1, absorb(node.key, word)))
    return draft.finish()


def _fill(tree: Trees, columns: Columns, response_codes: Codes) -> Trees:
    """The tree with all rows in its leaves; those that were never grown stay empty."""
    leaf = descend(tree, 0, np.asarray(columns.codes), columns.by_set)
    kept = tree.count[leaf] > 0
    leaf, values = leaf[kept], response_codes[kept]
    count = np.bincount(leaf, minlength=tree.count.size)
    start = np.where(tree.feature == LEAF, np.cumsum(count) - count, 0)
    order = np.lexsort((values, leaf))
    return replace(tree, start=start, count=count.astype(np.int32), values=values[order])


class _Draft:
    """Nodes in preorder as they are found."""

    def __init__(self) -> None:
        self.nodes: list[tuple[int, int, int, int]] = []
        self.sets: list[WordArray] = [np.empty(0, dtype=np.uint64)]
        self.values: list[Codes] = [np.empty(0, dtype=np.int32)]
        self.n_words = self.n_values = 0

    def add_leaf(self, values: Codes) -> None:
        self.nodes.append((LEAF, 0, self.n_values, values.size))
        self.values.append(values)
        self.n_values += values.size

    def add_split(self, split: Split) -> None:
        cut = split.cut
        if split.left_levels is not None:
            cut = self.n_words
            self.sets.append(pack_set(split.left_levels))
            self.n_words += self.sets[-1].size
        self.nodes.append((split.column, cut, 0, 0))

    def finish(self) -> Trees:
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


def _children(feature: IntArray) -> tuple[Codes, Codes]:
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


def _best_split(
    columns: Columns, inputs: IntArray, node: Node, response: Response, growth: Growth
) -> Split | None:
    """Admissible split of largest gain, or None where the node is a leaf."""
    smallest = max(growth.min_samples_split, 2 * growth.min_samples_leaf, 2)
    too_deep = growth.max_depth is not None and node.depth >= growth.max_depth
    if node.rows.size < smallest or too_deep:
        return None
    inside = response.take(node.rows)
    if inside.is_pure():
        return None
    best: Split | None = None
    n_checked = 0
    for column in inputs if growth.max_features is None else _shuffle(inputs, node.key):
        split = best_split_of(columns, int(column), node.rows, inside, growth)
        if split is None:
            continue
        if best is None or (split.gain, -split.column) > (best.gain, -best.column):
            best = split
        n_checked += 1
        if n_checked == growth.max_features:
            break
    return best


def _shuffle(inputs: IntArray, key: WordArray) -> IntArray:
    """The columns in the random order of a node."""
    return inputs[np.argsort(absorb(key, inputs))]


def best_split_of(
    columns: Columns, column: int, rows: IntArray, inside: Response, growth: Growth
) -> Split | None:
    """Admissible split on one column with the largest gain, the lowest cut of those."""
    if columns.by_set[column] and columns.n_codes[column] > growth.levels_per_row * rows.size:
        return None
    codes = columns.codes[column][rows]
    order = np.argsort(codes, kind="stable")
    n_left = run_ends(codes[order])
    if not n_left.size:
        return None
    levels = codes[order[np.append(n_left, rows.size) - 1]]
    places = codes
    if not columns.ordered[column]:
        # From here on a level is its place in the level order; ties stay by level number.
        means = inside.level_means(order, np.append(0, n_left))
        levels = levels[np.argsort(means, kind="stable")]
        place_of = np.empty(columns.n_codes[column], dtype=np.int32)
        place_of[levels] = np.arange(levels.size)
        places = place_of[codes]
        order = np.argsort(places, kind="stable")
        n_left = run_ends(places[order])
    least = _smallest_side(columns, column, levels.size, rows.size, inside, growth)
    cuts = np.flatnonzero((n_left >= least) & (n_left <= rows.size - least))
    if not cuts.size:
        return None
    gains = inside.gains(order, n_left[cuts])
    best = int(np.argmax(gains))
    last = int(cuts[best])
    goes_left = places <= places[order[n_left[last] - 1]]
    return split_after(columns, column, float(gains[best]), levels, last, goes_left)


def _smallest_side(
    columns: Columns, column: int, n_levels: int, n_rows: int, inside: Response, growth: Growth
) -> int:
    """How many rows a split on a column must leave on either side of a node."""
    many = not columns.ordered[column] and n_levels > growth.many_levels
    many |= columns.n_codes[column] > 2 and inside.n_classes_present() > growth.many_levels
    part = -(-n_rows // growth.smallest_part) if many else 0
    return max(growth.min_samples_leaf, part)


def split_after(
    columns: Columns, column: int, gain: float, levels: Codes, last: int, goes_left: BoolArray
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
