"""The desired interval c of the paper: scores between two ends, open or closed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from ..errors import ParameterError
from ..kernels import BoolArray, FloatArray

Closed = Literal["both", "left", "right", "neither"]


@dataclass(frozen=True)
class Interval:
    """Desired scores between two ends, each open or closed; infinite ends are allowed.

    Examples
    --------
    >>> Interval(0.0, 0.1, closed="left")
    Interval [0.0, 0.1)
    >>> Interval(0.0, 0.1, closed="left").contains(np.array([0.0, 0.05, 0.1]))
    array([ True,  True, False])
    """

    low: float
    high: float
    closed: Closed = "both"

    def __post_init__(self) -> None:
        for end, value in (("low", self.low), ("high", self.high)):
            if not isinstance(value, Real) or math.isnan(value):
                raise ParameterError(f"Interval {end} must be a number, got {value!r}.")
        if self.closed not in ("both", "left", "right", "neither"):
            raise ParameterError(
                f'closed must be "both", "left", "right" or "neither", got {self.closed!r}.'
            )
        if self.low > self.high or (self.low == self.high and self.closed != "both"):
            raise ParameterError(
                f"{self!r} is empty: no score could ever be in it. Give the lower end first."
            )

    def __repr__(self) -> str:
        left = "[" if self.closed in ("both", "left") else "("
        right = "]" if self.closed in ("both", "right") else ")"
        return f"Interval {left}{self.low}, {self.high}{right}"

    def contains(self, scores: FloatArray) -> BoolArray:
        """Whether each score is inside."""
        above = scores >= self.low if self.closed in ("both", "left") else scores > self.low
        below = scores <= self.high if self.closed in ("both", "right") else scores < self.high
        return above & below

    def shortfall(self, scores: FloatArray) -> FloatArray:
        """How far each score is from the interval, 0 inside and at the ends."""
        # Infinity minus infinity is 0 here: a score at an infinite end is inside.
        with np.errstate(invalid="ignore"):
            below = np.where(scores < self.low, self.low - scores, 0.0)
            above = np.where(scores > self.high, scores - self.high, 0.0)
        return np.where(np.isnan(scores), np.nan, below + above)

    def margin(self, scores: FloatArray) -> FloatArray:
        """How far each score is from the nearer end, negative outside; infinite ends are no ends.

        Examples
        --------
        >>> Interval(0.0, 10.0).margin(np.array([1.0, 7.0, 12.0]))
        array([ 1.,  3., -2.])
        """
        # A score at an end is 0 away from it, also where both are infinite.
        with np.errstate(invalid="ignore"):
            above = np.where(scores == self.low, 0.0, scores - self.low)
            below = np.where(scores == self.high, 0.0, self.high - scores)
        above = above if self.low > -math.inf else np.full_like(above, math.inf)
        below = below if self.high < math.inf else np.full_like(below, math.inf)
        return np.minimum(above, below)
