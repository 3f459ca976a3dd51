"""Functions of the levels of each feature, for all features at once.

Features have different numbers of levels. Here they are the rows of one matrix, filled up with
minus infinity, so that a step of a search takes as long for fifty features as for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.kernels import IntArray


@dataclass(frozen=True, eq=False)
class Groups:
    """The axes of each feature with levels.

    Parameters
    ----------
    axes : torch.Tensor of shape (n_groups, n_levels)
        The axes of each feature; the number of axes where it has fewer levels.
    slots : torch.Tensor of shape (n_axes,)
        Place of each axis in ``axes``, row by row; the number of places for axes of numbers.
    """

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
