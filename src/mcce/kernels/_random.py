"""Every random number of step 2, counted rather than streamed.

A draw is a function of (seed, immutable tree codes, draw number, feature position) and of
nothing else, so an answer cannot depend on who else is in the batch, on the order of people, on
blocks or threads. The mixer is the finaliser of SplitMix64 (Steele, Lea and Flood
2014): a bijection of 64-bit words, so different inputs of one step never meet.

``DRAWS_VERSION`` changes whenever a draw does, which ``tests/golden/draws.json`` shows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .structs import Codes, FloatArray, IntArray, WordArray

DRAWS_VERSION = 1

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix(words: WordArray) -> WordArray:
    """Scrambled 64-bit words, one for each word and no two alike.

    Examples
    --------
    >>> [hex(word) for word in mix(np.array([1, 2], np.uint64))]
    ['0x5692161d100b05e5', '0xdbd238973a2b148a']
    """
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def absorb(state: WordArray, words: ArrayLike) -> WordArray:
    """Next state after taking in one word each; broadcasts like addition."""
    return mix((state ^ np.asarray(words).astype(np.uint64)) + _GOLDEN)


def person_keys(seed: int, immutable_codes: Codes) -> WordArray:
    """Random keys, one for each group of people with the same immutable codes.

    Parameters
    ----------
    seed
        The seed.
    immutable_codes : (n_groups, n_immutable)
        Tree codes of the immutable features of each group.

    Returns
    -------
    (n_groups,)
        The keys; each depends on the seed and its group's codes alone.

    Examples
    --------
    >>> keys = person_keys(0, np.array([[1, 2], [1, 2], [0, 2]], np.int32))
    >>> keys[0] == keys[1], keys[0] == keys[2]
    (np.True_, np.False_)
    """
    keys = np.full(immutable_codes.shape[0], np.uint64(seed))
    keys = mix(keys + _GOLDEN)
    for column in immutable_codes.T:
        keys = absorb(keys, column)
    return keys


def draw_keys(keys: WordArray, draws: IntArray) -> WordArray:
    """Random keys, one for each group and draw number.

    Parameters
    ----------
    keys : (n_groups,)
        The key of each group.
    draws : (n_draws,)
        Draw numbers.

    Returns
    -------
    (n_groups, n_draws)
        The keys; each depends on its group's key and its draw number alone.

    Examples
    --------
    >>> draw_keys(np.array([1, 2], np.uint64), np.arange(3)).shape
    (2, 3)
    """
    return absorb(keys[:, None], draws[None, :])


def pick(row_keys: WordArray, position: int, counts: IntArray) -> IntArray:
    """Random numbers from 0 to ``counts`` - 1, for one feature of each row.

    The high 32 bits of the draw are scaled by the count and shifted, without any rounding.

    Parameters
    ----------
    row_keys
        The key of each row, from :func:`draw_keys`.
    position
        Position of the feature among the columns. Different positions give independent numbers.
    counts
        Number of choices for each row, in the shape of ``row_keys``.

    Returns
    -------
    array
        Whole numbers in the shape of ``row_keys``.

    Examples
    --------
    >>> keys = draw_keys(np.array([1], np.uint64), np.arange(5))
    >>> pick(keys, 0, np.full(keys.shape, 10))
    array([[3, 6, 7, 3, 9]])
    """
    high = absorb(row_keys, position) >> np.uint64(32)
    return ((high * counts.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def uniforms(row_keys: WordArray, position: int) -> FloatArray:
    """Random numbers strictly between 0 and 1, one for each row, in the shape of ``row_keys``.

    The high 52 bits of the draw stand for the middle of one of 2**52 equal intervals.

    Parameters
    ----------
    row_keys
        The key of each row, from :func:`draw_keys`.
    position
        Position of the feature among the columns. Different positions give independent numbers.

    Returns
    -------
    array
        Numbers in the shape of ``row_keys``.

    Examples
    --------
    >>> uniforms(draw_keys(np.array([1], np.uint64), np.arange(2)), 0).round(3)
    array([[0.368, 0.652]])
    """
    return ((absorb(row_keys, position) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
