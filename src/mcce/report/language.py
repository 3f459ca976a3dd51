"""The sentences of a language, how it writes numbers, and templates.

A message file is ``messages/<code>.toml``. All languages have the same keys and placeholders: one
more language is one more file. A template holds placeholders such as ``{after}``; text in brackets,
such as ``[ instead of {before}]``, is left out if the value before is unknown or not worth saying.

Always true: inserted text is never read as a template.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import LabelsError, ParameterError, did_you_mean, shorten
from ..tables.text import one_line, short_line

# Numbers outside of these powers of ten are written with an exponent.
MAX_PLAIN_POWER, MIN_PLAIN_POWER = 15, -7
MAX_TEMPLATE = 500
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True)
class Language:
    """A language.

    Examples
    --------
    >>> german = find_language("de")
    >>> german.number(Decimal("12500.5"))
    '12.500,5'
    >>> german.join(["Sie umgezogen wären", "Sie gespart hätten"])
    'Sie umgezogen wären und gespart hätten'
    >>> german.either(["Sie ein Haus besessen hätten", "Sie ein Auto besessen hätten"])
    ['Sie ein Haus oder Auto besessen hätten']
    """

    code: str
    messages: Mapping[str, str] = field(repr=False)

    def say(self, key: str, **values: str | None) -> str:
        """A sentence with its placeholders replaced."""
        return fill(self.messages[key], **values)

    def number(self, value: Decimal, *, grouping: bool = True, places: int = 0) -> str:
        """A number as it is written in this language."""
        value = value.normalize()
        if value and not MIN_PLAIN_POWER < value.adjusted() < MAX_PLAIN_POWER:
            return f"{value:e}".replace(".", self.messages["numbers.decimal"])
        places = max(places, -int(value.as_tuple().exponent)) if value % 1 else 0
        text = f"{abs(value):{',' if grouping else ''}.{places}f}"
        marks = {",": self.messages["numbers.thousands"], ".": self.messages["numbers.decimal"]}
        sign = "\N{MINUS SIGN}" if value < 0 else ""
        return sign + "".join(marks.get(character, character) for character in text)

    def percent(self, share: float) -> str:
        """A share in whole percent, halves rounded up; a dash if it is not defined."""
        if math.isnan(share):
            return "\N{EN DASH}"
        return f"{self.number(Decimal(math.floor(100 * share + 0.5)))}\N{NO-BREAK SPACE}%"

    def join(self, parts: Sequence[str]) -> str:
        """Clauses in a row: a, b and c. A subject that they share stands once."""
        subject = self.messages["lists.subject"]
        shared = [
            False,
            *(a.startswith(subject) and b.startswith(subject) for a, b in pairwise(parts)),
        ]
        short = [
            b.removeprefix(subject) if same else b for b, same in zip(parts, shared, strict=True)
        ]
        return self.listed(short, "and")

    def either(self, parts: Sequence[str]) -> list[str]:
        """Clauses of which one is enough; those that differ in a single word become one.

        All others stay: of "you had not moved or had saved" nobody knows what "not" belongs to.
        """
        words = [part.split(" ") for part in parts]
        if len({len(part) for part in words}) == 1:
            distinct = [len(set(column)) for column in zip(*words, strict=True)]
            if sum(count > 1 for count in distinct) == 1:
                at, first = int(np.argmax(distinct)), words[0]
                choice = self.listed([part[at] for part in words], "or")
                return [" ".join([*first[:at], choice, *first[at + 1 :]])]
        return list(parts)

    def listed(self, parts: Sequence[str], word: str) -> str:
        """Texts in a row, with "and" or "or" before the last."""
        *first, last = parts
        if not first:
            return last
        return f"{self.messages['lists.comma'].join(first)}{self.messages[f'lists.{word}']}{last}"

    def between(self, low: str | None, high: str | None) -> str:
        """A range, of which one end may be open (None)."""
        if low is None:
            return self.say("values.at_most", value=high)
        if high is None:
            return self.say("values.at_least", value=low)
        return self.say("values.between", low=low, high=high)

    def value(self, value: Any) -> str:
        """A level, date or anything else that is not a number, as it came."""
        if isinstance(value, (bool, np.bool_)):
            return self.messages["values.yes" if value else "values.no"]
        has_time = isinstance(value, datetime) and value.time() != time()
        if isinstance(value, date) and not has_time:
            day, month, year = f"{value:%d}", f"{value:%m}", f"{value:%Y}"
            return self.say("numbers.date", day=day, month=month, year=year)
        return self.say("values.quoted", value=short_line(value))


def find_language(code: Any) -> Language:
    """The language of a code."""
    known = languages()
    if not isinstance(code, str) or code not in known:
        listed = ", ".join(map(repr, known))
        hint = did_you_mean(code, known)
        raise ParameterError(f"language must be one of {listed}, got {shorten(code)}.{hint}")
    return _read(code)


def languages() -> list[str]:
    """Codes of the languages that letters can be written in.

    Returns
    -------
    list of str

    Examples
    --------
    >>> languages()
    ['de', 'en', 'nb']
    """
    names = [file.name for file in files(__package__).joinpath("messages").iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


@cache
def _read(code: str) -> Language:
    text = files(__package__).joinpath("messages", f"{code}.toml").read_text(encoding="utf-8")
    sections = tomllib.loads(text)
    messages = {
        f"{section}.{key}": message
        for section, entries in sections.items()
        for key, message in entries.items()
    }
    return Language(code, messages)


def placeholders(template: str) -> set[str]:
    """Names of the placeholders of a template."""
    return set(_PLACEHOLDER.findall(template))


def optional_placeholders(template: str) -> list[str]:
    """Placeholders that stand in brackets: such a part is left out if the value is None."""
    return sorted({name for part in _OPTIONAL.findall(template) for name in placeholders(part)})


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
