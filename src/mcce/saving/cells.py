"""Columns as plain data and arrays, in their exact dtypes, and the kind of frame they come in.

Numbers and times are arrays; strings and objects are lists of plain values; a category is its
levels, used or not, and a number for each cell. Columns hold distinct values in order, of which at
most the last is missing. To save one more way of storing cells, add a line to ``STORAGES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from ..errors import SavedFileError, missing_extra
from ..tables.features import Feature
from ..tables.frames import (
    PANDAS_ADAPTER,
    ArrayAdapter,
    ArrowAdapter,
    FrameAdapter,
    Library,
    read_frame,
)
from .archive import ARRAY_KINDS, ensure
from .values import check_hashes, for_pandas, pack, unpack, unpack_cell

MASKED = re.compile("U?Int(8|16|32|64)|Float(32|64)|boolean")


def is_category(dtype: Any) -> bool:
    """Whether a dtype is a category, ordered or not."""
    return isinstance(dtype, pd.CategoricalDtype)


class Storage(NamedTuple):
    """A way of storing cells: its dtypes, the column as named parts, and the cells of these."""

    fits: Callable[[Any], bool]
    take: Callable[[pd.Series[Any], str], dict[str, Any]]
    make: Callable[..., Any]


def pack_cells(column: pd.Series[Any], what: str) -> dict[str, Any]:
    """A column as plain data and arrays; ``what`` names it, should that be impossible."""
    for tag, storage in STORAGES.items():
        if storage.fits(column.dtype):
            return {"storage": tag} | storage.take(column, what)
    raise _formless(column, what)


def unpack_cells(plain: dict[str, Any]) -> pd.Series[Any]:
    """The column of what :func:`pack_cells` gave, without a name."""
    parts = dict(plain)
    # Calling it by name refuses parts that lack or that it does not know.
    cells = STORAGES[parts.pop("storage")].make(**parts)
    return pd.Series(cells, dtype=cells.dtype)


def pack_adapter(adapter: FrameAdapter) -> dict[str, Any]:
    """The kind, and what it must remember of the columns."""
    if isinstance(adapter, ArrowAdapter):
        return {"kind": adapter.library, "schema": adapter.schema.serialize().to_pybytes().hex()}
    if isinstance(adapter, ArrayAdapter):
        return {"kind": "array", "named": adapter.named}
    return {"kind": "pandas"}


def unpack_adapter(plain: dict[str, Any], features: Sequence[Feature]) -> FrameAdapter:
    """The adapter that :func:`pack_adapter` packed, for columns of these features."""
    if plain.get("kind") in get_args(Library):
        return _arrow_adapter(features, **plain)
    named = plain.get("named")
    if type(named) is bool and plain == {"kind": "array", "named": named}:
        return ArrayAdapter(named=named)
    ensure(plain == {"kind": "pandas"}, "it was fitted on no kind of frame that mcce knows")
    return PANDAS_ADAPTER


def _arrow_adapter(features: Sequence[Feature], kind: Library, schema: str) -> ArrowAdapter:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra(
            "pyarrow", "frames", f"An explainer that was fitted on {kind} frames"
        ) from error
    types = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(schema)))
    dtypes = {feature.name: feature.table.dtype for feature in features}
    empty = read_frame(types.empty_table())[0]
    same = sorted(types.names) == sorted(map(str, dtypes)) and all(
        dtype == empty[name].dtype or (is_category(dtype) and is_category(empty[name].dtype))
        for name, dtype in dtypes.items()
    )
    ensure(same, "the columns of its frames are not those of its features")
    adapter = ArrowAdapter(library=kind, schema=types, dtypes=dtypes)
    for feature in features:
        adapter.rows_to_native(pd.DataFrame({feature.name: feature.table}))
    return adapter


def _make_objects(values: Any) -> Any:
    return pd.Series(check_hashes([unpack_cell(value) for value in values]), dtype=object).array


def _take_category(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    levels = pack_cells(pd.Series(dtype.categories), f"the levels of {what}")
    codes = column.cat.codes.to_numpy()
    return {"ordered": bool(dtype.ordered), "levels": levels, "values": codes}


def _make_category(ordered: Any, levels: Any, values: Any) -> Any:
    ensure(type(ordered) is bool, "a category does not say whether its levels are ordered")
    dtype = pd.CategoricalDtype(pd.Index(unpack_cells(levels)), ordered=ordered)
    return pd.Categorical.from_codes(_vector(values), dtype=dtype)


def _take_intervals(column: pd.Series[Any], what: str) -> dict[str, Any]:
    index = pd.IntervalIndex(column.array)
    ends = {end: pack_cells(pd.Series(getattr(index, end)), what) for end in ("left", "right")}
    return {"closed": index.closed, **ends}


def _make_intervals(closed: Any, left: Any, right: Any) -> Any:
    ends = unpack_cells(left), unpack_cells(right)
    return pd.arrays.IntervalArray.from_arrays(*ends, closed=closed)


def _take_strings(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    return {
        "kept_by": "python" if dtype.storage == "python" else "pyarrow",
        "missing": "NA" if dtype.na_value is pd.NA else "nan",
        "values": _texts(column, what),
    }


def _make_strings(kept_by: Any, missing: Any, values: Any) -> Any:
    cells = pd.Series(unpack(values), dtype=object)
    if missing == "NA":
        return cells.array.astype(pd.StringDtype(kept_by))
    cells = cells.where(cells.notna(), np.nan)
    try:
        return cells.array.astype(pd.StringDtype(kept_by, na_value=np.nan))
    except ImportError:
        # It is one dtype to pandas, which keeps it so where Arrow is not installed.
        return cells.array.astype(pd.StringDtype("python", na_value=np.nan))
    except TypeError:
        # Before 2.3 pandas had no such dtype and kept strings as objects.
        return cells.to_numpy()


def _take_arrow(column: pd.Series[Any], what: str) -> dict[str, Any]:
    from pyarrow import types

    dtype: Any = column.dtype
    kind = dtype.pyarrow_dtype
    zone = getattr(kind, "tz", None)
    described = {"type": f"timestamp[{kind.unit}]" if zone else str(kind), "zone": zone}
    if types.is_string(kind) or types.is_large_string(kind):
        return described | {"values": _texts(column, what)}
    return described | _take_numbers(column, what)


def _make_arrow(type: str, zone: Any, values: Any, missing: Any = None) -> Any:  # noqa: A002
    import pyarrow as pa

    kind = pa.type_for_alias(type)
    if zone is not None:
        # ZoneInfo raises for any other name.
        _ = re.fullmatch(r"[+-]\d\d:\d\d", zone) or ZoneInfo(zone)
        kind = pa.timestamp(kind.unit, zone)
    known = pa.array(unpack(values), kind) if missing is None else pa.array(_vector(values))
    cells = pd.arrays.ArrowExtensionArray(known.cast(kind))
    return cells if missing is None else _with_missing(cells, missing)


def _texts(column: pd.Series[Any], what: str) -> Any:
    pairs = zip(column, column.isna(), strict=True)
    return pack(tuple(None if missing else str(cell) for cell, missing in pairs), what)


def _take_numbers(column: pd.Series[Any], what: str) -> dict[str, Any]:
    """The cells of a dtype with a missing marker, as NumPy has them, and whether one is missing."""
    dtype: Any = column.dtype
    known = column.dropna()
    values = known.to_numpy(getattr(dtype, "numpy_dtype", None) or f"M8[{dtype.unit}]")
    if values.dtype.kind not in ARRAY_KINDS:
        raise _formless(column, what)
    return {"values": values, "missing": len(known) < len(column)}


def _with_missing(cells: Any, missing: Any) -> Any:
    ensure(type(missing) is bool, "a column does not say whether a cell is missing")
    return cells.take([*range(len(cells)), -1], allow_fill=True) if missing else cells


def _make_zoned(zone: Any, values: Any, missing: Any) -> Any:
    moments = pd.Series(_vector(values)).dt.tz_localize("UTC")
    return _with_missing(moments.dt.tz_convert(for_pandas(unpack(zone))).array, missing)


def _vector(values: Any) -> np.ndarray:
    sound = isinstance(values, np.ndarray) and values.ndim == 1
    ensure(sound, "a column is no list of cells")
    return np.asarray(values)


def _formless(column: pd.Series[Any], what: str) -> SavedFileError:
    return SavedFileError(
        f"Cannot save {what}: its dtype {column.dtype} has no form in the file. "
        "Convert the column before fitting. Nothing was written."
    )


STORAGES = {
    "numpy": Storage(
        lambda dtype: isinstance(dtype, np.dtype) and dtype.kind in ARRAY_KINDS,
        lambda column, what: {"values": column.to_numpy()},
        lambda values: _vector(values),
    ),
    "objects": Storage(
        is_object_dtype,
        lambda column, what: {"values": pack((*check_hashes([*column.to_numpy()]),), what)},
        _make_objects,
    ),
    "category": Storage(is_category, _take_category, _make_category),
    "intervals": Storage(
        lambda dtype: isinstance(dtype, pd.IntervalDtype), _take_intervals, _make_intervals
    ),
    "strings": Storage(
        lambda dtype: isinstance(dtype, pd.StringDtype), _take_strings, _make_strings
    ),
    "masked": Storage(
        lambda dtype: MASKED.fullmatch(getattr(dtype, "name", "")) is not None,
        _take_numbers,
        lambda values, missing: _with_missing(pd.array(_vector(values)), missing),
    ),
    "zoned": Storage(
        lambda dtype: isinstance(dtype, pd.DatetimeTZDtype),
        lambda column, what: {"zone": pack(column.dt.tz, what), **_take_numbers(column, what)},
        _make_zoned,
    ),
    "arrow": Storage(lambda dtype: isinstance(dtype, pd.ArrowDtype), _take_arrow, _make_arrow),
}
