"""The knn distance: how far a row is from real accepted rows.

Beyond the paper. The mean distance of a row to its nearest accepted training rows, where a distance
is the sum over all features of range-scaled differences, 1 between two levels.
"""

from __future__ import annotations

import numpy as np

from ..kernels import (
    BoolArray,
    FloatArray,
    IntArray,
    Neighbours,
    build_neighbours,
    nearest,
    sort_rows,
)
from ..model.associations import is_wide
from ..tables.schema import EncodedRows

N_NEIGHBOURS = 5
# Accepted rows whose own knn distances the quantiles are taken from, at most; fewer of wide tables.
N_TYPICAL, N_TYPICAL_WIDE = 2_000, 500


class KnnDistance:
    """Mean distance to the nearest accepted training rows."""

    def fit(self, rows: EncodedRows) -> KnnDistance:
        """Index the accepted rows, and measure how far apart they are themselves."""
        points = rows.points
        self.neighbours_: Neighbours = build_neighbours(points, rows.schema.is_level)
        order = sort_rows(rows.exact)
        some = order[np.random.default_rng(0).permutation(order.size)]
        some = some[: N_TYPICAL_WIDE if is_wide(rows.schema) else N_TYPICAL]
        # The nearest of all is the row itself.
        own = nearest(self.neighbours_, points[some], N_NEIGHBOURS + 1)[:, 1:]
        self.typical_: FloatArray = np.sort(_mean(own))
        return self

    def __call__(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Knn distance of each row, and whether it equals an accepted row.

        ``points`` has the shape (n_rows, n_features).
        """
        distances = nearest(self.neighbours_, points, N_NEIGHBOURS)
        return _mean(distances), distances[:, 0] == 0

    @property
    def median(self) -> float:
        """The median knn distance of accepted rows."""
        return float(np.median(self.typical_))

    def quantile(self, knn_distance: FloatArray) -> FloatArray:
        """Share of accepted rows with a smaller knn distance."""
        n_smaller: IntArray = np.searchsorted(self.typical_, knn_distance, side="left")
        return n_smaller / max(self.typical_.size, 1)


def _mean(distances: FloatArray) -> FloatArray:
    """Mean over the neighbours that there are, 0 if there are none."""
    there = np.isfinite(distances)
    total = np.where(there, distances, 0.0).sum(axis=1)
    return total / np.maximum(there.sum(axis=1), 1)
