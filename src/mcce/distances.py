"""What a change costs: the number of changed features, and how far they move.

Paper, section "Post-processing": sparsity and the Gower distance. Distances add one feature at a
time in column order and are divided by the number of all features at the end, so that their bits
do not depend on blocks or machines.
"""

from __future__ import annotations

import numpy as np

from .candidates import Candidates
from .errors import ParameterError
from .kernels import BoolArray, FloatArray, IntArray, differences
from .protocols import Distance
from .schema import Rows, Schema


def sparsity(candidates: Candidates, tolerance: float = 0.0) -> IntArray:
    """Number of features in which each candidate differs from its person.

    Differences are exact. With a tolerance, a numeric difference counts only above that share of
    the training range: that is how the authors' tables count, and it hides real changes.
    """
    count = np.zeros(candidates.shape, dtype=np.int64)
    for cells in candidates.cells():
        changed, gap = differences(cells, candidates.group)
        count += changed if tolerance == 0.0 else changed & (gap > tolerance)
    return count


class Gower:
    """Mean over all features of the range-scaled difference; 0 or 1 for a category."""

    name = "gower"

    def fit(self, schema: Schema, rows: Rows, decision: BoolArray) -> Gower:
        """Nothing to learn beyond the training ranges, which the schema holds."""
        return self

    def __call__(self, candidates: Candidates) -> FloatArray:
        """Distances in [0, 1] for values inside the training range."""
        total = np.zeros(candidates.shape)
        for cells in candidates.cells():
            total += differences(cells, candidates.group)[1]
        return total / len(candidates.rows.schema.features)


DISTANCES: dict[str, type[Gower]] = {"gower": Gower}


def find_distance(distance: str | Distance) -> Distance:
    """The distance of that name, or the object itself."""
    if isinstance(distance, str) and distance in DISTANCES:
        return DISTANCES[distance]()
    if (
        not callable(distance)
        or not callable(getattr(distance, "fit", None))
        or not hasattr(distance, "name")
    ):
        raise ParameterError(
            f"distance must be one of {sorted(DISTANCES)!r} or an object with name, fit and "
            f"__call__, got {distance!r}."
        )
    return distance
