"""Rows as JSON, for black boxes behind HTTP.

Always true: a cell is written as it is or the row is refused; errors name its place and not what it
holds.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from ..errors import PredictorError
from ..tables.columns import is_missing, is_time, plain
from .base import FrameLike


def to_records(rows: FrameLike) -> list[Any]:
    """Rows of a frame as objects by column name, rows of an array as lists."""
    if isinstance(rows, np.ndarray):
        return [list(row) for row in pd.DataFrame(rows).pipe(_cells)]
    other = [name for name in rows.columns if not isinstance(name, str)]
    if other:
        raise PredictorError(
            f"Rows are sent as JSON objects, whose keys are strings, but the columns {other!r} "
            "have other names. Rename them."
        )
    return [dict(zip(rows.columns, row, strict=True)) for row in _cells(rows)]


def _cells(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows of plain cells: missing ones are None, dates and durations ISO 8601 strings."""
    columns = []
    for _, column in frame.items():
        cells = plain(column).copy()
        if is_time(column.dtype):
            cells = np.array(
                [cell if pd.isna(cell) else cell.isoformat() for cell in cells], object
            )
        cells[is_missing(column)] = None
        columns.append(cells.tolist())
    return list(zip(*columns, strict=True))


def encode(records: list[Any], key: str | None, start: int) -> bytes:
    """Records as JSON, under a key if there is one; the first is that of row ``start``."""
    try:
        return json.dumps(records if key is None else {key: records}, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        place = _first_unwritable(records, start)
    raise PredictorError(
        f"{place} cannot be written as JSON. Cells must be finite numbers, strings, booleans, "
        "dates or missing. Convert the column."
    )


def _first_unwritable(records: list[Any], start: int) -> str:
    """Row and column of the first cell that JSON cannot hold."""
    for position, record in enumerate(records, start):
        cells = record.items() if isinstance(record, dict) else enumerate(record)
        for name, cell in cells:
            try:
                json.dumps(cell, allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                return f"A {type(cell).__name__} in row {position} of column {name!r}"
    return "A row"
