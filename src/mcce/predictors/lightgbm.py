"""LightGBM: native boosters, and a check of the columns of both its interfaces.

A booster tells its objective, and with it what its numbers mean. Its classes are 0, 1, … unless
they are named. LightGBM itself takes columns by position, takes the category columns one after
the other, and reads a level it does not know as missing.

Always true: columns have the names and the order of LightGBM's own training, as far as it keeps
them; categories stand where it had them, and share at least one level with its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..errors import PredictorError
from .wrapper import FrameLike, Output, Wrapper, check_named, check_native, is_from


@dataclass(frozen=True, eq=False)
class LightGBM(Wrapper):
    """A native ``lightgbm.Booster``.

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
        check_native(self.booster, "lightgbm", "Booster")
        check_named(self.classes, self._n_classes, self._objective)

    @property
    def output_(self) -> Output:
        """What the objective makes of the numbers."""
        return "probabilities" if self._n_classes else "score"

    @property
    def labels(self) -> Sequence[Hashable] | None:
        """The classes in the order of their probabilities; None for a score."""
        if self.classes is not None or not self._n_classes:
            return self.classes
        return range(self._n_classes)

    @property
    def exclusive(self) -> bool:
        """One against all gives each class a probability of its own."""
        return self._objective != "multiclassova"

    def ask(self, rows: FrameLike) -> np.ndarray:
        """What ``booster.predict`` gives for the rows."""
        check_rows(self.booster, rows)
        return np.asarray(self.booster.predict(rows))

    @cached_property
    def _objective(self) -> str:
        """Its name, empty where it was the user's own function."""
        told = self.booster.dump_model(num_iteration=1).get("objective") or ""
        return str(told).partition(" ")[0]

    @property
    def _n_classes(self) -> int:
        """Number of classes that the objective tells apart, 0 if it has none."""
        if self._objective == "binary":
            return 2
        multiclass = self._objective.startswith("multiclass")
        return int(self.booster.num_model_per_iteration()) if multiclass else 0


def adapt(predictor: Any) -> Any:
    """A native booster as a predictor; anything else as it is."""
    return LightGBM(predictor) if is_from(predictor, "lightgbm", "Booster") else predictor


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if LightGBM would take one column, or one level, for another."""
    if not isinstance(rows, pd.DataFrame):
        return
    booster = predictor if is_from(predictor, "lightgbm", "Booster") else predictor.booster_
    trained = booster.feature_name()
    # Where it was trained on an array, its names are these; in others a space is an underscore.
    nameless = [f"Column_{place}" for place in range(len(trained))]
    if trained not in ([str(name).replace(" ", "_") for name in rows.columns], nameless):
        raise PredictorError(
            f"LightGBM takes columns by position, and was trained with {trained!r}, but these are "
            f"{list(rows.columns)!r}. Fit the explainer with LightGBM's columns in their order."
        )
    boxed = [n for n, d in rows.dtypes.items() if isinstance(d, pd.CategoricalDtype)]
    if boxed:
        _check_categories(booster, rows, boxed)


def _check_categories(booster: Any, rows: pd.DataFrame, boxed: Sequence[Hashable]) -> None:
    known = booster.pandas_categorical or []
    if len(known) != len(boxed):
        raise PredictorError(
            f"LightGBM was trained with {len(known)} category columns, but here are {boxed!r}. "
            "Fit the explainer with the dtypes of LightGBM's own training."
        )
    infos = booster.dump_model(num_iteration=1)["feature_infos"]
    for name, levels in zip(boxed, known, strict=True):
        trained = booster.feature_name()[rows.columns.get_loc(name)]
        # A column it could not split on has no entry; a category has its codes there.
        if not infos.get(trained, {}).get("values", True):
            raise PredictorError(
                f"LightGBM was trained with column {name!r} as a number, but it is a category "
                "here. Fit the explainer with the dtypes of LightGBM's own training."
            )
        own = rows[name].cat.categories
        if len(own) and levels and not own.isin(levels).any():
            raise PredictorError(
                f"LightGBM knows none of the levels of column {name!r}, {list(own[:5])!r}, and "
                f"would read them all as missing; it was trained with {list(levels[:5])!r} in "
                "its place. Fit the explainer with the levels and columns of LightGBM's training."
            )
