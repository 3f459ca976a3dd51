"""XGBoost: native boosters, and a check of the categories for both its interfaces.

A booster knows its objective, and so what its numbers mean. It predicts as ``booster.predict``
does by default: all trees, missing is NaN.

Always true: a category is never read by the position of its level; a booster that keeps no levels
never gets categories.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import PredictorError
from .calls import FrameLike, column_names
from .wrapper import BoosterWrapper, Output, categories_in, is_from

OUTPUTS: dict[str, Output] = {
    "binary:logistic": "probabilities",
    "multi:softprob": "probabilities",
    "binary:hinge": "labels",
    "multi:softmax": "labels",
}


@dataclass(frozen=True, eq=False)
class XGBoost(BoosterWrapper):
    """A native ``xgboost.Booster`` as a predictor.

    MCCE takes a booster as it is; the wrapper is only needed to name its classes.

    Parameters
    ----------
    booster
        The trained or loaded booster.
    classes
        Names of the classes 0, 1, ...; None leaves the numbers.

    Raises
    ------
    PredictorError
        If ``booster`` is not an XGBoost booster.
    ParameterError
        If ``classes`` does not name each class of the booster's objective.

    Examples
    --------
    >>> import xgboost  # doctest: +SKIP
    >>> booster = xgboost.train({"objective": "binary:logistic"}, training_data)  # doctest: +SKIP
    >>> predictor = XGBoost(booster, classes=["declined", "accepted"])  # doctest: +SKIP
    >>> mcce.MCCE(predictor, desired="accepted")  # doctest: +SKIP
    """

    library: ClassVar[str] = "xgboost"

    def _describe(self) -> tuple[str, Output, int]:
        learner = json.loads(self.booster.save_config())["learner"]
        objective = learner["objective"]["name"]
        if objective not in OUTPUTS:
            return objective, "score", 0
        return (
            objective,
            OUTPUTS[objective],
            max(2, int(learner["learner_model_param"]["num_class"])),
        )

    def _query(self, rows: FrameLike) -> np.ndarray:
        from xgboost import DMatrix

        check_rows(self.booster, rows)
        output = np.asarray(self.booster.predict(DMatrix(rows, enable_categorical=True)))
        return self.classes_[output.astype(int)] if self.output == "labels" else output


def adapt(predictor: Any) -> Any:
    """A native booster wrapped; anything else as it is."""
    return XGBoost(predictor) if is_from(predictor, "xgboost", "Booster") else predictor


def known_columns(predictor: Any) -> list[str] | None:
    """The columns that a booster or a model was trained on; None if they have no names."""
    native = is_from(predictor, "xgboost", "Booster")
    names = "feature_names" if native else "feature_names_in_"
    return column_names(getattr(predictor, names, None))


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if the levels of a category would be read by their position."""
    categories = categories_in(rows)
    if not categories:
        return
    booster = predictor if is_from(predictor, "xgboost", "Booster") else predictor.get_booster()
    if not hasattr(booster, "get_categories") or booster.get_categories().empty():
        raise PredictorError(
            f"The columns {categories!r} are categories, but this booster stores no levels and "
            "would read them by position. Train it on the categories with XGBoost 3.1 or newer, "
            "or pass the numbers that it was trained on."
        )
