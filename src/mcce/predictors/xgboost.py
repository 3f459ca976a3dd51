"""XGBoost: native boosters, and a check of the categories of both its interfaces.

A booster tells its objective, and with it what its numbers mean. Its classes are 0, 1, … unless
they are named. It is asked as ``booster.predict`` asks itself: all trees, missing is NaN.

Always true: a category is never read by the position of its level; a booster that keeps no levels
is not asked with categories.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..errors import PredictorError
from .wrapper import FrameLike, Output, Wrapper, check_named, check_native, is_from

OUTPUTS: dict[str, Output] = {
    "binary:logistic": "probabilities",
    "multi:softprob": "probabilities",
    "binary:hinge": "labels",
    "multi:softmax": "labels",
}


@dataclass(frozen=True, eq=False)
class XGBoost(Wrapper):
    """A native ``xgboost.Booster``.

    Parameters
    ----------
    booster
        The booster as it was trained or loaded.
    classes
        Names for the classes 0, 1, …, which otherwise keep their numbers.
    """

    booster: Any
    classes: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        check_native(self.booster, "xgboost", "Booster")
        check_named(self.classes, self._n_classes, self._objective)

    @property
    def output_(self) -> Output:
        """What the objective makes of the numbers."""
        return OUTPUTS.get(self._objective, "score")

    @property
    def labels(self) -> Sequence[Hashable] | None:
        """The classes in the order of their probabilities; None for a score."""
        if self.classes is not None or not self._n_classes:
            return self.classes
        return range(self._n_classes)

    def ask(self, rows: FrameLike) -> np.ndarray:
        """What ``booster.predict`` gives for the rows."""
        from xgboost import DMatrix

        check_rows(self.booster, rows)
        answer = np.asarray(self.booster.predict(DMatrix(rows, enable_categorical=True)))
        return self.classes_[answer.astype(int)] if self.output_ == "labels" else answer

    @cached_property
    def _learner(self) -> dict[str, Any]:
        return dict(json.loads(self.booster.save_config())["learner"])

    @property
    def _objective(self) -> str:
        return str(self._learner["objective"]["name"])

    @property
    def _n_classes(self) -> int:
        """Number of classes that the objective tells apart, 0 if it has none."""
        if self.output_ == "score":
            return 0
        return max(2, int(self._learner["learner_model_param"]["num_class"]))


def adapt(predictor: Any) -> Any:
    """A native booster as a predictor; anything else as it is."""
    return XGBoost(predictor) if is_from(predictor, "xgboost", "Booster") else predictor


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if the levels of a category would be read by their position."""
    if not isinstance(rows, pd.DataFrame):
        return
    categories = [n for n, d in rows.dtypes.items() if isinstance(d, pd.CategoricalDtype)]
    if not categories:
        return
    booster = predictor if is_from(predictor, "xgboost", "Booster") else predictor.get_booster()
    if not hasattr(booster, "get_categories") or booster.get_categories().empty():
        raise PredictorError(
            f"The columns {categories!r} are categories, but this booster keeps no levels and "
            "would read them by position. Train it on the categories with XGBoost 3.1 or newer, "
            "or pass the numbers it was trained on."
        )
