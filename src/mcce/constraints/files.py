"""Constraints in a TOML file that a domain expert can read and write.

The file holds a list ``rules`` of entries:

.. code-block:: toml

    [[rules]]
    only_up = "age"
    [[rules]]
    change = {feature = "salary", at_most = "20 %"}
    [[rules]]
    levels = {feature = "housing", allowed = ["rent", "own", {missing = true}]}

Errors point to the line where a rule begins. A file may come from anywhere: it is read or refused
within bounds of time and memory.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConstraintError, shorten
from .conditions import check_terms
from .constraint import Constraint, quote_name
from .entries import make_constraints

MAX_FILE_BYTES = 250_000
MAX_RULES = 1_000  # a list of features makes one for each
MAX_VALUES = 10_000  # keys, values, lists and tables
MAX_NESTING = 20  # lists and tables inside each other, and parts of a dotted key
MAX_TEXT = 4_000  # characters of a string or a key
MAX_BITS = 64  # of a whole number
# Reading a key takes time that grows with the square of its parts.
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}""")
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
    return f"line {1 + text.count(chr(10), 0, place)}"
