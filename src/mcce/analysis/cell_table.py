"""Widened answers as tables: what each quasi-identifier may be, in words and as values.

Takes cells of codes; gives the columns of :class:`mcce.counterfactuals.AnonymousAnswers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time
from typing import Any

import numpy as np
import pandas as pd

from ..tables.columns import is_missing, plain
from ..tables.features import Feature, to_decimal
from ..tables.text import plain as plain_text
from .widening import Cell, Own

# A set of more levels is told by what is not in it, if that is shorter.
MOST_LEVELS = 3
MISSING, ANY = "missing", "any"


def describe_cell(feature: Feature, own: Own, cell: Cell) -> dict[str, Any]:
    """What the table of cells says of one.

    Examples
    --------
    >>> feature = Feature.learn(pd.Series([4, 12, 24], name="months"), kind=None, immutable=False)
    >>> describe_cell(feature, Own(1, 12), Cell((0, 1), loss=0.5, high=15))["text"]
    'at most 15'
    """
    row: dict[str, Any] = {"kind": "range", "low": None, "high": None, "levels": None}
    row |= {"missing": False, "loss": cell.loss}
    if cell.is_whole:
        return row | {"kind": "any", "missing": feature.has_missing, "text": ANY}
    if not feature.ordered:
        return row | _describe_set(feature, own, cell)
    if own.value is None:
        return row | {"kind": "value", "missing": True, "text": MISSING}
    if cell.loss == 0:
        text = _text(own.value)
        return row | {"kind": "value", "low": own.value, "high": own.value, "text": text}
    if feature.kind == "categorical":
        row["levels"] = plain(feature.known.iloc[cell.codes]).tolist()
    return row | {"low": cell.low, "high": cell.high, "text": _range_text(cell)}


def _describe_set(feature: Feature, own: Own, cell: Cell) -> dict[str, Any]:
    levels = [own.value] if own.code < 0 and own.value is not None else []
    missing = own.value is None or (feature.has_missing and feature.n_codes - 1 in cell.levels)
    n_known = len(feature.known)
    known = np.array([code for code in cell.levels if code < n_known], dtype=np.int64)
    levels += plain(feature.known.iloc[known]).tolist()
    single = len(levels) + missing == 1
    outside = np.setdiff1d(np.arange(n_known), known)
    texts = [*map(_text, levels), *([MISSING] if missing else [])]
    others = [_text(level) for level in plain(feature.known.iloc[outside])]
    others += [MISSING] if feature.has_missing and not missing else []
    if len(texts) > MOST_LEVELS and len(others) < len(texts):
        text = f"{ANY} but {_listed(others)}"
    else:
        text = _listed(texts)
    kind = "value" if single else "levels"
    return {"kind": kind, "levels": levels, "missing": bool(missing), "text": text}


def _range_text(cell: Cell) -> str:
    if cell.low is None:
        return f"at most {_text(cell.high)}"
    if cell.high is None:
        return f"at least {_text(cell.low)}"
    return f"{_text(cell.low)} to {_text(cell.high)}"


def _text(value: Any) -> str:
    """A cell as it is read: no needless decimals, and no midnight."""
    if isinstance(value, (float, np.floating)):
        return f"{to_decimal(value):f}"
    if isinstance(value, pd.Timestamp) and value.time() == time():
        return f"{value:%Y-%m-%d}"
    return plain_text(value)


def _listed(texts: Sequence[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else last


def own_values(feature: Feature, column: pd.Series[Any], exact: np.ndarray) -> list[Own]:
    """The values of a column of answers."""
    missing = is_missing(column)
    cells = [None if none else column.iloc[at] for at, none in enumerate(missing.tolist())]
    return [Own(int(code), cell) for code, cell in zip(exact, cells, strict=True)]
