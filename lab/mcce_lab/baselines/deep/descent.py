"""Searches by gradient: many people at once, each by themselves.

The objective of each row is summed and never averaged, and steps are taken number by number, so
one search for many rows is as many searches. A row stops by itself, and rows that have stopped are
left out.

Always true: what is remembered is a projected point that was valid, the cheapest so far.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from mcce.kernels import FloatArray, IntArray

from ..baseline import Declined, Found
from .projection import Projection
from .scoring import Scorer
from .steppers import Stepper
from .tools import blocks, isolated, snap

# An objective that falls by less has not improved.
LEAST_GAIN = 1e-4
# Rows that have stopped are left out every so many steps.
STEPS_PER_ROUND = 50


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that are searched for together.

    Parameters
    ----------
    own : torch.Tensor of shape (n_rows, n_axes)
        The people's points.
    anchors : torch.Tensor of shape (n_rows, n_inputs)
        See :meth:`Scorer.anchors`.
    projection, scorer
        Points as rows, and what the predictor says of them.
    extra
        More numbers of each row, by name.
    """

    own: Any
    anchors: Any
    projection: Projection
    scorer: Scorer
    extra: Mapping[str, Any] = field(default_factory=dict)

    def score(self, points: Any) -> tuple[Any, Any]:
        """Projected points and the output of the predictor, both with gradients."""
        rows = self.projection(points, self.own)
        return rows, self.scorer.outputs(rows, self.anchors)

    def adding(self, **numbers: Any) -> Block:
        """The same rows with more numbers."""
        return replace(self, extra={**self.extra, **numbers})

    def take(self, places: Any) -> Block:
        """Some of the rows."""
        extra = {name: tensor[places] for name, tensor in self.extra.items()}
        own, anchors = self.own[places], self.anchors[places]
        return Block(own, anchors, self.projection, self.scorer, extra)


@dataclass(frozen=True, eq=False)
class Step:
    """What an objective says of each row.

    Parameters
    ----------
    value : torch.Tensor of shape (n_rows,)
        The objective, with gradients.
    rows : torch.Tensor of shape (n_rows, n_axes)
        Projected points.
    valid, cost : torch.Tensor of shape (n_rows,)
        Whether they are valid, and what they cost.
    """

    value: Any
    rows: Any
    valid: Any
    cost: Any


class Best(ABC):
    """The cheapest valid point of each row so far, and which rows have stopped.

    Parameters
    ----------
    own : torch.Tensor of shape (n_rows, n_axes)
        The people's points, which stand in for what is not found.

    Attributes
    ----------
    points : torch.Tensor of shape (n_rows, n_axes)
        The cheapest valid points.
    cost : torch.Tensor of shape (n_rows,)
        What they cost; infinite if there is none.
    n_scored : int
        Rows that the predictor scored, along its gradient too.
    """

    def __init__(self, own: Any) -> None:
        import torch

        self.points = own.clone()
        self.cost = torch.full((len(own),), torch.inf, dtype=torch.float64, device=own.device)
        self.n_scored = 0

    @property
    @abstractmethod
    def stopped(self) -> Any:
        """Which rows no longer change."""

    def update(self, step: Step) -> None:
        """Remember the rows that are valid and cheaper, unless they have stopped."""
        import torch

        cheaper = ~self.stopped & step.valid & (step.cost.detach() < self.cost)
        self.points = torch.where(cheaper[:, None], step.rows.detach(), self.points)
        self.cost = torch.where(cheaper, step.cost.detach(), self.cost)

    def take(self, places: Any) -> Self:
        """Some of the rows."""
        part = copy.copy(self)
        for name, tensor in self._tensors():
            setattr(part, name, tensor[places])
        return part

    def put(self, places: Any, others: Best) -> None:
        """Replace some of the rows by the first of others."""
        for name, tensor in self._tensors():
            tensor[places] = getattr(others, name)[: len(places)]

    def _tensors(self) -> list[tuple[str, Any]]:
        """What is known of each row, by name."""
        return [(name, value) for name, value in vars(self).items() if hasattr(value, "numpy")]


class Patient(Best):
    """Rows stop after some steps without progress.

    Parameters
    ----------
    own : torch.Tensor of shape (n_rows, n_axes)
        The people's points.
    patience
        Steps without a lower objective or cheaper point.
    """

    def __init__(self, own: Any, patience: int) -> None:
        import torch

        super().__init__(own)
        self.lowest = self.cost.clone()
        self.idle = torch.zeros(len(own), dtype=torch.int64, device=own.device)
        self.patience = patience

    @property
    def stopped(self) -> Any:
        """Which rows have not got on for long."""
        return self.idle >= self.patience

    def update(self, step: Step) -> None:
        """Remember the rows that are valid and cheaper, unless they have stopped."""
        import torch

        value, going, before = step.value.detach(), ~self.stopped, self.cost
        super().update(step)
        lower = value < self.lowest - LEAST_GAIN
        gains = lower | (self.cost < before - LEAST_GAIN)
        self.lowest = torch.where(lower, value, self.lowest)
        self.idle = torch.where(going & gains, 0, self.idle + 1)


@dataclass(frozen=True, eq=False)
class Descent:
    """A search by gradient.

    Parameters
    ----------
    objective
        From rows and where they are to what is said of them.
    stepper
        How to move.
    n_steps
        The largest number of steps.
    clamp
        Applied after every step.
    """

    objective: Callable[[Block, Any], Step]
    stepper: Stepper
    n_steps: int
    clamp: Callable[[Block, Any], Any] | None = None

    def run(self, block: Block, start: Any, best: Best) -> Best:
        """Follow the gradient until every row has stopped.

        Parameters
        ----------
        block
            All rows.
        start : torch.Tensor of shape (n_rows, n_numbers)
            Where they start.
        best
            What is remembered.

        Returns
        -------
        Best
            The same object.
        """
        import torch

        moved = snap(start)
        memories = [torch.zeros_like(moved) for _ in range(self.stepper.n_memories)]
        for before in range(0, self.n_steps, STEPS_PER_ROUND):
            going = torch.nonzero(~best.stopped).ravel()
            # Blocks of one size, or the last bits would differ; copies are not written back.
            for places, filled in blocks(going):
                some = [memory[filled] for memory in memories]
                part = best.take(filled)
                n_steps = min(STEPS_PER_ROUND, self.n_steps - before)
                where, rows = moved[filled], block.take(filled)
                for time in range(before + 1, before + n_steps + 1):
                    where, some = self._step(rows, where, some, part, time)
                best.put(places, part)
                best.n_scored += len(places) * n_steps
                for whole, new in zip([moved, *memories], [where, *some], strict=True):
                    whole[places] = new[: len(places)]
        return best

    def _step(
        self, block: Block, where: Any, memories: list[Any], best: Best, time: int
    ) -> tuple[Any, list[Any]]:
        """Judge a step and take the next."""
        import torch

        where.requires_grad_()
        step = self.objective(block, where)
        best.update(step)
        (gradient,) = torch.autograd.grad(step.value.sum(), where)
        move, memories = self.stepper.step(gradient, memories, time)
        after = where.detach() + move
        return snap(after if self.clamp is None else self.clamp(block, after)), memories


def search(
    declined: Declined,
    scorer: Scorer,
    find: Callable[[Block], Best],
    reason: str,
    *,
    extra: Mapping[str, FloatArray] | None = None,
    n_copies: int = 1,
    finish: Callable[[IntArray, FloatArray], FloatArray] | None = None,
) -> Found:
    """Search for everybody.

    Parameters
    ----------
    declined
        The people.
    scorer
        What the predictor says of points.
    find
        From all rows to the best points.
    reason
        Why somebody has no answer.
    extra
        More numbers of each row, with ``n_copies`` rows per person.
    n_copies
        Rows per person, of which the cheapest counts.
    finish
        From owners and valid points to better ones.

    Returns
    -------
    Found
        One row for everybody with an answer.
    """
    with isolated(0) as torch:
        put = partial(torch.as_tensor, device=scorer.device)
        rows = np.repeat(np.arange(len(declined)), n_copies)
        own = put(scorer.space.encode(declined.rows)[rows])
        anchors = scorer.anchors(own, put(scorer.inputs(declined.rows)[rows]))
        tensors = {name: put(numbers) for name, numbers in (extra or {}).items()}
        projection = Projection.of(scorer.space, scorer.device)
        best = find(Block(own, anchors, projection, scorer, tensors))
        points, cost = best.points.cpu().numpy(), best.cost.cpu().numpy()
    declined.n_evaluated += best.n_scored
    by_person = cost.reshape(len(declined), n_copies)
    found = np.isfinite(by_person).any(axis=1)
    owner = np.flatnonzero(found)
    chosen = points[owner * n_copies + by_person[owner].argmin(axis=1)]
    if finish is not None and owner.size:
        chosen = finish(owner, chosen)
    reasons = dict.fromkeys(np.flatnonzero(~found).tolist(), reason)
    return Found(owner, scorer.space.compose(declined.rows, owner, chosen), reasons)
