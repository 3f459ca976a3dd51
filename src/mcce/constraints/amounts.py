"""Numbers, dates and lengths of time in constraints, as numbers in the unit of a column.

Numbers that float64 cannot hold exactly, of Python and in nanoseconds, are Python integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ConstraintError, shorten
from ..tables.columns import EXACT_IN_FLOAT64, as_comparable, is_time, unit_of
from ..tables.features import Feature


def to_number(title: str, feature: Feature, value: Any) -> float:
    """A value of the feature as a number, dates and durations in its unit."""
    dtype = feature.table.dtype
    try:
        if is_time(dtype) == _is_number(value):
            raise TypeError(f"it needs a {'date or duration' if is_time(dtype) else 'number'}")
        if is_time(dtype):
            number: float = as_comparable(pd.Series([value]).astype(dtype))[0]
        else:
            number = value.item() if isinstance(value, np.generic) else value
            float(number)  # raises for an integer that is too large
        if number != number:
            raise ValueError("it is missing")
    except (TypeError, ValueError, OverflowError) as error:
        raise ConstraintError(
            f"{title}: {shorten(value)} is not a value of {shorten(feature.name)}: "
            f"{shorten(error, 150)}."
        ) from None
    return number


def to_length(title: str, feature: Feature, value: Any) -> float:
    """A difference between two values of the feature as a number, in its unit."""
    if not is_time(feature.table.dtype):
        return to_number(title, feature, value)
    try:
        if _is_number(value) or pd.isna(length := pd.Timedelta(value)):
            raise ValueError
        exact = Fraction(length.as_unit("ns").value, unit_of(feature.table.dtype))
    except (TypeError, ValueError, OverflowError):
        raise ConstraintError(
            f"{title}: {shorten(value)} is not a length of time such as '30 days' that can be "
            f"added to {shorten(feature.name)}."
        ) from None
    return exact.numerator if exact.denominator == 1 else float(exact)


def to_percent(value: Any) -> float | None:
    """A string such as ``"20 %"`` as 20; None for anything else."""
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return None
    try:
        percent = float(value.strip()[:-1])
    except ValueError:
        percent = math.nan
    if not math.isfinite(percent):
        raise ConstraintError(f"{shorten(value)} is not a percentage such as '20 %'.")
    return percent


def repeat(number: float, times: int) -> np.ndarray:
    """An array of one number, in float64 if that holds it exactly."""
    exact = isinstance(number, float) or abs(number) <= EXACT_IN_FLOAT64
    return np.full(times, number, dtype=np.float64 if exact else object)


def moved(own: np.ndarray, amount: float | None, percent: float | None = None) -> np.ndarray:
    """Each own number plus an amount, or plus a percentage of its size.

    Exact where float64 might not hold it. Each number decides that for itself, so that the result
    does not depend on whose other numbers are in the array.
    """
    numbers = own.astype(np.float64)
    with np.errstate(over="ignore"):
        # Dividing last keeps whole amounts whole: 57 % of 100 is 57, not a little less.
        change = np.abs(numbers) * percent / 100 if amount is None else float(amount)
        ends = numbers + change
    largest = np.maximum(np.abs(numbers), np.abs(ends))
    large = (largest >= EXACT_IN_FLOAT64) | (np.abs(change) >= EXACT_IN_FLOAT64)
    large &= np.isfinite(numbers) & (amount is None or math.isfinite(amount))
    if not large.any():
        return ends
    exact = ends.astype(object)
    # By its digits: the float 0.7 is a little less than 0.7.
    share = Fraction(repr(percent or 0.0)) / 100
    for place in np.flatnonzero(large):
        number = Fraction(own[place])
        exact[place] = number + (abs(number) * share if amount is None else Fraction(amount))
    return exact


def _is_number(value: Any) -> bool:
    # NumPy counts its durations among the integers.
    others = (bool, np.timedelta64)
    return isinstance(value, (int, float, np.number)) and not isinstance(value, others)
