"""LightGBM: native boosters, and a check of the columns for both its interfaces.

A booster knows its objective, and so what its numbers mean. LightGBM itself takes columns by
position, matches category columns in their order, and reads an unknown level as missing.

Always true: columns have the names and the order of LightGBM's own training, as far as it keeps
them; category columns are the same ones, and share at least one level with its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..errors import PredictorError
from .calls import FrameLike, column_names
from .wrapper import BoosterWrapper, Output, categories_in, is_from


@dataclass(frozen=True, eq=False)
class LightGBM(BoosterWrapper):
    """A native ``lightgbm.Booster`` as a predictor.

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
        If ``booster`` is not a LightGBM booster.
    ParameterError
        If ``classes`` does not name each class of the booster's objective.

    Examples
    --------
    >>> import lightgbm, numpy as np  # doctest: +SKIP
    >>> booster = lightgbm.train({"objective": "binary"}, training_data)  # doctest: +SKIP
    >>> predictor = LightGBM(booster, classes=["declined", "accepted"])  # doctest: +SKIP
    >>> mcce.MCCE(predictor, desired="accepted")  # doctest: +SKIP
    """

    library: ClassVar[str] = "lightgbm"

    def _describe(self) -> tuple[str, Output, int]:
        # Empty if it is the user's own function.
        objective = str(self.booster.dump_model(num_iteration=1).get("objective") or "")
        objective = objective.partition(" ")[0]
        if objective != "binary" and not objective.startswith("multiclass"):
            return objective, "score", 0
        # One-versus-all gives each class a probability of its own.
        object.__setattr__(self, "exclusive", objective != "multiclassova")
        return objective, "probabilities", max(2, int(self.booster.num_model_per_iteration()))

    def _query(self, rows: FrameLike) -> np.ndarray:
        check_rows(self.booster, rows)
        return np.asarray(self.booster.predict(rows))


def adapt(predictor: Any) -> Any:
    """A native booster wrapped; anything else as it is."""
    return LightGBM(predictor) if is_from(predictor, "lightgbm", "Booster") else predictor


def known_columns(predictor: Any) -> list[str] | None:
    """The columns that a booster or a model was trained on, unless they have no names."""
    native = is_from(predictor, "lightgbm", "Booster")
    names = predictor.feature_name() if native else getattr(predictor, "feature_name_", None)
    return column_names(names, numbered="Column_")


def written_name(name: Hashable) -> str:
    """A column name as LightGBM writes it."""
    return str(name).replace(" ", "_")


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if LightGBM would confuse columns or levels."""
    if not isinstance(rows, pd.DataFrame):
        return
    booster = predictor if is_from(predictor, "lightgbm", "Booster") else predictor.booster_
    trained = booster.feature_name()
    if known_columns(booster) not in (None, [written_name(name) for name in rows.columns]):
        raise PredictorError(
            f"LightGBM takes columns by position. It was trained with {trained!r}, but got "
            f"{list(rows.columns)!r}. Fit the explainer on the same columns in the same order."
        )
    if categories := categories_in(rows):
        _check_categories(booster, rows, categories)


def _check_categories(booster: Any, rows: pd.DataFrame, names: Sequence[Hashable]) -> None:
    known = booster.pandas_categorical or []
    if len(known) != len(names):
        raise PredictorError(
            f"LightGBM was trained with {len(known)} category columns, but got {names!r}. "
            "Fit the explainer on the dtypes that LightGBM was trained on."
        )
    infos = booster.dump_model(num_iteration=1)["feature_infos"]
    for name, levels in zip(names, known, strict=True):
        trained = booster.feature_name()[rows.columns.get_loc(name)]
        own = rows[name].cat
        if not _fits(infos.get(trained, {}), bool(own.ordered), len(levels)):
            raise PredictorError(
                f"LightGBM was trained with column {name!r} as a number, but got a category. "
                "Fit the explainer on the dtypes that LightGBM was trained on."
            )
        n_own = len(own.categories)
        if n_own and levels and not own.categories.isin(levels).any():
            raise PredictorError(
                f"LightGBM knows none of the {n_own} levels of column {name!r} and would read "
                f"them all as missing. It was trained with {len(levels)} others. Fit the explainer "
                "on the columns and levels that LightGBM was trained on."
            )


def _fits(info: Mapping[str, Any], ordered: bool, n_levels: int) -> bool:
    """Whether a category can stand in a column that LightGBM describes like this."""
    # A column that LightGBM could not split on has no entry; a category has its codes there.
    if info.get("values", True):
        return True
    # Those of an ordered category are numbers to LightGBM.
    return ordered and 0 <= info["min_value"] <= info["max_value"] < n_levels
