"""Random noise for differential privacy: whole numbers, drawn exactly from random bits.

Noise that is computed from rounded logarithms gives away what it should hide (Mironov 2012). So
everything here is integer arithmetic on random 64-bit words, after Canonne, Kamath and Steinke
(2020): a coin that falls with probability exp(-a/b), from it two-sided geometric and discrete
Gaussian noise, and the choice of the exponential mechanism. Many draws are made at once.

Always true: without a seed the words come from the operating system, and nothing keeps them.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np

from ..errors import ParameterError
from ..kernels import BoolArray, IntArray, WordArray

# Rates are rounded down to so many significant bits: never less noise than was paid for.
BITS = 20
# The widest discrete Gaussian whose coin still fits in 64 bits.
MOST_SIGMA = 2048
# Beyond so many times sigma a discrete Gaussian has a mass of less than exp(-800).
FARTHEST = 40
# Choices that are proposed at once for one draw, and for each of many.
PROPOSALS, FEW = 32, 4


class Words:
    """Random 64-bit words.

    Examples
    --------
    >>> Words(0).take(3).dtype
    dtype('uint64')
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = None if seed is None else np.random.PCG64(seed)

    def take(self, n: int) -> WordArray:
        """The next words."""
        if self._random is None:
            return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        return self._random.random_raw(n)

    def below(self, bound: int, n: int) -> IntArray:
        """Uniform numbers from 0 to a bound - 1, without any bias.

        Examples
        --------
        >>> sorted(set(Words(0).below(3, 100).tolist()))
        [0, 1, 2]
        """
        drawn = self.take(n)
        # The last, incomplete cycle of remainders is drawn again.
        rest = 2**64 % bound
        if rest:
            drawn = drawn.copy()
            while (over := drawn >= np.uint64(2**64 - rest)).any():
                drawn[over] = self.take(int(over.sum()))
            return (drawn % np.uint64(bound)).astype(np.int64)
        return (drawn & np.uint64(bound - 1)).astype(np.int64)


def exponential_coins(words: Words, above: IntArray, below: int) -> BoolArray:
    """For each fraction a/b >= 0 a coin that is True with probability exp(-a/b)."""
    left, part = np.divmod(above.ravel(), below)
    falls = np.ones(left.size, dtype=bool)
    # A coin of exp(-1) for each whole one; most have failed after a few.
    waiting = np.flatnonzero(left)
    while waiting.size:
        falls[waiting] = _unit_coins(words, waiting.size)
        left[waiting] -= 1
        waiting = waiting[falls[waiting] & (left[waiting] > 0)]
    rest = np.flatnonzero(falls)
    falls[rest] = _small_coins(words, part[rest], below)
    return falls


def _small_coins(words: Words, above: IntArray, below: int) -> BoolArray:
    """The same of fractions below 1: the parity of the first of ever rarer coins to fail."""
    odd = np.zeros(above.size, dtype=bool)
    waiting, tossed = np.arange(above.size), 0
    # 50 in a row have a probability of less than 1 / 50!, which no word can show.
    while waiting.size and tossed < 50:
        tossed += 1
        odd[waiting] = tossed % 2 == 1
        waiting = waiting[words.below(below * tossed, waiting.size) < above[waiting]]
    return odd


def _unit_coins(words: Words, n: int) -> BoolArray:
    """Coins of exp(-1)."""
    odd = np.zeros(n, dtype=bool)
    # The first of the ever rarer coins is certain.
    waiting, tossed = np.arange(n), 1
    while waiting.size and tossed < 50:
        tossed += 1
        odd[waiting] = tossed % 2 == 1
        waiting = waiting[words.below(tossed, waiting.size) == 0]
    return odd


def rate_of(value: float) -> tuple[int, int]:
    """A positive number as a fraction a/b with b a power of two, rounded down to ``BITS`` bits.

    Examples
    --------
    >>> rate_of(0.5), rate_of(3.0)
    ((524288, 1048576), (786432, 262144))
    """
    exponent = BITS - math.frexp(value)[1]
    if not 0 <= exponent <= 45:
        raise ParameterError(
            f"The budget leaves a rate of {value:g} for one part, which is not between 1e-7 and "
            "1e6. Pass another epsilon."
        )
    return int(value * 2.0**exponent), 2**exponent


def geometric(words: Words, rate: float, n: int) -> IntArray:
    """Two-sided geometric noise: z with probability proportional to exp(-rate * abs(z)).

    Examples
    --------
    >>> geometric(Words(0), 1.0, 5).tolist()
    [0, 0, -1, 0, -1]
    """
    return _geometric(words, *rate_of(rate), n)


def _geometric(words: Words, above: int, below: int, n: int) -> IntArray:
    noise = np.empty(n, dtype=np.int64)
    waiting = np.arange(n)
    while waiting.size:
        # exp(-x / below) of a whole x, by its remainder and its whole part.
        part = words.below(below, waiting.size)
        kept = exponential_coins(words, part, below)
        at, part = waiting[kept], part[kept]
        size = (part + below * _run_lengths(words, at.size)) // above
        negative = words.below(2, at.size) == 1
        # Zero has one sign.
        good = ~(negative & (size == 0))
        noise[at[good]] = np.where(negative, -size, size)[good]
        waiting = np.concatenate([waiting[~kept], at[~good]])
    return noise


def _run_lengths(words: Words, n: int) -> IntArray:
    """How many coins of exp(-1) fall before one does not."""
    lengths = np.zeros(n, dtype=np.int64)
    waiting = np.arange(n)
    while waiting.size:
        waiting = waiting[_unit_coins(words, waiting.size)]
        lengths[waiting] += 1
    return lengths


def gaussian(words: Words, variance: Fraction, n: int) -> IntArray:
    """Discrete Gaussian noise: z with probability proportional to exp(-z**2 / (2 variance)).

    Examples
    --------
    >>> gaussian(Words(0), Fraction(4), 5).tolist()
    [-3, 1, 1, -2, 3]
    """
    a, b = variance.numerator, variance.denominator
    scale = math.isqrt(int(variance)) + 1
    noise = np.empty(n, dtype=np.int64)
    waiting = np.arange(n)
    while waiting.size:
        drawn = _geometric(words, 1, scale, waiting.size)
        near = np.abs(drawn) <= FARTHEST * scale
        # (abs(z) - variance / scale)**2 / (2 variance), as whole numbers.
        gap = np.abs(np.where(near, drawn, 0)) * (b * scale) - a
        kept = near & exponential_coins(words, gap**2, 2 * a * b * scale**2)
        noise[waiting[kept]] = drawn[kept]
        waiting = waiting[~kept]
    return noise


def variance_of(sigma: float) -> Fraction:
    """Sigma squared, rounded up to a fraction that :func:`gaussian` can use.

    Examples
    --------
    >>> variance_of(2.0), variance_of(300.5)
    (Fraction(4, 1), Fraction(90301, 1))
    """
    if not 0 < sigma <= MOST_SIGMA:
        raise ParameterError(
            f"The budget asks for Gaussian noise of standard deviation {sigma:g}, which is not "
            f"between 0 and {MOST_SIGMA}. Pass another epsilon or delta."
        )
    # Finer where a step of one would matter.
    parts = 1 if sigma > 64 else 64 if sigma > 2 else 1024
    return Fraction(math.ceil(sigma**2 * parts), parts)


def choose(words: Words, utilities: IntArray, rate: float, n: int) -> IntArray:
    """Positions drawn with probability proportional to exp(rate * utility).

    Examples
    --------
    >>> choose(Words(0), np.array([0, 50, 0]), 1.0, 4).tolist()
    [1, 1, 1, 1]
    """
    if math.isinf(rate):
        return np.full(n, int(np.argmax(utilities)))
    above, below = rate_of(rate)
    lacks = (utilities.max() - utilities).astype(np.int64)
    chosen = np.full(n, -1)
    while (waiting := np.flatnonzero(chosen < 0)).size:
        # Several proposals at once, each accepted by its own coin; the first accepted one counts.
        n_each = PROPOSALS if waiting.size < PROPOSALS else FEW
        proposed = words.below(utilities.size, waiting.size * n_each).reshape(-1, n_each)
        taken = exponential_coins(words, lacks[proposed] * above, below).reshape(proposed.shape)
        first = np.argmax(taken, axis=1)
        some = taken.any(axis=1)
        chosen[waiting[some]] = proposed[some, first[some]]
    return chosen
