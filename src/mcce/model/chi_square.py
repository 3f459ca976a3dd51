"""The upper tail of the chi-square distribution, as a logarithm.

P-values of strong dependence underflow from some 10,000 rows on; their logarithms do not, so the
stronger of two can still be told. All terms of the sums below are positive, so nothing cancels.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..kernels import FloatArray

# Beyond this, the complementary error function comes from its asymptotic series.
FAR = 20.0
# With more degrees of freedom, only the terms around the largest one are summed. Two columns of
# 10,000 levels have a hundred million degrees of freedom, and half as many terms.
MANY = 2_000
# Terms this many standard deviations from the largest are below its rounding.
WIDTH = 10.0


def log_survival(statistic: float, freedom: int) -> float:
    """Log-probability that a chi-square variable is at least as large as a statistic.

    Examples
    --------
    >>> round(math.exp(log_survival(3.841459, 1)), 6)
    0.05
    >>> log_survival(1e5, 3) < log_survival(9e4, 3) < -40_000
    True
    """
    if statistic <= 0.0:
        return 0.0
    half = statistic / 2
    if freedom <= 2:
        return -half if freedom == 2 else _log_erfc(math.sqrt(half))
    if freedom > MANY:
        terms = _largest_terms(half, freedom)
    else:
        terms = _log_factors(freedom) + _exponents(freedom) * math.log(half) - half
    tail = [] if freedom % 2 == 0 else [_log_erfc(math.sqrt(half))]
    return _log_sum(np.append(terms, tail))


def _log_sum(logs: FloatArray) -> float:
    """The logarithm of a probability that is a sum, from the logarithms of its terms."""
    highest = float(logs.max())
    # Rounding may leave the sum a little above 1.
    return min(highest + math.log(float(np.exp(logs - highest).sum())), 0.0)


def _largest_terms(half: float, freedom: int) -> FloatArray:
    """Logarithms of the terms that count: those with exponents near half the statistic.

    The exponents are whole numbers for even degrees of freedom, otherwise half of odd ones; the
    logarithm of the largest term is known, those of the others follow by their ratios.
    """
    lowest, last = (freedom % 2) / 2, freedom / 2 - 1
    peak = lowest + max(0.0, math.floor(min(half, last) - lowest))
    reach = math.ceil(WIDTH * math.sqrt(peak)) + 100.0
    below = np.arange(peak, max(peak - reach, lowest), -1.0)
    above = np.arange(peak + 1.0, min(peak + reach, last) + 0.5)
    log_half = math.log(half)
    at_peak = peak * log_half - half - math.lgamma(peak + 1.0)
    logs = (np.cumsum(np.log(below) - log_half), np.cumsum(log_half - np.log(above)))
    return at_peak + np.concatenate([[0.0], *logs])


@lru_cache(maxsize=256)
def _log_factors(freedom: int) -> FloatArray:
    """Minus the log-gamma of j + 1 (even freedom) or j + 1/2 (odd, from j = 1), for each term."""
    if freedom % 2 == 0:
        steps = np.arange(1.0, freedom // 2)
        return -np.append(0.0, np.cumsum(np.log(steps)))
    steps = np.arange(1.0, (freedom - 1) // 2 + 1) - 0.5
    return -(np.cumsum(np.log(steps)) + math.log(math.pi) / 2)


@lru_cache(maxsize=256)
def _exponents(freedom: int) -> FloatArray:
    if freedom % 2 == 0:
        return np.arange(freedom // 2, dtype=np.float64)
    halves: FloatArray = np.arange(1, (freedom - 1) // 2 + 1, dtype=np.float64) - 0.5
    return halves


def _log_erfc(z: float) -> float:
    """Log of the complementary error function of a positive number."""
    if z < FAR:
        return math.log(math.erfc(z))
    # 1 - 1/(2z^2) + 3/(2z^2)^2 - 15/(2z^2)^3 + ...; at 20 the fifth term is below 1e-12.
    step, series, term = 1.0 / (2.0 * z * z), 1.0, 1.0
    for k in range(1, 9):
        term *= -(2 * k - 1) * step
        series += term
    return -z * z - math.log(z * math.sqrt(math.pi)) + math.log(series)
