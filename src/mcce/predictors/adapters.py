"""Which wrapper a black box needs, which columns it knows, and whether it would misread rows.

Scikit-learn estimators, anything that behaves like one, and callables are used as they are. Other
black boxes are recognized by the library their type comes from, without importing it.

Always true: importing this module loads no black box's library, and a predictor loads none but its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..runtime.threads import in_caller
from . import catboost, lightgbm, onnx, torch, xgboost
from .base import FrameLike, is_from

# By library: how its objects are wrapped, and what is checked before they get rows.
ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "catboost": catboost.adapt,
    "lightgbm": lightgbm.adapt,
    "onnxruntime": onnx.adapt,
    "torch": torch.adapt,
    "xgboost": xgboost.adapt,
}
CHECKS: dict[str, Callable[[Any, FrameLike], None]] = {
    "lightgbm": lightgbm.check_rows,
    "xgboost": xgboost.check_rows,
}


def adapt(predictor: Any) -> Any:
    """The predictor itself, or wrapped if its library has an interface of its own."""
    for library in _libraries(predictor) & ADAPTERS.keys():
        predictor = ADAPTERS[library](predictor)
    return predictor


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if the predictor's library would silently misread the rows."""
    for library in _libraries(predictor) & CHECKS.keys():
        CHECKS[library](predictor, rows)


def call(predictor: Any, function: Callable[[Any], Any], rows: Any) -> Any:
    """What a function of the predictor returns for rows.

    It is called in the thread that takes the results of this task, since few black boxes are made
    for several; in this one if the predictor has the attribute ``thread_safe``.
    """
    if getattr(predictor, "thread_safe", False) is True:
        return function(rows)
    return in_caller(lambda: function(rows))


def known_columns(predictor: Any) -> list[str] | None:
    """The columns that a predictor was trained on, in order; None if it does not say.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> known_columns(LinearRegression().fit(pd.DataFrame({"age": [1, 2]}), [1, 2]))
    ['age']
    """
    booster: Any = getattr(predictor, "booster", None)
    if is_from(booster, "lightgbm", "Booster"):
        return _unless_numbered(booster.feature_name(), "Column_")
    if is_from(booster, "xgboost", "Booster"):
        return _strings(booster.feature_names)
    if is_from(predictor, "lightgbm", "LGBMModel"):
        return _unless_numbered(getattr(predictor, "feature_name_", None), "Column_")
    if is_from(predictor, "catboost", "CatBoost"):
        return _unless_numbered(getattr(predictor, "feature_names_", None), "")
    return _strings(getattr(predictor, "feature_names_in_", None))


def written_name(predictor: Any, name: Hashable) -> Hashable:
    """A column name as the predictor's library writes it."""
    native = getattr(predictor, "booster", predictor)
    if is_from(native, "lightgbm", "Booster") or is_from(native, "lightgbm", "LGBMModel"):
        return str(name).replace(" ", "_")
    return str(name) if is_from(native, "catboost", "CatBoost") else name


def _libraries(predictor: Any) -> set[str]:
    """Libraries that a predictor's type and its base classes come from."""
    return {base.__module__.partition(".")[0] for base in type(predictor).__mro__}


def _unless_numbered(names: Any, prefix: str) -> list[str] | None:
    """Names, unless they are those that a library gives to the columns of an array."""
    known = _strings(names)
    numbered = [f"{prefix}{position}" for position in range(len(known or ()))]
    return None if known == numbered else known


def _strings(names: Any) -> list[str] | None:
    if names is None or isinstance(names, str) or not hasattr(names, "__len__"):
        return None
    listed: Sequence[Any] = list(names)
    return [str(name) for name in listed] if all(isinstance(n, str) for n in listed) else None
