"""Step 1: models of the mutable features given the immutable ones and the decision."""

from .capabilities import require, visit_order_of
from .identifiers import warn_of_useless_columns
from .registry import GENERATORS, find_generator
from .trees import TreeChain

__all__ = [
    "GENERATORS",
    "TreeChain",
    "find_generator",
    "require",
    "visit_order_of",
    "warn_of_useless_columns",
]
