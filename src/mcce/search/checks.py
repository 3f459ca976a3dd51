"""Checks of the parameters that searches have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ParameterError, shorten
from ..parameters import check_count, check_real


def check_below_one(name: str, value: Any, expected: str) -> None:
    """Raise unless a value is a share below 1."""
    check_real(name, value, expected, most=1.0)
    if value == 1:
        raise ParameterError(f"{name} must be {expected}, got {shorten(value)}.")


def check_samples(n_samples: Any, max_samples: Any) -> None:
    """Raise unless these are numbers of draws, the second not the smaller one."""
    check_count("n_samples", n_samples)
    if max_samples is None:
        return
    check_count("max_samples", max_samples)
    if max_samples < n_samples:
        raise ParameterError(
            f"max_samples must be at least n_samples, {n_samples}, got {shorten(max_samples)}."
        )


def check_bounds(max_sparsity: Any, max_distance: Any) -> None:
    """Raise unless these are bounds on changes and distance, or None."""
    if max_sparsity is not None:
        check_count("max_sparsity", max_sparsity, least=0)
    if max_distance is not None:
        check_real("max_distance", max_distance, "a number >= 0", infinite=True)


def check_firmness(margin: Any, copies: Any, choices: Sequence[str]) -> None:
    """Raise unless these are a margin, and what to do with copies of training rows."""
    check_real("margin", margin, "a finite number >= 0")
    check_choice("copies", copies, choices)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless a value is one of some names."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} must be one of {list(choices)!r}, got {shorten(value)}.")
