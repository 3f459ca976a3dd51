"""Steps between training values around changed numbers of counterfactuals, and how far they hold.

A step of a number leads to the next training value below or above it; the counterfactual itself is
step 0, whether training held its value or not. How far something holds on both sides is found by
few tests: the farthest steps first, then the middle of the widest gap, again and again, between the
last step that held and the first that failed, which is bisection, or between two that held, where a
hole may be hidden. If a step fails, the end moves in front of it. The last tests are for the ends
alone.

Always true: a step that leads to the person's own value gives the person's own cell; an end was
tested and held, and so did all tested steps before it; with a test for every step, the ends are
those of the widest interval that holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..tables.columns import as_comparable
from ..tables.features import Feature
from ..tables.schema import OWN
from .answers import EncodedAnswers

# One test in this many is kept for the ends of a range.
TESTS_PER_END_TEST = 4
# Which tested rows hold, and which of the tests count.
Held: TypeAlias = tuple[BoolArray, BoolArray]
# From starting points by number, and steps from each, negative below it.
Test: TypeAlias = Callable[[IntArray, IntArray], Held]


@dataclass(frozen=True, eq=False)
class Moves:
    """Steps between training values from the changed numbers of counterfactuals."""

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
        for place, column in enumerate(schema.mutable):
            feature = schema.features[column]
            if feature.kind == "categorical":
                movable[place] = False
                continue
            below, missing = _count_below(answers, column, feature)
            movable[place] &= ~missing
            seen = answers.rows.codes[column] >= 0
            start[:, place] = below, below - ~seen
            farthest[:, place] = below, len(feature.known) - 1 - start[1, place]
        return cls(answers, movable, start, np.where(movable, farthest, 0))

    def codes(self, answer: IntArray, steps: IntArray) -> Codes:
        """Variants of counterfactuals as codes; see :meth:`AnswerVariants.make`."""
        answers, schema = self.answers, self.answers.rows.schema
        codes = answers.codes[:, answer]
        for place in np.flatnonzero(steps.any(axis=1)).tolist():
            step = steps[place]
            trained = np.where(step < 0, *self.start[:, place, answer]) + step
            own = answers.factuals.codes[schema.mutable[place], answers.owner[answer]]
            new = np.where(trained == own, OWN, len(answers) + trained)
            codes[place] = np.where(step == 0, codes[place], new)
        return codes


def _count_below(
    answers: EncodedAnswers, column: int, feature: Feature
) -> tuple[IntArray, BoolArray]:
    """How many training values are below each number, and which are missing."""
    cells = answers.rows.frame.iloc[:, column]
    numbers = as_comparable(cells, feature.table.dtype)
    missing = numbers != numbers
    known = as_comparable(feature.known, feature.table.dtype)
    exact = answers.rows.codes[column].astype(np.int64)
    below = np.searchsorted(known, np.where(missing, 0, numbers))
    return np.where(exact >= 0, exact, below), missing.astype(bool)


def find_reach(farthest: IntArray, n_tests: IntArray, test: Test) -> tuple[IntArray, IntArray]:
    """The number of steps below and above each starting point up to which a test holds.

    Examples
    --------
    >>> def at_most_six(start, step):
    ...     return step <= 6, np.ones(step.size, dtype=bool)
    >>> find_reach(np.array([[2], [9]]), np.array([20]), at_most_six)[0]
    array([[2],
           [6]])
    """
    n_starts = n_tests.size
    sides, used = _Sides(farthest.ravel()), np.zeros(n_starts, dtype=np.int64)
    while True:
        steps, gaps = sides.propose(used >= n_tests - n_tests // TESTS_PER_END_TEST)
        chosen = _choose(gaps.reshape(2, n_starts), n_tests - used)
        side, start = np.nonzero(chosen)
        if not start.size:
            return sides.good.reshape(2, n_starts), used
        step = steps.reshape(2, n_starts)[side, start]
        held, counted = test(start, np.where(side == 0, -step, step))
        used += np.bincount(start[counted], minlength=n_starts)
        sides.learn(side * n_starts + start, step, held)


def _choose(gaps: FloatArray, n_left: IntArray) -> BoolArray:
    """For each start, the side with the wider gap; both if neither has an end yet."""
    wider = np.stack([gaps[0] >= gaps[1], gaps[0] < gaps[1]])
    unknown = np.isinf(gaps)
    chosen = wider | (unknown & (n_left > 1))
    return chosen & (gaps > 0) & (n_left > 0)


class _Sides:
    """What is known of many sides, each with steps from 1 to ``farthest``.

    ``good`` is the farthest step that held, 0 for the start, and ``bad`` the nearest that did not;
    ``held`` has all that held up to ``good`` in ascending order, some of them repeatedly.
    """

    def __init__(self, farthest: IntArray) -> None:
        self.farthest = farthest
        self.good, self.bad = np.zeros_like(farthest), farthest + 1
        self.held = np.zeros((farthest.size, 1), dtype=np.int64)

    def propose(self, at_ends: BoolArray) -> tuple[IntArray, FloatArray]:
        """The step to test next on each side, and the number of steps in its gap.

        The gap is 0 where nothing is left to test, and infinite where nothing was tested yet.
        Starting points ``at_ends`` look at nothing but ends as long as one is not found.
        """
        low, high = self._widest()
        between = high - low - 1
        end = np.where(self.bad > self.farthest, 0, self.bad - self.good - 1)
        between[np.tile(at_ends & (end.reshape(2, -1) > 0).any(axis=0), 2)] = 0
        is_end = end >= between
        middle = np.where(is_end, self.good + self.bad, low + high) // 2
        untested = (self.bad > self.farthest) & (self.good < self.farthest)
        gaps = np.where(untested, np.inf, np.maximum(end, between))
        return np.where(untested, self.farthest, middle), gaps

    def learn(self, sides: IntArray, steps: IntArray, held: BoolArray) -> None:
        """Record the results of tests of some sides."""
        more = self.good.copy()
        more[sides[held]] = steps[held]
        self.held = np.sort(np.column_stack([self.held, more]), axis=1)
        failed = sides[~held]
        self.bad[failed] = steps[~held]
        before = self.held[failed] < self.bad[failed, None]
        last = np.where(before, self.held[failed], 0).max(axis=1, initial=0)
        self.held[failed] = np.minimum(self.held[failed], last[:, None])
        self.good = self.held[:, -1].copy()

    def _widest(self) -> tuple[IntArray, IntArray]:
        """The steps around the widest gap between those that held."""
        if self.held.shape[1] == 1:
            return self.good, self.good + 1
        side, widest = np.arange(len(self.held)), np.diff(self.held, axis=1).argmax(axis=1)
        return self.held[side, widest], self.held[side, widest + 1]
