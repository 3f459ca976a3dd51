"""Step 1: models of the mutable features given the immutable ones and the decision."""

from .associations import Associations
from .capabilities import require, visit_order_of
from .identifiers import is_identifier, warn_of_useless_columns
from .private import Domain, Ledger, PrivateTrees, plain_domains, read_domains
from .registry import GENERATORS, encode_training, find_generator, is_private, limit_inputs
from .trees import TreeChain

__all__ = [
    "GENERATORS",
    "Associations",
    "Domain",
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
    "visit_order_of",
    "warn_of_useless_columns",
]
