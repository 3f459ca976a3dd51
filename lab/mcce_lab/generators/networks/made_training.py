"""Training of a masked autoregressive network, with torch.

The loss is the sum of the cross-entropies of all features; Adam, dropout, and an end when the
likelihood of held-out rows has not risen for a while. The weights kept are the best ones.

Always true: all randomness comes from the seed; the same rows and seed give the same weights on the
same machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.kernels import FloatArray, IntArray, check_cancellation

from .autoregression import WEIGHTS, Layout

HELDOUT_SHARE, PATIENCE = 0.1, 10
# Small data get smaller batches, or an epoch would hardly move the weights.
LEAST_STEPS, LEAST_BATCH = 50, 32
# Held-out rows are scored so many at a time.
SCORED_AT_ONCE = 4096


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Parameters
    ----------
    n_epochs
        The most passes over the rows.
    batch_size
        The most rows of a step.
    learning_rate
        Of Adam.
    dropout
        Share of the hidden units that are left out of a step.
    device
        Where to train.
    """

    n_epochs: int
    batch_size: int
    learning_rate: float
    dropout: float
    device: str


class MaskedNetwork:
    """The network as torch tensors: inputs are 0 or 1, outputs are logits.

    Parameters
    ----------
    torch
        The library.
    layout
        Which units there are.
    random
        A generator of torch's random numbers, on the device.
    """

    def __init__(self, torch: Any, layout: Layout, random: Any) -> None:
        self.torch, self.layout, self.random = torch, layout, random
        device = random.device
        self.masks = [torch.tensor(mask, device=device).float() for mask in layout.masks()]
        self.weights: dict[str, Any] = {}
        for name, shape in layout.shapes().items():
            values = torch.zeros(shape, device=device)
            if len(shape) == 2:
                # About as many inputs are active as there are columns.
                n_active = len(layout.context) + len(layout.drawn) if name == "into" else shape[0]
                width = (3.0 / max(n_active, 1)) ** 0.5
                values.uniform_(-width, width, generator=random)
            self.weights[name] = values.requires_grad_()

    def logits(self, inputs: Any, dropout: float = 0.0) -> Any:
        """Logits of all cells that are drawn, shape (n_rows, n_outputs)."""
        into, middle, out = self.masks
        w = self.weights
        hidden = self._drop(inputs @ (w["into"] * into) + w["into_bias"], dropout)
        hidden = self._drop(hidden @ (w["middle"] * middle) + w["middle_bias"], dropout)
        return hidden @ (w["out"] * out) + w["out_bias"]

    def loss(self, cells: Any, dropout: float = 0.0) -> Any:
        """Mean over rows of minus the log-likelihood of all features.

        Parameters
        ----------
        cells : (n_rows, n_columns)
            Cells of the context and of what is drawn, as numbers of input units.
        dropout
            Share of the hidden units to leave out.
        """
        torch, layout = self.torch, self.layout
        inputs = torch.zeros((len(cells), int(layout.offsets[-1])), device=cells.device)
        inputs.scatter_(1, cells, 1.0)
        logits = self.logits(inputs, dropout)
        total = torch.zeros((), device=cells.device)
        for feature in range(len(layout.drawn)):
            units = logits[:, layout.outputs[feature] : layout.outputs[feature + 1]]
            column = len(layout.context) + feature
            wanted = cells[:, column] - int(layout.offsets[column])
            total = total + torch.nn.functional.cross_entropy(units, wanted)
        return total

    def _drop(self, values: Any, dropout: float) -> Any:
        positive = values.relu()
        if not dropout:
            return positive
        random = self.torch.rand(values.shape, generator=self.random, device=values.device)
        return positive * (random >= dropout) / (1.0 - dropout)


def train_network(
    torch: Any,
    layout: Layout,
    cells: IntArray,
    training: Training,
    seed: int,
    show: Callable[[int], None],
) -> dict[str, FloatArray]:
    """The weights of a trained network, by name.

    Parameters
    ----------
    torch
        The library.
    layout
        Which units there are.
    cells : (n_columns, n_rows)
        Cells of the context and of what is drawn, counted within their columns.
    training, seed
        How to train, and the seed of all randomness.
    show
        Called with the number of epochs done.
    """
    random = torch.Generator(device=training.device).manual_seed(seed)
    network = MaskedNetwork(torch, layout, random)
    units = torch.tensor(cells.T + layout.offsets[:-1], device=training.device)
    order = torch.randperm(len(units), generator=random, device=training.device)
    n_heldout = int(len(units) * HELDOUT_SHARE)
    # Of a few rows none can be spared.
    kept = units[order[n_heldout:]]
    heldout = units[order[:n_heldout]] if n_heldout else kept
    _start_at_shares(torch, network, kept)
    optimizer = torch.optim.Adam(list(network.weights.values()), lr=training.learning_rate)
    best, lowest, idle = _copy(network), _score(torch, network, heldout), 0
    for epoch in range(training.n_epochs):
        _train_epoch(torch, network, kept, optimizer, training)
        reached = _score(torch, network, heldout)
        idle += 1
        if reached < lowest:
            best, lowest, idle = _copy(network), reached, 0
        show(epoch + 1)
        check_cancellation()
        if idle >= PATIENCE:
            break
    return best


def _start_at_shares(torch: Any, network: MaskedNetwork, units: Any) -> None:
    """Let the output of a network without weights be how frequent each cell is."""
    layout = network.layout
    counts = torch.bincount(units.ravel(), minlength=int(layout.offsets[-1])) + 1.0
    first = int(layout.offsets[len(layout.context)])
    with torch.no_grad():
        network.weights["out_bias"] += counts[first:].log() - float(np.log(len(units)))


def _train_epoch(
    torch: Any, network: MaskedNetwork, units: Any, optimizer: Any, training: Training
) -> None:
    """One pass over the rows."""
    n_rows = len(units)
    batch_size = min(training.batch_size, max(LEAST_BATCH, n_rows // LEAST_STEPS))
    order = torch.randperm(n_rows, generator=network.random, device=units.device)
    for start in range(0, n_rows, batch_size):
        optimizer.zero_grad()
        batch = units[order[start : start + batch_size]]
        network.loss(batch, training.dropout).backward()
        optimizer.step()


def _score(torch: Any, network: MaskedNetwork, units: Any) -> float:
    """Mean loss of rows that are not trained on."""
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(units), SCORED_AT_ONCE):
            some = units[start : start + SCORED_AT_ONCE]
            total += float(network.loss(some)) * len(some)
    return total / max(1, len(units))


def _copy(network: MaskedNetwork) -> dict[str, FloatArray]:
    return {name: network.weights[name].detach().cpu().double().numpy().copy() for name in WEIGHTS}
