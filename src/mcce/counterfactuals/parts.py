"""What a result is made of: rows of answers, what became of everybody, and both as plain records.

Answers come from a search, or are read from the frame of any other method.

Always true: a row whose cells are all missing is no answer; answers are matched to people by
position; a row goes back in the dtypes of the people wherever these hold it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ..errors import SchemaError, shorten
from ..kernels import BoolArray, FloatArray, IntArray
from ..predictors.decision import Decision, ScoredRows
from ..tables.columns import assemble, changed_cells, is_missing, plain_cells
from ..tables.dtypes import cast_like
from ..tables.frames import read_frame
from ..tables.schema import EncodedRows, check_same_order, gower_gaps

Record = dict[str, Any]
ANSWERED, ALREADY, UNANSWERED = "answered", "already desired", "no answer"
ReasonKind: TypeAlias = Literal[
    "stopped",
    "no_desired",
    "proven",
    "refused",
    "implausible",
    "too_many_changes",
    "too_far",
    "ruled_out",
    "withdrawn",
    "unknown",
]


class Reason(NamedTuple):
    """Why somebody has no answer; letters choose their sentence by the kind."""

    kind: ReasonKind
    text: str


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
        "sparsity": changed_cells(before.frame, after.frame).sum(axis=0),
        "gower": gaps.sum(axis=0) / len(gaps),
        "valid": scored.valid,
    }
    rank = np.arange(owner.size) - np.searchsorted(owner, owner) + 1
    return ResultRows(_as_people(after.returned, rows), owner, rank, measures)


def list_changes(
    before: pd.DataFrame,
    after: pd.DataFrame,
    consequences: Collection[Hashable],
    losses: Collection[Hashable],
) -> pd.DataFrame:
    """One row per changed cell, with the labels of its row.

    Columns of ``losses`` follow others where they become missing.
    """
    labels = after.index.to_frame(index=False)
    row, place = np.nonzero(changed_cells(before, after).T)
    cells = np.empty((2, row.size), dtype=object)
    for column in np.unique(place):
        here = place == column
        for kept, frame in zip(cells, (before, after), strict=True):
            kept[here] = frame.iloc[row[here], column].astype(object).to_numpy(dtype=object)
    names = [after.columns[column] for column in place.tolist()]
    lost = is_missing(pd.Series(cells[1], dtype=object)).tolist()
    follow = [
        name in consequences or (gone and name in losses)
        for name, gone in zip(names, lost, strict=True)
    ]
    kinds = np.where(follow, "consequence", "action")
    listed = {
        "feature": pd.Series(names, dtype=object),
        "before": pd.Series(cells[0], dtype=object),
        "after": pd.Series(cells[1], dtype=object),
        "kind": pd.Series(kinds, dtype=str),
    }
    return labels.iloc[row].reset_index(drop=True).join(pd.DataFrame(listed))


def _check_owner(owner: Any, frame: pd.DataFrame, rows: EncodedRows) -> IntArray:
    """The position of each row's person."""
    if owner is None:
        if len(frame) != len(rows):
            raise SchemaError(
                f"There are {len(rows)} people but {len(frame)} rows of answers. Pass one row per "
                "person, all missing where there is no answer, or the position of each row's "
                "person as owner."
            )
        check_same_order(rows.index, frame.index)
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


def make_people(
    rows: EncodedRows,
    scored: ScoredRows,
    answers: ResultRows,
    misses: ResultRows,
    reasons: Mapping[int, Reason],
) -> pd.DataFrame:
    """The table ``people`` of a result; see :class:`~mcce.Counterfactuals`."""
    n_factuals = len(rows)
    n_found = np.bincount(answers.owner, minlength=n_factuals)
    status = np.array([UNANSWERED, ANSWERED, ALREADY], dtype=object)
    reason, reason_kind = np.full((2, n_factuals), "", dtype=object)
    for person, why in reasons.items():
        reason[person], reason_kind[person] = why.text, why.kind
    nearest = {name: np.full(n_factuals, np.nan) for name in ("score", "sparsity", "gower")}
    for name, values in nearest.items():
        values[misses.owner] = misses.measures[name]
    return pd.DataFrame(
        {
            "status": _strings(status[np.where(scored.valid, 2, n_found > 0)]),
            "reason": _strings(reason),
            "reason_kind": _strings(reason_kind),
            "score": scored.score,
            "n_counterfactuals": n_found,
            "unseen_immutable": _strings(_unseen_immutable(rows)),
            "nearest_score": nearest["score"],
            "nearest_sparsity": _whole_numbers(nearest["sparsity"]),
            "nearest_gower": nearest["gower"],
        }
    )


def _strings(texts: np.ndarray) -> pd.Series[Any]:
    """A column of strings as objects; pandas 3 would choose another dtype."""
    return pd.Series(texts, dtype=object)


def _whole_numbers(values: FloatArray) -> Any:
    """Whole numbers, missing where NaN."""
    unknown = np.isnan(values)
    return pd.arrays.IntegerArray(np.where(unknown, 1.0, values).astype(np.int64), unknown)


def summarize(
    people: pd.DataFrame, measures: pd.DataFrame, n_evaluated: int, timings: Mapping[str, float]
) -> pd.DataFrame:
    """One row: how many people have which status, means of their best answers, and the cost."""
    status = people["status"]
    first = measures[measures.index.get_level_values("rank") == 1]
    n_to_explain = len(people) - int((status == ALREADY).sum())
    return pd.DataFrame(
        {
            "n_factuals": [len(people)],
            "n_answered": [int((status == ANSWERED).sum())],
            "n_already_desired": [int((status == ALREADY).sum())],
            "n_no_answer": [int((status == UNANSWERED).sum())],
            "sparsity": [first["sparsity"].mean()],
            "gower": [first["gower"].mean()],
            "l1": [first["l1"].mean()],
            "evaluated_per_person": [n_evaluated / n_to_explain if n_to_explain else 0.0],
            "seconds": [timings.get("total", np.nan)],
        }
    )


def _unseen_immutable(rows: EncodedRows) -> np.ndarray:
    """Names of the immutable features with a value that training never held."""
    immutable = rows.schema.immutable
    names = [str(rows.schema.names[position]) for position in immutable]
    unseen_names = np.full(len(rows), "", dtype=object)
    for person in np.flatnonzero(rows.unseen[immutable].any(axis=0)):
        unseen = rows.unseen[immutable, person]
        unseen_names[person] = ", ".join(n for n, flag in zip(names, unseen, strict=True) if flag)
    return unseen_names


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
