"""What the searches beyond the paper look for: the cost of a row, one function for each search.

The cheapest row that may be returned is the answer. Costs are compared with the price of having one
more row scored, so their scale matters as well as their order. Rows that exceed the smallest
sufficient number of changes by more than ``extra_changes``, and copies of training rows, come after
all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..kernels import FloatArray, IntArray

# Distances cost no more than this, so that every penalty exceeds every cost.
MAX_DISTANCE = 1e6
# In the searches that put the fewest changes first, all else costs less than this: one change more
# costs more, the price of a score included.
ALL_ELSE = 0.95


@dataclass(frozen=True, eq=False)
class RowMeasures:
    """What costs are made of, for some rows."""

    n_counted: IntArray
    # Summed over the features.
    distance: FloatArray
    # Mean distance to the nearest accepted rows, and its median among accepted rows.
    knn_distance: FloatArray
    median_knn: float


@dataclass(frozen=True)
class Cost:
    """The cost of a named search, and the price of having a row scored."""

    compute: Callable[[RowMeasures], FloatArray]
    price: Callable[[float], float]
    uses_knn: bool = True
    # Whether nothing but the distance counts.
    by_distance: bool = False


def sparse(rows: RowMeasures) -> FloatArray:
    """The fewest changes; then rows close to real accepted ones and to the person."""
    far = _saturating(rows.knn_distance + 0.2 * rows.distance, rows.median_knn)
    return rows.n_counted + ALL_ELSE * far


def near(rows: RowMeasures) -> FloatArray:
    """The fewest changes; then the smallest distance."""
    return rows.n_counted + ALL_ELSE * _saturating(rows.distance, 0.5)


def nearest(rows: RowMeasures) -> FloatArray:
    """The smallest distance, however many changes."""
    return rows.distance


def balanced(rows: RowMeasures) -> FloatArray:
    """Close to real accepted rows, with few and small changes."""
    return rows.knn_distance + 0.1 * rows.distance + _per_change(rows.median_knn) * rows.n_counted


def plausible(rows: RowMeasures) -> FloatArray:
    """Close to real accepted rows, with few changes."""
    return rows.knn_distance + 0.5 * _per_change(rows.median_knn) * rows.n_counted


COSTS: Mapping[str, Cost] = {
    "sparse": Cost(sparse, lambda median_knn: 0.0075),
    "near": Cost(near, lambda median_knn: 0.015, uses_knn=False),
    "nearest": Cost(nearest, lambda median_knn: 0.01, uses_knn=False, by_distance=True),
    "balanced": Cost(balanced, lambda median_knn: 0.01 * _per_change(median_knn)),
    "plausible": Cost(plausible, lambda median_knn: 0.01 * _per_change(median_knn)),
}


def _per_change(median_knn: float) -> float:
    return 0.13 * (1 + median_knn)


def _saturating(values: FloatArray, half: float) -> FloatArray:
    """From 0 to below 1, and a half at ``half``."""
    return values / (values + max(half, 1e-9))
