"""Counterfactual explanations for tabular data: valid, realistic, low-cost, actionable."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import constraints
from .counterfactuals import Counterfactuals
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
from .model import TreeChain
from .predictors.decision import Decision
from .predictors.interval import Interval
from .search.config import ExactSearch, Search
from .tables.schema import Schema
from .version import __version__

if TYPE_CHECKING:
    from . import metrics

__all__ = [
    "MCCE",
    "ConstraintError",
    "Counterfactuals",
    "DatasetError",
    "Decision",
    "ExactSearch",
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
    "metrics",
]


def __getattr__(name: str) -> Any:
    """Modules that are imported when they are first asked for."""
    if name == "metrics":
        return import_module(".metrics", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
