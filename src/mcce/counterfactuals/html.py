"""A result as an HTML table, for notebooks: people and their answers, with changed cells marked.

Always true: everything from data is escaped and of bounded length, and so is the whole table. Marks
are bold, and can be read in light and dark notebooks.
"""

from __future__ import annotations

from collections.abc import Hashable
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import BoolArray, IntArray
from ..tables.columns import differ, is_missing, plain
from ..tables.text import plain as plain_text
from .styling import MARK

MAX_ROWS, MAX_COLUMNS = 30, 15
MISSING = "\N{EN DASH}"


def write_table(title: str, factuals: pd.DataFrame, frame: pd.DataFrame, owner: IntArray) -> str:
    """The table."""
    shown = owner[: MAX_ROWS - 1]
    # A row for each person and one for each answer, as many as fit.
    n_rows = np.arange(1, shown.size + 1) + np.unique(shown, return_inverse=True)[1] + 1
    places = np.flatnonzero(n_rows <= MAX_ROWS)
    before, after = factuals.iloc[owner[places]], frame.iloc[places]
    changed: dict[Hashable, BoolArray] = {
        name: differ(before[name].reset_index(drop=True), after[name].reset_index(drop=True))
        for name in frame.columns
    }
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
    cells = zip(plain(column), is_missing(column), strict=True)
    return [MISSING if none else _text(cell) for cell, none in cells]


def _text(value: object) -> str:
    return escape(plain_text(value))


def _left_out(n_rows: int, n_columns: int) -> str:
    """How much is not shown, if anything."""
    parts = [
        f"{n} more {thing}{'s' if n > 1 else ''}"
        for n, thing in ((n_rows, "counterfactual"), (n_columns, "column"))
        if n
    ]
    return f"<p>Not shown: {' and '.join(parts)}.</p>" if parts else ""
