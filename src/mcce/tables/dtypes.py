"""Dtypes that hold both the cells of the factuals and the training values.

A frame of people seldom has the very dtypes of training: one row of ints and floats, a level more,
a column that happens to be empty. Where they differ, the smallest dtype that loses nothing is
taken; where there is none, the user hears about it.

Always true: no cell changes its value on the way in; what cannot be held exactly is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import SchemaError
from .columns import Kind, check_finite, check_storage, factorize, is_measured, is_missing, plain

EXACT_IN_FLOAT64 = 2**53
SAMPLES = {"number": 1, "string": "a", "boolean": True}


def align_dtype(series: pd.Series[Any], table: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    """A column of people, in its own dtype wherever that equals the training dtype.

    Parameters
    ----------
    series
        The column as it came.
    table
        The distinct training values, in the training dtype.
    kind
        Kind of the feature.
    """
    if series.dtype != table.dtype:
        if not is_missing(series).all():
            check_storage(series)
        series = _unbox(series, table)
        try:
            joint = _joint_dtype(series, table)
        except UnicodeEncodeError as error:  # half a character, which Arrow refuses
            raise _no_joint(series, table) from error
        series = _cast(series, joint, table)
    if kind == "numeric":
        _check_measured(series, table)
        check_finite(series)
    return series


def cast_like(series: pd.Series[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    """The column in the dtype of another, or an error where that would change a cell."""
    return _cast(series, like.dtype, like)


def choose_dtypes(
    given: pd.Series[Any],
    aligned: pd.Series[Any],
    table: pd.Series[Any],
    *,
    immutable: bool,
    translated: bool,
) -> tuple[pd.Series[Any], Any]:
    """The column for the predictor, and the dtype in which it goes back to its owner.

    An immutable column holds its own cells only; another one the training values too. Between
    pandas frames the predictor sees the dtype that goes back: numbers in their own, if it holds
    them. Where a kind of frame was translated, the predictor sees the training dtype, if it holds
    the cells, and the owner theirs, if it holds them.
    """
    own = given.dtype
    own_holds = own == aligned.dtype or immutable or _holds(own, table)
    if translated:
        column = _as_trained(aligned, table)
        if isinstance(own, pd.CategoricalDtype) and not own.ordered and not own_holds:
            own, own_holds = _with_more_levels(own, table), True
        return column, own if own_holds else column.dtype
    column = given if own_holds and is_measured(own) else aligned
    return column, column.dtype


def to_dtype(series: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """The column in another dtype; a missing cell stays missing."""
    if series.dtype == dtype:
        return _to_categories(series, dtype) if isinstance(dtype, pd.CategoricalDtype) else series
    if is_missing(series).all():
        series = pd.Series([None] * len(series), index=series.index, name=series.name, dtype=object)
    if types.is_object_dtype(dtype) and getattr(series.dtype, "na_value", None) is pd.NA:
        # As a plain column says it: few predictors know NA among objects.
        cells = series.array.to_numpy(dtype=object, na_value=None)
        return pd.Series(cells, index=series.index, name=series.name, dtype=object)
    # pandas 3.0 fills the missing dates of its own input on the way to Arrow, hence the copy.
    return series.copy().astype(dtype)


def _to_categories(series: pd.Series[Any], dtype: pd.CategoricalDtype) -> pd.Series[Any]:
    """A category in an equal one, which may hold its levels in another order or as objects."""
    own, wanted = series.cat.categories, dtype.categories
    if own.dtype == wanted.dtype and own.equals(wanted):
        return series
    places, numbers = wanted.get_indexer(own), series.cat.codes.to_numpy()
    codes = np.where(numbers < 0, -1, places[numbers])
    cells = pd.Categorical.from_codes(codes, dtype=dtype)
    return pd.Series(cells, index=series.index, name=series.name)


def _as_trained(aligned: pd.Series[Any], table: pd.Series[Any]) -> pd.Series[Any]:
    """The column in the training dtype, or the nearest one, if that holds every cell."""
    for dtype in (table.dtype, _can_be_missing(table.dtype)):
        if _holds(dtype, table) and _holds(dtype, aligned):
            return to_dtype(aligned, dtype)
    return aligned


def _unbox(series: pd.Series[Any], table: pd.Series[Any]) -> pd.Series[Any]:
    """The column without a category or objects around its cells, where training had none."""
    if isinstance(series.dtype, pd.CategoricalDtype) and not isinstance(
        table.dtype, pd.CategoricalDtype
    ):
        levels = series.dtype.categories.dtype
        return _cast(series, _can_be_missing(levels) if series.hasnans else levels, table)
    boxed = types.is_object_dtype(series.dtype) and not types.is_object_dtype(table.dtype)
    if boxed and _family(series) != "string":
        inferred = series.infer_objects()
        return inferred if _equal(inferred, series) else series
    return series


def _joint_dtype(series: pd.Series[Any], table: pd.Series[Any]) -> Any:
    """The smallest dtype that holds both."""
    given, trained = series.dtype, table.dtype
    if given == trained or series.empty:
        return trained
    if isinstance(trained, pd.CategoricalDtype):
        return _with_levels_of(series, trained, table)
    if is_missing(series).all():
        room = _can_be_missing(trained)
        wide = {"i": pd.Int64Dtype(), "u": pd.UInt64Dtype()}
        return wide[trained.kind] if _loses_integers(series, table, room) else room
    if is_missing(table).all() and trained in (np.float64, object):
        return _can_be_missing(given)
    family = _family(series)
    if family != _family(table):
        raise _no_joint(series, table)
    if family not in SAMPLES:
        return trained
    samples = [pd.Series([SAMPLES[family]], dtype=dtype) for dtype in (given, trained)]
    joint = pd.concat(samples).dtype
    if types.is_object_dtype(joint) and object not in (given, trained):
        return trained
    if _loses_integers(series, table, joint):
        raise _no_joint(series, table)
    return joint


def _cast(series: pd.Series[Any], dtype: Any, table: pd.Series[Any]) -> pd.Series[Any]:
    """The column in another dtype, or an error where that would change a cell."""
    if series.dtype == dtype:
        return series
    try:
        cast = to_dtype(series, dtype)
    # pandas and Arrow have a dozen ways to say that a cast is impossible.
    except Exception as error:
        raise _no_joint(series, table) from error
    if not _equal(cast, series):
        raise _no_joint(series, table)
    return cast


def _holds(dtype: Any, cells: pd.Series[Any]) -> bool:
    """Whether a dtype holds these cells without changing one."""
    try:
        _cast(cells, dtype, cells)
    except SchemaError:
        return False
    return True


def _equal(first: pd.Series[Any], second: pd.Series[Any]) -> bool:
    """Whether all cells are the same values, in whatever dtypes."""
    missing = is_missing(first)
    if not np.array_equal(missing, is_missing(second)):
        return False
    pairs = zip(plain(first[~missing]), plain(second[~missing]), strict=True)
    return all(_is(a, b) for a, b in pairs)


def _is(first: Any, second: Any) -> bool:
    """Whether two cells are the same; what cannot be compared, an array for one, is not."""
    try:
        return first is second or bool(first == second)
    except (TypeError, ValueError):
        return False


def _can_be_missing(dtype: Any) -> Any:
    """The dtype itself, or the nearest one with room for a missing value."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biu":
        return dtype
    return np.dtype(object) if dtype.kind == "b" else np.dtype(np.float64)


def _family(series: pd.Series[Any] | pd.Index[Any]) -> str:
    """What the cells are, whatever they are stored in; only within a family is there a joint."""
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
    """Whether integers beyond 2^53 would have to become floats."""
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
    """A category that holds the levels of training and of the column."""
    given = series.dtype
    if isinstance(given, pd.CategoricalDtype):
        levels, ordered = given.categories, bool(given.ordered)
        if ordered == trained.ordered and _keeps_order(table, given):
            return given
    else:
        levels, ordered = pd.Index(factorize(series[~is_missing(series)])[1]), False
    if len(levels) and len(trained.categories) and _family(levels) != _family(trained.categories):
        raise _no_joint(series, table)
    places = trained.categories.get_indexer(levels)
    boxed = isinstance(given, pd.CategoricalDtype)
    if (
        (boxed and ordered != trained.ordered)
        or (trained.ordered and (places < 0).any())
        or (ordered and (np.diff(places) < 0).any())
    ):
        raise SchemaError(
            f"Column {series.name!r} is a category with other levels or another order than in "
            f"training: expected {trained!r}, got {given!r}. "
            "Convert it with .astype(the expected dtype)."
        )
    return pd.CategoricalDtype([*trained.categories, *levels[places < 0]], ordered=trained.ordered)


def _with_more_levels(given: pd.CategoricalDtype, table: pd.Series[Any]) -> pd.CategoricalDtype:
    """A category without an order, with the training levels after its own."""
    levels = dict.fromkeys([*given.categories, *plain(table[~is_missing(table)])])
    return pd.CategoricalDtype(list(levels))


def _keeps_order(table: pd.Series[Any], given: pd.CategoricalDtype) -> bool:
    """Whether a category holds all training levels, in the same order if it has one."""
    places = given.categories.get_indexer(pd.Index(plain(table.dropna())))
    return bool((places >= 0).all() and (not given.ordered or (np.diff(places) > 0).all()))


def _check_measured(series: pd.Series[Any], table: pd.Series[Any]) -> None:
    if not is_measured(series.dtype) and series.dtype.kind != "b":
        raise _no_joint(series, table)


def _no_joint(series: pd.Series[Any], table: pd.Series[Any]) -> SchemaError:
    return SchemaError(
        f"Column {series.name!r} had dtype {table.dtype} in training but has {series.dtype} here, "
        f"and no dtype holds both without loss. Convert it to {table.dtype} yourself, so that "
        "any loss is your choice."
    )
