"""The cells of a column of a file as values that a fitted explainer takes.

The schema decides, never the cells of a block: "0123" is a number in a column of numbers and a
level in a column of levels, even if all cells of a block look like numbers. Texts stand for numbers
and missing values only in files without types.

Always true: a cell is read by itself, so neighbours cannot change it; no cell changes its value; a
cell that does not fit is an error with its position, and never a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..kernels import IntArray
from ..tables.columns import EXACT_IN_FLOAT64, plain

# Texts that mean a missing value in files without types, in training data as for people: those of
# pandas.
MISSING = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*", re.ASCII)
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?\s*", re.ASCII)
# In texts with decimal commas a point separates thousands, if anything: such cells are refused.
COMMA_FOR_POINT = str.maketrans(",.", ".,")
BOOLEAN = "true or false"
BOOLEANS = {
    "True": True,
    "TRUE": True,
    "true": True,
    "False": False,
    "FALSE": False,
    "false": False,
}


@dataclass(frozen=True)
class ColumnReader:
    """Reads the cells of one column."""

    name: Any
    dtype: Any
    read: Callable[[Any], Any]
    expected: str
    missing: frozenset[str] = frozenset()
    booleans: bool = False

    def read_all(self, cells: list[Any]) -> list[Any]:
        """The value of each cell; None if it is missing. Equal texts are read once."""
        kinds = set(map(type, cells)) - {NoneType}
        # Others may be equal and not identical, such as 0.0 and -0.0, or 1 and True.
        if len(kinds) != 1 or not kinds <= {str, int, bool}:
            return self.values(cells)
        distinct = list(dict.fromkeys(cells))
        try:
            value_of = dict(zip(distinct, self.values(distinct), strict=True))
        except CellError as error:
            first = cells.index(distinct[error.position])
            raise CellError(first, error.expected) from None
        return list(map(value_of.__getitem__, cells))

    def values(self, cells: Sequence[Any]) -> list[Any]:
        """The value of each cell, read one by one."""
        missing, read, values = self.missing, self.read, list[Any]()
        try:
            for cell in cells:
                values.append(None if _is_missing(cell, missing) else read(cell))
        except (ValueError, OverflowError, TypeError):
            raise CellError(len(values), self.expected) from None
        return values


class CellError(Exception):
    """A cell that does not fit its column."""

    def __init__(self, position: int, expected: str) -> None:
        super().__init__(position, expected)
        self.position, self.expected = position, expected


def demands(values: Sequence[Any], dtype: Any) -> IntArray:
    """What each value needs beyond a dtype: 0 for nothing, or the number of a wider dtype.

    Examples
    --------
    >>> demands(["tent", "own", "boat", None, "tent"], pd.CategoricalDtype(["own", "rent"]))
    array([1, 0, 2, 0, 1])
    """
    needs = [0] * len(values)
    if isinstance(dtype, pd.CategoricalDtype):
        known, new = {None, *dtype.categories}, dict[Any, int]()
        if not known.issuperset(values):
            needs = [0 if v in known else new.setdefault(v, len(new) + 1) for v in values]
    elif isinstance(dtype, np.dtype) and dtype.kind in "iub" and None in values:
        needs = [int(value is None) for value in values]
    return np.array(needs, dtype=np.int64)


def as_column(values: Sequence[Any], dtype: Any) -> pd.Series[Any]:
    """Values with the same demands in a dtype or, if they need one, in a wider one."""
    if len(values) and demands(values[:1], dtype).any():
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = pd.CategoricalDtype([*dtype.categories, values[0]])
        else:
            dtype = np.dtype(object if dtype.kind == "b" else np.float64)
    if isinstance(dtype, pd.CategoricalDtype):
        place = {None: -1, **{level: at for at, level in enumerate(dtype.categories)}}
        codes = np.array(list(map(place.__getitem__, values)), dtype=np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
    if isinstance(dtype, np.dtype) and dtype.kind in "iubf":
        return pd.Series(np.array(values, dtype=dtype))
    if types.is_object_dtype(dtype):
        # As pandas reads a file; None and NaN are one level, but predictors may differ.
        values = [np.nan if value is None else value for value in values]
    return pd.Series(values, dtype=dtype)


def make_reader(
    name: Any, dtype: Any, table: pd.Series[Any], *, textual: bool, decimal: str = "."
) -> ColumnReader:
    """How a column is read.

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
        closed = bool(dtype.ordered)
        return _level_reader(name, dtype, dtype.categories, textual, decimal, closed=closed)
    missing = MISSING if textual else frozenset()
    if types.is_bool_dtype(dtype):
        read = _of_strings(_boolean, textual)
        return ColumnReader(name, dtype, read, BOOLEAN, missing, booleans=True)
    if types.is_integer_dtype(dtype):
        low, high = _bounds(dtype)
        read = _of_strings(lambda cell: _within(_integer(cell), low, high), textual, decimal)
        return ColumnReader(name, dtype, read, f"a whole number that fits {dtype}", missing)
    if types.is_float_dtype(dtype):
        one = _number
        if not textual and dtype.itemsize < 8:
            one = partial(_exact, dtype=np.dtype(f"float{8 * dtype.itemsize}"))
        read = _of_strings(one, textual, decimal)
        mark = " with a decimal comma" if decimal == "," else ""
        return ColumnReader(name, dtype, read, f"a finite number{mark} that fits {dtype}", missing)
    if dtype.kind in "mM":
        example = "2024-01-31T12:00+00:00" if hasattr(dtype, "tz") else "2024-01-31"
        expected = f"a {dtype}, such as {'2 days' if dtype.kind == 'm' else example}"
        return ColumnReader(name, dtype, lambda cell: _moment(cell, dtype), expected, missing)
    levels = pd.Index(plain(table[table.notna()]), dtype=object)
    return _level_reader(name, dtype, levels, textual, decimal, closed=False)


def _level_reader(
    name: Any, dtype: Any, levels: pd.Index[Any], textual: bool, decimal: str, *, closed: bool
) -> ColumnReader:
    """For categories, texts and other objects: a level, or a new one of the same type."""
    known = set(levels)
    by_text = {_written(level, decimal): level for level in levels} if textual else {}
    new, expected = _new_level(levels, textual, decimal)
    booleans = expected == BOOLEAN
    if closed:
        expected = "one of the levels of training, which are ordered"

    def read(cell: Any) -> Any:
        value = by_text[cell] if cell in by_text else new(cell)
        if closed and value not in known:
            raise ValueError
        return value

    missing = MISSING - by_text.keys() if textual else frozenset()
    return ColumnReader(name, dtype, read, expected, missing, booleans=booleans)


def _written(level: Any, decimal: str) -> str:
    """A level as a text of a file."""
    comma = decimal == "," and isinstance(level, float)
    return str(level).translate(COMMA_FOR_POINT) if comma else str(level)


def _new_level(
    levels: pd.Index[Any], textual: bool, decimal: str
) -> tuple[Callable[[Any], Any], str]:
    """How a cell is read that need not be a level, and what is expected there."""
    if all(isinstance(level, str) for level in levels):
        return _text, "text"
    if all(isinstance(level, (bool, np.bool_)) for level in levels):
        return _of_strings(_boolean, textual), BOOLEAN
    if all(isinstance(level, (int, np.integer)) for level in levels):
        return _of_strings(_integer, textual, decimal), "a whole number"
    if all(isinstance(level, (int, float, np.number)) for level in levels):
        return _of_strings(_number, textual, decimal), "a number"
    if levels.dtype.kind in "mM":
        return lambda cell: _moment(cell, levels.dtype), f"a {levels.dtype}"
    kinds = {type(level) for level in levels}
    names = " or ".join(sorted(kind.__name__ for kind in kinds))
    return lambda cell: _one_of(cell, kinds), f"a level of training, or a new {names}"


def _of_strings(
    read: Callable[[Any], Any], textual: bool, decimal: str = "."
) -> Callable[[Any], Any]:
    """Rejects strings, except in formats where every cell is one, with this decimal mark."""

    def typed(cell: Any) -> Any:
        if isinstance(cell, str):
            raise ValueError
        return read(cell)

    def with_comma(cell: Any) -> Any:
        return read(cell.translate(COMMA_FOR_POINT))

    if not textual:
        return typed
    return with_comma if decimal == "," else read


def _one_of(cell: Any, kinds: set[type[Any]]) -> Any:
    if type(cell) not in kinds:
        raise ValueError
    return cell


def _is_missing(cell: Any, missing: frozenset[str]) -> bool:
    if isinstance(cell, str):
        return cell in missing
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return True
    return isinstance(cell, float) and math.isnan(cell)


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise ValueError
    return cell


def _boolean(cell: Any) -> bool:
    if isinstance(cell, str):
        cell = BOOLEANS.get(cell.strip())
    if not isinstance(cell, bool):
        raise ValueError
    return cell


def _integer(cell: Any) -> int:
    if isinstance(cell, str) and WHOLE_NUMBER.fullmatch(cell):
        return int(cell)
    if type(cell) is int:
        return cell
    if isinstance(cell, Decimal) and cell.is_finite() and cell == cell.to_integral_value():
        return int(cell)
    number = _number(cell)
    # Whole columns with missing values are often written as 12.0.
    if number != int(number) or abs(number) > EXACT_IN_FLOAT64:
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


def _exact(cell: Any, dtype: np.dtype[Any]) -> float:
    number = _number(cell)
    if float(dtype.type(number)) != number:
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
