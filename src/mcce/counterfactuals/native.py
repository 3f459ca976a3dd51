"""Tables and rows about a result, in the kind of frame of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import pandas as pd

if TYPE_CHECKING:
    from .result import Counterfactuals

FrameT = TypeVar("FrameT")


def native_table(result: Counterfactuals[FrameT], table: pd.DataFrame) -> FrameT:
    """A table about a result, in the kind of frame of the result."""
    return cast("FrameT", result._adapter.table_to_native(table))


def native_rows(result: Counterfactuals[FrameT], rows: pd.DataFrame) -> FrameT:
    """Rows made of those of a result, in its kind of frame."""
    return cast("FrameT", result._adapter.rows_to_native(rows))
