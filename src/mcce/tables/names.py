"""The names of columns: which ones a frame may have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from ..errors import SchemaError, shorten

_SURROGATE = re.compile("[\ud800-\udfff]")


def check_column_names(frame: pd.DataFrame) -> None:
    """Raise unless every column has a name of its own that can be written down."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise SchemaError(
            "The frame has several levels of column names. Flatten them first: "
            "frame.columns = ['_'.join(name) for name in frame.columns]."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].unique().tolist()
        raise SchemaError(
            f"Column names must be unique, but these occur more than once: {shorten(twice, 500)}. "
            "Rename or drop all but one of each."
        )
    check_text(frame.columns)
    if frame.columns.hasnans:
        raise SchemaError(
            f"Every column needs a name, but one of {shorten(list(frame.columns), 500)} is missing."
        )


def check_text(names: Iterable[Any]) -> None:
    """Raise for names that UTF-8 cannot encode: pandas, files and other libraries fail on them."""
    for place, name in enumerate(names):
        if isinstance(name, str) and has_surrogate(name):
            raise SchemaError(
                f"The name of column {place} (counted from 0), {shorten(name)}, has half a "
                "surrogate pair, which UTF-8 cannot encode. Rename the column; if its name was "
                "read from a file, read that with another encoding."
            )


def has_surrogate(text: str) -> bool:
    """Whether a string holds half a surrogate pair, which UTF-8 cannot encode."""
    return not text.isascii() and _SURROGATE.search(text) is not None
