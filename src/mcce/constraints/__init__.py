"""How people may change; :mod:`.written` holds what users write, the rest what it means."""

from .base import Constraint
from .written import (
    between,
    change,
    frozen,
    levels,
    max_changes,
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

__all__ = [
    "Constraint",
    "between",
    "change",
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
