"""The cells of a column of a file as values that a fitted explainer takes.

The schema decides, never the cells of a block: "0123" is a number in a column of numbers and a
level in a column of levels, even if all cells of a block look like numbers. Texts stand for numbers
and missing values only in files without types.

Always true: a cell is read by itself, however cells are stored, so neighbours cannot change it; no
cell changes its value; a cell that does not fit is an error with its position, and never a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..kernels import BoolArray, IntArray
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
class ColumnValues:
    """The values of a column.

    Examples
    --------
    >>> values = ColumnValues(np.array(["rent", "own"], dtype=object), np.array([1, -1, 0]))
    >>> values.tolist()
    ['own', None, 'rent']
    """

    table: np.ndarray
    codes: IntArray

    def take(self, places: IntArray) -> ColumnValues:
        """The values at these places, in a table of these alone."""
        codes = self.codes[places]
        used = np.bincount(codes[codes >= 0], minlength=self.table.size) > 0
        return ColumnValues(self.table[used], np.append(np.cumsum(used) - 1, -1)[codes])

    def tolist(self) -> list[Any]:
        """The values in Python's types, None for missing ones."""
        table = [*self.table.tolist(), None]
        return [table[code] for code in self.codes.tolist()]

    def demands(self, dtype: Any) -> IntArray:
        """What each value needs beyond a dtype: 0 for nothing, or the number of a wider dtype.

        Examples
        --------
        >>> table = np.array(["own", "boat", "tent"], dtype=object)
        >>> values = ColumnValues(table, np.array([2, 0, 1, -1]))
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


def read_values(reader: ColumnReader, cells: Any) -> ColumnValues:
    """The values of the cells of a column."""
    if not isinstance(cells, list):
        found = _read_numbers(cells) if reader.many is not None else None
        if found is not None:
            return _read_number_cells(reader, *found)
        encoded = _encode_distinct(cells)
        if encoded is not None:
            return _read_distinct(reader, *encoded)
        cells = cells.to_pylist()
    elif set(map(type, cells)) == {str}:
        codes, texts = pd.factorize(np.array(cells, dtype=object), use_na_sentinel=False)
        return _read_distinct(reader, texts.tolist(), codes)
    return _read_distinct(reader, cells, np.arange(len(cells)))


@dataclass(frozen=True)
class ColumnReader:
    """Reads the cells of one column."""

    name: Any
    dtype: Any
    read: Callable[[Any], Any]
    expected: str
    missing: frozenset[str] = frozenset()
    many: Callable[[np.ndarray], tuple[np.ndarray, BoolArray]] | None = None
    booleans: bool = False

    def values(self, cells: list[Any]) -> list[Any]:
        """The value of each cell; None if it is missing."""
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
        read = _reject_strings(_boolean, textual)
        return ColumnReader(name, dtype, read, BOOLEAN, missing, booleans=True)
    if types.is_integer_dtype(dtype):
        low, high = _bounds(dtype)
        return ColumnReader(
            name,
            dtype,
            _reject_strings(lambda cell: _within(_integer(cell), low, high), textual),
            f"a whole number that fits {dtype}",
            missing,
            many=lambda numbers: _whole_numbers(numbers, low, high),
        )
    if types.is_float_dtype(dtype):
        one, many = _number, _finite_numbers
        if not textual and dtype.itemsize < 8:
            narrow = np.dtype(f"float{8 * dtype.itemsize}")
            one, many = partial(_exact, dtype=narrow), partial(_exact_numbers, dtype=narrow)
        expected = f"a finite number that fits {dtype}"
        return ColumnReader(
            name, dtype, _reject_strings(one, textual), expected, missing, many=many
        )
    if dtype.kind in "mM":
        example = "2024-01-31T12:00+00:00" if hasattr(dtype, "tz") else "2024-01-31"
        expected = f"a {dtype}, such as {'2 days' if dtype.kind == 'm' else example}"
        return ColumnReader(name, dtype, lambda cell: _moment(cell, dtype), expected, missing)
    levels = pd.Index(plain(table[table.notna()]), dtype=object)
    return _level_reader(name, dtype, levels, textual, closed=False)


def _read_distinct(reader: ColumnReader, distinct: Sequence[Any], codes: IntArray) -> ColumnValues:
    """Values of cells by their index among distinct ones, which are in order of appearance."""
    try:
        values = reader.values(list(distinct))
    except CellError as error:
        first = int(np.flatnonzero(codes == error.position)[0])
        raise CellError(first, error.expected) from None
    missing = np.array([*(value is None for value in values), True], dtype=bool)
    table = np.empty(len(values), dtype=object)
    table[:] = values
    kept = np.cumsum(~missing) - 1
    return ColumnValues(table[~missing[:-1]], np.where(missing[codes], -1, kept[codes]))


def _read_number_cells(
    reader: ColumnReader, numbers: np.ndarray, missing: BoolArray
) -> ColumnValues:
    assert reader.many is not None
    values, fits = reader.many(numbers)
    wrong = np.flatnonzero(~fits & ~missing)
    if wrong.size:
        raise CellError(int(wrong[0]), reader.expected)
    return ColumnValues(values, np.where(missing, -1, np.arange(numbers.size)))


def _read_numbers(column: Any) -> tuple[np.ndarray, BoolArray] | None:
    """Numbers of a column, and which cells are missing; None if it does not hold numbers."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind)):
        return None
    missing = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    filled = pc.fill_null(column, 0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False), missing


def _encode_distinct(column: Any) -> tuple[list[Any], IntArray] | None:
    """Distinct cells of a column in order of appearance, and which one each cell is.

    None for columns of other types than texts, levels and whole numbers: two of their cells may be
    equal and not identical, such as 0.0 and -0.0.
    """
    import pyarrow as pa
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        return None
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks() if column.num_chunks else pa.array([])
    if not types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    indices = column.indices
    codes = indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # A dictionary may list levels that no cell has.
    codes, used = pd.factorize(codes)
    cells = [*column.dictionary.to_pylist(), None]
    return [cells[code] for code in used], codes


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


def _new_level(levels: pd.Index[Any], textual: bool) -> tuple[Callable[[Any], Any], str]:
    """How a cell is read that need not be a level, and what is expected there."""
    if all(isinstance(level, str) for level in levels):
        return _text, "text"
    if all(isinstance(level, (bool, np.bool_)) for level in levels):
        return _reject_strings(_boolean, textual), BOOLEAN
    if all(isinstance(level, (int, np.integer)) for level in levels):
        return _reject_strings(_integer, textual), "a whole number"
    if all(isinstance(level, (int, float, np.number)) for level in levels):
        return _reject_strings(_number, textual), "a number"
    if levels.dtype.kind in "mM":
        return lambda cell: _moment(cell, levels.dtype), f"a {levels.dtype}"
    kinds = {type(level) for level in levels}
    names = " or ".join(sorted(kind.__name__ for kind in kinds))
    return lambda cell: _one_of(cell, kinds), f"a level of training, or a new {names}"


def _reject_strings(read: Callable[[Any], Any], textual: bool) -> Callable[[Any], Any]:
    """Rejects strings, except in formats where every cell is a string."""

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


def _whole_numbers(numbers: np.ndarray, low: int, high: int) -> tuple[np.ndarray, BoolArray]:
    """Many numbers as :func:`_integer` reads them, within bounds."""
    if numbers.dtype.kind == "f":
        is_whole = (np.abs(numbers) <= EXACT_IN_FLOAT64) & (np.trunc(numbers) == numbers)
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
