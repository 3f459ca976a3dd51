"""Distances to the nearest of many rows.

The distance of two rows is the sum, in column order, of the gaps of their features: of range-scaled
numbers, 1 for two levels that differ or if one side is missing, 0 if both are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import BoolArray, FloatArray
from ._gower import gower_gap, scaled_gap


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Rows, in the order and with the nodes of a k-d tree that finds the nearest of them."""

    points: FloatArray
    first: np.ndarray
    last: np.ndarray
    left: np.ndarray
    right: np.ndarray
    column: np.ndarray
    left_edge: FloatArray
    right_edge: FloatArray
    is_level: BoolArray


def nearest(neighbours: Neighbours, rows: FloatArray, k: int) -> FloatArray:
    """Distances to the k nearest, ascending, infinite beyond their number; (n_rows, k)."""
    distances = np.full((len(rows), k), np.inf)
    for place, row in enumerate(rows):
        total = np.zeros(len(neighbours.points))
        for column, is_level in enumerate(neighbours.is_level):
            other, own = neighbours.points[:, column], float(row[column])
            level_gap = gower_gap(None, None, 1.0, other != own)
            total += level_gap if is_level else scaled_gap(other, own)
        best = np.sort(total)[:k]
        distances[place, : best.size] = best
    return distances
