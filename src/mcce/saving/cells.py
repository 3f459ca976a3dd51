"""Columns as plain data and arrays, in their exact dtypes, and the kind of frame they come in.

Numbers and times are arrays; strings and objects are lists of plain values; a category is its
levels, used or not, and a number for each cell. To save one more way of storing cells, add a line
to ``STORAGES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from ..errors import SavedFileError, missing_extra
from ..tables.features import Feature
from ..tables.frames import PANDAS_ADAPTER, ArrayAdapter, ArrowAdapter, FrameAdapter, Library
from .values import (
    NotPlainError,
    check_entries,
    check_zone,
    pack,
    pack_zone,
    unpack,
    unpack_cell,
    unpack_zone,
)

UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True)
class Storage:
    """A way of storing cells: its dtypes, the column as plain data and arrays, and back."""

    tag: str
    entries: Set[str]
    fits: Callable[[Any], bool]
    take: Callable[[pd.Series[Any], str], dict[str, Any]]
    make: Callable[[dict[str, Any]], Any]
    optional: Set[str] = frozenset()


def pack_cells(column: pd.Series[Any], what: str) -> dict[str, Any]:
    """A column as plain data and arrays; ``what`` names it, should that be impossible."""
    for storage in STORAGES:
        if storage.fits(column.dtype):
            return {"storage": storage.tag} | storage.take(column, what)
    raise _formless(column, what)


def unpack_cells(plain: dict[str, Any]) -> pd.Series[Any]:
    """The column of what :func:`pack_cells` gave, without a name."""
    storage = {storage.tag: storage for storage in STORAGES}[plain["storage"]]
    check_entries(
        plain, {"storage", *storage.entries} | (plain.keys() & storage.optional), "a column"
    )
    cells = storage.make(plain)
    return pd.Series(cells, dtype=cells.dtype)


def pack_adapter(adapter: FrameAdapter) -> dict[str, Any]:
    """The kind, and what it must remember of the columns."""
    if isinstance(adapter, ArrowAdapter):
        return {"kind": adapter.library, "schema": adapter.schema.serialize().to_pybytes().hex()}
    if isinstance(adapter, ArrayAdapter):
        return {"kind": "array", "named": adapter.named}
    return {"kind": "pandas"}


def unpack_adapter(plain: Any, features: Sequence[Feature]) -> FrameAdapter:
    """The adapter that :func:`pack_adapter` packed, for columns of these features."""
    kind = plain["kind"]
    if kind == "pandas":
        check_entries(plain, ("kind",), "the kind of frames")
        return PANDAS_ADAPTER
    if kind == "array":
        named = check_entries(plain, ("kind", "named"), "the kind of frames")["named"]
        return ArrayAdapter(named=named is True)
    if kind not in get_args(Library):
        raise SavedFileError("it was fitted on no kind of frame that mcce knows")
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra(
            "pyarrow", "frames", f"An explainer that was fitted on {kind} frames"
        ) from error
    text = check_entries(plain, ("kind", "schema"), "the kind of frames")["schema"]
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text)))
    if sorted(schema.names) != sorted(str(feature.name) for feature in features):
        raise SavedFileError("the columns of its frames are not those of its features")
    dtypes = {feature.name: feature.table.dtype for feature in features}
    adapter = ArrowAdapter(library=kind, schema=schema, dtypes=dtypes)
    for feature in features:
        _check_type(adapter, feature)
    return adapter


def _check_type(adapter: ArrowAdapter, feature: Feature) -> None:
    """Raise unless a column's type in Arrow is that of its cells, whatever they are."""
    from pyarrow import large_string, types

    type_, dtype = adapter.schema.field(feature.name).type, feature.table.dtype
    if types.is_null(type_):
        fits = is_object_dtype(dtype)
    elif types.is_dictionary(type_):
        fits = isinstance(dtype, pd.CategoricalDtype)
    else:
        fits = dtype == pd.ArrowDtype(large_string() if types.is_string_view(type_) else type_)
    if not fits:
        raise SavedFileError("a column of its frames has another type than its cells")
    adapter.rows_to_native(pd.DataFrame({feature.name: feature.table}))


def _take_numpy(column: pd.Series[Any], what: str) -> dict[str, Any]:
    return {"values": column.to_numpy()}


def _make_numpy(plain: dict[str, Any]) -> Any:
    return _vector(plain["values"])


def _take_objects(column: pd.Series[Any], what: str) -> dict[str, Any]:
    return {"values": pack(list(column.to_numpy()), what)}


def _make_objects(plain: dict[str, Any]) -> Any:
    values = [unpack_cell(value) for value in plain["values"]]
    cells = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        cells[place] = value
    return cells


def _take_strings(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    cells = [None if gap else str(c) for c, gap in zip(column, column.isna(), strict=True)]
    return {
        "kept_by": "python" if dtype.storage == "python" else "pyarrow",
        "missing": "NA" if dtype.na_value is pd.NA else "nan",
        "values": pack(cells, what),
    }


def _make_strings(plain: dict[str, Any]) -> Any:
    cells = pd.Series(unpack(plain["values"]), dtype=object)
    if plain["missing"] == "NA":
        return cells.array.astype(pd.StringDtype(plain["kept_by"]))
    cells = cells.where(cells.notna(), np.nan)
    try:
        return cells.array.astype(pd.StringDtype(plain["kept_by"], na_value=np.nan))
    except ImportError:
        # It is one dtype to pandas, which keeps it so where Arrow is not installed.
        return cells.array.astype(pd.StringDtype("python", na_value=np.nan))
    except TypeError:
        # Before 2.3 pandas had no such dtype and kept strings as objects.
        return cells.to_numpy()


def _take_category(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    return {
        "ordered": bool(dtype.ordered),
        "levels": pack_cells(pd.Series(dtype.categories), f"the levels of {what}"),
        "values": column.cat.codes.to_numpy(),
    }


def _make_category(plain: dict[str, Any]) -> Any:
    levels = pd.Index(unpack_cells(plain["levels"]))
    if type(plain["ordered"]) is not bool:
        raise SavedFileError("a category does not say whether its levels are ordered")
    dtype = pd.CategoricalDtype(levels, ordered=plain["ordered"])
    return pd.Categorical.from_codes(_vector(plain["values"]), dtype=dtype)


def _take_masked(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    missing = np.asarray(column.isna(), dtype=bool)
    values = column.to_numpy(dtype=dtype.type, na_value=dtype.type(0))
    return {"values": values, "missing": missing}


def _make_masked(plain: dict[str, Any]) -> Any:
    values, missing = _vector(plain["values"]), _vector(plain["missing"])
    if values.dtype.kind == "b":
        return pd.arrays.BooleanArray(values, missing)
    masked = pd.arrays.FloatingArray if values.dtype.kind == "f" else pd.arrays.IntegerArray
    return masked(values, missing)


def _take_zoned(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    moments = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return {"zone": _packed_zone(dtype.tz, what), "values": moments.to_numpy()}


def _make_zoned(plain: dict[str, Any]) -> Any:
    moments = pd.Series(_vector(plain["values"])).dt.tz_localize("UTC")
    return moments.dt.tz_convert(unpack_zone(plain["zone"])).array


def _packed_zone(zone: Any, what: str) -> Any:
    try:
        return pack_zone(zone)
    except NotPlainError:
        raise SavedFileError(
            f"Cannot save {what}: its time zone {zone!r} is neither a named one nor a fixed "
            "distance from UTC. Convert it with .dt.tz_convert before fitting. Nothing was written."
        ) from None


def _take_intervals(column: pd.Series[Any], what: str) -> dict[str, Any]:
    ends = pd.arrays.IntervalArray(column)
    return {
        "closed": ends.closed,
        "left": pack_cells(pd.Series(ends.left), what),
        "right": pack_cells(pd.Series(ends.right), what),
    }


def _make_intervals(plain: dict[str, Any]) -> Any:
    left, right = unpack_cells(plain["left"]), unpack_cells(plain["right"])
    return pd.arrays.IntervalArray.from_arrays(left, right, closed=plain["closed"])


def _take_arrow(column: pd.Series[Any], what: str) -> dict[str, Any]:
    import pyarrow as pa

    dtype: Any = column.dtype
    kind = dtype.pyarrow_dtype
    zone = getattr(kind, "tz", None)
    if kind not in _arrow_types(zone).values():
        raise _formless(column, what)
    described = {"type": str(kind), "zone": zone}
    cells = pa.chunked_array(pa.array(column.array)).combine_chunks()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return described | {"values": pack(cells.to_pylist(), what)}
    missing = cells.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(kind):
        cells = cells.view(_arrow_numbers(kind))
    filled = cells.fill_null(False if pa.types.is_boolean(kind) else 0)
    return described | {"values": filled.to_numpy(zero_copy_only=False), "missing": missing}


def _make_arrow(plain: dict[str, Any]) -> Any:
    import pyarrow as pa

    zone = plain["zone"]
    if zone is not None and not re.fullmatch(r"[+-]\d\d:\d\d", zone):
        check_zone(zone)
    kind = _arrow_types(zone)[plain["type"]]
    if "missing" not in plain:
        return pd.arrays.ArrowExtensionArray(pa.array(unpack(plain["values"]), type=kind))
    values, missing = _vector(plain["values"]), _vector(plain["missing"])
    timed = pa.types.is_temporal(kind)
    stored = _arrow_numbers(kind) if timed else kind
    # Explicit, or NaN in a column of numbers would become missing.
    cells = pa.array(values, type=stored, mask=missing, from_pandas=False)
    return pd.arrays.ArrowExtensionArray(cells.view(kind) if timed else cells)


def _arrow_types(zone: str | None) -> dict[str, Any]:
    """Every type of Arrow's that a column may have, by its name."""
    import pyarrow as pa

    whole = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
    whole += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    others = [pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string()]
    times = [pa.date32(), pa.date64(), *(pa.duration(unit) for unit in UNITS)]
    times += [pa.timestamp(unit, zone) for unit in UNITS]
    return {str(kind): kind for kind in whole + others + times}


def _arrow_numbers(kind: Any) -> Any:
    """The integers that a time is kept in."""
    import pyarrow as pa

    return pa.int32() if kind == pa.date32() else pa.int64()


def _vector(values: Any) -> np.ndarray:
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise SavedFileError("a column is no list of cells")
    return values


def _formless(column: pd.Series[Any], what: str) -> SavedFileError:
    return SavedFileError(
        f"Cannot save {what}: its dtype {column.dtype} has no form in the file. "
        "Convert the column before fitting. Nothing was written."
    )


def _has_type(kind: type) -> Callable[[Any], bool]:
    return lambda dtype: isinstance(dtype, kind)


def _is_masked(dtype: Any) -> bool:
    name = getattr(dtype, "name", "")
    return re.fullmatch(r"U?Int(8|16|32|64)|Float(32|64)|boolean", name) is not None


def _is_numpy(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biufmM"


def _is_object(dtype: Any) -> bool:
    return bool(dtype == np.dtype(object))


STORAGES = (
    Storage("numpy", {"values"}, _is_numpy, _take_numpy, _make_numpy),
    Storage("objects", {"values"}, _is_object, _take_objects, _make_objects),
    Storage(
        "category",
        {"ordered", "levels", "values"},
        _has_type(pd.CategoricalDtype),
        _take_category,
        _make_category,
    ),
    Storage(
        "strings",
        {"kept_by", "missing", "values"},
        _has_type(pd.StringDtype),
        _take_strings,
        _make_strings,
    ),
    Storage("masked", {"values", "missing"}, _is_masked, _take_masked, _make_masked),
    Storage("zoned", {"zone", "values"}, _has_type(pd.DatetimeTZDtype), _take_zoned, _make_zoned),
    # Strings have no mask.
    Storage(
        "arrow",
        {"type", "zone", "values"},
        _has_type(pd.ArrowDtype),
        _take_arrow,
        _make_arrow,
        optional={"missing"},
    ),
    Storage(
        "intervals",
        {"closed", "left", "right"},
        _has_type(pd.IntervalDtype),
        _take_intervals,
        _make_intervals,
    ),
)
