"""A masked autoregressive network: its shape, and its output one feature after another.

Germain, Gregor, Murray and Larochelle (2015). Inputs are cells, one unit each. Context has degree
0, the k-th mutable feature k; hidden units have degrees from 0 to q - 1, and see inputs and hidden
units of at most their own. The output of feature k sees hidden units of a smaller degree: so it
depends on the context and the features before it alone. Units are sorted by degree: while features
are drawn, each hidden unit is computed once, when all that it sees is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.caching import cached_property
from mcce.errors import SavedFileError
from mcce.kernels import BoolArray, FloatArray, IntArray

from .fixed import (
    LARGEST,
    check_weights,
    fix_weights,
    relu,
)

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
        inputs, hidden = float(len(self.context) + len(self.drawn)), self.n_hidden * LARGEST
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
    """The output of a network for some rows, feature by feature.

    Parameters
    ----------
    network
        The network.
    context : (n_context, n_rows)
        Cells of the context; one past the last cell of a column is none of them.
    """

    def __init__(self, network: Network, context: IntArray) -> None:
        self.network, weights = network, network.weights
        n_rows, n_hidden = context.shape[1], network.layout.n_hidden
        self.sums = np.tile(weights["into_bias"], (n_rows, 1))
        self.first, self.second = np.empty((2, n_rows, n_hidden))
        for column, cells in enumerate(context):
            self._add(column, cells, 0)

    def logits(self, feature: int) -> FloatArray:
        """Log-probabilities of the cells of a feature, up to a constant; features before are known.

        Parameters
        ----------
        feature
            Its place in the visit order; every feature in turn.
        """
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
