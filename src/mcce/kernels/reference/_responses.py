"""What a tree predicts: numbers by squared error, levels by Gini.

Always true: all sums are integers, so the order of rows changes nothing; gains are float64 by two
formulas that treat left and right alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._types import Codes, FloatArray, IntArray

SUM_BITS = 62


class Response(Protocol):
    """What a node wants to be pure in; implementations below."""

    def take(self, rows: IntArray) -> Response: ...
    def is_pure(self) -> bool: ...
    def n_classes_present(self) -> int: ...
    def level_means(self, order: IntArray, starts: IntArray) -> FloatArray: ...
    def gains(self, order: IntArray, n_left: IntArray) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numeric response: squared error over fixed-point integers."""

    units: IntArray

    def take(self, rows: IntArray) -> Numbers:
        return Numbers(self.units[rows])

    def is_pure(self) -> bool:
        return bool((self.units == self.units[0]).all())

    def n_classes_present(self) -> int:
        return 0

    def level_means(self, order: IntArray, starts: IntArray) -> FloatArray:
        """Mean response of each level, measured from the node's floor mean."""
        sums = np.add.reduceat(self._centred()[order], starts)
        return sums / (np.append(starts[1:], order.size) - starts)

    def gains(self, order: IntArray, n_left: IntArray) -> FloatArray:
        """Fall of squared error: (mean left - mean right)^2 * (n_left * n_right / n)."""
        sums = np.cumsum(self._centred()[order])
        n_right = order.size - n_left
        left = sums[n_left - 1]
        gap = left / n_left - (sums[-1] - left) / n_right
        return (gap * gap) * (n_left.astype(np.float64) * n_right / order.size)

    def _centred(self) -> IntArray:
        # Exact: n_train * max|units| < 2^62 leaves room for one subtraction of the mean.
        return self.units - self.units.sum() // self.units.size


@dataclass(frozen=True, slots=True)
class Classes:
    """Categorical response: Gini over class counts."""

    classes: IntArray
    n_classes: int

    def take(self, rows: IntArray) -> Classes:
        return Classes(self.classes[rows], self.n_classes)

    def is_pure(self) -> bool:
        return bool((self.classes == self.classes[0]).all())

    def n_classes_present(self) -> int:
        return np.unique(self.classes).size

    def level_means(self, order: IntArray, starts: IntArray) -> FloatArray:
        """Share in each level of the second of two classes, or of the node's most frequent."""
        target = 1 if self.n_classes == 2 else np.argmax(np.bincount(self.classes))
        hits = (self.classes[order] == target).astype(np.int64)
        return np.add.reduceat(hits, starts) / (np.append(starts[1:], order.size) - starts)

    def gains(self, order: IntArray, n_left: IntArray) -> FloatArray:
        """Fall of n * Gini: Q_left / n_left + Q_right / n_right - Q / n, Q = sum of counts^2.

        A row that goes left when ``seen`` of its class stand there already adds 2 seen + 1 to
        Q_left, so no array has a side for the classes, however many there are.
        """
        classes = self.classes[order]
        totals = np.bincount(classes, minlength=self.n_classes)
        squares_left = np.cumsum(2 * times_seen_before(classes) + 1)[n_left - 1]
        cross = np.cumsum(totals[classes])[n_left - 1]
        squares = (totals * totals).sum()
        squares_right = squares - 2 * cross + squares_left
        n_right = order.size - n_left
        return squares_left / n_left + squares_right / n_right - squares / order.size


def fixed_point(values: FloatArray) -> IntArray:
    """Values as centred integers, scaled by a power of two so that any sum of them fits.

    Examples
    --------
    >>> units = fixed_point(np.array([1.0, 2.0, 4.0]))
    >>> (units - units[0]) // (units[1] - units[0])
    array([0, 1, 3])
    """
    low, high = values.min(), values.max()
    centred = values - (low + (high - low) / 2)
    largest = float(np.abs(centred).max())
    if largest == 0.0:
        return np.zeros(values.size, dtype=np.int64)
    exponent = SUM_BITS - 1 - values.size.bit_length() - math.frexp(largest)[1]
    return np.rint(np.ldexp(centred, exponent)).astype(np.int64)


def run_ends(ascending: IntArray | Codes) -> IntArray:
    """How many entries stand before each change of value."""
    return np.flatnonzero(ascending[1:] != ascending[:-1]) + 1


def times_seen_before(classes: IntArray) -> IntArray:
    """How many earlier rows are of the same class."""
    order = np.argsort(classes, kind="stable")
    starts = np.append(0, run_ends(classes[order]))
    lengths = np.append(starts[1:], classes.size) - starts
    seen = np.empty(classes.size, dtype=np.int64)
    seen[order] = np.arange(classes.size) - np.repeat(starts, lengths)
    return seen
