"""Fitting sums: which columns are needed, their weights, and short numbers that do as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ..kernels import FloatArray, IntArray

# Share of rows that are surely not broken, and that each further round of a robust fit uses.
TYPICAL_SHARE = 0.95
# A column is a combination of others if this share of its square is left beside them.
COLLINEAR = 1e-7
# A selection ends if no column explains this share of what is left, or if many explain little.
MIN_GAIN, MANY, MIN_EXPLAINED = 0.03, 4, 0.5
# Decimals to try, then significant digits; the last ones are what fitting can tell at all.
DECIMALS, DIGITS = (0, 1, 2, 3, 4), (3, 4, 5, 6, 8, 10, 12)
# A short number may deviate this much more than the fitted one.
MAX_ROUNDED_LOSS = 1.03


def typical(gap: FloatArray) -> float:
    """The deviation that the best 95 % of rows reach."""
    if not gap.size:
        return math.inf
    rank = min(int(TYPICAL_SHARE * gap.size), gap.size - 1)
    return float(np.partition(gap, rank)[rank])


def select_forward(
    terms: FloatArray, groups: IntArray, target: FloatArray, most: int
) -> tuple[list[int], float]:
    """Groups of terms that explain a target, the most useful first, and the share they explain.

    Terms whose group is negative are left out. All columns are made orthogonal to a constant and to
    those selected so far.
    """
    n_rows, chosen, basis = target.size, list[int](), np.ones((1, target.size))
    sums = terms.sum(axis=1)
    basis /= math.sqrt(n_rows)
    products = terms @ target - sums * target.mean()
    squares = np.einsum("ij,ij->i", terms, terms) - sums * sums / n_rows
    whole = squares.copy()
    total = left = float(target @ target) - n_rows * float(target.mean()) ** 2
    while len(chosen) < most and left > 1e-12 * total:
        is_free = (groups >= 0) & ~np.isin(groups, chosen) & (squares > COLLINEAR * whole)
        gains = np.where(is_free, products**2 / np.where(is_free, squares, 1.0), 0.0)
        # The first of those that are equal but for rounding.
        best = int(np.argmax(gains >= gains.max() * (1 - COLLINEAR)))
        is_slow = len(chosen) >= MANY and left > (1 - MIN_EXPLAINED) * total
        if is_slow or gains[best] < MIN_GAIN * left:
            break
        chosen.append(int(groups[best]))
        for column in np.flatnonzero(groups == groups[best]):
            if squares[column] > COLLINEAR * whole[column]:
                rest = terms[column] - (basis @ terms[column]) @ basis
                axis = rest / math.sqrt(rest @ rest)
                inner = terms @ axis
                part = float(target @ axis)
                products, squares = products - inner * part, squares - inner * inner
                left, basis = max(left - part * part, 0.0), np.vstack([basis, axis])
    return chosen, 1 - left / total if total else 0.0


def fit_robustly(
    columns: FloatArray, target: FloatArray, n_rounds: int
) -> tuple[FloatArray, IntArray]:
    """Weights fitted to all rows but those that deviate most, and the numbers of these rows.

    The first weight is that of a constant.
    """
    design = np.vstack([np.ones(target.size), columns])
    # Columns of any scale count alike.
    size = np.abs(design).max(axis=1, initial=0.0, keepdims=True)
    scaled = design / np.where(size > 0, size, 1.0)
    weights, kept = np.zeros(len(design)), np.arange(target.size)
    n_kept = max(int(TYPICAL_SHARE * target.size), 1)
    for _ in range(n_rounds if target.size else 0):
        found = np.linalg.lstsq(scaled[:, kept].T, target[kept], rcond=COLLINEAR**2)[0]
        weights = found / np.where(size > 0, size, 1.0)[:, 0]
        gap = np.abs(target - predict(columns, weights))
        again = np.sort(np.argsort(gap, kind="stable")[:n_kept])
        if np.array_equal(again, kept):
            break
        kept = again
    return weights, kept


def predict(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """The constant plus the weighted sum of columns."""
    return np.asarray(weights[0] + weights[1:] @ columns)


def snap(
    weights: FloatArray, deviation: Callable[[FloatArray], float], accepted: float
) -> FloatArray:
    """The shortest numbers that do nearly as well as fitted ones, if possible with a 0 first."""
    most = max(MAX_ROUNDED_LOSS * deviation(weights), accepted)
    without = np.concatenate([[0.0], weights[1:]])
    for shorter in (*_shorter(without), *_shorter(weights)):
        if deviation(shorter) <= most:
            return shorter
    return weights


def _shorter(weights: FloatArray) -> Iterator[FloatArray]:
    for decimals in DECIMALS:
        yield np.array([float(f"{weight:.{decimals}f}") + 0.0 for weight in weights])
    for digits in DIGITS:
        yield np.array([float(f"{weight:.{digits}g}") + 0.0 for weight in weights])


def short_between(low: float, high: float) -> float:
    """The shortest number that is not below the first of two and not above the second."""
    size = max(abs(low), abs(high))
    if low <= 0 <= high:
        return 0.0
    # Shorter ones of these are no floats, or lose digits.
    if not 1e-290 < size < math.inf:
        return low
    power = math.floor(math.log10(size))
    for unit in range(power, power - 15, -1):
        number = float(f"{math.ceil(low / 10.0**unit * (1 - math.copysign(1e-10, low)))}e{unit}")
        if low <= number <= high:
            return number
    return low


def round_up(number: float) -> float:
    """The next number of two significant digits."""
    if number <= 0:
        return 0.0
    power = math.floor(math.log10(number)) - 1
    digits = math.ceil(number / 10.0**power * (1 - 1e-12))
    return float(f"{digits}e{power}")
