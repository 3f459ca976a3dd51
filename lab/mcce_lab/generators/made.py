"""Step 1: a masked autoregressive network (MADE).

Paper, section "Future steps": models other than trees. One network gives the distribution of every
mutable feature given the immutable ones, the decision and the features visited before (Germain,
Gregor, Murray and Larochelle 2015). Columns are cut into cells, one input unit each. Context has
degree 0, the k-th mutable feature k; hidden units have degrees from 0 to q - 1, and see inputs and
hidden units of at most their own. The output of feature k sees hidden units of a smaller degree: so
it depends on the context and the features before it alone. Units are sorted by degree: while
features are drawn, each hidden unit is computed once, when all that it sees is known.

Always true: the network is trained with torch but used without it, in fixed point, so a draw is the
same to the last bit whatever the batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from mcce import Schema, TreeChain
from mcce.protocols import (
    BoolArray,
    Capabilities,
    Codes,
    DrawRequest,
    EncodedRows,
    FloatArray,
    IntArray,
    check_real,
    check_whole,
)

from ..networks import Goal, import_torch, isolated, train
from ..parameters import Count, Device, Rate, Width
from .base import LabGenerator, demand, progress
from .cells import draw_cells, learn_cells, log_shares, pack_cells, unpack_cells
from .fixed_point import (
    MAX_ACTIVATION,
    check_network,
    chunk_rows,
    fix_network,
    relu,
)

PATIENCE = 10


def _check_dropout(name: str, value: Any) -> None:
    check_real(name, value, "a number from 0 to 0.9", most=0.9)


@dataclass(eq=False, repr=False, kw_only=True)
class MADE(LabGenerator):
    """A neural network that draws one mutable feature after another. Needs torch to be fitted.

    Parameters
    ----------
    n_hidden
        Units of each of the two hidden layers.
    n_bins
        The most cells of a numeric feature: values held by more than one row in ``n_bins`` are
        cells of their own, the others share bins of about equally many rows. Values drawn from a
        bin are uniform between its ends, rounded like those of training.
    n_epochs
        The most passes over the training rows. Training ends when the likelihood of a tenth of
        them, held out, has not risen for ten passes.
    batch_size
        The most rows of a training step; fewer for small data.
    learning_rate, dropout
        Of the training.
    visit_order
        As for :class:`mcce.TreeChain`.
    condition_on_decision
        Whether the decision is an input.
    device
        Where to train: ``"cpu"``, ``"cuda"`` or ``"cuda:0"``. Rows are always drawn on the CPU.

    Attributes
    ----------
    cells_ : list of ColumnCells
        The cells of each column.
    network_ : Network
        The trained network.
    visit_order_ : (n_mutable,)
        Positions of the mutable features in the order they are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40] * 10, "salary": range(20)})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> made = MADE(n_hidden=16).fit(rows, frame["salary"].to_numpy() > 9)  # doctest: +SKIP
    """

    array_names: ClassVar[tuple[str, ...]] = ("visit_order", "cells", "network")
    capabilities: ClassVar[Capabilities] = Capabilities(
        limits=True, density=True, visit_order=True, saving=True, value_tables=True
    )
    # Of the training, which holds a tenth of the rows out.
    early_stopping: ClassVar[bool] = True

    n_hidden: Width = 256
    n_bins: Annotated[int, partial(check_whole, least=2, most=2**14)] = 64
    n_epochs: Count = 100
    batch_size: Count = 512
    learning_rate: Rate = 1e-3
    dropout: Annotated[float, _check_dropout] = 0.1
    visit_order: str | Sequence[Hashable] = "data"
    condition_on_decision: bool = True
    device: Device = "cpu"

    @property
    def visit_order_(self) -> IntArray:
        """Positions of the mutable features in the order they are drawn, shape (n_mutable,)."""
        return self._order

    @property
    def tables_(self) -> list[pd.Series[Any]]:
        """The values that can be drawn, one table per mutable feature."""
        return [self.cells_[position].table for position in self.schema_.mutable]

    def log_likelihood(self, rows: EncodedRows, *, decision: bool = True) -> FloatArray:
        """Log-probability of each row's mutable values given its immutable ones and a decision.

        A number counts as the value of its cell that can be drawn: the probability of the cell,
        shared out among its values.

        Parameters
        ----------
        rows
            The rows.
        decision
            The decision that they are given.

        Returns
        -------
        (n_rows,)
            Log-probabilities; minus infinity for levels that training never held.
        """
        total = np.zeros(len(rows))
        at_once = self._rows_at_once()
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            codes = rows.tree_codes[:, some]
            inputs = np.vstack([codes, np.full((1, codes.shape[1]), decision)])
            steps = Autoregression(self.network_, self._context(inputs, self.schema_))
            for number, position in enumerate(self._order):
                column = self.cells_[position]
                cells = column.cell_of[codes[position]]
                known = cells < column.n_cells
                at = np.minimum(cells, column.n_cells - 1)
                logs = log_shares(steps.logits(number))[np.arange(at.size), at]
                total[some] += np.where(known, logs - np.log(column.sizes[at]), -np.inf)
                steps.put(number, cells)
        return total

    def _learn(self, rows: EncodedRows, is_desired: BoolArray, seed: int, verbose: bool) -> None:
        import_torch("MADE", self.device)
        # Stumps know the visit order, and cost nothing beside a network.
        stumps = TreeChain(
            visit_order=self.visit_order,
            condition_on_decision=self.condition_on_decision,
            max_depth=1,
        )
        self._order = stumps.fit(rows, is_desired).visit_order_
        self.cells_ = learn_cells(rows, self.n_bins)
        layout, codes = self._layout(rows.schema), rows.tree_codes
        context = self._context(np.vstack([codes, is_desired]), rows.schema)
        drawn = [self.cells_[at].cell_of[codes[at]] for at in self._order]
        cells = np.vstack([context, *drawn]).T + layout.offsets[:-1]
        with isolated(seed, self.device), progress(self.n_epochs, "training MADE", verbose) as show:
            weights = _train(layout, cells, self, show)
        self.network_ = Network.fix(layout, weights)

    def _layout(self, schema: Schema) -> Layout:
        context = [self.cells_[position].n_cells for position in schema.immutable]
        decision = [2] * self.condition_on_decision
        drawn = [self.cells_[position].n_cells for position in self._order]
        return Layout((*context, *decision), tuple(drawn), self.n_hidden)

    def _context(self, codes: Codes, schema: Schema) -> IntArray:
        """Cells of the context, shape (n_context, n_rows)."""
        columns = [self.cells_[at].cell_of[codes[at]] for at in schema.immutable]
        if self.condition_on_decision:
            columns.append(codes[-1].astype(np.int64))
        return np.array(columns, dtype=np.int64).reshape(len(columns), codes.shape[1])

    def _rows_at_once(self) -> int:
        return chunk_rows(max(self.network_.layout.drawn, default=1))

    def _tables(self) -> list[pd.Series[Any]] | None:
        return self.tables_

    def _draw(self, request: DrawRequest) -> Codes:
        context = self._context(request.inputs, self.schema_)
        steps = Autoregression(self.network_, context[:, request.group])
        place_of = {position: place for place, position in enumerate(self.schema_.mutable.tolist())}
        codes = np.empty((len(place_of), request.group.size), dtype=np.int32)
        for number, position in enumerate(self._order.tolist()):
            logits = steps.logits(number)
            drawn = draw_cells(request, position, self.cells_[position], logits)
            codes[place_of[position]] = drawn[0]
            steps.put(number, drawn[1])
        return codes

    def _pack(self) -> dict[str, Any]:
        network, cells = dict(self.network_.weights), pack_cells(self.cells_)
        return {"visit_order": self._order, "cells": cells, "network": network}

    def _unpack(self, arrays: Mapping[str, Any], schema: Schema) -> None:
        self._order = _check_order(arrays["visit_order"], self.visit_order, schema)
        self.cells_ = unpack_cells(arrays["cells"], schema)
        self.network_ = Network.from_arrays(self._layout(schema), arrays["network"])


def _check_order(order: Any, parameter: str | Sequence[Hashable], schema: Schema) -> IntArray:
    """A visit order from a file; raises SavedFileError unless the parameter could give it."""
    whole = isinstance(order, np.ndarray) and order.dtype == np.int64 and order.ndim == 1
    every = whole and np.array_equal(np.sort(order), schema.mutable)
    demand(every, "the visit order does not name every mutable feature once")
    named = [schema.names[position] for position in order]
    expected = {"data": sorted(order), "correlation": list(order)}
    wanted = expected.get(parameter) if isinstance(parameter, str) else None
    same = list(order) == wanted if isinstance(parameter, str) else named == list(parameter)
    demand(same, "the visit order is not that of the generator")
    checked: IntArray = order
    return checked


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

    def masks(self) -> dict[str, BoolArray]:
        """Which weights may differ from 0: from inputs, between hidden units, and to outputs."""
        drawn = np.repeat(np.arange(1, len(self.drawn) + 1), self.drawn)
        inputs = np.concatenate([np.zeros(sum(self.context), dtype=np.int64), drawn])
        hidden = self.hidden_degrees
        return {
            "into": inputs[:, None] <= hidden,
            "middle": hidden[:, None] <= hidden,
            "out": hidden[:, None] < drawn,
        }

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
        fixed = fix_network(weights, layout.reach())
        return cls(layout, {n: w * layout.masks().get(n, 1.0) for n, w in fixed.items()})

    @classmethod
    def from_arrays(cls, layout: Layout, arrays: Any) -> Network:
        """A network from a file, checked."""
        weights = check_network(arrays, layout.shapes(), layout.reach())
        for name, mask in layout.masks().items():
            why = "a feature would depend on one that is drawn after it"
            demand(not weights[name][~mask].any(), why)
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


def _train(layout: Layout, cells: IntArray, made: MADE, show: Any) -> dict[str, Any]:
    """The weights of a trained network, by name: input units of cells are 0 or 1."""
    import torch

    functional = torch.nn.functional
    masks = {name: torch.tensor(mask).float() for name, mask in layout.masks().items()}
    network: Any = torch.nn.Module()
    for name, shape in layout.shapes().items():
        values = torch.zeros(shape)
        if len(shape) == 2:
            # About as many inputs are active as there are columns.
            n_active = len(layout.context) + len(layout.drawn) if name == "into" else shape[0]
            width = (3.0 / max(n_active, 1)) ** 0.5
            values.uniform_(-width, width)
        network.register_parameter(name, torch.nn.Parameter(values))
    # Without weights, the output is how frequent each cell is.
    counts = np.bincount(cells.ravel(), minlength=int(layout.offsets[-1])) + 1.0
    first = int(layout.offsets[len(layout.context)])
    shares = torch.tensor(np.log(counts[first:] / len(cells))).float()
    with torch.no_grad():
        network.out_bias += shares
    network.to(made.device)
    masks = {name: mask.to(made.device) for name, mask in masks.items()}

    def layer(name: str, inputs: Any) -> Any:
        weights = getattr(network, name) * masks[name]
        return inputs @ weights + getattr(network, f"{name}_bias")

    def loss(batch: Sequence[Any], _: int) -> Any:
        units = batch[0]
        hidden = torch.zeros((len(units), int(layout.offsets[-1])), device=units.device)
        hidden.scatter_(1, units, 1.0)
        for name in ("into", "middle"):
            hidden = functional.dropout(layer(name, hidden).relu(), made.dropout, network.training)
        logits: Any = layer("out", hidden)
        total: Any = 0.0
        for feature in range(len(layout.drawn)):
            column = len(layout.context) + feature
            wanted = units[:, column] - int(layout.offsets[column])
            part = logits[:, layout.outputs[feature] : layout.outputs[feature + 1]]
            total = total + functional.cross_entropy(part, wanted, reduction="sum")
        return total

    goal, rate = Goal(loss, list(network.parameters())), made.learning_rate
    units = [torch.tensor(cells)]
    trained = train(network, units, [goal], made, rate=rate, patience=PATIENCE, show=show)
    return {name: weights.cpu().numpy() for name, weights in trained.state_dict().items()}
