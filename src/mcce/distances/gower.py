"""How far a candidate is from its person, beside the number of changed features.

Paper, section "Post-processing": the Gower distance. Distances add one feature at a time in
column order and are divided by the number of all features at the end, so that their bits do not
depend on blocks or machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..candidates import Candidates
from ..errors import ParameterError
from ..kernels import BoolArray, FloatArray, differences
from ..protocols import Distance
from ..tables.schema import EncodedRows, Schema


class Gower:
    """Mean over all features of the range-scaled difference; 0 or 1 for a category.

    This is what it means; step 3 computes the same in a kernel of its own. With weights, one per
    mutable feature, each difference counts so many times.
    """

    name = "gower"

    def __init__(self, weights: FloatArray | None = None) -> None:
        self.weights = weights

    def fit(self, schema: Schema, rows: EncodedRows, decision: BoolArray) -> Gower:
        """Nothing to learn beyond the training ranges, which the schema holds."""
        return self

    def __call__(self, candidates: Candidates) -> FloatArray:
        """Distances in [0, 1] for values inside the training range."""
        total = np.zeros(candidates.shape)
        for feature in range(candidates.rows.schema.mutable.size):
            gap = differences(candidates.comparison, feature)[1]
            total += gap if self.weights is None else self.weights[feature] * gap
        return total / len(candidates.rows.schema.features)


DISTANCES: dict[str, type[Gower]] = {"gower": Gower}


def find_distance(distance: Any) -> Distance:
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
    found: Distance = distance
    return found
