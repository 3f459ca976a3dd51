"""Finding what holds between two columns: orderings, equivalences and dependencies.

An ordering is a column that is never above another, in numbers or in dates. Columns whose ranges
are apart are ordered by their scale alone: permuting one of them would change nothing, so that is
no evidence. The same goes for pairs that nearly always are.

An equivalence is a missing cell, level or special number that goes with another. Conditions are
sets of rows, kept as bits. Two are compared only if they hold in about equally many rows, so the
work grows with the number of conditions and hardly with their pairs.

A dependency is a column whose value another one determines. Only values of the determinant that
occur again count: a nearly unique column determines everything by accident. Which value goes with
which is learned from one half of the rows and checked in the other, where a permuted column is
right as often as that value occurs. A part of a date, such as its month, is a determinant like a
column; so is how many limits a number exceeds, if a column of few values changes at these alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels import BoolArray, Codes, FloatArray, IntArray, check_cancellation
from ..tables.columns import is_time
from .evidence import MAX_CHANCE, Findings, Proposal, TrainingColumns, log_chance
from .fitting import short_between
from .kinds import Dependency, Equivalence, HasValue, Ordering
from .relation import View, columns_of, values_of
from .views import DATE_PARTS, DateView, Steps

# Up to this share of rows may be broken in a relation that is listed.
MAX_BROKEN = 0.02

# Rows on which orderings and dependencies are screened, and rows for equivalences.
ROWS_TO_SCREEN, ROWS_TO_MATCH = 2000, 20_000

# At least this share of rows would be broken if the columns had nothing to do with each other.
MIN_INFORMATIVE = 0.05
# An ordering is broken at most this often, compared with columns that have nothing to do with it.
MAX_ORDERED_BY_CHANCE = 0.03
N_QUANTILES = 32

# Up to this share of the rows in which a condition holds, or does not, may be broken.
MAX_BROKEN_OF_SIDE = 0.1
# A condition must hold, and fail, in this many rows.
MIN_ROWS = 3
MAX_LEVELS = 50
# The most frequent numbers of a column may be special, beside its smallest and largest.
N_FREQUENT = 2
CONDITIONS_PER_PIECE = 4096

# Columns with more values than this are no determinant: the table would be as long as the data.
MAX_VALUES = 1000
# Steps of a number at most, and rows on which they are screened.
MAX_STEPS, ROWS_TO_STEP = 8, 512
# Of sorted rows, so many neighbours must have the same determinant. They may differ this often, and
# this often compared with chance.
MIN_AGAIN, MAX_DIFFERENT, MAX_DIFFERENT_BY_CHANCE = 10, 0.05, 0.3


def find_orderings(data: TrainingColumns) -> Findings:
    """Orderings between numbers, between dates, and between durations."""
    kinds = [data.numeric, *data.times.values()]
    tried = (
        confirm_ordering(data, Ordering(data.names[low], data.names[high], strict=True))
        for columns in kinds
        for low, high in _nearly_ordered(data, columns)
    )
    sizes = np.array([len(columns) for columns in kinds])
    return Findings.of(tried, int((2 * sizes * (sizes - 1)).sum()))


def confirm_ordering(
    data: TrainingColumns,
    relation: Ordering,
    min_informative: float = MIN_INFORMATIVE,
    max_rows: int | None = None,
) -> Proposal | None:
    """An ordering, if held-out rows confirm it; not strict if it should not be."""
    if relation.uses_cells_twice:
        return None
    low, high = (data.names.index(name) for name in relation.operands)
    end = data.n_rows if max_rows is None else min(data.n_rows, data.half + max_rows)
    rows = slice(data.half, end)
    lower = data.numbers(low, rows) + relation.offset
    upper = data.numbers(high, rows) * relation.factor
    is_present = ~np.isnan(lower) & ~np.isnan(upper)
    lower, upper = lower[is_present], upper[is_present]
    passing = lower.size - np.searchsorted(np.sort(upper), lower, side="left")
    if not lower.size or passing.mean() > (1 - min_informative) * lower.size:
        return None
    n_broken = int((lower > upper).sum())
    by_chance = lower.size - passing.mean()
    if n_broken > min(MAX_BROKEN * lower.size, MAX_ORDERED_BY_CHANCE * by_chance):
        return None
    chance = log_chance(passing, n_broken)
    strict = relation.strict and _never_equal(lower, upper)
    return Proposal(replace(relation, strict=strict), chance, int(lower.size))


def _never_equal(lower: FloatArray, upper: FloatArray) -> bool:
    """Whether values are never equal although chance would have made some so."""
    if (lower == upper).any():
        return False
    ranks = np.sort(upper)
    equal = np.searchsorted(ranks, lower, side="right") - np.searchsorted(ranks, lower)
    return log_chance(lower.size - equal, 0) < math.log(MAX_CHANCE)


def _nearly_ordered(data: TrainingColumns, columns: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs that hold in nearly all rows for discovery, and not by their scale alone."""
    rows = slice(0, min(data.half, ROWS_TO_SCREEN))
    values = np.array([data.numbers(column, rows) for column in columns])
    if len(columns) < 2:
        return
    sketches = sketches_of(values)
    for i, low in enumerate(columns):
        check_cancellation()
        n_above = (values[i] > values).sum(axis=1)
        n_present = (~np.isnan(values[i]) & ~np.isnan(values)).sum(axis=1)
        passing = (sketches[i][:, None] <= sketches[:, None, :]).mean(axis=(1, 2))
        holds = (n_present > 0) & (n_above <= MAX_BROKEN * n_present)
        holds &= passing <= 1 - MIN_INFORMATIVE / 2
        holds[i] = False
        for j in np.flatnonzero(holds):
            yield low, columns[j]


def sketches_of(values: FloatArray) -> FloatArray:
    """Some order statistics of each column; those of an empty one are NaN."""
    sketches = np.full((len(values), N_QUANTILES), np.nan)
    for sketch, numbers in zip(sketches, values, strict=True):
        present = np.sort(numbers[~np.isnan(numbers)])
        if present.size:
            ranks = (np.arange(N_QUANTILES) * 2 + 1) * present.size // (2 * N_QUANTILES)
            sketch[:] = present[ranks]
    return sketches


@dataclass(frozen=True)
class _CodeCondition:
    """That a column has one of its codes."""

    column: int
    code: int


def find_equivalences(data: TrainingColumns) -> Findings:
    """Equivalences between conditions on two columns."""
    n_rows = min(data.half, ROWS_TO_MATCH)
    codes = data.codes[:, :n_rows]
    conditions = [one for column in range(len(codes)) for one in _conditions(data, column, n_rows)]
    if len(conditions) < 2:
        return Findings((), 0)
    bits = np.stack([_bits(codes[one.column] == one.code) for one in conditions])
    tried = (
        _confirmed_equivalence(data, conditions[first], conditions[second])
        for first, second in _similar(conditions, bits, n_rows)
    )
    return Findings.of(tried, len(conditions) * (len(conditions) - 1) // 2)


def _conditions(data: TrainingColumns, column: int, n_rows: int) -> Iterator[_CodeCondition]:
    """Conditions on one column that hold in some rows and fail in some."""
    feature = data.schema.features[column]
    counts = np.bincount(data.codes[column, :n_rows], minlength=feature.n_codes)
    chosen = {feature.n_codes - 1} if feature.has_missing else set()
    if feature.kind == "categorical" and feature.n_codes <= MAX_LEVELS:
        chosen |= {*range(feature.n_codes)}
    elif column in data.numeric:
        known = counts[: feature.n_codes - feature.has_missing]
        chosen |= {0, known.size - 1, *np.argsort(-known, kind="stable")[:N_FREQUENT].tolist()}
    for code in sorted(chosen):
        if MIN_ROWS <= counts[code] <= n_rows - MIN_ROWS:
            yield _CodeCondition(column, code)


def _bits(holds: BoolArray) -> np.ndarray:
    padded = np.zeros(-(-holds.size // 64) * 64, dtype=bool)
    padded[: holds.size] = holds
    return np.packbits(padded).view(np.uint64)


def _similar(
    conditions: list[_CodeCondition], bits: np.ndarray, n_rows: int
) -> Iterator[tuple[int, int]]:
    """Pairs of conditions on different columns that hold in nearly the same rows."""
    counts = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    columns = np.array([one.column for one in conditions])
    allowed = np.minimum(
        MAX_BROKEN * n_rows, MAX_BROKEN_OF_SIDE * np.minimum(counts, n_rows - counts)
    )
    order = np.argsort(counts, kind="stable")
    ascending = counts[order]
    pairs: list[tuple[int, int]] = []
    for rank, first in enumerate(order):
        end = np.searchsorted(ascending, counts[first] + allowed[first], side="right")
        others = order[rank + 1 : end]
        others = others[columns[others] != columns[first]]
        for start in range(0, others.size, CONDITIONS_PER_PIECE):
            piece = others[start : start + CONDITIONS_PER_PIECE]
            differ = np.bitwise_count(bits[piece] ^ bits[first]).sum(axis=1, dtype=np.int64)
            near: IntArray = piece[differ <= allowed[first]]
            pairs += [(min(first, other), max(first, other)) for other in near.tolist()]
    yield from sorted((int(first), int(second)) for first, second in pairs)


def _confirmed_equivalence(
    data: TrainingColumns, first: _CodeCondition, second: _CodeCondition
) -> Proposal | None:
    left = data.codes[first.column, data.held_out] == first.code
    right = data.codes[second.column, data.held_out] == second.code
    n_broken, n_right = int((left != right).sum()), int(right.sum())
    smaller = min(n_right, right.size - n_right)
    if n_broken > min(MAX_BROKEN * right.size, MAX_BROKEN_OF_SIDE * smaller):
        return None
    chance = log_chance(np.where(left, n_right, right.size - n_right), n_broken)
    relation = Equivalence(_condition(data, first), _condition(data, second))
    return Proposal(relation, chance, int(right.size))


def _condition(data: TrainingColumns, condition: _CodeCondition) -> HasValue:
    value = values_of(data.schema.features[condition.column])[condition.code]
    return HasValue(data.schema.names[condition.column], value)


def find_dependencies(data: TrainingColumns) -> Findings:
    """Dependencies on a column that is no time, on a part of a date, and on steps of a number."""
    features = data.schema.features
    results = [
        column
        for column, feature in enumerate(features)
        if feature.n_codes > 1 and not is_time(feature.table.dtype)
    ]
    few = min(MAX_VALUES, data.half)
    lefts = [
        _Determinant(one.name, data.codes[at], values_of(one) if one.n_codes <= few else [])
        for at, one in enumerate(features)
        if (one.n_codes <= few and at in results) or at in data.numeric
    ]
    dates = [data.names[at] for at in data.times["M"]]
    lefts += [
        _Determinant.of_view(DateView(part, (date,)), data) for part in DATE_PARTS for date in dates
    ]
    tried = (
        _confirmed_dependency(data, left, right)
        if left.values
        else _confirmed_steps(data, left.operand, right)
        for left in lefts
        for right in _nearly_determined(data, left, results)
    )
    return Findings.of(tried, len(lefts) * len(results))


@dataclass(frozen=True, eq=False)
class _Determinant:
    """A column or a view as codes, and the value of each code; none of many numbers."""

    operand: Hashable
    codes: Codes
    values: list[Any]

    @classmethod
    def of_view(cls, view: View, data: TrainingColumns) -> _Determinant:
        """The codes of a view; missing comes last."""
        values, codes = np.unique(view.numbers(data), return_inverse=True)
        known = [None if np.isnan(value) else float(value) for value in values]
        return cls(view, codes.astype(np.int32), known)


def _nearly_determined(
    data: TrainingColumns, left: _Determinant, results: list[int]
) -> Iterator[int]:
    """Columns that hardly differ between rows of the same value, of many numbers the next one."""
    check_cancellation()
    n_rows = min(data.half, ROWS_TO_SCREEN if left.values else ROWS_TO_STEP)
    order = np.argsort(left.codes[:n_rows], kind="stable")
    again = np.flatnonzero((np.diff(left.codes[order]) == 0) | (not left.values))
    if again.size < MIN_AGAIN:
        return
    codes = data.codes[results, :n_rows]
    differs = (codes[:, order[again]] != codes[:, order[again + 1]]).mean(axis=1)
    for at in np.flatnonzero(differs <= MAX_DIFFERENT):
        by_chance = MAX_DIFFERENT_BY_CHANCE * _chance_of_difference(codes[at])
        if differs[at] <= by_chance and data.names[results[at]] not in columns_of(left.operand):
            yield results[at]


def _chance_of_difference(codes: Codes) -> float:
    shares = np.bincount(codes) / codes.size
    return float(1 - (shares * shares).sum())


def _confirmed_steps(data: TrainingColumns, left: Hashable, right: int) -> Proposal | None:
    """The dependency on steps of a number, with the limits of all rows."""
    samples = (slice(0, data.half), slice(0, data.n_rows))
    limits = [_limits(data, left, right, rows) for rows in samples]
    if not all(limits):
        return None
    tried, final = (_Determinant.of_view(Steps((left,), own), data) for own in limits)
    return _confirmed_dependency(data, tried, right, final)


def _limits(data: TrainingColumns, left: Hashable, right: int, rows: slice) -> tuple[float, ...]:
    """Short numbers at which the value of a column changes; none unless it does so in steps."""
    numbers = data.numbers(data.names.index(left), rows)
    order = np.argsort(numbers, kind="stable")[: int((~np.isnan(numbers)).sum())]
    ascending, codes = numbers[order], data.codes[right, rows][order]
    last = np.flatnonzero(np.diff(codes))
    lengths = np.diff(last, prepend=-1, append=codes.size - 1)
    below, above = ascending[last], ascending[last + 1]
    if last.size > MAX_STEPS or (below == above).any() or lengths.min() < MIN_ROWS:
        return ()
    highest = np.nextafter(above, -np.inf)
    return tuple(
        short_between(*pair) for pair in zip(below.tolist(), highest.tolist(), strict=True)
    )


def _confirmed_dependency(
    data: TrainingColumns, left: _Determinant, right: int, final: _Determinant | None = None
) -> Proposal | None:
    """A dependency that held-out rows confirm, learned from all of them with the final codes."""
    features, final = data.schema.features, final or left
    expected = most_frequent(
        left.codes[: data.half], data.codes[right, : data.half], len(left.values)
    )
    expected, own = expected[left.codes[data.held_out]], data.codes[right, data.held_out]
    expected, own = expected[expected >= 0], own[expected >= 0]
    n_broken = int((expected != own).sum())
    if not own.size or n_broken > MAX_BROKEN * own.size:
        return None
    counts = np.bincount(own, minlength=features[right].n_codes)
    chance = log_chance(counts[expected], n_broken)
    all_expected = most_frequent(final.codes, data.codes[right], len(final.values))
    pairs = zip(final.values, all_expected, strict=True)
    results = values_of(features[right])
    values = tuple((value, results[code]) for value, code in pairs if code >= 0)
    relation = Dependency(final.operand, features[right].name, values)
    return Proposal(relation, chance, int(own.size))


def most_frequent(left: Codes, right: Codes, n_values: int) -> IntArray:
    """The value that most often goes with each one on the left, the first of equals; else -1."""
    pairs, counts = np.unique(left.astype(np.int64) << 32 | right, return_counts=True)
    lefts, rights = pairs >> 32, pairs & 0xFFFFFFFF
    order = np.lexsort((rights, -counts, lefts))
    values, first = np.unique(lefts[order], return_index=True)
    expected = np.full(n_values, -1, dtype=np.int64)
    expected[values] = rights[order][first]
    return expected
