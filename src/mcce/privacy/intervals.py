"""Intervals of shares and quantiles, and how far chance moves a difference of two shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..kernels import FloatArray, IntArray

Z95 = 1.959963984540054


def wilson(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share among n, after Wilson.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(0.5, 100)]
    [0.404, 0.596]
    >>> [wilson(0.0, n)[0] for n in (3, 172)], [wilson(1.0, n)[1] for n in (3, 172)]
    ([0.0, 0.0], [1.0, 1.0])
    """
    centre = (share + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 * np.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2)) / (1 + Z95**2 / n)
    # By the formula, these ends are the share itself; computed, they may be a bit beside it.
    low = 0.0 if share == 0 else max(0.0, float(centre - half))
    return low, 1.0 if share == 1 else min(1.0, float(centre + half))


def clopper_pearson(n_hits: ArrayLike, n: int, chance: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of shares, each of which errs with at most this chance.

    Examples
    --------
    >>> low, high = clopper_pearson([0, 5], 10, 0.025)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187], [0.308, 0.813])
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    hits = np.asarray(n_hits, dtype=np.float64)
    low = betaincinv(np.maximum(hits, 1), n - hits + 1, chance)
    high = betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - chance)
    return np.where(hits > 0, low, 0.0), np.where(hits < n, high, 1.0)


def quantile_interval(
    values: FloatArray, q: float, n_effective: float | None = None
) -> tuple[float, float, float]:
    """A quantile and its 95 % interval, whatever the distribution: two order statistics.

    Examples
    --------
    >>> quantile_interval(np.arange(101.0), 0.5)
    (50.0, 40.0, 60.0)
    """
    ordered, n = np.sort(values), values.size
    half = Z95 * n * np.sqrt(q * (1 - q) / (n if n_effective is None else n_effective))
    low, high = np.clip(np.round([n * q - half - 1, n * q + half]), 0, n - 1).astype(int)
    return float(np.quantile(ordered, q)), float(ordered[low]), float(ordered[high])


def sign_flip_spread(differences: FloatArray, group: IntArray) -> float:
    """Standard error of a mean difference if each group's could as well be the other way round.

    Examples
    --------
    >>> sign_flip_spread(np.array([1.0, 1.0, -1.0, 0.0]), np.array([0, 0, 1, 2])).round(3)
    np.float64(0.559)
    """
    _, number = np.unique(group, return_inverse=True)
    sums = np.bincount(number, weights=differences)
    return np.sqrt(np.sum(sums**2)) / max(differences.size, 1)


def effective_size(group: IntArray) -> float:
    """How many rows of their own tell as much as rows of which some are the same.

    Examples
    --------
    >>> effective_size(np.array([0, 1, 2, 3])), effective_size(np.array([0, 0, 0, 0]))
    (4.0, 1.0)
    """
    counts = np.unique(group, return_counts=True)[1].astype(np.float64)
    return float(counts.sum() ** 2 / np.sum(counts**2))
