"""What a result is made of: rows of answers, what they change, and what became of everybody.

Answers come from a search, or are read from the frame of any other method.

Always true: a row whose cells are all missing is no answer; answers are matched to people by
position; a row goes back in the dtypes of the people wherever these hold it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import BoolArray, IntArray
from ..predictors.decision import Decision, ScoredRows
from ..tables.columns import assemble, changed_cells, is_missing
from ..tables.dtypes import cast_like
from ..tables.frames import read_frame
from ..tables.schema import EncodedRows, check_same_order, gower_gaps

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
            "nearest_sparsity": pd.array(nearest["sparsity"], dtype="Int64"),
            "nearest_gower": nearest["gower"],
        }
    )


def _strings(texts: np.ndarray) -> pd.Series[Any]:
    """A column of strings as objects; pandas 3 would choose another dtype."""
    return pd.Series(texts, dtype=object)


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
