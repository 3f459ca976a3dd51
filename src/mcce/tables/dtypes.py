"""Dtypes that hold both the cells of the factuals and the training values.

Factuals rarely have exactly the dtypes of the training data: a single row mixes ints and floats, a
category has one more level, a column is empty. If dtypes differ, the smallest one that holds both
without loss is used; if there is none, that is an error.

Always true: no cell changes its value on the way in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import SchemaError
from .columns import (
    EXACT_IN_FLOAT64,
    Kind,
    check_finite,
    check_storage,
    factorize,
    is_measured,
    is_missing,
    plain,
)

SAMPLES = {"number": 1, "string": "a", "boolean": True}


def align_dtype(series: pd.Series[Any], table: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    """A column of factuals in a dtype that holds its cells and the training values."""
    if series.dtype != table.dtype:
        if not is_missing(series).all():
            check_storage(series)
        series = _unwrap(series, table)
        try:
            joint = _joint_dtype(series, table)
        except UnicodeEncodeError:  # a lone surrogate, which Arrow refuses
            raise _no_joint_dtype(series, table) from None
        series = _cast(series, joint, table)
    if kind == "numeric":
        _check_measured(series, table)
        check_finite(series)
    return series


def cast_like(series: pd.Series[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    """The column in the dtype of another; raises if that would change a cell."""
    return _cast(series, like.dtype, like)


def choose_columns(
    given: pd.Series[Any],
    aligned: pd.Series[Any],
    table: pd.Series[Any],
    *,
    immutable: bool,
    converted: bool,
) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """The column for the predictor, and the column as it is returned to the user.

    The predictor sees numbers in the given dtype, if that holds the training values too, and
    everything else, also categories and objects that hold numbers, in a dtype of training. With
    conversion, it sees the training dtype itself if that holds the cells. The user gets the
    given cells back, in the given dtype wherever that can hold what may be drawn; an immutable
    column only has to hold its own cells.
    """
    own = given.dtype
    own_holds = own == aligned.dtype or immutable or holds(own, table)
    if converted:
        column = _as_trained(aligned, table)
    else:
        column = given if own_holds and is_measured(own) else aligned
    if own_holds:
        return column, given
    if isinstance(own, pd.CategoricalDtype) and not own.ordered:
        return column, to_dtype(given, _with_more_levels(own, table))
    return column, column


def to_dtype(series: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """The column in another dtype; missing cells stay missing."""
    if series.dtype == dtype:
        return _to_categories(series, dtype) if isinstance(dtype, pd.CategoricalDtype) else series
    if is_missing(series).all():
        series = pd.Series([None] * len(series), index=series.index, name=series.name, dtype=object)
    if types.is_object_dtype(dtype) and getattr(series.dtype, "na_value", None) is pd.NA:
        # None instead of NA, which few predictors expect among objects.
        cells = series.array.to_numpy(dtype=object, na_value=None)
        return pd.Series(cells, index=series.index, name=series.name, dtype=object)
    # A copy, because pandas 3.0 fills the missing dates of its input when it casts to Arrow.
    return series.copy().astype(dtype)


def _to_categories(series: pd.Series[Any], dtype: pd.CategoricalDtype) -> pd.Series[Any]:
    """A category in an equal dtype, whose levels may be in another order or objects."""
    own, wanted = series.cat.categories, dtype.categories
    if own.dtype == wanted.dtype and own.equals(wanted):
        return series
    indices, numbers = wanted.get_indexer(own), series.cat.codes.to_numpy()
    codes = np.where(numbers < 0, -1, indices[numbers])
    cells = pd.Categorical.from_codes(codes, dtype=dtype)
    return pd.Series(cells, index=series.index, name=series.name)


def _as_trained(aligned: pd.Series[Any], table: pd.Series[Any]) -> pd.Series[Any]:
    """The column in the training dtype, or its nullable form, if that holds every cell."""
    for dtype in (table.dtype, _nullable(table.dtype)):
        if holds(dtype, table) and holds(dtype, aligned):
            return to_dtype(aligned, dtype)
    return aligned


def _unwrap(series: pd.Series[Any], table: pd.Series[Any]) -> pd.Series[Any]:
    """The column without a category or object dtype that training did not have."""
    if isinstance(series.dtype, pd.CategoricalDtype) and not isinstance(
        table.dtype, pd.CategoricalDtype
    ):
        levels = series.dtype.categories.dtype
        return _cast(series, _nullable(levels) if series.hasnans else levels, table)
    only_here = types.is_object_dtype(series.dtype) and not types.is_object_dtype(table.dtype)
    if only_here and _family(series) != "string":
        inferred = series.infer_objects()
        if types.is_object_dtype(inferred.dtype):  # pandas does not see numbers beside NA
            inferred = series.mask(is_missing(series), np.nan).infer_objects()
        return inferred if _equal(inferred, series) else series
    return series


def _joint_dtype(series: pd.Series[Any], table: pd.Series[Any]) -> Any:
    """The smallest dtype that holds both columns."""
    given, trained = series.dtype, table.dtype
    if given == trained or series.empty:
        return trained
    if isinstance(trained, pd.CategoricalDtype):
        return _with_levels_of(series, trained, table)
    if is_missing(series).all():
        room = _nullable(trained)
        wide = {"i": pd.Int64Dtype(), "u": pd.UInt64Dtype()}
        return wide[trained.kind] if _loses_integers(series, table, room) else room
    if is_missing(table).all() and trained in (np.float64, object):
        return _nullable(given)
    family = _family(series)
    if family != _family(table):
        raise _no_joint_dtype(series, table)
    if family not in SAMPLES:
        return trained
    samples = [pd.Series([SAMPLES[family]], dtype=dtype) for dtype in (given, trained)]
    joint = pd.concat(samples).dtype
    if types.is_object_dtype(joint) and object not in (given, trained):
        return trained
    if not _loses_integers(series, table, joint):
        return joint
    # pandas joins int64 and uint64 as floats, also where one of them holds all cells.
    if given.kind in "iu" and trained.kind in "iu":
        for dtype, cells in ((trained, series), (given, table)):
            if holds(dtype, cells):
                return dtype
    raise _no_joint_dtype(series, table)


def _cast(series: pd.Series[Any], dtype: Any, table: pd.Series[Any]) -> pd.Series[Any]:
    """The column in another dtype; raises if that would change a cell."""
    if series.dtype == dtype:
        return series
    try:
        cast = to_dtype(series, dtype)
    # pandas and Arrow raise a dozen different errors for an impossible cast, many quote a cell.
    except Exception:
        raise _no_joint_dtype(series, table) from None
    if not _equal(cast, series):
        raise _no_joint_dtype(series, table)
    return cast


def holds(dtype: Any, cells: pd.Series[Any]) -> bool:
    """Whether a dtype holds these cells without changing one."""
    try:
        _cast(cells, dtype, cells)
    except SchemaError:
        return False
    return True


def _equal(first: pd.Series[Any], second: pd.Series[Any]) -> bool:
    """Whether two columns have the same values, whatever their dtypes."""
    missing = is_missing(first)
    if not np.array_equal(missing, is_missing(second)):
        return False
    pairs = zip(plain(first[~missing]), plain(second[~missing]), strict=True)
    return all(_equal_cells(a, b) for a, b in pairs)


def _equal_cells(first: Any, second: Any) -> bool:
    """Whether two cells are equal; cells that cannot be compared, such as arrays, are not."""
    try:
        return first is second or bool(first == second)
    except (TypeError, ValueError):
        return False


def _nullable(dtype: Any) -> Any:
    """The dtype itself if it can hold missing values, otherwise the nearest that can."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biu":
        return dtype
    return np.dtype(object) if dtype.kind == "b" else np.dtype(np.float64)


def _family(series: pd.Series[Any] | pd.Index[Any]) -> str:
    """What the cells are, whatever their dtype; only columns of one family have a joint dtype."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _family(dtype.categories)
    if dtype.kind == "M":
        arrow = getattr(dtype, "pyarrow_dtype", None)
        return "moment" if getattr(arrow or dtype, "tz", None) else "local time"
    families = {"b": "boolean", "i": "number", "u": "number", "f": "number", "m": "duration"}
    if dtype.kind in families:
        return families[dtype.kind]
    if dtype.kind == "U" or isinstance(dtype, pd.StringDtype):
        return "string"
    content = types.infer_dtype(series, skipna=True)
    numbers = ("integer", "floating", "mixed-integer-float")
    return "number" if content in numbers else content


def _loses_integers(series: pd.Series[Any], table: pd.Series[Any], joint: Any) -> bool:
    """Whether integers beyond 2**53 would become floats."""
    if joint.kind != "f":
        return False
    for column in (series, table):
        if column.dtype.kind in "iu":
            whole = column.dropna()
            if ((whole > EXACT_IN_FLOAT64) | (whole < -EXACT_IN_FLOAT64)).any():
                return True
    return False


def _with_levels_of(
    series: pd.Series[Any], trained: pd.CategoricalDtype, table: pd.Series[Any]
) -> pd.CategoricalDtype:
    """A category with the levels of training and of the column."""
    given = series.dtype
    if isinstance(given, pd.CategoricalDtype):
        levels, ordered = given.categories, bool(given.ordered)
        if ordered == trained.ordered and _keeps_order(table, given):
            return given
    else:
        levels, ordered = pd.Index(factorize(series[~is_missing(series)])[1]), False
    if len(levels) and len(trained.categories) and _family(levels) != _family(trained.categories):
        raise _no_joint_dtype(series, table)
    indices = trained.categories.get_indexer(levels)
    is_category = isinstance(given, pd.CategoricalDtype)
    if (
        (is_category and ordered != trained.ordered)
        or (trained.ordered and (indices < 0).any())
        or (ordered and (np.diff(indices) < 0).any())
    ):
        raise SchemaError(
            f"Column {series.name!r} is a category with other levels or another order than in the "
            f"training data: expected {_described(trained)}, got {_described(given)}. Convert it "
            "with .astype(dtype) to the dtype of the training data."
        )
    return pd.CategoricalDtype([*trained.categories, *levels[indices < 0]], ordered=trained.ordered)


def _with_more_levels(given: pd.CategoricalDtype, table: pd.Series[Any]) -> pd.CategoricalDtype:
    """An unordered category with its own levels and then those of training."""
    levels = dict.fromkeys([*given.categories, *plain(table[~is_missing(table)])])
    return pd.CategoricalDtype(list(levels))


def _keeps_order(table: pd.Series[Any], given: pd.CategoricalDtype) -> bool:
    """Whether a category has all training levels, in the same order if it is ordered."""
    indices = given.categories.get_indexer(pd.Index(plain(table.dropna())))
    return bool((indices >= 0).all() and (not given.ordered or (np.diff(indices) > 0).all()))


def _check_measured(series: pd.Series[Any], table: pd.Series[Any]) -> None:
    if not is_measured(series.dtype) and series.dtype.kind != "b":
        raise _no_joint_dtype(series, table)


def _described(dtype: Any) -> str:
    """A dtype without its levels."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return f"dtype {dtype}"
    return f"{'an' if dtype.ordered else 'no'} order of {len(dtype.categories)} levels"


def _no_joint_dtype(series: pd.Series[Any], table: pd.Series[Any]) -> SchemaError:
    return SchemaError(
        f"Column {series.name!r} had dtype {table.dtype} in training but has {series.dtype} here, "
        f"and no dtype holds both without loss. Convert it to {table.dtype} yourself."
    )
