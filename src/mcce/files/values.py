"""Cells of one column as values, each distinct text read once.

Always true: a value is what :class:`~mcce.files.cells.ColumnReader` reads from its cell alone,
however the cells are stored; an error names the first cell that does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..kernels import BoolArray, IntArray
from .cells import CellError, ColumnReader


@dataclass(frozen=True)
class Values:
    """The values of a column.

    Examples
    --------
    >>> values = Values(np.array(["rent", "own"], dtype=object), np.array([1, -1, 0]))
    >>> values.tolist()
    ['own', None, 'rent']
    """

    table: np.ndarray
    codes: IntArray

    def take(self, places: IntArray) -> Values:
        """The values at these places, in a table of these alone."""
        codes = self.codes[places]
        used = np.bincount(codes[codes >= 0], minlength=self.table.size) > 0
        return Values(self.table[used], np.append(np.cumsum(used) - 1, -1)[codes])

    def tolist(self) -> list[Any]:
        """The values in Python's types, None for missing ones."""
        table = [*self.table.tolist(), None]
        return [table[code] for code in self.codes.tolist()]

    def demands(self, dtype: Any) -> IntArray:
        """What each value needs beyond a dtype: 0 for nothing, else a number for each wider one.

        Examples
        --------
        >>> table = np.array(["own", "boat", "tent"], dtype=object)
        >>> values = Values(table, np.array([2, 0, 1, -1]))
        >>> values.demands(pd.CategoricalDtype(["own", "rent"]))
        array([2, 0, 1, 0])
        """
        if isinstance(dtype, pd.CategoricalDtype):
            known = set(dtype.categories)
            new = np.array([value not in known for value in self.table], dtype=bool)
            # The same level may stand in the table several times.
            levels, _ = pd.factorize(self.table[new])
            numbers = np.zeros(self.table.size + 1, dtype=np.int64)
            numbers[:-1][new] = levels + 1
            return numbers[self.codes]
        if isinstance(dtype, np.dtype) and dtype.kind in "iub":
            return (self.codes < 0).astype(np.int64)
        return np.zeros(self.codes.size, dtype=np.int64)

    def as_column(self, dtype: Any) -> pd.Series[Any]:
        """The values in a dtype or, if they need one, in a wider one."""
        dtype = self._held_by(dtype)
        if isinstance(dtype, pd.CategoricalDtype):
            place = {level: at for at, level in enumerate(dtype.categories)}
            codes = np.array([*(place.get(value, -1) for value in self.table), -1])[self.codes]
            return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
        if isinstance(dtype, np.dtype) and dtype.kind in "iub":
            return pd.Series(self.table[self.codes].astype(dtype, copy=False))
        if isinstance(dtype, np.dtype) and dtype.kind == "f":
            return pd.Series(np.append(self.table.astype(dtype), dtype.type(np.nan))[self.codes])
        if types.is_object_dtype(dtype):
            # As pandas reads a file; None and NaN are one level, but predictors may differ.
            held = np.append(self.table.astype(object), [np.nan])
            return pd.Series(held[self.codes], dtype=object)
        table = pd.Series(self.table, dtype=dtype).array
        return pd.Series(table.take(self.codes, allow_fill=True))

    def _held_by(self, dtype: Any) -> Any:
        """The dtype, or the narrowest wider one that holds the values."""
        demands = np.unique(self.demands(dtype))
        assert demands.size < 2, "values with different demands have no dtype in common"
        if not demands.any():
            return dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.CategoricalDtype([*dtype.categories, self.table[self.codes[0]]])
        return np.dtype(object) if dtype.kind == "b" else np.dtype(np.float64)


def read_values(reader: ColumnReader, cells: Any) -> Values:
    """The values of the cells of a column."""
    if not isinstance(cells, list):
        from .arrow import encode_distinct, read_numbers

        found = read_numbers(cells) if reader.many is not None else None
        if found is not None:
            return _of_numbers(reader, *found)
        encoded = encode_distinct(cells)
        return _of_list(reader, cells.to_pylist()) if encoded is None else _of(reader, *encoded)
    if set(map(type, cells)) == {str}:
        codes, texts = pd.factorize(np.array(cells, dtype=object), use_na_sentinel=False)
        return _of(reader, texts.tolist(), codes)
    return _of_list(reader, cells)


def _of_list(reader: ColumnReader, cells: list[Any]) -> Values:
    return _of(reader, cells, np.arange(len(cells)))


def _of(reader: ColumnReader, distinct: Sequence[Any], codes: IntArray) -> Values:
    """Values of cells by their places among distinct ones, which are in order of appearance."""
    try:
        values = reader.values(list(distinct))
    except CellError as error:
        first = int(np.flatnonzero(codes == error.position)[0])
        raise CellError(first, error.expected) from None
    missing = np.array([*(value is None for value in values), True], dtype=bool)
    table = np.empty(len(values), dtype=object)
    table[:] = values
    kept = np.cumsum(~missing) - 1
    return Values(table[~missing[:-1]], np.where(missing[codes], -1, kept[codes]))


def _of_numbers(reader: ColumnReader, numbers: np.ndarray, missing: BoolArray) -> Values:
    assert reader.many is not None
    values, fits = reader.many(numbers)
    wrong = np.flatnonzero(~fits & ~missing)
    if wrong.size:
        raise CellError(int(wrong[0]), reader.expected)
    return Values(values, np.where(missing, -1, np.arange(numbers.size)))
