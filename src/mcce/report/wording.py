"""Templates of sentences.

A template holds placeholders such as ``{after}``. What stands in brackets, such as ``[ instead of
{before}]``, is left out where the value before is not known or not worth saying.

Always true: what is inserted is never read as a template.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..errors import LabelsError, shorten
from ..tables.text import one_line

MAX_TEMPLATE = 500
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


def placeholders(template: str) -> set[str]:
    """Names of the placeholders of a template."""
    return set(_PLACEHOLDER.findall(template))


def fill(template: str, **values: str | None) -> str:
    """A template with its placeholders replaced.

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
    """A template that can be filled."""
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
