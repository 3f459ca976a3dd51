"""Parameters as fields of dataclasses, whose types say how they are checked.

``n_steps: Late[Count] = 100`` is a whole number from 1 that may be changed after ``fit``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from functools import cache, partial
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from mcce.errors import ParameterError, shorten
from mcce.protocols import check_choice, check_count, check_flag, check_real, check_whole

_LATE = "late"
T = TypeVar("T")
# Not used by fit: may be changed after it.
Late: TypeAlias = Annotated[T, _LATE]


def _positive(name: str, value: Any) -> None:
    check_real(name, value, "a finite number > 0", zero=False)


def _not_negative(name: str, value: Any) -> None:
    check_real(name, value, "a number of at least 0")


def _share(name: str, value: Any) -> None:
    check_real(name, value, "a number from 0 to 1", most=1.0)


def _rate(name: str, value: Any) -> None:
    check_real(name, value, "a number above 0 and up to 1", zero=False, most=1.0)


def _device(name: str, value: Any) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", value):
        raise ParameterError(
            f'{name} must be "cpu", "cuda" or a numbered one such as "cuda:0", got '
            f"{shorten(value)}."
        )


def _widths(name: str, widths: Any) -> None:
    if not isinstance(widths, (list, tuple)) or not widths:
        raise ParameterError(
            f"{name} must list the widths of hidden layers, e.g. (128, 64), got {shorten(widths)}."
        )
    for width in widths:
        check_count(f"each of {name}", width)


# Flags and choices are checked by their types, bool and Literal.
Count: TypeAlias = Annotated[int, check_count]
TwoOrMore: TypeAlias = Annotated[int, partial(check_count, least=2)]
Width: TypeAlias = Annotated[int, partial(check_whole, least=1, most=2**13)]
Positive: TypeAlias = Annotated[float, _positive]
NotNegative: TypeAlias = Annotated[float, _not_negative]
Share: TypeAlias = Annotated[float, _share]
Rate: TypeAlias = Annotated[float, _rate]
Seed: TypeAlias = Annotated[int, partial(check_whole, least=0, most=2**32 - 1)]
Device: TypeAlias = Annotated[str, _device]
Widths: TypeAlias = Annotated[Sequence[int], _widths]


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of the parameters of a class."""
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: hints[one.name] for one in fields(kind)}


def late_parameters(given: Any) -> set[str]:
    """The parameters of an object that may be changed after ``fit``."""
    kind: Any = type(given)
    hints = _hints(kind).items()
    return {name for name, hint in hints if _LATE in getattr(hint, "__metadata__", ())}


def check_parameters(given: Any) -> None:
    """Raise for the first parameter of an object that cannot work."""
    kind: Any = type(given)
    for name, hint in _hints(kind).items():
        value, notes = getattr(given, name), getattr(hint, "__metadata__", ())
        plain = get_args(hint)[0] if notes else hint
        if plain is bool:
            check_flag(name, value)
        elif get_origin(plain) is Literal:
            check_choice(name, value, get_args(plain))
        for check in notes:
            if callable(check):
                check(name, value)
