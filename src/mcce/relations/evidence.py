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
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..kernels import BoolArray, Codes, FloatArray, IntArray, absorb, check_cancellation
from ..tables.columns import EXACT_IN_FLOAT64, assemble, is_time, unit_of, unwrapped
from ..tables.schema import EncodedRows, Schema
from .relation import Relation

# A relation is accepted if its chance, times the number of relations tried, is below this.
MAX_CHANCE = 1e-6
ROWS_PER_PIECE = 100_000


@dataclass(frozen=True, eq=False)
class TrainingColumns:
    """Distinct training rows, by column."""

    schema: Schema
    codes: Codes
    weights: IntArray

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
    def numeric(self) -> list[int]:
        """Positions of numeric columns that vary, times left out."""
        return [at for at in self._measured if not is_time(self._dtype(at))]

    @cached_property
    def times(self) -> list[int]:
        """Positions of dates and of durations."""
        return [at for at in self._measured if is_time(self._dtype(at))]

    @cached_property
    def values(self) -> dict[int, FloatArray]:
        """The number of each code of numeric columns, NaN for missing; times in nanoseconds."""
        tables: dict[int, FloatArray] = {}
        for at in self._measured:
            feature = self.schema.features[at]
            assert feature.numbers is not None
            unit = unit_of(self._dtype(at)) if is_time(self._dtype(at)) else 1
            tables[at] = feature.numbers * unit if unit != 1 else feature.numbers
        return tables

    def numbers(self, position: int, rows: slice | IntArray) -> FloatArray:
        """The cells of a numeric column, NaN for missing."""
        return self.values[position][self.codes[position, rows]]

    def holds(self, relation: Relation) -> BoolArray:
        """Whether a relation holds in each row."""
        pieces = range(0, self.n_rows, ROWS_PER_PIECE)
        held = [
            relation.holds(self.frame(relation.features, slice(start, start + ROWS_PER_PIECE)))
            for start in pieces
        ]
        return np.concatenate(held)

    def half_unit(self, name: Hashable) -> float:
        """Half a unit of a column's last decimal; 0 if it has too many to tell."""
        return self.schema.features[self.schema.names.index(name)].resolution / 2

    def frame(self, names: Sequence[Hashable], rows: slice | IntArray) -> pd.DataFrame:
        """Some columns of some rows."""
        place = {name: at for at, name in enumerate(self.schema.names)}
        cells = [
            unwrapped(self.schema.features[place[name]].table).take(self.codes[place[name], rows])
            for name in names
        ]
        return assemble(cells, pd.Index(names, dtype=object, tupleize_cols=False))

    @cached_property
    def _measured(self) -> list[int]:
        exact = (
            at
            for at, feature in enumerate(self.schema.features)
            if feature.spread > 0 and feature.numbers is not None
        )
        return [at for at in exact if is_time(self._dtype(at)) or self._is_exact(at)]

    def _is_exact(self, position: int) -> bool:
        """Whether float64 holds all numbers of a column exactly."""
        feature = self.schema.features[position]
        assert feature.numbers is not None
        return feature.table.dtype.kind == "f" or bool(
            np.nanmax(np.abs(feature.numbers)) < EXACT_IN_FLOAT64
        )

    def _dtype(self, position: int) -> Any:
        return self.schema.features[position].table.dtype


def _hashes(codes: Codes) -> np.ndarray:
    """A 64-bit hash of each row's codes."""
    total = np.zeros(codes.shape[1], dtype=np.uint64)
    for position, column in enumerate(codes):
        mixed = column.astype(np.uint64) + np.uint64(position) * np.uint64(2**32)
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
            proposals += [] if proposal is None else [proposal]
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
