"""The table of ranges: what was found, in the words of the result.

Takes steps and codes; gives one row per counterfactual and changed feature, with cells of the
columns themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals import Counterfactuals, FrameT, native_table
from ..fitted import Fitted
from ..kernels import BoolArray, IntArray
from ..plausibility.model import PlausibilityModel
from .boxes import Boxes
from .moves import Moves


@dataclass(frozen=True, eq=False)
class OtherLevels:
    """Other levels of changed categories that would do."""

    row: IntArray
    answer: IntArray
    level: IntArray
    n_tried: IntArray


@dataclass(frozen=True, eq=False)
class FoundRanges:
    """What was found for some counterfactuals."""

    moves: Moves
    valid: BoolArray
    reach: IntArray
    n_tried: IntArray
    levels: OtherLevels
    boxes: Boxes


def tabulate(found: FoundRanges, fitted: Fitted, first: int) -> pd.DataFrame:
    """One row per counterfactual, numbered in ``answer``, and changed feature."""
    rows = found.moves.answers.rows
    given = rows.frame.columns.get_indexer(rows.given_columns)
    place = {int(position): row for row, position in enumerate(rows.schema.mutable)}
    ordered = [place[at] for at in given.tolist() if at in place]
    acted = found.moves.answers.acted
    in_boxes = _count_in_boxes(found, fitted.plausibility)
    # The columns are needed even if nothing is changed.
    some = [row for row in ordered if acted[row].any()] or ordered[:1]
    parts = [_tabulate_feature(found, row, fitted, in_boxes) for row in some]
    table = pd.concat(parts, ignore_index=True).sort_values("answer", kind="stable")
    return table.assign(answer=table["answer"] + first)


def join_tables(tables: Sequence[pd.DataFrame], result: Counterfactuals[FrameT]) -> FrameT:
    """The ranges of all counterfactuals of a result, with its labels."""
    table = pd.concat(tables, ignore_index=True)
    labels = result.to_pandas().frame.index.to_frame(index=False)
    labels = labels.iloc[table["answer"].to_numpy()].reset_index(drop=True)
    return native_table(result, labels.join(table.drop(columns="answer")))


def _tabulate_feature(
    found: FoundRanges, row: int, fitted: Fitted, in_boxes: pd.DataFrame
) -> pd.DataFrame:
    """The rows of one feature."""
    moves, answers = found.moves, found.moves.answers
    feature = fitted.schema.features[fitted.schema.mutable[row]]
    at = np.flatnonzero(answers.acted[row])
    ranged = (moves.movable[row] & found.valid)[at]
    reach = found.reach[:, row, at]
    low_open, high_open = (reach == moves.farthest[:, row, at]) & ranged
    table = pd.DataFrame(
        {
            "answer": at,
            "feature": pd.Series([feature.name] * at.size, dtype=object),
            "kind": pd.Series([feature.kind] * at.size, dtype=object),
            "value": _cells(moves, row, at, np.zeros(at.size, dtype=np.int64)),
            "low": _cells(moves, row, at, -reach[0], where=ranged),
            "high": _cells(moves, row, at, reach[1], where=ranged),
            "low_open": low_open,
            "high_open": high_open,
            "others": _other_levels(found, row, at),
            "n_training": _count_training(found, row, at, fitted),
            "n_tried": found.n_tried[row, at],
        }
    )
    return table.assign(**_box_columns(found, row, at, in_boxes))


def _cells(
    moves: Moves, row: int, at: IntArray, steps: IntArray, where: BoolArray | None = None
) -> pd.Series[Any]:
    """The values that steps from some counterfactuals lead to; None where there are none."""
    trained = np.where(steps < 0, *moves.start[:, row, at]) + steps
    places = np.where(steps == 0, at, len(moves.answers) + trained)
    cells = moves.answers.tables[row].iloc[places].astype(object).to_numpy(dtype=object, copy=True)
    if where is not None:
        cells[~where] = None
    return pd.Series(cells, dtype=object)


def _other_levels(found: FoundRanges, row: int, at: IntArray) -> pd.Series[Any]:
    """The other levels of some counterfactuals, a list each."""
    levels, answers = found.levels, found.moves.answers
    lists: dict[int, list[Any]] = {int(answer): [] for answer in at}
    here = levels.row == row
    cells = answers.tables[row].iloc[len(answers) + levels.level[here]].astype(object)
    for answer, cell in zip(levels.answer[here].tolist(), cells, strict=True):
        lists[answer].append(cell)
    return pd.Series(list(lists.values()), dtype=object)


def _count_training(found: FoundRanges, row: int, at: IntArray, fitted: Fitted) -> pd.Series[Any]:
    """How many training rows have a value of the range, or one of the levels."""
    if fitted.value_counts is None:
        return pd.Series([pd.NA] * at.size, dtype="Int64")
    counts, moves = fitted.value_counts[row], found.moves
    exact = moves.answers.rows.exact[fitted.schema.mutable[row], at]
    total = np.where(exact >= 0, counts[exact], 0)
    of = found.levels.row == row
    others = np.zeros(found.valid.size, dtype=np.int64)
    np.add.at(others, found.levels.answer[of], counts[found.levels.level[of]])
    total += others[at]
    first, last = moves.start[:, row, at] + found.reach[:, row, at] * np.array([[-1], [1]])
    before = np.concatenate([[0], np.cumsum(counts)])
    moved = moves.movable[row, at]
    total[moved] = (before[last + 1] - before[first])[moved]
    return pd.Series(total, dtype="Int64").where(found.valid[at])


def _box_columns(
    found: FoundRanges, row: int, at: IntArray, counts: pd.DataFrame
) -> dict[str, Any]:
    """What the table says of boxes."""
    boxes, moves = found.boxes, found.moves
    boxed = moves.movable[row, at] & np.isin(at, boxes.answer)
    sides = np.zeros((2, at.size), dtype=np.int64)
    sides[:, boxed] = boxes.sides[:, row, np.searchsorted(boxes.answer, at[boxed])]
    of_each = counts.reindex(at).reset_index(drop=True)
    return {
        "box_low": _cells(moves, row, at, -sides[0], where=boxed),
        "box_high": _cells(moves, row, at, sides[1], where=boxed),
        **{str(name): column.where(boxed) for name, column in of_each.items()},
    }


def _count_in_boxes(found: FoundRanges, model: PlausibilityModel | None) -> pd.DataFrame:
    """Points that were tried in each box and accepted training rows in it, by counterfactual."""
    boxes = found.boxes
    counts = {"box_tried": boxes.n_tried, "box_held": boxes.n_held}
    table = pd.DataFrame(counts, index=boxes.answer, dtype="Int64")
    n_accepted = pd.array([pd.NA] * boxes.answer.size, dtype="Int64")
    if model is not None:
        n_accepted = pd.array(_count_accepted(found, model), dtype="Int64")
    return table.assign(box_share=boxes.share, box_accepted=n_accepted)


def _count_accepted(found: FoundRanges, model: PlausibilityModel) -> IntArray:
    """How many accepted training rows are inside each box, whatever their other features."""
    boxes, moves = found.boxes, found.moves
    codes = model.codes_[moves.answers.rows.schema.mutable]
    counts = np.zeros(boxes.answer.size, dtype=np.int64)
    for number, answer in enumerate(boxes.answer.tolist()):
        rows = np.flatnonzero(moves.movable[:, answer])
        low = moves.start[0, rows, answer] - boxes.sides[0, rows, number]
        high = moves.start[1, rows, answer] + boxes.sides[1, rows, number]
        inside = (low[:, None] <= codes[rows]) & (codes[rows] <= high[:, None])
        counts[number] = inside.all(axis=0).sum()
    return counts
