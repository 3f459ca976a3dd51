"""Points as rows inside a search: :meth:`Space.project` in torch, with gradients.

Rounding, clipping and the choice of a level have no useful derivative. Forward they are as they
are; backward they pass the gradient on as if they were not there, and nothing for immutable
features (the straight-through rule).

Always true: the same numbers as :meth:`Space.project`, bit by bit; projecting twice changes
nothing; points lie on a fine grid unless they are a person's own, so that noise in the last bits is
lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..space import LEAST_MOVE, Space
from .groups import Groups
from .tools import GRID, snap


@dataclass(frozen=True, eq=False)
class Projection:
    """The rows nearest to points, and the distances between rows.

    Parameters
    ----------
    levels
        The features with levels.
    mutable, number, rounded : torch.Tensor of shape (n_axes,)
        Whether an axis may move, is that of a number, and is rounded.
    least, spread, unit : torch.Tensor of shape (n_axes,)
        As in :class:`Space`, the unit 1 where nothing is rounded.
    weight : torch.Tensor of shape (n_axes,)
        What a difference of 1 counts: 1 for numbers, 0.5 for levels, of which two differ at once.
    """

    levels: Groups
    mutable: Any
    number: Any
    rounded: Any
    least: Any
    spread: Any
    unit: Any
    weight: Any

    @classmethod
    def of(cls, space: Space, device: Any) -> Projection:
        """The projection of a cube, on a device."""
        import torch

        rounded = space.is_number & (space.unit > 0)
        columns = (
            space.is_mutable,
            space.is_number,
            rounded,
            space.least.astype(np.float64),
            space.spread.astype(np.float64),
            np.where(rounded, space.unit, 1.0),
            np.where(space.is_number, 1.0, 0.5),
        )
        tensors: list[Any] = [torch.as_tensor(column, device=device) for column in columns]
        return cls(Groups.of(space.groups, space.n_axes, device), *tensors)

    def __call__(self, points: Any, own: Any) -> Any:
        """Points as rows; the gradient passes straight through to mutable axes.

        Parameters
        ----------
        points, own : torch.Tensor of shape (n_points, n_axes)
            Any points, and those of the people they belong to, in float64.

        Returns
        -------
        torch.Tensor of shape (n_points, n_axes)
        """
        import torch

        given = points.detach()
        settled = torch.where((given - own).abs() < 0.5 / GRID, own, snap(given))
        return _straight_through()(points, self.nearest(settled, own), self.mutable)

    def nearest(self, points: Any, own: Any) -> Any:
        """Points as rows, without gradients."""
        import torch

        placed = points.clamp(own.clamp(max=0.0), own.clamp(min=1.0))
        value = placed * self.spread + self.least
        written = (torch.round(value / self.unit) * self.unit - self.least) / self.spread
        placed = torch.where(self.rounded, written, placed)
        placed = torch.where(self.number, placed, self.levels.largest(points))
        kept = ~self.mutable | (self.number & ((placed - own).abs() <= LEAST_MOVE))
        return torch.where(kept, own, placed)

    def l1(self, points: Any, own: Any) -> Any:
        """As :meth:`Space.l1`."""
        return ((points - own).abs() * self.weight).sum(dim=1)

    def squared(self, points: Any, own: Any) -> Any:
        """Sum over features of squared differences, 1 between two levels."""
        return ((points - own).square() * self.weight).sum(dim=1)


@cache
def _straight_through() -> Any:
    import torch

    class StraightThrough(torch.autograd.Function):
        """Forward the rows, backward the gradient of mutable axes."""

        @staticmethod
        def forward(context: Any, _points: Any, rows: Any, mutable: Any) -> Any:
            context.mutable = mutable
            return rows.clone()

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient * context.mutable, None, None

    return StraightThrough.apply
