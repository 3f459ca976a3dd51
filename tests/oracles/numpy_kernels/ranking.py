"""Step 3's inner loops: what each candidate costs each person, and which come first.

Paper, section "Post-processing". People of one group share their candidates; every array of
people and candidates has the shape (n_people, n_draws).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcce.kernels import (
    BoolArray,
    Codes,
    Comparison,
    DistanceAxes,
    FloatArray,
    IntArray,
    Listing,
    Summation,
    changed_places,
    differences,
    rows_as_bytes,
)


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
    axes: DistanceAxes | None = None,
) -> Listing:
    """The best candidates of each person."""
    shape = comparison.group.size, comparison.codes.shape[2]
    sparsity, total = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    for place in range(len(comparison.codes)):
        changed, gap = differences(comparison, place)
        if tolerance and comparison.numbers[place] is not None:
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


def measure(comparison: Comparison, axes: DistanceAxes) -> FloatArray:
    """Distance of each candidate to its person, shape (n_people, n_draws).

    A mean over no feature at all is infinite, unless the candidate equals the person.
    """
    total = Total(axes.how, (comparison.group.size, comparison.codes.shape[2]))
    for place in changed_places(comparison):
        codes = comparison.codes[place][comparison.group]
        differs = codes != comparison.own_codes[place][:, None]
        table, own = axes.coordinates[place], axes.own_coordinates[place]
        # A code of -1, a person's own value that has no place in the table, never differs.
        coordinates = None if table is None else table[codes]
        own = None if own is None else own[:, None]
        total.add(differs, coordinates, own, axes.spreads[place], axes.weights[place])
    return total.distance(axes.n_present[:, None])


class Total:
    """The sum over features, one added after the other."""

    def __init__(self, how: Summation, shape: tuple[int, ...]) -> None:
        self.how = how
        self.sum, self.lost = np.zeros(shape), np.zeros(shape)
        self.changed: BoolArray = np.zeros(shape, dtype=bool)

    def add(
        self,
        differs: BoolArray,
        coordinates: FloatArray | None,
        own: FloatArray | None,
        spread: float,
        weight: float,
    ) -> None:
        """Add one feature."""
        self.changed |= differs
        if coordinates is None or own is None:
            self.sum += np.where(differs, weight, 0.0)
            return
        with np.errstate(over="ignore"):
            part = self._part(np.abs(coordinates - own), spread)
            absent = np.isnan(part)
            part = weight * np.where(absent, 0.0 if self.how.ignores_missing else 1.0, part)
        self.sum += np.where(differs, part, 0.0)
        if self.how.ignores_missing:
            self.lost += differs & np.isnan(coordinates[..., 0]) & ~np.isnan(own[..., 0])

    def distance(self, n_present: FloatArray) -> FloatArray:
        """The distances; ``n_present`` is as in :class:`DistanceAxes`."""
        total = np.sqrt(self.sum) if self.how.squared else self.sum
        if not self.how.mean:
            return total
        counted = n_present - self.lost
        mean = total / np.maximum(counted, 1.0)
        return np.where(counted > 0, mean, np.where(self.changed, np.inf, 0.0))

    def _part(self, gaps: FloatArray, spread: float) -> FloatArray:
        """What one feature adds, from the differences of the coordinates; NaN for missing."""
        first = gaps[..., 0]
        if gaps.shape[-1] == 2:
            second = gaps[..., 1]
            if not self.how.city_block:
                return first * first + second * second
            gap = first + second
        else:
            gap = first / spread if spread > 0 else 1.0 + first
        return gap * gap if self.how.squared else gap


def first_of_each(codes: Codes) -> BoolArray:
    """Marks the first draw of each distinct candidate within its group."""
    _, n_groups, n_draws = codes.shape
    number = np.repeat(np.arange(n_groups, dtype=np.int32), n_draws)
    rows = rows_as_bytes(np.vstack([number[None], codes.reshape(codes.shape[0], -1)]).T)
    first = np.zeros(n_groups * n_draws, dtype=bool)
    first[np.unique(rows, return_index=True)[1]] = True
    return first.reshape(n_groups, n_draws)


class RowTable:
    """Distinct rows, numbered in the order of their first appearance."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._numbers: dict[bytes, int] = {}

    def number_rows(self, rows: Codes) -> IntArray:
        """Number of each row, shape (n_rows,); rows never seen before get the next numbers."""
        if rows.shape[1] != self.width:
            raise ValueError("the rows have another width than the table")
        numbers = (self._numbers.setdefault(row.tobytes(), len(self._numbers)) for row in rows)
        return np.fromiter(numbers, dtype=np.int64, count=len(rows))


def weigh_errors(
    cells: Codes,
    row_numbers: IntArray,
    between: tuple[IntArray, IntArray],
    known: IntArray,
    error: FloatArray,
    sums: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Weighted errors: one counts half as much for each cell in which the rows differ.

    Examples
    --------
    >>> cells = np.array([[0, 0], [0, 1], [1, 1]], dtype=np.int32)
    >>> row_numbers, known, zero = np.array([1, 2]), np.array([0]), np.zeros(2)
    >>> between = np.array([0, 0]), np.array([1, 1])
    >>> weigh_errors(cells, row_numbers, between, known, np.array([1.0]), (zero, zero))
    (array([0.5 , 0.25]), array([0.5 , 0.25]))
    """
    total, weight = sums[0].copy(), sums[1].copy()
    for at in range(row_numbers.size):
        for one in range(between[0][at], between[1][at]):
            share = np.ldexp(1.0, -int((cells[row_numbers[at]] != cells[known[one]]).sum()))
            total[at] += share * error[one]
            weight[at] += share
    return total, weight
