"""CatBoost: models without a task.

Its classifiers and regressors behave like scikit-learn's, take strings and categories as they are
and find columns by name. A plain ``CatBoost`` model predicts raw values even if it was trained on
a loss of classes; it is used as the classifier it was trained as.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .calls import column_names
from .wrapper import is_from


def known_columns(predictor: Any) -> list[str] | None:
    """The columns that a model was trained on, unless they have no names."""
    return column_names(getattr(predictor, "feature_names_", None), numbered="")


def written_name(name: Hashable) -> str:
    """A column name as CatBoost writes it."""
    return str(name)


def adapt(predictor: Any) -> Any:
    """A plain model that has classes as a classifier; anything else as it is."""
    plain = is_from(predictor, "catboost", "CatBoost") and not hasattr(predictor, "predict_proba")
    if not plain or predictor.classes_ is None or not len(predictor.classes_):
        return predictor
    from catboost import to_classifier

    return to_classifier(predictor)
