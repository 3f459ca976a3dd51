"""Networks in fixed point: the same output to the last bit, whatever the batch.

Weights and activations are rounded to multiples of powers of two, and bounded. So every product and
every sum of a matrix product is exact in float64, in any order and by any library: neither the
number of rows nor threads can change it. No torch is needed.

:class:`Autoregression` is MADE (Germain, Gregor, Murray and Larochelle 2015). Inputs are cells, one
unit each. Context has degree 0, the k-th mutable feature k; hidden units have degrees from 0 to
q - 1, and see inputs and hidden units of at most their own. The output of feature k sees hidden
units of a smaller degree: so it depends on the context and the features before it alone. Units are
sorted by degree: while features are drawn, each hidden unit is computed once, when all that it sees
is known.

:class:`GanNetwork` is the generator of a conditional GAN: two layers, each concatenated to its
input, and a linear one; batch normalisation is part of the weights. It gives a logit for each mode
of each mutable feature, and a place in the mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from mcce.errors import SavedFileError
from mcce.protocols import BoolArray, Codes, FloatArray, IntArray, WordArray, draw_keys

from .cells import ColumnModes

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


def check_weights(weights: Any, shape: tuple[int, ...], reach: float = 1.0) -> FloatArray:
    """Weights from a file; raises SavedFileError unless :func:`fix_weights` could give them."""
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float64 or weights.shape != shape:
        raise SavedFileError("the weights of the network have other dtypes or shapes")
    if not np.isfinite(weights).all() or not np.array_equal(fix_weights(weights, reach), weights):
        raise SavedFileError("the weights of the network are not in fixed point")
    return weights


WEIGHTS = ("into", "into_bias", "middle", "middle_bias", "out", "out_bias")


@dataclass(frozen=True, eq=False)
class Layout:
    """Which units of a network belong to which column, and who may see whom.

    Parameters
    ----------
    context
        Number of cells of each column of the context.
    drawn
        Number of cells of each column that is drawn, in visit order.
    n_hidden
        Units of each of the two hidden layers.
    """

    context: tuple[int, ...]
    drawn: tuple[int, ...]
    n_hidden: int

    @cached_property
    def offsets(self) -> IntArray:
        """The first input unit of each column, context first; one more entry for the end."""
        return np.append(0, np.cumsum([*self.context, *self.drawn]))

    @cached_property
    def outputs(self) -> IntArray:
        """The first output unit of each column that is drawn; one more entry for the end."""
        return np.append(0, np.cumsum(self.drawn))

    @cached_property
    def ends(self) -> IntArray:
        """How many hidden units have at most each degree, from 0."""
        degrees = np.arange(max(1, len(self.drawn)))
        return np.searchsorted(self.hidden_degrees, degrees, side="right")

    @cached_property
    def hidden_degrees(self) -> IntArray:
        """The degree of each hidden unit, ascending."""
        return np.sort(np.arange(self.n_hidden) % max(1, len(self.drawn)))

    def masks(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Which weights may differ from 0: from inputs, between hidden units, and to outputs."""
        numbers = np.arange(1, len(self.drawn) + 1)
        drawn = np.repeat(numbers, self.drawn)
        inputs = np.concatenate([np.zeros(sum(self.context), dtype=np.int64), drawn])
        hidden = self.hidden_degrees
        return (
            inputs[:, None] <= hidden,
            hidden[:, None] <= hidden,
            hidden[:, None] < drawn,
        )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array of weights."""
        n_inputs, n_outputs, n_hidden = int(self.offsets[-1]), int(self.outputs[-1]), self.n_hidden
        return {
            "into": (n_inputs, n_hidden),
            "into_bias": (n_hidden,),
            "middle": (n_hidden, n_hidden),
            "middle_bias": (n_hidden,),
            "out": (n_hidden, n_outputs),
            "out_bias": (n_outputs,),
        }

    def reach(self) -> dict[str, float]:
        """The largest sum of what each array of weights is multiplied with."""
        inputs, hidden = float(len(self.context) + len(self.drawn)), self.n_hidden * MAX_ACTIVATION
        sums = {"into": inputs, "middle": hidden, "out": hidden}
        return {name: sums.get(name, 1.0) for name in WEIGHTS}


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network in fixed point.

    Parameters
    ----------
    layout
        Its shape.
    weights
        Its arrays by name; what is masked is 0.
    """

    layout: Layout
    weights: Mapping[str, FloatArray]

    @classmethod
    def fix(cls, layout: Layout, weights: Mapping[str, Any]) -> Network:
        """A network of any weights, masked and rounded."""
        masks = dict(zip(("into", "middle", "out"), layout.masks(), strict=True))
        reach = layout.reach()
        fixed = {name: fix_weights(weights[name], reach[name]) for name in WEIGHTS}
        return cls(layout, {n: w * masks[n] if n in masks else w for n, w in fixed.items()})

    @classmethod
    def from_arrays(cls, layout: Layout, arrays: Any) -> Network:
        """A network from a file, checked."""
        shapes, reach = layout.shapes(), layout.reach()
        if not isinstance(arrays, Mapping) or set(arrays) != set(shapes):
            raise SavedFileError("the network has other parts")
        weights = {n: check_weights(arrays[n], shape, reach[n]) for n, shape in shapes.items()}
        for name, mask in zip(("into", "middle", "out"), layout.masks(), strict=True):
            if weights[name][~mask].any():
                raise SavedFileError("a feature would depend on one that is drawn after it")
        return cls(layout, weights)


class Autoregression:
    """The output of a network for some rows, feature by feature."""

    def __init__(self, network: Network, context: IntArray) -> None:
        self.network, weights = network, network.weights
        n_rows, n_hidden = context.shape[1], network.layout.n_hidden
        self.sums = np.tile(weights["into_bias"], (n_rows, 1))
        self.first, self.second = np.empty((2, n_rows, n_hidden))
        for column, cells in enumerate(context):
            self._add(column, cells, 0)

    def logits(self, feature: int) -> FloatArray:
        """Logits of the cells of the next feature of the visit order; those before are known."""
        layout, weights = self.network.layout, self.network.weights
        end = int(layout.ends[feature])
        new = slice(int(layout.ends[feature - 1]) if feature else 0, end)
        self.first[:, new] = relu(self.sums[:, new])
        inner = self.first[:, :end] @ weights["middle"][:end, new]
        self.second[:, new] = relu(inner + weights["middle_bias"][new])
        units = slice(int(layout.outputs[feature]), int(layout.outputs[feature + 1]))
        return self.second[:, :end] @ weights["out"][:end, units] + weights["out_bias"][units]

    def put(self, feature: int, cells: IntArray) -> None:
        """Take the cells of a feature, which those after it depend on."""
        layout = self.network.layout
        self._add(len(layout.context) + feature, cells, int(layout.ends[feature]))

    def _add(self, column: int, cells: IntArray, first: int) -> None:
        """Add the weights of a column's cells to hidden units from the first that sees it."""
        layout, into = self.network.layout, self.network.weights["into"]
        start, end = layout.offsets[column : column + 2]
        known = (cells < end - start)[:, None]
        at = start + np.minimum(cells, end - start - 1)
        self.sums[:, first:] += np.where(known, into[at, first:], 0.0)


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
        sums = {
            f"weights_{layer}": inputs + layer * self.n_hidden * MAX_ACTIVATION
            for layer in range(3)
        }
        return {name: sums.get(name, 1.0) for name in self.shapes()}

    def encode_context(
        self, codes: list[Codes], numbers: list[FloatArray | None], n_rows: int
    ) -> FloatArray:
        """The inputs of rows for the context, shape (n_rows, n_context)."""
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


_QUANTILES = fix(ndtri((np.arange(2**NOISE_BITS) + 0.5) / 2**NOISE_BITS))
