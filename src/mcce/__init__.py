"""Counterfactual explanations for tabular data: valid, realistic, low-cost, actionable."""

from . import constraints
from .counterfactuals import Counterfactuals
from .decision import Decision
from .distances import Gower
from .errors import (
    ConstraintError,
    DatasetError,
    McceError,
    McceWarning,
    MissingExtraError,
    NotFittedError,
    ParameterError,
    PredictorError,
    SavedFileError,
    SchemaError,
)
from .explainer import MCCE, load
from .interval import Interval
from .model import TreeChain
from .schema import Schema
from .searches import Search
from .version import __version__

__all__ = [
    "MCCE",
    "ConstraintError",
    "Counterfactuals",
    "DatasetError",
    "Decision",
    "Gower",
    "Interval",
    "McceError",
    "McceWarning",
    "MissingExtraError",
    "NotFittedError",
    "ParameterError",
    "PredictorError",
    "SavedFileError",
    "Schema",
    "SchemaError",
    "Search",
    "TreeChain",
    "__version__",
    "constraints",
    "load",
]
