"""Dtypes that hold both the cells of the factuals and the training values.

Factuals rarely have exactly the dtypes of the training data: a single row mixes ints and floats, a
category has one more level, a column is empty. If dtypes differ, the first is used that holds both
without loss: that of training, that of the factuals, one with room for missing cells. If there is
none, that is an error.

Always true: no cell changes its value on the way in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import SchemaError
from .columns import (
    Kind,
    check_finite,
    check_storage,
    factorize,
    is_measured,
    is_missing,
    is_time,
    plain,
)

# Dtypes for whole numbers, some of them missing, that a float cannot hold.
WIDE = {"i": (pd.Int64Dtype(),), "u": (pd.UInt64Dtype(),)}
# Contents of cells that pandas tells apart, and that one dtype may hold.
CONTENTS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float"), "number"),
    **dict.fromkeys(("datetime64", "datetime"), "moment"),
    **dict.fromkeys(("timedelta64", "timedelta"), "duration"),
}


def align_dtype(series: pd.Series[Any], table: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    """A column of factuals in a dtype that holds its cells and the training values."""
    if series.dtype != table.dtype:
        series = _aligned(series, table)
    if kind == "numeric":
        if not is_measured(series.dtype) and series.dtype.kind != "b":
            raise _no_joint_dtype(series, table)
        check_finite(series)
    return series


def _aligned(series: pd.Series[Any], table: pd.Series[Any]) -> pd.Series[Any]:
    """The column in the first dtype that holds it and the training values."""
    present = series[~is_missing(series)]
    if not present.empty:
        check_storage(series)
    known = table[~is_missing(table)]
    if len({_content(cells) for cells in (present, known) if len(cells)}) < 2:
        for dtype in _joint_dtypes(present, table):
            cast = _try_cast(series, dtype)
            if cast is not None and holds(dtype, table):
                return cast
    raise _no_joint_dtype(series, table)


def _joint_dtypes(present: pd.Series[Any], table: pd.Series[Any]) -> list[Any]:
    """The dtypes that may hold cells of factuals and training values, the best first."""
    trained, own = table.dtype, present.dtype
    if isinstance(trained, pd.CategoricalDtype) and not present.empty:
        return [_with_levels_of(present, trained, table)]
    if isinstance(own, pd.CategoricalDtype) or types.is_object_dtype(own):
        own = pd.Series(plain(present), dtype=object).infer_objects().dtype
    # The predictor sees objects only if it was trained on them, and times in the unit of training.
    is_new = types.is_object_dtype(own) or (is_time(own) and not is_missing(table).all())
    return [trained, *(() if is_new else (own,)), _nullable(trained), *WIDE.get(trained.kind, ())]


def _content(cells: pd.Series[Any]) -> str:
    """What cells are, whatever their dtype; only columns of one content have a joint dtype."""
    numpy = isinstance(cells.dtype, np.dtype)
    content = types.infer_dtype(cells.to_numpy() if numpy else plain(cells))
    return CONTENTS.get(content, content)


def cast_like(series: pd.Series[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    """The column in the dtype of another; raises if that would change a cell."""
    cast = _try_cast(series, like.dtype)
    if cast is None:
        raise _no_joint_dtype(series, like)
    return cast


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


def holds(dtype: Any, cells: pd.Series[Any]) -> bool:
    """Whether a dtype holds these cells without changing one."""
    return _try_cast(cells, dtype) is not None


def _try_cast(series: pd.Series[Any], dtype: Any) -> pd.Series[Any] | None:
    """The column in another dtype; None if that would change a cell."""
    if series.dtype == dtype:
        return series
    try:
        cast = to_dtype(series, dtype)
    # pandas and Arrow raise a dozen different errors for an impossible cast.
    except Exception:
        return None
    return cast if _equal(cast, series) else None


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
        levels, ordered = pd.Index(factorize(series)[1]), False
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
