"""What scikit-learn expects of an estimator, apart from what the explainer does.

The predictor is a parameter that is given and not trained: cloning keeps it, and its own
parameters are not ours. What ``fit`` learned is one frozen value, ``fitted_``; the attributes that
end with an underscore are views of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from .errors import NotFittedError
from .fitted import Fitted
from .parameters import check_parameters, check_unchanged
from .plausibility.model import PlausibilityModel
from .predictors.decision import Decision
from .protocols import Distance, Generator
from .relations.table import table_of_relations
from .tables.frames import ArrayAdapter
from .tables.schema import Schema


class Estimator(BaseEstimator):
    """Parameters, clones, tags, and the learned attributes."""

    fitted_: Fitted

    @property
    def schema_(self) -> Schema:
        """The columns of the training data."""
        return self.fitted_.schema

    @property
    def decision_(self) -> Decision:
        """How the predictor is called and what is desired of it."""
        return self.fitted_.decision

    @property
    def generator_(self) -> Generator:
        """The fitted model of step 1."""
        return self.fitted_.generator

    @property
    def distance_(self) -> Distance:
        """The fitted distance."""
        return self.fitted_.distance

    @property
    def n_desired_(self) -> int:
        """Number of training rows with the desired decision."""
        return self.fitted_.n_desired

    @property
    def seed_(self) -> int:
        """Seed of all draws."""
        return self.fitted_.seed

    @property
    def plausibility_(self) -> PlausibilityModel | None:
        """What accepted training rows look like; None if the search does not need it."""
        return self.fitted_.plausibility

    @property
    def relations_(self) -> pd.DataFrame:
        """Relations between columns that the training data suggest, one in each row.

        Attributes
        ----------
        relation, kind
            Its name, such as ``total = months * price``, and its kind.
        target, features
            The column that follows from others, and all columns it mentions.
        holds
            Share of training rows in which it holds.
        n_rows, p_value
            Rows held out to confirm it, and an upper bound of the chance to find a relation like
            that if the columns had nothing to do with each other.
        tolerance
            Largest deviation of an equality, and whether ``relative`` to its formula.
        enforced
            Whether it holds in all training rows, so that answers keep it.
        """
        if self.fitted_.relations is None:
            raise AttributeError(
                "relations_ needs a search other than the paper's, and ignore_relations other than "
                "True, at fit."
            )
        return table_of_relations(self.fitted_.relations)

    @property
    def timings_(self) -> Mapping[str, float]:
        """Wall-clock seconds of fitting, by step."""
        return self.fitted_.seconds

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the training data."""
        return len(self.fitted_.schema.features)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns, where they have names that are all strings."""
        schema = self.fitted_.schema
        unnamed = isinstance(schema.adapter, ArrayAdapter) and not schema.adapter.named
        if unnamed or not all(isinstance(name, str) for name in schema.names):
            raise AttributeError("feature_names_in_ needs columns whose names are all strings.")
        return np.array(schema.names, dtype=object)

    def _check_ready(self) -> Fitted:
        """What ``fit`` learned, if it still goes with the parameters."""
        fitted = self._check_fitted()
        check_parameters(self)
        check_unchanged(self, fitted.parameters)
        return fitted

    def _check_fitted(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise NotFittedError(
                "This MCCE is not fitted yet. Call fit with the training data before explaining."
            )
        return self.fitted_

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy with the same predictor: it is given, not trained here."""
        params = self.get_params(deep=False)
        kept = {"predictor", "desired"}
        return type(self)(
            **{k: v if k in kept else clone(v, safe=False) for k, v in params.items()}
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, including those of the generator but not those of the predictor.

        Parameters
        ----------
        deep
            Whether to include the parameters of the generator.

        Returns
        -------
        dict
            Values by name.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep and hasattr(self.generator, "get_params"):
            nested = self.generator.get_params()
            params |= {f"generator__{name}": value for name, value in nested.items()}
        return params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
