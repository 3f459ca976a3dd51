"""Finding orderings: a column that is never above another one, plus an offset or times a factor.

Columns whose ranges are apart are ordered by their scale alone: permuting one of them would change
nothing, so that is no evidence. The same goes for pairs that nearly always are.

A bound on the difference or the ratio of two numbers is the extreme of the rows, made wider by as
much as the ten most extreme rows are apart, and rounded outward to a short number. Extremes of
numbers that merely go together are no law. Rows have to be near the bound wherever one of the
columns is, and as many as if the numbers came to an end there. The excesses over a high threshold
tell: if their squared mean is their variance, the tail is that of an exponential distribution,
which has no end; of a uniform one, it is three times as large. Normal tails are in between.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ..kernels import FloatArray, check_cancellation
from .evidence import (
    MAX_BROKEN,
    MAX_CHANCE,
    Recipe,
    TrainingColumns,
    count_passing,
    defined,
    log_chance,
)
from .fitting import short_between
from .kinds import Ordering
from .relation import columns_of, numbers_of

# Share of permuted rows that a bound excludes at least, and that an ordering does.
MIN_EXCLUDED, MIN_EXCLUDED_BY_ORDERING = 0.02, 0.05
# Rows that are screened, order statistics that stand for a column there, rows of which the extremes
# are looked at, and bounds that are tried.
ROWS_TO_SCREEN, N_QUANTILES, ROWS_TO_BOUND, MAX_BOUNDS = 1000, 32, 5000, 500
# This many rows tell how far beyond the most extreme one others may be.
N_EXTREME = 10
# The share of rows that is the tail, and how many these are at least and at most.
TAIL_SHARE, MIN_TAIL, MAX_TAIL = 0.1, 20, 500
# The squared mean of excesses as a multiple of their variance in the tail of a normal distribution,
# and its standard error for a single one.
NORMAL_CONCENTRATION, CONCENTRATION_ERROR = 1.35, 2.2
# Equal parts of the rows, by one of the columns, and how far the extremes of each part may be from
# the bound, as a share of the distance between the bound and the median.
N_PARTS, MAX_SHORT = 8, 0.25
PLAIN, DIFFERENCE, RATIO = range(3)


def find_orderings(half: TrainingColumns) -> Iterator[Recipe]:
    """Orderings of numbers, of dates and of durations, and bounds on two numbers."""
    some = half.at(slice(0, ROWS_TO_BOUND))
    for columns in (half.dates, half.durations, half.numbers):
        screened = _screened(half, columns)
        bounds = [pair for pair in screened if pair.kind != PLAIN and columns is half.numbers]
        for pair in [one for one in screened if one.kind == PLAIN]:
            yield partial(_ordering, pair.low, pair.high)
        for pair in bounds[:MAX_BOUNDS]:
            check_cancellation()
            if _is_limit(*_gaps(some, pair), n_tried=len(bounds)):
                yield partial(_bound, pair)


class Pair(NamedTuple):
    """Two columns, what of them is compared, and the share of permuted rows that this excludes."""

    excluded: float
    low: Hashable
    high: Hashable
    kind: int


def _screened(half: TrainingColumns, columns: Sequence[Hashable]) -> list[Pair]:
    """Pairs that rows do not break and chance would, the tightest first."""
    some, found = half.at(slice(0, ROWS_TO_SCREEN)), list[Pair]()
    values = np.array([numbers_of(some, one) for one in columns]).reshape(-1, len(some))
    sketches = np.array([_sketch(own) for own in values]).reshape(-1, N_QUANTILES)
    is_positive = np.fmin.reduce(values, axis=1, initial=np.inf) >= 0
    for number, low in enumerate(columns):
        check_cancellation()
        gaps = values[number] - values
        n_rows = np.count_nonzero(~np.isnan(gaps), axis=1)
        most = np.fmax.reduce(gaps, axis=1)[:, None]
        highest = np.fmax.reduce(values[number] / values, axis=1)[:, None]
        is_ordered = np.count_nonzero(gaps > 0, axis=1) <= MAX_BROKEN * n_rows
        has_ratio = is_positive & (highest[:, 0] > 0) & np.isfinite(highest[:, 0])
        kinds = (
            (sketches, is_ordered),
            (sketches + most, n_rows > 0),
            (sketches * highest, has_ratio),
        )
        for kind, (limits, is_kept) in enumerate(kinds):
            excluded = (sketches[number][:, None] > limits[:, None, :]).mean(axis=(1, 2))
            least = MIN_EXCLUDED if kind else MIN_EXCLUDED_BY_ORDERING
            kept = np.flatnonzero(is_kept & (n_rows > 0) & (excluded >= least))
            found += [Pair(excluded[other], low, columns[other], kind) for other in kept.tolist()]
    # Of what shares a column, one side depends on the other anyway.
    apart = [one for one in found if {*columns_of(one.low)}.isdisjoint(columns_of(one.high))]
    return sorted(apart, key=lambda pair: -pair.excluded)


def _sketch(numbers: FloatArray) -> FloatArray:
    """Some order statistics of a column; those of an empty one are NaN."""
    ascending = np.sort(numbers[~np.isnan(numbers)])
    ranks = (np.arange(N_QUANTILES) * 2 + 1) * ascending.size // (2 * N_QUANTILES)
    return ascending[ranks] if ascending.size else np.full(N_QUANTILES, np.nan)


def _ordering(low: Hashable, high: Hashable, data: TrainingColumns, margin: float) -> Ordering:
    """An ordering; strict if values are never equal although chance would have made some so."""
    lower, upper = defined([numbers_of(data, low), numbers_of(data, high)])
    n_equal, _ = count_passing(upper, lower, lower)
    never = not (lower == upper).any()
    strict = never and log_chance(lower.size - n_equal, 0) < math.log(MAX_CHANCE)
    return Ordering(low, high, strict=strict)


def _bound(pair: Pair, data: TrainingColumns, margin: float) -> Ordering | None:
    """The bound on a difference or a ratio; None for none and for an ordering without one."""
    gap, _ = _gaps(data, pair)
    most = outward(gap) if gap.size else math.inf
    if not math.isfinite(most) or (pair.kind == RATIO and most <= 0):
        return None
    offset, factor = (0.0, most) if pair.kind == RATIO else (-most, 1.0)
    bound = Ordering(pair.low, pair.high, offset=offset, factor=factor)
    return None if bound.is_plain else bound


@np.errstate(all="ignore")
def _gaps(data: TrainingColumns, pair: Pair) -> tuple[FloatArray, FloatArray]:
    """Differences or ratios of two columns, where they are defined, and the columns there."""
    columns = np.stack([numbers_of(data, pair.low), numbers_of(data, pair.high)])
    # A negative number over 0 bounds nothing, a positive one allows no bound.
    gap = columns[0] / columns[1] if pair.kind == RATIO else columns[0] - columns[1]
    is_defined = ~np.isnan(gap) & ~np.isneginf(gap)
    return gap[is_defined], columns[:, is_defined]


def _is_limit(gap: FloatArray, columns: FloatArray, n_tried: int) -> bool:
    """Whether gaps come to an end, and nearly reach it wherever one of two columns is."""
    if not ends(gap, n_tried):
        return False
    most = MAX_SHORT * (gap.max() - np.median(gap))
    parts = (np.array_split(gap[np.argsort(own, kind="stable")], N_PARTS) for own in columns)
    return any(gap.max() - min(part.max() for part in of_column) <= most for of_column in parts)


def ends(numbers: FloatArray, n_tried: int) -> bool:
    """Whether numbers come to an end: the largest are equal, or their tail is short.

    The more are tried, the shorter the tail has to be.
    """
    n_tail = int(np.clip(TAIL_SHARE * numbers.size, MIN_TAIL, MAX_TAIL))
    if numbers.size <= n_tail or np.isinf(numbers).any():
        return False
    threshold, *tail = np.sort(np.partition(numbers, -n_tail - 1)[-n_tail - 1 :])
    excess, error = np.array(tail) - threshold, CONCENTRATION_ERROR / math.sqrt(n_tail)
    least = NORMAL_CONCENTRATION + error * math.sqrt(2 * math.log(1 + n_tried))
    return bool(excess.mean() ** 2 >= least * excess.var() or tail[-1] == tail[-N_EXTREME])


def outward(numbers: FloatArray) -> float:
    """A short number at or above all, as far above as some of the largest are below it."""
    top = np.partition(numbers, -min(N_EXTREME, numbers.size))[-N_EXTREME:]
    # Floats are compared less exactly than this, and names are short.
    least, most = top.max() - 1e-12 * abs(top.max()), top.max() + 1e-6 * abs(top.max())
    return short_between(float(least), float(max(2 * top.max() - top.min(), most)))
