"""Rows selected from candidates, column by column and in the encodings of trees and distances.

Two codes are below 0: ``OWN``, a cell of a candidate that is the person's own, and ``UNSEEN``, a
value that training rows do not have. The first stands among draws, the second after encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .candidates import CandidateRows, table_numbers
from .kernels import Codes, FloatArray
from .tables.columns import UNSEEN, stack, unwrapped
from .tables.dtypes import to_dtype
from .tables.features import is_float32
from .tables.schema import OWN, EncodedRows

# By part, column and function: the rows or table that the function read, and its result.
ColumnCache: TypeAlias = dict[Any, tuple[Any, np.ndarray]]


class CandidateColumns:
    """Reads single columns of selected candidates, without building a frame."""

    def __init__(self, selected: CandidateRows, cache: ColumnCache) -> None:
        self.selected, self._cache = selected, cache

    def __len__(self) -> int:
        """Number of rows."""
        return self.selected.owner.size

    def read(
        self, feature: Hashable, read: Callable[[pd.Series[Any]], np.ndarray], key: Hashable
    ) -> np.ndarray:
        """Apply a function to the cells of a column; ``key`` names the function in the cache."""
        rows, schema = self.selected.factuals, self.selected.factuals.schema
        column, cache = schema.names.index(feature), self._cache
        own = remember(cache, ("own", feature, key), rows, lambda: read(rows.frame.iloc[:, column]))
        results = own[self.selected.owner]
        for place in np.flatnonzero(schema.mutable == column).tolist():
            table, drawn = self.selected.tables[place], self.selected.codes[place]
            of_table = remember(cache, ("table", feature, key), table, partial(read, table))
            changed = drawn != OWN
            results[changed] = of_table[drawn[changed]]
        return results


def remember(
    cache: ColumnCache, name: Hashable, of: object, compute: Callable[[], np.ndarray]
) -> np.ndarray:
    """The cached value of that name, computed anew unless it was computed from this object."""
    known = cache.get(name)
    if known is None or known[0] is not of:
        known = cache[name] = of, compute()
    return known[1]


class CandidateEncodings:
    """Selected candidates in the encodings that trees and distances use."""

    def __init__(self, rows: EncodedRows, tables: Sequence[pd.Series[Any]]) -> None:
        self.rows, self.tables = rows, tables
        self._codes: list[Codes] = []
        self._tree_codes: list[Codes] = []
        self._points: list[FloatArray] = []
        self._numbers: list[FloatArray | None] = []
        for column, table, trained in zip(rows.schema.mutable, tables, rows.tables, strict=True):
            feature = rows.schema.features[column]
            if table is trained:
                exact = tree_codes = np.arange(feature.n_codes, dtype=np.int32)
            else:
                exact, tree_codes = feature.encode(table)
            numbers = table_numbers(feature, table, trained)
            self._codes.append(exact)
            self._tree_codes.append(tree_codes)
            self._points.append(feature.coordinates(exact, numbers))
            self._numbers.append(numbers)

    def codes(self, selected: CandidateRows) -> Codes:
        """Codes in the training values, shape (n_features, n_rows)."""
        own = self.rows.codes.take(selected.owner, axis=1)
        return self._fill(own, self._codes, selected.codes)

    def tree_codes(self, selected: CandidateRows) -> Codes:
        """Tree codes of all features, shape (n_features, n_rows)."""
        own = self.rows.tree_codes.take(selected.owner, axis=1)
        return self._fill(own, self._tree_codes, selected.codes)

    def points(self, selected: CandidateRows) -> FloatArray:
        """Points in the space of all features, shape (n_rows, n_features)."""
        return self._fill(self.rows.points[selected.owner].T, self._points, selected.codes).T

    def numbers(self, selected: CandidateRows) -> FloatArray:
        """Numbers, NaN for missing and for levels, shape (n_features, n_rows)."""
        own = self.rows.all_numbers.take(selected.owner, axis=1)
        return self._fill(own, self._numbers, selected.codes)

    def _fill(
        self, cells: np.ndarray, tables: Sequence[np.ndarray | None], codes: Codes
    ) -> np.ndarray:
        """Put the values of codes into the cells of people."""
        for column, table, drawn in zip(self.rows.schema.mutable, tables, codes, strict=True):
            if table is not None:
                changed = drawn != OWN
                cells[column, changed] = table[drawn[changed]]
        return cells


class GrowingTables:
    """Value tables of the mutable features, to which values can be added."""

    def __init__(self, rows: EncodedRows, tables: Sequence[pd.Series[Any]]) -> None:
        self.rows = rows
        # The value of each code; the given tables themselves if nothing was added.
        self.tables = tables
        self._numbers: dict[int, FloatArray] = {}
        # Per feature, numbers in ascending order, infinity standing for missing, and their codes.
        self._known: dict[int, tuple[FloatArray, Codes]] = {}

    def numbers(self, place: int) -> FloatArray:
        """The value of each code of a numeric feature, NaN for missing."""
        if place not in self._numbers:
            feature = self.rows.schema.features[self.rows.schema.mutable[place]]
            numbers = table_numbers(feature, self.tables[place], self.rows.tables[place])
            assert numbers is not None
            self._numbers[place] = numbers
        return self._numbers[place]

    def codes_for(self, place: int, numbers: FloatArray) -> Codes:
        """The code of each number of a numeric feature, NaN being missing; new ones are added."""
        known, codes = self._sorted(place)
        cells = self._as_cells(place, numbers)
        distinct, inverse = np.unique(np.where(np.isnan(cells), np.inf, cells), return_inverse=True)
        # NaN stands for what is beyond the last.
        new = np.append(known, np.nan)[np.searchsorted(known, distinct)] != distinct
        if new.any():
            added = np.where(np.isinf(distinct[new]), np.nan, distinct[new])
            self._add(place, _to_cells(added, self.tables[place].dtype))
            known, codes = self._sorted(place)
        return codes[np.searchsorted(known, distinct)][inverse]

    def codes_for_trained(self, place: int, codes: Codes) -> Codes:
        """The code of each training value of a feature, by its code there; new ones are added."""
        table, trained = self.tables[place], self.rows.tables[place]
        if table is trained:
            return codes
        exact = self.rows.schema.features[self.rows.schema.mutable[place]].encode(table)[0]
        known = np.full(len(trained), UNSEEN, dtype=np.int32)
        known[exact[exact != UNSEEN]] = np.flatnonzero(exact != UNSEEN)
        new = np.setdiff1d(codes, np.flatnonzero(known != UNSEEN))
        if new.size:
            known[new] = len(table) + np.arange(new.size)
            self._add(place, trained.take(new))
        return known[codes]

    def _add(self, place: int, cells: pd.Series[Any]) -> None:
        """Add cells at the end of a table."""
        table = self.tables[place]
        both = stack(unwrapped(table), unwrapped(cells))
        grown = pd.Series(both, name=table.name, dtype=table.dtype)
        self.tables = [*self.tables[:place], grown, *self.tables[place + 1 :]]
        self._numbers.pop(place, None)
        self._known.pop(place, None)

    def _as_cells(self, place: int, numbers: FloatArray) -> FloatArray:
        """Numbers as cells of the column hold them, with one zero."""
        single = is_float32(self.tables[place].dtype)
        return (numbers.astype(np.float32).astype(np.float64) if single else numbers) + 0.0

    def _sorted(self, place: int) -> tuple[FloatArray, Codes]:
        if place not in self._known:
            keys = np.where(np.isnan(self.numbers(place)), np.inf, self.numbers(place))
            # Of equal ones the first.
            known, first = np.unique(keys, return_index=True)
            self._known[place] = known, first.astype(np.int32)
        return self._known[place]


def _to_cells(numbers: FloatArray, dtype: Any) -> pd.Series[Any]:
    """Numbers that a dtype holds, as cells of it; NaN is missing."""
    missing = np.isnan(numbers)
    if dtype.kind in "iu" and not missing.any():
        return to_dtype(pd.Series(numbers.astype(np.int64)), dtype)
    return to_dtype(pd.Series(numbers), dtype)
