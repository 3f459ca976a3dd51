"""What a fitted distance learned from training rows, as arrays.

A file holds distances that come with mcce alone: their names and parameters, and their arrays.
"""

from __future__ import annotations

from typing import Any

from ..distances import FeatureDistance, find_distance
from ..errors import SavedFileError
from ..protocols import Distance
from ..tables.schema import Schema
from .checks import check_entries


def pack_distance(distance: Distance) -> dict[str, Any] | None:
    """What a fitted distance learned; None if that is nothing."""
    # Any other has been refused among the parameters.
    assert isinstance(distance, FeatureDistance)
    return dict(distance.to_arrays()) if distance.reads_rows else None


def unpack_distance(plain: Any, given: Any, schema: Schema) -> FeatureDistance:
    """The fitted distance of what :func:`pack_distance` gave, by the parameter ``distance``."""
    blank = find_distance(given)
    assert isinstance(blank, FeatureDistance)
    if (plain is not None) != blank.reads_rows:
        raise SavedFileError("it lacks what its distance learned, or has some that it did not")
    arrays = {} if plain is None else check_entries(plain, blank.array_names, "the distance")
    return blank.from_arrays(arrays, schema)
