"""Cells of a column as relations compare them: numbers, or places in a list of values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import FloatArray
from ..tables.columns import as_numbers, is_measured, is_missing, is_time, match_levels, unit_of


def numbers_of(frame: pd.DataFrame, feature: Hashable) -> FloatArray:
    """Cells as float64, NaN for missing; dates and durations in nanoseconds."""
    column = frame[feature]
    numbers = as_numbers(column)
    return numbers * unit_of(column.dtype) if is_time(column.dtype) else numbers


def find_values(frame: pd.DataFrame, feature: Hashable, values: list[Any]) -> np.ndarray:
    """Place of each cell's value in a list without repeats, where None is missing; -1 if absent."""
    column = frame[feature]
    missing = is_missing(column)
    known = {value: at for at, value in enumerate(values) if value is not None}
    places = np.full(len(column), -1, dtype=np.int64)
    if known:
        places[~missing] = _find_known(column[~missing] if missing.any() else column, known)
    if None in values:
        places[missing] = values.index(None)
    return places


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
