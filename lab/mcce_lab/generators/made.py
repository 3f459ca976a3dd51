"""Step 1: a masked autoregressive network (MADE).

Paper, section "Future steps": models other than trees. One network gives the distribution of every
mutable feature given the immutable ones, the decision and the features visited before. Columns are
cut into cells: levels, atoms and bins (``cells``).

Always true: the network is trained with torch (``training``) but used without it, in fixed point
(``fixed_point``), so a draw is the same to the last bit whatever the batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mcce import Schema, TreeChain
from mcce.errors import SavedFileError
from mcce.protocols import (
    BoolArray,
    Capabilities,
    Codes,
    DrawRequest,
    EncodedRows,
    FloatArray,
    IntArray,
    check_count,
    check_flag,
    check_real,
    check_whole,
)

from ..networks import check_device, import_torch, isolated
from .cells import ColumnCells, draw_cells, learn_cells, log_shares, pack_cells, unpack_cells
from .fixed_point import Autoregression, Layout, Network, chunk_rows
from .parts import DrawsCells, progress
from .training import Training, train_network


class MADE(DrawsCells, BaseEstimator):
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

    array_names = ("visit_order", "cells", "network")
    capabilities = Capabilities(
        limits=True,
        density=True,
        visit_order=True,
        saving=True,
        value_tables=True,
    )

    def __init__(
        self,
        *,
        n_hidden: int = 256,
        n_bins: int = 64,
        n_epochs: int = 100,
        batch_size: int = 512,
        learning_rate: float = 1e-3,
        dropout: float = 0.1,
        visit_order: str | Sequence[Hashable] = "data",
        condition_on_decision: bool = True,
        device: str = "cpu",
    ) -> None:
        self.n_hidden = n_hidden
        self.n_bins = n_bins
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.dropout = dropout
        self.visit_order = visit_order
        self.condition_on_decision = condition_on_decision
        self.device = device

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Seed of all randomness, ignored, and whether to show a progress bar.

        Returns
        -------
        MADE
            Itself.

        Raises
        ------
        MissingExtraError
            If torch is not installed.
        """
        self._check()
        import_torch("MADE", self.device)
        # Stumps know the visit order, and cost nothing beside a network.
        stumps = TreeChain(
            visit_order=self.visit_order,
            condition_on_decision=self.condition_on_decision,
            max_depth=1,
        )
        order = stumps.fit(rows, is_desired).visit_order_
        cells = learn_cells(rows, self.n_bins)
        layout = self._layout(rows.schema, cells, order)
        inputs = self._inputs(cells, np.vstack([rows.tree_codes, is_desired]), rows.schema)
        known = np.vstack([inputs, *(cells[at].cell_of[rows.tree_codes[at]][None] for at in order)])
        training = Training(
            self.n_epochs, self.batch_size, self.learning_rate, self.dropout, self.device
        )
        with progress(self.n_epochs, "training MADE", verbose) as show, isolated(seed) as torch:
            weights = train_network(torch, layout, known, training, seed, show)
        return self._keep(rows.schema, order, cells, Network.fix(layout, weights))

    def to_arrays(self) -> dict[str, Any]:
        """What was learned.

        Returns
        -------
        dict
            The visit order, the cells of columns, and the weights.
        """
        return {
            "visit_order": self.visit_order_,
            "cells": pack_cells(self.cells_),
            "network": dict(self.network_.weights),
        }

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, checked; needs no torch.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.

        Returns
        -------
        MADE
            Itself, as if fitted.
        """
        self._check()
        order = _check_order(arrays["visit_order"], self.visit_order, schema)
        cells = unpack_cells(arrays["cells"], schema)
        network = Network.from_arrays(self._layout(schema, cells, order), arrays["network"])
        return self._keep(schema, order, cells, network)

    @property
    def visit_order_(self) -> IntArray:
        """Positions of the mutable features in the order they are drawn, shape (n_mutable,)."""
        return self._order

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
            steps = Autoregression(self.network_, self._inputs(self.cells_, inputs, self.schema_))
            for number, position in enumerate(self._order):
                column = self.cells_[position]
                cells = column.cell_of[codes[position]]
                known = cells < column.n_cells
                at = np.minimum(cells, column.n_cells - 1)
                logs = log_shares(steps.logits(number))[np.arange(at.size), at]
                total[some] += np.where(known, logs - np.log(column.sizes[at]), -np.inf)
                steps.put(number, cells)
        return total

    def _check(self) -> None:
        check_whole("n_hidden", self.n_hidden, 1, 2**13)
        check_whole("n_bins", self.n_bins, 2, 2**14)
        check_count("n_epochs", self.n_epochs)
        check_count("batch_size", self.batch_size)
        rate = self.learning_rate
        check_real("learning_rate", rate, "a number above 0 and up to 1", zero=False, most=1.0)
        check_real("dropout", self.dropout, "a number from 0 to 0.9", most=0.9)
        check_flag("condition_on_decision", self.condition_on_decision)
        check_device(self.device)

    def _layout(self, schema: Schema, cells: list[ColumnCells], order: IntArray) -> Layout:
        context = [cells[position].n_cells for position in schema.immutable]
        decision = [2] * self.condition_on_decision
        drawn = [cells[position].n_cells for position in order]
        return Layout((*context, *decision), tuple(drawn), self.n_hidden)

    def _inputs(self, cells: list[ColumnCells], codes: Codes, schema: Schema) -> IntArray:
        """Cells of the context, shape (n_context, n_rows)."""
        columns = [cells[at].cell_of[codes[at]] for at in schema.immutable]
        if self.condition_on_decision:
            columns.append(codes[-1].astype(np.int64))
        return np.array(columns, dtype=np.int64).reshape(len(columns), codes.shape[1])

    def _keep(
        self, schema: Schema, order: IntArray, cells: list[ColumnCells], network: Network
    ) -> Self:
        """Take what was learned of these columns."""
        self.schema_ = schema
        self.cells_, self.network_, self._order = cells, network, order
        return self

    def _rows_at_once(self) -> int:
        return chunk_rows(max(self.network_.layout.drawn, default=1))

    def _draw(self, request: DrawRequest) -> Codes:
        """Codes of some rows, shape (n_mutable, n_rows)."""
        context = self._inputs(self.cells_, request.inputs, self.schema_)
        steps = Autoregression(self.network_, context[:, request.group])
        place_of = {position: place for place, position in enumerate(self.schema_.mutable.tolist())}
        codes = np.empty((len(place_of), request.group.size), dtype=np.int32)
        for number, position in enumerate(self._order.tolist()):
            logits = steps.logits(number)
            drawn = draw_cells(request, position, self.cells_[position], logits)
            codes[place_of[position]] = drawn[0]
            steps.put(number, drawn[1])
        return codes


def _check_order(order: Any, parameter: str | Sequence[Hashable], schema: Schema) -> IntArray:
    """A visit order from a file; raises SavedFileError unless the parameter could give it."""
    whole = isinstance(order, np.ndarray) and order.dtype == np.int64 and order.ndim == 1
    if not whole or not np.array_equal(np.sort(order), schema.mutable):
        raise SavedFileError("the visit order does not name every mutable feature once")
    named = [schema.names[position] for position in order]
    expected = {"data": sorted(order), "correlation": list(order)}
    if isinstance(parameter, str):
        sound = list(order) == expected.get(parameter)
    else:
        sound = named == list(parameter)
    if not sound:
        raise SavedFileError("the visit order is not that of the generator")
    checked: IntArray = order
    return checked
