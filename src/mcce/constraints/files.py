"""Constraints in a TOML file that a domain expert can read and write.

The file holds a list ``rules``. Each entry is the name of a function of :mod:`mcce.constraints` and
its arguments:

.. code-block:: toml

    [[rules]]
    only_up = "age"
    [[rules]]
    change = {feature = "salary", at_most = "20 %"}
    [[rules]]
    levels = {feature = "housing", allowed = ["rent", "own", {missing = true}]}

Errors point to the line where a rule begins. The service takes the same entries as JSON. A file may
come from anywhere: its bounds are checked before or while it is parsed, never after.
"""

from __future__ import annotations

import datetime
import inspect
import math
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConstraintError, did_you_mean, shorten
from .builders import BUILDERS
from .conditions import MAX_NUMBER, check_terms
from .constraint import OF_SEVERAL_FEATURES, Constraint, list_values, quote_name

MAX_FILE_BYTES = 250_000
MAX_RULES = 1_000  # a list of features makes one for each
MAX_VALUES = 10_000  # keys, values, lists and tables
MAX_NESTING = 20  # lists and tables inside each other, and parts of a dotted key
MAX_TEXT = 4_000  # characters of a string or a key
# Possessive, so that no file makes it go back.
_TOKEN = re.compile(
    r"""(?P<text>\"{3}(?:[^\\"]|\\.|"{1,2}(?!"))*+"{3,5}
        | '{3}(?:[^']|'{1,2}(?!'))*+'{3,5}
        | "(?:[^"\\\n]|\\[^\n])*+" | '[^'\n]*+')
    | (?P<word>[^\s"'#\[\]{},=.]++)
    | (?P<skip>[ \t\r]++|\#[^\n]*+)
    | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
# Up to the first key.
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*['\"]?rules['\"]?[ \t]*\]\](?:\s|#[^\n]*+)*+", re.MULTILINE)


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
    name = quote_name(file.name)
    constraints: list[Constraint] = []
    n_terms = 0
    for place, entry in _read_toml(read_text(file, "constraints"), name):
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
    if name not in BUILDERS:
        raise ConstraintError(
            f"there is no constraint {shorten(name, 60)}.{did_you_mean(name, BUILDERS)} The "
            f"constraints are {', '.join(BUILDERS)}."
        )
    if isinstance(value, Mapping):
        return [_make_from_mapping(name, dict(value))]
    if isinstance(value, list) and name in OF_SEVERAL_FEATURES:
        return [_call(name, value, {})]
    features = value if isinstance(value, list) else [value]
    for feature in features:
        if isinstance(feature, datetime.time):
            raise ConstraintError(
                f"{name}: the time {feature} is no column. Write the name in quotes."
            )
    return [_call(name, [feature], {}) for feature in features]


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


def read_text(file: Path, what: str, most: int = MAX_FILE_BYTES) -> str:
    """The text of a file that is regular and not too large, opened without waiting."""
    try:
        # Opening a pipe waits for a writer unless told not to; a terminal would take over.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        with open(os.open(file, flags | getattr(os, "O_BINARY", 0)), "rb") as stream:
            regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            content = stream.read(most + 1) if regular else b""
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise ConstraintError(f"The {what} in {shorten(file)} cannot be read: {reason}.") from None
    if not regular:
        raise ConstraintError(
            f"The {what} in {shorten(file)} cannot be read: it is not a regular file. "
            "Pass the path of a file."
        )
    if len(content) > most:
        raise ConstraintError(
            f"The {what} in {shorten(file)} cannot be read: it may have "
            f"{most} bytes, and has more. Split it, or write it in Python."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConstraintError(
            f"The {what} in {shorten(file)} cannot be read: byte {error.start} is not "
            "UTF-8. Save the file as UTF-8."
        ) from None


def parse_toml(text: str, file: str) -> dict[str, Any]:
    r"""What a TOML file holds, within the bounds.

    Examples
    --------
    >>> parse_toml("age = [1, 2]", "labels.toml")
    {'age': [1, 2]}
    """
    text = text.replace("\r\n", "\n")
    _check_bounds(text, file)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"{file} is not valid TOML: {shorten(error, 200)}.") from None


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


def _read_toml(text: str, file: str) -> list[tuple[str, Any]]:
    r"""The entries of a TOML file, each with its line, or its number in a list without headers.

    Examples
    --------
    >>> _read_toml('[[rules]]\nonly_up = "age"', "rules.toml")
    [('line 2', {'only_up': 'age'})]
    """
    listed = _listed_rules(parse_toml(text, file), file)
    text = text.replace("\r\n", "\n")
    # A line of a string is no header.
    headers = _TOKEN.sub(lambda m: " " * len(m[0]) if "\n" in m[0].strip() else m[0], text)
    lines = [1 + text.count("\n", 0, header.end()) for header in _HEADER.finditer(headers)]
    places = [f"line {line}" for line in lines]
    if len(places) != len(listed):
        places = [f"rule {at}" for at, _ in enumerate(listed, start=1)]
    return list(zip(places, listed, strict=True))


def _listed_rules(content: Mapping[str, Any], file: str) -> list[Any]:
    """The list of entries in a file.

    Examples
    --------
    >>> _listed_rules({"rules": [{"only_up": "age"}]}, "rules.toml")
    [{'only_up': 'age'}]
    """
    if set(content) != {"rules"} or not isinstance(content["rules"], list):
        raise ConstraintError(
            f"{file} must contain one list called rules and nothing else, for example '[[rules]]' "
            f"with 'only_up = \"age\"' below it, got {shorten(list(content))}."
        )
    return content["rules"]


def _make_from_mapping(name: str, arguments: dict[str, Any]) -> Constraint:
    known = list(inspect.signature(BUILDERS[name]).parameters)
    for key in arguments:
        if key not in known:
            raise ConstraintError(
                f"{name} has no argument {shorten(key, 60)}.{did_you_mean(key, known)} Its "
                f"arguments are {', '.join(known)}."
            )
    for key in {"allowed", "levels"}.intersection(arguments):
        arguments[key] = _read_allowed(name, arguments[key])
    features = arguments.pop("features", []) if name in OF_SEVERAL_FEATURES else []
    if not isinstance(features, list):
        raise ConstraintError(f"{name}: features must be a list, got {shorten(features)}.")
    return _call(name, features, arguments)


def _read_allowed(name: str, allowed: Any) -> Any:
    """The levels that a rule allows, as Python has them: None where a file says missing."""
    if isinstance(allowed, Mapping):
        return {level: _read_levels(after) for level, after in allowed.items()}
    if name != "transitions" or not isinstance(allowed, list):
        return _read_levels(allowed)
    read: dict[Any, Any] = {}
    for way in allowed:
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


def _call(name: str, positional: list[Any], arguments: Mapping[str, Any]) -> Constraint:
    builder = BUILDERS[name]
    try:
        inspect.signature(builder).bind(*positional, **arguments)
        return builder(*positional, **arguments)
    except ConstraintError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ConstraintError(f"{name}: {shorten(error, 150)}.") from None


def _check_bounds(text: str, file: str) -> None:
    """Raise for a text that would take long to parse; up to where TOML would be wrong."""
    nesting = n_parts = n_values = 0
    for match in _TOKEN.finditer(text):
        kind, token, flaw = match.lastgroup, match[0], ""
        if token in ("'", '"'):
            line = 1 + text.count("\n", 0, match.start())
            raise ConstraintError(f"{file} is not valid TOML: a string of line {line} has no end.")
        if kind == "mark":
            nesting += (token in "[{") - (token in "]}")
            n_values += token in "[{"
            n_parts = n_parts if token == "." else 0
        elif kind != "skip":
            n_parts, n_values = n_parts + 1, n_values + 1
            number = kind == "word" and token[0] in "+-0123456789"
            longest = MAX_NUMBER if number else MAX_TEXT
            quotes = 0 if kind == "word" else 6 if token[:3] in ('"""', "'''") else 2
            if len(token) - quotes > longest:
                flaw = (
                    f"{shorten(token, 40)} has {len(token) - quotes} characters, but "
                    f"{'a number' if number else 'a string'} may have {longest}. Shorten it."
                )
        if nesting > MAX_NESTING:
            flaw = (
                f"more than {MAX_NESTING} lists or tables are inside each other. Write it flatter."
            )
        elif n_parts > MAX_NESTING:
            flaw = f"a dotted name or number has more than {MAX_NESTING} parts. Write it flatter."
        elif n_values > MAX_VALUES:
            flaw = (
                f"a file may hold {MAX_VALUES} keys and values, and this is one more. Split it, or "
                "write it in Python."
            )
        if flaw:
            line = 1 + text.count("\n", 0, match.start())
            raise ConstraintError(f"{file}, line {line}: {flaw}")
