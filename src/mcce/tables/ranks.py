"""Ranks of cells among the distinct values of their column: the codes of training rows.

Always true: equal cells have equal ranks; which of the two ways below is taken changes nothing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..kernels import Codes, IntArray

# Numbers of so many rows are sorted, if more than this share of some of them are distinct: a table
# of as many values as there are rows would fit in no cache.
MANY_ROWS, SOME, DISTINCT = 10_000, 1_000, 0.9


def rank_cells(cells: np.ndarray) -> tuple[Codes, IntArray]:
    """Rank of each number, and the row in which each distinct one first occurs.

    Examples
    --------
    >>> codes, first = rank_cells(np.array([30, 10, 30]))
    >>> codes.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    some = cells[:: cells.size // SOME + 1]
    if cells.size >= MANY_ROWS and np.unique(some).size > DISTINCT * some.size:
        return rank_by_sorting(cells)
    numbers, values = pd.factorize(cells)
    return rank_numbered(numbers, np.argsort(values))


def rank_by_sorting(cells: np.ndarray) -> tuple[Codes, IntArray]:
    """The same of at least one number, without a table of the distinct ones.

    Examples
    --------
    >>> codes, first = rank_by_sorting(np.array([30, 10, 30]))
    >>> codes.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    order = np.argsort(cells)
    ascending = cells[order]
    is_new = np.ones(cells.size, dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    codes = np.empty(cells.size, dtype=np.int32)
    codes[order] = np.cumsum(is_new, dtype=np.int32) - np.int32(1)
    return codes, np.minimum.reduceat(order, np.flatnonzero(is_new))


def rank_numbered(numbers: IntArray, order: IntArray) -> tuple[Codes, IntArray]:
    """Ranks of values that are numbered as they occur, given the order of the numbers.

    Examples
    --------
    >>> codes, first = rank_numbered(np.array([0, 1, 0]), np.array([1, 0]))
    >>> codes.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size)
    return rank[numbers], _first_of_each(numbers)[order]


def _first_of_each(numbers: IntArray) -> IntArray:
    """Position at which each number first occurs; new numbers count up from 0."""
    highest = np.maximum.accumulate(numbers)
    is_new = np.ones(numbers.size, dtype=bool)
    np.not_equal(highest[1:], highest[:-1], out=is_new[1:])
    return np.flatnonzero(is_new)
