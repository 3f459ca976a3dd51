"""From noisy histograms to trees that are drawn from: free, because no row is read again.

A leaf with few rows is mostly noise. Its histogram is made non-negative, and shrunk towards that of
the node above, the more the smaller it is. Then each leaf gets a list of codes in proportion,
spread evenly over the values of a bin, so that the kernels draw from it like from any other tree.

Always true: every leaf holds at least one value; without noise, its codes have the frequencies of
the rows' bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...kernels import LEAF, BoolArray, Codes, FloatArray, IntArray, Trees, pack_set
from .growing import Node

# Values of a whole tree, at least and at most. A leaf has at least one for each code, up to a
# number, so that guided draws find a person's own value in it.
FEWEST, MOST, FEWEST_IN_LEAF, MOST_CODES = 2**13, 2**18, 64, 1024


@dataclass(frozen=True, eq=False)
class Coding:
    """How bins are written as codes."""

    bins: Sequence[Codes]
    by_set: BoolArray


def make_tree(root: Node, response: int, coding: Coding, scale: float) -> Trees:
    """The tree of a single run, with codes to draw in every leaf."""
    total = max(float(_counts(root).sum()), 1.0)
    inflation = np.clip(total, FEWEST, MOST) / total
    # A whole factor keeps the frequencies of a leaf exact.
    factor = float(np.ceil(inflation)) if inflation > 1 else float(inflation)
    writer = _Writer(coding, response, scale, factor)
    n_bins = int(coding.bins[response].max()) + 1
    writer.write(root, np.full(n_bins, 1 / n_bins))
    return writer.trees()


def positive_part(counts: IntArray) -> FloatArray:
    """Noisy counts as frequencies: non-negative, with the same sum if that is positive.

    The same is taken from every count, and what would be negative becomes 0. So small counts that
    are noise vanish, and the others are not inflated.

    Examples
    --------
    >>> positive_part(np.array([6, 3, -1])).tolist()
    [5.5, 2.5, 0.0]
    """
    total = max(int(counts.sum()), 0)
    descending = np.sort(counts)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, counts.size + 1)
    kept = np.flatnonzero(descending > excess)
    taken = excess[kept[-1]] if kept.size else descending[0]
    return np.maximum(counts - taken, 0.0)


def shrink(counts: IntArray, above: FloatArray, noise: float) -> FloatArray:
    """Shares of bins in a node, between its own and those of the node above.

    Examples
    --------
    >>> shrink(np.array([6, 2]), np.array([0.5, 0.5]), 8.0).tolist()
    [0.625, 0.375]
    """
    own = positive_part(counts)
    total = own.sum()
    return above if not total else (own + noise * above) / (total + noise)


def spread(shares: FloatArray, n_values: int, bins: Codes) -> Codes:
    """So many codes whose bins have given shares, evenly spread inside each bin, ascending.

    Examples
    --------
    >>> spread(np.array([0.75, 0.25]), 4, np.array([0, 0, 0, 1])).tolist()
    [0, 1, 2, 3]
    """
    exact = shares * n_values
    # Rounded, so that the last bit of a product cannot turn a whole number into a part.
    whole = np.floor(np.round(exact, 9)).astype(np.int64)
    rest = np.round(exact - whole, 9)
    largest = np.argsort(-rest, kind="stable")[: n_values - int(whole.sum())]
    whole[largest] += 1
    first = np.searchsorted(bins, np.arange(shares.size))
    sizes = np.bincount(bins, minlength=shares.size)
    of = np.repeat(np.arange(shares.size), whole)
    number = np.arange(of.size) - np.repeat(np.cumsum(whole) - whole, whole)
    return (first[of] + (2 * number + 1) * sizes[of] // (2 * whole[of])).astype(np.int32)


def _counts(node: Node) -> IntArray:
    """Noisy counts of all leaves below a node, added."""
    if node.counts is not None:
        return node.counts[0]
    ((_, left, right),) = node.below
    return _counts(left) + _counts(right)


def _n_leaves(node: Node) -> int:
    return 1 if node.counts is not None else sum(_n_leaves(one) for one in node.below[0][1:])


@dataclass(eq=False)
class _Writer:
    """Writes nodes in preorder, as the kernels read them."""

    coding: Coding
    response: int
    scale: float
    factor: float
    feature: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    sets: list[np.ndarray] = field(default_factory=list)
    values: list[Codes] = field(default_factory=list)

    def write(self, node: Node, above: FloatArray) -> None:
        """A node and all below it, given the shares of bins in the node above."""
        counts, at = _counts(node), len(self.feature)
        # The noise of all cells of all leaves below, added.
        noise = self.scale * np.sqrt(counts.size * _n_leaves(node))
        shares = shrink(counts, above, float(noise))
        for listed in (self.feature, self.cut, self.left, self.right, self.start):
            listed.append(0)
        if node.counts is not None:
            self._write_leaf(at, shares, max(int(counts.sum()), 0))
            return
        ((split, left, right),) = node.below
        self.feature[at], self.cut[at] = split.column, self._write_split(split.column, split.left)
        self.left[at] = len(self.feature)
        self.write(left, shares)
        self.right[at] = len(self.feature)
        self.write(right, shares)

    def trees(self) -> Trees:
        """What was written."""
        nodes = {
            name: np.array(getattr(self, name), dtype=np.int32)
            for name in ("feature", "cut", "left", "right")
        }
        leaf = nodes["feature"] == LEAF
        count = np.zeros(leaf.size, dtype=np.int32)
        count[leaf] = [codes.size for codes in self.values]
        sets = np.concatenate([np.empty(0, dtype=np.uint64), *self.sets])
        return Trees(
            roots=np.zeros(1, dtype=np.int64),
            **nodes,
            start=np.array(self.start, dtype=np.int64),
            count=count,
            sets=sets,
            values=np.concatenate(self.values),
        )

    def _write_leaf(self, at: int, shares: FloatArray, n_rows: int) -> None:
        self.feature[at] = LEAF
        self.start[at] = sum(codes.size for codes in self.values)
        bins, n_values = self.coding.bins[self.response], max(round(n_rows * self.factor), 1)
        # A multiple, so that shares that are exact stay so.
        n_values *= -(-min(max(FEWEST_IN_LEAF, bins.size), MOST_CODES) // n_values)
        self.values.append(spread(shares, n_values, bins))

    def _write_split(self, column: int, left: BoolArray) -> int:
        """The last code that goes left, or the place of the set of codes that do."""
        bins = self.coding.bins[column]
        if not self.coding.by_set[column]:
            return int(np.searchsorted(bins, np.flatnonzero(left)[-1], side="right")) - 1
        # The bit after the last code, for levels that are not declared, goes right.
        at = sum(part.size for part in self.sets)
        self.sets.append(pack_set(np.append(left[bins], False)))
        return at
