"""Constraints: what a person can and cannot change.

Pass a list of them, or the path of a TOML file, as ``MCCE(constraints=...)``.
"""

from .builders import (
    between,
    change,
    derived,
    discouraged,
    frozen,
    levels,
    max_changes,
    never_advise,
    not_down,
    not_up,
    only_down,
    only_up,
    relation,
    step,
    together,
    transitions,
    weight,
)
from .constraint import Constraint

__all__ = [
    "Constraint",
    "between",
    "change",
    "derived",
    "discouraged",
    "frozen",
    "levels",
    "max_changes",
    "never_advise",
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
