"""Relations between columns that hold in the training data, such as ``total = months * price``."""

from .equalities import Linear, Product, Ratio
from .evidence import FoundRelation
from .patterns import Condition, Dependency, Equivalence, Ordering
from .relation import Equality, Relation

__all__ = [
    "Condition",
    "Dependency",
    "Equality",
    "Equivalence",
    "FoundRelation",
    "Linear",
    "Ordering",
    "Product",
    "Ratio",
    "Relation",
]
