"""Relations between columns that hold in the training data, such as ``total = months * price``."""

from .kinds import Condition, Dependency, Equivalence, Linear, Ordering, Product, Ratio
from .relation import Equality, FoundRelation, Relation

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
