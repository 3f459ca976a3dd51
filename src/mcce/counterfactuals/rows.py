"""Rows of a result, and how they are read from the answers of any method.

Always true: a row whose cells are all missing is no answer; answers are matched to people by
position; a row goes back in the dtypes of the people wherever these hold it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import BoolArray, IntArray
from ..predictors.decision import Decision
from ..tables.columns import assemble, differ, is_missing
from ..tables.comparing import changed_cells, check_same_order, gower_gaps
from ..tables.dtypes import cast_like
from ..tables.frames import read_frame
from ..tables.schema import EncodedRows


@dataclass(frozen=True, eq=False)
class ResultRows:
    """Rows of a result."""

    frame: pd.DataFrame
    owner: IntArray
    rank: IntArray
    measures: Mapping[str, np.ndarray]

    def take(self, places: IntArray | BoolArray) -> ResultRows:
        """The rows at the given places."""
        measures = {name: values[places] for name, values in self.measures.items()}
        return ResultRows(self.frame.iloc[places], self.owner[places], self.rank[places], measures)


def read_answers(data: Any, rows: EncodedRows, decision: Decision, owner: Any) -> ResultRows:
    """The answers of a method for people, by person and rank."""
    names = rows.schema.names if isinstance(data, np.ndarray) else None
    frame, _ = read_frame(data, names)
    owner = _check_owner(owner, frame, rows)
    given = ~np.all([is_missing(column) for _, column in frame.items()], axis=0)
    places = np.flatnonzero(given)
    places = places[np.argsort(owner[places], kind="stable")]
    owner = owner[places]
    before, after = rows.take(owner), rows.schema.encode(frame.iloc[places])
    gaps, scored = gower_gaps(before, after), decision.score(after.frame)
    measures = {
        "score": scored.score,
        "sparsity": changed_cells(before, after).sum(axis=0),
        "gower": gaps.sum(axis=0) / len(gaps),
        "valid": scored.valid,
    }
    rank = np.arange(owner.size) - np.searchsorted(owner, owner) + 1
    return ResultRows(_as_people(after.frame, rows), owner, rank, measures)


def list_changes(
    before: pd.DataFrame, after: pd.DataFrame, consequences: Collection[Hashable]
) -> pd.DataFrame:
    """One row per changed cell, with the labels of its row."""
    labels = after.index.to_frame(index=False)
    before, after = before.reset_index(drop=True), after.reset_index(drop=True)
    row, place = np.nonzero(changed_in(before, after))
    cells = np.empty((2, row.size), dtype=object)
    for column in np.unique(place):
        here = place == column
        for kept, frame in zip(cells, (before, after), strict=True):
            kept[here] = frame.iloc[row[here], column].astype(object).to_numpy(dtype=object)
    names = [after.columns[column] for column in place.tolist()]
    kinds = ["consequence" if name in consequences else "action" for name in names]
    listed = {
        "feature": pd.Series(names, dtype=object),
        "before": pd.Series(cells[0], dtype=object),
        "after": pd.Series(cells[1], dtype=object),
        "kind": pd.Series(kinds, dtype=str),
    }
    return labels.iloc[row].reset_index(drop=True).join(pd.DataFrame(listed))


def changed_in(before: pd.DataFrame, after: pd.DataFrame) -> BoolArray:
    """Which cells differ, (n_rows, n_columns); both frames are numbered alike."""
    columns = zip(before.items(), after.items(), strict=True)
    changed = [differ(old, new) for (_, old), (_, new) in columns]
    return np.array(changed, dtype=bool).reshape(len(changed), len(after)).T


def _check_owner(owner: Any, frame: pd.DataFrame, rows: EncodedRows) -> IntArray:
    """The position of each row's person."""
    if owner is None:
        if len(frame) != len(rows):
            raise SchemaError(
                f"There are {len(rows)} people but {len(frame)} rows of answers. Pass one row per "
                "person, all missing where there is no answer, or the position of each row's "
                "person as owner."
            )
        check_same_order(rows.labels, frame.index)
        return np.arange(len(frame))
    positions = np.asarray(owner)
    if positions.shape != (len(frame),) or positions.dtype.kind not in "iu":
        raise SchemaError(
            f"owner must be one whole number per row of answers, shape ({len(frame)},), got shape "
            f"{positions.shape} of dtype {positions.dtype}."
        )
    if positions.size and not (positions.min() >= 0 and positions.max() < len(rows)):
        raise SchemaError(
            f"owner must hold positions of people from 0 to {len(rows) - 1}, got "
            f"{int(positions.min())} to {int(positions.max())}."
        )
    return positions.astype(np.int64)


def _as_people(frame: pd.DataFrame, rows: EncodedRows) -> pd.DataFrame:
    """Answers in the columns and, where these hold them, the dtypes of the people."""
    cells = []
    for (_, column), dtype in zip(frame.items(), rows.returned.dtypes, strict=True):
        try:
            cells.append(cast_like(column, pd.Series([], dtype=dtype)))
        except SchemaError:
            cells.append(column)
    named = assemble([c.reset_index(drop=True) for c in cells], rows.frame.columns)
    return named[list(rows.given_columns)]
