"""How likely a relation is confirmed if its columns had nothing to do with each other.

The formula of a relation is fixed before the held-out rows are looked at. Permuting its target
among those n rows then gives a 0/1 matrix: whether row i passes with the target of row j, with
r_i ones in row i. All n rows pass under perm(A) of the n! permutations, and by the inequality of
Bregman and Minc perm(A) is at most the product of (r_i!)^(1/r_i). If k rows fail, the same holds
of each choice of the other n - k, with rows of ones for those left out: C(n, k) times the largest
such product bounds the chance. Stirling's bounds replace the factorials, on the safe side.

Always true: what is returned is at least the chance that a permutation passes.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels import FloatArray, IntArray

# The chance, after counting the relations tried, below which one is believed.
MAX_CHANCE = 1e-6


def log_chance(n_passing: IntArray, n_broken: int) -> float:
    """Logarithm of the bound.

    Examples
    --------
    Each of 20 rows passes with its own target only: one permutation of 20!.

    >>> round(log_chance(np.ones(20, dtype=np.int64), 0), 2), round(-math.lgamma(21), 2)
    (-42.34, -42.34)
    """
    n_rows = n_passing.size
    if n_rows <= 1 or n_broken >= n_rows:
        return 0.0
    most = np.sort(np.maximum(n_passing, 1))[n_broken:].astype(np.float64)
    terms = math.fsum((_log_factorial_above(most) / most).tolist())
    free = n_broken / n_rows * math.lgamma(n_rows + 1)
    choices = (
        math.lgamma(n_rows + 1) - math.lgamma(n_broken + 1) - math.lgamma(n_rows - n_broken + 1)
    )
    return min(0.0, choices + terms + free - math.lgamma(n_rows + 1))


def _log_factorial_above(numbers: FloatArray) -> FloatArray:
    """At least log(r!), to within 1/(360 r^3)."""
    bound = numbers * np.log(numbers) - numbers + 0.5 * np.log(2 * np.pi * numbers)
    return np.asarray(np.where(numbers == 1, 0.0, bound + 1 / (12 * numbers)))
