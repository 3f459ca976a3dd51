"""What may stand in a labels file, key by key.

Takes what a file says and its place there. Gives it in the form that letters use, or raises a
``LabelsError`` that names the place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import numpy as np

from ..errors import LabelsError, did_you_mean, shorten
from ..tables.features import Feature
from ..tables.text import short_line
from .language import check_template

DIRECTIONS = ("more", "less", "change")
CHANGE = frozenset({"before", "after"})


def level_key(value: Any) -> str:
    """A value as it stands in a labels file: whole numbers without decimal point, lower booleans.

    Examples
    --------
    >>> level_key(4.0), level_key(True), level_key("own")
    ('4', 'true', 'own')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def check_keys(given: Any, known: Any, where: str) -> None:
    """Raise unless something is a mapping with known keys."""
    listed = ", ".join(known)
    if not isinstance(given, Mapping):
        raise LabelsError(f"{where} must have the keys {listed}, got {shorten(given)}.")
    for key in given:
        if key not in known:
            raise LabelsError(
                f"{where} has no key {shorten(key, 60)}.{did_you_mean(key, known)} The keys are "
                f"{listed}."
            )


def check_units(given: Any, where: str) -> tuple[str, str]:
    """The unit of one and of any other number, as templates of {number}."""
    if isinstance(given, Mapping):
        check_keys(given, ("one", "other"), where)
        if len(given) != 2:
            raise LabelsError(f"{where} must have both keys, one and other, got {shorten(given)}.")
        return _unit(given["one"], f"{where}.one"), _unit(given["other"], f"{where}.other")
    return (_unit(given, where),) * 2


def _unit(given: Any, where: str) -> str:
    text = check_template(given, {"number"}, where)
    if "{number}" not in text:
        raise LabelsError(
            f"{where} must hold {{number}}, such as '{{number}} months', got {shorten(given)}."
        )
    return text.replace("{number} ", "{number}\N{NO-BREAK SPACE}")


def check_directions(given: Any, allowed: frozenset[str], where: str) -> dict[str, str]:
    """Templates by direction; a text alone is for any change."""
    given = {"change": given} if isinstance(given, str) else given
    check_keys(given, DIRECTIONS, where)
    return {key: check_template(text, allowed, f"{where}.{key}") for key, text in given.items()}


def check_by_value(given: Any, allowed: frozenset[str], where: str) -> dict[str, str]:
    """Templates by value."""
    if not isinstance(given, Mapping):
        raise LabelsError(f"{where} must map values to words, got {shorten(given)}.")
    return {
        level_key(value): check_template(
            text, allowed, f"{where}.{short_line(level_key(value), 40)}"
        )
        for value, text in given.items()
    }


def check_follow(given: Any, where: str) -> str | Literal[False]:
    """A sentence without its full stop, which letters set where one belongs; or False."""
    return given is not False and check_template(given, CHANGE, where).rstrip(" .")


def check_positive(given: Any, where: str) -> float:
    """A number above 0."""
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not number or not 0 < given < float("inf"):
        raise LabelsError(f"{where} must be a number above 0, got {shorten(given)}.")
    return given


def read_flag(given: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(given, bool):
        raise LabelsError(f"{where} must be true or false, got {shorten(given)}.")
    return given


def check_spelling(feature: Feature, levels: Collection[str]) -> None:
    """Raise if a level of the labels is one of the feature but for blanks and capitals."""
    known = {level_key(value) for value in feature.table.dropna().tolist()}
    folded = {level.strip().casefold(): level for level in known.difference(levels)}
    for level in levels:
        meant = folded.get(level.strip().casefold())
        if level not in known and meant is not None:
            raise LabelsError(
                f"Labels speak of the level {shorten(level)} of {shorten(feature.name)}, which is "
                f"{shorten(meant)} in the training data. Write it so."
            )
