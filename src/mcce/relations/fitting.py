"""Fitting equalities: least squares, short coefficients, and how closely an equality holds.

Least squares: columns are rounded to integers of 20 bits. Sums of their products over at most 4,096
rows are integers below 2^53, which float64 adds exactly in any order. Solutions are refined on
residuals in full precision, so little is lost by the rounding.

The tolerance of an equality is the largest deviation up to three times that of the best 95 % of
rows, so it is that of all rows unless some are broken. Half a unit of the target's last decimal
breaks nothing, since targets are rounded. A tolerance is at most a fifth of the mean deviation of
targets from their median: an equality that holds within a larger one would say too little.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..kernels import FloatArray, IntArray
from .evidence import Proposal, TrainingColumns, log_chance
from .kinds import Linear, Product, Ratio
from .relation import numbers_of

AnyEquality = Linear | Product | Ratio
# Share of rows that are surely not broken.
TYPICAL_SHARE = 0.95
# Rows that deviate this many times as much as typical ones break the relation; at most this
# share of all rows may.
MAX_STRETCH = 3.0
MAX_BROKEN = 0.04
# Rows for discovery are half of all: the others may deviate slightly more.
MARGIN = 1.25
# The largest tolerance, as a share of the mean deviation of targets from their median.
MAX_TOLERANCE = 0.2
# Rounding errors of a target reach more than this share of half a unit of its last decimal.
REACHED_BY_ROUNDING = 0.75
# Relative error that floating point may make.
ROUNDING = 1e-9
MIN_CONFIRMING = 20

# Rows that a fit looks at, at most and at least; up to 4,096, sums would be exact.
MAX_ROWS, MIN_ROWS = 1000, 40
SCALE = 2.0**20
# A column is a combination of others if this share of its square is left beside them.
COLLINEAR = 1e-7
N_REFINEMENTS = 4
# Share of rows that each further round of a robust fit uses.
KEPT_SHARE = 0.95

# Decimals to try, then significant digits; the last ones are what fitting can tell at all.
DECIMALS = (0, 1, 2, 3, 4)
DIGITS = (3, 4, 5, 6, 8, 10, 12)
# A short number may deviate this much more than the fitted one.
MAX_ROUNDED_LOSS = 1.03


@dataclass(frozen=True)
class Fit:
    """What a formula gives in some rows, and their targets."""

    formula: FloatArray
    target: FloatArray

    @property
    def defined(self) -> Fit:
        """Only the rows where both sides are defined."""
        is_defined = ~np.isnan(self.formula) & ~np.isnan(self.target)
        return Fit(self.formula[is_defined], self.target[is_defined])

    def n_passing(self, allowed: FloatArray) -> IntArray:
        """For each row, how many targets would pass."""
        return self.n_between(self.formula - allowed, self.formula + allowed)

    def n_between(self, low: FloatArray, high: FloatArray) -> IntArray:
        """For each row, how many targets lie between two numbers."""
        ranked = np.sort(self.target)
        first = np.searchsorted(ranked, low, side="left")
        return np.searchsorted(ranked, high, side="right") - first


def propose(data: TrainingColumns, relation: AnyEquality) -> Proposal | None:
    """An equality with the tolerance of all rows, if held-out rows confirm it."""
    fit = fit_of(data, relation, slice(0, data.half)).defined
    if fit.target.size < MIN_CONFIRMING:
        return None
    half_unit = data.half_unit(relation.result)
    proposed = with_tolerance(relation, fit, half_unit, MARGIN)
    held = fit_of(data, relation, data.held_out).defined
    if proposed is None or held.target.size < MIN_CONFIRMING:
        return None
    allowed = _allowed(proposed, held.formula)
    n_broken = int((np.abs(held.target - held.formula) > allowed).sum())
    if n_broken > MAX_BROKEN * held.target.size:
        return None
    chance = log_chance(held.n_passing(allowed), n_broken)
    final = with_tolerance(
        relation, fit_of(data, relation, slice(0, data.n_rows)).defined, half_unit
    )
    return None if final is None else Proposal(final, chance, int(held.target.size))


def with_tolerance(
    relation: AnyEquality, fit: Fit, half_unit: float, margin: float = 1.0
) -> AnyEquality | None:
    """The equality with the tolerance that rows need; None if that would say too little."""
    gap = np.abs(fit.target - fit.formula)
    rounding = ROUNDING * _scale(fit)
    exact = replace(relation, rounding=rounding)
    needed = _needed(gap, half_unit + rounding)
    if needed <= rounding:
        return exact
    if REACHED_BY_ROUNDING * half_unit < needed <= half_unit + rounding:
        best = replace(exact, tolerance=half_unit)
    else:
        options = [replace(exact, tolerance=_round_up(needed * margin))]
        zero = fit.formula == 0
        share = np.where(zero, 0.0, gap / np.where(zero, 1.0, np.abs(fit.formula)))
        needed = _needed(share, 0.0)
        if needed and (gap[zero] <= rounding).all():
            options.append(replace(exact, tolerance=_round_up(needed * margin), relative=True))
        best = min(options, key=lambda one: fit.n_passing(_allowed(one, fit.formula)).sum())
    mean_deviation = np.abs(fit.target - np.median(fit.target)).mean()
    most = MAX_TOLERANCE * margin * mean_deviation
    return best if _allowed(best, fit.formula).mean() <= most else None


def typical(gap: FloatArray) -> float:
    """The deviation that the best 95 % of rows reach."""
    if not gap.size:
        return math.inf
    rank = min(int(TYPICAL_SHARE * gap.size), gap.size - 1)
    return float(np.partition(gap, rank)[rank])


def quality(data: TrainingColumns, relation: AnyEquality) -> tuple[float, ...]:
    """A key by which to choose among the ways to write one equality; the smallest is best.

    First those that are exact, then those whose deviations are rounding errors of the target, then
    others that tell all values of the target apart. Of the rest a product before a ratio, then the
    one whose target has the most values, since a computed column rarely has fewer than those it is
    computed from. Then the one that deviates least, has the fewest subtractions and fractions, and
    whose target has the widest range.
    """
    fit = fit_of(data, relation, slice(0, data.n_rows)).defined
    passing = fit.n_passing(_allowed(relation, fit.formula)).mean() / max(fit.target.size, 1)
    exact = 0.0 if relation.tolerance == 0 else round(math.log2(passing + 1e-9), 1)
    if isinstance(relation, Linear):
        n_odd = sum((weight < 0) + (abs(weight) < 1) for _, weight in relation.terms)
    else:
        n_odd = (relation.factor != 1) + (abs(relation.factor) < 1)
    is_ratio = float(isinstance(relation, Ratio))
    values = np.unique(fit.target)
    half_gap = np.diff(values).min(initial=np.inf) / 2
    rounded = not relation.relative and relation.tolerance <= half_gap * (1 + ROUNDING)
    return (
        float(relation.tolerance > 0),
        float(relation.tolerance not in (0.0, data.half_unit(relation.result))),
        *((0.0, 0.0, 0.0) if rounded else (1.0, is_ratio, -float(values.size))),
        exact,
        float(n_odd),
        is_ratio,
        -float(np.ptp(fit.target)) if fit.target.size else 0.0,
    )


def fit_of(data: TrainingColumns, relation: AnyEquality, rows: slice) -> Fit:
    """What an equality gives in some rows."""
    some = data.at(rows)
    return Fit(relation.compute(some), numbers_of(some, relation.result))


def _scale(fit: Fit) -> float:
    return float(max(np.abs(fit.target).max(initial=0.0), np.abs(fit.formula).max(initial=0.0)))


def _needed(size: FloatArray, rounding: float) -> float:
    """Tolerance of all rows but those that deviate far more than typical ones."""
    most = max(MAX_STRETCH * typical(size), rounding)
    return float(size.max(where=size <= most, initial=0.0))


def _allowed(relation: AnyEquality, formula: FloatArray) -> FloatArray:
    share = np.abs(formula) if relation.relative else 1.0
    return np.asarray(relation.tolerance * share + relation.rounding)


def _round_up(number: float) -> float:
    """The next number of two significant digits."""
    if number <= 0:
        return 0.0
    power = math.floor(math.log10(number)) - 1
    digits = math.ceil(number / 10.0**power * (1 - 1e-12))
    return float(f"{digits}e{power}")


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
class SelectedGroups:
    """Groups of columns that a forward selection chose, and the share of variance they explain."""

    groups: tuple[int, ...]
    explained: float


def select_forward(
    design: FloatArray, groups: IntArray, target: FloatArray, max_groups: int
) -> SelectedGroups:
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
    return SelectedGroups(tuple(chosen), explained)


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
    """The constant and the weights of columns that fit a target best, collinear columns 0."""
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
        # Not sum, which adds up differently from Python 3.12 on.
        shift = step[0] * SCALE - functools.reduce(operator.add, (change * centre).tolist(), 0.0)
        weights = weights + np.concatenate([[shift], change])
    return weights


def fit_robustly(
    columns: FloatArray, target: FloatArray, n_rounds: int
) -> tuple[FloatArray, IntArray]:
    """Weights fitted to all rows but those that deviate most, and the numbers of these."""
    weights, kept = np.zeros(len(columns) + 1), np.arange(target.size)
    n_kept = max(int(KEPT_SHARE * target.size), 1)
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


def snap(
    weights: FloatArray,
    deviation: Callable[[FloatArray], float],
    accepted: float,
    noise: float = 0.0,
) -> FloatArray:
    """The shortest numbers that do nearly as well as fitted ones."""
    most = max(MAX_ROUNDED_LOSS * deviation(weights), accepted)
    without = np.concatenate([[0.0], weights[1:]]) if abs(weights[0]) <= noise else weights
    for shorter in (*_shorter(without), without):
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
