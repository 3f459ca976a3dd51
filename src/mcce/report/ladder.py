"""Round values to try for a number, the coarsest first.

Always true: every value lies on the side of the person's own value on which the answer does, so a
change never vanishes or turns around; numbers are rounded in decimals, as they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

# Rounding moves a value by a small share of the change: how much at most, and by default.
LARGEST_SHARE, USUAL_SHARE = Decimal("0.5"), Decimal("0.1")
# The largest share of a range that is lost to rounding.
LARGEST_LOSS = Decimal("0.25")
# Digits of a number that has more decimal places than can be told from noise.
DIGITS = 6


@dataclass(frozen=True)
class Rung:
    """A value to try."""

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
    places: int | None = 0
    least_change: Decimal = Decimal(0)

    def rungs(self) -> Iterator[list[Rung]]:
        """Values to try, those of one rung in order of preference; then the number as it is.

        Examples
        --------
        >>> number = NumberToRound(Decimal(2847), Decimal(4521), Decimal(250), Decimal(18424))
        >>> [[str(rung.value) for rung in rungs] for rungs in number.rungs()][:3]
        [['2800', '2900'], ['2850', '2800'], ['2850', '2840']]
        """
        for step in self._steps(self.value):
            if self.value % step == 0:
                return
            nearest = _multiple(self.value, step, ROUND_HALF_EVEN)
            other = nearest + (step if nearest < self.value else -step)
            allowed = [Rung(value) for value in (nearest, other) if self._is_allowed(value)]
            if allowed:
                yield allowed

    def range_rungs(self, low: Decimal, high: Decimal, *, is_open: bool) -> Iterator[list[Rung]]:
        """Ends of a range to try, rounded inwards, the coarsest first; last the ends as they are.

        Nobody is asked to go much further than needed: the nearer end moves by at most a tenth of
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
                yield [Rung(end, other, is_open)]
        if near != far:
            yield [Rung(near, far, is_open)]

    def _is_allowed(self, value: Decimal) -> bool:
        if not self.low <= value <= self.high:
            return False
        if self.own is None:
            return True
        gap = value - self.own
        least = max(self.least_change, self._unit())
        return (gap > 0) == (self.value > self.own) and abs(gap) >= least

    def _unit(self) -> Decimal:
        if self.places is None:
            return Decimal(10) ** (self.value.adjusted() - DIGITS + 1)
        return Decimal(10) ** -self.places

    def _steps(self, value: Decimal) -> Iterator[Decimal]:
        """Multiples to round a value to: what is asked for, then 5 and 1 times powers of ten."""
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
