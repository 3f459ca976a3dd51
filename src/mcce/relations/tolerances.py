"""How closely an equality holds: its tolerance, and how often chance would do as well.

The tolerance is the largest deviation up to three times that of the best 95 % of rows, so it is
that of all rows unless some are broken. A tolerance is at most a fifth of the mean deviation of
targets from their median: an equality that holds within a larger one would say too little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..kernels import FloatArray, IntArray
from .equalities import Linear, Product, Ratio
from .proposals import Proposal
from .significance import log_chance
from .training import TrainingColumns

AnyEquality = Linear | Product | Ratio
# Share of rows that are surely not broken.
TYPICAL = 0.95
# Rows are broken that deviate this many times as much as typical ones; so many may be.
MAX_STRETCH = 3.0
MAX_BROKEN = 0.04
# Rows for discovery are half of all: the others may deviate slightly more.
MARGIN = 1.25
# The largest tolerance, as a share of the mean deviation of targets from their median.
MAX_TOLERANCE = 0.2
# Relative error that floating point may make.
ROUNDING = 1e-9
MIN_ROWS = 20


@dataclass(frozen=True)
class _Fit:
    """Deviations of an equality in some rows."""

    formula: FloatArray
    target: FloatArray

    @property
    def defined(self) -> _Fit:
        """Only the rows where both sides are defined."""
        here = ~np.isnan(self.formula) & ~np.isnan(self.target)
        return _Fit(self.formula[here], self.target[here])

    def n_passing(self, allowed: FloatArray) -> IntArray:
        """For each row, how many targets would pass."""
        ranked = np.sort(self.target)
        low = np.searchsorted(ranked, self.formula - allowed, side="left")
        return np.searchsorted(ranked, self.formula + allowed, side="right") - low


def propose(data: TrainingColumns, relation: AnyEquality) -> Proposal | None:
    """An equality with the tolerance of all rows, if held-out rows confirm it."""
    fit = _fit(data, relation, slice(0, data.half)).defined
    if fit.target.size < MIN_ROWS:
        return None
    believed = with_tolerance(relation, fit, MARGIN)
    held = _fit(data, relation, data.held_out).defined
    if believed is None or held.target.size < MIN_ROWS:
        return None
    allowed = _allowed(believed, held.formula)
    n_broken = int((np.abs(held.target - held.formula) > allowed).sum())
    if n_broken > MAX_BROKEN * held.target.size:
        return None
    chance = log_chance(held.n_passing(allowed), n_broken)
    final = with_tolerance(relation, _fit(data, relation, slice(0, data.n_rows)).defined)
    return None if final is None else Proposal(final, chance, int(held.target.size))


def with_tolerance(relation: AnyEquality, fit: _Fit, margin: float = 1.0) -> AnyEquality | None:
    """The equality with the tolerance that rows need; None if that would say too little."""
    gap = np.abs(fit.target - fit.formula)
    rounding = ROUNDING * _scale(fit)
    options = [(False, gap)]
    share = gap / np.where(fit.formula == 0, 1.0, np.abs(fit.formula))
    if (gap[fit.formula == 0] <= rounding).all():
        options.append((True, np.where(fit.formula == 0, 0.0, share)))
    found: list[tuple[float, AnyEquality]] = []
    for relative, size in options:
        needed = _needed(size, 0.0 if relative else rounding) * margin
        tolerance = 0.0 if not relative and needed <= rounding * margin else _round_up(needed)
        option = replace(relation, tolerance=tolerance, relative=relative, rounding=rounding)
        if tolerance == 0.0:
            return replace(option, relative=False)
        passing = float(fit.n_passing(_allowed(option, fit.formula)).mean() / fit.target.size)
        found.append((passing, option))
    _, best = min(found, key=lambda pair: pair[0])
    spread = np.abs(fit.target - np.median(fit.target)).mean()
    most = MAX_TOLERANCE * margin * spread
    return best if _allowed(best, fit.formula).mean() <= most else None


def typical(gap: FloatArray) -> float:
    """The deviation that the best 95 % of rows reach."""
    if not gap.size:
        return math.inf
    place = min(int(TYPICAL * gap.size), gap.size - 1)
    return float(np.partition(gap, place)[place])


def quality(data: TrainingColumns, relation: AnyEquality) -> tuple[float, ...]:
    """A key by which to choose among the ways to write one equality; the smallest is best.

    First those that are exact but for rounding. Of the others a product before a ratio, then the
    one whose target has the most values, since a computed column rarely has fewer than those it is
    computed from. Then the one that deviates least, has the fewest subtractions and fractions, and
    whose target has the widest range.
    """
    fit = _fit(data, relation, slice(0, data.n_rows)).defined
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
        *((0.0, 0.0, 0.0) if rounded else (1.0, is_ratio, -float(values.size))),
        exact,
        float(n_odd),
        is_ratio,
        -float(np.ptp(fit.target)) if fit.target.size else 0.0,
    )


def _fit(data: TrainingColumns, relation: AnyEquality, rows: slice) -> _Fit:
    frame = data.frame(relation.features, rows)
    formula = relation.compute(frame)
    return _Fit(formula, relation.deviation(frame) + formula)


def _scale(fit: _Fit) -> float:
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
