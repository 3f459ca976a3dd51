"""MCCE as a method of RecourseBench, which brings its own data sets, models and measures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mcce import MCCE, Interval, constraints
from mcce.constraints import Constraint
from mcce.errors import NotFittedError, ParameterError

Floats = np.ndarray[Any, np.dtype[np.float64]]
# What RecourseBench calls the ways in which a feature may change.
DIRECTIONS = {"same-or-increase": constraints.only_up, "same-or-decrease": constraints.only_down}
KEPT = ("none", "same")


class MCCEMethod:
    """The methods that RecourseBench asks of a method, to be put before its base class.

    Columns into which a feature was encoded are taken together, so that answers have levels that
    training rows have. Features that are not mutable are kept, and directions are constraints.

    Parameters
    ----------
    target_model
        A trained model of RecourseBench.
    seed
        Seed of MCCE; None: 0.
    device
        Kept for RecourseBench; MCCE runs on the processor.
    desired_class
        The class wanted for everybody; None: the other one of two.
    **settings
        Parameters of :class:`mcce.MCCE`, such as ``search``.

    Examples
    --------
    In a program that uses RecourseBench:

    >>> from recourse_bench.method.method_object import MethodObject  # doctest: +SKIP
    >>> from recourse_bench.utils.registry import register  # doctest: +SKIP
    >>> @register("mcce")  # doctest: +SKIP
    ... class Method(MCCEMethod, MethodObject):
    ...     pass
    """

    def __init__(
        self,
        target_model: Any,
        seed: int | None = None,
        device: str = "cpu",
        desired_class: int | str | None = None,
        **settings: Any,
    ) -> None:
        self._target_model, self._seed, self._device = target_model, seed, device.lower()
        self._desired_class, self._settings = desired_class, settings
        self._need_grad = self._is_trained = False

    def fit(self, trainset: Any) -> None:
        """Learn from a training set of RecourseBench."""
        table = trainset.get(target=False)
        encoding = _attribute(trainset, "encoding") or {}
        self._groups = {
            raw: list(columns)
            for raw, columns in encoding.items()
            if len(columns) > 1 and set(columns) <= set(table.columns)
        }
        self._levels = {raw: table[cols].drop_duplicates() for raw, cols in self._groups.items()}
        rows = self._decode(table)
        may_change = self._may_change(trainset, rows)
        directions: list[Constraint] = [
            DIRECTIONS[how](name) for name, how in may_change.items() if how in DIRECTIONS
        ]
        immutable = [name for name, how in may_change.items() if how in KEPT]
        self._explainers = {
            target: MCCE(
                partial(self._margin, columns=list(table.columns), target=target),
                Interval(np.nextafter(0.0, 1.0), np.inf),
                immutable=immutable,
                constraints=directions,
                **{"random_state": self._seed or 0, **self._settings},
            ).fit(rows)
            for target in self._targets()
        }
        self._is_trained = True

    def get_counterfactuals(self, factuals: pd.DataFrame) -> pd.DataFrame:
        """The best answer of each row, or missing numbers where there is none."""
        if not self._is_trained:
            raise NotFittedError("This method is not fitted. Call fit first.")
        answers = pd.DataFrame(
            np.nan, index=range(len(factuals)), columns=factuals.columns, dtype=np.float64
        )
        people = self._decode(factuals).reset_index(drop=True)
        now = self._probabilities(factuals).argmax(axis=1)
        for target, explainer in self._explainers.items():
            # With two classes and none desired, each is the target of the other.
            asked = np.flatnonzero(now != target)
            if asked.size:
                found = explainer.explain(people.iloc[asked])
                who, best = np.unique(found.owner, return_index=True)
                rows = self._encode(found.frame.iloc[best], list(factuals.columns))
                answers.iloc[asked[who]] = rows.to_numpy()
        return answers.set_axis(factuals.index)

    def _targets(self) -> list[int]:
        """Places of the classes that somebody may want."""
        places: Mapping[Any, int] = self._target_model.get_class_to_index()
        if self._desired_class is not None:
            if self._desired_class not in places:
                raise ParameterError(
                    f"desired_class {self._desired_class!r} is no class of the model, which has "
                    f"{', '.join(map(repr, places))}."
                )
            return [int(places[self._desired_class])]
        if len(places) != 2:
            raise ParameterError(
                f"With {len(places)} classes, say which is desired: desired_class=..."
            )
        return [0, 1]

    def _may_change(self, trainset: Any, rows: pd.DataFrame) -> dict[str, str]:
        """How each feature may change, in the words of RecourseBench."""
        form = "encoded" if _attribute(trainset, "encoded_feature_type") else "raw"
        is_mutable = _attribute(trainset, f"{form}_feature_mutability") or {}
        how = _attribute(trainset, f"{form}_feature_actionability") or {}
        ways = {}
        for name in rows.columns:
            first = self._groups.get(name, [name])[0]
            way = str(how.get(first, "any")).lower() if is_mutable.get(first, True) else "none"
            # Levels in several columns have no order that RecourseBench tells.
            ways[name] = way if name not in self._groups or way in KEPT else "any"
        return ways

    def _probabilities(self, table: pd.DataFrame) -> Floats:
        given = self._target_model.get_prediction(table, proba=True)
        return np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)

    def _margin(self, rows: pd.DataFrame, *, columns: list[str], target: int) -> Floats:
        """By how much a class is more probable than all others."""
        probabilities = self._probabilities(self._encode(rows, columns)).astype(np.float64)
        others = np.delete(probabilities, target, axis=1)
        return np.asarray(probabilities[:, target] - others.max(axis=1))

    def _decode(self, table: pd.DataFrame) -> pd.DataFrame:
        """Rows with one column per feature."""
        encoded = [column for columns in self._groups.values() for column in columns]
        rows = table.drop(columns=encoded)
        for raw, columns in self._groups.items():
            known = pd.MultiIndex.from_frame(self._levels[raw])
            codes = known.get_indexer(pd.MultiIndex.from_frame(table[columns]))
            rows[raw] = pd.Categorical(np.where(codes >= 0, codes, np.nan), range(len(known)))
        return rows

    def _encode(self, rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
        """Rows as the model takes them."""
        parts = [rows.drop(columns=list(self._groups))]
        for raw, levels in self._levels.items():
            codes = rows[raw].cat.codes.to_numpy()
            cells = np.where(codes[:, None] >= 0, levels.to_numpy()[codes], np.nan)
            parts.append(pd.DataFrame(cells, rows.index, levels.columns))
        return pd.concat(parts, axis=1)[columns]


def _attribute(trainset: Any, name: str) -> Any:
    """What RecourseBench says of its data, if it says it."""
    try:
        return trainset.attr(name)
    except AttributeError:
        return None
