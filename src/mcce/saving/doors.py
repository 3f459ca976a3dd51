"""The kind of frames that an explainer was fitted on, in a saved file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from ..errors import MissingExtraError
from ..frames import PANDAS, ArrayDoor, ArrowDoor, Door, Library
from ..schema import Feature


def pack_door(door: Door) -> dict[str, Any]:
    """The kind, and what it must remember of the columns."""
    if isinstance(door, ArrowDoor):
        return {"kind": door.library, "schema": door.schema.serialize().to_pybytes().hex()}
    if isinstance(door, ArrayDoor):
        return {"kind": "array", "named": door.named}
    return {"kind": "pandas"}


def unpack_door(plain: dict[str, Any], features: Sequence[Feature]) -> Door:
    """The door of what :func:`pack_door` gave, for columns of these features."""
    if plain["kind"] == "pandas":
        return PANDAS
    if plain["kind"] == "array":
        return ArrayDoor(named=plain["named"] is True)
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
    return ArrowDoor(library=plain["kind"], schema=schema, dtypes=dtypes)
