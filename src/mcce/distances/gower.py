"""How far a candidate is from its person, beside the number of changed features.

Paper, section "Post-processing": the Gower distance. Distances add one feature at a time in
column order and are divided by the number of all features at the end, so that their bits do not
depend on blocks or machines.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from ..candidates import Candidates
from ..errors import ParameterError, shorten
from ..kernels import BoolArray, FloatArray, differences
from ..tables.schema import EncodedRows, Schema


class Gower:
    """Mean over all features of the range-scaled difference; 0 or 1 for a category.

    This is the definition; step 3 computes the same in a compiled kernel.

    Parameters
    ----------
    weights : (n_mutable,), optional
        How many times the difference of each mutable feature counts.

    Examples
    --------
    >>> Gower().name
    'gower'
    """

    name = "gower"
    # It needs the schema alone, so that private explainers can use it.
    reads_rows = False

    def __init__(self, weights: FloatArray | None = None) -> None:
        self.weights = weights

    def fit(self, schema: Schema, rows: EncodedRows, decision: BoolArray) -> Self:
        """Check the weights; the training ranges are in the schema.

        Parameters
        ----------
        schema
            The columns.
        rows, decision
            Ignored: the training rows and their decisions.

        Returns
        -------
        Gower
            Itself.

        Raises
        ------
        ParameterError
            If there is not one finite weight >= 0 for each mutable feature.
        """
        if self.weights is None:
            return self
        weights, n_mutable = np.asarray(self.weights), schema.mutable.size
        numeric = weights.dtype.kind in "biuf"
        if weights.shape != (n_mutable,) or not numeric or not (weights >= 0).all():
            raise ParameterError(
                f"weights of Gower must be {n_mutable} numbers >= 0, one per mutable feature, got "
                f"{shorten(self.weights)}."
            )
        return self

    def __call__(self, candidates: Candidates) -> FloatArray:
        """Distances in [0, 1] for values inside the training range."""
        total = np.zeros(candidates.shape)
        for feature in candidates.comparison.changed_features:
            gap = differences(candidates.comparison, feature)[1]
            total += gap if self.weights is None else self.weights[feature] * gap
        return total / len(candidates.rows.schema.features)
