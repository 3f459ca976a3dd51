"""How near a row is to real accepted ones.

Beyond the paper. The nearness of a row is its mean distance to the nearest accepted training rows,
a distance being the sum over all features of range-scaled differences, 1 between two levels.
"""

from __future__ import annotations

import numpy as np

from ..kernels import BoolArray, FloatArray, IntArray, Neighbours, build_neighbours, nearest
from ..tables.schema import EncodedRows

N_NEIGHBOURS = 5
# Real rows whose own nearness the quantiles are taken from, at most.
N_TYPICAL = 2_000


class KnnDistance:
    """The accepted training rows, ready to be near to.

    Attributes
    ----------
    neighbours_ : Neighbours
        The rows.
    typical_ : (n_typical,)
        Nearness of real accepted rows to the others, ascending.
    """

    def fit(self, rows: EncodedRows) -> KnnDistance:
        """Keep the accepted rows, and how near to each other they are."""
        points = rows.points
        self.neighbours_: Neighbours = build_neighbours(points, rows.schema.is_level)
        order = np.lexsort(rows.exact)
        some = order[np.random.default_rng(0).permutation(order.size)[:N_TYPICAL]]
        # The nearest of all is the row itself.
        own = nearest(self.neighbours_, points[some], N_NEIGHBOURS + 1)[:, 1:]
        self.typical_: FloatArray = np.sort(_mean(own))
        return self

    def __call__(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Nearness of each row, and whether it equals one of them.

        Rows are points of shape (n_rows, n_features).
        """
        distances = nearest(self.neighbours_, points, N_NEIGHBOURS)
        return _mean(distances), distances[:, 0] == 0

    @property
    def usual(self) -> float:
        """How near to the others a real accepted row usually is."""
        return float(np.median(self.typical_))

    def quantile(self, knn_distance: FloatArray) -> FloatArray:
        """Share of real accepted rows that are nearer to the others than this."""
        n_nearer: IntArray = np.searchsorted(self.typical_, knn_distance, side="left")
        return n_nearer / max(self.typical_.size, 1)


def _mean(distances: FloatArray) -> FloatArray:
    """Mean over the neighbours that there are, 0 if there are none."""
    there = np.isfinite(distances)
    total = np.where(there, distances, 0.0).sum(axis=1)
    return total / np.maximum(there.sum(axis=1), 1)
