"""Random noise for differential privacy: whole numbers, drawn exactly from random bits.

Noise that is computed from rounded logarithms gives away what it should hide (Mironov 2012). So
everything here is integer arithmetic on random 64-bit words, after Canonne, Kamath and Steinke
(2020): coins that fall with probability exp(-a/b), and from them two-sided geometric noise. Many
draws are made at once.

Always true: without a seed the words come from the operating system, and nothing keeps them.
"""

from __future__ import annotations

import math
import os

import numpy as np

from ..errors import ParameterError
from ..kernels import BoolArray, IntArray, WordArray

# Rates are rounded down to this many significant bits, so that noise is never too small.
BITS = 20


class RandomWords:
    """Random 64-bit words.

    Examples
    --------
    >>> RandomWords(0).take(3).dtype
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
        >>> sorted(set(RandomWords(0).below(3, 100).tolist()))
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


def add_noise(counts: IntArray, epsilon: float, words: RandomWords) -> IntArray:
    """Counts with noise for an epsilon; one row changes one count by one.

    Examples
    --------
    >>> add_noise(np.array([0, 3]), float("inf"), RandomWords(0))
    array([0, 3])
    """
    return counts if math.isinf(epsilon) else counts + geometric(words, epsilon, counts.size)


def geometric(words: RandomWords, rate: float, n: int) -> IntArray:
    """Two-sided geometric noise: z with probability proportional to exp(-rate * abs(z)).

    Examples
    --------
    >>> geometric(RandomWords(0), 1.0, 5).tolist()
    [0, 0, -1, 0, -1]
    """
    above, below = rate_of(rate)
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


def exponential_coins(words: RandomWords, above: IntArray, below: int) -> BoolArray:
    """For each fraction a/b from 0 to below 1 a coin that is True with probability exp(-a/b).

    The parity of the first of ever rarer coins, of probabilities a/b, a/2b, a/3b, ..., to fail.
    """
    return _parity(words, above, below, n_certain=0)


def _run_lengths(words: RandomWords, n: int) -> IntArray:
    """How many coins of exp(-1) are True before the first that is not."""
    lengths = np.zeros(n, dtype=np.int64)
    waiting = np.arange(n)
    while waiting.size:
        # Of a fraction of 1, the first of the ever rarer coins is certain.
        waiting = waiting[_parity(words, np.ones(waiting.size, dtype=np.int64), 1, n_certain=1)]
        lengths[waiting] += 1
    return lengths


def _parity(words: RandomWords, above: IntArray, below: int, *, n_certain: int) -> BoolArray:
    odd = np.zeros(above.size, dtype=bool)
    waiting, tossed = np.arange(above.size), n_certain
    # 50 in a row have a probability of less than 1 / 50!, which no word can show.
    while waiting.size and tossed < 50:
        tossed += 1
        odd[waiting] = tossed % 2 == 1
        waiting = waiting[words.below(below * tossed, waiting.size) < above[waiting]]
    return odd
