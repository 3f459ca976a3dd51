"""The generator of a conditional GAN in fixed point: which units it has, and its output.

Two layers, each concatenated to its input, and a linear one; batch normalisation is part of the
weights. It gives a logit for each mode of each mutable feature, and a place in the mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.caching import cached_property
from mcce.errors import SavedFileError
from mcce.kernels import (
    Codes,
    FloatArray,
    IntArray,
    WordArray,
    draw_keys,
)

from ..copula.normal import ppf
from .fixed import (
    LARGEST,
    check_weights,
    fix,
    fix_weights,
    relu,
)
from .modes import ColumnModes

# A random word gives four numbers of this many bits.
NOISE_BITS, NOISE_PER_WORD = 16, 4
LARGEST_NOISE = 8.0


@dataclass(frozen=True, eq=False)
class GanLayout:
    """Which inputs and outputs belong to which column.

    Parameters
    ----------
    context
        Modes of the immutable features; with the decision, two more units follow.
    drawn
        Modes of the mutable features.
    decision
        Whether the decision is part of the context.
    n_noise, n_hidden
        Number of random inputs, and of units of each hidden layer.
    """

    context: tuple[ColumnModes, ...]
    drawn: tuple[ColumnModes, ...]
    decision: bool
    n_noise: int
    n_hidden: int

    @cached_property
    def n_context(self) -> int:
        """Number of inputs that stand for the context."""
        return sum(width_of(column) for column in self.context) + 2 * self.decision

    @cached_property
    def starts(self) -> IntArray:
        """The first output of each mutable feature: a unit per mode, then the place if any."""
        return np.append(0, np.cumsum([width_of(column) for column in self.drawn]))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array of weights."""
        first = self.n_noise + self.n_context
        widths = [first, first + self.n_hidden, first + 2 * self.n_hidden]
        outputs = [self.n_hidden, self.n_hidden, int(self.starts[-1])]
        found: dict[str, tuple[int, ...]] = {}
        for layer, (n_in, n_out) in enumerate(zip(widths, outputs, strict=True)):
            found[f"weights_{layer}"], found[f"bias_{layer}"] = (n_in, n_out), (n_out,)
        return found

    def reach(self) -> dict[str, float]:
        """The largest sum of what each array of weights is multiplied with."""
        inputs = LARGEST_NOISE * self.n_noise + self.n_context
        sums = {f"weights_{layer}": inputs + layer * self.n_hidden * LARGEST for layer in range(3)}
        return {name: sums.get(name, 1.0) for name in self.shapes()}

    def encode_context(
        self, codes: list[Codes], numbers: list[FloatArray | None], n_rows: int
    ) -> FloatArray:
        """The inputs of rows for the context, shape (n_rows, n_context).

        Parameters
        ----------
        codes
            Descent codes of the immutable features, and the decision.
        numbers
            The number of each code of these features; None for levels.
        n_rows
            Number of rows.
        """
        parts = [
            one_hot(*column.encode(cells.astype(np.int64), values), column)
            for column, cells, values in zip(self.context, codes, numbers, strict=False)
        ]
        if self.decision:
            parts.append(np.eye(2)[codes[-1]])
        return np.hstack([np.empty((n_rows, 0)), *parts])


@dataclass(frozen=True, eq=False)
class GanNetwork:
    """A trained generator in fixed point.

    Parameters
    ----------
    layout
        Its shape.
    weights
        Its arrays by name.
    """

    layout: GanLayout
    weights: Mapping[str, FloatArray]

    @classmethod
    def fix(cls, layout: GanLayout, weights: Mapping[str, Any]) -> GanNetwork:
        """A network of any weights, rounded."""
        reach = layout.reach()
        return cls(layout, {name: fix_weights(weights[name], reach[name]) for name in reach})

    @classmethod
    def from_arrays(cls, layout: GanLayout, arrays: Any) -> GanNetwork:
        """A network from a file, checked."""
        shapes, reach = layout.shapes(), layout.reach()
        if not isinstance(arrays, Mapping) or set(arrays) != set(shapes):
            raise SavedFileError("the network has other parts")
        checked = {n: check_weights(arrays[n], shape, reach[n]) for n, shape in shapes.items()}
        return cls(layout, checked)

    def outputs(self, noise: FloatArray, context: FloatArray) -> FloatArray:
        """Logits and places of all mutable features, shape (n_rows, n_outputs)."""
        inputs = np.hstack([fix(noise), fix(context)])
        for layer in range(2):
            hidden = inputs @ self.weights[f"weights_{layer}"] + self.weights[f"bias_{layer}"]
            inputs = np.hstack([relu(hidden), inputs])
        found: FloatArray = inputs @ self.weights["weights_2"] + self.weights["bias_2"]
        return found


def width_of(column: ColumnModes) -> int:
    """Number of units that stand for a column."""
    return column.n_units + column.has_place


def one_hot(mode: IntArray, place: FloatArray, column: ColumnModes) -> FloatArray:
    """A unit per mode and the place if there is one; no unit for an unseen level."""
    units = np.zeros((mode.size, width_of(column)))
    known = np.flatnonzero(mode < column.n_units)
    units[known, mode[known]] = 1.0
    if column.has_place:
        units[:, -1] = place
    return units


def normal_noise(row_keys: WordArray, first_word: int, n_noise: int) -> FloatArray:
    """Normal numbers of each row from its key, shape (n_rows, n_noise).

    They are quantiles at 2**16 equal steps, four from every random word.
    """
    n_words = -(-n_noise // NOISE_PER_WORD)
    words = draw_keys(row_keys, first_word + np.arange(n_words))
    shifts = NOISE_BITS * np.arange(NOISE_PER_WORD, dtype=np.uint64)
    steps = (words[:, :, None] >> shifts) & np.uint64(2**NOISE_BITS - 1)
    return _QUANTILES[steps.reshape(row_keys.size, -1)[:, :n_noise].astype(np.int64)]


_QUANTILES = fix(ppf((np.arange(2**NOISE_BITS) + 0.5) / 2**NOISE_BITS))
