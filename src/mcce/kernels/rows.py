"""Rows in NumPy: how cells differ, and rows sorted, looked up and counted.

Step 3, paper, section "Post-processing". In Gower's distance a number differs from another by their
distance over the training range, a level by 1, and a cell from one that is missing by 1.
"""

from __future__ import annotations

import numpy as np

from .structs import (
    BoolArray,
    Codes,
    Comparison,
    FloatArray,
    Int32Array,
    IntArray,
)

# The coordinate of a missing number; if a gap is larger than the second, one of the two is missing.
MISSING, MISSING_GAP = 1e308, 5e307


def changed_places(comparison: Comparison) -> list[int]:
    """Places of the features in which some candidate differs from its person."""
    pairs = zip(comparison.codes, comparison.own_codes[:, :, None], strict=True)
    changed = [bool((codes[comparison.group] != own).any()) for codes, own in pairs]
    return np.flatnonzero(changed).tolist()


def differences(comparison: Comparison, place: int) -> tuple[BoolArray, FloatArray]:
    """Whether each candidate's cell differs from the person's own, and by how much (Gower).

    Numeric cells differ by their distance over the training range; categorical ones, constant
    ones and those with one side missing by 1.

    Parameters
    ----------
    comparison
        The candidates of a block of people: ``candidates.comparison``.
    place
        Place of the feature among the mutable ones.

    Returns
    -------
    changed : (n_people, n_draws)
        Whether the cell differs.
    gap : (n_people, n_draws)
        By how much.

    Examples
    --------
    One person has the value 20 and two candidates, 20 and 25, of a feature with range 10:

    >>> comparison = Comparison(
    ...     codes=np.array([[[0, 1]]]),
    ...     numbers=[np.array([20.0, 25.0])],
    ...     own_codes=np.array([[0]]),
    ...     own_numbers=np.array([[20.0]]),
    ...     spreads=np.array([10.0]),
    ...     group=np.array([0]),
    ...     n_features=1,
    ... )
    >>> differences(comparison, 0)
    (array([[False,  True]]), array([[0. , 0.5]]))
    """
    codes = comparison.codes[place][comparison.group]
    changed = codes != comparison.own_codes[place][:, None]
    table = comparison.numbers[place]
    numbers = None if table is None else table[codes]
    own = comparison.own_numbers[place][:, None]
    return changed, gower_gap(numbers, own, comparison.spreads[place], changed)


def gower_gap(
    numbers: FloatArray | None,
    own_numbers: FloatArray | float | None,
    spread: FloatArray | float,
    differs: BoolArray,
) -> FloatArray:
    """By how much cells of one feature differ, in shares of the training range.

    The arrays are broadcast against each other; without numbers the result has the shape of
    ``differs``.

    Examples
    --------
    >>> gower_gap(np.array([20.0, 30.0, np.nan]), 20.0, 40.0, np.array([False, True, True]))
    array([0.  , 0.25, 1.  ])
    >>> gower_gap(None, None, 0.0, np.array([False, True]))
    array([0., 1.])
    """
    if numbers is None or own_numbers is None:
        return differs.astype(np.float64)
    with np.errstate(over="ignore"):
        gap = np.abs(numbers - own_numbers) / spread
    return np.where(differs, np.where(np.isnan(gap), 1.0, gap), 0.0)


def scaled_gap(numbers: FloatArray, own_number: FloatArray | float) -> FloatArray:
    """Differences of numbers that are scaled by their training range, 1 if only one is missing.

    Parameters
    ----------
    numbers, own_number
        Cells of ``EncodedRows.points``, where a missing number is 1e308.

    Returns
    -------
    array

    Examples
    --------
    >>> scaled_gap(np.array([0.25, 1e308]), 0.5)
    array([0.25, 1.  ])
    """
    gap = np.abs(numbers - own_number)
    return np.where(gap > MISSING_GAP, 1.0, gap)


def with_decision(codes: Codes, is_desired: BoolArray) -> Codes:
    """The decision as one more column, after all features."""
    return np.vstack([codes, is_desired[None, :].astype(np.int32)])


def rows_as_bytes(codes: Codes) -> np.ndarray:
    """Each row as one opaque value that can be sorted and looked up, shape (n_rows,)."""
    rows = np.ascontiguousarray(codes)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()


def sort_rows(codes: Codes) -> IntArray:
    """Rows by their codes of shape (n_columns, n_rows): by the last column, then the one before.

    As ``np.lexsort(codes)``; most often the last columns, as one number, tell all rows apart.

    Examples
    --------
    >>> sort_rows(np.array([[1, 0, 0], [1, 2, 0]], dtype=np.int32))
    array([2, 0, 1])
    """
    key, n_joined, room = np.zeros(codes.shape[1], dtype=np.uint64), 0, 2**64
    for column in codes[::-1]:
        low = column.min(initial=0)
        size = int(column.max(initial=0)) - int(low) + 1
        if size > room:
            break
        key = key * np.uint64(size) + (column - low).astype(np.uint64)
        n_joined, room = n_joined + 1, room // size
    order: IntArray = np.argsort(key)
    ascending = key[order]
    if (ascending[1:] != ascending[:-1]).all():
        return order
    return np.argsort(key, kind="stable") if n_joined == len(codes) else np.lexsort(codes)


def run_ends(ascending: IntArray | Int32Array) -> IntArray:
    """How many entries stand before each change of value."""
    return np.flatnonzero(ascending[1:] != ascending[:-1]) + 1


def times_seen_before(classes: IntArray | Int32Array) -> IntArray:
    """How many earlier entries are of the same class.

    Examples
    --------
    >>> times_seen_before(np.array([7, 3, 7, 7, 3]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(classes, kind="stable")
    starts = np.append(0, run_ends(classes[order]))
    lengths = np.append(starts[1:], classes.size) - starts
    seen = np.empty(classes.size, dtype=np.int64)
    seen[order] = np.arange(classes.size) - np.repeat(starts, lengths)
    return seen
