"""How relations write columns, values, numbers and tolerances.

Names identify relations, for ``ignore_relations``: columns and values that differ are written
differently.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable
from typing import Any, Protocol

from ..errors import shorten


class _Tolerant(Protocol):
    @property
    def tolerance(self) -> float: ...
    @property
    def relative(self) -> bool: ...


def quote_column(name: Hashable) -> str:
    """A column name, between backticks unless it is a plain word.

    Examples
    --------
    >>> quote_column("price"), quote_column("price per month")
    ('price', '`price per month`')
    """
    text = str(name)
    return text if text.isidentifier() else f"`{_bounded(text, 60)}`"


def quote_value(value: Any) -> str:
    """A value of a column, shortened.

    Examples
    --------
    >>> quote_value("single"), quote_value(0.0), quote_value(None)
    ("'single'", '0', 'missing')
    """
    if value is None:
        return "missing"
    if isinstance(value, float):
        short = quote_number(value)
        return short if float(short) == value else repr(value)
    return _bounded(repr(value), 40) if isinstance(value, str) else shorten(value, 40)


def quote_number(number: float) -> str:
    """A number with as many digits as it needs, at most 7.

    Examples
    --------
    >>> quote_number(19.95), quote_number(2.0)
    ('19.95', '2')
    """
    return f"{number:.7g}"


def quote_tolerance(equality: _Tolerant) -> str:
    """The tolerance of an equality, for its name; nothing if it is exact."""
    if not equality.tolerance:
        return ""
    if equality.relative:
        return f" (within {quote_number(100 * equality.tolerance)} %)"
    return f" (within {quote_number(equality.tolerance)})"


def _bounded(text: str, most: int) -> str:
    """At most so many characters; texts that differ stay different, by a checksum."""
    if len(text) <= most:
        return text
    checksum = zlib.crc32(text.encode(errors="surrogatepass"))
    return f"{text[: most - 11]}...{checksum:08x}"
