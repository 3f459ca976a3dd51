"""Counterfactual explanations for tabular data: valid, realistic, low-cost, actionable."""

from . import constraints
from .counterfactuals import Counterfactuals
from .decision import Decision
from .distances import Gower
from .errors import (
    ConstraintError,
    McceError,
    McceWarning,
    MissingExtraError,
    NotFittedError,
    ParameterError,
    PredictorError,
    SchemaError,
)
from .explainer import MCCE
from .interval import Interval
from .model import TreeChain
from .schema import Schema

__version__ = "0.1.0"

__all__ = [
    "MCCE",
    "ConstraintError",
    "Counterfactuals",
    "Decision",
    "Gower",
    "Interval",
    "McceError",
    "McceWarning",
    "MissingExtraError",
    "NotFittedError",
    "ParameterError",
    "PredictorError",
    "Schema",
    "SchemaError",
    "TreeChain",
    "__version__",
    "constraints",
]
