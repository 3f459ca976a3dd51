"""Confidence bounds of shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .kernels import FloatArray

# Standard deviations of a normal distribution that 95 % lie within.
Z95 = 1.959963984540054


def clopper_pearson(
    n_hits: ArrayLike, n: ArrayLike, chance: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of shares; each errs with at most this chance (Clopper and Pearson).

    Examples
    --------
    >>> low, high = clopper_pearson([0, 5], 10, 0.025)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187], [0.308, 0.813])
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    hits, n = np.asarray(n_hits, dtype=np.float64), np.asarray(n)
    low = betaincinv(np.maximum(hits, 1), n - hits + 1, chance)
    high = betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - chance)
    return np.where(hits > 0, low, 0.0), np.where(hits < n, high, 1.0)


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
    # In theory these ends equal the share; rounding errors may move them.
    low = 0.0 if share == 0 else max(0.0, float(centre - half))
    return low, 1.0 if share == 1 else min(1.0, float(centre + half))
