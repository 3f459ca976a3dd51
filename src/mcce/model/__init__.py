"""Step 1: models of the mutable features given the immutable ones and the decision."""

from .associations import Associations
from .identifiers import is_identifier, warn_of_useless_columns
from .registry import (
    GENERATORS,
    encode_training,
    find_generator,
    is_private,
    limit_inputs,
    require,
    suggest_generators,
    visit_order_of,
)

__all__ = [
    "GENERATORS",
    "Associations",
    "encode_training",
    "find_generator",
    "is_identifier",
    "is_private",
    "limit_inputs",
    "require",
    "suggest_generators",
    "visit_order_of",
    "warn_of_useless_columns",
]
