"""Which wrapper a black box needs, and whether its library would misread the rows.

Scikit-learn estimators, anything that behaves like one, and callables are used as they are. Other
black boxes are recognized by the library their type comes from, without importing it.

Always true: importing this module loads no black box's library, and a predictor loads none but its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import catboost, lightgbm, onnx, torch, xgboost
from .base import FrameLike

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


def _libraries(predictor: Any) -> set[str]:
    """Libraries that a predictor's type and its base classes come from."""
    return {base.__module__.partition(".")[0] for base in type(predictor).__mro__}
