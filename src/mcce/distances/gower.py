"""How far a candidate is from its person, beside the number of changed features.

Paper, section "Post-processing": the Gower distance. A number differs by its distance over the
training range, a level by 1. The distances here add up these gaps in different ways; none of
them learns anything that the schema does not know.
"""

from __future__ import annotations

import numpy as np

from ..errors import ParameterError, shorten
from ..kernels import FloatArray, Summation
from ..tables.schema import Schema
from .feature_distance import FeatureDistance, Missing


class Gower(FeatureDistance):
    """Mean over all features of the range-scaled difference; 0 or 1 for a category.

    Distances are in [0, 1] for values inside the training range.

    Parameters
    ----------
    weights : (n_mutable,), optional
        How many times the difference of each mutable feature counts.
    missing : {"level", "ignore"}
        Whether a missing cell is 1 away from any other cell, or its feature is left out of the
        mean, as in Gower's own definition. Then the distance of rows that have no feature in common
        is infinite, deleting a value costs nothing, and the measure is called ``gower_observed``.

    Examples
    --------
    >>> Gower().name
    'gower'
    """

    title = "gower"
    summation = Summation(mean=True)

    def __init__(self, weights: FloatArray | None = None, *, missing: Missing = "level") -> None:
        self.weights = weights
        self.missing = missing

    @property
    def name(self) -> str:
        """Name of its column in ``result.measures``, where ``gower`` has one meaning."""
        return self.title if self.missing == "level" else f"{self.title}_observed"

    def check(self, schema: Schema) -> None:
        """Raise unless there is one finite weight >= 0 for each mutable feature, or none."""
        super().check(schema)
        if self.weights is None:
            return
        weights, n_mutable = np.asarray(self.weights), schema.mutable.size
        numeric = weights.dtype.kind in "biuf" and ((weights >= 0) & (weights < np.inf)).all()
        if weights.shape != (n_mutable,) or not numeric:
            raise ParameterError(
                f"weights of Gower must be {n_mutable} finite numbers >= 0, one per mutable "
                f"feature, got {shorten(self.weights)}."
            )

    def _weights(self, n_mutable: int) -> FloatArray:
        if self.weights is None:
            return super()._weights(n_mutable)
        return np.asarray(self.weights, dtype=np.float64)


class L1(FeatureDistance):
    """Sum over features of the range-scaled difference: Gower's distance times their number.

    Parameters
    ----------
    missing : {"level", "ignore"}
        Whether a missing cell is 1 away from any other cell, or adds nothing; the measure is then
        called ``l1_observed``.

    Examples
    --------
    >>> L1().name
    'l1'
    """

    title = "l1"

    @property
    def name(self) -> str:
        """Name of its column in ``result.measures``, where ``l1`` has one meaning."""
        return self.title if self.missing == "level" else f"{self.title}_observed"
