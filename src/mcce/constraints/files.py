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

import difflib
import inspect
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ConstraintError, MissingExtraError
from .builders import BUILDERS
from .constraint import OF_SEVERAL_FEATURES, Constraint


@dataclass(frozen=True)
class Entry:
    """One entry of the list, with its line and the lines of its keys."""

    content: Any
    line: int
    key_lines: Mapping[str, int]

    def line_of(self, key: object) -> int:
        """Line of a key, or of the entry if that is not known."""
        return self.key_lines.get(str(key), self.line)


def read_constraints(path: str | os.PathLike[str]) -> list[Constraint]:
    r"""The constraints in a file.

    Parameters
    ----------
    path
        A file whose name ends in ``.toml``, ``.yaml`` or ``.yml``.

    Returns
    -------
    list of Constraint
        The constraints in the order of the file; each knows its file and line.

    Raises
    ------
    ConstraintError
        If the file cannot be read or an entry is wrong; the message names the line.
    MissingExtraError
        If the file is YAML and PyYAML is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rules.toml")
    >>> _ = path.write_text('[[rules]]\nonly_up = "age"\n')
    >>> read_constraints(path)
    [only_up('age')]
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise ConstraintError(
            f"The constraints in {str(file)!r} cannot be read: {error}."
        ) from error
    readers = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml}
    if file.suffix.lower() not in readers:
        raise ConstraintError(
            f"A file of constraints must be called .toml, .yaml or .yml, got {str(file)!r}."
        )
    constraints: list[Constraint] = []
    for entry in readers[file.suffix.lower()](text, file.name):
        try:
            made = list(_make_constraints(entry))
        except _EntryError as error:
            raise ConstraintError(f"{file.name}, line {error.line}: {error}") from None
        except ConstraintError as error:
            raise ConstraintError(f"{file.name}, line {entry.line}: {error}") from None
        source = f"{file.name}, line {entry.line}"
        constraints += [replace(constraint, source=source) for constraint in made]
    return constraints


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
            f"got {entry.content!r}.",
        )
    ((name, value),) = entry.content.items()
    if name not in BUILDERS:
        raise _EntryError(
            entry.line,
            f"there is no constraint {name!r}.{_hint(name, BUILDERS)} The constraints are "
            f"{', '.join(BUILDERS)}.",
        )
    builder = BUILDERS[name]
    if isinstance(value, Mapping):
        yield _make_from_mapping(entry, name, builder, dict(value))
    elif isinstance(value, list) and name in OF_SEVERAL_FEATURES:
        yield builder(*value)
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
                f"{name} has no argument {key!r}.{_hint(key, known)} Its arguments are "
                f"{', '.join(known)}.",
            )
    features = arguments.pop("features", []) if name in OF_SEVERAL_FEATURES else []
    if not isinstance(features, list):
        raise _EntryError(
            entry.line_of("features"), f"{name}: features must be a list, got {features!r}."
        )
    return _call(entry, name, builder, tuple(features), arguments)


def _hint(name: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


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
        raise _EntryError(entry.line, f"{name}: {error}.") from None
    try:
        return builder(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise _EntryError(entry.line, str(error)) from None


def _read_toml(text: str, file: str) -> list[Entry]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConstraintError(f"{file} is not valid TOML: {error}.") from None
    listed = _listed(content, file)
    # tomllib gives no line numbers, but every entry begins with a line [[rules]].
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"\s*\[\[\s*rules\s*\]\]", line)]
    if len(starts) != len(listed):
        return [Entry(content, 1, {}) for content in listed]
    entries = []
    for content, start, end in zip(listed, starts, [*starts[1:], len(lines)], strict=True):
        key_lines: dict[str, int] = {}
        for at in range(start, end):
            for key in re.findall(r"([\w-]+)\"?'?\s*=", lines[at]):
                key_lines.setdefault(key, at + 1)
        first = next(iter(content), None) if isinstance(content, dict) else None
        entries.append(Entry(content, key_lines.get(str(first), start + 1), key_lines))
    return entries


def _read_yaml(text: str, file: str) -> list[Entry]:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            'Constraints in YAML need PyYAML: pip install "mcce[yaml]". TOML needs no extra.'
        ) from error
    try:
        content, node = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        raise ConstraintError(f"{file} is not valid YAML: {error}.") from None
    _check_unique_keys(node, file)
    listed = _listed(content, file)
    (entries,) = [value for key, value in node.value if key.value == "rules"]
    return [
        Entry(content, place.start_mark.line + 1, dict(_key_lines(place)))
        for content, place in zip(listed, entries.value, strict=True)
    ]


def _check_unique_keys(node: Any, file: str) -> None:
    """Raise if a mapping has a key twice; YAML would silently drop the first."""
    if node is None or node.id == "scalar":
        return
    for child in node.value:
        for inner in child if isinstance(child, tuple) else (child,):
            _check_unique_keys(inner, file)
    if node.id == "mapping":
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                line = key.start_mark.line + 1
                raise ConstraintError(
                    f"{file}, line {line}: the key {key.value!r} occurs twice. Keep one of them."
                )
            seen.add(str(key.value))


def _key_lines(node: Any) -> Iterator[tuple[str, int]]:
    """All keys below a YAML node, with their lines."""
    if node.id != "mapping":
        return
    for key, value in node.value:
        yield str(key.value), key.start_mark.line + 1
        yield from _key_lines(value)


def _listed(content: Any, file: str) -> list[Any]:
    """The list of entries in a file."""
    if (
        not isinstance(content, Mapping)
        or set(content) != {"rules"}
        or not isinstance(content["rules"], list)
    ):
        raise ConstraintError(
            f"{file} must contain one list called rules and nothing else, for example (YAML) "
            "'rules:' with '- only_up: age' below it, got "
            f"{list(content) if isinstance(content, Mapping) else content!r}."
        )
    return content["rules"]
