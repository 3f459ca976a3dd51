"""Conformal calibration: how strange a row is, compared with held-out accepted rows.

Beyond the paper. Takes several nonconformities of each row, one per part of a model, each on a
scale of its own. A tail says how many held-out rows have one at least as large; the inverse of
their share is common to all parts. The strangeness of a row is the largest over its parts, and its
p-value the share of held-out rows that are at least as strange.

Always true: a stranger row has no larger p-value; p-values are above 0 and at most 1; beyond the
largest held-out value strangeness still increases.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import BoolArray, FloatArray, IntArray

# Rows with a rare level are compared with their own kind if there are so many of them.
N_RARE = 50


@dataclass(frozen=True, eq=False)
class Tail:
    """The distribution of held-out values.

    Parameters
    ----------
    values
        The held-out values, ascending, at least 0.
    """

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
        """One over the share, and proportionally more for values beyond the largest."""
        beyond = values > self.largest
        excess = np.where(beyond, values, 0.0) / (self.largest or 1.0) + (self.largest == 0)
        return np.where(beyond, (1 + self.values.size) * excess, 1 / self.share(values))


@dataclass(frozen=True, eq=False)
class Calibration:
    """What nonconformities of held-out rows are usual.

    Parameters
    ----------
    parts
        The distribution of each part.
    rare
        The same among rows with a rare level there, by part, if there are enough.
    strangeness
        The distribution of the largest over all parts.
    """

    parts: tuple[Tail, ...]
    rare: dict[int, Tail]
    strangeness: Tail

    @classmethod
    def fit(cls, nonconformity: FloatArray, rare: BoolArray) -> Calibration:
        """Learn from held-out rows.

        Parameters
        ----------
        nonconformity : (n_parts, n_held_out)
            Nonconformities, at least 0.
        rare : (n_parts, n_held_out)
            Whether the row has a rare level there.

        Returns
        -------
        Calibration
        """
        parts = tuple(Tail.of(values) for values in nonconformity)
        own = {
            part: Tail.of(nonconformity[part, here])
            for part, here in enumerate(rare)
            if here.sum() >= N_RARE
        }
        strangeness = _strangeness(parts, own, nonconformity, rare)
        return cls(parts, own, Tail.of(strangeness))

    def __call__(self, nonconformity: FloatArray, rare: BoolArray) -> FloatArray:
        """The strangeness of rows; parameters as in :meth:`fit`."""
        return _strangeness(self.parts, self.rare, nonconformity, rare)

    def p_value(self, strangeness: FloatArray) -> FloatArray:
        """Share of held-out rows that are at least as strange, conservative and never 0."""
        return self.strangeness.share(strangeness)


def _strangeness(
    parts: tuple[Tail, ...], rare: dict[int, Tail], nonconformity: FloatArray, is_rare: BoolArray
) -> FloatArray:
    largest = np.ones(nonconformity.shape[1])
    for part, (tail, values) in enumerate(zip(parts, nonconformity, strict=True)):
        inverse = tail.inverse(values)
        if part in rare:
            # Larger than all of its own kind, a value counts as it does among all rows.
            usual = is_rare[part] & (values <= rare[part].largest)
            inverse[usual] = np.minimum(inverse, rare[part].inverse(values))[usual]
        largest = np.maximum(largest, inverse)
    return largest
