"""Black boxes of other libraries, with the methods of a fitted scikit-learn predictor.

MCCE takes scikit-learn estimators, callables and native boosters as they are. These wrappers say
what MCCE cannot know: the names of a booster's classes, what the numbers of a torch module or an
ONNX session mean, and where a remote model is. ``Differentiable`` is what a predictor with
gradients offers. ``make_decision`` joins a predictor with the desired decision, for explainers of
your own.
"""

from .desired import make_decision
from .gradients import Differentiable
from .lightgbm import LightGBM
from .onnx import Onnx
from .remote import Remote
from .torch import Torch
from .xgboost import XGBoost

__all__ = [
    "Differentiable",
    "LightGBM",
    "Onnx",
    "Remote",
    "Torch",
    "XGBoost",
    "make_decision",
]
