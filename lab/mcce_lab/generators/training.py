"""Training of the networks, with torch.

MADE: the loss is the sum of the cross-entropies of all features; Adam, dropout, and an end when the
likelihood of held-out rows has not risen for a while. The weights kept are the best ones.

CTGAN: Xu et al. (2019), with the whole context given to generator and critic: a critic sees packs
of rows, each with its own context, and a penalty keeps its slope at 1 (Gulrajani et al. 2017). The
generator gives the mutable features of rows with the same contexts; modes and levels by the Gumbel
softmax.

Always true: all randomness comes from the seed; the same rows and seed give the same weights on the
same machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mcce.errors import ParameterError
from mcce.protocols import FloatArray, IntArray

from .fixed_point import WEIGHTS, GanLayout, Layout

HELDOUT_SHARE, PATIENCE = 0.1, 10
# Small data get smaller batches, or an epoch would hardly move the weights.
MADE_STEPS, MIN_BATCH = 50, 32
# Held-out rows scored at a time.
SCORED_AT_ONCE = 4096
# Of a GAN.
TEMPERATURE, PENALTY, DROPOUT, LEAK = 0.2, 10.0, 0.5, 0.2
BETAS, WEIGHT_DECAY = (0.5, 0.9), 1e-6
# Small data get smaller batches: about as many steps per epoch, each of a least number of packs.
GAN_STEPS, MIN_PACKS = 10, 5
# As many epochs as published, unless data are large.
MAX_EPOCHS, MAX_STEPS = 300, 5000
EPSILON = 1e-5


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
    """The network as torch tensors: inputs are 0 or 1, outputs are logits."""

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
        """Mean over rows of minus the log-likelihood of all features."""
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
    """The weights of a trained network, by name."""
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
    batch_size = min(training.batch_size, max(MIN_BATCH, n_rows // MADE_STEPS))
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


@dataclass(frozen=True)
class GanTraining:
    """How a network is trained.

    Parameters
    ----------
    n_epochs
        Passes over the rows, or ``"auto"``.
    batch_size, pack
        The most rows of a step, and how many of them the critic sees together.
    learning_rate
        Of Adam, for both networks.
    device
        Where to train.
    """

    n_epochs: int | Literal["auto"]
    batch_size: int
    pack: int
    learning_rate: float
    device: str

    def batch_of(self, n_rows: int) -> int:
        """Rows of a step, a multiple of the pack."""
        wanted = max(n_rows // GAN_STEPS, MIN_PACKS * self.pack)
        return max(self.pack, min(self.batch_size, wanted) // self.pack * self.pack)

    def steps_of(self, n_rows: int) -> int:
        """Steps of an epoch."""
        return max(1, n_rows // self.batch_of(n_rows))

    def epochs_of(self, n_rows: int) -> int:
        """Number of epochs."""
        if self.n_epochs == "auto":
            return max(1, min(MAX_EPOCHS, MAX_STEPS // self.steps_of(n_rows)))
        return self.n_epochs


class GeneratorNetwork:
    """The network that makes rows."""

    def __init__(self, torch: Any, layout: GanLayout, random: Any) -> None:
        self.torch, self.layout, self.random = torch, layout, random
        self.weights: dict[str, Any] = {}
        for name, shape in layout.shapes().items():
            # Weights and biases alike start within the root of the number of inputs.
            n_inputs = layout.shapes()[name.replace("bias", "weights")][0]
            self.weights[name] = _start(torch, shape, n_inputs, random)
        ones, zeros = (torch.full((layout.n_hidden,), v, device=random.device) for v in (1.0, 0.0))
        for layer in range(2):
            self.weights[f"scale_{layer}"] = ones.clone().requires_grad_()
            self.weights[f"shift_{layer}"] = zeros.clone().requires_grad_()
        self.means, self.variances = ([v.clone(), v.clone()] for v in (zeros, ones))

    def rows(self, context: Any) -> Any:
        """Rows with some contexts, with a unit per mode and the places."""
        torch, layout = self.torch, self.layout
        shape = (len(context), layout.n_noise)
        noise = torch.randn(shape, generator=self.random, device=context.device)
        inputs = torch.cat([noise, context], dim=1)
        for layer in range(2):
            inputs = torch.cat([self._hidden(inputs, layer).relu(), inputs], dim=1)
        return self._activate(inputs @ self.weights["weights_2"] + self.weights["bias_2"])

    def folded(self) -> dict[str, FloatArray]:
        """The weights with the batch normalisation as part of them."""
        found = {n: self._array(self.weights[n]) for n in self.layout.shapes()}
        for layer in range(2):
            mean, variance, scale, shift = (
                self._array(part)
                for part in (
                    self.means[layer],
                    self.variances[layer],
                    self.weights[f"scale_{layer}"],
                    self.weights[f"shift_{layer}"],
                )
            )
            factor = scale / np.sqrt(variance + EPSILON)
            found[f"weights_{layer}"] *= factor
            found[f"bias_{layer}"] = (found[f"bias_{layer}"] - mean) * factor + shift
        return found

    def _hidden(self, inputs: Any, layer: int) -> Any:
        """The output of a layer, normalised over the batch."""
        w = self.weights
        values = inputs @ w[f"weights_{layer}"] + w[f"bias_{layer}"]
        mean, variance = values.mean(dim=0), values.var(dim=0, unbiased=False)
        # A slow average stands for all batches when rows are drawn.
        self.means[layer] = 0.9 * self.means[layer] + 0.1 * mean.detach()
        self.variances[layer] = 0.9 * self.variances[layer] + 0.1 * variance.detach()
        scaled = (values - mean) / (variance + EPSILON).sqrt()
        return scaled * w[f"scale_{layer}"] + w[f"shift_{layer}"]

    def _activate(self, outputs: Any) -> Any:
        torch, starts = self.torch, self.layout.starts
        uniform = torch.rand(outputs.shape, generator=self.random, device=outputs.device)
        gumbel = -(-(uniform.clamp(1e-20, 1 - 1e-7)).log()).log()
        parts = []
        for column, first in zip(self.layout.drawn, starts.tolist(), strict=False):
            end = first + column.n_units
            noisy = (outputs[:, first:end] + gumbel[:, first:end]) / TEMPERATURE
            parts.append(noisy.softmax(dim=1))
            if column.has_place:
                parts.append(outputs[:, end : end + 1].tanh())
        return torch.cat(parts, dim=1)

    def _array(self, values: Any) -> FloatArray:
        array: FloatArray = values.detach().cpu().double().numpy().copy()
        return array


class Critic:
    """The network that tells packs of real rows from packs of made ones."""

    def __init__(self, torch: Any, n_inputs: int, n_hidden: int, random: Any) -> None:
        self.torch, self.random = torch, random
        self.weights: list[Any] = []
        for n_in, n_out in ((n_inputs, n_hidden), (n_hidden, n_hidden), (n_hidden, 1)):
            self.weights.append(_start(torch, (n_in, n_out), n_in, random))
            self.weights.append(_start(torch, (n_out,), n_in, random))

    def __call__(self, packs: Any) -> Any:
        """How real each pack looks, shape (n_packs, 1)."""
        values = packs
        for layer in (0, 2):
            values = values @ self.weights[layer] + self.weights[layer + 1]
            values = self.torch.nn.functional.leaky_relu(values, LEAK)
            kept = self.torch.rand(values.shape, generator=self.random, device=values.device)
            values = values * (kept >= DROPOUT) / (1.0 - DROPOUT)
        return values @ self.weights[4] + self.weights[5]


def slope_penalty(torch: Any, critic: Callable[[Any], Any], real: Any, made: Any, u: Any) -> Any:
    """How far the slope of a critic is from 1 between real and made packs, on average."""
    between = (u * real + (1 - u) * made).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slopes.norm(dim=1) - 1) ** 2).mean()


def train_gan(
    torch: Any,
    layout: GanLayout,
    rows: FloatArray,
    context: FloatArray,
    training: GanTraining,
    seed: int,
    show: Callable[[int], None],
) -> dict[str, FloatArray]:
    """The weights of a trained generator, by name."""
    random = torch.Generator(device=training.device).manual_seed(seed)
    real, given = (
        torch.tensor(part, dtype=torch.float32, device=training.device) for part in (rows, context)
    )
    generator = GeneratorNetwork(torch, layout, random)
    n_units = training.pack * (real.shape[1] + given.shape[1])
    critic = Critic(torch, n_units, layout.n_hidden, random)
    both = [list(generator.weights.values()), critic.weights]
    optimizers = [
        torch.optim.Adam(part, lr=training.learning_rate, betas=BETAS, weight_decay=WEIGHT_DECAY)
        for part in both
    ]
    batch = training.batch_of(len(real))
    for epoch in range(training.epochs_of(len(real))):
        for _ in range(training.steps_of(len(real))):
            at = torch.randint(len(real), (batch,), generator=random, device=real.device)
            _step_critic(torch, generator, critic, real[at], given[at], training, optimizers[1])
            at = torch.randint(len(real), (batch,), generator=random, device=real.device)
            _step_generator(torch, generator, critic, given[at], training, optimizers[0])
        show(epoch + 1)
    found = generator.folded()
    if not all(np.isfinite(part).all() for part in found.values()):
        raise ParameterError(
            f"The training of CTGAN diverged: learning_rate={training.learning_rate!r} is too "
            "large for these rows. Use a smaller one."
        )
    return found


def _step_critic(
    torch: Any,
    generator: GeneratorNetwork,
    critic: Critic,
    real: Any,
    context: Any,
    training: GanTraining,
    optimizer: Any,
) -> None:
    """Teach the critic on as many real rows as made ones, with the same contexts."""
    with torch.no_grad():
        made = generator.rows(context)
    real_packs, made_packs = (
        torch.cat([part, context], dim=1).reshape(len(real) // training.pack, -1)
        for part in (real, made)
    )
    u = torch.rand((len(real_packs), 1), generator=generator.random, device=real.device)
    loss = critic(made_packs).mean() - critic(real_packs).mean()
    loss = loss + PENALTY * slope_penalty(torch, critic, real_packs, made_packs, u)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _step_generator(
    torch: Any,
    generator: GeneratorNetwork,
    critic: Critic,
    context: Any,
    training: GanTraining,
    optimizer: Any,
) -> None:
    """Teach the generator to make rows that the critic takes for real."""
    made = torch.cat([generator.rows(context), context], dim=1)
    loss = -critic(made.reshape(len(context) // training.pack, -1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _start(torch: Any, shape: tuple[int, ...], n_inputs: int, random: Any) -> Any:
    """Weights at the start of training, uniform around 0."""
    width = max(n_inputs, 1) ** -0.5
    values = torch.empty(shape, device=random.device).uniform_(-width, width, generator=random)
    return values.requires_grad_()
