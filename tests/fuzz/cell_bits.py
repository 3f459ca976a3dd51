"""Cells as numbers that are equal exactly if the cells are, written without the code of mcce.

``bits`` tells 0.0 from -0.0, None from NaN and 1 from True. ``values`` gives one number to
everything that means the same: all zeros, and all that is missing. Both depend on nothing but the
cells, so they can be compared between frames.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd

_TOKENS: dict[Any, int] = {}
# Far from the tokens, which count up from 0.
MISSING = -(2**62)


def bits(column: pd.Series) -> np.ndarray:
    """One int64 per cell: equal for cells that are the same to the last bit."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        numbers = column.to_numpy()
        return numbers.view(f"i{dtype.itemsize}").astype(np.int64)
    if isinstance(dtype, np.dtype) and dtype.kind in "iubmM":
        numbers = column.to_numpy()
        wide = numbers.view(np.int64) if dtype.kind in "mM" else numbers
        return wide.astype(np.uint64 if dtype.kind == "u" else np.int64).view(np.int64)
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [_token((type(level).__name__, repr(level))) for level in dtype.categories]
        return np.array([*levels, MISSING])[column.cat.codes.to_numpy()]
    return np.array([_token(_exact(cell)) for cell in _cells(column)], dtype=np.int64)


def values(column: pd.Series) -> np.ndarray:
    """One int64 per cell: equal for cells of equal value; missing is a value."""
    if not len(column):
        return np.empty(0, dtype=np.int64)
    _, first, number = np.unique(bits(column), return_index=True, return_inverse=True)
    cells = _cells(column.iloc[first])
    return np.array([_token(meaning(cell)) for cell in cells], dtype=np.int64)[number]


def missing(column: pd.Series) -> np.ndarray:
    """Whether each cell is missing: None, NaN, NaT or NA."""
    return values(column) == _token(None)


def bits_of(frame: pd.DataFrame) -> np.ndarray:
    return _stacked(bits, frame)


def values_of(frame: pd.DataFrame) -> np.ndarray:
    return _stacked(values, frame)


def exact_numbers(column: pd.Series) -> list[Any]:
    """Numbers as Python numbers, times as nanoseconds since 1970, None for missing."""
    return [_number(cell) for cell in _cells(column)]


def _stacked(one: Any, frame: pd.DataFrame) -> np.ndarray:
    columns = [one(frame.iloc[:, place]) for place in range(frame.shape[1])]
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0), dtype=np.int64)


def _cells(column: pd.Series) -> list[Any]:
    return column.astype(object).tolist()


def _token(key: Any) -> int:
    return _TOKENS.setdefault(key, len(_TOKENS))


def _exact(cell: Any) -> Any:
    if isinstance(cell, (float, np.floating)):
        return type(cell).__name__, np.float64(cell).tobytes()
    return type(cell).__name__, repr(cell)


def meaning(cell: Any) -> Any:
    """The value of a cell: the same for 1, 1.0 and NumPy's 1, for all zeros and all missing."""
    if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell:
        return None
    if isinstance(cell, (bool, np.bool_)):
        return "boolean", bool(cell)
    number = _number(cell)
    if number is None:
        return "text", str(cell)
    # Whole numbers as integers, so that they are written alike.
    return "number", int(number) if number == number // 1 else number


def _number(cell: Any) -> Any:
    if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell:
        return None
    if isinstance(cell, datetime.timedelta):
        return pd.Timedelta(cell).as_unit("ns").value
    if isinstance(cell, np.generic):
        return cell.item()
    if isinstance(cell, (bool, int, float)):
        # Also 1.0 and 1, which are one key in a dict.
        return cell
    return pd.Timestamp(cell).as_unit("ns").value if hasattr(cell, "isoformat") else None
