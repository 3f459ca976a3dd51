"""Black boxes of other libraries, in the manners of scikit-learn.

A scikit-learn estimator, anything that behaves like one and any callable are asked as they are.
What is not of that kind is found by the library its type comes from, without importing it.

Always true: importing this loads no other library, and a predictor loads none but its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import catboost, lightgbm, onnx, torch, xgboost
from .lightgbm import LightGBM
from .onnx import Onnx
from .remote import Remote
from .torch import Torch
from .wrapper import FrameLike
from .xgboost import XGBoost

__all__ = ["LightGBM", "Onnx", "Remote", "Torch", "XGBoost", "adapt", "check_rows"]

# By the library that a type comes from: how its objects are asked, and what it would misread.
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
    """The predictor as it is, or wrapped where its library has other manners."""
    for library in _libraries(predictor) & ADAPTERS.keys():
        predictor = ADAPTERS[library](predictor)
    return predictor


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if the predictor's library would misread the rows without a word."""
    for library in _libraries(predictor) & CHECKS.keys():
        CHECKS[library](predictor, rows)


def _libraries(predictor: Any) -> set[str]:
    """Where a predictor's type and the types above it come from."""
    return {kind.__module__.partition(".")[0] for kind in type(predictor).__mro__}
