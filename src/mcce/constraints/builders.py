"""Constraints: how people may change, declared once.

Of a feature, given the person's own value (a feature that stays as it is never breaks one):
:func:`only_up`, :func:`only_down`, :func:`not_up`, :func:`not_down`, :func:`between`,
:func:`change`, :func:`levels`, :func:`transitions`, :func:`frozen`. Of a whole row:
:func:`max_changes`, :func:`together`, :func:`relation`. Of the cost: :func:`weight`, :func:`step`.

Always true: they are hard. Candidates are drawn within those of a feature, judged by those of a
row, and what is returned is checked against all of them once more, value by value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..errors import ConstraintError
from .constraint import Constraint
from .expressions import Expression
from .features import Between, Change, Direction, Levels, Transitions
from .rows import Frozen, MaxChanges, Relation, Step, Together, Weight

__all__ = [
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

Where: TypeAlias = "str | Callable[[pd.DataFrame], Any] | Sequence[bool] | None"


def only_up(feature: Hashable, *, order: Iterable[Any] | None = None) -> Constraint:
    """The feature may only rise; ``order`` ranks levels that have no order of their own."""
    return Direction(_one("only_up", feature), up=True, strict=True, order=_order(order))


def only_down(feature: Hashable, *, order: Iterable[Any] | None = None) -> Constraint:
    """The feature may only fall."""
    return Direction(_one("only_down", feature), up=False, strict=True, order=_order(order))


def not_down(feature: Hashable, *, order: Iterable[Any] | None = None) -> Constraint:
    """The feature may not fall; unlike with :func:`only_up` it may become or stop being missing."""
    return Direction(_one("not_down", feature), up=True, strict=False, order=_order(order))


def not_up(feature: Hashable, *, order: Iterable[Any] | None = None) -> Constraint:
    """The feature may not rise."""
    return Direction(_one("not_up", feature), up=False, strict=False, order=_order(order))


def between(feature: Hashable, low: Any = None, high: Any = None) -> Constraint:
    """A new value lies between two ends, both included; None is no end."""
    if low is None and high is None:
        raise ConstraintError(f"between {feature}: give low or high or both.")
    return Between(_one("between", feature), low, high)


def change(feature: Hashable, *, at_least: Any = None, at_most: Any = None) -> Constraint:
    """A new value differs from the own one by so much: ``at_most=500`` or ``at_most="20 %"``.

    Below 0 is less than the own value: ``at_least=-500`` lets it fall by 500 and no more. A
    percentage is of the size of the own value.
    """
    if at_least is None and at_most is None:
        raise ConstraintError(f"change {feature}: give at_least or at_most or both.")
    return Change(_one("change", feature), at_least, at_most)


def levels(feature: Hashable, allowed: Iterable[Any]) -> Constraint:
    """A new level is one of these; None among them allows missing."""
    return Levels(_one("levels", feature), _several(f"levels {feature}", "allowed", allowed))


def transitions(feature: Hashable, allowed: Mapping[Any, Iterable[Any]]) -> Constraint:
    """A level may become one of those listed for it; a level that is not listed stays."""
    title = f"transitions {feature}"
    if not isinstance(allowed, Mapping):
        raise ConstraintError(
            f"{title}: allowed must map each level to those it may become, got {allowed!r}."
        )
    listed = [(level, _several(title, str(level), after)) for level, after in allowed.items()]
    return Transitions(_one("transitions", feature), tuple(listed))


def frozen(*features: Hashable, where: Where = None) -> Constraint:
    """The features stay as they are for the people where a condition holds.

    ``where``: a condition such as ``"age > 60"``, a function of the people's frame, or one yes or
    no for each person.
    """
    if isinstance(where, str):
        Expression(where)  # an error here and not when people are explained
    return Frozen(_names("frozen", features), where)


def max_changes(n: int, features: Iterable[Hashable] = ()) -> Constraint:
    """At most so many changes, of all features or of these."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ConstraintError(f"max_changes: n must be a whole number from 1 on, got {n!r}.")
    return MaxChanges(_several("max_changes", "features", features), int(n))


def together(*features: Hashable) -> Constraint:
    """All of these features change or none does."""
    if len(features) < 2:
        raise ConstraintError(f"together: name two features or more, got {list(features)!r}.")
    return Together(_names("together", features))


def relation(name: str, holds: str | Callable[[pd.DataFrame], Any]) -> Constraint:
    """A condition that every answer meets, called ``name`` where it is given as a reason.

    ``holds``: ``"years_employed <= age - 16"``, or a function from a frame to one yes or no per
    row. A comparison with a missing value does not hold.
    """
    if not isinstance(name, str) or not name:
        raise ConstraintError(f"relation: name must be a text, got {name!r}.")
    if isinstance(holds, str):
        expression = Expression(holds)
        return Relation(expression.names, expression, name)
    if not callable(holds):
        raise ConstraintError(
            f"relation {name!r}: holds must be a condition such as 'debt <= salary' or a function "
            f"of a frame, got {holds!r}."
        )
    return Relation((), holds, name)


def weight(feature: Hashable, weight: float) -> Constraint:
    """How much a change of the feature costs in the distance, where 1 is as usual."""
    number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
    if not number or not 0 <= weight < math.inf:
        raise ConstraintError(
            f"weight {feature}: a weight must be a number from 0 on, got {weight!r}."
        )
    return Weight(_one("weight", feature), float(weight))


def step(feature: Hashable, step: Any) -> Constraint:
    """Differences below this are no change: the person's own value is kept."""
    return Step(_one("step", feature), step)


def build(word: str, given: Mapping[str, Any]) -> Constraint:
    """The constraint that a builder makes; the inverse of :meth:`Constraint.builder_call`."""
    if word not in __all__:
        raise ConstraintError(f"There is no constraint {word!r}. There are {', '.join(__all__)}.")
    arguments = dict(given)
    features = arguments.pop("features", []) if word in ("frozen", "together") else []
    made: Constraint = globals()[word](*features, **arguments)
    return made


def _one(title: str, feature: Any) -> tuple[Hashable, ...]:
    return _names(title, (feature,))


def _order(order: Iterable[Any] | None) -> tuple[Any, ...] | None:
    return None if order is None else _several("order", "order", order)


def _names(title: str, names: Sequence[Hashable]) -> tuple[Hashable, ...]:
    if not names:
        raise ConstraintError(f"{title}: name at least one feature.")
    return _several(title, "features", names)


def _several(title: str, argument: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ConstraintError(f"{title}: {argument} must be a list, got {values!r}.")
    try:
        return tuple(dict.fromkeys(values))
    except TypeError as error:
        raise ConstraintError(
            f"{title}: {argument} must list plain values such as names, got {values!r}: {error}."
        ) from None
