"""Cells of a column as relations compare them: numbers, or places in a list of values."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from ..kernels import FloatArray, IntArray
from ..tables.columns import (
    as_numbers,
    is_measured,
    is_missing,
    is_time,
    match_levels,
    plain,
    unit_of,
)
from ..tables.features import Feature


class Columns(Protocol):
    """Rows without a frame, of which single columns can be read."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def read(
        self, feature: Hashable, read: Callable[[pd.Series[Any]], np.ndarray], key: Hashable
    ) -> np.ndarray:
        """What a function gives for the cells of a column, cell by cell."""
        ...


Rows: TypeAlias = pd.DataFrame | Columns


def numbers_of(rows: Rows, feature: Hashable) -> FloatArray:
    """Cells as float64, NaN for missing; dates and durations in nanoseconds."""
    if isinstance(rows, pd.DataFrame):
        return _numbers(rows[feature])
    return rows.read(feature, _numbers, None)


def find_values(rows: Rows, feature: Hashable, values: list[Any]) -> IntArray:
    """Place of each cell's value in a list without repeats, where None is missing; -1 if absent."""
    if isinstance(rows, pd.DataFrame):
        return match_values(rows[feature], values)
    # 1 and 1.0 are equal, but not alike.
    key = tuple((type(value), value) for value in values)
    return rows.read(feature, lambda cells: match_values(cells, values), key)


def match_values(cells: pd.Series[Any], values: list[Any]) -> IntArray:
    """Place of each cell in a list of values without repeats; see :func:`find_values`."""
    missing = is_missing(cells)
    known = {value: at for at, value in enumerate(values) if value is not None}
    places = np.full(len(cells), -1, dtype=np.int64)
    if known:
        places[~missing] = _find_known(cells[~missing] if missing.any() else cells, known)
    if None in values:
        places[missing] = values.index(None)
    return places


def values_of(feature: Feature) -> list[Any]:
    """The value of each code as a relation writes it: a float, a level, or None for missing."""
    if feature.numbers is not None:
        return [None if np.isnan(number) else float(number) for number in feature.numbers]
    levels: list[Any] = list(plain(feature.known))
    return [*levels, None] if feature.has_missing else levels


def _numbers(cells: pd.Series[Any]) -> FloatArray:
    numbers = as_numbers(cells)
    return numbers * unit_of(cells.dtype) if is_time(cells.dtype) else numbers


def _find_known(cells: pd.Series[Any], known: dict[Any, int]) -> np.ndarray:
    if not is_measured(cells.dtype) or not all(_is_number(value) for value in known):
        return match_levels(known, cells)
    keys = np.array(sorted(known), dtype=np.float64)
    order = np.array([known[key] for key in sorted(known)])
    numbers = as_numbers(cells)
    at = np.minimum(np.searchsorted(keys, numbers), keys.size - 1)
    return np.where(keys[at] == numbers, order[at], -1)


def _is_number(value: Any) -> bool:
    # Numbers of numeric columns are floats; integers are levels, of which float64 may merge some.
    return isinstance(value, float)
