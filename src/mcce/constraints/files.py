"""Constraints as the name of a function and its arguments: in files, requests and saved explainers.

A TOML file, which a domain expert can read and write, holds a list ``rules`` of entries:

.. code-block:: toml

    [[rules]]
    only_up = "age"
    [[rules]]
    change = {feature = "salary", at_most = "20 %"}
    [[rules]]
    levels = {feature = "housing", allowed = ["rent", "own", {missing = true}]}

The first argument may stand alone. Errors point to the line where a rule begins. A file may come
from anywhere: it is read or refused within bounds of time and memory. The service takes the same
entries as JSON.
"""

from __future__ import annotations

import datetime
import inspect
import math
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConstraintError, did_you_mean, shorten
from . import of_features, of_rows
from .conditions import check_terms
from .constraint import Constraint, list_values, quote_name

BUILDERS: dict[str, Callable[..., Constraint]] = dict(
    sorted((one.__name__, one) for one in (*of_features.BUILDERS, *of_rows.BUILDERS))
)
MAX_FILE_BYTES = 250_000
MAX_RULES = 1_000  # a list of features makes one for each
MAX_VALUES = 10_000  # keys, values, lists and tables
MAX_NESTING = 20  # lists and tables inside each other, and parts of a dotted key
MAX_TEXT = 4_000  # characters of a string or a key
MAX_BITS = 64  # of a whole number
# Reading a key takes time that grows with the square of its parts.
_DOTTED = re.compile(
    r"""(?<![\w\\-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}"""
)
# Up to the first key.
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*['\"]?rules['\"]?[ \t]*\]\](?:\s|#[^\n]*+)*+", re.MULTILINE)
_TOO_DEEP = f"more than {MAX_NESTING} lists or tables are inside each other. Write it flatter."
_LONG_STRING = re.compile(r'"{3}.*?"{3}|\'{3}.*?\'{3}', re.DOTALL)


def read_constraints(path: str | os.PathLike[str]) -> list[Constraint]:
    r"""The constraints in a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rules.toml")
    >>> _ = path.write_text('[[rules]]\nonly_up = "age"\n')
    >>> read_constraints(path)
    [only_up('age')]
    """
    file = Path(path)
    if file.suffix.lower() != ".toml":
        raise ConstraintError(f"A file of constraints must be called .toml, got {shorten(file)}.")
    name, text = quote_name(file.name), read_text(file, "constraints")
    content = parse_toml(text, name)
    if set(content) != {"rules"} or not isinstance(content["rules"], list):
        raise ConstraintError(
            f"{name} must contain one list called rules and nothing else, for example '[[rules]]' "
            f"with 'only_up = \"age\"' below it, got {shorten(list(content))}."
        )
    constraints: list[Constraint] = []
    n_terms = 0
    for place, entry in zip(_places(text, len(content["rules"])), content["rules"], strict=True):
        source = f"{name}, {place}"
        try:
            made = make_constraints(entry)
            n_terms += sum(constraint.n_terms for constraint in made)
            check_terms(n_terms)
        except ConstraintError as error:
            raise ConstraintError(f"{source}: {error}") from None
        constraints += [replace(constraint, source=source) for constraint in made]
        if len(constraints) > MAX_RULES:
            raise ConstraintError(
                f"{source}: a file may hold {MAX_RULES} rules, and this is one more; a list of "
                "features counts as one for each. Split it, or pass a list of constraints."
            )
    return constraints


def read_text(file: Path, what: str, most: int = MAX_FILE_BYTES) -> str:
    """The text of a file that is regular and not too large, opened without waiting."""
    flaw = ""
    try:
        # Opening a pipe waits for a writer unless told not to; a terminal would take over.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        with open(os.open(file, flags | getattr(os, "O_BINARY", 0)), "rb") as stream:
            regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            content = stream.read(most + 1) if regular else b""
        if regular and len(content) <= most:
            return content.decode("utf-8-sig")
        flaw = "it is not a regular file. Pass the path of a file"
        if regular:
            flaw = f"it may have {most} bytes, and has more. Split it, or write it in Python"
    except UnicodeDecodeError as error:
        flaw = f"byte {error.start} is not UTF-8. Save the file as UTF-8"
    except (OSError, ValueError) as error:
        flaw = getattr(error, "strerror", None) or type(error).__name__
    raise ConstraintError(f"The {what} in {shorten(file)} cannot be read: {flaw}.")


def parse_toml(text: str, file: str) -> dict[str, Any]:
    r"""What a TOML file holds, within the bounds.

    Examples
    --------
    >>> parse_toml("age = [1, 2]", "labels.toml")
    {'age': [1, 2]}
    """
    if _DOTTED.search(text):
        raise ConstraintError(
            f"{file}: a dotted name or number has more than {MAX_NESTING} parts. Write it flatter."
        )
    try:
        content = tomllib.loads(text)
    except ValueError as error:
        flaw = shorten(error, 200)
        if "end of document" in flaw and (start := max(text.rfind('"""'), text.rfind("'''"))) >= 0:
            flaw += f". The last long string begins on {_line(text, start)}"
        raise ConstraintError(f"{file} is not valid TOML: {flaw}.") from None
    except RecursionError:
        raise ConstraintError(f"{file}: {_TOO_DEEP}") from None
    _check_bounds(content, file)
    return content


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
    parameters = _parameters(name)
    first, several = next(iter(parameters)), _takes_several(parameters)
    if isinstance(value, Mapping):
        return [build(name, {key: _read(name, key, value[key]) for key in value})]
    if isinstance(value, list) and several:
        return [build(name, {first: value})]
    features = value if isinstance(value, list) else [value]
    for feature in features:
        if isinstance(feature, datetime.time):
            raise ConstraintError(
                f"{name}: the time {feature} is no column. Write the name in quotes."
            )
    return [build(name, {first: [feature] if several else feature}) for feature in features]


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


def _check_bounds(content: dict[str, Any], file: str) -> None:
    """Raise for more than rules and labels ever need."""
    waiting, n_values = [(content, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        n_values += 1
        flaw = ""
        if isinstance(value, str) and len(value) > MAX_TEXT:
            flaw = (
                f"{shorten(value, 40)} has {len(value)} characters, but a string may have "
                f"{MAX_TEXT}. Shorten it."
            )
        elif isinstance(value, int) and value.bit_length() > MAX_BITS:
            flaw = f"{shorten(value)} is too large. A whole number may have {MAX_BITS} bits."
        elif depth > MAX_NESTING:
            flaw = _TOO_DEEP
        elif n_values > MAX_VALUES:
            flaw = f"a file may hold {MAX_VALUES} keys and values, and this one has more. Split it."
        if flaw:
            raise ConstraintError(f"{file}: {flaw}")
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        waiting += [(one, depth + 1) for one in inner] if isinstance(inner, list) else []


def _places(text: str, n_rules: int) -> list[str]:
    r"""The line of each rule, or its number in a list without headers.

    Examples
    --------
    >>> _places('[[rules]]\nonly_up = "age"', 1)
    ['line 2']
    """
    # A line of a string is no header.
    headers = _LONG_STRING.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    places = [_line(text, header.end()) for header in _HEADER.finditer(headers)]
    return places if len(places) == n_rules else [f"rule {at + 1}" for at in range(n_rules)]


def _line(text: str, place: int) -> str:
    n_before = text.count("\n", 0, place)
    return f"line {n_before + 1}"


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
        keys, items = (_json_value(part, constraint) for part in (list(value), [*value.values()]))
        if all(isinstance(key, str) for key in keys):
            return dict(zip(keys, items, strict=True))
        return [{"from": key, "to": item} for key, item in zip(keys, items, strict=True)]
    if isinstance(value, datetime.date):
        return value.isoformat()
    number = isinstance(value, (int, float)) and math.isfinite(value)
    if value is None or number or isinstance(value, str):
        return value
    raise ConstraintError(
        f"{constraint.quoted} cannot be written as JSON: it holds {shorten(value)}. Use text, "
        "finite numbers and dates."
    )
