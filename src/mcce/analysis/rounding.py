"""Numbers of answers, rounded for reading and checked again.

Beyond the paper. The numbers of an answer are rounded one after the other, each as coarsely as the
row allows: the row with the rounded number, and with what follows from it, is checked by the
predictor and all requirements of the search again. If it fails, a finer rounding is tried, down to
the number as it is. The only number of an answer goes no further than it needs to: it becomes the
end of its range, rounded inwards. Numbers are rounded in decimals, as they are read.

Always true: the predictor accepted every rounded row as it stands; nobody's rounding depends on
anybody else; a rounded value lies on the same side of the person's own value as the answer, so a
change never vanishes or turns around.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import chain
from typing import TypeAlias

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..candidates import CandidateRows
from ..constraints.collection import Constraints
from ..kernels import Codes, FloatArray, IntArray
from ..tables.columns import EXACT_IN_FLOAT64
from ..tables.features import Feature, is_float32, to_decimal
from ..tables.schema import Schema
from .answers import Trials
from .moves import Moves
from .ranges import reach_of

# Rounding moves a value by a small share of the change: how much at most, and by default.
LARGEST_SHARE, USUAL_SHARE = Decimal("0.5"), Decimal("0.1")
# The largest share of a range that is lost to rounding.
LARGEST_LOSS = Decimal("0.25")
# Digits of a number that has more decimal places than rise above noise.
DIGITS = 6
# By answer and place among the mutable columns.
ShownNumbers: TypeAlias = "Mapping[tuple[int, int], ShownNumber]"


def round_answers(
    trials: Trials, columns: Mapping[int, RoundedColumn]
) -> tuple[pd.DataFrame, ShownNumbers]:
    """Answers with round numbers in some columns, by place, and how each number is shown."""
    rounding = _Rounding(trials, columns)
    rounding.round_all()
    return rounding.rows().frame, rounding.shown


def columns_to_round(
    schema: Schema, steps: Mapping[Hashable, float], constraints: Constraints
) -> dict[int, RoundedColumn]:
    """The columns with numbers that may be rounded, by place among the mutable ones."""
    columns = {}
    for place, position in enumerate(schema.mutable.tolist()):
        feature = schema.features[position]
        step, least = steps.get(feature.name), constraints.steps.get(position)
        if not feature.is_number or step == 0 or not feature.known.size:
            continue
        # Whole numbers that are not exact as floats are not rounded.
        if (
            feature.table.dtype.kind == "f"
            or np.abs(feature.known_numbers).max() < EXACT_IN_FLOAT64
        ):
            columns[place] = RoundedColumn(
                feature, step, 0.0 if least is None else least.size(feature)
            )
    return columns


@dataclass(frozen=True, eq=False)
class RoundedColumn:
    """A column whose numbers are rounded."""

    feature: Feature
    rounding: float | None
    least_change: float

    def decimal(self, number: float) -> Decimal:
        """A number of the column, with the fewest digits that stand for it."""
        single = is_float32(self.feature.table.dtype)
        return to_decimal(np.float32(number) if single else np.float64(number))

    def number(self, value: float, own: float) -> NumberToRound:
        """A number of an answer, NaN for an own value that is missing."""
        return NumberToRound(
            value=self.decimal(value),
            own=None if np.isnan(own) else self.decimal(own),
            low=self._ends[0],
            high=self._ends[1],
            rounding=None if self.rounding is None else to_decimal(self.rounding),
            n_decimals=self.feature.decimals,
            least_change=to_decimal(self.least_change),
        )

    @cached_property
    def _ends(self) -> tuple[Decimal, Decimal]:
        known = self.feature.known_numbers
        return self.decimal(known.min()), self.decimal(known.max())


class _Rounding:
    """Some answers, and how far they are rounded."""

    def __init__(self, trials: Trials, columns: Mapping[int, RoundedColumn]) -> None:
        self.trials, self.columns, self.answers = trials, columns, trials.answers
        answers = self.answers
        self.codes = answers.codes
        self.shown: dict[tuple[int, int], ShownNumber] = {}
        self.numeric = np.zeros_like(answers.acted)
        self.numeric[list(columns)] = True
        self.numeric &= answers.acted & trials.valid & trials.keep_constraints
        self.numeric &= ~np.isnan(answers.rows.all_numbers[answers.rows.schema.mutable])
        self.ends = self._find_ends()

    def rows(self) -> CandidateRows:
        """The answers as they are shown; those without a rounded number as they came."""
        made = self.trials.make(np.arange(len(self.answers)), self.codes)
        rounded = np.isin(np.arange(len(self.answers)), [answer for answer, _ in self.shown])
        return replace(made, codes=np.where(rounded, made.codes, self.answers.codes))

    def round_all(self) -> None:
        """Round every number, one number of all answers at a time."""
        numbers = [(answer, np.flatnonzero(some)) for answer, some in enumerate(self.numeric.T)]
        for turn in range(int(self.numeric.sum(axis=0).max(initial=0))):
            self._round({a: int(places[turn]) for a, places in numbers if places.size > turn})

    def _round(self, places: Mapping[int, int]) -> None:
        """Round one number of each answer: less and less, until a row is accepted."""
        attempts = {answer: self._attempts(answer, place) for answer, place in places.items()}
        while attempts:
            tried = {answer: next(further, None) for answer, further in attempts.items()}
            options = [(a, option) for a, some in tried.items() for option in some or ()]
            self._try([(answer, places[answer], option) for answer, option in options])
            attempts = {
                answer: further
                for answer, further in attempts.items()
                if tried[answer] is not None and (answer, places[answer]) not in self.shown
            }

    def _try(self, options: Sequence[tuple[int, int, ShownNumber]]) -> None:
        """Take the first value of each answer with which its row is accepted."""
        if not options:
            return
        ranged = [i for i, (_, _, shown) in enumerate(options) if shown.far is not None]
        which = np.array([*range(len(options)), *ranged])
        ends = [float(shown.value) for _, _, shown in options]
        ends += [float(options[i][2].far or 0) for i in ranged]
        answer, place = np.array([option[:2] for option in options])[which].T
        codes = self._with_values(answer, place, np.array(ends))
        accepted, _ = self.trials.try_variants(answer, codes)
        refused = np.bincount(which, ~accepted, minlength=len(options)) > 0
        for i in np.flatnonzero(~refused).tolist():
            cell = options[i][:2]
            if cell not in self.shown:
                self.shown[cell] = options[i][2]
                self.codes[:, cell[0]] = codes[:, i]

    def _with_values(self, answer: IntArray, place: IntArray, values: FloatArray) -> Codes:
        """Answers with another value in one cell each."""
        codes = self.codes[:, answer]
        for at in np.unique(place).tolist():
            here = np.flatnonzero(place == at)
            codes[at, here] = self.trials.codes_for(at, values[here])
        return codes

    def _attempts(self, answer: int, place: int) -> Iterator[list[ShownNumber]]:
        """What to try for a number of an answer: a range if one is known, then single values."""
        answers = self.answers
        position = int(answers.rows.schema.mutable[place])
        own = answers.factuals.all_numbers[position, answers.owner[answer]]
        column = self.columns[place]
        number = column.number(answers.rows.all_numbers[position, answer], own)
        ends = self.ends[:, place, answer]
        if np.isnan([own, *ends]).any():
            return number.attempts()
        low, high = (column.decimal(end) for end in ends)
        is_open = low <= number.low if own > ends[1] else high >= number.high
        return chain(number.range_attempts(low, high, is_open=is_open), number.attempts())

    def _find_ends(self) -> FloatArray:
        """The ends of the ranges of numbers that are the only ones to be rounded."""
        alone = self.numeric & (self.numeric.sum(axis=0) == 1)
        moves, rows = replace(Moves.of(self.answers), movable=alone), self.answers.rows
        reach, _ = reach_of(moves, self.trials)
        ends = np.full((2, *alone.shape), np.nan)
        for place in np.flatnonzero(alone.any(axis=1)).tolist():
            position, at = rows.schema.mutable[place], np.flatnonzero(alone[place])
            numbers, own = rows.schema.features[position].numbers, rows.all_numbers[position, at]
            assert numbers is not None
            for end, sign in enumerate((-1, 1)):
                steps = reach[end, place, at]
                trained = np.where(steps > 0, moves.start[end, place, at] + sign * steps, 0)
                ends[end, place, at] = np.where(steps > 0, numbers[trained], own)
        return ends


@dataclass(frozen=True)
class ShownNumber:
    """A number as it is shown: one value, or a range from it to ``far``."""

    value: Decimal
    far: Decimal | None = None
    is_open: bool = False


@dataclass(frozen=True)
class NumberToRound:
    """A number of an answer."""

    value: Decimal
    own: Decimal | None
    low: Decimal
    high: Decimal
    rounding: Decimal | None = None
    n_decimals: int | None = 0
    least_change: Decimal = Decimal(0)

    def attempts(self) -> Iterator[list[ShownNumber]]:
        """Values to try, attempt by attempt, the preferred one first; the last is to round nothing.

        Examples
        --------
        >>> number = NumberToRound(Decimal(2847), Decimal(4521), Decimal(250), Decimal(18424))
        >>> [[str(shown.value) for shown in options] for options in number.attempts()][:3]
        [['2800', '2900'], ['2850', '2800'], ['2850', '2840']]
        """
        for step in self._steps(self.value):
            if self.value % step == 0:
                return
            nearest = _multiple(self.value, step, ROUND_HALF_EVEN)
            other = nearest + (step if nearest < self.value else -step)
            allowed = [ShownNumber(value) for value in (nearest, other) if self._is_allowed(value)]
            if allowed:
                yield allowed

    def range_attempts(
        self, low: Decimal, high: Decimal, *, is_open: bool
    ) -> Iterator[list[ShownNumber]]:
        """Ends of a range to try, rounded inwards, the coarsest first; last the ends as they are.

        Nobody has to go much further than needed: the nearer end moves by at most a tenth of
        the change, and the range loses at most a quarter.
        """
        if self.own is None or low <= self.own <= high:
            return
        less = high < self.own
        near, far = (high, low) if less else (low, high)
        inwards = (ROUND_FLOOR, ROUND_CEILING) if less else (ROUND_CEILING, ROUND_FLOOR)
        for step in self._steps(near):
            end, other = (
                _multiple(e, step, how) for e, how in zip((near, far), inwards, strict=True)
            )
            other = far if is_open else other
            lost = abs(end - near) + abs(other - far)
            is_small = abs(end - near) <= USUAL_SHARE * abs(near - self.own)
            if end != other and is_small and lost <= LARGEST_LOSS * (high - low):
                yield [ShownNumber(end, other, is_open)]
        if near != far:
            yield [ShownNumber(near, far, is_open)]

    def _is_allowed(self, value: Decimal) -> bool:
        if not self.low <= value <= self.high:
            return False
        if self.own is None:
            return True
        gap = value - self.own
        least = max(self.least_change, self._unit())
        return (gap > 0) == (self.value > self.own) and abs(gap) >= least

    def _unit(self) -> Decimal:
        if self.n_decimals is None:
            return Decimal(10) ** (self.value.adjusted() - DIGITS + 1)
        return Decimal(10) ** -self.n_decimals

    def _steps(self, value: Decimal) -> Iterator[Decimal]:
        """Multiples to round a value to: that of the labels, then 5 and 1 times powers of ten."""
        change = abs(value if self.own is None else value - self.own)
        finest, most = self._unit(), change * LARGEST_SHARE
        if self.rounding is None:
            most = change * USUAL_SHARE
        elif self.rounding <= most:
            most = self.rounding
            if most % finest == 0:
                yield most
        if not value or not most:
            return
        # Beside a huge own value, a small one is not rounded away.
        power = min(most.adjusted(), value.adjusted() + 1)
        while (unit := Decimal(10) ** power) >= finest:
            for digit in (5, 1):
                if digit * unit <= most and digit * unit != self.rounding:
                    yield digit * unit
            power -= 1


def _multiple(value: Decimal, step: Decimal, how: str) -> Decimal:
    return (value / step).to_integral_value(how) * step
