"""Accelerated proximal gradient steps, and the bisection around them.

Always true: a coordinate moves only if its gradient outweighs the L1 distance; a bisection keeps
the least constant that was enough and the largest that was not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .descent import Best, Block, Step
from .tools import blocks, snap

FACTOR = 10.0


class Bisection:
    """The constant of each row: larger until it is enough, then between the nearest two.

    Parameters
    ----------
    n_rows
        Number of rows.
    constant
        The first constant.
    device
        Where the constants are.
    """

    def __init__(self, n_rows: int, constant: float, device: Any) -> None:
        import torch

        first = float(constant)
        self.constant = torch.full((n_rows,), first, dtype=torch.float64, device=device)
        self.lower = torch.zeros_like(self.constant)
        self.upper = torch.full_like(self.constant, torch.inf)

    def narrow(self, enough: Any) -> None:
        """Choose the next constants.

        Parameters
        ----------
        enough : torch.Tensor of shape (n_rows,)
            Whether the constants were enough.
        """
        import torch

        self.upper = torch.where(enough, self.constant, self.upper)
        self.lower = torch.where(enough, self.lower, self.constant)
        larger, middle = FACTOR * self.constant, (self.lower + self.upper) / 2
        self.constant = torch.where(self.upper.isfinite(), middle, larger)


class Kept(Best):
    """The cheapest valid point of each row; no row stops before the end."""

    @property
    def stopped(self) -> Any:
        """No row."""
        import torch

        return torch.zeros_like(self.cost, dtype=torch.bool)


@dataclass(frozen=True, eq=False)
class Proximal:
    """Rounds of proximal gradient steps.

    Parameters
    ----------
    smooth
        From rows to what is added to the loss, by row.
    sparsity
        Weight of the L1 distance.
    margin
        By how much the desired decision must win.
    rate
        The first step size of a round.
    n_steps
        Steps in a round.
    positive
        Whether numbers may only grow.
    """

    smooth: Callable[[Block, Any], Any]
    sparsity: float
    margin: float
    rate: float
    n_steps: int
    positive: bool

    def run(self, block: Block, bisection: Bisection, n_rounds: int) -> Best:
        """Search for the best constants and points of all rows.

        Parameters
        ----------
        block
            All rows.
        bisection
            Their constants.
        n_rounds
            Number of rounds.

        Returns
        -------
        Best
        """
        import torch

        best = Kept(block.own)
        everybody = torch.arange(len(block.own), device=block.own.device)
        for _ in range(n_rounds):
            enough = torch.zeros_like(everybody, dtype=torch.bool)
            for places, filled in blocks(everybody):
                part = best.take(filled)
                hit = self._round(block.take(filled), bisection.constant[filled], part)
                best.put(places, part)
                # Each step scores the point ahead, for its gradient, and the one it moves to.
                best.n_scored += 2 * len(places) * self.n_steps
                enough[places] = hit[: len(places)]
            bisection.narrow(enough)
        return best

    def _round(self, block: Block, constant: Any, best: Best) -> Any:
        """Take the steps of a round; whether a row was a hit."""
        import torch

        # What moves is the way from the person, which is exactly 0 at first.
        moves = torch.zeros_like(block.own)
        ahead, hit = moves, torch.zeros_like(constant, dtype=torch.bool)
        for time in range(self.n_steps):
            rate = self.rate * (1 - time / self.n_steps) ** 0.5
            before, gradient = moves, self._gradient(block, constant, ahead)
            moves = snap(self.prox(block, ahead - rate * gradient, rate))
            ahead = moves + time / (time + 3) * (moves - before)
            hit = hit | self._judge(block, moves, best)
        return hit

    def _gradient(self, block: Block, constant: Any, moves: Any) -> Any:
        """Gradient of the smooth part, the decision included."""
        import torch

        moves = moves.detach().requires_grad_()
        rows, outputs = block.score(block.own + moves)
        short = (self.margin - block.scorer.margin(outputs)).clamp(min=0.0)
        value = constant * short + self.smooth(block, rows)
        return torch.autograd.grad(value.sum(), moves)[0]

    def prox(self, block: Block, moves: Any, rate: float) -> Any:
        """The point of the L1 distance and the limits that is nearest to a step.

        Parameters
        ----------
        block
            The rows.
        moves : torch.Tensor of shape (n_rows, n_axes)
            Ways from the people.
        rate
            Size of the step.

        Returns
        -------
        torch.Tensor of shape (n_rows, n_axes)
        """
        import torch

        threshold = rate * self.sparsity * block.projection.weight
        shrunk = moves.sign() * (moves.abs() - threshold).clamp(min=0.0)
        own = block.own
        least = own.clamp(max=0.0) - own
        if self.positive:
            least = torch.where(block.projection.number, 0.0, least)
        return shrunk.clamp(least, own.clamp(min=1.0) - own)

    def _judge(self, block: Block, moves: Any, best: Best) -> Any:
        """Remember the cheapest hits; which rows are hits."""
        import torch

        with torch.no_grad():
            rows, outputs = block.score(block.own + moves)
            distance = block.projection.squared(rows, block.own)
            distance = distance + self.sparsity * block.projection.l1(rows, block.own)
            hit = (block.scorer.margin(outputs) >= self.margin) & block.scorer.valid(outputs)
            best.update(Step(distance, rows, hit, distance))
        return hit
