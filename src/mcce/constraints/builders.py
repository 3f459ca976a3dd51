"""All functions that make constraints, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConstraintError, shorten
from .constraint import OF_SEVERAL_FEATURES, Constraint
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

BUILDERS: dict[str, Callable[..., Constraint]] = {
    "between": between,
    "change": change,
    "derived": derived,
    "frozen": frozen,
    "levels": levels,
    "max_changes": max_changes,
    "not_down": not_down,
    "not_up": not_up,
    "only_down": only_down,
    "only_up": only_up,
    "relation": relation,
    "step": step,
    "together": together,
    "transitions": transitions,
    "weight": weight,
}


def build(name: str, arguments: Mapping[str, Any]) -> Constraint:
    """The constraint that a function makes; the inverse of :meth:`Constraint.builder_call`.

    Examples
    --------
    >>> build("only_up", {"feature": "age"})
    only_up('age')
    """
    if name not in BUILDERS:
        raise ConstraintError(
            f"There is no constraint {shorten(name)}. The constraints are {', '.join(BUILDERS)}."
        )
    given = dict(arguments)
    features = given.pop("features", []) if name in OF_SEVERAL_FEATURES else []
    return BUILDERS[name](*features, **given)
