"""Networks in fixed point: the same output to the last bit, whatever the batch.

Weights and activations are rounded to multiples of powers of two, and bounded. So every product and
every sum of a matrix product is exact in float64, in any order and by any library: neither the
number of rows nor threads can change it. No torch is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from mcce.protocols import FloatArray, WordArray, draw_keys

from .base import demand

# Units of weights and activations, and the largest activation. Sums stay below 2**24.
WEIGHT_UNIT, UNIT, MAX_ACTIVATION = 2.0**-16, 2.0**-12, 2.0**8
MAX_SUM = 2.0**24
# Rows that are computed together at most, and outputs of all of them.
MAX_BLOCK_ROWS, MAX_BLOCK_OUTPUTS = 2**13, 2**22


def chunk_rows(n_outputs: int) -> int:
    """How many rows to compute together; it changes nothing but the memory."""
    return max(1, min(MAX_BLOCK_ROWS, MAX_BLOCK_OUTPUTS // max(n_outputs, 1)))


def fix_weights(weights: Any, reach: float = 1.0) -> FloatArray:
    """Weights on the grid, and so small that no sum is too large to be exact."""
    values = np.asarray(weights, dtype=np.float64)
    bound = np.floor(MAX_SUM / 2 / max(reach, 1.0) / WEIGHT_UNIT) * WEIGHT_UNIT
    return np.clip(np.rint(values / WEIGHT_UNIT) * WEIGHT_UNIT, -bound, bound)


def fix(values: FloatArray) -> FloatArray:
    """Inputs of a layer on the grid and bounded."""
    return np.clip(np.rint(values / UNIT) * UNIT, -MAX_ACTIVATION, MAX_ACTIVATION)


def relu(values: FloatArray) -> FloatArray:
    """The positive part of a layer's output, on the grid and bounded."""
    return np.clip(np.rint(values / UNIT) * UNIT, 0.0, MAX_ACTIVATION)


def fix_network(weights: Mapping[str, Any], reach: Mapping[str, float]) -> dict[str, FloatArray]:
    """The weights of a network on the grid, given the largest sum each is multiplied with."""
    return {name: fix_weights(weights[name], most) for name, most in reach.items()}


def check_network(
    arrays: Any, shapes: Mapping[str, tuple[int, ...]], reach: Mapping[str, float]
) -> dict[str, FloatArray]:
    """Weights from a file; raises SavedFileError unless :func:`fix_network` could give them."""
    sound = isinstance(arrays, Mapping) and set(arrays) == set(shapes)
    demand(sound, "the network has other parts")
    for name, shape in shapes.items():
        weights = arrays[name]
        whole = isinstance(weights, np.ndarray) and weights.dtype == np.float64
        demand(
            whole and weights.shape == shape and np.isfinite(weights).all(),
            "the weights of the network have other dtypes or shapes",
        )
        same = np.array_equal(fix_weights(weights, reach[name]), weights)
        demand(same, "the weights of the network are not in fixed point")
    return dict(arrays)


# A random word gives four numbers of this many bits.
NOISE_BITS, NOISE_PER_WORD = 16, 4
LARGEST_NOISE = 8.0


def normal_noise(row_keys: WordArray, first_word: int, n_noise: int) -> FloatArray:
    """Normal numbers of each row from its key, shape (n_rows, n_noise).

    They are quantiles at 2**16 equal steps, four from every random word.
    """
    n_words = -(-n_noise // NOISE_PER_WORD)
    words = draw_keys(row_keys, first_word + np.arange(n_words))
    shifts = NOISE_BITS * np.arange(NOISE_PER_WORD, dtype=np.uint64)
    steps = (words[:, :, None] >> shifts) & np.uint64(2**NOISE_BITS - 1)
    return _QUANTILES[steps.reshape(row_keys.size, -1)[:, :n_noise].astype(np.int64)]


_QUANTILES = fix(ndtri((np.arange(2**NOISE_BITS) + 0.5) / 2**NOISE_BITS))
