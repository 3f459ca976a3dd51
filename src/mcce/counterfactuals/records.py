"""Results as plain records: in types that JSON has, one record per person.

Missing cells and undefined numbers are None, dates and durations are in ISO 8601.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from datetime import date, time, timedelta
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..errors import SchemaError, shorten
from ..kernels import IntArray
from ..tables.columns import changed_cells, plain_cells

Record: TypeAlias = dict[str, Any]


def make_records(
    *,
    factuals: pd.DataFrame,
    frame: pd.DataFrame,
    measures: pd.DataFrame,
    people: pd.DataFrame,
    changes: pd.DataFrame,
    owner: IntArray,
) -> list[Record]:
    """One record per person; the arguments are those of a result in pandas."""
    own, rows, costs = as_records(factuals), as_records(frame), as_records(measures)
    answers: list[list[Record]] = [[] for _ in own]
    ranks = frame.index.get_level_values("rank").tolist()
    for person, rank, row, cost in zip(owner.tolist(), ranks, rows, costs, strict=True):
        answers[person].append({"rank": rank, "row": row, "measures": cost, "changes": []})
    listed = [answer for theirs in answers for answer in theirs]
    # By position, since labels may repeat.
    places, _ = np.nonzero(changed_cells(factuals.iloc[owner], frame).T)
    for place, change in zip(places.tolist(), as_records(changes), strict=True):
        about = {key: value for key, value in change.items() if key not in ("factual", "rank")}
        listed[place]["changes"].append(about | {"feature": str(about["feature"])})
    return [
        {"factual": plain_value(label), **state, "person": person, "counterfactuals": theirs}
        for label, state, person, theirs in zip(
            factuals.index, as_records(people), own, answers, strict=True
        )
    ]


def plain_value(value: Any) -> Any:
    """A cell in a type that JSON has.

    Examples
    --------
    >>> plain_value(np.int64(3)), plain_value(pd.Timestamp("2024-05-01")), plain_value(pd.NA)
    (3, '2024-05-01T00:00:00', None)
    """
    if value is None or value is pd.NA or value is pd.NaT or isinstance(value, str):
        return value if isinstance(value, str) else None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return plain_value(pd.Series([value]).iloc[0])
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _plain_float(float(value))
    if isinstance(value, (date, time, pd.Timedelta)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"P{value.days}DT{value.seconds}.{value.microseconds:06}S"
    if isinstance(value, (tuple, list)):
        return [plain_value(item) for item in value]
    return str(value)


def as_records(table: pd.DataFrame) -> list[Record]:
    """The rows of a table in types that JSON has, without its index.

    Examples
    --------
    >>> as_records(pd.DataFrame({"age": [30, 31], "home": ["own", None]}))
    [{'age': 30, 'home': 'own'}, {'age': 31, 'home': None}]
    """
    keys = _keys(list(table.columns))
    columns = [[plain_value(cell) for cell in plain_cells(column)] for _, column in table.items()]
    return [dict(zip(keys, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _plain_float(value: float) -> float | str | None:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None if math.isnan(value) else value


def _keys(names: Sequence[Hashable]) -> list[str]:
    keys = [str(name) for name in names]
    if len(set(keys)) < len(keys):
        twice = [name for name, key in zip(names, keys, strict=True) if keys.count(key) > 1]
        raise SchemaError(
            f"The columns {shorten(twice, 200)} have the same name once names are strings, as keys "
            "of JSON are. Rename all but one of them."
        )
    return keys
