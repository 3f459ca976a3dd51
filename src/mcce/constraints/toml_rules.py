"""The entries of a rule file in TOML.

``tomllib`` takes quadratic time for some files, recurses into others and gives no line numbers. So
the tokens are scanned first: in one pass, against the bounds, and noting lines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import ConstraintError, shorten
from .bounds import MAX_NESTING, MAX_NUMBER, MAX_TEXT, MAX_VALUES
from .entries import Entry, listed_rules

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


def read_toml(text: str, file: str) -> list[Entry]:
    r"""The entries of a TOML file, with their lines.

    Examples
    --------
    >>> read_toml('[[rules]]\nonly_up = "age"', "rules.toml")
    [Entry(content={'only_up': 'age'}, line=2, key_lines={'only_up': 2})]
    """
    content, scanned = _scan(text, file)
    listed = listed_rules(content, file)
    if len(scanned.entries) != len(listed):
        return [Entry(content, 1, {}) for content in listed]
    return [
        Entry(content, key_lines.get(_first_key(content), line), key_lines)
        for content, (line, key_lines) in zip(listed, scanned.entries, strict=True)
    ]


def parse_toml(text: str, file: str) -> dict[str, Any]:
    r"""What a TOML file holds, within the bounds.

    Examples
    --------
    >>> parse_toml("age = [1, 2]", "labels.toml")
    {'age': [1, 2]}
    """
    return _scan(text, file)[0]


def _scan(text: str, file: str) -> tuple[dict[str, Any], _Scanner]:
    """The content of a file, and where its entries stand."""
    text = text.replace("\r\n", "\n")
    scanner = _Scanner(file)
    for token in _tokens(text):
        scanner.take(token)
    try:
        return tomllib.loads(text), scanner
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"{file} is not valid TOML: {shorten(error, 200)}.") from None


def _first_key(content: Any) -> str:
    return str(next(iter(content), None)) if isinstance(content, dict) else ""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    """All tokens but spaces and comments, up to where TOML would be wrong at the latest."""
    line = 1
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match[0]
        if kind != "skip":
            yield _Token(kind, token, line)
        line += token.count("\n")


@dataclass
class _Scanner:
    """Counts what the bounds are about, and notes the lines of entries and keys."""

    file: str
    entries: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    n_values: int = 0
    nesting: int = 0
    dotted: list[_Token] = field(default_factory=list)  # the parts of the key that is being read
    marks: str = "\n"  # what stands before it

    def take(self, token: _Token) -> None:
        """Look at the next token."""
        if token.kind != "mark":
            self._take_word(token)
            return
        if token.text in "[{":
            self.nesting += 1
            self.n_values += 1
        elif token.text in "]}":
            self.nesting -= 1
        self._check(token)
        if token.text == ".":
            return
        self._note(token)
        self.dotted = []
        self.marks = "\n" if token.text == "\n" else f"{self.marks[-2:]}{token.text}"

    def _take_word(self, token: _Token) -> None:
        number = token.kind == "word" and token.text[0] in "+-0123456789"
        longest = MAX_NUMBER if number else MAX_TEXT
        if len(token.text) > longest + 2:
            raise ConstraintError(
                f"{self.file}, line {token.line}: {shorten(token.text, 40)} has {len(token.text)} "
                f"characters, but {'a number' if number else 'a string'} may have {longest}. "
                "Shorten it."
            )
        self.n_values += 1
        self.dotted.append(token)
        self._check(token)

    def _check(self, token: _Token) -> None:
        if max(self.nesting, len(self.dotted)) > MAX_NESTING:
            raise ConstraintError(
                f"{self.file}, line {token.line}: more than {MAX_NESTING} lists or tables stand "
                "inside each other. Write it flatter."
            )
        if self.n_values > MAX_VALUES:
            raise ConstraintError(
                f"{self.file}, line {token.line}: a file may hold {MAX_VALUES} keys and "
                "values, and this is one more. Split it, or write it in Python."
            )

    def _note(self, token: _Token) -> None:
        """The line of an entry, if its header ends here, or of the keys before ``=``."""
        names = [part.text.strip("\"'") for part in self.dotted]
        if token.text == "]" and self.marks == "\n[[" and names == ["rules"]:
            self.entries.append((token.line, {}))
        elif self.entries and (token.text == "=" or (token.text == "]" and self.marks == "\n[")):
            for part, name in zip(self.dotted, names, strict=True):
                self.entries[-1][1].setdefault(name, part.line)
