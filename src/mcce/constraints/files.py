"""Constraints in a file that a domain expert reads and writes: TOML, or YAML with PyYAML.

The file holds a list ``rules``, each with one of the words of :mod:`.builder_call`:

.. code-block:: yaml

    rules:
      - only_up: age
      - only_up: {feature: education, order: [school, bachelor, master]}
      - change: {feature: salary, at_most: 20 %}
      - frozen: {features: [housing], where: age > 60}
      - relation: {name: works from 16 on, holds: years_employed <= age - 16}

In TOML the same is ``[[rules]]`` and ``only_up = "age"``. What is wrong is an error that points to
the line.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ConstraintError, MissingExtraError
from . import builders
from .constraint import Constraint

WORDS: dict[str, Callable[..., Constraint]] = {n: getattr(builders, n) for n in builders.__all__}
# Words whose value may be a list of features, taken as one constraint.
OF_SEVERAL = ("frozen", "together")


@dataclass(frozen=True)
class Rule:
    """One entry of the list, and the lines of it and of its keys."""

    data: Any
    line: int
    lines: Mapping[str, int]


def read_constraints(path: str | os.PathLike[str]) -> list[Constraint]:
    """The constraints in a file."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise ConstraintError(
            f"The constraints in {str(file)!r} cannot be read: {error}."
        ) from error
    readers = {".toml": _toml_rules, ".yaml": _yaml_rules, ".yml": _yaml_rules}
    if file.suffix.lower() not in readers:
        raise ConstraintError(
            f"{str(file)!r}: constraints are read from files called .toml, .yaml or .yml."
        )
    constraints: list[Constraint] = []
    for rule in readers[file.suffix.lower()](text, file.name):
        try:
            listed = list(_constraints(rule))
        except _MisreadError as error:
            raise ConstraintError(f"{file.name}, line {error.line}: {error}") from None
        except ConstraintError as error:
            raise ConstraintError(f"{file.name}, line {rule.line}: {error}") from None
        source = f"{file.name}, line {rule.line}"
        constraints += [replace(constraint, source=source) for constraint in listed]
    return constraints


class _MisreadError(ConstraintError):
    """What is wrong, and on which line."""

    def __init__(self, line: int, told: str) -> None:
        super().__init__(told)
        self.line = line


def _constraints(rule: Rule) -> Iterator[Constraint]:
    """The constraints that one entry stands for."""
    if not isinstance(rule.data, Mapping) or len(rule.data) != 1:
        raise _MisreadError(
            rule.line,
            f"a rule is one word with what it says, e.g. only_up: age; got {rule.data!r}.",
        )
    ((word, value),) = rule.data.items()
    if word not in WORDS:
        close = difflib.get_close_matches(str(word), WORDS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise _MisreadError(
            rule.line, f"there is no rule {word!r}.{hint} The rules are {', '.join(WORDS)}."
        )
    write = WORDS[word]
    if isinstance(value, Mapping):
        yield _from_mapping(rule, word, write, dict(value))
    elif isinstance(value, list) and word in OF_SEVERAL:
        yield write(*value)
    elif isinstance(value, list):
        for feature in value:
            yield _call(rule, word, write, (feature,), {})
    else:
        yield _call(rule, word, write, (value,), {})


def _from_mapping(
    rule: Rule, word: str, write: Callable[..., Constraint], given: dict[str, Any]
) -> Constraint:
    known = [*inspect.signature(write).parameters]
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise _MisreadError(
                rule.lines.get(str(key), rule.line),
                f"{word} has no {key!r}.{hint} It takes {', '.join(known)}.",
            )
    features = given.pop("features", []) if word in OF_SEVERAL else []
    if not isinstance(features, list):
        line = rule.lines.get("features", rule.line)
        raise _MisreadError(line, f"{word}: features must be a list, got {features!r}.")
    return _call(rule, word, write, tuple(features), given)


def _call(
    rule: Rule,
    word: str,
    write: Callable[..., Constraint],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Constraint:
    try:
        inspect.signature(write).bind(*args, **kwargs)
    except TypeError as error:
        raise _MisreadError(rule.line, f"{word}: {error}.") from None
    try:
        return write(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise _MisreadError(rule.line, str(error)) from None


def _toml_rules(text: str, name: str) -> list[Rule]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConstraintError(f"{name} is not TOML: {error}.") from None
    listed = _rules_of(data, name)
    # TOML does not tell where things stand, but a table begins with a line of its own.
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"\s*\[\[\s*rules\s*\]\]", line)]
    if len(starts) != len(listed):
        return [Rule(entry, 1, {}) for entry in listed]
    rules = []
    for entry, start, end in zip(listed, starts, [*starts[1:], len(lines)], strict=True):
        found: dict[str, int] = {}
        for place in range(start, end):
            for key in re.findall(r"([\w-]+)\"?'?\s*=", lines[place]):
                found.setdefault(key, place + 1)
        first = next(iter(entry), None) if isinstance(entry, dict) else None
        rules.append(Rule(entry, found.get(str(first), start + 1), found))
    return rules


def _yaml_rules(text: str, name: str) -> list[Rule]:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            "Constraints in YAML need PyYAML: pip install 'mcce[yaml]'. TOML needs nothing."
        ) from error
    try:
        data, node = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        raise ConstraintError(f"{name} is not YAML: {error}.") from None
    _check_keys(node, name)
    listed = _rules_of(data, name)
    (entries,) = [value for key, value in node.value if key.value == "rules"]
    return [
        Rule(entry, place.start_mark.line + 1, dict(_key_lines(place)))
        for entry, place in zip(listed, entries.value, strict=True)
    ]


def _check_keys(node: Any, name: str) -> None:
    """An error where a key stands twice in one mapping, of which YAML would drop one."""
    if node is None or node.id == "scalar":
        return
    for entry in node.value:
        for inner in entry if isinstance(entry, tuple) else (entry,):
            _check_keys(inner, name)
    if node.id == "mapping":
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                line = key.start_mark.line + 1
                raise ConstraintError(f"{name}, line {line}: {key.value!r} stands here twice.")
            seen.add(str(key.value))


def _key_lines(node: Any) -> Iterator[tuple[str, int]]:
    """All keys below a node of YAML, and their lines."""
    if node.id != "mapping":
        return
    for key, value in node.value:
        yield str(key.value), key.start_mark.line + 1
        yield from _key_lines(value)


def _rules_of(data: Any, name: str) -> list[Any]:
    if (
        not isinstance(data, Mapping)
        or set(data) != {"rules"}
        or not isinstance(data["rules"], list)
    ):
        raise ConstraintError(
            f"{name} must hold one list called rules, e.g. (YAML) 'rules:' with '- only_up: age' "
            f"below it, got {list(data) if isinstance(data, Mapping) else data!r}."
        )
    return data["rules"]
