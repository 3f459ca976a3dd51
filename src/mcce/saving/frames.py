"""The kind of frames that an explainer was fitted on, in a saved file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pandas as pd
from pandas.api.types import is_object_dtype

from ..errors import MissingExtraError, SavedFileError
from ..tables.features import Feature
from ..tables.frames import PANDAS_ADAPTER, ArrayAdapter, ArrowAdapter, FrameAdapter, Library
from .checks import check_entries


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
        raise MissingExtraError(
            f"The explainer was fitted on {kind} frames. To explain such, install "
            'pyarrow and narwhals: pip install "mcce[frames]".'
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
