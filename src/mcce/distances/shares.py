"""How the decision depends on the values of a feature, as training rows have it.

The share of training rows with each decision, declined first, of each level, and of each bin of a
number. Levels with one row would have shares of 0 and 1, so shares are pulled towards those of all
rows: as if each level and bin had ``alpha`` more rows, with the shares of all. The distances of
values come from these shares.
"""

from __future__ import annotations

import numpy as np

from ..kernels import BoolArray, FloatArray, IntArray
from ..tables.features import Feature

# The decision has two values.
N_CLASSES = 2


def level_shares(counts: IntArray, alpha: float) -> FloatArray:
    """Shares of the decisions of each level, and at the end those of a level never seen.

    Examples
    --------
    >>> level_shares(np.array([[3, 1], [1, 3]]), alpha=0.0)
    array([[0.75, 0.25],
           [0.25, 0.75],
           [0.  , 0.  ]])
    """
    unseen = np.zeros((1, N_CLASSES), dtype=counts.dtype)
    return _smooth(np.vstack([counts, unseen]), counts.sum(axis=0), alpha)


def bin_shares(feature: Feature, counts: IntArray, n_bins: int, alpha: float) -> FloatArray:
    """Shares of the decisions at the middle of each bin of a number.

    Bins are equally wide and cover the training range. One bin on either side of it has shares of
    0; those of a bin without rows lie on the line between its neighbours with some.
    """
    place = bin_places(feature, known_numbers(feature), n_bins)
    bins = np.minimum(np.floor(place).astype(np.int64), n_bins - 1)
    binned = np.zeros((n_bins, N_CLASSES), dtype=np.int64)
    np.add.at(binned, bins, counts[: bins.size])
    there = np.flatnonzero(binned.sum(axis=1))
    shares = _smooth(binned[there], counts.sum(axis=0), alpha)
    inside = [np.interp(np.arange(n_bins), there, share) for share in shares.T]
    return np.pad(np.stack(inside, axis=1), ((1, 1), (0, 0)))


def read_shares(feature: Feature, shares: FloatArray, numbers: FloatArray) -> FloatArray:
    """Shares of the decisions at numbers, on the lines between the middles of bins."""
    n_bins = len(shares) - 2
    place, middles = bin_places(feature, numbers, n_bins), np.arange(n_bins + 2) - 0.5
    return np.stack([np.interp(place, middles, share, 0.0, 0.0) for share in shares.T], axis=1)


def bin_places(feature: Feature, numbers: FloatArray, n_bins: int) -> FloatArray:
    """Numbers in widths of a bin, 0 at the smallest training value."""
    with np.errstate(over="ignore"):
        return (numbers - known_numbers(feature)[0]) / feature.spread * n_bins


def known_numbers(feature: Feature) -> FloatArray:
    """The training values of a numeric feature, ascending, without missing."""
    assert feature.numbers is not None
    return feature.numbers[: feature.n_codes - feature.has_missing]


def count_decisions(codes: IntArray, decision: BoolArray, n_codes: int) -> IntArray:
    """Training rows of each code by decision, shape (n_codes, 2)."""
    both = codes.astype(np.int64) * N_CLASSES + decision
    return np.bincount(both, minlength=n_codes * N_CLASSES).reshape(n_codes, N_CLASSES)


def _smooth(counts: IntArray, total: IntArray, alpha: float) -> FloatArray:
    """Shares of each row of counts, pulled towards those of all."""
    # In this order, since a prior of very many rows times their number is beyond float64.
    prior = alpha * (total / max(int(total.sum()), 1))
    size = counts.sum(axis=1, keepdims=True) + alpha
    return (counts + prior) / np.where(size > 0, size, 1.0)
