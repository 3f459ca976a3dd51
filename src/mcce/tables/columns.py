"""Single columns: kinds, ranks and levels, for every dtype of pandas.

Everything that depends on a dtype is here and in ``dtypes``. Equal cells are one value and get one
form here: 0.0 and -0.0, 1 and True among objects, None, NaN, NaT and NA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import SchemaError, shorten
from ..kernels import BoolArray, Codes, FloatArray, IntArray

Kind = Literal["numeric", "categorical"]
# All integers up to here are exact in float64.
EXACT_IN_FLOAT64 = 2**53
# Instead of a code: a value that the training rows do not have.
UNSEEN = -1


def check_kind(series: pd.Series[Any], declared: Kind | None) -> Kind:
    """Kind of a training column, from its dtype unless declared."""
    check_storage(series)
    natural = _natural_kind(series, declared)
    if declared == "numeric" and not is_measured(series.dtype) and series.dtype.kind != "b":
        raise SchemaError(
            f"Column {series.name!r} is declared numeric but has dtype {series.dtype}. "
            "Convert it first (pd.to_numeric), or leave it categorical."
        )
    kind = declared or natural
    if kind == "numeric":
        check_finite(series)
    return kind


def check_storage(series: pd.Series[Any]) -> None:
    """Raise unless cells are numbers, times, booleans, strings, categories or objects."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        raise SchemaError(
            f"Column {series.name!r} has the byte order of another machine, which pandas cannot "
            f"sort. Convert it with .astype({str(dtype.newbyteorder('='))!r})."
        )
    known = (pd.CategoricalDtype, pd.StringDtype)
    dense = not isinstance(dtype, pd.SparseDtype)
    if isinstance(dtype, known) or (dense and (dtype.kind in "bU" or types.is_object_dtype(dtype))):
        return
    if not is_measured(dtype):
        raise SchemaError(
            f"Column {series.name!r} has dtype {dtype}, which is neither numeric nor categorical. "
            "Convert it to numbers, strings, categories, booleans or datetimes. Complex data not "
            "supported; neither are sparse, period, interval, decimal and longdouble columns."
        )


def is_missing(series: pd.Series[Any]) -> BoolArray:
    """Whether each cell is missing; so is NaN in a nullable float, unlike in pandas 2."""
    missing = np.asarray(series.array.isna(), dtype=bool)
    if series.dtype.kind == "f" and not isinstance(series.dtype, np.dtype):
        missing = missing | np.isnan(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return missing


def is_ordered(dtype: Any) -> bool:
    """Whether a dtype is an ordered category."""
    return isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)


def is_measured(dtype: Any) -> bool:
    """Whether cells of this dtype are numbers, dates or durations."""
    if isinstance(dtype, pd.SparseDtype) or str(dtype) == "halffloat[pyarrow]":
        return False
    return is_time(dtype) or (dtype.kind in "iuf" and dtype.itemsize <= 8)


def is_time(dtype: Any) -> bool:
    """Whether cells of this dtype are dates or durations."""
    return dtype.kind in "mM"


def check_finite(series: pd.Series[Any]) -> None:
    """Raise if a numeric column, or a difference of two of its cells, is infinite."""
    if series.dtype.kind in "iumMb":
        return
    numbers = as_numbers(series)
    n_infinite = int(np.isinf(numbers).sum())
    if n_infinite:
        raise SchemaError(
            f"Column {series.name!r} holds infinity in {n_infinite} of {len(series)} rows. "
            "Replace it with a number or a missing value."
        )
    present = numbers[~np.isnan(numbers)]
    with np.errstate(over="ignore"):
        overflows = present.size and np.isinf(2 * (present.max() - present.min()))
    if overflows:
        raise SchemaError(
            f"The range of column {series.name!r} is too wide: the difference of its largest and "
            "smallest number is infinite in float64. Rescale the column."
        )


def code_values(series: pd.Series[Any], kind: Kind) -> tuple[Codes, IntArray, bool]:
    """Ranks of a training column's cells among its distinct values, missing last."""
    missing = is_missing(series)
    has_missing = bool(missing.any())
    cells = series[~missing] if has_missing else series
    if kind == "numeric":
        codes, first = rank_cells(_exact_numbers(cells))
    else:
        numbers, levels = factorize(cells)
        codes, first = rank_factorized(numbers, _level_order(cells, numbers, levels))
    if has_missing:
        present = codes
        codes = np.full(len(series), first.size, dtype=np.int32)
        codes[~missing] = present
        first = np.append(np.flatnonzero(~missing)[first], np.argmax(missing))
    return codes, _representatives(series, codes, first), has_missing


def canonical(series: pd.Series[Any], table: pd.Series[Any], codes: Codes) -> pd.Series[Any]:
    """The column with one form of equal cells: that of training, 0.0, and one missing marker.

    It is the column itself, and costs little, if all its cells have that form already.
    """
    if not types.is_object_dtype(series.dtype):
        return canonical_floats(series)
    (own, missing), (known, marker) = _object_types(series), _object_types(table)
    if not _may_be_equal(own | known) and missing <= (marker or {float}):
        return series
    cells = plain(series).copy()
    cells[is_missing(series)] = np.nan
    cells[codes >= 0] = plain(table)[codes[codes >= 0]]
    return pd.Series(cells, index=series.index, name=series.name, dtype=object)


def canonical_floats(series: pd.Series[Any]) -> pd.Series[Any]:
    """Floats without -0.0 and, in dtypes with a missing marker, without NaN; others as they are."""
    if series.dtype.kind != "f":
        return series
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    unmarked = np.isnan(values) & ~np.asarray(series.array.isna())
    if not unmarked.any() and not (np.signbit(values) & (values == 0)).any():
        return series
    if isinstance(series.dtype, np.dtype):
        return series + 0.0
    cells = (values + 0.0).astype(object)
    cells[np.isnan(values)] = None
    return pd.Series(cells, index=series.index, name=series.name, dtype=series.dtype)


def _representatives(series: pd.Series[Any], codes: Codes, first: IntArray) -> IntArray:
    """The row whose cell stands for each code, whatever the order of rows."""
    present, missing = _object_types(series)
    if len(missing) < 2 and not _may_be_equal(present):
        return first
    cells, chosen = plain(series), first.copy()

    def preference(row: int) -> tuple[str, int, str]:
        # By the names of types int comes before float, bool and Decimal, and NaN before None.
        text = repr(cells[row])
        return type(cells[row]).__name__, -len(text), text

    for row, code in enumerate(codes.tolist()):
        chosen[code] = max(row, int(chosen[code]), key=preference)
    return chosen


def _object_types(series: pd.Series[Any]) -> tuple[set[type], set[type]]:
    """Types of the cells of an object column, without text, and of its missing cells."""
    if not types.is_object_dtype(series.dtype):
        return set(), set()
    cells, missing = plain(series), is_missing(series)
    return {*map(type, cells[~missing])} - {str}, {*map(type, cells[missing])}


def _may_be_equal(of_cells: set[type]) -> bool:
    """Whether cells of some types can be equal without being identical."""
    return len(of_cells) > 1 or not of_cells <= {int, bool}


def as_numbers(series: pd.Series[Any], like: Any = None) -> FloatArray:
    """Numeric cells as float64, NaN for missing.

    Dates and durations count in the unit of their dtype, or in that of ``like``.
    """
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf":
        return series.to_numpy(dtype=np.float64, copy=True)
    missing = is_missing(series)
    numbers = np.full(len(series), np.nan)
    numbers[~missing] = _exact_numbers(series[~missing])
    if like is not None and is_time(like) and is_time(series.dtype):
        numbers *= unit_of(series.dtype) / unit_of(like)
    return numbers


def as_comparable(series: pd.Series[Any], like: Any = None) -> np.ndarray:
    """Numeric cells for comparing and adding, NaN for missing.

    The numbers of :func:`as_numbers` where float64 holds them exactly, otherwise Python integers:
    integers beyond 2**53 and dates in nanoseconds.
    """
    numbers = as_numbers(series, like)
    if series.dtype.kind not in "iumM" or not (np.abs(numbers) >= EXACT_IN_FLOAT64).any():
        return numbers
    cells, present = numbers.astype(object), ~np.isnan(numbers)
    whole = _exact_numbers(series[present]).astype(object)
    if like is not None and is_time(like) and is_time(series.dtype):
        scale = Fraction(unit_of(series.dtype), unit_of(like))
        whole = whole * (scale.numerator if scale.denominator == 1 else scale)
    cells[present] = whole
    return cells


def rank_among(known: pd.Series[Any], cells: pd.Series[Any]) -> tuple[Codes, Codes]:
    """Rank of each cell among known values, or ``UNSEEN``, and of the nearest, the lower of two."""
    if known.empty:
        return np.full(len(cells), UNSEEN, np.int32), np.zeros(len(cells), np.int32)
    if known.dtype != cells.dtype:
        known = known.astype(cells.dtype)
    keys, values = _exact_numbers(known), _exact_numbers(cells)
    above = np.searchsorted(keys, values)
    above_or_last = np.minimum(above, keys.size - 1)
    exact = np.where(keys[above_or_last] == values, above_or_last, UNSEEN)
    below = np.maximum(above_or_last - 1, 0)
    nearer_below = _gap(keys[below], values) <= _gap(values, keys[above_or_last])
    nearest = np.where(nearer_below, below, above_or_last)
    nearest = np.where(above == 0, 0, np.where(above == keys.size, keys.size - 1, nearest))
    nearest = np.where(exact >= 0, exact, nearest)
    return exact.astype(np.int32), nearest.astype(np.int32)


def match_levels(ranks: Mapping[Any, int], cells: pd.Series[Any]) -> Codes:
    """Rank of each cell's level, or ``UNSEEN``."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        numbers, levels = cells.array.codes, cells.dtype.categories.to_numpy(dtype=object)
    else:
        numbers, levels = factorize(cells)
    try:
        known = [ranks.get(level, UNSEEN) for level in levels]
    except Exception:  # whatever hashing or comparing objects may raise
        raise _incomparable(cells) from None
    return np.array(known, dtype=np.int32)[numbers]


def factorize(series: pd.Series[Any]) -> tuple[IntArray, np.ndarray]:
    """Number of each cell's level, and the levels in order of appearance as Python objects."""
    try:
        numbers, levels = series.array.factorize()
    except Exception:  # whatever hashing or comparing objects may raise
        raise _incomparable(series) from None
    return numbers, levels.to_numpy(dtype=object)


def plain(series: pd.Series[Any]) -> np.ndarray:
    """Cells as plain Python objects."""
    return series.array.to_numpy(dtype=object)


def plain_cells(series: pd.Series[Any]) -> list[Any]:
    """Cells as a list of plain Python objects, None for missing ones."""
    pairs = zip(plain(series), is_missing(series), strict=True)
    return [None if missing else cell for cell, missing in pairs]


def differ(old: pd.Series[Any], new: pd.Series[Any]) -> BoolArray:
    """Whether cells of two columns differ; two missing cells are equal."""
    differs = is_missing(old) != is_missing(new)
    present = np.flatnonzero(~is_missing(old) & ~is_missing(new))
    differs[present] = plain(old)[present] != plain(new)[present]
    return differs


def changed_cells(before: pd.DataFrame, after: pd.DataFrame) -> BoolArray:
    """Which cells differ, shape (n_columns, n_rows); rows are matched by position."""
    pairs = zip(before.items(), after.items(), strict=True)
    changed = [differ(old, new) for (_, old), (_, new) in pairs]
    return np.array(changed, dtype=bool).reshape(len(changed), len(after))


def assemble(cells: Sequence[Any], names: pd.Index[Any]) -> pd.DataFrame:
    """A frame of columns; names may be anything that pandas allows."""
    # Without the dtype, pandas 3 would turn objects that are strings into its string dtype.
    series = [pd.Series(c, dtype=object) if types.is_object_dtype(c.dtype) else c for c in cells]
    frame = pd.DataFrame(dict(enumerate(series)))
    frame.columns = names
    return frame


def stack(own: Any, table: Any) -> Any:
    """Two arrays of the same dtype, concatenated."""
    if isinstance(own, np.ndarray):
        return np.concatenate([own, table])
    pieces = type(own)._concat_same_type([own, table])
    # As one chunk; otherwise Arrow joins the chunks at every take.
    return pieces.take(np.arange(len(pieces)))


def unwrapped(column: pd.Series[Any]) -> Any:
    """The array of a column; a NumPy array if pandas only wraps one."""
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _natural_kind(series: pd.Series[Any], declared: Kind | None) -> Kind:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "categorical"
    if is_measured(dtype):
        return "numeric"
    if not types.is_object_dtype(dtype):
        return "categorical"
    content = types.infer_dtype(series, skipna=True)
    if declared == "categorical" or content in ("string", "boolean", "empty"):
        return "categorical"
    numbers = ("integer", "floating", "mixed-integer-float", "decimal")
    remedy = "pd.to_numeric" if content in numbers else "pd.to_datetime, .astype(str)"
    raise SchemaError(
        f"Column {series.name!r} has dtype object and holds {content} values. Convert it "
        f'({remedy}) or declare kinds={{{series.name!r}: "categorical"}}.'
    )


def _exact_numbers(series: pd.Series[Any]) -> np.ndarray:
    """Cells, none of them missing, as int64, uint64 or float64 without loss."""
    dtype = series.dtype
    if is_time(dtype) and hasattr(dtype, "numpy_dtype"):
        return series.to_numpy(dtype=dtype.numpy_dtype).astype(np.int64)
    if is_time(dtype):
        return series.astype("int64").to_numpy(dtype=np.int64)
    wide = {"i": np.int64, "u": np.uint64, "b": np.int64}.get(dtype.kind, np.float64)
    return series.to_numpy(dtype=wide)


def unit_of(dtype: Any) -> int:
    """Unit in which dates and durations of a dtype are counted, in nanoseconds."""
    name = getattr(dtype, "unit", None) or np.datetime_data(getattr(dtype, "numpy_dtype", dtype))[0]
    return int(np.array(1, dtype=f"m8[{name}]") / np.timedelta64(1, "ns"))


def _gap(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """High minus low for low <= high; unsigned for integers, so that nothing overflows."""
    with np.errstate(over="ignore"):
        gap = high - low
    return gap.view(np.uint64) if gap.dtype.kind == "i" else gap


def _level_order(series: pd.Series[Any], numbers: IntArray, levels: np.ndarray) -> IntArray:
    """Order of the levels: that of an ordered category, otherwise sorted."""
    if is_ordered(series.dtype):
        ranks = np.empty(len(levels), dtype=np.int64)
        ranks[numbers] = series.cat.codes.to_numpy()
        return np.argsort(ranks)
    try:
        order = sorted(range(len(levels)), key=lambda i: levels[i])
        # Sets and tuples with NaN may sort in several ways, depending on the order of rows.
        total = all(levels[low] < levels[high] for low, high in pairwise(order))
    except Exception:  # whatever a comparison of objects may raise
        total = False
    if not total:
        raise SchemaError(
            f"The levels of column {series.name!r} cannot be sorted; they are of the types "
            f"{_type_names(levels)}. Make them all of one type, e.g. with .astype(str)."
        )
    return np.array(order, dtype=np.int64)


def _incomparable(series: pd.Series[Any]) -> SchemaError:
    return SchemaError(
        f"The levels of column {series.name!r} cannot be compared; they are of the types "
        f"{_type_names(series)}. Make them strings, e.g. with .astype(str)."
    )


def _type_names(cells: Iterable[Any]) -> str:
    return shorten(sorted({type(cell).__name__ for cell in cells}))


def rank_cells(cells: np.ndarray) -> tuple[Codes, IntArray]:
    """Rank of each number, and the row in which each distinct one first occurs.

    Examples
    --------
    >>> codes, first = rank_cells(np.array([30, 10, 30]))
    >>> codes.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    # Faster than a table of the distinct numbers, which may not fit into the cache.
    order = np.argsort(cells)
    ascending = cells[order]
    is_new = np.ones(cells.size, dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    codes = np.empty(cells.size, dtype=np.int32)
    codes[order] = np.cumsum(is_new, dtype=np.int32) - np.int32(1)
    return codes, np.minimum.reduceat(order, np.flatnonzero(is_new))


def rank_factorized(numbers: IntArray, order: IntArray) -> tuple[Codes, IntArray]:
    """Ranks of values that are numbered as they occur, given the order of the numbers.

    Examples
    --------
    >>> codes, first = rank_factorized(np.array([0, 1, 0]), np.array([1, 0]))
    >>> codes.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    rank, first = np.empty(order.size, dtype=np.int32), np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    # Of rows with the same number, the first is written last.
    first[numbers[::-1]] = np.arange(numbers.size)[::-1]
    return rank[numbers], first[order]
