"""Ranges: which other values of the changed features would do as well as a counterfactual's.

Beyond the paper. A number gets the widest interval of training values around its own, the other
changes as they are, in which rows stay valid, plausible and allowed; a category the other levels
that would do. Numbers that may move together get a box. The table has one row per counterfactual
and changed feature, with cells of the columns themselves.

Always true: the predictor scores at most ``ROWS_PER_FEATURE`` rows for each changed feature; an end
of a range holds by a fresh call; nothing lies beyond the training values; a counterfactual's ranges
do not depend on the others, their order or the size of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals.result import Counterfactuals, label_answers
from ..fitted import Fitted
from ..kernels import BoolArray, Int32Array, IntArray, times_seen_before
from ..plausibility.model import PlausibilityModel
from ..tables.frames import FrameT
from ..tables.schema import OWN
from .answers import EncodedAnswers, Requirements, Trials, in_chunks, warn_of_refused
from .boxes import MAX_CORNERS, N_FREE_POINTS, Boxes, find_boxes
from .moves import Held, Moves, find_reach

# Rows that the predictor scores for each changed feature, one of them the counterfactual itself;
# and how many of these are for the box, if there is one.
ROWS_PER_FEATURE, ROWS_FOR_BOX = 20, 6
# Values around a number that are checked before the predictor is called.
N_FREE = 64
# For categories with more levels, only this many of the most frequent are tried.
MAX_TRIED_LEVELS = 100


@dataclass(frozen=True, eq=False)
class RangeSettings:
    """How ranges are found."""

    fitted: Fitted
    requirements: Requirements
    seed: int


def find_ranges(
    settings: RangeSettings, result: Counterfactuals[FrameT], *, verbose: bool
) -> FrameT:
    """The ranges of the changed features of a result."""
    schema = settings.fitted.schema
    answers = EncodedAnswers.read(schema, result, settings.requirements.computed)
    parts, valid = list[pd.DataFrame](), list[BoolArray]()
    for first, chunk in in_chunks(answers, rows_at_once(answers), "ranges", verbose):
        ranges = ranges_of(settings, Trials(settings.requirements, chunk))
        parts.append(tabulate(ranges, settings.fitted, first))
        valid.append(ranges.valid)
    warn_of_refused(np.concatenate(valid), "have no ranges")
    return label_answers(result, pd.concat(parts, ignore_index=True))


def ranges_of(settings: RangeSettings, trials: Trials) -> FoundRanges:
    """The ranges of a chunk of counterfactuals."""
    moves = Moves.of(trials.answers)
    levels = _find_levels(trials.answers, trials, settings.fitted.value_counts)
    reach, n_tried = reach_of(moves, trials)
    boxes = find_boxes(moves, trials, reach, settings.seed, ROWS_FOR_BOX)
    return FoundRanges(moves, trials.valid, reach, n_tried + levels.n_tried, levels, boxes)


def rows_at_once(answers: EncodedAnswers) -> IntArray:
    """How many variants of each counterfactual are made at the same time, at most."""
    schema = answers.rows.schema
    features = [schema.features[column] for column in schema.mutable]
    n_levels = [min(f.n_codes, MAX_TRIED_LEVELS) * (f.kind == "categorical") for f in features]
    return np.maximum(np.array(n_levels) @ answers.acted, MAX_CORNERS + N_FREE_POINTS)


def reach_of(moves: Moves, trials: Trials) -> tuple[IntArray, IntArray]:
    """How far each number may move alone, and how many rows of each were scored."""
    movable = moves.movable & trials.valid
    place, answer = np.nonzero(movable)
    farthest = moves.farthest[:, place, answer]

    def try_steps(item: IntArray, step: IntArray, *, score: bool = True) -> Held:
        steps = np.zeros((len(movable), item.size), dtype=np.int64)
        steps[place[item], np.arange(item.size)] = step
        return trials.try_variants(answer[item], moves.codes(answer[item], steps), score=score)

    farthest, _ = find_reach(farthest, np.full(place.size, N_FREE), partial(try_steps, score=False))
    boxed = movable.sum(axis=0)[answer] > 1
    held, used = find_reach(farthest, ROWS_PER_FEATURE - 1 - ROWS_FOR_BOX * boxed, try_steps)
    reach, n_tried = np.zeros((2, *movable.shape), np.int64), np.zeros(movable.shape, np.int64)
    reach[:, place, answer], n_tried[place, answer] = held, used
    return reach, n_tried


def _find_levels(
    answers: EncodedAnswers, trials: Trials, counts: Sequence[IntArray | Int32Array] | None
) -> OtherLevels:
    """The other levels that changed categories could have, the most frequent first."""
    schema = answers.rows.schema
    listed = [np.zeros((3, 0), dtype=np.int64)]
    for place, column in enumerate(schema.mutable):
        feature = schema.features[column]
        if feature.kind == "numeric":
            continue
        levels = np.arange(len(feature.known))
        if counts is not None:
            levels = levels[np.argsort(-counts[place][levels], kind="stable")]
        answer = np.flatnonzero(answers.acted[place] & trials.valid)[:, None]
        of_each = np.broadcast_arrays(place, answer, levels[:MAX_TRIED_LEVELS])
        triples = np.stack(of_each).reshape(3, -1)
        listed.append(triples[:, triples[2] != answers.rows.codes[column, triples[1]]])
    place, answer, level = np.concatenate(listed, axis=1)
    codes = answers.codes[:, answer]
    own = answers.factuals.codes[schema.mutable[place], answers.owner[answer]]
    codes[place, np.arange(place.size)] = np.where(level == own, OWN, len(answers) + level)
    kept = np.flatnonzero(trials.try_variants(answer, codes, score=False)[0])
    kept = kept[times_seen_before((place * len(answers) + answer)[kept]) < ROWS_PER_FEATURE - 1]
    place, answer, level = place[kept], answer[kept], level[kept]
    held, scored = trials.try_variants(answer, codes[:, kept])
    n_tried = np.zeros(answers.acted.shape, dtype=np.int64)
    np.add.at(n_tried, (place[scored], answer[scored]), 1)
    return OtherLevels(place[held], answer[held], level[held], n_tried)


@dataclass(frozen=True, eq=False)
class OtherLevels:
    """Other levels that changed categories could have."""

    place: IntArray
    answer: IntArray
    level: IntArray
    n_tried: IntArray

    def take(self, mask: BoolArray) -> OtherLevels:
        """The levels where a mask is true."""
        return OtherLevels(self.place[mask], self.answer[mask], self.level[mask], self.n_tried)


@dataclass(frozen=True, eq=False)
class FoundRanges:
    """What was found for a chunk of counterfactuals."""

    moves: Moves
    valid: BoolArray
    reach: IntArray
    n_tried: IntArray
    levels: OtherLevels
    boxes: Boxes


def tabulate(ranges: FoundRanges, fitted: Fitted, first: int) -> pd.DataFrame:
    """One row per counterfactual, numbered in ``answer``, and changed feature."""
    rows = ranges.moves.answers.rows
    given = rows.frame.columns.get_indexer(rows.given_columns)
    place_of = {int(column): place for place, column in enumerate(rows.schema.mutable)}
    ordered = [place_of[column] for column in given.tolist() if column in place_of]
    acted = ranges.moves.answers.acted
    in_boxes = _count_in_boxes(ranges, fitted.plausibility)
    # The columns are needed even if nothing is changed.
    places = [place for place in ordered if acted[place].any()] or ordered[:1]
    parts = [_tabulate_feature(ranges, place, fitted, in_boxes) for place in places]
    table = pd.concat(parts, ignore_index=True).sort_values("answer", kind="stable")
    return table.assign(answer=table["answer"] + first)


def _tabulate_feature(
    ranges: FoundRanges, place: int, fitted: Fitted, in_boxes: pd.DataFrame
) -> pd.DataFrame:
    """The rows of one feature."""
    moves, answers = ranges.moves, ranges.moves.answers
    feature = fitted.schema.features[fitted.schema.mutable[place]]
    answer = np.flatnonzero(answers.acted[place])
    ranged = (moves.movable[place] & ranges.valid)[answer]
    reach = ranges.reach[:, place, answer]
    low_open, high_open = (reach == moves.farthest[:, place, answer]) & ranged
    table = pd.DataFrame(
        {
            "answer": answer,
            "feature": pd.Series([feature.name] * answer.size, dtype=object),
            "kind": pd.Series([feature.kind] * answer.size, dtype=object),
            "value": _cells(moves, place, answer, np.zeros(answer.size, dtype=np.int64)),
            "low": _cells(moves, place, answer, -reach[0], where=ranged),
            "high": _cells(moves, place, answer, reach[1], where=ranged),
            "low_open": low_open,
            "high_open": high_open,
            "others": _other_levels(ranges, place, answer),
            "n_training": _count_training(ranges, place, answer, fitted),
            "n_tried": ranges.n_tried[place, answer],
        }
    )
    return table.assign(**_box_columns(ranges, place, answer, in_boxes))


def _cells(
    moves: Moves, place: int, answer: IntArray, steps: IntArray, where: BoolArray | None = None
) -> pd.Series[Any]:
    """The values that steps from counterfactuals lead to; None where there are none."""
    trained = np.where(steps < 0, *moves.start[:, place, answer]) + steps
    codes = np.where(steps == 0, answer, len(moves.answers) + trained)
    cells = moves.answers.tables[place].iloc[codes].astype(object).to_numpy(dtype=object, copy=True)
    if where is not None:
        cells[~where] = None
    return pd.Series(cells, dtype=object)


def _other_levels(ranges: FoundRanges, place: int, answer: IntArray) -> pd.Series[Any]:
    """The other levels of counterfactuals, a list each."""
    levels, answers = ranges.levels, ranges.moves.answers
    lists: dict[int, list[Any]] = {number: [] for number in answer.tolist()}
    of_place = levels.place == place
    cells = answers.tables[place].iloc[len(answers) + levels.level[of_place]].astype(object)
    for number, cell in zip(levels.answer[of_place].tolist(), cells, strict=True):
        lists[number].append(cell)
    return pd.Series(list(lists.values()), dtype=object)


def _count_training(
    ranges: FoundRanges, place: int, answer: IntArray, fitted: Fitted
) -> pd.Series[Any]:
    """How many training rows have a value of the range, or one of the levels."""
    if fitted.value_counts is None:
        return pd.Series([pd.NA] * answer.size, dtype="Int64")
    counts, moves, levels = fitted.value_counts[place], ranges.moves, ranges.levels
    exact = moves.answers.rows.codes[fitted.schema.mutable[place], answer]
    total = np.where(exact >= 0, counts[exact], 0)
    of_place = levels.place == place
    others = np.zeros(ranges.valid.size, dtype=np.int64)
    np.add.at(others, levels.answer[of_place], counts[levels.level[of_place]])
    total += others[answer]
    ends = moves.start[:, place, answer] + ranges.reach[:, place, answer] * np.array([[-1], [1]])
    n_before = np.concatenate([[0], np.cumsum(counts)])
    movable = moves.movable[place, answer]
    total[movable] = (n_before[ends[1] + 1] - n_before[ends[0]])[movable]
    return pd.Series(total, dtype="Int64").where(ranges.valid[answer])


def _box_columns(
    ranges: FoundRanges, place: int, answer: IntArray, counts: pd.DataFrame
) -> dict[str, Any]:
    """The columns of the table that describe boxes."""
    boxes, moves = ranges.boxes, ranges.moves
    boxed = moves.movable[place, answer] & np.isin(answer, boxes.answer)
    sides = np.zeros((2, answer.size), dtype=np.int64)
    sides[:, boxed] = boxes.sides[:, place, np.searchsorted(boxes.answer, answer[boxed])]
    of_each = counts.reindex(answer).reset_index(drop=True)
    return {
        "box_low": _cells(moves, place, answer, -sides[0], where=boxed),
        "box_high": _cells(moves, place, answer, sides[1], where=boxed),
        **{str(name): column.where(boxed) for name, column in of_each.items()},
    }


def _count_in_boxes(ranges: FoundRanges, model: PlausibilityModel | None) -> pd.DataFrame:
    """Points that were tried in each box and accepted training rows in it, by counterfactual."""
    boxes = ranges.boxes
    counts = {"box_tried": boxes.n_tried, "box_held": boxes.n_held}
    table = pd.DataFrame(counts, index=boxes.answer, dtype="Int64")
    n_accepted = pd.array([pd.NA] * boxes.answer.size, dtype="Int64")
    if model is not None:
        n_accepted = pd.array(_count_accepted(ranges, model), dtype="Int64")
    return table.assign(box_share=boxes.share, box_accepted=n_accepted)


def _count_accepted(ranges: FoundRanges, model: PlausibilityModel) -> IntArray:
    """How many accepted training rows are inside each box, whatever their other features."""
    boxes, moves = ranges.boxes, ranges.moves
    codes = model.codes_[moves.answers.rows.schema.mutable]
    counts = np.zeros(boxes.answer.size, dtype=np.int64)
    for number, answer in enumerate(boxes.answer.tolist()):
        places = np.flatnonzero(moves.movable[:, answer])
        low = moves.start[0, places, answer] - boxes.sides[0, places, number]
        high = moves.start[1, places, answer] + boxes.sides[1, places, number]
        inside = (low[:, None] <= codes[places]) & (codes[places] <= high[:, None])
        counts[number] = inside.all(axis=0).sum()
    return counts
