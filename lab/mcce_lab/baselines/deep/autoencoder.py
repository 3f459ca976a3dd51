"""The auto-encoder of CEM: what it cannot reproduce is unlike the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcce.kernels import FloatArray

from ..space import Space
from .layout import layers
from .tools import isolated
from .training import Goal, TrainingPlan, train
from .vae import check_hidden


@dataclass(frozen=True)
class AutoEncoderSettings:
    """The size of an auto-encoder, and how it is trained.

    Parameters
    ----------
    hidden
        Widths of the encoder's layers, the last being the code; the decoder repeats the others.
    plan
        How to train.
    """

    hidden: Sequence[int]
    plan: TrainingPlan

    def check(self) -> None:
        """Raise for a value that cannot work."""
        check_hidden("hidden", self.hidden)
        self.plan.check()


@dataclass(frozen=True, eq=False)
class AutoEncoder:
    """A trained auto-encoder of all axes.

    Parameters
    ----------
    network
        A torch module from points to points.
    """

    network: Any

    @classmethod
    def fit(
        cls, space: Space, points: FloatArray, settings: AutoEncoderSettings, seed: int
    ) -> AutoEncoder:
        """Train on points of shape (n_train, n_axes), with the squared error."""
        with isolated(seed) as torch:
            hidden, n_axes = list(settings.hidden), space.n_axes
            inner = layers([n_axes, *hidden, *hidden[:-1], n_axes])
            network = torch.nn.Sequential(inner, torch.nn.Sigmoid()).to(settings.plan.device)

            def loss(batch: Sequence[Any], _: int) -> Any:
                return (network(batch[0]) - batch[0]).square().sum()

            goal = Goal(loss, list(network.parameters()))
            return cls(train(network, [torch.from_numpy(points)], [goal], settings.plan))

    def reproduce(self, points: Any) -> Any:
        """What the auto-encoder makes of points."""
        return self.network(points)
