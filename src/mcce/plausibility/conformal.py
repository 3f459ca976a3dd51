"""Conformal calibration: how unusual a row is, compared with held-out accepted rows.

Beyond the paper. Takes several nonconformities of each row, one per part of a model, each on a
scale of its own. A tail says how many held-out rows have one at least as large; one over
this share puts all parts on one scale. A row's p-value is the share of held-out rows of its kind,
with or without a rare level, whose largest part is at least as large. One over that share is the
nonconformity of the whole row.

What holds: for a new accepted row drawn like the n held-out ones of its kind, P(p <= t) is at most
t for every t of at least 1 / (n + 1), up to the error of putting parts on one scale with the same
rows. A row with a rare level gets less than 1 / (n + 1) only if it is more unusual than all
held-out rows of both kinds, by how much more; that few real rows are is an assumption.
What does not: if no row of a kind is held out, or few without a rare level, all are compared with
each other. Nothing is promised of single levels within a kind, or of rows unlike those of training.
And a search looks for rows that pass, so the p-values of answers are not uniform: a limit on them
excludes what is unusual, but among many rows tried, some that pass do so by luck.

Always true: p-values are above 0 and at most 1; beyond the largest held-out value nonconformity
still increases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels import BoolArray, FloatArray, IntArray

# All rows are compared with each other if fewer without a rare level are held out, whose p-values
# would all be above 0.05.
MIN_USUAL = 19
# The nonconformity of a row is no larger than this times the number of rows.
MAX_NONCONFORMITY = 1e250


class Plausibility(NamedTuple):
    """How plausible rows are, one value each: larger p-values for less unusual rows."""

    p_value: FloatArray
    nonconformity: FloatArray


@dataclass(frozen=True, eq=False)
class Tail:
    """The distribution of held-out values."""

    values: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Tail:
        """The distribution of values in any order."""
        return cls(np.sort(values.astype(np.float64)))

    @property
    def largest(self) -> float:
        """The largest held-out value, 0 if there is none."""
        return float(self.values[-1]) if self.values.size else 0.0

    def n_at_least(self, values: FloatArray) -> IntArray:
        """How many held-out values are at least as large as each."""
        n_smaller: IntArray = np.searchsorted(self.values, values, side="left")
        return self.values.size - n_smaller

    def share(self, values: FloatArray) -> FloatArray:
        """Share of all values, the given one included, that are at least as large: a p-value."""
        return (1 + self.n_at_least(values)) / (1 + self.values.size)

    def inverse(self, values: FloatArray) -> FloatArray:
        """One over the share, interpolated, and proportionally more beyond the largest value."""
        upper: IntArray = np.searchsorted(self.values, values, side="left")
        return self._inverse(values, upper - 1, upper)

    def inverse_of_held_out(self, values: FloatArray) -> FloatArray:
        """As :meth:`inverse` for held-out values themselves, each compared with the others."""
        first: IntArray = np.searchsorted(self.values, values, side="left")
        # Without the value itself; of several equal ones, one is left out.
        return self._inverse(values, first - 1, first + 1)

    def _inverse(self, values: FloatArray, lower: IntArray, upper: IntArray) -> FloatArray:
        """The inverse of values between the held-out ones of two ranks."""
        n = self.values.size
        if not n:
            return 1 + values
        below, above = self.values[np.maximum(lower, 0)], self.values[np.minimum(upper, n - 1)]
        return _interpolate(values, lower, upper, below, above, n)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What nonconformities are usual: those of held-out rows."""

    parts: tuple[Tail, ...]
    usual: Tail
    rare: Tail | None

    @classmethod
    def fit(cls, nonconformity: FloatArray, rare: BoolArray) -> Calibration:
        """Learn from held-out rows."""
        parts = tuple(Tail.of(values) for values in nonconformity)
        largest = np.ones(rare.size)
        for tail, values in zip(parts, nonconformity, strict=True):
            largest = np.maximum(largest, tail.inverse_of_held_out(values))
        if not rare.any() or (~rare).sum() < MIN_USUAL:
            return cls(parts, Tail.of(largest), None)
        return cls(parts, Tail.of(largest[~rare]), Tail.of(largest[rare]))

    @property
    def n_held_out(self) -> int:
        """Number of rows it was learned from."""
        return self.usual.values.size + (0 if self.rare is None else self.rare.values.size)

    def __call__(self, nonconformity: FloatArray, rare: BoolArray) -> Plausibility:
        """How plausible rows are; parameters as in :meth:`fit`."""
        return self.compare(self.inverse(nonconformity).max(axis=0, initial=1.0), rare)

    def compare(self, largest: FloatArray, rare: BoolArray) -> Plausibility:
        """How plausible rows are, given the largest inverse over all parts, at least 1."""
        plausibility = Plausibility(self.usual.share(largest), self.usual.inverse(largest))
        if self.rare is not None and rare.any():
            own = largest[rare]
            # Few of a kind cannot make a p-value small, however absurd a row is.
            beyond = max(self.usual.largest, self.rare.largest) / own
            plausibility.p_value[rare] = self.rare.share(own) * np.minimum(beyond, 1.0)
            plausibility.nonconformity[rare] = self.rare.inverse(own)
        return plausibility

    def inverse(self, nonconformity: FloatArray) -> FloatArray:
        """One over the share of held-out rows, by part and row; 1 for 0."""
        inverse, not_0 = np.ones(nonconformity.shape), np.flatnonzero(nonconformity.any(axis=1))
        tails = [self.parts[part] for part in not_0]
        inverse[not_0] = _inverse_of_each(tails, nonconformity[not_0])
        return inverse


def _inverse_of_each(tails: list[Tail], values: FloatArray) -> FloatArray:
    """Inverses of values by tails of equal size, as :meth:`Tail.inverse` of each row."""
    if not tails or not tails[0].values.size:
        return 1 + values
    n = tails[0].values.size
    pairs = zip(tails, values, strict=True)
    upper = np.array([np.searchsorted(tail.values, own, side="left") for tail, own in pairs])
    # Copying the tails would take longer than the rest if rows are few.
    below, above = np.empty(values.shape), np.empty(values.shape)
    for part, tail in enumerate(tails):
        tail.values.take(np.maximum(upper[part] - 1, 0), out=below[part])
        tail.values.take(np.minimum(upper[part], n - 1), out=above[part])
    return _interpolate(values, upper - 1, upper, below, above, n)


def _interpolate(
    values: FloatArray,
    lower: IntArray,
    upper: IntArray,
    below: FloatArray,
    above: FloatArray,
    n: int,
) -> FloatArray:
    """The inverse of values between two of n held-out ones, given their ranks."""
    within = (lower >= 0) & (above > values)
    gap = np.where(within, above - below, 1.0)
    n_at_least = n - upper + np.where(within, (above - values) / gap, 0.0)
    largest = np.where(below > 0, below, 1.0)
    with np.errstate(over="ignore"):
        beyond = np.minimum(values / largest + (below == 0), MAX_NONCONFORMITY)
    return (1 + n) * np.where((upper >= n) & (lower >= 0), beyond, 1 / (1 + n_at_least))
