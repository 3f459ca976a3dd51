"""How finely the values of a numeric column are written, and rounding to that.

Whole numbers have resolution 1, prices mostly 0.01. A column whose numbers have more digits than
that can be told from noise has resolution 0: nothing is rounded.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from ..kernels import FloatArray
from .features import Feature

# Computed numbers are equal if they differ by no more than so many units in the last place.
ULPS = 16
# The same for written numbers; a decimal place must be larger than that by this factor.
WRITTEN_ULPS, MARGIN = 4, 10


def decimals(feature: Feature) -> int | None:
    """Decimal places of a numeric feature; None if it has too many to tell.

    Examples
    --------
    >>> import pandas as pd
    >>> prices = pd.Series([25.2, 9.95], name="price")
    >>> decimals(Feature.learn(prices, kind=None, immutable=False))
    2
    """
    numbers = known_numbers(feature)
    if feature.table.dtype.kind in "iub":
        return 0
    noise = WRITTEN_ULPS * epsilon(feature.table.dtype) * np.abs(numbers)
    places = 0
    while 10.0**-places > MARGIN * noise.max(initial=0.0) and places <= 15:
        if (np.abs(np.round(numbers, places) - numbers) <= noise).all():
            return places
        places += 1
    return None


def resolution(feature: Feature) -> float:
    """The unit of the last decimal place of a numeric feature; 0 if it has too many to tell."""
    places = decimals(feature)
    return 0.0 if places is None else 10.0**-places


def known_numbers(feature: Feature) -> FloatArray:
    """The training values of a numeric feature but missing."""
    numbers = np.empty(0) if feature.numbers is None else feature.numbers
    return numbers[~np.isnan(numbers)]


def epsilon(dtype: Any) -> float:
    """The relative distance of neighbouring floats in a dtype; that of float64 for integers."""
    return float(np.finfo(np.float32 if is_single(dtype) else np.float64).eps)


def is_single(dtype: Any) -> bool:
    """Whether a dtype holds floats of 32 bits."""
    return dtype.kind == "f" and dtype.itemsize == 4


def to_decimal(value: Any) -> Decimal:
    """A number with the fewest digits that stand for it."""
    if isinstance(value, (int, np.integer)):
        return Decimal(int(value))
    short = value if isinstance(value, np.floating) else np.float64(value)
    return Decimal(np.format_float_scientific(short, unique=True, trim="-"))
