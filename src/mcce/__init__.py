"""Counterfactual explanations for tabular data: valid, realistic, low-cost, actionable.

Always true: ``import mcce`` loads none of the libraries it is built on. Each public name is
imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .caching import attribute_loader
from .version import __version__

if TYPE_CHECKING:
    from . import (
        constraints,
        datasets,
        metrics,
        predictors,
        privacy,
        protocols,
        report,
        testing,
    )
    from .counterfactuals import AnonymousAnswers, Counterfactuals
    from .distances import HVDM, L1, FeatureDistance, Gower
    from .errors import (
        ConstraintError,
        LabelsError,
        McceError,
        McceWarning,
        MissingExtraError,
        NotFittedError,
        ParameterError,
        PredictorError,
        ReadError,
        SavedFileError,
        SchemaError,
        TimeLimitError,
        WorkerError,
        WriteError,
    )
    from .explainer import MCCE, load
    from .files.sampling import TrainingSample, sample_training
    from .model.ctree import InferenceTreeChain
    from .model.forest import ForestChain
    from .model.trees import TreeChain
    from .predictors.decision import Decision, Interval
    from .privacy.accounting import Ledger
    from .privacy.domains import Domain
    from .privacy.trees import PrivateTrees
    from .search.config import ExactSearch, Search
    from .tables.schema import Schema

__all__ = [
    "HVDM",
    "L1",
    "MCCE",
    "AnonymousAnswers",
    "ConstraintError",
    "Counterfactuals",
    "Decision",
    "Domain",
    "ExactSearch",
    "FeatureDistance",
    "ForestChain",
    "Gower",
    "InferenceTreeChain",
    "Interval",
    "LabelsError",
    "Ledger",
    "McceError",
    "McceWarning",
    "MissingExtraError",
    "NotFittedError",
    "ParameterError",
    "PredictorError",
    "PrivateTrees",
    "ReadError",
    "SavedFileError",
    "Schema",
    "SchemaError",
    "Search",
    "TimeLimitError",
    "TrainingSample",
    "TreeChain",
    "WorkerError",
    "WriteError",
    "__version__",
    "constraints",
    "datasets",
    "load",
    "metrics",
    "predictors",
    "privacy",
    "protocols",
    "report",
    "sample_training",
    "testing",
]

# The module of each name above; a test compares them with the imports for type checkers.
_MODULES = {
    "HVDM": "distances",
    "L1": "distances",
    "MCCE": "explainer",
    "AnonymousAnswers": "counterfactuals",
    "ConstraintError": "errors",
    "Counterfactuals": "counterfactuals",
    "Decision": "predictors.decision",
    "Domain": "privacy.domains",
    "ExactSearch": "search.config",
    "FeatureDistance": "distances",
    "ForestChain": "model.forest",
    "Gower": "distances",
    "InferenceTreeChain": "model.ctree",
    "Interval": "predictors.decision",
    "LabelsError": "errors",
    "Ledger": "privacy.accounting",
    "McceError": "errors",
    "McceWarning": "errors",
    "MissingExtraError": "errors",
    "NotFittedError": "errors",
    "ParameterError": "errors",
    "PredictorError": "errors",
    "PrivateTrees": "privacy.trees",
    "ReadError": "errors",
    "SavedFileError": "errors",
    "Schema": "tables.schema",
    "SchemaError": "errors",
    "Search": "search.config",
    "TimeLimitError": "errors",
    "TrainingSample": "files.sampling",
    "TreeChain": "model.trees",
    "WorkerError": "errors",
    "WriteError": "errors",
    "constraints": "constraints",
    "datasets": "datasets",
    "load": "explainer",
    "metrics": "metrics",
    "predictors": "predictors",
    "privacy": "privacy",
    "protocols": "protocols",
    "report": "report",
    "sample_training": "files.sampling",
    "testing": "testing",
}

__getattr__ = attribute_loader(__name__, _MODULES)


def __dir__() -> list[str]:
    """All public names, whether they are imported yet or not."""
    return sorted(__all__)
