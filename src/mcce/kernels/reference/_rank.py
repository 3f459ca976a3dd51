"""Step 3's inner loops: what each candidate costs each person, and which come first.

Paper, section "Post-processing". People of one group share their candidates; every array of
people and candidates has the shape (n_people, n_draws).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...caching import cached_property
from .._types import BoolArray, Codes, FloatArray, IntArray
from ._gower import gower_gap
from ._measure import Measure, measure


@dataclass(frozen=True, eq=False)
class Comparison:
    """The mutable features of a block of people and of their candidates, in column order."""

    codes: Codes
    numbers: Sequence[FloatArray | None]
    own_codes: Codes
    own_numbers: FloatArray
    spreads: FloatArray
    group: IntArray
    n_features: int

    @cached_property
    def changed_features(self) -> list[int]:
        """The features in which some candidate differs from the person."""
        pairs = zip(self.codes, self.own_codes[:, :, None], strict=True)
        changed = [bool((codes[self.group] != own).any()) for codes, own in pairs]
        return np.flatnonzero(changed).tolist()

    def of(self, people: IntArray) -> Comparison:
        """The same for some of the people."""
        return replace(
            self,
            own_codes=self.own_codes[:, people],
            own_numbers=self.own_numbers[:, people],
            group=self.group[people],
        )


@dataclass(frozen=True, eq=False)
class Listing:
    """The best candidates of each person, best first, each array of shape (n_people, n_best).

    Entries beyond a person's ``n_allowed`` are 0 and mean nothing.
    """

    draw: Codes
    sparsity: Codes
    distance: FloatArray
    gower: FloatArray
    n_allowed: IntArray


def differences(comparison: Comparison, feature: int) -> tuple[BoolArray, FloatArray]:
    """Whether each candidate's cell differs from the person's own, and by how much (Gower).

    Numeric cells differ by their distance over the training range; categorical ones, constant
    ones and those with one side missing by 1.

    Parameters
    ----------
    comparison
        The candidates of a block of people: ``candidates.comparison``.
    feature
        Number of the feature among the mutable ones.

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
    codes = comparison.codes[feature][comparison.group]
    changed = codes != comparison.own_codes[feature][:, None]
    table = comparison.numbers[feature]
    numbers = None if table is None else table[codes]
    own = comparison.own_numbers[feature][:, None]
    return changed, gower_gap(numbers, own, comparison.spreads[feature], changed)


def rank(
    comparison: Comparison,
    allowed: BoolArray,
    *,
    rank_by: Sequence[str],
    n_best: int,
    tolerance: float = 0.0,
    max_sparsity: int | None = None,
    max_distance: float | None = None,
    distance: FloatArray | None = None,
    axes: Measure | None = None,
) -> Listing:
    """The best candidates of each person."""
    shape = comparison.group.size, comparison.codes.shape[2]
    sparsity, total = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    for feature in range(len(comparison.codes)):
        changed, gap = differences(comparison, feature)
        if tolerance and comparison.numbers[feature] is not None:
            changed = changed & (gap > tolerance)
        sparsity += changed
        total += gap
    gower = total / comparison.n_features
    distance = distance if axes is None else measure(comparison, axes)
    costs = {"sparsity": sparsity, "distance": gower if distance is None else distance}
    if max_sparsity is not None:
        allowed = allowed & (costs["sparsity"] <= max_sparsity)
    if max_distance is not None:
        allowed = allowed & (costs["distance"] <= max_distance)
    keys = [costs[name] for name in reversed(rank_by)]
    order = np.lexsort((*keys, ~allowed), axis=-1)[:, :n_best]
    n_allowed = allowed.sum(axis=1)
    listed = np.arange(order.shape[1]) < n_allowed[:, None]

    def take(values: np.ndarray, dtype: type) -> np.ndarray:
        return np.where(listed, np.take_along_axis(values, order, axis=1), 0).astype(dtype)

    return Listing(
        draw=np.where(listed, order, 0).astype(np.int32),
        sparsity=take(costs["sparsity"], np.int32),
        distance=take(costs["distance"], np.float64),
        gower=take(gower, np.float64),
        n_allowed=n_allowed,
    )


def first_of_each(codes: Codes) -> BoolArray:
    """Marks the first draw of each distinct candidate within its group."""
    _, n_groups, n_draws = codes.shape
    number = np.repeat(np.arange(n_groups, dtype=np.int32), n_draws)
    rows = rows_as_bytes(np.vstack([number[None], codes.reshape(codes.shape[0], -1)]).T)
    first = np.zeros(n_groups * n_draws, dtype=bool)
    first[np.unique(rows, return_index=True)[1]] = True
    return first.reshape(n_groups, n_draws)


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
