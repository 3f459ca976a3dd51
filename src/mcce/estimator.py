"""What scikit-learn expects of an estimator, apart from what the explainer does.

The predictor is a parameter that is given and not trained: cloning keeps it, and its own
parameters are not ours.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from .errors import NotFittedError
from .parameters import check_parameters, check_unchanged
from .tables.frames import ArrayAdapter
from .tables.schema import Schema


class Estimator(BaseEstimator):
    """Parameters, clones, tags, and whether it is fitted."""

    _learned: dict[str, Any]

    def _keep_names(self, schema: Schema) -> None:
        """Number and names of the columns, as scikit-learn keeps them."""
        self.n_features_in_: int = len(schema.features)
        self.__dict__.pop("feature_names_in_", None)
        unnamed = isinstance(schema.adapter, ArrayAdapter) and not schema.adapter.named
        if not unnamed and all(isinstance(name, str) for name in schema.names):
            self.feature_names_in_ = np.array(schema.names, dtype=object)

    def _check_ready(self) -> None:
        self._check_fitted()
        check_parameters(self)
        check_unchanged(self, self._learned)

    def _check_fitted(self) -> None:
        if not hasattr(self, "generator_"):
            raise NotFittedError(
                "This MCCE is not fitted yet. Call fit with the training data before explaining."
            )

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy with the same predictor: it is given, not trained here."""
        params = self.get_params(deep=False)
        kept = {"predictor", "desired"}
        return type(self)(
            **{k: v if k in kept else clone(v, safe=False) for k, v in params.items()}
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; those of the generator too, but never those of the predictor."""
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
