"""Counterfactual explanations for tabular data: valid, realistic, low-cost, actionable.

Always true: ``import mcce`` loads none of the libraries it is built on. Each public name is
imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .caching import attribute_loader
from .version import __version__

if TYPE_CHECKING:
    from . import constraints as constraints
    from . import datasets as datasets
    from . import metrics as metrics
    from . import predictors as predictors
    from . import privacy as privacy
    from . import protocols as protocols
    from . import report as report
    from . import testing as testing
    from .comparison import ModelComparison as ModelComparison
    from .comparison import compare_models as compare_models
    from .counterfactuals.anonymous import AnonymousAnswers as AnonymousAnswers
    from .counterfactuals.result import Counterfactuals as Counterfactuals
    from .distances import HVDM as HVDM
    from .distances import L1 as L1
    from .distances import FeatureDistance as FeatureDistance
    from .distances import Gower as Gower
    from .errors import ConstraintError as ConstraintError
    from .errors import LabelsError as LabelsError
    from .errors import McceError as McceError
    from .errors import McceWarning as McceWarning
    from .errors import MissingExtraError as MissingExtraError
    from .errors import NotFittedError as NotFittedError
    from .errors import ParameterError as ParameterError
    from .errors import PredictorError as PredictorError
    from .errors import ReadError as ReadError
    from .errors import SavedFileError as SavedFileError
    from .errors import SchemaError as SchemaError
    from .errors import TimeLimitError as TimeLimitError
    from .errors import WorkerError as WorkerError
    from .errors import WriteError as WriteError
    from .explainer import MCCE as MCCE
    from .explainer import load as load
    from .files.training_sample import TrainingSample as TrainingSample
    from .files.training_sample import sample_training as sample_training
    from .model.ctree import InferenceTreeChain as InferenceTreeChain
    from .model.forest import ForestChain as ForestChain
    from .model.trees import TreeChain as TreeChain
    from .predictors.decision import Decision as Decision
    from .predictors.decision import Interval as Interval
    from .privacy.private_domains import Domain as Domain
    from .privacy.private_trees import PrivateTrees as PrivateTrees
    from .search.config import ExactSearch as ExactSearch
    from .search.config import Search as Search
    from .survival.committee import Survival as Survival
    from .tables.schema import Schema as Schema

# The module of each name above; a test compares them with the imports for type checkers.
_MODULES = {
    "HVDM": "distances",
    "L1": "distances",
    "MCCE": "explainer",
    "AnonymousAnswers": "counterfactuals.anonymous",
    "ConstraintError": "errors",
    "Counterfactuals": "counterfactuals.result",
    "Decision": "predictors.decision",
    "Domain": "privacy.private_domains",
    "ExactSearch": "search.config",
    "FeatureDistance": "distances",
    "ForestChain": "model.forest",
    "Gower": "distances",
    "InferenceTreeChain": "model.ctree",
    "Interval": "predictors.decision",
    "LabelsError": "errors",
    "McceError": "errors",
    "McceWarning": "errors",
    "MissingExtraError": "errors",
    "ModelComparison": "comparison",
    "NotFittedError": "errors",
    "ParameterError": "errors",
    "PredictorError": "errors",
    "PrivateTrees": "privacy.private_trees",
    "ReadError": "errors",
    "SavedFileError": "errors",
    "Schema": "tables.schema",
    "SchemaError": "errors",
    "Search": "search.config",
    "Survival": "survival.committee",
    "TimeLimitError": "errors",
    "TrainingSample": "files.training_sample",
    "TreeChain": "model.trees",
    "WorkerError": "errors",
    "WriteError": "errors",
    "compare_models": "comparison",
    "constraints": "constraints",
    "datasets": "datasets",
    "load": "explainer",
    "metrics": "metrics",
    "predictors": "predictors",
    "privacy": "privacy",
    "protocols": "protocols",
    "report": "report",
    "sample_training": "files.training_sample",
    "testing": "testing",
}
__all__ = [*_MODULES, "__version__"]

__getattr__ = attribute_loader(__name__, _MODULES)


def __dir__() -> list[str]:
    """All public names, whether they are imported yet or not."""
    return sorted(__all__)
