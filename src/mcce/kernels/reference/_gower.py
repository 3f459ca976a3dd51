"""Gower's distance in one feature, written once.

A number differs from another by their distance over the training range, a level by 1, and a cell
from one that is missing by 1. What is compared, and with whom, is the callers' business.
"""

from __future__ import annotations

import numpy as np

from .._types import BoolArray, FloatArray

# A missing number among scaled ones, and the distance beyond which one of two must be missing.
MISSING, APART = 1e308, 5e307


def gower_gap(
    numbers: FloatArray | None,
    own_numbers: FloatArray | float | None,
    spread: FloatArray | float,
    differs: BoolArray,
) -> FloatArray:
    """By how much cells of one feature differ, in shares of the training range.

    The arrays are broadcast against each other; without numbers the result has the shape of
    ``differs``.

    Examples
    --------
    >>> gower_gap(np.array([20.0, 30.0, np.nan]), 20.0, 40.0, np.array([False, True, True]))
    array([0.  , 0.25, 1.  ])
    >>> gower_gap(None, None, 0.0, np.array([False, True]))
    array([0., 1.])
    """
    if numbers is None or own_numbers is None:
        return differs.astype(np.float64)
    with np.errstate(over="ignore"):
        gap = np.abs(numbers - own_numbers) / spread
    return np.where(differs, np.where(np.isnan(gap), 1.0, gap), 0.0)


def scaled_gap(numbers: FloatArray, own_number: FloatArray | float) -> FloatArray:
    """The same for numbers divided by the training range, where a missing one is ``MISSING``."""
    gap = np.abs(numbers - own_number)
    return np.where(gap > APART, 1.0, gap)
