"""Step 1: models of the mutable features given the immutable ones and the decision."""

from .associations import Associations
from .capabilities import require, visit_order_of
from .identifiers import is_identifier, warn_of_useless_columns
from .registry import GENERATORS, find_generator, limit_inputs
from .trees import TreeChain

__all__ = [
    "GENERATORS",
    "Associations",
    "TreeChain",
    "find_generator",
    "is_identifier",
    "limit_inputs",
    "require",
    "visit_order_of",
    "warn_of_useless_columns",
]
