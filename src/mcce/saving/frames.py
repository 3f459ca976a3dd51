"""The kind of frames that an explainer was fitted on, in a saved file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from ..errors import MissingExtraError
from ..tables.features import Feature
from ..tables.frames import PANDAS_ADAPTER, ArrayAdapter, ArrowAdapter, FrameAdapter, Library


def pack_adapter(adapter: FrameAdapter) -> dict[str, Any]:
    """The kind, and what it must remember of the columns."""
    if isinstance(adapter, ArrowAdapter):
        return {"kind": adapter.library, "schema": adapter.schema.serialize().to_pybytes().hex()}
    if isinstance(adapter, ArrayAdapter):
        return {"kind": "array", "named": adapter.named}
    return {"kind": "pandas"}


def unpack_adapter(plain: dict[str, Any], features: Sequence[Feature]) -> FrameAdapter:
    """The adapter that :func:`pack_adapter` packed, for columns of these features."""
    if plain["kind"] == "pandas":
        return PANDAS_ADAPTER
    if plain["kind"] == "array":
        return ArrayAdapter(named=plain["named"] is True)
    if plain["kind"] not in get_args(Library):
        raise ValueError(f"{plain['kind']!r} is no kind of frame")
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError(
            f"The explainer was fitted on {plain['kind']} frames. To explain such, install "
            'pyarrow and narwhals: pip install "mcce[frames]".'
        ) from error
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(plain["schema"])))
    if sorted(schema.names) != sorted(str(feature.name) for feature in features):
        raise ValueError("the columns of its frames are not those of its features")
    dtypes = {feature.name: feature.table.dtype for feature in features}
    return ArrowAdapter(library=plain["kind"], schema=schema, dtypes=dtypes)
