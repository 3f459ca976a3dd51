"""Draws of latent normal numbers one after another, each given those before it.

The numbers behind the immutable features and the decision are drawn from their intervals: one after
the other first, then by sweeps of Gibbs sampling, which make them a draw from their distribution
given all intervals. With one interval the first draw is exact; otherwise the error falls
geometrically with the sweeps. The numbers of the mutable features follow exactly.

Always true: a row's numbers depend on its key, its intervals and nothing else, to the last bit;
sums are written out, because a matrix product may depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcce.caching import cached_property
from mcce.kernels import (
    BoolArray,
    FloatArray,
    WordArray,
    uniforms,
)

from .normal import ppf, within

# The ends of an interval for each row.
Bounds = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Normal numbers with mean 0 and variance 1, of which the first ones are given.

    Parameters
    ----------
    correlations : (n_latents, n_latents)
        Their correlations, positive definite.
    n_given
        How many of them, the first ones, are known by intervals.
    """

    correlations: FloatArray
    n_given: int

    @cached_property
    def factor(self) -> FloatArray:
        """The lower Cholesky factor."""
        return np.asarray(np.linalg.cholesky(self.correlations), dtype=np.float64)

    @cached_property
    def precision(self) -> FloatArray:
        """The inverse correlations of those that are given."""
        given = self.correlations[: self.n_given, : self.n_given]
        return np.asarray(np.linalg.inv(given), dtype=np.float64)


class LatentRows:
    """The latent numbers of some rows, drawn from the first to the last.

    Parameters
    ----------
    gaussian
        Their distribution.
    row_keys : (n_rows,)
        The random key of each row.
    first_word
        Position of the first random word of a row that may be used.

    Attributes
    ----------
    mass : (n_rows,)
        The product of the probabilities of the intervals drawn from so far, each given the numbers
        before it.
    """

    def __init__(self, gaussian: Gaussian, row_keys: WordArray, first_word: int) -> None:
        self.gaussian, self.row_keys, self.first_word = gaussian, row_keys, first_word
        # The numbers in units of their spread given those before, from their mean.
        self.steps: list[FloatArray] = []
        self.mass = np.ones(row_keys.size)

    def mean(self, at: int) -> FloatArray:
        """The mean of a number given those before it."""
        total = np.zeros(self.row_keys.size)
        for weight, step in zip(self.gaussian.factor[at, :at].tolist(), self.steps, strict=False):
            if weight:
                total = total + weight * step
        return total

    def spread(self, at: int) -> float:
        """The standard deviation of a number given those before it."""
        return float(self.gaussian.factor[at, at])

    def draw(self, at: int, runs: Sequence[Bounds] | None) -> tuple[FloatArray, BoolArray]:
        """A number of each row within one of several intervals, and whether it was possible.

        Parameters
        ----------
        at
            Which number; those before it have been drawn. Those after it are forgotten.
        runs
            The ends of intervals that do not overlap, ascending, empty ones last; None for any
            number.
        """
        mean, spread = self.mean(at), self.spread(at)
        if runs is None:
            step = ppf(uniforms(self.row_keys, self.first_word + at))
            self.steps[at:] = [step]
            return mean + spread * step, np.ones(step.size, dtype=bool)
        scaled = [((low - mean) / spread, (high - mean) / spread) for low, high in runs]
        u = uniforms(self.row_keys, self.first_word + at)
        step, mass = within_runs(scaled, u)
        self.mass = self.mass * mass
        self.steps[at:] = [step]
        return mean + spread * step, mass > 0

    def settle(self, bounds: Sequence[Bounds], n_sweeps: int) -> None:
        """Draw the numbers that are given, all of them given all intervals.

        Parameters
        ----------
        bounds
            The interval of each of them.
        n_sweeps
            How often each is drawn again given the others.
        """
        numbers = [self.draw(at, [ends])[0] for at, ends in enumerate(bounds)]
        if len(bounds) < 2:
            return
        precision, n_latents = self.gaussian.precision, len(self.gaussian.correlations)
        for sweep in range(1, n_sweeps + 1):
            for at, (low, high) in enumerate(bounds):
                spread = 1.0 / np.sqrt(precision[at, at])
                mean = np.zeros(self.row_keys.size)
                for other, number in enumerate(numbers):
                    if other != at:
                        mean = mean - (precision[at, other] / precision[at, at]) * number
                u = uniforms(self.row_keys, self.first_word + sweep * n_latents + at)
                step = within((low - mean) / spread, (high - mean) / spread, u)[0]
                numbers[at] = mean + spread * step
        self.steps = []
        for at, number in enumerate(numbers):
            self.steps.append((number - self.mean(at)) / self.spread(at))


def within_runs(runs: Sequence[Bounds], u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard normal numbers within one of several intervals, and the probability of all.

    Parameters
    ----------
    runs
        The ends of intervals that do not overlap, ascending.
    u : (n,)
        Uniform numbers.
    """
    if len(runs) == 1:
        return within(*runs[0], u)
    masses = np.array([within(low, high, u)[1] for low, high in runs])
    reached = np.cumsum(masses, axis=0)
    before, total = np.vstack([np.zeros_like(u), reached[:-1]]), reached[-1]
    aim = u * total
    chosen = np.maximum((aim >= before).sum(axis=0) - 1, 0)
    rows = np.arange(u.size)
    low, high = (np.array([run[end] for run in runs])[chosen, rows] for end in (0, 1))
    mass = masses[chosen, rows]
    share = (aim - before[chosen, rows]) / np.where(mass > 0, mass, 1.0)
    share = np.clip(share, 2.0**-53, 1 - 2.0**-53)
    # Of one interval and empty ones it is what it would be without these, to the last bit.
    return within(low, high, np.where(mass == total, u, share))[0], total
