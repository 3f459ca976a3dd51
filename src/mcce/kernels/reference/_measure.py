"""A distance that is a sum over features, of what is known of each cell.

Step 3, for distances other than Gower's. A feature has an axis: numbers, points that stand for
values, or nothing but whether two cells differ. Callers place people and candidates on the axes
once, by code, so that what is left is the same for all such distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from ._rank import Comparison


@dataclass(frozen=True)
class Summation:
    """How the gaps of features make a distance.

    Parameters
    ----------
    squared
        Whether it is the root of the sum of squared gaps, rather than their sum.
    city_block
        Whether the gap of a feature with several dimensions is the sum over them.
    mean
        Whether it is the mean over features, rather than the sum.
    ignores_missing
        Whether features in which either side is missing are left out.

    Examples
    --------
    >>> Summation(squared=True).mean
    False
    """

    squared: bool = False
    city_block: bool = False
    mean: bool = False
    ignores_missing: bool = False


@dataclass(frozen=True, eq=False)
class Measure:
    """Where the cells of a :class:`Comparison` are on the axes of a distance."""

    places: Sequence[FloatArray | None]
    own_places: Sequence[FloatArray | None]
    spreads: FloatArray
    weights: FloatArray
    n_present: FloatArray
    how: Summation

    def of(self, people: IntArray) -> Measure:
        """The same for some of the people."""
        own = [None if places is None else places[people] for places in self.own_places]
        return replace(self, own_places=own, n_present=self.n_present[people])


def measure(comparison: Comparison, axes: Measure) -> FloatArray:
    """Distance of each candidate to its person, shape (n_people, n_draws).

    A mean over no feature at all is infinite, unless the candidate equals the person.

    Examples
    --------
    A person with the value 20 has the candidates 20 and 25, of a feature that is divided by 10:

    >>> from mcce.kernels import Comparison
    >>> comparison = Comparison(
    ...     codes=np.array([[[0, 1]]]),
    ...     numbers=[np.array([20.0, 25.0])],
    ...     own_codes=np.array([[0]]),
    ...     own_numbers=np.array([[20.0]]),
    ...     spreads=np.array([10.0]),
    ...     group=np.array([0]),
    ...     n_features=1,
    ... )
    >>> table, own = np.array([[20.0], [25.0]]), np.array([[20.0]])
    >>> axes = Measure([table], [own], np.array([10.0]), *np.ones((2, 1)), Summation())
    >>> measure(comparison, axes)
    array([[0. , 0.5]])
    """
    total = Total(axes.how, (comparison.group.size, comparison.codes.shape[2]))
    for feature in comparison.changed_features:
        codes = comparison.codes[feature][comparison.group]
        differs = codes != comparison.own_codes[feature][:, None]
        table, own = axes.places[feature], axes.own_places[feature]
        # A code of -1, a person's own value that has no place in the table, never differs.
        places = None if table is None else table[codes]
        own = None if own is None else own[:, None]
        total.add(differs, places, own, axes.spreads[feature], axes.weights[feature])
    return total.distance(axes.n_present[:, None])


class Total:
    """The sum over features, one added after the other."""

    def __init__(self, how: Summation, shape: tuple[int, ...]) -> None:
        self.how = how
        self.sum, self.lost = np.zeros(shape), np.zeros(shape)
        self.changed: BoolArray = np.zeros(shape, dtype=bool)

    def add(
        self,
        differs: BoolArray,
        places: FloatArray | None,
        own: FloatArray | None,
        spread: float,
        weight: float,
    ) -> None:
        """Add one feature."""
        self.changed |= differs
        if places is None or own is None:
            self.sum += np.where(differs, weight, 0.0)
            return
        with np.errstate(over="ignore"):
            part = self._part(np.abs(places - own), spread)
            absent = np.isnan(part)
            part = weight * np.where(absent, 0.0 if self.how.ignores_missing else 1.0, part)
        self.sum += np.where(differs, part, 0.0)
        if self.how.ignores_missing:
            self.lost += differs & np.isnan(places[..., 0]) & ~np.isnan(own[..., 0])

    def distance(self, n_present: FloatArray) -> FloatArray:
        """The distances; ``n_present`` is as in :class:`Measure`."""
        total = np.sqrt(self.sum) if self.how.squared else self.sum
        if not self.how.mean:
            return total
        counted = n_present - self.lost
        mean = total / np.maximum(counted, 1.0)
        return np.where(counted > 0, mean, np.where(self.changed, np.inf, 0.0))

    def _part(self, gaps: FloatArray, spread: float) -> FloatArray:
        """What one feature adds, from the differences of the coordinates; NaN for missing."""
        first = gaps[..., 0]
        if gaps.shape[-1] == 2:
            second = gaps[..., 1]
            if not self.how.city_block:
                return first * first + second * second
            gap = first + second
        else:
            gap = first / spread if spread > 0 else 1.0 + first
        return gap * gap if self.how.squared else gap
