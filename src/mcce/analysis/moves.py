"""Steps from the changed numbers of counterfactuals to the training values around them.

Takes counterfactuals. A step of a number leads to the next training value below or above it; the
counterfactual itself is step 0, whether training held its value or not.

Always true: a step that leads to the person's own value gives the person's own cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import BoolArray, Codes, IntArray
from ..tables.columns import as_comparable
from ..tables.features import Feature
from ..tables.schema import OWN
from .answers import EncodedAnswers


@dataclass(frozen=True, eq=False)
class Moves:
    """Where steps from the numbers of counterfactuals lead; :meth:`of` finds it."""

    answers: EncodedAnswers
    movable: BoolArray
    start: IntArray
    farthest: IntArray

    @classmethod
    def of(cls, answers: EncodedAnswers) -> Moves:
        """The steps of all changed numbers."""
        schema = answers.rows.schema
        movable = answers.acted.copy()
        start, farthest = np.zeros((2, 2, *movable.shape), dtype=np.int64)
        for row, position in enumerate(schema.mutable):
            feature = schema.features[position]
            if feature.kind == "categorical":
                movable[row] = False
                continue
            below, missing = _count_below(answers, position, feature)
            movable[row] &= ~missing
            seen = answers.rows.exact[position] >= 0
            start[:, row] = below, below - ~seen
            farthest[:, row] = below, len(feature.known) - 1 - start[1, row]
        return cls(answers, movable, start, np.where(movable, farthest, 0))

    def codes(self, answer: IntArray, steps: IntArray) -> Codes:
        """Variants of counterfactuals as codes; see :meth:`AnswerVariants.make`."""
        answers, schema = self.answers, self.answers.rows.schema
        codes = answers.codes[:, answer]
        for row in np.flatnonzero(steps.any(axis=1)).tolist():
            step = steps[row]
            trained = np.where(step < 0, *self.start[:, row, answer]) + step
            own = answers.factuals.exact[schema.mutable[row], answers.owner[answer]]
            new = np.where(trained == own, OWN, len(answers) + trained)
            codes[row] = np.where(step == 0, codes[row], new)
        return codes


def _count_below(
    answers: EncodedAnswers, position: int, feature: Feature
) -> tuple[IntArray, BoolArray]:
    """How many training values are below each number, and which are missing."""
    cells = answers.rows.frame.iloc[:, position]
    numbers = as_comparable(cells, feature.table.dtype)
    missing = numbers != numbers
    known = as_comparable(feature.known, feature.table.dtype)
    exact = answers.rows.exact[position].astype(np.int64)
    below = np.searchsorted(known, np.where(missing, 0, numbers))
    return np.where(exact >= 0, exact, below), missing.astype(bool)
