"""How a result is shown: an HTML table for notebooks, and the styles of pandas and polars.

Always true: everything from data is escaped; the table of notebooks is of bounded length. Marks of
changed cells are bold, and can be read in light and dark notebooks.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from ..errors import missing_extra
from ..kernels import BoolArray, IntArray
from ..tables.columns import changed_cells, plain_cells
from ..tables.frames import FrameAdapter
from ..tables.text import short_line

MAX_ROWS, MAX_COLUMNS = 30, 15
MISSING = "\N{EN DASH}"
# Dark text on a light background, so that it can be read in dark notebooks too, and in Excel.
INK, FILL = "#1b242c", "#f8e2b3"
# Names of the index of counterfactuals.
LABELS = ("factual", "rank")
MARK = f"font-weight: bold; color: {INK}; background-color: {FILL};"


def write_table(title: str, factuals: pd.DataFrame, frame: pd.DataFrame, owner: IntArray) -> str:
    """People and their answers as an HTML table, with changed cells marked."""
    shown = owner[: MAX_ROWS - 1]
    # A row for each person and one for each answer, as many as fit.
    n_rows = np.arange(1, shown.size + 1) + np.unique(shown, return_inverse=True)[1] + 1
    places = np.flatnonzero(n_rows <= MAX_ROWS)
    before, after = factuals.iloc[owner[places]], frame.iloc[places]
    changed: dict[Hashable, BoolArray] = dict(
        zip(frame.columns, changed_cells(before, after), strict=True)
    )
    names = _columns(changed)
    rows = _rows(before, after, owner[places], {name: changed[name] for name in names})
    heads = "".join(f'<th scope="col">{_text(name)}</th>' for name in ("person", "row", *names))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    notes = _left_out(len(frame) - places.size, len(frame.columns) - len(names))
    return f"<div><p>{escape(title)}</p>{table if len(places) else ''}{notes}</div>"


def _columns(changed: dict[Hashable, BoolArray]) -> list[Hashable]:
    """The columns to show: those that change before others, in their order."""
    ordered = sorted(changed, key=lambda name: not changed[name].any())
    kept = set(ordered[:MAX_COLUMNS])
    return [name for name in changed if name in kept]


def _rows(
    before: pd.DataFrame, after: pd.DataFrame, owner: IntArray, changed: dict[Hashable, BoolArray]
) -> list[str]:
    own = {name: _cells(before[name]) for name in changed}
    new = {name: _cells(after[name]) for name in changed}
    labels, ranks = (after.index.get_level_values(level) for level in ("factual", "rank"))
    rows = []
    for at, person in enumerate(owner.tolist()):
        if at == 0 or person != owner[at - 1]:
            cells = "".join(f"<td>{own[name][at]}</td>" for name in changed)
            rows.append(f'<tr><th scope="row">{_text(labels[at])}</th><td>now</td>{cells}</tr>')
        cells = "".join(
            f'<td style="{MARK}">{new[name][at]}</td>' if marks[at] else f"<td>{new[name][at]}</td>"
            for name, marks in changed.items()
        )
        rows.append(f'<tr><th scope="row"></th><td>answer {ranks[at]}</td>{cells}</tr>')
    return rows


def _cells(column: pd.Series[Any]) -> list[str]:
    return [MISSING if cell is None else _text(cell) for cell in plain_cells(column)]


def _text(value: object) -> str:
    return escape(short_line(value))


def _left_out(n_rows: int, n_columns: int) -> str:
    """How much is not shown, if anything."""
    parts = [
        f"{n} more {thing}{'s' if n > 1 else ''}"
        for n, thing in ((n_rows, "counterfactual"), (n_columns, "column"))
        if n
    ]
    return f"<p>Not shown: {' and '.join(parts)}.</p>" if parts else ""


def style_pandas(before: pd.DataFrame, after: pd.DataFrame, owner: IntArray) -> Any:
    """A styler of pandas."""
    shown = after
    if not after.index.is_unique:
        labels = [after.index.get_level_values(name) for name in LABELS]
        index = pd.MultiIndex.from_arrays([owner, *labels], names=["position", *LABELS])
        shown = after.set_axis(index)
    marks = np.where(changed_cells(before, after).T, MARK, "")
    styles = pd.DataFrame(marks, index=shown.index, columns=shown.columns)
    try:
        styler = shown.style
    except (ImportError, AttributeError) as error:
        raise missing_extra("Jinja2", "report", "A styled pandas frame") from error
    styler = styler.apply(lambda _: styles, axis=None).format(escape="html")
    return styler.format_index(escape="html", axis=0).format_index(escape="html", axis=1)


def style_polars(before: pd.DataFrame, after: pd.DataFrame, adapter: FrameAdapter) -> Any:
    """A great table, which is what polars styles with; the arguments are in pandas."""
    try:
        from great_tables import GT, loc, style
    except ImportError as error:
        raise missing_extra(
            "great-tables",
            "style",
            "A styled polars frame",
            instead="Or style the result in pandas: result.to_pandas().style().",
        ) from error
    names = [_free_name(name, after.columns) for name in LABELS]
    labelled = after.set_axis(after.index.set_names(names))
    table = GT(adapter.table_to_native(labelled))
    mark = [style.text(weight="bold", color=INK), style.fill(FILL)]
    for name, changed in zip(after.columns, changed_cells(before, after), strict=True):
        if changed.any():
            rows = np.flatnonzero(changed).tolist()
            table = table.tab_style(mark, loc.body(columns=name, rows=rows))
    return table


def _free_name(name: str, taken: Collection[Hashable]) -> str:
    """The name of a column of labels, unlike those of the data."""
    while name in taken:
        name += "_"
    return name
