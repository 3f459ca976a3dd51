"""Pureness: the share of the values inside the cells of an answer that the predictor accepts.

The values of a number are the training values inside its range. All combinations of values are
scored if they are few, otherwise random ones. The answer's other values stay as they are; columns
that follow from others follow, and combinations in which one would leave its own cell cannot occur,
so they do not count.

Always true: draws depend on the seed and the answer's own values alone, not on the batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..candidates import CandidateRows
from ..kernels import BoolArray, Codes, IntArray, draw_keys, person_keys, pick
from ..postprocess.validation import ROWS_PER_CALL
from ..tables.columns import differ
from ..tables.schema import OWN
from .answers import AnswerVariants, EncodedAnswers
from .requirements import Requirements
from .widening import Cell

# The number of an answer, and the cell of each quasi-identifier.
Widened: TypeAlias = tuple[int, Sequence[Cell]]


@dataclass(frozen=True)
class Pureness:
    """What the predictor says of the values inside the cells of an answer."""

    share: float
    error: float
    n_scored: int
    n_combinations: int


class PurenessMeter:
    """Measures the pureness of widened answers."""

    def __init__(
        self, requirements: Requirements, answers: EncodedAnswers, rows: Sequence[int], seed: int
    ) -> None:
        self._requirements, self._answers, self._rows = requirements, answers, rows
        follow = {target.row for target in requirements.targets}
        self._drawn = [row for row in rows if row not in follow]
        given = requirements.targets, requirements.constraints
        self._variants = AnswerVariants(answers, *given)
        self._keys = person_keys(seed, answers.rows.descent.T)

    def measure(self, widened: Sequence[Widened], most: int) -> list[Pureness]:
        """The pureness of some widened answers."""
        found: list[Pureness] = []
        at_once = max(1, ROWS_PER_CALL // most)
        for start in range(0, len(widened), at_once):
            found += self._measure(widened[start : start + at_once], most)
        return found

    def _measure(self, widened: Sequence[Widened], most: int) -> list[Pureness]:
        choices = [self._choices(*one) for one in widened]
        n_combinations = [math.prod(one.size for one in some) for some in choices]
        answers = [answer for answer, _ in widened]
        parts = [self._codes(*one, most) for one in zip(answers, choices, strict=True)]
        of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        rows = self._variants.make(
            np.array(answers, dtype=np.int64)[of], np.concatenate(parts, axis=1)
        )
        can_occur = self._can_occur(rows, of, widened)
        accepted = np.zeros(of.size, dtype=bool)
        accepted[can_occur] = self._requirements.score(rows.take(can_occur))
        n_scored = np.bincount(of[can_occur], minlength=len(parts)).tolist()
        n_accepted = np.bincount(of[accepted], minlength=len(parts)).tolist()
        return [
            _pureness(*counts, is_sample=counts[2] > most)
            for counts in zip(n_accepted, n_scored, n_combinations, strict=True)
        ]

    def _codes(self, answer: int, choices: Sequence[Codes], most: int) -> Codes:
        """All combinations of values, or as many random ones as there may be."""
        n_combinations = math.prod(some.size for some in choices)
        numbers = np.arange(min(n_combinations, most))
        drawn = draw_keys(self._keys[[answer]], numbers)[0]
        codes = np.repeat(self._answers.codes[:, [answer]], numbers.size, axis=1)
        stride = 1
        for row, some in zip(self._drawn, choices, strict=True):
            if n_combinations <= most:
                chosen = numbers // stride % some.size
                stride *= some.size
            else:
                chosen = pick(drawn, row, np.full(numbers.size, some.size))
            codes[row] = some[chosen]
        return codes

    def _choices(self, answer: int, cells: Sequence[Cell]) -> list[Codes]:
        """The values of each cell as codes of variants; the answer's own stays as it is."""
        answers, listed = self._answers, []
        for row, cell in zip(self._rows, cells, strict=True):
            if row in self._drawn:
                position, codes = answers.rows.schema.mutable[row], cell.codes
                exact, own = answers.rows.exact[position, answer], answers.codes[row, answer]
                mine = answers.factuals.exact[position, answers.owner[answer]]
                others = np.where(codes == mine, OWN, len(answers) + codes)
                some = np.where(codes == exact, own, others).astype(np.int32)
                listed.append(some if exact >= 0 else np.append(some, own))
        return listed

    def _can_occur(
        self, rows: CandidateRows, of: IntArray, widened: Sequence[Widened]
    ) -> BoolArray:
        """Rows in which every column that follows from others is inside its cell."""
        can_occur = np.ones(of.size, dtype=bool)
        schema = self._answers.rows.schema
        answers = np.array([answer for answer, _ in widened], dtype=np.int64)
        for at, row in enumerate(self._rows):
            if row in self._drawn:
                continue
            position = schema.mutable[row]
            feature, column = schema.features[position], rows.frame.iloc[:, position]
            exact, near = feature.encode(column)
            # What training never held is where its nearest value is, unless it is the answer's.
            code = np.where(exact >= 0, exact, np.minimum(near, feature.n_codes - 1))
            inside = np.stack([cells[at].inside(feature.n_codes) for _, cells in widened])
            own = self._answers.rows.frame.iloc[:, position].iloc[answers[of]]
            same = ~differ(column.reset_index(drop=True), own.reset_index(drop=True))
            can_occur &= inside[of, code] | same
        return can_occur


def _pureness(n_accepted: int, n_scored: int, n_combinations: int, *, is_sample: bool) -> Pureness:
    share = n_accepted / n_scored if n_scored else float("nan")
    error = float(np.sqrt(share * (1 - share) / n_scored)) if is_sample and n_scored else 0.0
    return Pureness(share, error, n_scored, n_combinations)
