"""Least squares in which no order of additions changes a bit, and so no thread of a library.

Columns are rounded to integers of 20 bits. Sums of their products over at most 4,096 rows are
integers below 2^53, which float64 adds exactly in any order, whatever the linear algebra beneath.
Solutions are refined on residuals in full precision, so little is lost by the rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels import FloatArray, IntArray

# Rows that a fit looks at, at most and at least; up to 4,096, sums would be exact.
MAX_ROWS, MIN_ROWS = 1000, 40
SCALE = 2.0**20
# A column is a combination of others if this share of its square is left beside them.
COLLINEAR = 1e-7
N_REFINEMENTS = 4
# Share of rows that each further round of a robust fit uses.
KEPT = 0.95


def to_integers(columns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Columns as integers in float64, their centres and their units; missing is 0."""
    present = ~np.isnan(columns)
    low = np.where(present, columns, np.inf).min(axis=1, initial=np.inf)
    high = np.where(present, columns, -np.inf).max(axis=1, initial=-np.inf)
    empty = low > high
    centre = np.where(empty, 0.0, low / 2 + high / 2)
    # 0 for the smallest of floats too: too few of their bits are left to compute with.
    unit = np.where(empty, 0.0, (high / 2 - low / 2) / SCALE)
    unit = np.where(unit > 0, unit, 1.0)
    whole = np.rint((columns - centre[:, None]) / unit[:, None])
    return np.where(present, whole, 0.0), centre, unit


@dataclass(frozen=True, eq=False)
class Selection:
    """Groups of columns that a forward selection chose, and the share of variance they explain."""

    groups: tuple[int, ...]
    explained: float


def select_forward(
    design: FloatArray, groups: IntArray, target: FloatArray, max_groups: int
) -> Selection:
    """Groups of columns that explain a target, the most useful one first."""
    work = _Sweep(design, target)
    chosen: list[int] = []
    while len(chosen) < max_groups and work.left > 1e-12 * work.total:
        gains = np.where(groups >= 0, work.gains(), 0.0)
        gains[np.isin(groups, chosen)] = 0.0
        best = int(np.argmax(gains))
        slow = len(chosen) >= 4 and work.left > 0.5 * work.total
        if slow or gains[best] < 0.03 * work.left:
            break
        chosen.append(int(groups[best]))
        for column in np.flatnonzero(groups == groups[best]):
            work.sweep(int(column))
    explained = 1 - work.left / work.total if work.total else 0.0
    return Selection(tuple(chosen), explained)


class _Sweep:
    """Columns and a target, made orthogonal to the columns swept so far and to a constant."""

    def __init__(self, design: FloatArray, target: FloatArray) -> None:
        self.design = design
        n_rows = max(target.size, 1)
        sums, total = design.sum(axis=1), target.sum()
        self.products = design @ target - sums * total / n_rows
        self.first_squares = np.einsum("ij,ij->i", design, design) - sums * sums / n_rows
        self.squares = self.first_squares.copy()
        self.total = self.left = float(target @ target - total * total / n_rows)
        self._sums = sums
        self._swept: list[FloatArray] = []

    def gains(self) -> FloatArray:
        """How much of the target's square each column would explain."""
        usable = self.squares > COLLINEAR * self.first_squares
        usable &= self.squares > 0
        return np.where(usable, self.products**2 / np.where(usable, self.squares, 1.0), 0.0)

    def sweep(self, column: int) -> None:
        """Make everything orthogonal to a column."""
        square = self.squares[column]
        if not square > COLLINEAR * self.first_squares[column]:
            return
        inner = self.design @ self.design[column]
        inner = inner - self._sums * self._sums[column] / self.design.shape[1]
        for earlier in self._swept:
            inner = inner - earlier * earlier[column]
        inner = inner / np.sqrt(square)
        part = self.products[column] / np.sqrt(square)
        self.squares = self.squares - inner * inner
        self.products = self.products - inner * part
        self.left = max(self.left - float(part * part), 0.0)
        self._swept.append(inner)


def fit_least_squares(columns: FloatArray, target: FloatArray) -> FloatArray:
    """The constant and the weights of columns that fit a target best, collinear columns 0.

    Examples
    --------
    >>> fit_least_squares(np.array([[0.0, 1.0, 2.0]]), np.array([1.0, 3.0, 5.0])).tolist()
    [1.0, 2.0]
    """
    whole, centre, unit = to_integers(columns)
    design = np.vstack([np.full((1, target.size), SCALE), whole])
    gram = design @ design.T
    weights = np.zeros(len(design))
    for _ in range(N_REFINEMENTS):
        residual = target - predict(columns, weights)
        size = np.abs(residual).max(initial=0.0) / SCALE
        if not size > 0:
            break
        step = _solve(gram, design @ np.rint(residual / size)) * size
        change = step[1:] / unit
        shift = step[0] * SCALE - _sum(change * centre)
        weights = weights + np.concatenate([[shift], change])
    return weights


def fit_robustly(
    columns: FloatArray, target: FloatArray, n_rounds: int
) -> tuple[FloatArray, IntArray]:
    """Weights fitted to all rows but those that deviate most, and the places of these rows."""
    weights, kept = np.zeros(len(columns) + 1), np.arange(target.size)
    n_kept = max(int(KEPT * target.size), 1)
    for _ in range(n_rounds if target.size else 0):
        weights = fit_least_squares(columns[:, kept], target[kept])
        gap = np.abs(target - predict(columns, weights))
        again = np.sort(np.argsort(gap, kind="stable")[:n_kept])
        if np.array_equal(again, kept):
            break
        kept = again
    return weights, kept


def predict(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """The constant plus the weighted sum of columns, added one after the other."""
    total = np.full(columns.shape[1], weights[0])
    for column, weight in zip(columns, weights[1:], strict=True):
        total = total + weight * column
    return total


def _sum(numbers: Sequence[float] | FloatArray) -> float:
    total = 0.0
    for number in numbers:
        total += float(number)
    return total


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve for a positive semidefinite matrix by elimination; skipped pivots give 0."""
    work, values = matrix.copy(), right.astype(np.float64)
    diagonal, used = np.diag(matrix).copy(), np.zeros(len(matrix), dtype=bool)
    for pivot in range(len(work)):
        if not work[pivot, pivot] > COLLINEAR * diagonal[pivot]:
            continue
        used[pivot] = True
        factors = work[:, pivot] / work[pivot, pivot]
        factors[pivot] = 0.0
        work = work - factors[:, None] * work[pivot]
        values = values - factors * values[pivot]
    diagonal = np.diag(work)
    return np.where(used, values / np.where(used, diagonal, 1.0), 0.0)
