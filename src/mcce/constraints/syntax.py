"""The parts of conditions: tokens, and the nodes of their trees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "\\": "\\", "'": "'", '"': '"'}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_TOKEN = re.compile(
    r"""[ \t\f\r\n]*+(?:
    (?P<column>`[^`]++`)
    | (?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    | (?P<number>0[xXoObB]\w*+|\.?[0-9](?:[eE][-+]|[\w.])*+)
    | (?P<name>(?:[A-Za-z_]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*+)
    | (?P<operator><=|>=|==|!=|//|\*\*|[-+*/%<>()\[\],])
    | (?P<end>\Z)
    | (?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A word of a condition, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Column:
    """The cells of a column."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A number, string, boolean or None."""

    value: bool | float | str | None


@dataclass(frozen=True)
class Values:
    """The list after ``in``."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Arithmetic:
    """Operations of equal precedence, from left to right."""

    first: Node
    steps: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Negative:
    """Minus something."""

    inner: Node


@dataclass(frozen=True)
class Comparison:
    """Comparisons that must all hold, such as ``18 <= age < 65``."""

    first: Node
    steps: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Logic:
    """Conditions joined by ``and`` or ``or``, with the text of each."""

    symbol: str
    parts: tuple[tuple[Node, str], ...]


@dataclass(frozen=True)
class Not:
    """The opposite of a condition, with its text."""

    inner: Node
    text: str


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = (
    Column | Constant | Values | Arithmetic | Negative | Comparison | Logic | Not | Call
)


def scan(text: str) -> Iterator[Token]:
    """The tokens of a condition; ``end`` comes last, ``other`` is a character of no use."""
    position, kind = 0, ""
    while kind != "end":
        match = _TOKEN.match(text, position)
        assert match is not None
        assert match.lastgroup is not None
        kind, position = match.lastgroup, match.end()
        yield Token(kind, match[kind], match.start(kind), position)


def unescape(text: str) -> str:
    """A string literal without its quotes; an unknown escape stays as it is."""

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            return chr(int(code, 16)) if int(code, 16) < 0x110000 else match[0]
        return _ESCAPES.get(match[4], match[0])

    return _ESCAPE.sub(character, text)
