"""Constraints in a file that a domain expert can read and write: TOML, or YAML with PyYAML.

The file holds a list ``rules``. Each entry is the name of a function of :mod:`mcce.constraints` and
its arguments:

.. code-block:: yaml

    rules:
      - only_up: age
      - change: {feature: salary, at_most: 20 %}
      - frozen: {features: [housing], where: age > 60}

In TOML, an entry is ``[[rules]]`` and ``only_up = "age"``. Errors point to the line.
"""

from __future__ import annotations

import datetime
import inspect
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConstraintError, shorten
from .bounds import MAX_FILE_BYTES, MAX_RULES
from .builders import BUILDERS
from .constraint import OF_SEVERAL_FEATURES, Constraint, did_you_mean, quote_name
from .entries import Entry
from .toml_rules import read_toml
from .yaml_rules import read_yaml

_READERS: dict[str, Callable[[str, str], list[Entry]]] = {
    ".toml": read_toml,
    ".yaml": read_yaml,
    ".yml": read_yaml,
}


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
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ConstraintError(
            f"A file of constraints must be called .toml, .yaml or .yml, got {shorten(file)}."
        )
    name = quote_name(file.name)
    constraints: list[Constraint] = []
    for entry in reader(read_text(file, "constraints"), name):
        try:
            made = list(_make_constraints(entry))
        except _EntryError as error:
            raise ConstraintError(f"{name}, line {error.line}: {error}") from None
        except ConstraintError as error:
            raise ConstraintError(f"{name}, line {entry.line}: {error}") from None
        source = f"{name}, line {entry.line}"
        constraints += [replace(constraint, source=source) for constraint in made]
        if len(constraints) > MAX_RULES:
            raise ConstraintError(
                f"{source}: a file may hold {MAX_RULES} rules, and this is one more; a list of "
                "features counts as one for each. Split it, or pass a list of constraints."
            )
    return constraints


def make_constraints(content: Any) -> list[Constraint]:
    """The constraints that an entry stands for, as a rule file has it.

    Examples
    --------
    >>> make_constraints({"only_up": ["age", "salary"]})
    [only_up('age'), only_up('salary')]
    """
    try:
        return list(_make_constraints(Entry(content, 0, {})))
    except _EntryError as error:
        raise ConstraintError(str(error)) from None


def write_entry(constraint: Constraint) -> dict[str, Any]:
    """An entry for a constraint, in types that JSON has; :func:`make_constraints` reads it.

    Examples
    --------
    >>> from mcce import constraints
    >>> write_entry(constraints.max_changes(2))
    {'max_changes': {'n': 2, 'features': []}}
    """
    name, arguments = constraint.builder_call()
    return {name: {key: _plain(value, constraint) for key, value in arguments.items()}}


def _plain(value: Any, constraint: Constraint) -> Any:
    """An argument as JSON has it; dates as text, which constraints read as dates."""
    if isinstance(value, (list, tuple)):
        return [_plain(item, constraint) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, constraint) for key, item in value.items()}
    if isinstance(value, datetime.date):
        return value.isoformat()
    number = isinstance(value, (int, float)) and math.isfinite(value)
    if value is None or number or isinstance(value, str):
        return value
    raise ConstraintError(
        f"{constraint.quoted} cannot be written as JSON: it holds {shorten(value)}. Use text, "
        "finite numbers and dates."
    )


def read_text(file: Path, what: str) -> str:
    """The text of a file that is regular and not too large, opened without waiting."""
    try:
        # Opening a pipe waits for a writer unless told not to; a terminal would take over.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        with open(os.open(file, flags | getattr(os, "O_BINARY", 0)), "rb") as stream:
            regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            content = stream.read(MAX_FILE_BYTES + 1) if regular else b""
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise ConstraintError(f"The {what} in {shorten(file)} cannot be read: {reason}.") from None
    if not regular:
        raise ConstraintError(
            f"The {what} in {shorten(file)} cannot be read: it is not a regular file. "
            "Pass the path of a file."
        )
    if len(content) > MAX_FILE_BYTES:
        raise ConstraintError(
            f"The {what} in {shorten(file)} cannot be read: it may have "
            f"{MAX_FILE_BYTES} bytes, and has more. Split it, or write it in Python."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConstraintError(
            f"The {what} in {shorten(file)} cannot be read: byte {error.start} is not "
            "UTF-8. Save the file as UTF-8."
        ) from None


class _EntryError(ConstraintError):
    """What is wrong with an entry, and on which line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def _make_constraints(entry: Entry) -> Iterator[Constraint]:
    """The constraints that an entry stands for; a list of features makes one for each."""
    if not isinstance(entry.content, Mapping) or len(entry.content) != 1:
        raise _EntryError(
            entry.line,
            "an entry must be the name of one constraint with its arguments, such as only_up: age, "
            f"got {shorten(entry.content)}.",
        )
    ((name, value),) = entry.content.items()
    if name not in BUILDERS:
        raise _EntryError(
            entry.line,
            f"there is no constraint {shorten(name, 60)}.{did_you_mean(name, BUILDERS)} The "
            f"constraints are {', '.join(BUILDERS)}.",
        )
    builder = BUILDERS[name]
    if isinstance(value, Mapping):
        yield _make_from_mapping(entry, name, builder, dict(value))
    elif isinstance(value, list) and name in OF_SEVERAL_FEATURES:
        yield _call(entry, name, builder, tuple(value), {})
    elif isinstance(value, list):
        for feature in value:
            yield _call(entry, name, builder, (feature,), {})
    else:
        yield _call(entry, name, builder, (value,), {})


def _make_from_mapping(
    entry: Entry, name: str, builder: Callable[..., Constraint], arguments: dict[str, Any]
) -> Constraint:
    known = list(inspect.signature(builder).parameters)
    for key in arguments:
        if key not in known:
            raise _EntryError(
                entry.line_of(key),
                f"{name} has no argument {shorten(key, 60)}.{did_you_mean(key, known)} Its "
                f"arguments are {', '.join(known)}.",
            )
    features = arguments.pop("features", []) if name in OF_SEVERAL_FEATURES else []
    if not isinstance(features, list):
        raise _EntryError(
            entry.line_of("features"), f"{name}: features must be a list, got {shorten(features)}."
        )
    return _call(entry, name, builder, tuple(features), arguments)


def _call(
    entry: Entry,
    name: str,
    builder: Callable[..., Constraint],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Constraint:
    try:
        inspect.signature(builder).bind(*args, **kwargs)
    except TypeError as error:
        raise _EntryError(entry.line, f"{name}: {shorten(error, 150)}.") from None
    try:
        return builder(*args, **kwargs)
    except ConstraintError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise _EntryError(entry.line, f"{name}: {shorten(error, 150)}.") from None
