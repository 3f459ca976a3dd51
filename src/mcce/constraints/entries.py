"""Constraints as the name of a function and its arguments: in files, requests and saved explainers.

An entry of a file or a request is ``{"change": {"feature": "salary", "at_most": "20 %"}}``. Instead
of all arguments, the first may stand alone: ``{"only_up": "age"}``.
"""

from __future__ import annotations

import datetime
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConstraintError, did_you_mean, shorten
from . import of_features, of_rows
from .constraint import Constraint, list_values

BUILDERS: dict[str, Callable[..., Constraint]] = dict(
    sorted((one.__name__, one) for one in (*of_features.BUILDERS, *of_rows.BUILDERS))
)


def build(name: Any, arguments: Mapping[str, Any]) -> Constraint:
    """The constraint that a function makes; the inverse of :meth:`Constraint.builder_call`.

    Examples
    --------
    >>> build("only_up", {"feature": "age"})
    only_up('age')
    """
    parameters, given = _parameters(name), dict(arguments)
    for key in given:
        if key not in parameters:
            raise ConstraintError(
                f"{name} has no argument {shorten(key, 60)}.{did_you_mean(key, parameters)} Its "
                f"arguments are {', '.join(parameters)}."
            )
    features = given.pop("features", []) if _takes_several(parameters) else []
    if not isinstance(features, list):
        raise ConstraintError(f"{name}: features must be a list, got {shorten(features)}.")
    try:
        return BUILDERS[name](*features, **given)
    except ConstraintError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ConstraintError(f"{name}: {shorten(error, 150)}.") from None


def make_constraints(entry: Any) -> list[Constraint]:
    """The constraints that an entry stands for; a list of features makes one for each.

    Examples
    --------
    >>> make_constraints({"only_up": ["age", "salary"]})
    [only_up('age'), only_up('salary')]
    """
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise ConstraintError(
            "an entry must be the name of one constraint with its arguments, such as "
            f'only_up = "age", got {shorten(entry)}.'
        )
    ((name, value),) = entry.items()
    first, *_ = parameters = _parameters(name)
    if isinstance(value, Mapping):
        return [build(name, {key: _read(name, key, value[key]) for key in value})]
    if isinstance(value, list) and _takes_several(parameters):
        return [build(name, {first: value})]
    features = value if isinstance(value, list) else [value]
    for feature in features:
        if isinstance(feature, datetime.time):
            raise ConstraintError(
                f"{name}: the time {feature} is no column. Write the name in quotes."
            )
    return [
        build(name, {first: [feature] if _takes_several(parameters) else feature})
        for feature in features
    ]


def write_entry(constraint: Constraint) -> dict[str, Any]:
    """An entry for a constraint, in types that JSON has; :func:`make_constraints` reads it.

    Examples
    --------
    >>> from mcce import constraints
    >>> write_entry(constraints.max_changes(2))
    {'max_changes': {'n': 2, 'features': []}}
    >>> write_entry(constraints.transitions("job", {None: ["clerk"]}))
    {'transitions': {'feature': 'job', 'allowed': [{'from': None, 'to': ['clerk']}]}}
    """
    name, arguments = constraint.builder_call()
    return {name: {key: _json_value(value, constraint) for key, value in arguments.items()}}


def _parameters(name: Any) -> Mapping[str, inspect.Parameter]:
    """The arguments of the function of a constraint."""
    if name not in BUILDERS:
        raise ConstraintError(
            f"there is no constraint {shorten(name, 60)}.{did_you_mean(name, BUILDERS)} The "
            f"constraints are {', '.join(BUILDERS)}."
        )
    return inspect.signature(BUILDERS[name]).parameters


def _takes_several(parameters: Mapping[str, inspect.Parameter]) -> bool:
    """Whether a function takes the names of any number of features: together("age", "salary")."""
    return any(one.kind is one.VAR_POSITIONAL for one in parameters.values())


def _read(name: str, key: str, value: Any) -> Any:
    """An argument as Python has it: None where an entry says missing, a mapping of transitions."""
    if key not in ("allowed", "levels"):
        return value
    if isinstance(value, Mapping):
        return {level: _read_levels(after) for level, after in value.items()}
    if name != "transitions" or not isinstance(value, list):
        return _read_levels(value)
    read: dict[Any, Any] = {}
    for way in value:
        if not isinstance(way, Mapping) or way.keys() != {"from", "to"}:
            raise ConstraintError(
                "transitions: allowed must map each level to the levels it may become, or list "
                f'entries such as {{from = "rent", to = ["own"]}}, got {shorten(way)}.'
            )
        (level,) = list_values(name, "from", _read_levels([way["from"]]))
        if level in read:
            raise ConstraintError(f"transitions: {shorten(level)} occurs twice. Keep one of them.")
        read[level] = _read_levels(way["to"])
    return read


def _read_levels(levels: Any) -> Any:
    if not isinstance(levels, list):
        return levels
    return [None if level == {"missing": True} else level for level in levels]


def _json_value(value: Any, constraint: Constraint) -> Any:
    """An argument as JSON has it; dates as text, which constraints read as dates."""
    if isinstance(value, (list, tuple)):
        return [_json_value(item, constraint) for item in value]
    if isinstance(value, Mapping):
        items = [
            (_json_value(key, constraint), _json_value(item, constraint))
            for key, item in value.items()
        ]
        if all(isinstance(key, str) for key, _ in items):
            return dict(items)
        return [{"from": key, "to": item} for key, item in items]
    if isinstance(value, datetime.date):
        return value.isoformat()
    number = isinstance(value, (int, float)) and math.isfinite(value)
    if value is None or number or isinstance(value, str):
        return value
    raise ConstraintError(
        f"{constraint.quoted} cannot be written as JSON: it holds {shorten(value)}. Use text, "
        "finite numbers and dates."
    )
