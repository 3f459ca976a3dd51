"""What the cells of a file are, in the columns of a fitted explainer.

The schema decides, never the cells of a block: "0123" is a number in a column of numbers and a
level in a column of levels, also where all cells of a block look like numbers. Texts stand for
numbers and missing values only in files that have no types.

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

# Texts that mean a missing value in files without types, in training data as for people: those of
# pandas.
MISSING = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
EXACT = 2**53
WHOLE = re.compile(r"\s*[+-]?[0-9]{1,20}\s*", re.ASCII)
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?\s*", re.ASCII)
TRUTH = "true or false"
TRUTHS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


class CellError(Exception):
    """A cell that does not fit its column."""

    def __init__(self, position: int, expected: str) -> None:
        super().__init__(position, expected)
        self.position, self.expected = position, expected


@dataclass(frozen=True)
class ColumnReader:
    """Reads the cells of one column."""

    name: Any
    dtype: Any
    read: Callable[[Any], Any]
    expected: str
    missing: frozenset[str] = frozenset()
    many: Callable[[np.ndarray], tuple[np.ndarray, BoolArray]] | None = None
    truths: bool = False

    def values(self, cells: list[Any]) -> list[Any]:
        """The value of each cell; None if it is missing."""
        missing, read = self.missing, self.read
        try:
            return [None if _is_missing(cell, missing) else read(cell) for cell in cells]
        except (ValueError, OverflowError, TypeError):
            position = next(at for at, cell in enumerate(cells) if not self._fits(cell))
            raise CellError(position, self.expected) from None

    def _fits(self, cell: Any) -> bool:
        try:
            _ = _is_missing(cell, self.missing) or self.read(cell)
        except (ValueError, OverflowError, TypeError):
            return False
        return True


def make_reader(name: Any, dtype: Any, table: pd.Series[Any], *, textual: bool) -> ColumnReader:
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
        return _level_reader(name, dtype, dtype.categories, textual, closed=bool(dtype.ordered))
    missing = MISSING if textual else frozenset()
    if types.is_bool_dtype(dtype):
        read = _of_type(_truth, textual)
        return ColumnReader(name, dtype, read, TRUTH, missing, truths=True)
    if types.is_integer_dtype(dtype):
        low, high = _bounds(dtype)
        return ColumnReader(
            name,
            dtype,
            _of_type(lambda cell: _within(_whole(cell), low, high), textual),
            f"a whole number that fits {dtype}",
            missing,
            many=lambda numbers: _whole_numbers(numbers, low, high),
        )
    if types.is_float_dtype(dtype):
        expected = f"a finite number that fits {dtype}"
        if textual or dtype.itemsize == 8:
            read = _of_type(_number, textual)
            return ColumnReader(name, dtype, read, expected, missing, many=_finite_numbers)
        narrow = np.dtype(f"float{8 * dtype.itemsize}")
        return ColumnReader(
            name,
            dtype,
            _of_type(lambda cell: _exact(cell, narrow), textual),
            expected,
            missing,
            many=lambda numbers: _exact_numbers(numbers, narrow),
        )
    if dtype.kind in "mM":
        example = "2024-01-31T12:00+00:00" if hasattr(dtype, "tz") else "2024-01-31"
        expected = f"a {dtype}, such as {'2 days' if dtype.kind == 'm' else example}"
        return ColumnReader(name, dtype, lambda cell: _moment(cell, dtype), expected, missing)
    levels = pd.Index(plain(table[table.notna()]), dtype=object)
    return _level_reader(name, dtype, levels, textual, closed=False)


def holds_whole(kind: Any) -> bool:
    """Whether a dtype of pandas, or a type of Arrow, has whole numbers that all fit int64.

    Examples
    --------
    >>> holds_whole(pd.UInt32Dtype()), holds_whole(np.dtype("uint64"))
    (True, False)
    """
    if not hasattr(kind, "kind"):
        from pyarrow.types import is_integer, is_uint64

        return bool(is_integer(kind) and not is_uint64(kind))
    return types.is_integer_dtype(kind) and not (kind.kind == "u" and kind.itemsize == 8)


def _level_reader(
    name: Any, dtype: Any, levels: pd.Index[Any], textual: bool, *, closed: bool
) -> ColumnReader:
    """For categories, texts and other objects: a level, or a new one of the same type."""
    known = set(levels)
    by_text = {str(level): level for level in levels} if textual else {}
    new, expected = _new_level(levels, textual)
    truths = expected == TRUTH
    if closed:
        expected = "one of the levels of training, which are ordered"

    def read(cell: Any) -> Any:
        value = by_text[cell] if cell in by_text else new(cell)
        if closed and value not in known:
            raise ValueError
        return value

    missing = MISSING - by_text.keys() if textual else frozenset()
    return ColumnReader(name, dtype, read, expected, missing, truths=truths)


def _new_level(levels: pd.Index[Any], textual: bool) -> tuple[Callable[[Any], Any], str]:
    """How a cell is read that need not be a level, and what is expected there."""
    if all(isinstance(level, str) for level in levels):
        return _text, "text"
    if all(isinstance(level, (bool, np.bool_)) for level in levels):
        return _of_type(_truth, textual), TRUTH
    if all(isinstance(level, (int, np.integer)) for level in levels):
        return _of_type(_whole, textual), "a whole number"
    if all(isinstance(level, (int, float, np.number)) for level in levels):
        return _of_type(_number, textual), "a number"
    if levels.dtype.kind in "mM":
        return lambda cell: _moment(cell, levels.dtype), f"a {levels.dtype}"
    kinds = {type(level) for level in levels}
    names = " or ".join(sorted(kind.__name__ for kind in kinds))
    return lambda cell: _one_of(cell, kinds), f"a level of training, or a new {names}"


def _of_type(read: Callable[[Any], Any], textual: bool) -> Callable[[Any], Any]:
    """Reads cells of which texts are not meant as others, unless a file has nothing but texts."""

    def typed(cell: Any) -> Any:
        if isinstance(cell, str):
            raise ValueError
        return read(cell)

    return read if textual else typed


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
    if isinstance(cell, Decimal) and cell.is_finite() and cell == cell.to_integral_value():
        return int(cell)
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


def _whole_numbers(numbers: np.ndarray, low: int, high: int) -> tuple[np.ndarray, BoolArray]:
    """Many numbers as :func:`_whole` reads them, within bounds."""
    if numbers.dtype.kind == "f":
        is_whole = (np.abs(numbers) <= EXACT) & (np.trunc(numbers) == numbers)
        numbers = np.where(is_whole, numbers, 0).astype(np.int64)
    else:
        is_whole = np.ones(numbers.size, dtype=bool)
    return numbers, is_whole & (numbers >= low) & (numbers <= high)


def _finite_numbers(numbers: np.ndarray) -> tuple[np.ndarray, BoolArray]:
    values = numbers.astype(np.float64)
    return values, np.isfinite(values)


def _exact_numbers(numbers: np.ndarray, dtype: np.dtype[Any]) -> tuple[np.ndarray, BoolArray]:
    values, fits = _finite_numbers(numbers)
    with np.errstate(over="ignore"):
        return values, fits & (values.astype(dtype) == values)


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
