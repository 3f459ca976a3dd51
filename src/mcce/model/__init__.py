"""Step 1: models of the mutable features given the immutable ones and the decision."""

from .associations import Associations
from .capabilities import require, suggest_generators, visit_order_of
from .copula import GaussianCopula
from .ctree import InferenceTreeChain
from .forest import ForestChain
from .identifiers import is_identifier, warn_of_useless_columns
from .networks import CTGAN, MADE
from .private import Domain, Ledger, PrivateTrees, plain_domains, read_domains
from .registry import (
    GENERATORS,
    GeneratorName,
    encode_training,
    find_generator,
    is_private,
    limit_inputs,
)
from .trees import TreeChain

__all__ = [
    "CTGAN",
    "GENERATORS",
    "MADE",
    "Associations",
    "Domain",
    "ForestChain",
    "GaussianCopula",
    "GeneratorName",
    "InferenceTreeChain",
    "Ledger",
    "PrivateTrees",
    "TreeChain",
    "encode_training",
    "find_generator",
    "is_identifier",
    "is_private",
    "limit_inputs",
    "plain_domains",
    "read_domains",
    "require",
    "suggest_generators",
    "visit_order_of",
    "warn_of_useless_columns",
]
