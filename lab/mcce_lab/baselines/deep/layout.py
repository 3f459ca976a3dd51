"""What the networks of this package read and write: the mutable axes, given the immutable ones.

Always true: what a network writes is a point of the cube; numbers lie in [0, 1], and the levels of
a feature add up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..space import Space
from .groups import Groups

# The least standard deviation of a number, as a share of its range: zeros alone would be infinitely
# likely otherwise.
LEAST_SCALE = 0.01


@dataclass(frozen=True, eq=False)
class Layout:
    """The axes of a cube as a network sees them.

    Parameters
    ----------
    mutable, immutable : torch.Tensor of shape (n_mutable,) and (n_immutable,)
        The axes that are written, and those that are given.
    number : torch.Tensor of shape (n_mutable,)
        Whether a mutable axis is that of a number.
    levels
        The mutable features with levels.
    """

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
        """What a network returns, as points of the mutable axes."""
        import torch

        return torch.where(self.number, torch.sigmoid(raw), self.levels.softmax(raw))

    def place(self, written: Any, own: Any) -> Any:
        """Points with written mutable axes and the immutable ones of their people."""
        return own.index_copy(1, self.mutable, written)

    def surprise(self, raw: Any, target: Any, log_scale: Any) -> Any:
        """Minus the log-likelihood of rows, up to a constant.

        Parameters
        ----------
        raw, target : torch.Tensor of shape (n_rows, n_mutable)
            What a network returns, and the rows that it should.
        log_scale : torch.Tensor of shape (n_mutable,)
            Logarithm of the standard deviation of each number; ignored for levels.

        Returns
        -------
        torch.Tensor of shape (n_rows,)
            Gaussian for numbers, the cross-entropy of each feature for levels.
        """
        import torch

        scale = log_scale.clamp(min=float(np.log(LEAST_SCALE)))
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
