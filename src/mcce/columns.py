"""Single columns: dtypes, kinds, ranks and levels, whatever pandas stores them in.

Everything that must know a dtype is here, so that the rest of the package never asks. A missing
cell is whatever pandas calls missing (None, NaN, NaT, NA): all are one value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from .errors import SchemaError
from .kernels import Codes, FloatArray, IntArray

Kind = Literal["numeric", "categorical"]

EXACT_IN_FLOAT64 = 2**53


def as_frame(data: Any) -> pd.DataFrame:
    """The data as a frame: itself, or a 2-D array with columns x0, x1, …."""
    if isinstance(data, pd.DataFrame):
        _check_headings(data)
        return data
    if not isinstance(data, np.ndarray):
        raise SchemaError(
            f"Expected a pandas DataFrame or a 2-D NumPy array, got {type(data).__name__}. "
            "Convert it first (a sparse matrix with .toarray(), a list with np.asarray)."
        )
    if data.ndim != 2:
        raise SchemaError(
            f"Expected a 2-D array with one row per person, got shape {data.shape}. Reshape your "
            "data: .reshape(1, -1) makes one person, .reshape(-1, 1) one feature."
        )
    frame = pd.DataFrame(data, columns=[f"x{j}" for j in range(data.shape[1])])
    return frame.infer_objects() if data.dtype == object else frame


def check_names(names: Any, frame: pd.DataFrame, argument: str) -> list[Hashable]:
    """Exact column names of the frame, in the order given."""
    if names is None:
        return []
    if isinstance(names, str) or not isinstance(names, (Sequence, pd.Index, np.ndarray, set)):
        raise SchemaError(
            f"{argument} must be a list of column names, got {names!r}. "
            f"Write {argument}=[{names!r}] for a single column."
        )
    chosen = list(names)
    absent = [name for name in chosen if name not in frame.columns]
    if absent:
        raise SchemaError(
            f"{argument} names columns that are not in the data: {absent!r}. "
            f"The columns are {list(frame.columns)!r}."
        )
    return chosen


def check_kinds(kinds: Any, frame: pd.DataFrame) -> Mapping[Hashable, Kind]:
    """Kinds by exact column name."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise SchemaError(
            f'kinds must map column names to "numeric" or "categorical", got {kinds!r}.'
        )
    check_names(list(kinds), frame, "kinds")
    for name, kind in kinds.items():
        if kind not in ("numeric", "categorical"):
            raise SchemaError(f'kinds[{name!r}] must be "numeric" or "categorical", got {kind!r}.')
    return kinds


def check_kind(series: pd.Series[Any], declared: Kind | None) -> Kind:
    """Kind of a training column, from its dtype unless declared."""
    natural = _natural_kind(series, declared)
    if declared == "numeric" and not _is_measured(series.dtype):
        raise SchemaError(
            f"Column {series.name!r} is declared numeric but has dtype {series.dtype}. "
            "Convert it first (pd.to_numeric), or leave it categorical."
        )
    kind = declared or natural
    if kind == "numeric":
        _check_finite(series)
    return kind


def first_of_each_value(series: pd.Series[Any], kind: Kind) -> tuple[IntArray, bool]:
    """Positions at which each distinct value first stands, ascending by value, missing last."""
    missing = series.isna().to_numpy(dtype=bool)
    present = np.flatnonzero(~missing)
    if kind == "numeric":
        first = present[np.unique(_native(series.iloc[present]), return_index=True)[1]]
    else:
        first = present[_first_of_each_level(series.iloc[present])]
    if missing.any():
        first = np.append(first, np.argmax(missing))
    return first, bool(missing.any())


def is_ordered(dtype: Any) -> bool:
    """Whether the levels of a categorical column have an order of their own."""
    return isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)


def as_numbers(series: pd.Series[Any]) -> FloatArray:
    """Numeric cells as float64, NaN for missing; dates and durations in their own unit."""
    missing = series.isna().to_numpy(dtype=bool)
    numbers = np.full(len(series), np.nan)
    numbers[~missing] = _native(series[~missing])
    return numbers


def rank_numbers(known: pd.Series[Any], cells: pd.Series[Any]) -> tuple[Codes, Codes]:
    """Exact rank (-1 if unknown) and rank of the nearest known value (midpoints to the lower)."""
    keys, values = _native(known.astype(cells.dtype)), _native(cells)
    if not keys.size:
        return np.full(values.size, -1, np.int32), np.zeros(values.size, np.int32)
    above = np.searchsorted(keys, values)
    above_or_last = np.minimum(above, keys.size - 1)
    exact = np.where(keys[above_or_last] == values, above_or_last, -1)
    below = np.maximum(above_or_last - 1, 0)
    nearer_below = _gap(keys[below], values) <= _gap(values, keys[above_or_last])
    nearest = np.where(nearer_below, below, above_or_last)
    nearest = np.where(above == 0, 0, np.where(above == keys.size, keys.size - 1, nearest))
    nearest = np.where(exact >= 0, exact, nearest)
    return exact.astype(np.int32), nearest.astype(np.int32)


def match_levels(known: pd.Series[Any], cells: pd.Series[Any]) -> Codes:
    """Rank of each level among the known ones, -1 if unknown."""
    levels, numbers = pd.Index(_plain(known)), pd.factorize(_plain(cells))
    return levels.get_indexer(pd.Index(numbers[1]))[numbers[0]].astype(np.int32)


def conform(series: pd.Series[Any], values: pd.Series[Any]) -> pd.Series[Any]:
    """The column in a dtype that holds its own cells and the training values alike.

    That is its own dtype wherever it equals the training dtype. Where the two differ, it is the
    smallest that loses nothing (int and float: float); where there is none, an error.
    """
    dtype = _joint_dtype(series, values)
    if dtype != series.dtype:
        series = _cast(series, dtype)
    if _is_measured(dtype):
        _check_finite(series)
    return series


def _check_headings(frame: pd.DataFrame) -> None:
    if isinstance(frame.columns, pd.MultiIndex):
        raise SchemaError(
            "The frame has several levels of column names. Flatten them first: "
            "frame.columns = ['_'.join(name) for name in frame.columns]."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].unique().tolist()
        raise SchemaError(f"Column names must be unique, but these occur twice: {twice!r}.")


def _natural_kind(series: pd.Series[Any], declared: Kind | None) -> Kind:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype) or types.is_bool_dtype(dtype):
        return "categorical"
    if _is_measured(dtype):
        return "numeric"
    if isinstance(dtype, pd.StringDtype) or types.is_string_dtype(series):
        return "categorical"
    if types.is_object_dtype(dtype):
        content = types.infer_dtype(series, skipna=True)
        if declared == "categorical" or content in ("string", "boolean", "empty"):
            return "categorical"
        raise SchemaError(
            f"Column {series.name!r} has dtype object and holds {content} values. Convert it to "
            f'numbers (pd.to_numeric) or declare kinds={{{series.name!r}: "categorical"}}.'
        )
    raise SchemaError(
        f"Column {series.name!r} has dtype {dtype}, which is neither numeric nor categorical. "
        "Convert it to numbers, strings, categories, booleans or datetimes. Complex data not "
        "supported, nor sparse, period or interval columns."
    )


def _is_measured(dtype: Any) -> bool:
    """Whether cells of this dtype can be numbers: they have an order and a difference."""
    if isinstance(dtype, pd.SparseDtype) or types.is_complex_dtype(dtype):
        return False
    if _is_time(dtype):
        return True
    return types.is_numeric_dtype(dtype) and getattr(dtype, "itemsize", 8) <= 8


def _is_time(dtype: Any) -> bool:
    return types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype)


def _check_finite(series: pd.Series[Any]) -> None:
    numbers = as_numbers(series)
    n_infinite = int(np.isinf(numbers).sum())
    if n_infinite:
        raise SchemaError(
            f"Column {series.name!r} holds infinity in {n_infinite} of {len(series)} rows. "
            "Replace it by a number or by a missing value."
        )
    present = numbers[~np.isnan(numbers)]
    with np.errstate(over="ignore"):
        overflows = present.size and np.isinf(2 * (present.max() - present.min()))
    if overflows:
        raise SchemaError(
            f"The range of column {series.name!r} is too large for float64: "
            f"{present.min()!r} to {present.max()!r}. Rescale the column."
        )


def _native(series: pd.Series[Any]) -> np.ndarray:
    """Cells without missing ones as int64, uint64 or float64, exactly."""
    if _is_time(series.dtype):
        return series.astype("int64").to_numpy(dtype=np.int64)
    if types.is_bool_dtype(series.dtype):
        return series.to_numpy(dtype=np.int64)
    numbers = series.to_numpy()
    if numbers.dtype == object:
        numbers = np.array(numbers.tolist())
    wide = {"i": np.int64, "u": np.uint64}.get(numbers.dtype.kind, np.float64)
    return numbers.astype(wide)


def _gap(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """High - low for low <= high; integers as unsigned, so that nothing overflows."""
    gap = high - low
    return gap.view(np.uint64) if gap.dtype.kind == "i" else gap


def _first_of_each_level(series: pd.Series[Any]) -> IntArray:
    """Positions of the first cell of each level; in the order of the levels."""
    numbers, levels = pd.factorize(_plain(series))
    first = np.full(len(levels), len(numbers), dtype=np.int64)
    np.minimum.at(first, numbers, np.arange(len(numbers)))
    if is_ordered(series.dtype):
        ranks = series.cat.codes.to_numpy()[first]
        return first[np.argsort(ranks)]
    try:
        order = sorted(range(len(levels)), key=lambda i: levels[i])
    except TypeError as error:
        raise SchemaError(
            f"The levels of column {series.name!r} cannot be sorted ({error}). "
            "Make them all of one type, e.g. with .astype(str)."
        ) from None
    return first[np.array(order, dtype=np.int64)]


def _plain(series: pd.Series[Any]) -> np.ndarray:
    """Levels as plain Python objects, whatever they are stored in."""
    return series.astype(object).to_numpy(dtype=object)


def _joint_dtype(series: pd.Series[Any], values: pd.Series[Any]) -> Any:
    given, trained = series.dtype, values.dtype
    if given == trained:
        return trained
    if isinstance(trained, pd.CategoricalDtype):
        return _with_levels_of(series, trained, values)
    if series.isna().all():
        given = _can_be_missing(trained)
    elif isinstance(given, pd.CategoricalDtype):
        given = given.categories.dtype
    elif values.isna().all():
        trained = _can_be_missing(given)
    if given == trained or (_is_time(given) and _is_time(trained)):
        return trained
    joint = pd.concat([pd.Series([1], dtype=dtype) for dtype in (given, trained)]).dtype
    if (
        _is_measured(given) != _is_measured(trained)
        or (types.is_object_dtype(joint) and object not in (given, trained))
        or _loses_integers(series, values, joint)
    ):
        raise SchemaError(
            f"Column {series.name!r} had dtype {values.dtype} in training but has {series.dtype} "
            f"here, and no dtype holds both without loss. Convert it to {values.dtype} "
            "(a frame made of single rows may need .infer_objects())."
        )
    return joint


def _cast(series: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """The column in another dtype, or an error where that would change a cell."""
    try:
        cast = series.astype(dtype)
        same = (cast.astype(series.dtype) == series) | series.isna()
    except (TypeError, ValueError) as error:
        raise SchemaError(
            f"Column {series.name!r} cannot be read as {dtype}, its dtype in training: {error}"
        ) from error
    if not same.all():
        raise SchemaError(
            f"Column {series.name!r} has cells that {dtype}, its dtype in training, cannot hold: "
            f"{series[~same].iloc[0]!r}. Convert it yourself, so that the loss is your choice."
        )
    return cast


def _can_be_missing(dtype: Any) -> Any:
    """The dtype itself, or the nearest one with room for a missing value."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biu":
        return dtype
    return np.dtype(object) if dtype.kind == "b" else np.dtype(np.float64)


def _loses_integers(series: pd.Series[Any], values: pd.Series[Any], joint: Any) -> bool:
    """Whether integers beyond 2^53 would have to become floats."""
    if not types.is_float_dtype(joint):
        return False
    whole = [column.dropna() for column in (series, values) if types.is_integer_dtype(column)]
    return any(bool((column.abs() > EXACT_IN_FLOAT64).any()) for column in whole)


def _with_levels_of(
    series: pd.Series[Any], trained: pd.CategoricalDtype, values: pd.Series[Any]
) -> pd.CategoricalDtype:
    """A category that holds the levels of training and of the column."""
    given = series.dtype
    if not isinstance(given, pd.CategoricalDtype):
        given = pd.CategoricalDtype(list(series.dropna().unique()), ordered=trained.ordered)
    elif bool(given.ordered) == bool(trained.ordered) and _keeps_order(values, given):
        return given
    extra = [level for level in given.categories if level not in trained.categories]
    if bool(given.ordered) != bool(trained.ordered) or (trained.ordered and extra):
        raise SchemaError(
            f"Column {series.name!r} is a category with other levels or another order than in "
            f"training: expected {trained!r}. Convert it with .astype(that dtype)."
        )
    return pd.CategoricalDtype([*trained.categories, *extra], ordered=trained.ordered)


def _keeps_order(values: pd.Series[Any], given: pd.CategoricalDtype) -> bool:
    """Whether a category holds all training levels, in the same order if it has one."""
    places = given.categories.get_indexer(pd.Index(_plain(values.dropna())))
    return bool((places >= 0).all() and (not given.ordered or (np.diff(places) > 0).all()))
