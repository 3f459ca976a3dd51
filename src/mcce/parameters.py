"""Checks of parameters: those of an explainer, and the checks that they are made of.

``check_parameters`` runs at every ``fit`` and ``explain``, because ``set_params`` can change
parameters in between, and ``check_unchanged`` refuses changes that need another fit. Parameters
whose meaning depends on the data, the predictor or a generator are checked there. The checks of
single values (a number, a count, a flag, a choice) are public in ``mcce.protocols``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from .errors import NotFittedError, ParameterError, did_you_mean, shorten

# The other parameters may change between fit and explain.
USED_BY_FIT = (
    "predictor",
    "desired",
    "immutable",
    "mutable",
    "kinds",
    "score_class",
    "generator",
    "distance",
    "survival",
    "random_state",
)


def check_parameters(given: Any) -> None:
    """Raise for the first parameter of an explainer that cannot work."""
    if given.n_samples is not None:
        check_count("n_samples", given.n_samples)
    check_count("n_counterfactuals", given.n_counterfactuals)
    if given.diversity is not None:
        check_real("diversity", given.diversity, "None or a number from 0 to 1", most=1.0)
    check_seconds(given.max_seconds)
    check_seed(given.random_state)
    check_real("memory", given.memory, "a finite number of megabytes > 0", zero=False)
    _check_n_jobs(given.n_jobs)
    # scikit-learn counts how verbose an estimator is.
    check_flag("verbose", given.verbose, counts=True)
    _check_ignore_relations(given.ignore_relations)
    for name in ("generator", "distance"):
        value = getattr(given, name)
        if isinstance(value, type):
            raise ParameterError(
                f"{name} must be a name or an object, got the class {value.__name__}. "
                f"Pass an instance: {name}={value.__name__}()."
            )


def _check_n_jobs(n_jobs: Any) -> None:
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and n_jobs != 0 and abs(n_jobs) < 2**31):
        raise ParameterError(
            f"n_jobs must be None or a whole number other than 0, got {shorten(n_jobs)}. "
            "1 uses one thread, -1 all cores."
        )


def _check_ignore_relations(given: Any) -> None:
    listed = isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given)
    if not isinstance(given, bool) and not listed:
        raise ParameterError(
            "ignore_relations must be True, False or a list of names from the column 'relation' of "
            f"relations_, got {shorten(given)}."
        )


def check_seconds(max_seconds: Any) -> None:
    """Raise unless a time limit is None or a number of seconds."""
    if max_seconds is not None:
        check_real("max_seconds", max_seconds, "a number of seconds > 0", zero=False)


def check_seed(random_state: Any) -> None:
    """Raise unless a seed is None or a whole number of 64 bits."""
    if random_state is not None:
        check_whole("random_state", random_state, 0, 2**64 - 1)


def check_robustness(n_perturbations: Any, scale: Any, random_state: Any) -> None:
    """Raise for the first parameter of ``robustness`` that cannot work."""
    check_whole("n_perturbations", n_perturbations, 1, 100_000)
    check_real("scale", scale, "a number above 0 and up to 1", zero=False, most=1.0)
    check_seed(random_state)


def learned_parameters(given: Any) -> dict[str, Any]:
    """Current values of the parameters that fit uses, with those of generator and distance."""
    values = {name: getattr(given, name) for name in USED_BY_FIT}
    nested = "generator__", "distance__"
    values |= {k: v for k, v in given.get_params().items() if k.startswith(nested)}
    return {name: _frozen(value) for name, value in values.items()}


def check_unchanged(given: Any, learned: Mapping[str, Any]) -> None:
    """Raise if a parameter that fit uses was changed after fit."""
    now = learned_parameters(given)
    for name in dict.fromkeys([*learned, *now]):
        if name not in now or name not in learned or not _same(now[name], learned[name]):
            raise NotFittedError(
                f"{name} was changed after fit, which has no effect yet. Fit again."
            )


def _frozen(value: Any) -> Any:
    """A copy of a value, unaffected by later changes of the original."""
    if isinstance(value, np.ndarray):
        return tuple(value) if value.ndim else value.item()
    if isinstance(value, (list, pd.Index, pd.Series)):
        return tuple(value)
    return value.copy() if isinstance(value, (dict, set)) else value


def _same(first: Any, second: Any) -> bool:
    return first is second or (type(first) is type(second) and bool(first == second))


def check_real(
    name: str,
    value: Any,
    expected: str,
    *,
    zero: bool = True,
    infinite: bool = False,
    most: float = math.inf,
) -> None:
    """Raise unless a parameter is a number from 0 to ``most``.

    Parameters
    ----------
    name, value
        The parameter.
    expected
        What it must be, for the message.
    zero, infinite
        Whether it may be 0, and whether it may be infinite.
    most
        The largest number.

    Raises
    ------
    ParameterError
        If it is none.

    Examples
    --------
    >>> check_real("alpha", 0.5, "a finite number >= 0")
    """
    real = isinstance(value, Real) and not isinstance(value, bool)
    if (
        not real
        or not value >= 0
        or (not zero and not value)
        or (not infinite and _is_infinite(value))
        or value > most
    ):
        raise ParameterError(f"{name} must be {expected}, got {shorten(value)}.")


def _is_infinite(value: Real) -> bool:
    try:
        return math.isinf(value)
    except OverflowError:  # an integer too large for a float
        return True


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Raise unless a parameter is a whole number in a range.

    Parameters
    ----------
    name, value
        The parameter.
    least, most
        The range.

    Raises
    ------
    ParameterError
        If it is none.

    Examples
    --------
    >>> check_whole("n_bins", 64, 2, 1000)
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:
        raise ParameterError(
            f"{name} must be a whole number from {least} to {most}, got {shorten(value)}."
        )


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """Raise unless a parameter is a whole number from ``least`` that fits in 32 bits.

    Parameters
    ----------
    name, value
        The parameter.
    least
        The smallest number.

    Raises
    ------
    ParameterError
        If it is none.

    Examples
    --------
    >>> check_count("n_trees", 10)
    """
    check_whole(name, value, least, 2**31 - 1)


def check_flag(name: str, value: Any, *, counts: bool = False) -> None:
    """Raise unless a parameter is True or False, or a count where these are allowed.

    Parameters
    ----------
    name, value
        The parameter.
    counts
        Whether a whole number, such as a level of verbosity, will do.

    Raises
    ------
    ParameterError
        If it is neither.

    Examples
    --------
    >>> check_flag("bootstrap", True)
    """
    count = counts and isinstance(value, Integral) and 0 <= int(value) < 2**31
    if not count and not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be True or False, got {shorten(value)}.")


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """Raise unless a parameter is one of some words.

    Parameters
    ----------
    name, value
        The parameter.
    choices
        The words.

    Raises
    ------
    ParameterError
        If it is none of them.

    Examples
    --------
    >>> check_choice("missing", "level", ("level", "ignore"))
    """
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        hint = did_you_mean(value, choices)
        raise ParameterError(f"{name} must be one of {listed}, got {shorten(value)}.{hint}")
