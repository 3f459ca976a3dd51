"""Templates of sentences, and text from data that is safe to put into them.

A template holds placeholders such as ``{after}``. What stands in brackets, such as ``[ instead of
{before}]``, is left out where the value before is not known or not worth saying.

Always true: what is inserted is never read as a template; text from data is one line of bounded
length without control characters. Markup is not escaped here: that is for the medium to do.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..errors import LabelsError, shorten

MAX_VALUE, MAX_TEMPLATE = 80, 500
# Control characters, lone surrogates, line separators, and what turns the direction of text.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\uffff]+"
)
_SPACES = re.compile(" {2,}")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


def plain(value: object, limit: int = MAX_VALUE) -> str:
    r"""A value from data as one line of bounded length.

    Parameters
    ----------
    value
        Anything, such as a level or a column name.
    limit
        The largest number of characters. Longer text keeps its beginning and its end.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> plain("a\nb\x00c")
    'a b c'
    >>> plain("abcdefghij" * 1000, limit=11)
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


def placeholders(template: str) -> set[str]:
    """Names of the placeholders of a template."""
    return set(_PLACEHOLDER.findall(template))


def fill(template: str, **values: str | None) -> str:
    """A template with its placeholders replaced.

    Parameters
    ----------
    template
        A template that :func:`check_template` has passed.
    **values
        What to insert, by placeholder. What stands in brackets is left out if one of its values
        is None.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> fill("a loan of {after}[ instead of {before}]", after="{before}", before="9")
    'a loan of {before} instead of 9'
    >>> fill("a loan of {after}[ instead of {before}]", after="7", before=None)
    'a loan of 7'
    """
    without = [name for name, value in values.items() if value is None]

    def keep(match: re.Match[str]) -> str:
        return "" if placeholders(match[1]).intersection(without) else match[1]

    chosen = _OPTIONAL.sub(keep, template)
    return _PLACEHOLDER.sub(lambda match: values[match[1]] or "", chosen)


def check_template(template: object, allowed: Collection[str], where: str) -> str:
    """A template that can be filled.

    Parameters
    ----------
    template
        What the user wrote.
    allowed
        Names of the placeholders that it may hold.
    where
        Where it stands, for errors.

    Returns
    -------
    str
        The template on one line.

    Raises
    ------
    LabelsError
        If it is no text, too long, or holds another placeholder or a single brace or bracket.
    """
    if not isinstance(template, str) or not template.strip():
        raise LabelsError(f"{where} must be a text, got {shorten(template)}.")
    if len(template) > MAX_TEMPLATE:
        raise LabelsError(
            f"{where} has {len(template)} characters, but a text may have {MAX_TEMPLATE}. "
            "Shorten it."
        )
    known = ", ".join(f"{{{name}}}" for name in sorted(allowed)) or "none"
    unknown = sorted(placeholders(template).difference(allowed))
    if unknown:
        raise LabelsError(
            f"{where} holds the placeholder {{{shorten(unknown[0], 40)[1:-1]}}}, got "
            f"{shorten(template)}. Its placeholders are: {known}."
        )
    rest = _PLACEHOLDER.sub("", template)
    if "before" in allowed:
        rest = _OPTIONAL.sub(r"\1", rest)
        optional = _OPTIONAL.findall(template)
        if any("before" not in placeholders(part) for part in optional) or set(rest) & set("[]"):
            raise LabelsError(
                f"{where} has brackets that do not enclose {{before}}, got {shorten(template)}. "
                "Write e.g. '{after}[ instead of {before}]'."
            )
    if set(rest) & set("{}"):
        raise LabelsError(
            f"{where} has a single brace, got {shorten(template)}. Braces enclose placeholders; "
            f"here these are: {known}."
        )
    return one_line(template)
