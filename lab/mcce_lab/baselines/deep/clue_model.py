"""The auto-encoder of CLUE: narrow residual networks with batch normalisation.

Always true: the immutable axes of a decoded point are those of its person; the same rows and seed
give the same network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcce.kernels import FloatArray
from mcce.parameters import check_count

from ..space import Space
from .layout import Layout, gaussian_kl, noise_like
from .tools import isolated
from .training import Goal, TrainingPlan, train

# The least standard deviation of a code.
LEAST_SCALE = 1e-3


@dataclass(frozen=True)
class ResidualSettings:
    """The size of the networks, and how they are trained.

    Parameters
    ----------
    width, depth
        Width of the layers, and their number in encoder and decoder.
    n_latent
        Numbers in a code.
    plan
        How to train.
    """

    width: int
    depth: int
    n_latent: int
    plan: TrainingPlan

    def check(self) -> None:
        """Raise for a value that cannot work."""
        check_count("width", self.width)
        check_count("depth", self.depth, least=2)
        check_count("n_latent", self.n_latent)
        self.plan.check()


@dataclass(frozen=True, eq=False)
class ResidualVAE:
    """A trained auto-encoder.

    Parameters
    ----------
    layout
        What it reads and writes.
    network
        A torch module with the parts ``encoder``, ``decoder`` and ``scales``.
    """

    layout: Layout
    network: Any

    @classmethod
    def fit(
        cls, space: Space, points: FloatArray, settings: ResidualSettings, seed: int
    ) -> ResidualVAE:
        """Train on points of shape (n_train, n_axes)."""
        layout = Layout.of(space, settings.plan.device)
        with isolated(seed) as torch:
            untrained = cls(layout, _network(layout, settings).to(layout.device))

            def loss(batch: Sequence[Any], _: int) -> Any:
                return untrained.loss(batch[0]).sum()

            goal = Goal(loss, list(untrained.network.parameters()))
            tensors = [torch.from_numpy(points)]
            return cls(layout, train(untrained.network, tensors, [goal], settings.plan))

    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and standard deviation of the code of each point."""
        import torch

        given = points[:, self.layout.mutable]
        mean, scale = _apply(self.network.encoder, given).chunk(2, dim=1)
        return mean, torch.nn.functional.softplus(scale).clamp(min=LEAST_SCALE)

    def decode(self, codes: Any, own: Any) -> Any:
        """Points of codes, with the immutable axes of their people."""
        return self.layout.place(self.layout.write(self._raw(codes, own)), own)

    def loss(self, points: Any) -> Any:
        """Minus the evidence lower bound of each point."""
        mean, scale = self.encode(points)
        raw = self._raw(mean + noise_like(mean) * scale, points)
        target = points[:, self.layout.mutable]
        surprise = self.layout.surprise(raw, target, self.network.scales)
        return surprise + gaussian_kl(mean, 2 * scale.log())

    def _raw(self, codes: Any, own: Any) -> Any:
        import torch

        given = torch.cat([codes, self.layout.given(own)], dim=1)
        return _apply(self.network.decoder, given)


def _network(layout: Layout, settings: ResidualSettings) -> Any:
    """The parts, untrained, and the log-scales of numbers."""
    import torch

    width, n_mutable, n_latent = settings.width, len(layout.mutable), settings.n_latent
    n_blocks = settings.depth - 1
    network: Any = torch.nn.Module()
    last = torch.nn.Sequential(*_normalised(width), torch.nn.Linear(width, 2 * n_latent))
    network.encoder = _parts(torch.nn.Linear(n_mutable, width), n_blocks, width, last)
    linear = torch.nn.Linear(n_latent + len(layout.immutable), width)
    first = torch.nn.Sequential(linear, *_normalised(width))
    network.decoder = _parts(first, n_blocks, width, torch.nn.Linear(width, n_mutable))
    network.scales = torch.nn.Parameter(torch.full((n_mutable,), -2.0))
    return network


def _parts(first: Any, n_blocks: int, width: int, last: Any) -> Any:
    """A first layer, blocks that add to their input, and a last layer."""
    import torch

    blocks = [
        torch.nn.Sequential(*_normalised(width), torch.nn.Linear(width, width))
        for _ in range(n_blocks)
    ]
    return torch.nn.ModuleList([first, *blocks, last])


def _normalised(width: int) -> list[Any]:
    import torch

    return [torch.nn.LeakyReLU(0.01), torch.nn.BatchNorm1d(width)]


def _apply(parts: Any, given: Any) -> Any:
    first, *blocks, last = parts
    hidden = first(given)
    for block in blocks:
        hidden = hidden + block(hidden)
    return last(hidden)
