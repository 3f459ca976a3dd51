"""Exact confidence bounds of shares, for the analysis of answers and for audits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .kernels import FloatArray


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
