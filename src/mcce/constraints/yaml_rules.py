"""The entries of a rule file in YAML.

PyYAML composes documents by recursion and expands aliases without end. So lists and mappings are
made here from its events, one after the other, against the bounds. PyYAML resolves scalars only,
and of those the plain ones: strings, numbers, booleans, dates and null.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import ConstraintError, MissingExtraError, shorten
from ..tables.roles import has_surrogate
from .bounds import MAX_ALIASES, MAX_NESTING, MAX_NUMBER, MAX_TEXT, MAX_VALUES
from .entries import Entry, listed_rules

_PREFIX = "tag:yaml.org,2002:"
_SCALARS = ("str", "int", "float", "bool", "null", "timestamp")
_NO_KEY = object()


def read_yaml(text: str, file: str) -> list[Entry]:
    r"""The entries of a YAML file, with their lines.

    Examples
    --------
    >>> read_yaml("rules:\n- only_up: age", "rules.yaml")
    [Entry(content={'only_up': 'age'}, line=2, key_lines={'only_up': 2})]
    """
    composed = compose_yaml(text, file)
    listed = listed_rules(composed.content, file)
    return [
        Entry(content, line, key_lines)
        for content, (line, key_lines) in zip(listed, composed.entries, strict=True)
    ]


def compose_yaml(text: str, file: str) -> ComposedYaml:
    r"""What a YAML file holds, as plain values within the bounds.

    Examples
    --------
    >>> compose_yaml("age: [1, 2]", "labels.yaml").content
    {'age': [1, 2]}
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            f'{file} is YAML, which needs PyYAML: pip install "mcce[yaml]". TOML needs no extra.'
        ) from error
    try:
        composer = ComposedYaml(file, yaml.SafeLoader(text))
        while composer.loader.check_event():
            composer.take(composer.loader.get_event())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        problem = shorten(ValueError(error.problem or error.context), 150)
        raise ConstraintError(f"{file} is not valid YAML: {where}{problem}.") from None
    except yaml.YAMLError as error:
        raise ConstraintError(f"{file} is not valid YAML: {shorten(error, 150)}.") from None
    return composer


@dataclass
class _Open:
    """A list or mapping whose end has not come yet."""

    value: list[Any] | dict[Any, Any]
    anchor: str | None
    n_before: int
    key: Any = _NO_KEY


@dataclass
class ComposedYaml:
    """Makes plain values of events, and notes the lines of entries and keys."""

    file: str
    loader: Any
    content: Any = None
    entries: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    n_values: int = 0
    n_aliases: int = 0
    n_documents: int = 0

    def take(self, event: Any) -> None:
        """Use the next event."""
        line = event.start_mark.line + 1
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            self.n_documents += 1
            if self.n_documents > 1:
                self._fail(line, "a file is one document. Remove the line '---'")
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            done = self.stack.pop()
            self._remember(done.anchor, done.value, self.n_values - done.n_before)
            self._add(done.value, line)
        elif kind in ("SequenceStartEvent", "MappingStartEvent"):
            self._open(event, [] if kind == "SequenceStartEvent" else {}, line)
        elif kind == "ScalarEvent":
            self._count(1, line)
            self._note_entry(line)
            value = self._scalar(event, line)
            self._remember(event.anchor, value, 1)
            self._add(value, line)
        elif kind == "AliasEvent":
            self._note_entry(line)
            self._add(self._aliased(event.anchor, line), line)

    def _open(self, event: Any, value: list[Any] | dict[Any, Any], line: int) -> None:
        wanted = "seq" if isinstance(value, list) else "map"
        if event.tag not in (None, "!", f"{_PREFIX}{wanted}"):
            self._fail(line, f"the tag {shorten(event.tag, 60)} is not allowed. Remove it")
        self._count(1, line)
        self._note_entry(line)
        n_before = self.n_values - 1
        self.stack.append(_Open(value, event.anchor, n_before))
        self.anchors.pop(event.anchor or "", None)
        if len(self.stack) > MAX_NESTING:
            raise ConstraintError(
                f"{self.file}, line {line}: more than {MAX_NESTING} lists or mappings stand inside "
                "each other. Write it flatter."
            )

    def _scalar(self, event: Any, line: int) -> Any:
        """A string, number, boolean, date or None."""
        import yaml

        text = event.value
        if len(text) > MAX_TEXT:
            self._fail_length(text, "a string", MAX_TEXT, line)
        tag = event.tag
        if tag in (None, "!"):
            tag = self.loader.resolve(yaml.ScalarNode, text, event.implicit)
        if tag == f"{_PREFIX}merge":
            self._fail(line, "the merge key << is not allowed. Write the arguments out")
        if tag not in [_PREFIX + name for name in _SCALARS]:
            self._fail(line, f"the tag {shorten(tag, 60)} is not allowed. Remove it")
        if tag != f"{_PREFIX}str" and len(text) > MAX_NUMBER:
            self._fail_length(text, "a number or date", MAX_NUMBER, line)
        if has_surrogate(text):
            self._fail(line, f"{shorten(text, 40)} holds half a character. Remove it")
        try:
            return self.loader.construct_object(yaml.ScalarNode(tag, text))
        except Exception:  # PyYAML raises whatever its conversions do, such as KeyError
            self._fail(line, f"{shorten(text, 40)} is not a value of type {tag[len(_PREFIX) :]}")

    def _aliased(self, anchor: str, line: int) -> Any:
        """What an alias stands for, which counts as if it were written out."""
        self.n_aliases += 1
        if self.n_aliases > MAX_ALIASES:
            raise ConstraintError(
                f"{self.file}, line {line}: a file may hold {MAX_ALIASES} aliases, and "
                "this is one more. Write out what they stand for."
            )
        if anchor not in self.anchors:
            inside = any(part.anchor == anchor for part in self.stack)
            what = "stands inside what it stands for" if inside else "has no anchor before it"
            self._fail(line, f"the alias {shorten(anchor, 40)} {what}. Write its value out")
        value, size = self.anchors[anchor]
        self._count(size, line)
        return value

    def _add(self, value: Any, line: int) -> None:
        """Put a value where it belongs: into the list or mapping that is open."""
        if not self.stack:
            self.content = value
            return
        last = self.stack[-1]
        if isinstance(last.value, list):
            last.value.append(value)
        elif last.key is not _NO_KEY:
            last.value[last.key] = value
            last.key = _NO_KEY
        else:
            self._check_key(value, last.value, line)
            last.key = value
            if len(self.stack) > 2 and self.entries:
                self.entries[-1][1].setdefault(str(value), line)

    def _check_key(self, key: Any, mapping: dict[Any, Any], line: int) -> None:
        if isinstance(key, (list, dict)) or not isinstance(key, Hashable):
            self._fail(line, "a key must be a plain value. Write a name")
        if key in mapping:
            raise ConstraintError(
                f"{self.file}, line {line}: the key {shorten(key, 60)} occurs twice. Keep one of "
                "them."
            )

    def _note_entry(self, line: int) -> None:
        """Begin a new entry, if one of the list begins here."""
        if len(self.stack) == 2 and isinstance(self.stack[1].value, list):
            self.entries.append((line, {}))

    def _remember(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, size)

    def _count(self, more: int, line: int) -> None:
        self.n_values += more
        if self.n_values > MAX_VALUES:
            raise ConstraintError(
                f"{self.file}, line {line}: a file may hold {MAX_VALUES} keys and values, "
                "aliases written out, and this is one more. Split it, or write it in Python."
            )

    def _fail_length(self, text: str, what: str, longest: int, line: int) -> NoReturn:
        raise ConstraintError(
            f"{self.file}, line {line}: {shorten(text, 40)} has {len(text)} characters, but {what} "
            f"may have {longest}. Shorten it."
        )

    def _fail(self, line: int, problem: str) -> NoReturn:
        raise ConstraintError(f"{self.file} is not valid YAML: line {line}: {problem}.")
