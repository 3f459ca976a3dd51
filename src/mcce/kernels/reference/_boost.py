"""Gradient-boosted regression trees on binned columns.

Beyond the paper. Every tree predicts what the trees before it left over, and a fraction of its leaf
means is added (Friedman's gradient boosting with squared error). A tree is grown best first: of
all leaves, the one whose best split gains most is split next, up to ``max_leaves``. Splits are
found in histograms of bins; a node's is its parent's less its sibling's.

Always true: all sums are integers, so the order of rows cannot change a bit; gains are float64 by
one formula; of equal gains the lowest node, column and cut win.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import ByteArray, Codes, FloatArray, IntArray
from ._trees import LEAF


@dataclass(frozen=True, slots=True)
class Boosting:
    """How many trees, and of what size."""

    n_trees: int = 60
    max_leaves: int = 16
    min_samples_leaf: int = 10
    shrinkage: int = 8


@dataclass(frozen=True, slots=True, eq=False)
class BoostedNodes:
    """Trees as arrays, one entry per node but for ``roots``; children stand after their parents."""

    roots: Codes
    feature: Codes
    cut: Codes
    left: Codes
    value: IntArray
    gain: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """Boosted trees, and how codes become the bins that they split."""

    nodes: BoostedNodes
    inputs: Codes
    first: IntArray
    bins: ByteArray


def boost(bins: ByteArray, n_bins: Codes, units: IntArray, boosting: Boosting) -> BoostedNodes:
    """Trees whose sum predicts a response."""
    left_over, draft = units.copy(), _Draft()
    for _ in range(boosting.n_trees if units.size else 0):
        leaves = _grow(bins, n_bins, left_over, boosting, draft)
        if len(leaves) == 1:
            break
        for leaf in leaves:
            value = _toward_zero(leaf.total, boosting.shrinkage * leaf.rows.size)
            draft.value[leaf.node] = value
            left_over[leaf.rows] -= value
    return draft.finish()


def predict_units(ensemble: Ensemble, codes: Codes, rows: IntArray | None = None) -> IntArray:
    """Sum of all trees for each row, given codes of shape (n_columns, n_rows).

    With ``rows``, for those at these places alone.
    """
    nodes = ensemble.nodes
    if rows is not None:
        codes = codes[:, rows]
    bins = np.empty((ensemble.inputs.size, codes.shape[1]), dtype=np.uint8)
    for place, column in enumerate(ensemble.inputs):
        own = ensemble.bins[ensemble.first[place] : ensemble.first[place + 1]]
        bins[place] = own[codes[column]]
    every = np.arange(codes.shape[1])
    total = np.zeros(codes.shape[1], dtype=np.int64)
    for root in nodes.roots:
        at = np.full(codes.shape[1], root)
        while (nodes.feature[at] != LEAF).any():
            goes_left = bins[nodes.feature[at], every] <= nodes.cut[at]
            child = nodes.left[at] + ~goes_left
            at = np.where(nodes.feature[at] == LEAF, at, child)
        total += nodes.value[at]
    return total


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    """A node that may be split, with its histograms and its best split."""

    node: int
    rows: IntArray
    sums: IntArray
    counts: IntArray
    gain: float
    feature: int
    cut: int

    @property
    def total(self) -> int:
        return int(self.sums[0].sum())


class _Draft:
    """Nodes as they are found."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.splits: list[tuple[int, int, int, float]] = []
        self.value: list[int] = []

    def add(self) -> int:
        """The number of one more node, a leaf until it is split."""
        self.splits.append((LEAF, 0, 0, 0.0))
        self.value.append(0)
        return len(self.splits) - 1

    def finish(self) -> BoostedNodes:
        feature, cut, left = (
            np.array([split[i] for split in self.splits], dtype=np.int32) for i in range(3)
        )
        return BoostedNodes(
            roots=np.array(self.roots, dtype=np.int32),
            feature=feature,
            cut=cut,
            left=left,
            value=np.array(self.value, dtype=np.int64),
            gain=np.array([split[3] for split in self.splits], dtype=np.float64),
        )


def _grow(
    bins: ByteArray, n_bins: Codes, left_over: IntArray, boosting: Boosting, draft: _Draft
) -> list[_Leaf]:
    """Add one tree, and return its leaves; one that cannot be split is taken away again."""
    everything = np.arange(left_over.size)
    root = draft.add()
    sums, counts = _histogram(bins, n_bins, left_over, everything)
    leaves = [_leaf(root, everything, sums, counts, boosting)]
    while len(leaves) < boosting.max_leaves:
        # The first of equals is the lowest node.
        best = max(leaves, key=lambda leaf: (leaf.gain, -leaf.node))
        if best.gain <= 0.0:
            break
        leaves.remove(best)
        leaves += _split(best, bins, n_bins, left_over, boosting, draft)
    if len(leaves) == 1:
        draft.splits.pop()
        draft.value.pop()
    else:
        draft.roots.append(root)
    return leaves


def _split(
    leaf: _Leaf,
    bins: ByteArray,
    n_bins: Codes,
    left_over: IntArray,
    boosting: Boosting,
    draft: _Draft,
) -> list[_Leaf]:
    """The two halves of a leaf."""
    goes_left = bins[leaf.feature, leaf.rows] <= leaf.cut
    halves = [leaf.rows[goes_left], leaf.rows[~goes_left]]
    smaller = int(halves[1].size < halves[0].size)
    sums, counts = _histogram(bins, n_bins, left_over, halves[smaller])
    tables = {smaller: (sums, counts), 1 - smaller: (leaf.sums - sums, leaf.counts - counts)}
    numbers = draft.add(), draft.add()
    draft.splits[leaf.node] = (leaf.feature, leaf.cut, numbers[0], leaf.gain)
    return [_leaf(numbers[i], halves[i], *tables[i], boosting) for i in (0, 1)]


def _histogram(
    bins: ByteArray, n_bins: Codes, left_over: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """Sum and number of rows per input and bin."""
    shape = n_bins.size, int(n_bins.max(initial=1))
    sums, counts = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for place in range(n_bins.size):
        own = bins[place, rows]
        np.add.at(sums[place], own, left_over[rows])
        counts[place] = np.bincount(own, minlength=shape[1])
    return sums, counts


def _leaf(node: int, rows: IntArray, sums: IntArray, counts: IntArray, boosting: Boosting) -> _Leaf:
    """A leaf with its best admissible split; the gain is 0 where there is none.

    The gain of a split is the fall of the squared error, n e^2 / (n_left n_right), where e is the
    sum on the left less n_left times the mean of the node.
    """
    n = float(rows.size)
    mean = float(sums[0].sum()) / n if sums.size else 0.0
    n_left = np.cumsum(counts, axis=1).astype(np.float64)
    n_right = n - n_left
    excess = np.cumsum(sums, axis=1).astype(np.float64) - mean * n_left
    least = boosting.min_samples_leaf
    admissible = (n_left >= least) & (n_right >= least) & (counts > 0)
    product = np.where(admissible, n_left * n_right, 1.0)
    gains = np.where(admissible, excess * excess / product * n, 0.0)
    best = int(np.argmax(gains)) if gains.size else 0
    if not gains.size or gains.flat[best] <= 0.0:
        return _Leaf(node, rows, sums, counts, 0.0, LEAF, 0)
    feature, last = divmod(best, gains.shape[1])
    # Halfway to the next bin that the node holds.
    following = last + 1 + int(np.flatnonzero(counts[feature, last + 1 :])[0])
    cut = (last + following) // 2
    return _Leaf(node, rows, sums, counts, float(gains.flat[best]), feature, cut)


def _toward_zero(numerator: int, denominator: int) -> int:
    """Integer quotient, rounded toward zero: so no leaf corrects more than its mean."""
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient
