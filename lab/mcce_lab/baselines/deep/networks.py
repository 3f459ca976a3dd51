"""Networks of the methods of this package: blocks of rows, training, and auto-encoders.

What a network reads and writes are the mutable axes of the cube, given the immutable ones.
Features have different numbers of levels; they are the rows of one matrix, filled up with minus
infinity, so that a step takes as long for fifty features as for one.

Always true: a row's numbers depend neither on the other rows of its block nor on its place in it;
what a network writes is a point of the cube.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np

from mcce.protocols import FloatArray, IntArray

from ...networks import Goal, isolated, train
from ...parameters import Count, Device, Seed, TwoOrMore
from ..space import Space

# Kernels treat the rows at the end of a matrix differently unless their number is a round one.
ROWS_PER_BLOCK = 256
# Values that a descent moves are kept on a grid, so that rounding errors do not add up.
GRID = 2.0**20
# Why people without all numbers have no answer.
INCOMPLETE = "a number is missing, and the method moves through complete numbers"


def snap(values: Any) -> Any:
    """A tensor on the grid."""
    return (values * GRID).round() / GRID


def in_blocks(function: Callable[..., Any], *tensors: Any) -> Any:
    """The output of a function that treats rows alike, called with blocks of one size."""
    import torch

    all_rows = torch.arange(len(tensors[0]), device=tensors[0].device)
    outputs = [function(*(tensor[filled] for tensor in tensors)) for _, filled in blocks(all_rows)]
    return torch.cat(outputs)[: len(all_rows)]


def blocks(places: Any) -> Iterator[tuple[Any, Any]]:
    """Places in blocks, each as it is and filled up to one size with copies of its last place."""
    import torch

    for start in range(0, len(places), ROWS_PER_BLOCK):
        block = places[start : start + ROWS_PER_BLOCK]
        filled = torch.arange(ROWS_PER_BLOCK, device=places.device).clamp(max=len(block) - 1)
        yield block, block[filled]


# Keeps quotients finite.
EPSILON = 1e-8


class Stepper(Protocol):
    """A rule that moves numbers against their gradient."""

    @property
    def n_memories(self) -> int:
        """Number of tensors that it remembers, each of the shape of the numbers, first zeros."""

    def step(self, gradient: Any, memories: list[Any], time: int) -> tuple[Any, list[Any]]:
        """How far to move."""


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba 2015; with ``amsgrad``, steps never grow again."""

    rate: float
    amsgrad: bool = False

    @property
    def n_memories(self) -> int:
        """Two moments, and the largest second one."""
        return 3 if self.amsgrad else 2

    def step(self, gradient: Any, memories: list[Any], time: int) -> tuple[Any, list[Any]]:
        """How far to move; see :class:`Stepper`."""
        first = 0.9 * memories[0] + 0.1 * gradient
        second = 0.999 * memories[1] + 0.001 * gradient.square()
        kept = [first, second]
        if self.amsgrad:
            second = second.maximum(memories[2])
            kept.append(second)
        size = (second / (1 - 0.999**time)).sqrt() + EPSILON
        return -self.rate / (1 - 0.9**time) * first / size, kept


@dataclass(frozen=True)
class RMSprop:
    """Tieleman and Hinton 2012."""

    rate: float

    @property
    def n_memories(self) -> int:
        """The second moment."""
        return 1

    def step(self, gradient: Any, memories: list[Any], time: int) -> tuple[Any, list[Any]]:
        """How far to move; see :class:`Stepper`."""
        second = 0.99 * memories[0] + 0.01 * gradient.square()
        return -self.rate * gradient / (second.sqrt() + EPSILON), [second]


@dataclass(eq=False, repr=False, kw_only=True)
class Trained:
    """Parameters of methods that train networks, with Adam."""

    n_epochs: Count = 50
    batch_size: TwoOrMore = 512
    early_stopping: bool = True
    random_state: Seed = 0
    device: Device = "cpu"


@dataclass(frozen=True, eq=False)
class Groups:
    """The axes of each feature with levels."""

    axes: Any
    slots: Any

    @classmethod
    def of(cls, groups: Sequence[IntArray], n_axes: int, device: Any) -> Groups:
        """The groups of some axes, on a device."""
        import torch

        n_levels = max((group.size for group in groups), default=1)
        axes = np.full((len(groups), n_levels), n_axes)
        slots = np.full(n_axes, axes.size)
        for row, group in enumerate(groups):
            axes[row, : group.size] = group
            slots[group] = row * n_levels + np.arange(group.size)
        return cls(torch.as_tensor(axes, device=device), torch.as_tensor(slots, device=device))

    def largest(self, points: Any) -> Any:
        """1 for the largest level of each feature, the first of several; 0 for all others."""
        import torch

        best = self._gather(points).argmax(dim=2, keepdim=True)
        levels = torch.arange(self.axes.shape[1], device=points.device)
        return self._scatter((best == levels).to(points.dtype))

    def softmax(self, points: Any) -> Any:
        """Shares of the levels of each feature; 0 for numbers."""
        import torch

        return self._scatter(torch.softmax(self._gather(points), dim=2))

    def log_softmax(self, points: Any) -> Any:
        """Logarithms of the shares; 0 for numbers."""
        import torch

        return self._scatter(torch.log_softmax(self._gather(points), dim=2))

    def _gather(self, points: Any) -> Any:
        import torch

        filled = torch.nn.functional.pad(points, (0, 1), value=-torch.inf)
        gathered = filled.index_select(1, self.axes.reshape(-1))
        return gathered.reshape(len(points), *self.axes.shape)

    def _scatter(self, gathered: Any) -> Any:
        import torch

        filled = torch.nn.functional.pad(gathered.reshape(len(gathered), -1), (0, 1))
        return filled.index_select(1, self.slots)


# The least standard deviation of a number, as a share of its range: zeros alone would be infinitely
# likely otherwise.
MIN_SCALE = 0.01


@dataclass(frozen=True, eq=False)
class Layout:
    """The axes of a cube as a network sees them."""

    mutable: Any
    immutable: Any
    number: Any
    levels: Groups

    @classmethod
    def of(cls, space: Space, device: str) -> Layout:
        """The layout of a cube, on a device."""
        import torch

        mutable = np.flatnonzero(space.is_mutable)
        place = {int(axis): at for at, axis in enumerate(mutable)}
        groups = [axes for axes in space.groups if int(axes[0]) in place]
        places = [np.array([place[int(axis)] for axis in axes]) for axes in groups]
        columns = mutable, np.flatnonzero(~space.is_mutable), space.is_number[mutable]
        written, given, number = (torch.as_tensor(column, device=device) for column in columns)
        return cls(written, given, number, Groups.of(places, mutable.size, device))

    @property
    def device(self) -> Any:
        """Where points are read and written."""
        return self.number.device

    def given(self, points: Any) -> Any:
        """The immutable axes of points, in [0, 1] as in training."""
        return points[:, self.immutable].clamp(0.0, 1.0)

    def write(self, raw: Any) -> Any:
        """The output of a network, as points of the mutable axes."""
        import torch

        return torch.where(self.number, torch.sigmoid(raw), self.levels.softmax(raw))

    def place(self, written: Any, own: Any) -> Any:
        """Points with written mutable axes and the immutable ones of their people."""
        return own.index_copy(1, self.mutable, written)

    def surprise(self, raw: Any, target: Any, log_scale: Any) -> Any:
        """Minus the log-likelihood of rows, up to a constant."""
        import torch

        scale = log_scale.clamp(min=float(np.log(MIN_SCALE)))
        gap = (torch.sigmoid(raw) - target) * torch.exp(-scale)
        number = 0.5 * gap.square() + scale
        level = -self.levels.log_softmax(raw) * target
        return torch.where(self.number, number, level).sum(dim=1)


def layers(sizes: Sequence[int]) -> Any:
    """Linear layers with ReLU between them."""
    import torch

    parts: list[Any] = []
    for before, after in pairwise(sizes):
        parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


def gaussian_kl(mean: Any, log_variance: Any) -> Any:
    """Kullback-Leibler divergence of a diagonal Gaussian from the standard one, by row."""
    return 0.5 * (log_variance.exp() + mean.square() - 1 - log_variance).sum(dim=1)


def gaussian_kl_between(mean: Any, log_variance: Any, to_mean: Any, to_log_variance: Any) -> Any:
    """Kullback-Leibler divergence of a diagonal Gaussian from another, by row."""
    ratio = (log_variance - to_log_variance).exp()
    apart = (mean - to_mean).square() / to_log_variance.exp()
    return 0.5 * (ratio + apart - 1 - log_variance + to_log_variance).sum(dim=1)


def draw(mean: Any, log_variance: Any) -> Any:
    """A draw of each Gaussian, differentiable in its parameters."""
    return mean + noise_like(mean) * (0.5 * log_variance).exp()


def noise_like(values: Any) -> Any:
    """Standard normal numbers of the shape of others, drawn alike for every device."""
    import torch

    return torch.randn(values.shape, dtype=values.dtype).to(values.device)


@dataclass(frozen=True, eq=False)
class Coder(ABC):
    """A trained auto-encoder of the mutable axes, given the immutable ones."""

    layout: Layout
    network: Any

    @classmethod
    def fit(cls, space: Space, points: FloatArray, method: Any) -> Self:
        """Train on points, by the parameters of a method."""
        layout = Layout.of(space, method.device)
        with isolated(method.random_state) as torch:
            untrained = cls(layout, cls.build(layout, method).to(layout.device))

            def loss(batch: Sequence[Any], epoch: int) -> Any:
                return untrained.loss(batch[0], epoch, method).sum()

            goal = Goal(loss, list(untrained.network.parameters()))
            tensors = [torch.from_numpy(points)]
            return cls(layout, train(untrained.network, tensors, [goal], method))

    @classmethod
    @abstractmethod
    def build(cls, layout: Layout, method: Any) -> Any:
        """The parts, untrained, and the log-scales of numbers."""

    @abstractmethod
    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code of each point."""

    @abstractmethod
    def write(self, given: Any) -> Any:
        """The raw output for codes and immutable axes."""

    def decode(self, codes: Any, own: Any) -> Any:
        """Points of codes, with the immutable axes of their people."""
        return self.layout.place(self.layout.write(self._raw(codes, own)), own)

    def loss(self, points: Any, epoch: int, method: Any) -> Any:
        """Minus the evidence lower bound of each point."""
        mean, log_variance = self.encode(points)
        raw = self._raw(draw(mean, log_variance), points)
        target = points[:, self.layout.mutable]
        surprise = self.layout.surprise(raw, target, self.network.scales)
        return surprise + self.kl_weight(epoch, method) * gaussian_kl(mean, log_variance)

    def kl_weight(self, epoch: int, method: Any) -> float:
        """The weight of the divergence."""
        return 1.0

    def _raw(self, codes: Any, own: Any) -> Any:
        import torch

        return self.write(torch.cat([codes, self.layout.given(own)], dim=1))


# Epochs in which the weight of the divergence grows.
N_WARMUP = 5


class ConditionalVAE(Coder):
    """Dense layers with ReLU; the divergence has a weight."""

    @classmethod
    def build(cls, layout: Layout, method: Any) -> Any:
        """Trunk, mean and log-variance of the code, decoder."""
        import torch

        hidden, n_latent = list(method.hidden), method.n_latent
        network: Any = torch.nn.Module()
        inner = layers([len(layout.mutable), *hidden])
        network.trunk = torch.nn.Sequential(inner, torch.nn.ReLU())
        network.mean = torch.nn.Linear(hidden[-1], n_latent)
        network.log_variance = torch.nn.Linear(hidden[-1], n_latent)
        sizes = [n_latent + len(layout.immutable), *hidden[::-1], len(layout.mutable)]
        network.decoder = layers(sizes)
        network.scales = torch.nn.Parameter(torch.full((len(layout.mutable),), -2.0))
        return network

    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code of each point."""
        hidden = self.network.trunk(points[:, self.layout.mutable])
        return self.network.mean(hidden), self.network.log_variance(hidden)

    def write(self, given: Any) -> Any:
        """The raw output for codes and immutable axes."""
        return self.network.decoder(given)

    def kl_weight(self, epoch: int, method: Any) -> float:
        """Grows in the first epochs."""
        return float(method.kl_weight * min(1.0, epoch / N_WARMUP))
