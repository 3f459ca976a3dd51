"""One exact CART tree on integer codes: the specification of step 1's inner loop.

Paper, section "Model". A node takes the admissible split of largest gain: every cut of a numeric
or ordered column, every prefix of the level order of a categorical one, with at least
``min_samples_leaf`` rows on both sides. Ties go to the lowest column, then the lowest cut. As in
CART the best split is made even if it gains nothing; only a pure node, or one without an
admissible split, is a leaf. Rules of :class:`Growth` keep columns of very many levels near n log n;
they never touch columns of up to 128 levels, and nodes of up to 1,024.

Always true: all sums are integers, so neither the order of rows nor the machine can change a bit;
gains are float64 by the two formulas below, which treat left and right alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...caching import cached_property
from .._types import BoolArray, Codes, FloatArray, IntArray, WordArray
from ._trees import LEAF, WORD_BITS, Trees, pack_set

SUM_BITS = 62


class Response(Protocol):
    """What a node wants to be pure in; implementations below."""

    def take(self, rows: IntArray) -> Response: ...
    def is_pure(self) -> bool: ...
    def n_classes_present(self) -> int: ...
    def level_means(self, order: IntArray, starts: IntArray) -> FloatArray: ...
    def gains(self, order: IntArray, n_left: IntArray) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numeric response: squared error over fixed-point integers."""

    units: IntArray

    def take(self, rows: IntArray) -> Numbers:
        return Numbers(self.units[rows])

    def is_pure(self) -> bool:
        return bool((self.units == self.units[0]).all())

    def n_classes_present(self) -> int:
        return 0

    def level_means(self, order: IntArray, starts: IntArray) -> FloatArray:
        """Mean response of each level, measured from the node's floor mean."""
        sums = np.add.reduceat(self._centred()[order], starts)
        return sums / (np.append(starts[1:], order.size) - starts)

    def gains(self, order: IntArray, n_left: IntArray) -> FloatArray:
        """Fall of squared error: (mean left - mean right)^2 * (n_left * n_right / n)."""
        sums = np.cumsum(self._centred()[order])
        n_right = order.size - n_left
        left = sums[n_left - 1]
        gap = left / n_left - (sums[-1] - left) / n_right
        return (gap * gap) * (n_left.astype(np.float64) * n_right / order.size)

    def _centred(self) -> IntArray:
        # Exact: n_train * max|units| < 2^62 leaves room for one subtraction of the mean.
        return self.units - self.units.sum() // self.units.size


@dataclass(frozen=True, slots=True)
class Classes:
    """Categorical response: Gini over class counts."""

    classes: IntArray
    n_classes: int

    def take(self, rows: IntArray) -> Classes:
        return Classes(self.classes[rows], self.n_classes)

    def is_pure(self) -> bool:
        return bool((self.classes == self.classes[0]).all())

    def n_classes_present(self) -> int:
        return np.unique(self.classes).size

    def level_means(self, order: IntArray, starts: IntArray) -> FloatArray:
        """Share in each level of the second of two classes, or of the node's most frequent."""
        target = 1 if self.n_classes == 2 else np.argmax(np.bincount(self.classes))
        hits = (self.classes[order] == target).astype(np.int64)
        return np.add.reduceat(hits, starts) / (np.append(starts[1:], order.size) - starts)

    def gains(self, order: IntArray, n_left: IntArray) -> FloatArray:
        """Fall of n * Gini: Q_left / n_left + Q_right / n_right - Q / n, Q = sum of counts^2.

        A row that goes left when ``seen`` of its class stand there already adds 2 seen + 1 to
        Q_left, so no array has a side for the classes, however many there are.
        """
        classes = self.classes[order]
        totals = np.bincount(classes, minlength=self.n_classes)
        squares_left = np.cumsum(2 * _times_seen_before(classes) + 1)[n_left - 1]
        cross = np.cumsum(totals[classes])[n_left - 1]
        squares = (totals * totals).sum()
        squares_right = squares - 2 * cross + squares_left
        n_right = order.size - n_left
        return squares_left / n_left + squares_right / n_right - squares / order.size


@dataclass(frozen=True, slots=True)
class Growth:
    """Which splits are admissible, and which column, if any, holds a decision not to be followed.

    Parameters
    ----------
    min_samples_leaf
        Smallest number of rows on either side of a split.
    min_samples_split
        Smallest number of rows in a node that is split.
    max_depth
        Greatest depth; None for no limit.
    decision_column, grow_undesired
        Rows with code 0 in this column are never reached if ``grow_undesired`` is False: the
        branch that holds only them stays an empty leaf.
    levels_per_row
        A categorical column with more levels per row of a node does not split it. So no set of
        levels takes more words than its node has rows.
    many_levels, smallest_part
        In a node with more than ``many_levels`` classes (2 or more), a split must leave at least
        one in ``smallest_part`` rows on either side, and so must a split by more than
        ``many_levels`` unordered levels (alpha-regular splits, as in Wager and Athey's random
        forests). If all classes differ, all splits gain the same, and taking the first would make
        the tree as deep as it has rows. Columns of two codes, such as a rare decision, may split
        many classes unevenly, as they split a path only once.
    """

    min_samples_leaf: int = 5
    min_samples_split: int = 2
    max_depth: int | None = None
    decision_column: int | None = None
    grow_undesired: bool = False
    levels_per_row: int = WORD_BITS
    many_levels: int = 1024
    smallest_part: int = 10


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
    """The columns' codes and how each column may be split.

    Parameters
    ----------
    codes : (n_columns, n_train)
        Descent codes: an array, or one for each column.
    by_set : (n_columns,)
        Categorical columns, whose splits are stored as sets of levels.
    ordered : (n_columns,)
        Columns whose own order is the order of cuts: numeric ones and ordered categories.
    n_codes : (n_columns,)
        Number of codes, missing included.
    """

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


def grow_tree(
    columns: Columns,
    inputs: IntArray,
    response: Response,
    response_codes: Codes,
    growth: Growth,
) -> Trees:
    """Tree of ``response`` given the columns numbered in ``inputs``, as a struct of one.

    Parameters
    ----------
    columns
        All columns; only those in ``inputs`` are split on.
    inputs : (n_inputs,)
        Ascending column numbers.
    response
        What the nodes are made pure in, one entry per training row.
    response_codes : (n_train,)
        What the leaves keep.
    growth
        When to stop.
    """
    draft = _Draft()
    waiting = [(np.arange(response_codes.size), 0)]
    while waiting:
        rows, depth = waiting.pop()
        split = _best_split(columns, inputs, rows, response, growth, depth)
        if split is None:
            draft.add_leaf(np.sort(response_codes[rows]))
            continue
        draft.add_split(split)
        left, right = rows[split.goes_left], rows[~split.goes_left]
        if split.column == growth.decision_column and not growth.grow_undesired:
            left = left[:0]
        waiting += [(right, depth + 1), (left, depth + 1)]
    return draft.finish()


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
    columns: Columns,
    inputs: IntArray,
    rows: IntArray,
    response: Response,
    growth: Growth,
    depth: int,
) -> Split | None:
    """Admissible split of largest gain, or None where the node is a leaf."""
    smallest = max(growth.min_samples_split, 2 * growth.min_samples_leaf, 2)
    if rows.size < smallest or (growth.max_depth is not None and depth >= growth.max_depth):
        return None
    inside = response.take(rows)
    if inside.is_pure():
        return None
    best: Split | None = None
    for column in inputs:
        split = best_split_of(columns, int(column), rows, inside, growth)
        if split is not None and (best is None or split.gain > best.gain):
            best = split
    return best


def best_split_of(
    columns: Columns, column: int, rows: IntArray, inside: Response, growth: Growth
) -> Split | None:
    """Admissible split on one column with the largest gain, the lowest cut of those."""
    if columns.by_set[column] and columns.n_codes[column] > growth.levels_per_row * rows.size:
        return None
    codes = columns.codes[column][rows]
    order = np.argsort(codes, kind="stable")
    n_left = _run_ends(codes[order])
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
        n_left = _run_ends(places[order])
    least = _smallest_side(columns, column, levels.size, rows.size, inside, growth)
    cuts = np.flatnonzero((n_left >= least) & (n_left <= rows.size - least))
    if not cuts.size:
        return None
    gains = inside.gains(order, n_left[cuts])
    best = int(np.argmax(gains))
    last = int(cuts[best])
    goes_left = places <= places[order[n_left[last] - 1]]
    return _split(columns, column, float(gains[best]), levels, last, goes_left)


def _smallest_side(
    columns: Columns, column: int, n_levels: int, n_rows: int, inside: Response, growth: Growth
) -> int:
    """How many rows a split on a column must leave on either side of a node."""
    many = not columns.ordered[column] and n_levels > growth.many_levels
    many |= columns.n_codes[column] > 2 and inside.n_classes_present() > growth.many_levels
    part = -(-n_rows // growth.smallest_part) if many else 0
    return max(growth.min_samples_leaf, part)


def _split(
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


def _run_ends(ascending: IntArray | Codes) -> IntArray:
    """How many entries stand before each change of value."""
    return np.flatnonzero(ascending[1:] != ascending[:-1]) + 1


def _times_seen_before(classes: IntArray) -> IntArray:
    """How many earlier rows are of the same class."""
    order = np.argsort(classes, kind="stable")
    starts = np.append(0, _run_ends(classes[order]))
    lengths = np.append(starts[1:], classes.size) - starts
    seen = np.empty(classes.size, dtype=np.int64)
    seen[order] = np.arange(classes.size) - np.repeat(starts, lengths)
    return seen
