"""Networks in fixed point: the same output to the last bit, whatever the batch and the threads.

Weights and activations are rounded to multiples of powers of two, and bounded. So every product and
every sum of a matrix product is exact in float64, in any order and by any library: neither the
number of rows nor threads can change it. No torch is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcce.errors import SavedFileError
from mcce.kernels import FloatArray, IntArray

# Units of weights and activations, and the largest activation. Sums stay below 2**24.
WEIGHT_UNIT, UNIT, LARGEST = 2.0**-16, 2.0**-12, 2.0**8
LARGEST_SUM = 2.0**24
# Rows that are computed together at most, and outputs of all of them.
MOST_ROWS, MOST_OUTPUTS = 2**13, 2**22


def chunk_rows(n_outputs: int) -> int:
    """How many rows to compute together; it changes nothing but the memory."""
    return max(1, min(MOST_ROWS, MOST_OUTPUTS // max(n_outputs, 1)))


def fix_weights(weights: Any, reach: float = 1.0) -> FloatArray:
    """Weights on the grid, and so small that no sum is too large to be exact.

    Parameters
    ----------
    weights
        Weights of any shape.
    reach
        The largest sum of the inputs that they are multiplied with, by absolute value.
    """
    values = np.asarray(weights, dtype=np.float64)
    bound = np.floor(LARGEST_SUM / 2 / max(reach, 1.0) / WEIGHT_UNIT) * WEIGHT_UNIT
    return np.clip(np.rint(values / WEIGHT_UNIT) * WEIGHT_UNIT, -bound, bound)


def fix(values: FloatArray) -> FloatArray:
    """Inputs of a layer on the grid and bounded."""
    return np.clip(np.rint(values / UNIT) * UNIT, -LARGEST, LARGEST)


def relu(values: FloatArray) -> FloatArray:
    """The positive part of a layer's output, on the grid and bounded."""
    return np.clip(np.rint(values / UNIT) * UNIT, 0.0, LARGEST)


def check_weights(weights: Any, shape: tuple[int, ...], reach: float = 1.0) -> FloatArray:
    """Weights from a file; raises SavedFileError unless :func:`fix_weights` could give them."""
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float64 or weights.shape != shape:
        raise SavedFileError("the weights of the network have other dtypes or shapes")
    if not np.isfinite(weights).all() or not np.array_equal(fix_weights(weights, reach), weights):
        raise SavedFileError("the weights of the network are not in fixed point")
    return weights


def choose(logits: FloatArray, u: FloatArray, share: FloatArray | None = None) -> IntArray:
    """A class of each row by its probabilities, -1 where all are 0.

    Parameters
    ----------
    logits : (n_rows, n_classes)
        Logarithms of the probabilities, up to a constant of each row.
    u : (n_rows,)
        Uniform numbers.
    share : (n_rows, n_classes), optional
        What each probability is multiplied by.
    """
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    if share is not None:
        weight *= share
    below = np.cumsum(weight, axis=1)
    total = below[:, -1]
    chosen = (below <= (u * total)[:, None]).sum(axis=1)
    # The last class with any probability, should rounding lead beyond it.
    last = weight.shape[1] - 1 - (weight[:, ::-1] > 0).argmax(axis=1)
    return np.where(total > 0, np.minimum(chosen, last), -1)


def log_shares(logits: FloatArray) -> FloatArray:
    """Logarithms of the probabilities of each row."""
    centred = logits - logits.max(axis=1, keepdims=True)
    return centred - np.log(np.exp(centred).sum(axis=1, keepdims=True))
