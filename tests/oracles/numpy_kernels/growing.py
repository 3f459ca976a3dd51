"""One exact CART tree on integer codes: the specification of step 1's inner loop.

Paper, section "Model". A node takes the admissible split of largest gain: every cut of a numeric
or ordered column, every prefix of the level order of a categorical one, with at least
``min_samples_leaf`` rows on both sides. Ties go to the lowest column, then the lowest cut. As in
CART the best split is made even if it gains nothing; only a pure node, or one without an
admissible split, is a leaf. As in a random forest, a node may check some columns only, and the
splits may be chosen on a sample of the rows.

All sums are integers, so the order of rows changes nothing; gains are float64 by two formulas that
treat left and right alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from mcce.kernels import (
    LEAF,
    Classes,
    Codes,
    FloatArray,
    Growth,
    IntArray,
    NodeRows,
    Numbers,
    Split,
    SplitColumns,
    Trees,
    WordArray,
    descend,
    grow_with,
    split_after,
    times_seen_before,
)
from mcce.kernels._random import absorb
from mcce.kernels.rows import run_ends


def grow_tree(
    columns: SplitColumns,
    inputs: IntArray,
    response: Numbers | Classes,
    response_codes: Codes,
    growth: Growth,
    drawn: IntArray | None = None,
) -> Trees:
    """Tree of ``response`` given the columns numbered in ``inputs``, as a struct of one."""

    def find_split(node: NodeRows) -> Split | None:
        return _best_split(columns, inputs, node, response, growth)

    rows = np.arange(response_codes.size) if drawn is None else drawn
    tree = grow_with(find_split, rows, response_codes, growth)
    return tree if drawn is None else _fill(tree, columns, response_codes)


def _fill(tree: Trees, columns: SplitColumns, response_codes: Codes) -> Trees:
    """The tree with all rows in its leaves; those that were never grown stay empty."""
    leaf = descend(tree, 0, np.asarray(columns.codes), columns.by_set)
    kept = tree.count[leaf] > 0
    leaf, values = leaf[kept], response_codes[kept]
    count = np.bincount(leaf, minlength=tree.count.size)
    start = np.where(tree.feature == LEAF, np.cumsum(count) - count, 0)
    order = np.lexsort((values, leaf))
    return replace(tree, start=start, count=count.astype(np.int32), values=values[order])


def _best_split(
    columns: SplitColumns,
    inputs: IntArray,
    node: NodeRows,
    response: Numbers | Classes,
    growth: Growth,
) -> Split | None:
    """Admissible split of largest gain, or None where the node is a leaf."""
    smallest = max(growth.min_samples_split, 2 * growth.min_samples_leaf, 2)
    too_deep = growth.max_depth is not None and node.depth >= growth.max_depth
    if node.row_numbers.size < smallest or too_deep:
        return None
    inside = _impurity(response, node.row_numbers)
    if inside.is_pure():
        return None
    best: Split | None = None
    n_checked = 0
    for column in inputs if growth.max_features is None else _shuffle(inputs, node.key):
        split = best_split_of(columns, int(column), node.row_numbers, inside, growth)
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
    columns: SplitColumns, column: int, rows: IntArray, inside: Impurity, growth: Growth
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
    columns: SplitColumns, column: int, n_levels: int, n_rows: int, inside: Impurity, growth: Growth
) -> int:
    """How many rows a split on a column must leave on either side of a node."""
    many = not columns.ordered[column] and n_levels > growth.many_levels
    many |= columns.n_codes[column] > 2 and inside.n_classes_present() > growth.many_levels
    part = -(-n_rows // growth.smallest_part) if many else 0
    return max(growth.min_samples_leaf, part)


@dataclass(frozen=True, slots=True)
class SquaredError:
    """Of numbers in fixed point."""

    units: IntArray

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
class Gini:
    """Of class counts."""

    classes: IntArray
    n_classes: int

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
        squares_left = np.cumsum(2 * times_seen_before(classes) + 1)[n_left - 1]
        cross = np.cumsum(totals[classes])[n_left - 1]
        squares = (totals * totals).sum()
        squares_right = squares - 2 * cross + squares_left
        n_right = order.size - n_left
        return squares_left / n_left + squares_right / n_right - squares / order.size


Impurity: TypeAlias = SquaredError | Gini


def _impurity(response: Numbers | Classes, rows: IntArray) -> Impurity:
    """What a node with these rows wants to be pure in."""
    if isinstance(response, Numbers):
        return SquaredError(response.units[rows])
    return Gini(response.classes[rows], response.n_classes)
