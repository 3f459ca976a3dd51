"""Numbers with few digits in place of fitted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..kernels import FloatArray

# Decimals to try, then significant digits; the last ones are what fitting can tell at all.
DECIMALS = (0, 1, 2, 3, 4)
DIGITS = (3, 4, 5, 6, 8, 10, 12)
# A short number may deviate this much more than the fitted one.
MAX_LOSS = 1.03


def snap(
    weights: FloatArray,
    deviation: Callable[[FloatArray], float],
    accepted: float,
    noise: float = 0.0,
) -> FloatArray:
    """The shortest numbers that do nearly as well as fitted ones.

    Examples
    --------
    >>> snap(np.array([1.0003, 0.2499]), lambda w: abs(w - [1, 0.25]).max(), 0.0).tolist()
    [1.0, 0.25]
    """
    most = max(MAX_LOSS * deviation(weights), accepted)
    without = np.concatenate([[0.0], weights[1:]]) if abs(weights[0]) <= noise else weights
    for shorter in (*_shorter(without), without):
        if deviation(shorter) <= most:
            return shorter
    return weights


def _shorter(weights: FloatArray) -> Iterator[FloatArray]:
    for decimals in DECIMALS:
        yield np.array([float(f"{weight:.{decimals}f}") + 0.0 for weight in weights])
    for digits in DIGITS:
        yield np.array([float(f"{weight:.{digits}g}") + 0.0 for weight in weights])
