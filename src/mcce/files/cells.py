"""What the cells of a file are, in the columns of a fitted explainer.

The schema decides, never the cells of a block: "0123" is a number in a column of numbers and a
level in a column of levels, also where all cells of a block look like numbers.

Always true: a cell is read by itself, so that neighbours cannot change it; no cell changes its
value; a cell that does not fit is an error with its position, and never a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..kernels import BoolArray
from ..tables.columns import plain

# Texts that mean a missing value, in training data as for people: those of pandas.
MISSING = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
EXACT = 2**53
WHOLE = re.compile(r"\s*[+-]?[0-9]{1,20}\s*", re.ASCII)
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?\s*", re.ASCII)
TRUTHS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


class CellError(Exception):
    """A cell that does not fit its column.

    Parameters
    ----------
    position
        Which cell, counted from 0.
    expected
        What was expected there.
    """

    def __init__(self, position: int, expected: str) -> None:
        super().__init__(position, expected)
        self.position, self.expected = position, expected


@dataclass(frozen=True)
class ColumnReader:
    """Reads the cells of one column.

    Parameters
    ----------
    name
        The column.
    dtype
        The dtype that it has in the rows for the explainer.
    read
        The value of a cell that is not missing; raises ValueError for one that does not fit.
    expected
        What fits, for errors.
    levels
        Texts that are levels, also where they could mean missing.
    """

    name: Any
    dtype: Any
    read: Callable[[Any], Any]
    expected: str
    levels: frozenset[str] = frozenset()

    def values(self, cells: list[Any]) -> list[Any]:
        """The value of each cell; None if it is missing.

        Raises
        ------
        CellError
            For the first cell that does not fit.
        """
        missing, read = MISSING - self.levels, self.read
        try:
            return [None if _is_missing(cell, missing) else read(cell) for cell in cells]
        except (ValueError, OverflowError, TypeError):
            position = next(at for at, cell in enumerate(cells) if not self._fits(cell, missing))
            raise CellError(position, self.expected) from None

    def _fits(self, cell: Any, missing: frozenset[str]) -> bool:
        try:
            _ = _is_missing(cell, missing) or self.read(cell)
        except (ValueError, OverflowError, TypeError):
            return False
        return True

    def wide(self, values: list[Any]) -> BoolArray:
        """Which values the dtype does not hold: they need a wider one."""
        if isinstance(self.dtype, pd.CategoricalDtype):
            known = set(self.dtype.categories)
            return np.array([v is not None and v not in known for v in values], dtype=bool)
        if isinstance(self.dtype, np.dtype) and self.dtype.kind in "iub":
            return np.array([value is None for value in values], dtype=bool)
        return np.zeros(len(values), dtype=bool)

    def column(self, values: list[Any], *, wide: bool) -> pd.Series[Any]:
        """Values as a column, in the dtype or, if they need one, in a wider one."""
        dtype = self.dtype
        if wide and isinstance(dtype, pd.CategoricalDtype):
            more = dict.fromkeys(v for v in values if v is not None)
            levels = [*dtype.categories, *(v for v in more if v not in set(dtype.categories))]
            dtype = pd.CategoricalDtype(levels)
        elif wide and dtype.kind == "b":
            dtype = np.dtype(object)
        elif wide:
            dtype = np.dtype(np.float64)
        if types.is_object_dtype(dtype):
            # As pandas reads a file; None and NaN are one level, but predictors may differ.
            values = [np.nan if value is None else value for value in values]
        if dtype.kind == "f" and isinstance(dtype, np.dtype):
            return pd.Series(np.array(values, dtype=dtype), name=self.name)
        return pd.Series(values, dtype=dtype, name=self.name)


def make_reader(name: Any, dtype: Any, table: pd.Series[Any], *, textual: bool) -> ColumnReader:
    """How a column is read.

    Parameters
    ----------
    name
        The column.
    dtype
        The dtype that it has for the explainer.
    table
        Its distinct training values.
    textual
        Whether cells are texts that stand for values.

    Returns
    -------
    ColumnReader
        Reads its cells.

    Examples
    --------
    >>> ages = pd.Series([36, 52], name="age")
    >>> make_reader("age", ages.dtype, ages, textual=True).values(["40", " 41.0", "NA"])
    [40, 41, None]
    >>> codes = pd.Series(["0123", "0456"], name="zip")
    >>> make_reader("zip", codes.dtype, codes, textual=True).values(["0789"])
    ['0789']
    """
    if isinstance(dtype, pd.CategoricalDtype):
        ordered = dtype.ordered
        return _level_reader(name, dtype, list(dtype.categories), textual, closed=bool(ordered))
    if types.is_bool_dtype(dtype):
        return ColumnReader(name, dtype, _truth, "true or false")
    if types.is_integer_dtype(dtype):
        low, high = _bounds(dtype)
        expected = f"a whole number that fits {dtype}"
        return ColumnReader(name, dtype, lambda cell: _within(_whole(cell), low, high), expected)
    if types.is_float_dtype(dtype):
        expected = f"a finite number that fits {dtype}"
        if textual or dtype.itemsize == 8:
            return ColumnReader(name, dtype, _number, expected)
        return ColumnReader(name, dtype, lambda cell: _exact(cell, dtype), expected)
    if dtype.kind in "mM":
        example = "2024-01-31T12:00+00:00" if hasattr(dtype, "tz") else "2024-01-31"
        expected = f"a {dtype}, such as {'2 days' if dtype.kind == 'm' else example}"
        return ColumnReader(name, dtype, lambda cell: _moment(cell, dtype), expected)
    known = table[table.notna()]
    return _level_reader(name, dtype, list(plain(known)), textual, closed=False)


def _level_reader(
    name: Any, dtype: Any, levels: list[Any], textual: bool, *, closed: bool
) -> ColumnReader:
    """For categories, texts and other objects: a level, or a new one of the same type."""
    by_text = {str(level): level for level in levels} if textual else {}
    known = set(levels)
    new: Callable[[Any], Any]
    if all(isinstance(level, str) for level in levels):
        new, expected = _text, "text"
    elif all(isinstance(level, (bool, np.bool_)) for level in levels):
        new, expected = _truth, "true or false"
    elif all(isinstance(level, (int, np.integer)) for level in levels):
        new, expected = _whole, "a whole number"
    else:
        new, expected = _number, "a number"
    if closed:
        expected = "one of the levels of training, which are ordered"

    def read(cell: Any) -> Any:
        value = by_text[cell] if cell in by_text else new(cell)
        if closed and value not in known:
            raise ValueError
        return value

    return ColumnReader(name, dtype, read, expected, frozenset(by_text))


def _is_missing(cell: Any, missing: frozenset[str]) -> bool:
    if isinstance(cell, str):
        return cell in missing
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or cell is pd.NaT


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise ValueError
    return cell


def _truth(cell: Any) -> bool:
    if isinstance(cell, str):
        cell = TRUTHS.get(cell.strip())
    if not isinstance(cell, bool):
        raise ValueError
    return cell


def _whole(cell: Any) -> int:
    if isinstance(cell, str) and WHOLE.fullmatch(cell):
        return int(cell)
    if type(cell) is int:
        return cell
    number = _number(cell)
    # Whole columns with missing values are often written as 12.0.
    if number != int(number) or abs(number) > EXACT:
        raise ValueError
    return int(number)


def _number(cell: Any) -> float:
    if isinstance(cell, str) and not NUMBER.fullmatch(cell):
        raise ValueError
    if isinstance(cell, bool) or not isinstance(cell, (str, int, float, Decimal)):
        raise ValueError
    number = float(cell)
    if not math.isfinite(number):
        raise ValueError
    return number


def _exact(cell: Any, dtype: Any) -> float:
    number = _number(cell)
    if float(np.dtype(dtype.name).type(number)) != number:
        raise ValueError
    return number


def _bounds(dtype: Any) -> tuple[int, int]:
    """The smallest and largest number of an integer dtype, nullable or not."""
    limits = np.iinfo(f"{'u' if dtype.kind == 'u' else ''}int{8 * dtype.itemsize}")
    return int(limits.min), int(limits.max)


def _within(number: int, low: int, high: int) -> int:
    if not low <= number <= high:
        raise ValueError
    return number


def _moment(cell: Any, dtype: Any) -> Any:
    if isinstance(cell, (bool, int, float)):
        raise ValueError
    if dtype.kind == "m":
        # A number alone would be nanoseconds.
        if isinstance(cell, str) and NUMBER.fullmatch(cell):
            raise ValueError
        value: Any = pd.Timedelta(cell)
    elif isinstance(cell, str):
        # Others are guessed: "now", "10:30" of today, the month first in 3/4/2024.
        value = pd.to_datetime(_iso(cell), format="ISO8601")
    else:
        value = pd.Timestamp(cell)
    held = pd.Series([value]).astype(dtype).iloc[0]
    # Fractions of a second that the dtype has no place for.
    if held != value:
        raise ValueError
    return held


def _iso(cell: str) -> str:
    if not cell.strip()[:1].isdecimal():
        raise ValueError
    return cell.strip()
