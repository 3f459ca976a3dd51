"""Checks that all parts of a saved file share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import SavedFileError
from ..kernels import Codes
from ..tables.schema import Schema


def check_entries(plain: Any, names: Iterable[str], what: str) -> dict[str, Any]:
    """A part of a file by name, which has these entries and no others."""
    if not isinstance(plain, dict) or plain.keys() != set(names):
        raise SavedFileError(f"{what} lacks entries, or has others")
    return plain


def check_integer(value: Any, what: str, most: int = 2**64 - 1) -> int:
    """A number in a file that counts something, or a seed."""
    if type(value) is not int or not 0 <= value <= most:
        raise SavedFileError(f"{what} is no whole number from 0 to {most}")
    return value


def check_codes(values: Any, schema: Schema, what: str) -> Codes:
    """Codes of training values, shape (n_features, n_rows), of at least one row."""
    n_codes = np.array([[feature.n_codes] for feature in schema.features])
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype != np.int32:
        raise SavedFileError(f"{what} are no table of codes")
    if len(values) != n_codes.size or not values.size:
        raise SavedFileError(f"{what} are not those of its columns")
    if (values < 0).any() or (values >= n_codes).any():
        raise SavedFileError(f"{what} hold values that training never held")
    return values
