"""Ranges: which other values of the changed features would do as well as a counterfactual's.

Beyond the paper. A number gets the widest interval of training values around its own, the other
changes as they are, in which rows stay valid, plausible and allowed; a category the other levels
that would do. Numbers that may move together get a box.

Always true: the predictor scores at most ``ROWS_PER_FEATURE`` rows for each changed feature; an end
of a range holds by a fresh call; nothing lies beyond the training values; a counterfactual's ranges
do not depend on the others, their order or the size of a call.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..counterfactuals import Counterfactuals, FrameT
from ..errors import McceWarning
from ..fitted import Fitted
from ..kernels import BoolArray, Codes, IntArray
from ..runtime.progress import ProgressBar
from ..tables.schema import OWN
from .answers import EncodedAnswers, chunks
from .boxes import MOST_CORNERS, N_FREE_POINTS, find_boxes
from .moves import Moves
from .range_table import FoundRanges, OtherLevels, join_tables, tabulate
from .reach import find_reach
from .requirements import Requirements, Trials

# Rows that the predictor scores for each changed feature, one of them the counterfactual itself;
# and how many of these are for the box, if there is one.
ROWS_PER_FEATURE, ROWS_FOR_BOX = 20, 6
# Values around a number that are looked at before the predictor is called.
N_FREE = 64
# Of a category with more levels than these, the most frequent ones are looked at.
MOST_LEVELS = 100


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
    answers = EncodedAnswers.read(schema, result, settings.requirements.targets)
    bar = ProgressBar(len(answers), "ranges", verbose)
    parts, n_refused = list[pd.DataFrame](), 0
    try:
        for some in chunks(rows_at_once(answers)):
            found = ranges_of(settings, Trials(settings.requirements, answers.of(some)))
            parts.append(tabulate(found, settings.fitted, some.start))
            n_refused += int((~found.valid).sum())
            bar.show(some.stop)
    finally:
        bar.close()
    if n_refused:
        warnings.warn(
            f"{n_refused} of {len(answers)} counterfactuals are not valid by this explainer's "
            "predictor, and have no ranges. Either the result is that of another explainer or the "
            "predictor is unstable.",
            McceWarning,
            stacklevel=3,
        )
    return join_tables(parts, result)


def ranges_of(settings: RangeSettings, trials: Trials) -> FoundRanges:
    """The ranges of some counterfactuals."""
    moves = Moves.of(trials.answers)
    levels = _find_levels(trials.answers, trials, settings.fitted.value_counts)
    reach, n_tried = _find_reach(moves, trials)
    boxes = find_boxes(moves, trials, reach, settings.seed, ROWS_FOR_BOX)
    return FoundRanges(moves, trials.valid, reach, n_tried + levels.n_tried, levels, boxes)


def rows_at_once(answers: EncodedAnswers) -> IntArray:
    """How many variants of each counterfactual are made at the same time, at most."""
    schema = answers.rows.schema
    features = [schema.features[position] for position in schema.mutable]
    n_levels = [min(f.n_codes, MOST_LEVELS) * (f.kind == "categorical") for f in features]
    return np.maximum(np.array(n_levels) @ answers.acted, MOST_CORNERS + N_FREE_POINTS)


def _find_reach(moves: Moves, trials: Trials) -> tuple[IntArray, IntArray]:
    """How far each number may move alone, and how many rows of each were scored."""
    movable = moves.movable & trials.valid
    row, answer = np.nonzero(movable)
    farthest = moves.farthest[:, row, answer]

    def codes(item: IntArray, step: IntArray) -> tuple[IntArray, Codes]:
        steps = np.zeros((len(movable), item.size), dtype=np.int64)
        steps[row[item], np.arange(item.size)] = step
        return answer[item], moves.codes(answer[item], steps)

    def allowed(item: IntArray, step: IntArray) -> tuple[BoolArray, BoolArray]:
        held = trials.allowed(*codes(item, step))
        return held, np.ones_like(held)

    def hold(item: IntArray, step: IntArray) -> tuple[BoolArray, BoolArray]:
        return trials.hold(*codes(item, step))

    farthest, _ = find_reach(farthest, np.full(row.size, N_FREE), allowed)
    boxed = movable.sum(axis=0)[answer] > 1
    found, used = find_reach(farthest, ROWS_PER_FEATURE - 1 - ROWS_FOR_BOX * boxed, hold)
    reach, n_tried = np.zeros((2, *movable.shape), np.int64), np.zeros(movable.shape, np.int64)
    reach[:, row, answer], n_tried[row, answer] = found, used
    return reach, n_tried


def _find_levels(
    answers: EncodedAnswers, trials: Trials, counts: Sequence[IntArray | Codes] | None
) -> OtherLevels:
    """The other levels of changed categories that would do, the most frequent first."""
    schema = answers.rows.schema
    listed = [np.zeros((3, 0), dtype=np.int64)]
    for row, position in enumerate(schema.mutable):
        feature = schema.features[position]
        if feature.kind == "numeric":
            continue
        levels = np.arange(len(feature.known))
        if counts is not None:
            levels = levels[np.argsort(-counts[row][levels], kind="stable")]
        levels, at = levels[:MOST_LEVELS], np.flatnonzero(answers.acted[row] & trials.valid)
        pairs = np.stack(np.broadcast_arrays(row, at[:, None], levels)).reshape(3, -1)
        listed.append(pairs[:, pairs[2] != answers.rows.exact[position, pairs[1]]])
    row, answer, level = np.concatenate(listed, axis=1)
    codes = answers.codes[:, answer]
    own = answers.factuals.exact[schema.mutable[row], answers.owner[answer]]
    codes[row, np.arange(row.size)] = np.where(level == own, OWN, len(answers) + level)
    kept = _first_of_each(row * len(answers) + answer, trials.allowed(answer, codes))
    row, answer, level = row[kept], answer[kept], level[kept]
    held, scored = trials.hold(answer, codes[:, kept])
    n_tried = np.zeros(answers.acted.shape, dtype=np.int64)
    np.add.at(n_tried, (row[scored], answer[scored]), 1)
    return OtherLevels(row[held], answer[held], level[held], n_tried)


def _first_of_each(cell: IntArray, allowed: BoolArray) -> IntArray:
    """Places of the first allowed levels of each cell, as many as may be scored."""
    places = np.flatnonzero(allowed)
    order = np.argsort(cell[places], kind="stable")
    ordered = cell[places][order]
    number = np.arange(places.size) - np.searchsorted(ordered, ordered)
    return np.sort(places[order][number < ROWS_PER_FEATURE - 1])
