"""The rows that relations are found in, and the evidence that they give for one.

Training rows are distinct, scattered and in two halves. They are sorted by a hash of their codes,
so their order among the training data changes nothing, and equal rows, which are no further
evidence, count once. The first half is for discovery, the second one is held out. Which half a row
falls in depends on its own cells alone, and on how many rows there are.

A relation is fixed before the held-out rows are looked at. Permuting its target among those n rows
gives a 0/1 matrix: whether row i passes with the target of row j, with r_i ones in row i. All n
rows pass under perm(A) of the n! permutations, and by the inequality of Bregman and Minc perm(A) is
at most the product of (r_i!)^(1/r_i). If k rows fail, the same holds of each choice of the other
n - k, with rows of ones for those left out: C(n, k) times the largest such product bounds the
chance. Stirling's bounds replace the factorials, on the safe side.

Always true: the chance that is returned is at least that of a permutation that passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..encodings import ColumnCache, remember
from ..kernels import BoolArray, Codes, FloatArray, IntArray, absorb
from ..tables.columns import EXACT_IN_FLOAT64
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from .dates import DateView, find_views
from .relation import Relation, numbers_of

# A relation is accepted if its chance, times the number of relations tried, is below this.
MAX_CHANCE = 1e-6
# Up to this share of rows may be broken, and up to this share of what chance would break.
MAX_BROKEN, MAX_BROKEN_BY_CHANCE = 0.02, 0.03
# Held-out rows that confirm, at least and at most.
MIN_CONFIRMING, MAX_CONFIRMING = 20, 20_000
ROWS_PER_PIECE = 100_000


@dataclass(frozen=True, eq=False)
class TrainingColumns:
    """Distinct training rows, by column."""

    schema: Schema
    codes: Codes
    weights: IntArray
    column_cache: ColumnCache = field(default_factory=dict, repr=False)
    # Cells that stand for those of a column.
    filled: Mapping[Hashable, pd.Series[Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: EncodedRows) -> TrainingColumns:
        """The columns of encoded training rows."""
        hashes = _hashes(rows.codes)
        order = np.argsort(hashes)
        ascending = hashes[order]
        starts = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
        first, weights = np.minimum.reduceat(order, starts), np.diff(starts, append=order.size)
        return cls(rows.schema, rows.codes[:, first], weights)

    def __len__(self) -> int:
        """Number of distinct rows."""
        return self.codes.shape[1]

    def at(self, rows: slice) -> TrainingColumns:
        """Some of the rows."""
        return replace(self, codes=self.codes[:, rows], weights=self.weights[rows])

    def read(
        self, feature: Hashable, read: Callable[[pd.Series[Any]], np.ndarray], key: Hashable
    ) -> np.ndarray:
        """What a function gives for the cells of a column; it is called once for each value."""
        if feature in self.filled:
            return read(self.filled[feature])
        table = self.feature(feature).table
        of_table = remember(self.column_cache, (feature, key), table, lambda: read(table))
        return of_table[self.codes_of(feature)]

    def feature(self, name: Hashable) -> Feature:
        """A column by name."""
        return self.schema.features[self.schema.position_of[name]]

    def codes_of(self, name: Hashable) -> Codes:
        """The codes of a column."""
        return self.codes[self.schema.position_of[name]]

    def half_unit(self, name: Hashable) -> float:
        """Half a unit of a column's last decimal; 0 if it has too many to tell."""
        return self.feature(name).resolution / 2

    @cached_property
    def numbers(self) -> list[Hashable]:
        """Numeric columns that vary, without times, and the days between two dates."""
        return [*self._columns("iuf"), *(one for one in self._views if one.what == "days")]

    @cached_property
    def dates(self) -> list[Hashable]:
        """Dates, whatever they are written in."""
        return [*self._columns("M"), *(one for one in self._views if one.what == "date")]

    @cached_property
    def durations(self) -> list[Hashable]:
        """Columns of durations."""
        return self._columns("m")

    @cached_property
    def _views(self) -> list[DateView]:
        numbers = {one: numbers_of(self, one) for one in find_views(self.schema)}
        return [one for one, own in numbers.items() if np.fmin.reduce(own) < np.fmax.reduce(own)]

    def _columns(self, kinds: str) -> list[Hashable]:
        """Columns that vary, of these kinds of dtypes, which float64 holds exactly."""
        return [
            one.name
            for one in self.schema.features
            if one.numbers is not None
            and one.spread > 0
            and one.table.dtype.kind in kinds
            and (kinds != "iuf" or _is_exact(one))
        ]

    def holds(self, relation: Relation) -> BoolArray:
        """Whether a relation holds in each row."""
        starts = range(0, len(self), ROWS_PER_PIECE)
        pieces = (slice(start, start + ROWS_PER_PIECE) for start in starts)
        return np.concatenate([relation.holds(self.at(rows)) for rows in pieces])


def _is_exact(feature: Feature) -> bool:
    """Whether float64 holds all numbers of a column exactly."""
    largest = np.abs(feature.known_numbers).max()
    return feature.table.dtype.kind == "f" or bool(largest < EXACT_IN_FLOAT64)


def _hashes(codes: Codes) -> np.ndarray:
    """A 64-bit hash of each row's codes."""
    total = np.zeros(codes.shape[1], dtype=np.uint64)
    for column, own in enumerate(codes):
        mixed = own.astype(np.uint64) + np.uint64(column) * np.uint64(2**32)
        total = absorb(total, absorb(mixed, 0))
    return total


# Makes the relation that holds in some rows, if there is one; deviations grow by a margin.
Recipe: TypeAlias = Callable[[TrainingColumns, float], Relation | None]


@dataclass(frozen=True)
class Evidence:
    """How many held-out rows confirm a relation, and a bound on the chance that they would."""

    n_rows: int
    log_chance: float


def confirm(relation: Relation, held_out: TrainingColumns) -> Evidence | None:
    """What rows that a relation was not found in say of it; None if they contradict it."""
    target, low, high = defined(relation.limits(held_out.at(slice(0, MAX_CONFIRMING))))
    n_rows = target.size
    if n_rows < MIN_CONFIRMING:
        return None
    n_passing, by_chance = count_passing(target, low, high)
    n_broken = int(((target < low) | (target > high)).sum())
    if n_broken > min(MAX_BROKEN, MAX_BROKEN_BY_CHANCE * by_chance) * n_rows:
        return None
    return Evidence(n_rows, log_chance(n_passing, n_broken))


def defined(numbers: Sequence[FloatArray]) -> FloatArray:
    """Numbers of the rows in which none of them is missing."""
    of_rows = np.stack(numbers)
    return of_rows[:, ~np.isnan(of_rows).any(axis=0)]


def count_passing(target: FloatArray, low: FloatArray, high: FloatArray) -> tuple[IntArray, float]:
    """How many of the targets are within each row's limits, and the mean share of those outside."""
    ranked = np.sort(target)
    first = np.searchsorted(ranked, low, side="left")
    n_passing = np.maximum(np.searchsorted(ranked, high, side="right") - first, 0)
    return n_passing, 1 - float(n_passing.mean()) / max(target.size, 1)


def log_chance(n_passing: IntArray, n_broken: int) -> float:
    """Logarithm of the bound."""
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
