"""Constraints: what a person can and cannot change.

Pass a list of them, or the path of a TOML file, as ``MCCE(constraints=...)``.
"""

from .constraint import Constraint
from .feature_builders import (
    between,
    change,
    frozen,
    levels,
    not_down,
    not_up,
    only_down,
    only_up,
    transitions,
)
from .row_builders import derived, max_changes, relation, step, together, weight

__all__ = [
    "Constraint",
    "between",
    "change",
    "derived",
    "frozen",
    "levels",
    "max_changes",
    "not_down",
    "not_up",
    "only_down",
    "only_up",
    "relation",
    "step",
    "together",
    "transitions",
    "weight",
]
