"""How sure answers are: how far inside the desired set, and what small changes would do to them.

Beyond the paper. A *small step* moves a number by a tenth of its standard deviation in training,
to the nearest training value, and at least to the next one; where that is more than half a
standard deviation away, such as for counts, the number stays. *Small changes* of an answer move
all its numbers at once, by one small step each, up or down in up to ``N_MOVES`` balanced
combinations.
The surrogate predicts their scores, so that they cost no predictor calls.

Always true: what is unknown is NaN; the measures of an answer depend on no other answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..candidates import CandidateRows
from ..encodings import CandidateEncodings
from ..kernels import Codes, FloatArray, Int32Array, IntArray
from ..predictors.decision import Decision, Interval, LabelRule, ScoredRows
from ..tables.features import Feature

# The paper's search learns no surrogate.
if TYPE_CHECKING:
    from ..boosting.surrogate import Surrogate

AnyIntArray: TypeAlias = IntArray | Int32Array

# Standard deviations of a small step, and of the largest one.
STEP, MAX_STEP = 0.1, 0.5
# Small changes of an answer, at most: a power of two. One number less can move independently.
N_MOVES = 16
# Small changes of all answers at once have at most this many cells.
MAX_CELLS = 2**22
# Answers are narrow below the first of each pair, and wide from the second on: margins as a share
# of the largest, and in typical differences. docs/search_methods.md shows how many of them survive.
OF_LARGEST, IN_STEPS = (0.1, 0.4), (1.0, 3.0)
WORDS = ("narrow", "fair", "wide")


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins of the scores of a decision, for an explainer that may have a surrogate."""

    decision: Decision
    rule: LabelRule | None
    surrogate: Surrogate | None

    @property
    def ends(self) -> Interval | None:
        """The desired interval, infinite where no score can pass its end; None for labels."""
        desired, ends = self.decision.desired, self.decision.ends
        if ends is None or not isinstance(desired, Interval):
            return None
        return replace(desired, low=ends[0], high=ends[1])

    @property
    def largest(self) -> float:
        """The largest margin that a score can have; NaN if unknown."""
        ends = self.ends
        if ends is None:
            # Of more than two labels, the score does not tell the lead.
            known = self.rule is not None and self.rule.measure == "margin"
            is_binary = len(getattr(self.decision.predictor, "classes_", ())) == 2
            return 1.0 - self._threshold if known and is_binary else math.nan
        if not self.decision.are_shares:
            return math.nan
        reach = min(1.0, ends.high) - max(0.0, ends.low)
        is_bounded = math.isfinite(ends.low) + math.isfinite(ends.high)
        return reach / is_bounded if is_bounded else math.nan

    @property
    def _threshold(self) -> float:
        """The lead over the other labels from which on the predictor gives a desired one."""
        assert self.rule is not None
        low, high = self.rule.low, self.rule.high
        return 0.0 if low <= 0 <= high else (low + high) / 2

    def measure(self, score: FloatArray) -> FloatArray:
        """The margin of each score; of labels, beyond the lead that is enough."""
        ends = self.ends
        if ends is not None:
            return ends.margin(score)
        if math.isnan(self.largest):
            return np.full(score.size, np.nan)
        return 2 * score - 1 - self._threshold

    def require(self, share: float) -> tuple[Decision, float] | None:
        """The decision that asks for a share of the largest margin, and that margin."""
        margin = share * self.largest
        if not margin > 0:
            return None
        ends = self.ends
        if ends is None:
            return replace(self.decision, min_margin=self._threshold + margin), margin
        assert isinstance(self.decision.desired, Interval)
        desired = self.decision.desired
        low = desired.low + margin if math.isfinite(ends.low) else desired.low
        high = desired.high - margin if math.isfinite(ends.high) else desired.high
        return replace(self.decision, desired=replace(desired, low=low, high=high)), margin


def measure_margins(
    margins: Margins, counts: Sequence[AnyIntArray] | None, rows: CandidateRows, score: FloatArray
) -> dict[str, np.ndarray]:
    """Margin, margin in steps, share of small changes that stay valid, and the word, by name.

    ``counts`` are those of the training values of each mutable feature.
    """
    margin, surrogate = margins.measure(score), margins.surrogate
    in_steps, robust = np.full((2, score.size), np.nan)
    can_tell = surrogate is not None and surrogate.link != "label" and counts is not None
    if surrogate is not None and counts is not None and can_tell:
        desired = surrogate.desired(replace(margins.decision, min_margin=0.0))
        response = surrogate.response(ScoredRows(score, np.ones(score.size, dtype=bool)))
        for part, differences in _differences(surrogate, counts, rows):
            typical = np.sqrt(np.mean(differences**2, axis=0))
            inside = desired.margin(response[part])
            np.divide(inside, typical, out=in_steps[part], where=typical > 0)
            robust[part] = np.mean(desired.margin(response[part] + differences) >= 0, axis=0)
    # Infinite scores may have infinite margins, and one desired score has none.
    with np.errstate(divide="ignore", invalid="ignore"):
        words = _words(margin / margins.largest, in_steps, can_tell)
    return {"margin": margin, "margin_steps": in_steps, "robust": robust, "margin_word": words}


def _words(of_largest: FloatArray, in_steps: FloatArray, can_tell: bool) -> np.ndarray:
    """The word for each answer; empty if unknown. Comparisons with NaN are False."""
    is_known = can_tell & ~(np.isnan(of_largest) & np.isnan(in_steps))
    number = np.where(is_known, 2, -1)
    for values, (fair, wide) in ((of_largest, OF_LARGEST), (in_steps, IN_STEPS)):
        number = np.where(values < wide, np.minimum(number, 1), number)
        number = np.where(values < fair, 0, number)
    return np.array([*WORDS, ""], dtype=object)[number]


def _differences(
    surrogate: Surrogate, counts: Sequence[AnyIntArray], rows: CandidateRows
) -> Iterator[tuple[slice, FloatArray]]:
    """Predicted differences of the response by small changes, (n_moves, n_rows), part by part.

    Nothing if no number moves that matters to the surrogate.
    """
    schema = rows.factuals.schema
    steps = {
        column: step
        for column, of_values in zip(schema.mutable.tolist(), counts, strict=True)
        if (step := small_step(schema.features[column], of_values)) is not None
    }
    columns = surrogate.inputs(N_MOVES - 1, np.array(sorted(steps), dtype=np.int64)).tolist()
    if not columns:
        return
    # Rows of a Hadamard matrix: balanced for any two numbers, all combinations for up to four.
    n_moves = min(N_MOVES, 2 ** len(columns))
    masks = sorted(range(1, N_MOVES), key=lambda mask: (mask.bit_count() > 1, mask))
    up = [
        np.array([(move & mask).bit_count() % 2 for move in range(n_moves)])
        for mask in masks[: len(columns)]
    ]
    tree_codes = CandidateEncodings(rows.factuals, rows.tables).tree_codes(rows)
    n_rows = max(MAX_CELLS // (n_moves * len(tree_codes)), 1)
    for start in range(0, tree_codes.shape[1], n_rows):
        part = slice(start, start + n_rows)
        own = np.ascontiguousarray(tree_codes[:, part])
        moved = np.repeat(own[:, None], n_moves, axis=1)
        for column, is_up in zip(columns, up, strict=True):
            moved[column] = steps[column][is_up[:, None], own[column]]
        predicted = surrogate.predict(moved.reshape(len(own), -1)).reshape(moved.shape[1:])
        yield part, predicted - surrogate.predict(own)


def small_step(feature: Feature, counts: AnyIntArray) -> Codes | None:
    """Each code moved one small step down and up, shape (2, n_codes + 1); None if none moves."""
    numbers, own = feature.known_numbers, np.arange(feature.known_numbers.size)
    if own.size < 2:
        return None
    with np.errstate(all="ignore"):
        mean = np.average(numbers, weights=counts[own])
        deviation = math.sqrt(np.average((numbers - mean) ** 2, weights=counts[own]))
        between = numbers[1:] / 2 + numbers[:-1] / 2
        steps = np.tile(np.arange(feature.n_codes + 1, dtype=np.int32), (2, 1))
        for sign, moved in zip((-1, 1), steps, strict=True):
            code = np.searchsorted(between, numbers + sign * STEP * deviation)
            code = np.where(code == own, own + sign, code).clip(0, own.size - 1)
            is_small = np.abs(numbers[code] - numbers) <= MAX_STEP * deviation
            moved[own] = np.where(is_small, code, own)
    return steps if (steps[0] != steps[1]).any() else None
