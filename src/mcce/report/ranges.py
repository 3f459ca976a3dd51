"""Ranges of values that would do, read from the frame that ``explainer.ranges`` returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals import Counterfactuals
from ..errors import ParameterError, shorten
from ..kernels import BoolArray, FloatArray
from ..tables.frames import read_frame
from ..tables.schema import Schema

COLUMNS = ("factual", "rank", "feature", "low", "high", "box_low", "box_high", "box_share")


def read_ranges(
    ranges: Any, result: Counterfactuals[pd.DataFrame], schema: Schema, rounded: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest value that would do, as far as that can be said.

    A range of one feature holds while the other cells are as in the answer. So it counts for
    answers with one number to round. For others, boxes count in which every point was tried and
    held: of any other box, a letter would promise too much.

    Parameters
    ----------
    ranges
        A frame with the columns ``COLUMNS``; None for none.
    result
        The result that they belong to, in pandas.
    schema
        The columns.
    rounded : (n_mutable, n_answers)
        Which numbers are rounded.

    Returns
    -------
    low, high : (n_mutable, n_answers)
        NaN where there is no range.

    Raises
    ------
    ParameterError
        If the frame is not one of ranges, or cannot be matched with the answers.
    """
    low, high = np.full((2, *rounded.shape), np.nan)
    if ranges is None:
        return low, high
    frame, _ = read_frame(ranges)
    named = [name for name in frame.index.names if name in COLUMNS]
    frame = frame.reset_index(named) if named else frame
    lacking = [name for name in COLUMNS if name not in frame.columns]
    if lacking:
        raise ParameterError(
            f"ranges must be what explainer.ranges returned, but it has no columns {lacking!r}. "
            f"Its columns are {shorten(list(frame.columns), 200)}."
        )
    if not result.frame.index.is_unique:
        raise ParameterError(
            "ranges cannot be matched with the answers, because labels of people repeat. Explain "
            "people with an index without duplicates."
        )
    answer = dict(zip(result.frame.index.tolist(), range(len(result.frame)), strict=True))
    place = {schema.names[at]: row for row, at in enumerate(schema.mutable)}
    several = rounded.sum(axis=0) > 1
    cells = (frame[name].tolist() for name in COLUMNS)
    for factual, rank, feature, *ends, box_share in zip(*cells, strict=True):
        at, row = answer.get((factual, rank)), place.get(feature)
        if at is None or row is None or not rounded[row, at] or (several[at] and box_share != 1):
            continue
        smallest, largest = ends[2:] if several[at] else ends[:2]
        if not pd.isna(smallest) and not pd.isna(largest):
            low[row, at], high[row, at] = smallest, largest
    return low, high
