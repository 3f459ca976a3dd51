"""The auto-encoder of CRUDS: two codes, of which only one may know the decision.

A row is encoded as z, which an adversary must not be able to tell the decision from, and w, which
has another prior for each decision. Klys et al. 2018, conditional subspace VAE.

Always true: the immutable axes of a decoded point are those of its person; networks and adversary
are trained in turn and each with its own gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcce.kernels import BoolArray, FloatArray
from mcce.parameters import check_count

from ..space import Space
from .layout import (
    Layout,
    draw,
    gaussian_kl,
    gaussian_kl_between,
    layers,
)
from .tools import isolated
from .training import Goal, TrainingPlan, train

# Weights of the parts of the loss: error, divergence of z and of w, and what the adversary knows.
ERROR, Z_DIVERGENCE, W_DIVERGENCE, SECRECY, ADVERSARY = 40.0, 0.2, 1.0, 110.0, 100.0


@dataclass(frozen=True)
class SubspaceSettings:
    """The size of the networks, and how they are trained.

    Parameters
    ----------
    hidden
        Width of the only hidden layer of each network.
    n_latent, n_decision
        Numbers in z and in w.
    plan
        How to train.
    """

    hidden: int
    n_latent: int
    n_decision: int
    plan: TrainingPlan

    def check(self) -> None:
        """Raise for a value that cannot work."""
        check_count("hidden", self.hidden)
        check_count("n_latent", self.n_latent)
        check_count("n_decision", self.n_decision)
        self.plan.check()


@dataclass(frozen=True, eq=False)
class SubspaceVAE:
    """A trained auto-encoder with two codes.

    Parameters
    ----------
    layout
        What it reads and writes.
    network
        A torch module with the parts ``z``, ``w``, ``prior``, ``decoder`` and ``adversary``.
    """

    layout: Layout
    network: Any

    @classmethod
    def fit(
        cls,
        space: Space,
        points: FloatArray,
        accepted: BoolArray,
        settings: SubspaceSettings,
        seed: int,
    ) -> SubspaceVAE:
        """Train on points and decisions.

        Parameters
        ----------
        space
            The cube.
        points : (n_train, n_axes)
            Training rows.
        accepted : (n_train,)
            Whether they have the desired decision.
        settings
            Size and training.
        seed
            Of weights, batches and noise.

        Returns
        -------
        SubspaceVAE
        """
        layout = Layout.of(space, settings.plan.device)
        with isolated(seed) as torch:
            untrained = cls(layout, _network(layout, settings).to(layout.device))
            network = untrained.network
            others = list(network.adversary.parameters())
            mine = [p for p in network.parameters() if all(p is not other for other in others)]
            goals = [
                Goal(lambda batch, _: untrained.loss(*batch).sum(), mine),
                Goal(lambda batch, _: untrained.adversary_loss(*batch).sum(), others),
            ]
            decisions = torch.nn.functional.one_hot(torch.tensor(accepted, dtype=torch.int64), 2)
            tensors: Sequence[Any] = [torch.from_numpy(points), decisions]
            return cls(layout, train(network, tensors, goals, settings.plan))

    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code z of each point."""
        return self.network.z(points[:, self.layout.mutable]).chunk(2, dim=1)

    def prior(self, decisions: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code w of decisions, one-hot."""
        return self.network.prior(decisions).chunk(2, dim=1)

    def decode(self, z: Any, w: Any, own: Any) -> Any:
        """Points of codes, with the immutable axes of their people."""
        import torch

        raw = self.network.decoder(torch.cat([z, self.layout.given(own), w], dim=1))
        return self.layout.place(self.layout.write(raw), own)

    def loss(self, points: Any, decisions: Any) -> Any:
        """What the networks but the adversary minimise, by row."""
        import torch

        target = points[:, self.layout.mutable]
        z_mean, z_spread = self.encode(points)
        w_mean, w_spread = self.network.w(torch.cat([target, decisions], dim=1)).chunk(2, dim=1)
        z = draw(z_mean, z_spread)
        decoded = self.decode(z, draw(w_mean, w_spread), points)
        return (
            ERROR * (decoded - points).square().mean(dim=1)
            + Z_DIVERGENCE * gaussian_kl(z_mean, z_spread)
            + W_DIVERGENCE * gaussian_kl_between(w_mean, w_spread, *self.prior(decisions))
            + SECRECY * _known(self.guess(z, points))
        )

    def adversary_loss(self, points: Any, decisions: Any) -> Any:
        """What the adversary minimises, by row."""
        import torch

        z = draw(*self.encode(points)).detach()
        guess = self.guess(z, points)
        return ADVERSARY * torch.nn.functional.binary_cross_entropy(
            guess, decisions.to(guess.dtype), reduction="none"
        ).mean(dim=1)

    def guess(self, z: Any, points: Any) -> Any:
        """What the adversary makes of a code: a probability of each decision."""
        import torch

        return torch.sigmoid(self.network.adversary(torch.cat([z, self.layout.given(points)], 1)))


def _known(guess: Any) -> Any:
    """Minus the entropy of guesses, the mean over decisions, by row."""
    guess = guess.clamp(1e-6, 1 - 1e-6)
    return (guess * guess.log() + (1 - guess) * (1 - guess).log()).mean(dim=1)


def _network(layout: Layout, settings: SubspaceSettings) -> Any:
    """The parts, untrained, each with one hidden layer."""
    import torch

    n_mutable, n_given = len(layout.mutable), len(layout.immutable)
    hidden, n_z, n_w = settings.hidden, settings.n_latent, settings.n_decision
    network: Any = torch.nn.Module()
    network.z = layers([n_mutable, hidden, 2 * n_z])
    network.w = layers([n_mutable + 2, hidden, 2 * n_w])
    network.prior = layers([2, hidden, 2 * n_w])
    network.decoder = layers([n_z + n_given + n_w, hidden, n_mutable])
    network.adversary = layers([n_z + n_given, hidden, 2])
    return network
