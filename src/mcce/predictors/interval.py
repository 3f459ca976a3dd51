"""The interval c of the paper: the desired scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from ..errors import ParameterError, shorten
from ..kernels import BoolArray, FloatArray

Closed = Literal["both", "left", "right", "neither"]


@dataclass(frozen=True)
class Interval:
    """An interval of desired scores, each end open or closed.

    Parameters
    ----------
    low, high
        The ends; they may be infinite.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the interval.

    Raises
    ------
    ParameterError
        If an end is not a number, or no score lies in the interval.

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
            if not isinstance(value, Real) or not _fits_float(value) or math.isnan(value):
                raise ParameterError(f"{end} must be a number, got {shorten(value)}.")
        if self.closed not in ("both", "left", "right", "neither"):
            raise ParameterError(
                f'closed must be "both", "left", "right" or "neither", got {shorten(self.closed)}.'
            )
        if self.low > self.high or (self.low == self.high and self.closed != "both"):
            raise ParameterError(
                f"{self!r} is empty: no score lies in it. Pass the lower end first."
            )

    def __repr__(self) -> str:
        left = "[" if self.closed in ("both", "left") else "("
        right = "]" if self.closed in ("both", "right") else ")"
        return f"Interval {left}{self.low}, {self.high}{right}"

    def contains(self, scores: FloatArray) -> BoolArray:
        """Whether each score lies in the interval.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            True for scores inside.

        Examples
        --------
        >>> Interval(0.5, 1.0).contains(np.array([0.4, 0.5]))
        array([False,  True])
        """
        above = scores >= self.low if self.closed in ("both", "left") else scores > self.low
        below = scores <= self.high if self.closed in ("both", "right") else scores < self.high
        return above & below

    def shortfall(self, scores: FloatArray) -> FloatArray:
        """Distance of each score to the interval; 0 inside and at the ends.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            Distances; NaN for NaN.

        Examples
        --------
        >>> Interval(0.5, 1.0).shortfall(np.array([0.25, 0.75]))
        array([0.25, 0.  ])
        """
        # A score at an infinite end is inside, although infinity minus infinity is NaN.
        with np.errstate(invalid="ignore"):
            below = np.where(scores < self.low, self.low - scores, 0.0)
            above = np.where(scores > self.high, scores - self.high, 0.0)
        return np.where(np.isnan(scores), np.nan, below + above)

    def margin(self, scores: FloatArray) -> FloatArray:
        """Distance of each score to the nearer finite end; negative outside.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            Signed distances; infinite if both ends are.

        Examples
        --------
        >>> Interval(0.0, 10.0).margin(np.array([1.0, 7.0, 12.0]))
        array([ 1.,  3., -2.])
        """
        # The distance of a score to its own end is 0, also if both are infinite.
        with np.errstate(invalid="ignore"):
            above = np.where(scores == self.low, 0.0, scores - self.low)
            below = np.where(scores == self.high, 0.0, self.high - scores)
        above = above if self.low > -math.inf else np.full_like(above, math.inf)
        below = below if self.high < math.inf else np.full_like(below, math.inf)
        return np.minimum(above, below)


def _fits_float(value: Real) -> bool:
    """Whether a number, infinite or not, is none that is too large for a float."""
    try:
        float(value)
    except OverflowError:
        return False
    return True
