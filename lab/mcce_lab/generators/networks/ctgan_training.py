"""Training of a conditional GAN for tables, with torch.

Xu et al. (2019), with the whole context given to generator and critic: a critic sees packs of rows,
each with its own context, and a penalty keeps its slope at 1 (Gulrajani et al. 2017). The generator
gives the mutable features of rows with the same contexts; modes and levels by the Gumbel softmax.

Always true: all randomness comes from the seed; the same rows and seed give the same weights on the
same machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mcce.errors import ParameterError
from mcce.kernels import FloatArray, check_cancellation

from .ctgan_network import GanLayout

TEMPERATURE, PENALTY, DROPOUT, LEAK = 0.2, 10.0, 0.5, 0.2
BETAS, WEIGHT_DECAY = (0.5, 0.9), 1e-6
# Small data get smaller batches: about so many steps per epoch, of so many packs at least.
LEAST_STEPS, LEAST_PACKS = 10, 5
# As many epochs as published, unless data are large.
MOST_EPOCHS, MOST_STEPS = 300, 5000
EPSILON = 1e-5


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
        wanted = max(n_rows // LEAST_STEPS, LEAST_PACKS * self.pack)
        return max(self.pack, min(self.batch_size, wanted) // self.pack * self.pack)

    def steps_of(self, n_rows: int) -> int:
        """Steps of an epoch."""
        return max(1, n_rows // self.batch_of(n_rows))

    def epochs_of(self, n_rows: int) -> int:
        """Number of epochs."""
        if self.n_epochs == "auto":
            return max(1, min(MOST_EPOCHS, MOST_STEPS // self.steps_of(n_rows)))
        return self.n_epochs


class Generator:
    """The network that makes rows.

    Parameters
    ----------
    torch
        The library.
    layout
        Which units there are.
    random
        A generator of torch's random numbers, on the device.
    """

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
    """The network that tells packs of real rows from packs of made ones.

    Parameters
    ----------
    torch
        The library.
    n_inputs
        Units of a pack.
    n_hidden
        Units of each of the two hidden layers.
    random
        A generator of torch's random numbers, on the device.
    """

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
    """How far the slope of a critic is from 1 between real and made packs, on average.

    Parameters
    ----------
    torch
        The library.
    critic
        From packs to one number each.
    real, made : (n_packs, n_units)
        Packs.
    u : (n_packs, 1)
        Where between the two to look, from 0 to 1.
    """
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
    """The weights of a trained generator, by name.

    Parameters
    ----------
    torch
        The library.
    layout
        Which units there are.
    rows : (n_rows, n_outputs)
        The mutable features of the training rows, a unit per mode and the places.
    context : (n_rows, n_context)
        Their contexts.
    training, seed
        How to train, and the seed of all randomness.
    show
        Called with the number of epochs done.
    """
    random = torch.Generator(device=training.device).manual_seed(seed)
    real, given = (
        torch.tensor(part, dtype=torch.float32, device=training.device) for part in (rows, context)
    )
    generator = Generator(torch, layout, random)
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
        check_cancellation()
    found = generator.folded()
    if not all(np.isfinite(part).all() for part in found.values()):
        raise ParameterError(
            f"The training of CTGAN diverged: learning_rate={training.learning_rate!r} is too "
            "large for these rows. Use a smaller one."
        )
    return found


def _step_critic(
    torch: Any,
    generator: Generator,
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
    generator: Generator,
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
