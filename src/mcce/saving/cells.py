"""Columns as plain data and arrays, in their exact dtypes, and the kind of frame they come in.

Numbers and times are arrays; strings and objects are lists of plain values; a category is its
levels, used or not, and a number for each cell. To save one more way of storing cells, add a line
to ``STORAGES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from ..errors import SavedFileError, missing_extra
from ..tables.features import Feature
from ..tables.frames import PANDAS_ADAPTER, ArrayAdapter, ArrowAdapter, FrameAdapter, Library
from .archive import ensure
from .values import (
    NotPlainError,
    check_hashes,
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
    parts = dict(plain)
    kind = parts.pop("kind")
    if kind in get_args(Library):
        return _arrow_adapter(kind, features, **parts)
    if kind == "array":
        sound = parts.keys() == {"named"} and type(parts["named"]) is bool
        ensure(sound, "it does not say whether the columns of its arrays have names")
        return ArrayAdapter(named=parts["named"])
    ensure(kind == "pandas" and not parts, "it was fitted on no kind of frame that mcce knows")
    return PANDAS_ADAPTER


def _arrow_adapter(kind: Library, features: Sequence[Feature], schema: str) -> ArrowAdapter:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra(
            "pyarrow", "frames", f"An explainer that was fitted on {kind} frames"
        ) from error
    types = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(schema)))
    same = sorted(types.names) == sorted(str(feature.name) for feature in features)
    ensure(same, "the columns of its frames are not those of its features")
    dtypes = {feature.name: feature.table.dtype for feature in features}
    adapter = ArrowAdapter(library=kind, schema=types, dtypes=dtypes)
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
    ensure(fits, "a column of its frames has another type than its cells")
    adapter.rows_to_native(pd.DataFrame({feature.name: feature.table}))


def _make_objects(values: list[Any]) -> Any:
    cells = np.empty(len(values), dtype=object)
    for place, value in enumerate(check_hashes([unpack_cell(value) for value in values])):
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


def _take_category(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    return {
        "ordered": bool(dtype.ordered),
        "levels": pack_cells(pd.Series(dtype.categories), f"the levels of {what}"),
        "values": column.cat.codes.to_numpy(),
    }


def _make_category(ordered: Any, levels: Any, values: Any) -> Any:
    ensure(type(ordered) is bool, "a category does not say whether its levels are ordered")
    dtype = pd.CategoricalDtype(pd.Index(unpack_cells(levels)), ordered=ordered)
    return pd.Categorical.from_codes(_vector(values), dtype=dtype)


def _take_masked(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    missing = np.asarray(column.isna(), dtype=bool)
    values = column.to_numpy(dtype=dtype.type, na_value=dtype.type(0))
    return {"values": values, "missing": missing}


def _make_masked(values: Any, missing: Any) -> Any:
    masked = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    make = masked.get(_vector(values).dtype.kind, pd.arrays.IntegerArray)
    return make(values, _vector(missing))


def _take_zoned(column: pd.Series[Any], what: str) -> dict[str, Any]:
    dtype: Any = column.dtype
    moments = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return {"zone": _packed_zone(dtype.tz, what), "values": moments.to_numpy()}


def _make_zoned(zone: Any, values: Any) -> Any:
    moments = pd.Series(_vector(values)).dt.tz_localize("UTC")
    return moments.dt.tz_convert(unpack_zone(zone)).array


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


def _make_intervals(closed: Any, left: Any, right: Any) -> Any:
    ends = unpack_cells(left), unpack_cells(right)
    return pd.arrays.IntervalArray.from_arrays(*ends, closed=closed)


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


def _make_arrow(type: Any, zone: Any, values: Any, missing: Any = None) -> Any:  # noqa: A002
    import pyarrow as pa

    if zone is not None and not re.fullmatch(r"[+-]\d\d:\d\d", zone):
        check_zone(zone)
    kind = _arrow_types(zone)[type]
    # Strings have no mask.
    if missing is None:
        return pd.arrays.ArrowExtensionArray(pa.array(unpack(values), type=kind))
    timed = pa.types.is_temporal(kind)
    stored = _arrow_numbers(kind) if timed else kind
    # Explicit, or NaN in a column of numbers would become missing.
    cells = pa.array(_vector(values), type=stored, mask=_vector(missing), from_pandas=False)
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
    sound = isinstance(values, np.ndarray) and values.ndim == 1
    ensure(sound, "a column is no list of cells")
    return np.asarray(values)


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


STORAGES = {
    "numpy": Storage(
        lambda dtype: isinstance(dtype, np.dtype) and dtype.kind in "biufmM",
        lambda column, what: {"values": column.to_numpy()},
        lambda values: _vector(values),
    ),
    "objects": Storage(
        lambda dtype: bool(dtype == np.dtype(object)),
        lambda column, what: {"values": pack(check_hashes([*column.to_numpy()]), what)},
        _make_objects,
    ),
    "category": Storage(_has_type(pd.CategoricalDtype), _take_category, _make_category),
    "strings": Storage(_has_type(pd.StringDtype), _take_strings, _make_strings),
    "masked": Storage(_is_masked, _take_masked, _make_masked),
    "zoned": Storage(_has_type(pd.DatetimeTZDtype), _take_zoned, _make_zoned),
    "arrow": Storage(_has_type(pd.ArrowDtype), _take_arrow, _make_arrow),
    "intervals": Storage(_has_type(pd.IntervalDtype), _take_intervals, _make_intervals),
}
