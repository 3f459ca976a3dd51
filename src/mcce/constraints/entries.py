"""Entries of rule files: what the readers of each format give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ConstraintError, shorten


@dataclass(frozen=True)
class Entry:
    """One entry of the list, with its line and the lines of its keys."""

    content: Any
    line: int
    key_lines: Mapping[str, int]

    def line_of(self, key: object) -> int:
        """Line of a key, or of the entry if that is not known."""
        return self.key_lines.get(key, self.line) if isinstance(key, str) else self.line


def listed_rules(content: Any, file: str) -> list[Any]:
    """The list of entries in a file.

    Examples
    --------
    >>> listed_rules({"rules": [{"only_up": "age"}]}, "rules.toml")
    [{'only_up': 'age'}]
    """
    if (
        not isinstance(content, Mapping)
        or set(content) != {"rules"}
        or not isinstance(content["rules"], list)
    ):
        toml, yaml = ("'[[rules]]'", "'only_up = \"age\"'"), ("'rules:'", "'- only_up: age'")
        head, rule = toml if str(file).lower().endswith(".toml") else yaml
        raise ConstraintError(
            f"{file} must contain one list called rules and nothing else, for example {head} with "
            f"{rule} below it, got "
            f"{shorten(list(content) if isinstance(content, Mapping) else content)}."
        )
    return content["rules"]
