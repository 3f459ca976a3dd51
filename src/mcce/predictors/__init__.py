"""Black boxes of other libraries, with the methods of a fitted scikit-learn predictor.

MCCE takes scikit-learn estimators, callables and native boosters as they are. These wrappers say
what MCCE cannot know: the names of a booster's classes, what the numbers of a torch module or an
ONNX session mean, and where a remote model is. ``Differentiable`` is what a predictor with
gradients offers. ``make_decision`` joins a predictor with the desired decision, for explainers of
your own.

Always true: each name is imported when it is first used, and so is the library that it wraps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caching import attribute_loader

if TYPE_CHECKING:
    from .desired import make_decision as make_decision
    from .lightgbm import LightGBM as LightGBM
    from .onnx import Onnx as Onnx
    from .remote import Remote as Remote
    from .torch import Differentiable as Differentiable
    from .torch import Torch as Torch
    from .xgboost import XGBoost as XGBoost

_MODULES = {
    "Differentiable": "torch",
    "LightGBM": "lightgbm",
    "Onnx": "onnx",
    "Remote": "remote",
    "Torch": "torch",
    "XGBoost": "xgboost",
    "make_decision": "desired",
}
__all__ = [*_MODULES]

__getattr__ = attribute_loader(__name__, _MODULES)


def __dir__() -> list[str]:
    """All public names, whether they are imported yet or not."""
    return sorted(__all__)
