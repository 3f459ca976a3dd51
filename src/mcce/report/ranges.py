"""Which ranges and other levels a letter may speak of.

Takes the ranges of answers. A range of one feature holds while the other cells are as in the
answer. So a letter speaks of a range if the answer has no other number that is rounded, and of
other levels if it changes nothing else but what follows from them.

Always true: at most one feature of an answer has a choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis.ranges import FoundRanges
from ..kernels import BoolArray, FloatArray
from ..tables.columns import plain

# Levels that a sentence lists, that of the answer included.
MOST_LEVELS = 3


@dataclass(frozen=True, eq=False)
class Choices:
    """What people may choose instead of the value of an answer."""

    ends: FloatArray
    levels: dict[tuple[int, int], list[Any]]

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Choices:
        """No choice for answers of a shape, (n_mutable, n_answers)."""
        return cls(np.full((2, *shape), np.nan), {})

    @classmethod
    def of(cls, found: FoundRanges, rounded: BoolArray) -> Choices:
        """The choices that ranges give."""
        return cls(_ends(found, rounded), _levels(found))


def _ends(found: FoundRanges, rounded: BoolArray) -> FloatArray:
    """The ends of the ranges of numbers that are the only ones to be rounded."""
    moves, rows = found.moves, found.moves.answers.rows
    alone = rounded & (rounded.sum(axis=0) == 1)
    ends = np.full((2, *rounded.shape), np.nan)
    for row in np.flatnonzero(alone.any(axis=1)).tolist():
        position, at = rows.schema.mutable[row], np.flatnonzero(alone[row])
        numbers, own = rows.schema.features[position].numbers, rows.all_numbers[position, at]
        assert numbers is not None
        for end, sign in enumerate((-1, 1)):
            steps = found.reach[end, row, at]
            trained = np.where(steps > 0, moves.start[end, row, at] + sign * steps, 0)
            ends[end, row, at] = np.where(steps > 0, numbers[trained], own)
    return ends


def _levels(found: FoundRanges) -> dict[tuple[int, int], list[Any]]:
    """Other levels of answers that change nothing else, the most frequent ones."""
    levels, answers = found.levels, found.moves.answers
    alone = answers.acted.sum(axis=0) == 1
    position = answers.rows.schema.mutable[levels.row]
    own = answers.factuals.exact[position, answers.owner[levels.answer]]
    listed: dict[tuple[int, int], list[Any]] = {}
    for at in np.flatnonzero(alone[levels.answer] & (levels.level != own)).tolist():
        row, answer = int(levels.row[at]), int(levels.answer[at])
        others = listed.setdefault((answer, row), [])
        if len(others) < MOST_LEVELS - 1:
            code = len(answers) + int(levels.level[at])
            others.extend(plain(answers.tables[row].iloc[[code]]))
    return listed
