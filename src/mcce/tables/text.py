"""Text from data that is safe to show: one line of bounded length without control characters.

Markup is not escaped here: that is for the medium to do.
"""

from __future__ import annotations

import re

MAX_VALUE = 80
# Control characters, lone surrogates, line separators, and what turns the direction of text.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\uffff]+"
)
_SPACES = re.compile(" {2,}")


def short_line(value: object, limit: int = MAX_VALUE) -> str:
    r"""A value from data as one line of bounded length.

    Examples
    --------
    >>> short_line("a\nb\x00c")
    'a b c'
    >>> short_line("abcdefghij" * 1000, limit=11)
    'abcdefg…hij'
    """
    text = str(value)
    if len(text) > 4 * limit:
        text = f"{text[: 2 * limit]} {text[-2 * limit :]}"
    text = one_line(text)
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 1]}…{text[len(text) - end :]}"


def one_line(text: str) -> str:
    """Text without control characters and line ends, which become spaces."""
    return _SPACES.sub(" ", _UNSAFE.sub(" ", text)).strip(" ")
