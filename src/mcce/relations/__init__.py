"""Relations between columns that hold in the training data, such as ``total = months * price``."""

from .kinds import Dependency, Equivalence, HasValue, Linear, Ordering, Product, Ratio
from .relation import Equality, FoundRelation, Relation

__all__ = [
    "Dependency",
    "Equality",
    "Equivalence",
    "FoundRelation",
    "HasValue",
    "Linear",
    "Ordering",
    "Product",
    "Ratio",
    "Relation",
]
