"""The conditional variational auto-encoder of C-CHVAE and REViSE.

It encodes the mutable axes of a row in a few numbers and decodes them given the immutable ones.

Always true: the immutable axes of a decoded point are those of its person, bit by bit; the same
rows and seed give the same network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcce.errors import ParameterError, shorten
from mcce.kernels import FloatArray
from mcce.parameters import check_count, check_real

from ..space import Space
from .layout import (
    Layout,
    draw,
    gaussian_kl,
    layers,
)
from .tools import isolated
from .training import Goal, TrainingPlan, train


@dataclass(frozen=True)
class VAESettings:
    """The size of an auto-encoder, and how it is trained.

    Parameters
    ----------
    hidden
        Widths of the encoder's hidden layers; the decoder has them in reverse.
    n_latent
        Numbers in a code.
    kl_weight
        Weight of the divergence from the prior; it grows to this over ``n_warmup`` epochs.
    plan
        How to train.
    n_warmup
        Epochs until the divergence has its full weight.
    """

    hidden: Sequence[int]
    n_latent: int
    kl_weight: float
    plan: TrainingPlan
    n_warmup: int = 5

    def check(self) -> None:
        """Raise for a value that cannot work."""
        check_hidden("hidden", self.hidden)
        check_count("n_latent", self.n_latent)
        check_real("kl_weight", self.kl_weight, "a number of at least 0")
        self.plan.check()


@dataclass(frozen=True, eq=False)
class ConditionalVAE:
    """A trained auto-encoder.

    Parameters
    ----------
    layout
        What it reads and writes.
    network
        A torch module with the parts ``trunk``, ``mean``, ``log_variance``, ``decoder`` and
        ``scales``.
    """

    layout: Layout
    network: Any

    @classmethod
    def fit(
        cls, space: Space, points: FloatArray, settings: VAESettings, seed: int
    ) -> ConditionalVAE:
        """Train on points.

        Parameters
        ----------
        space
            The cube.
        points : (n_train, n_axes)
            Training rows.
        settings
            Size and training.
        seed
            Of weights, batches and noise.

        Returns
        -------
        ConditionalVAE
        """
        layout = Layout.of(space, settings.plan.device)
        with isolated(seed) as torch:
            untrained = cls(layout, _network(layout, settings).to(layout.device))

            def loss(batch: Sequence[Any], epoch: int) -> Any:
                weight = settings.kl_weight * min(1.0, epoch / max(settings.n_warmup, 1))
                return untrained.loss(batch[0], weight).sum()

            goal = Goal(loss, list(untrained.network.parameters()))
            tensors = [torch.from_numpy(points)]
            return cls(layout, train(untrained.network, tensors, [goal], settings.plan))

    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code of each point."""
        hidden = self.network.trunk(points[:, self.layout.mutable])
        return self.network.mean(hidden), self.network.log_variance(hidden)

    def decode(self, codes: Any, own: Any) -> Any:
        """Points of codes, with the immutable axes of their people."""
        return self.layout.place(self.layout.write(self._raw(codes, own)), own)

    def loss(self, points: Any, kl_weight: float) -> Any:
        """Minus the evidence lower bound of each point, with a weight of the divergence."""
        mean, log_variance = self.encode(points)
        raw = self._raw(draw(mean, log_variance), points)
        surprise = self.layout.surprise(raw, points[:, self.layout.mutable], self.network.scales)
        return surprise + kl_weight * gaussian_kl(mean, log_variance)

    def _raw(self, codes: Any, own: Any) -> Any:
        import torch

        return self.network.decoder(torch.cat([codes, self.layout.given(own)], dim=1))


def check_hidden(name: str, widths: Any) -> None:
    """Raise unless a parameter lists the widths of hidden layers."""
    if not isinstance(widths, (list, tuple)) or not widths:
        raise ParameterError(
            f"{name} must list the widths of hidden layers, e.g. (128, 64), got {shorten(widths)}."
        )
    for width in widths:
        check_count(f"each of {name}", width)


def _network(layout: Layout, settings: VAESettings) -> Any:
    """The parts, untrained, and the log-scales of numbers."""
    import torch

    hidden, n_latent = list(settings.hidden), settings.n_latent
    network: Any = torch.nn.Module()
    network.trunk = torch.nn.Sequential(layers([len(layout.mutable), *hidden]), torch.nn.ReLU())
    network.mean = torch.nn.Linear(hidden[-1], n_latent)
    network.log_variance = torch.nn.Linear(hidden[-1], n_latent)
    sizes = [n_latent + len(layout.immutable), *hidden[::-1], len(layout.mutable)]
    network.decoder = layers(sizes)
    network.scales = torch.nn.Parameter(torch.full((len(layout.mutable),), -2.0))
    return network
