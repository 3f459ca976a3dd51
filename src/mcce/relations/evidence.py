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
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..encodings import ColumnCache, remember
from ..kernels import BoolArray, Codes, FloatArray, IntArray, absorb, check_cancellation
from ..tables.columns import EXACT_IN_FLOAT64
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from .relation import Relation, numbers_of_cells
from .views import DateView, find_views

# A relation is accepted if its chance, times the number of relations tried, is below this.
MAX_CHANCE = 1e-6
ROWS_PER_PIECE = 100_000


@dataclass(frozen=True, eq=False)
class TrainingColumns:
    """Distinct training rows, by column."""

    schema: Schema
    codes: Codes
    weights: IntArray
    column_cache: ColumnCache = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: EncodedRows) -> TrainingColumns:
        """The columns of encoded training rows."""
        hashes = _hashes(rows.codes)
        order = np.argsort(hashes)
        ascending = hashes[order]
        starts = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
        first, weights = np.minimum.reduceat(order, starts), np.diff(starts, append=order.size)
        return cls(rows.schema, rows.codes[:, first], weights)

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return self.codes.shape[1]

    @property
    def half(self) -> int:
        """Number of rows for discovery."""
        return (self.n_rows + 1) // 2

    @property
    def held_out(self) -> slice:
        """The rows that confirm."""
        return slice(self.half, self.n_rows)

    @cached_property
    def names(self) -> list[Hashable]:
        """The columns, and after them views of dates."""
        return [*self.schema.names, *self._views]

    @cached_property
    def numeric(self) -> list[int]:
        """Positions of numeric columns that vary, times left out, and of days between dates."""
        return [at for at in self.values if self._kind(at) not in "mM"]

    @cached_property
    def times(self) -> dict[str, list[int]]:
        """Positions of dates and of durations."""
        return {kind: [at for at in self.values if self._kind(at) == kind] for kind in "mM"}

    def is_view(self, at: int) -> bool:
        """Whether a position is that of a view."""
        return at >= len(self.schema.features)

    @cached_property
    def values(self) -> dict[int, FloatArray]:
        """The number of each code of columns that vary, or of each row of views; NaN for missing.

        Times are in nanoseconds.
        """
        tables = {
            column: numbers_of_cells(feature.table)
            for column, feature in enumerate(self.schema.features)
            if _is_measured(feature)
        }
        for at, view in enumerate(self._views, len(self.schema.features)):
            numbers = view.numbers(self)
            present = numbers[~np.isnan(numbers)]
            if present.size and present.min() < present.max():
                tables[at] = numbers
        return tables

    def numbers(self, at: int, rows: slice | IntArray) -> FloatArray:
        """The numbers of a column or view, NaN for missing."""
        of_rows = rows if self.is_view(at) else self.codes[at, rows]
        return self.values[at][of_rows]

    def holds(self, relation: Relation) -> BoolArray:
        """Whether a relation holds in each row."""
        starts = range(0, self.n_rows, ROWS_PER_PIECE)
        pieces = (slice(start, start + ROWS_PER_PIECE) for start in starts)
        return np.concatenate([relation.holds(self.at(rows)) for rows in pieces])

    def half_unit(self, name: Hashable) -> float:
        """Half a unit of a column's last decimal; 0 if it has too many to tell."""
        return self.schema.features[self.schema.names.index(name)].resolution / 2

    def at(self, rows: slice | IntArray) -> TrainingColumns:
        """Some of the rows."""
        return replace(self, codes=self.codes[:, rows], weights=self.weights[rows])

    def __len__(self) -> int:
        """Number of distinct rows."""
        return self.n_rows

    def read(
        self, feature: Hashable, read: Callable[[pd.Series[Any]], np.ndarray], key: Hashable
    ) -> np.ndarray:
        """What a function gives for the cells of a column; it is called once for each value."""
        column = self.schema.names.index(feature)
        table = self.schema.features[column].table
        of_table = remember(self.column_cache, (feature, key), table, lambda: read(table))
        return of_table[self.codes[column]]

    @cached_property
    def _views(self) -> list[DateView]:
        return find_views(self.schema)

    def _kind(self, at: int) -> str:
        """The kind of a column's dtype; views are dates or floats."""
        n_columns = len(self.schema.features)
        if at < n_columns:
            return str(self.schema.features[at].table.dtype.kind)
        return "M" if self._views[at - n_columns].what == "date" else "f"


def _is_measured(feature: Feature) -> bool:
    """Whether a feature varies and is a time, or numbers that float64 holds exactly."""
    dtype, numbers = feature.table.dtype, feature.numbers
    if numbers is None or feature.spread <= 0:
        return False
    return dtype.kind in "fmM" or bool(np.nanmax(np.abs(numbers)) < EXACT_IN_FLOAT64)


def _hashes(codes: Codes) -> np.ndarray:
    """A 64-bit hash of each row's codes."""
    total = np.zeros(codes.shape[1], dtype=np.uint64)
    for column, own in enumerate(codes):
        mixed = own.astype(np.uint64) + np.uint64(column) * np.uint64(2**32)
        total = absorb(total, absorb(mixed, 0))
    return total


@dataclass(frozen=True)
class Proposal:
    """A relation that held-out rows confirm."""

    relation: Relation
    log_chance: float
    n_rows: int


@dataclass(frozen=True)
class Findings:
    """The proposals of one finder."""

    proposals: tuple[Proposal, ...]
    n_tried: int

    @classmethod
    def of(cls, tried: Iterable[Proposal | None], n_tried: int) -> Findings:
        """What held-out rows confirm of some relations, found one by one."""
        proposals = []
        for proposal in tried:
            check_cancellation()
            if proposal is not None:
                proposals.append(proposal)
        return cls(tuple(proposals), n_tried)


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
