"""Counterfactuals with changed cells marked, in the style of the library of their frame.

Always true: text from data is escaped.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np
import pandas as pd

from ..errors import MissingExtraError
from ..kernels import BoolArray, IntArray
from ..tables.columns import differ
from ..tables.frames import FrameAdapter

# Dark text on a light background, so that it can be read in dark notebooks too, and in Excel.
INK, FILL = "#1b242c", "#f8e2b3"
# Names of the index of counterfactuals.
LABELS = ("factual", "rank")
MARK = f"font-weight: bold; color: {INK}; background-color: {FILL};"


def style_pandas(before: pd.DataFrame, after: pd.DataFrame, owner: IntArray) -> Any:
    """A styler of pandas."""
    shown = after
    if not after.index.is_unique:
        labels = [after.index.get_level_values(name) for name in LABELS]
        index = pd.MultiIndex.from_arrays([owner, *labels], names=["position", *LABELS])
        shown = after.set_axis(index)
    marks = np.where(np.column_stack(_changed(before, after)), MARK, "")
    styles = pd.DataFrame(marks, index=shown.index, columns=shown.columns)
    try:
        styler = shown.style
    except (ImportError, AttributeError) as error:
        raise MissingExtraError(
            'To style a pandas frame, Jinja2 must be installed: pip install "mcce[report]".'
        ) from error
    styler = styler.apply(lambda _: styles, axis=None).format(escape="html")
    return styler.format_index(escape="html", axis=0).format_index(escape="html", axis=1)


def style_polars(before: pd.DataFrame, after: pd.DataFrame, adapter: FrameAdapter) -> Any:
    """A great table, which is what polars styles with; the arguments are in pandas."""
    try:
        from great_tables import GT, loc, style
    except ImportError as error:
        raise MissingExtraError(
            'To style a polars frame, great-tables must be installed: pip install "mcce[style]". '
            "Or style the result in pandas: result.to_pandas().style()."
        ) from error
    names = [_free_name(name, after.columns) for name in LABELS]
    labelled = after.set_axis(after.index.set_names(names))
    table = GT(adapter.table_to_native(labelled))
    mark = [style.text(weight="bold", color=INK), style.fill(FILL)]
    for name, changed in zip(after.columns, _changed(before, after), strict=True):
        if changed.any():
            rows = np.flatnonzero(changed).tolist()
            table = table.tab_style(mark, loc.body(columns=name, rows=rows))
    return table


def _changed(before: pd.DataFrame, after: pd.DataFrame) -> list[BoolArray]:
    """Which cells of each column changed."""
    return [
        differ(before[name].reset_index(drop=True), after[name].reset_index(drop=True))
        for name in after.columns
    ]


def _free_name(name: str, taken: Collection[Hashable]) -> str:
    """The name of a column of labels, unlike those of the data."""
    while name in taken:
        name += "_"
    return name
