"""The values that candidates of a block may have, and those of consequences that are added to them.

Candidates are codes that index a table of values per mutable feature, mostly that of training. What
follows from changes need not occur there, so the table grows. Codes never change their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import Codes, FloatArray
from ..tables.columns import as_numbers, stack, unwrapped
from ..tables.dtypes import to_dtype
from ..tables.features import is_single
from ..tables.schema import EncodedRows


class GrowingTables:
    """Value tables of the mutable features, to which values can be added."""

    def __init__(self, rows: EncodedRows, tables: Sequence[pd.Series[Any]]) -> None:
        self.rows = rows
        self._tables = tables
        self._numbers: dict[int, FloatArray] = {}
        # Per feature, numbers in ascending order, infinity standing for missing, and their codes.
        self._known: dict[int, tuple[FloatArray, Codes]] = {}

    @property
    def tables(self) -> Sequence[pd.Series[Any]]:
        """The value of each code; the given tables themselves if nothing was added."""
        grown = {
            row: numbers
            for row, numbers in self._numbers.items()
            if numbers.size > len(self._tables[row])
        }
        if grown:
            self._tables = [
                _grown(table, grown[row]) if row in grown else table
                for row, table in enumerate(self._tables)
            ]
        return self._tables

    def numbers(self, row: int) -> FloatArray:
        """The value of each code of a numeric feature, NaN for missing."""
        if row not in self._numbers:
            feature = self.rows.schema.features[self.rows.schema.mutable[row]]
            table = self._tables[row]
            trained = self._tables is self.rows.tables and feature.numbers is not None
            given = feature.numbers if trained else as_numbers(table, feature.table.dtype)
            assert given is not None
            self._numbers[row] = given
        return self._numbers[row]

    def place(self, row: int, numbers: FloatArray) -> Codes:
        """The code of each number of a numeric feature, NaN being missing; new ones are added."""
        known, codes = self._known.get(row) or self._sorted(row)
        cells = self._as_cells(row, numbers)
        distinct, inverse = np.unique(np.where(np.isnan(cells), np.inf, cells), return_inverse=True)
        at = np.minimum(np.searchsorted(known, distinct), known.size - 1)
        new = known[at] != distinct if known.size else np.ones(distinct.size, dtype=bool)
        if new.any():
            added = np.where(np.isinf(distinct[new]), np.nan, distinct[new])
            self._numbers[row] = np.concatenate([self.numbers(row), added])
            known, codes = self._sorted(row)
            at = np.searchsorted(known, distinct)
        return codes[at][inverse]

    def place_trained(self, row: int, codes: Codes) -> Codes:
        """The code of each training value of a feature, by its code there; new ones are added."""
        table, trained = self._tables[row], self.rows.tables[row]
        if table is trained:
            return codes
        exact = self.rows.schema.features[self.rows.schema.mutable[row]].encode(table)[0]
        known = np.full(len(trained), -1, dtype=np.int32)
        known[exact[exact >= 0]] = np.flatnonzero(exact >= 0)
        new = np.setdiff1d(codes, np.flatnonzero(known >= 0))
        if new.size:
            known[new] = len(table) + np.arange(new.size)
            cells = stack(unwrapped(table), unwrapped(trained.take(new)))
            grown = pd.Series(cells, name=table.name, dtype=table.dtype)
            self._tables = [grown if at == row else old for at, old in enumerate(self._tables)]
            self._numbers.pop(row, None)
        return known[codes]

    def _as_cells(self, row: int, numbers: FloatArray) -> FloatArray:
        """Numbers as cells of the column hold them, with one zero."""
        single = is_single(self._tables[row].dtype)
        return (numbers.astype(np.float32).astype(np.float64) if single else numbers) + 0.0

    def _sorted(self, row: int) -> tuple[FloatArray, Codes]:
        keys = np.where(np.isnan(self.numbers(row)), np.inf, self.numbers(row))
        # Of equal ones the first.
        known, first = np.unique(keys, return_index=True)
        self._known[row] = known, first.astype(np.int32)
        return self._known[row]


def to_cells(numbers: FloatArray, dtype: Any) -> pd.Series[Any]:
    """Numbers that a dtype holds, as cells of it; NaN is missing."""
    missing = np.isnan(numbers)
    if dtype.kind in "iu" and not missing.any():
        return to_dtype(pd.Series(numbers.astype(np.int64)), dtype)
    return to_dtype(pd.Series(numbers), dtype)


def _grown(table: pd.Series[Any], numbers: FloatArray) -> pd.Series[Any]:
    """A table with further numbers at its end."""
    added = to_cells(numbers[len(table) :], table.dtype)
    cells = stack(unwrapped(table), unwrapped(added))
    return pd.Series(cells, name=table.name, dtype=table.dtype)
