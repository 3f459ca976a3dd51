"""Step 1: a conditional generative adversarial network for tables (CTGAN).

Paper, section "Future steps": models other than trees. The whole context, the immutable features
and the decision, is an input of the generator and of the critic (``training``); the generator
makes the mutable features alone. So every draw has the context that it was asked for.

Always true: the network is trained with torch but used without it, in fixed point
(``fixed_point``), so a draw is the same to the last bit whatever the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from mcce import Schema
from mcce.errors import ParameterError
from mcce.protocols import (
    BoolArray,
    Capabilities,
    Codes,
    DrawRequest,
    EncodedRows,
    FloatArray,
    check_count,
    check_flag,
    check_real,
    check_whole,
    uniforms,
)

from ..networks import check_device, import_torch, isolated
from .cells import (
    ColumnCells,
    ColumnModes,
    choose,
    draw_cells,
    learn_cells,
    learn_modes,
    pack_cells,
    pack_modes,
    to_numbers,
    unpack_cells,
    unpack_modes,
)
from .fixed_point import GanLayout, GanNetwork, chunk_rows, normal_noise, one_hot
from .parts import DrawsCells, progress
from .training import GanTraining, train_gan

# Bins of the tables that numbers are drawn from.
N_BINS = 64


class CTGAN(DrawsCells, BaseEstimator):
    """A generator and a critic that train each other. Needs torch to be fitted.

    All mutable features are made at once: where a constraint keeps one as it is, the others do not
    follow. A network of this kind has no likelihood.

    Parameters
    ----------
    n_epochs
        Passes over the training rows; ``"auto"`` makes 300, as published, or fewer for many rows,
        so that there are at most 5,000 training steps.
    batch_size, pack
        The most rows of a training step, and how many of them the critic sees together; the batch
        must be a multiple of the pack. Small data get smaller batches.
    n_noise, n_hidden
        Number of random inputs, and of units of each hidden layer of both networks.
    learning_rate
        Of the training of both networks.
    condition_on_decision
        Whether the decision is an input.
    device
        Where to train: ``"cpu"``, ``"cuda"`` or ``"cuda:0"``. Rows are always drawn on the CPU.

    Attributes
    ----------
    modes_ : list of ColumnModes
        The modes of each column.
    cells_ : list of ColumnCells
        The values of each column that can be drawn.
    network_ : GanNetwork
        The trained generator.
    """

    array_names = ("modes", "cells", "network")
    capabilities = Capabilities(limits=True, saving=True, value_tables=True)

    def __init__(
        self,
        *,
        n_epochs: int | Literal["auto"] = "auto",
        batch_size: int = 500,
        pack: int = 10,
        n_noise: int = 128,
        n_hidden: int = 256,
        learning_rate: float = 2e-4,
        condition_on_decision: bool = True,
        device: str = "cpu",
    ) -> None:
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.pack = pack
        self.n_noise = n_noise
        self.n_hidden = n_hidden
        self.learning_rate = learning_rate
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
        """Train the networks.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Seed of all randomness, ignored, and whether to show a progress bar.

        Returns
        -------
        CTGAN
            Itself.

        Raises
        ------
        MissingExtraError
            If torch is not installed.
        """
        self._check()
        import_torch("CTGAN", self.device)
        schema, modes = rows.schema, learn_modes(rows, seed % 2**32)
        layout = self._layout(schema, modes)
        context = self._context(layout, schema, np.vstack([rows.tree_codes, is_desired]))
        made = [self._units(modes[at], rows, at, seed) for at in schema.mutable.tolist()]
        training = GanTraining(
            self.n_epochs, self.batch_size, self.pack, self.learning_rate, self.device
        )
        n_epochs = training.epochs_of(len(rows))
        with progress(n_epochs, "training CTGAN", verbose) as show, isolated(seed) as torch:
            weights = train_gan(torch, layout, np.hstack(made), context, training, seed, show)
        return self._keep(schema, modes, learn_cells(rows, N_BINS), GanNetwork.fix(layout, weights))

    def to_arrays(self) -> dict[str, Any]:
        """What was learned.

        Returns
        -------
        dict
            The modes of numbers, the cells of columns, and the weights.
        """
        return {
            "modes": pack_modes(self.modes_),
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
        CTGAN
            Itself, as if fitted.
        """
        self._check()
        modes = unpack_modes(arrays["modes"], schema)
        cells = unpack_cells(arrays["cells"], schema)
        network = GanNetwork.from_arrays(self._layout(schema, modes), arrays["network"])
        return self._keep(schema, modes, cells, network)

    def _check(self) -> None:
        if self.n_epochs != "auto":
            check_count("n_epochs", self.n_epochs)
        check_whole("pack", self.pack, 1, 1000)
        check_count("batch_size", self.batch_size)
        if self.batch_size % self.pack:
            raise ParameterError(
                f"batch_size must be a multiple of pack={self.pack!r}, since the critic sees whole "
                f"packs; got {self.batch_size!r}."
            )
        check_whole("n_noise", self.n_noise, 1, 2**13)
        check_whole("n_hidden", self.n_hidden, 1, 2**13)
        rate = self.learning_rate
        check_real("learning_rate", rate, "a number above 0 and up to 1", zero=False, most=1.0)
        check_flag("condition_on_decision", self.condition_on_decision)
        check_device(self.device)

    def _layout(self, schema: Schema, modes: list[ColumnModes]) -> GanLayout:
        context = tuple(modes[position] for position in schema.immutable)
        drawn = tuple(modes[position] for position in schema.mutable)
        return GanLayout(context, drawn, self.condition_on_decision, self.n_noise, self.n_hidden)

    def _context(self, layout: GanLayout, schema: Schema, codes: Codes) -> FloatArray:
        """The inputs for the context, shape (n_rows, n_context)."""
        numbers = [schema.features[at].numbers for at in schema.immutable]
        given = [*codes[schema.immutable], codes[-1]]
        return layout.encode_context(given, numbers, codes.shape[1])

    def _units(
        self, column: ColumnModes, rows: EncodedRows, position: int, seed: int
    ) -> FloatArray:
        """The inputs of the networks for a feature of the training rows, modes drawn at random."""
        u = np.random.default_rng([seed, position]).random(len(rows))
        numbers = rows.schema.features[position].numbers
        mode, place = column.encode(rows.tree_codes[position].astype(np.int64), numbers, u)
        return one_hot(mode, place, column)

    def _keep(
        self,
        schema: Schema,
        modes: list[ColumnModes],
        cells: list[ColumnCells],
        network: GanNetwork,
    ) -> Self:
        """Take what was learned of these columns."""
        self.schema_ = schema
        self.modes_, self.cells_, self.network_ = modes, cells, network
        return self

    def _rows_at_once(self) -> int:
        return chunk_rows(int(self.network_.layout.starts[-1]))

    def _draw(self, request: DrawRequest) -> Codes:
        """Codes of some rows, shape (n_mutable, n_rows)."""
        layout = self.network_.layout
        context = self._context(layout, self.schema_, request.inputs)[request.group]
        # The words of earlier positions are those of the features.
        noise = normal_noise(request.row_keys, 3 * (len(request.given) + 1), self.n_noise)
        outputs = self.network_.outputs(noise, context)
        codes = np.empty((self.schema_.mutable.size, request.group.size), dtype=np.int32)
        for place, position in enumerate(self.schema_.mutable.tolist()):
            units = outputs[:, layout.starts[place] : layout.starts[place + 1]]
            if self.modes_[position].has_place:
                codes[place] = self._draw_number(request, position, units)
            else:
                codes[place] = draw_cells(request, position, self.cells_[position], units)[0]
        return codes

    def _draw_number(self, request: DrawRequest, position: int, units: FloatArray) -> Codes:
        """Codes of a number: a mode by its probability, and the value nearest to its place."""
        column, table = self.modes_[position], self.cells_[position].table
        mode = choose(np.ascontiguousarray(units[:, :-1]), uniforms(request.row_keys, position))
        numbers, missing = column.decode(mode, np.tanh(np.ascontiguousarray(units[:, -1])))
        is_own, numeric = self.cells_[position].is_own, self.schema_.features[position].numbers
        values = to_numbers(table) if is_own or numeric is None else numeric
        known = values[: len(table) - column.has_missing]
        nearest = np.searchsorted(known[1:] / 2 + known[:-1] / 2, numbers)
        codes = np.where(missing, len(table) - 1, nearest).astype(np.int32)
        allowed = request.allowed(position, len(table))
        possible = np.ones(codes.size, dtype=bool)
        if allowed is not None:
            possible = allowed[request.group, codes]
        own, kept = request.kept(position, codes, possible)
        return np.where(kept, own, codes)
