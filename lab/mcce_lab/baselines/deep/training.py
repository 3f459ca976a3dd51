"""How the networks of this package are trained: in batches, until held-out rows say stop.

Always true: the same rows and seed give the same weights on the same machine; the weights kept are
those of the epoch with the lowest held-out loss.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcce.parameters import check_count, check_flag

from .steppers import Adam
from .tools import check_device

HELDOUT_SHARE, PATIENCE = 0.1, 5
WEIGHT_DECAY = 1e-6
# Small data get smaller batches, or an epoch would hardly move the weights.
LEAST_STEPS, LEAST_BATCH = 50, 32


@dataclass(frozen=True)
class TrainingPlan:
    """How a network is trained, with Adam.

    Parameters
    ----------
    n_epochs
        The largest number of passes over the training rows.
    batch_size
        The most rows per step; fewer if there would be less than 50 steps in an epoch, but not
        fewer than 32.
    early_stopping
        Whether to hold out a tenth of the rows, to stop after five epochs without a lower loss on
        them and to keep the best weights; otherwise the last weights are kept.
    learning_rate
        Of Adam.
    device
        Where to train.
    """

    n_epochs: int
    batch_size: int
    early_stopping: bool = True
    learning_rate: float = 1e-3
    device: str = "cpu"

    def check(self) -> None:
        """Raise for a value that cannot work."""
        check_count("n_epochs", self.n_epochs)
        check_count("batch_size", self.batch_size, least=2)
        check_flag("early_stopping", self.early_stopping)
        check_device(self.device)


# From a batch of tensors and the number of the epoch to a loss, summed over rows.
Loss = Callable[[Sequence[Any], int], Any]


@dataclass(frozen=True, eq=False)
class Goal:
    """A loss, and the parameters that shall lower it."""

    loss: Loss
    parameters: list[Any]


def train(model: Any, tensors: Sequence[Any], goals: Sequence[Goal], plan: TrainingPlan) -> Any:
    """A trained model, in evaluation mode and float64.

    Parameters
    ----------
    model
        A torch module on the device of the plan, which is trained in float32.
    tensors
        What it learns from, with a row each.
    goals
        What is done with each batch, in turn; each moves its own parameters only. Held-out rows
        are judged by the loss of the first.
    plan
        How to train.

    Returns
    -------
    torch.nn.Module
    """
    import torch

    order = torch.randperm(len(tensors[0]))
    n_heldout = int(len(order) * HELDOUT_SHARE) if plan.early_stopping else 0
    tensors = [tensor.float().to(plan.device) for tensor in tensors]
    heldout = [tensor[order[:n_heldout]] for tensor in tensors]
    kept = [tensor[order[n_heldout:]] for tensor in tensors]
    optimizers = [_Optimizer(goal.parameters, plan.learning_rate) for goal in goals]
    lowest, best, idle = float("inf"), None, 0
    for epoch in range(plan.n_epochs):
        model.train()
        _train_epoch(kept, goals, optimizers, plan, epoch)
        if not n_heldout:
            continue
        model.eval()
        with torch.no_grad():
            reached = float(goals[0].loss(heldout, plan.n_epochs))
        idle += 1
        if reached < lowest:
            lowest, best, idle = reached, copy.deepcopy(model.state_dict()), 0
        elif idle >= PATIENCE:
            break
    if best is not None:
        model.load_state_dict(best)
    return model.double().eval().requires_grad_(False)


def _train_epoch(
    tensors: Sequence[Any],
    goals: Sequence[Goal],
    optimizers: Sequence[_Optimizer],
    plan: TrainingPlan,
    epoch: int,
) -> None:
    """One pass over the rows."""
    import torch

    n_rows = len(tensors[0])
    batch_size = min(plan.batch_size, max(LEAST_BATCH, n_rows // LEAST_STEPS))
    order = torch.randperm(n_rows)
    for start in range(0, n_rows, batch_size):
        batch = order[start : start + batch_size]
        if len(batch) < 2:
            continue  # the spread of one row, which batch normalisation needs, is undefined
        rows = [tensor[batch] for tensor in tensors]
        for goal, optimizer in zip(goals, optimizers, strict=True):
            mean = goal.loss(rows, epoch) / len(batch)
            optimizer.step(torch.autograd.grad(mean, goal.parameters))


class _Optimizer:
    """Adam for the parameters of a network, with some weight decay."""

    def __init__(self, parameters: list[Any], rate: float) -> None:
        import torch

        self.parameters, self.stepper, self.time = parameters, Adam(rate), 0
        n_memories = range(self.stepper.n_memories)
        self.memories = [[torch.zeros_like(one) for _ in n_memories] for one in parameters]

    def step(self, gradients: Sequence[Any]) -> None:
        import torch

        self.time += 1
        with torch.no_grad():
            for at, (parameter, gradient) in enumerate(
                zip(self.parameters, gradients, strict=True)
            ):
                decayed = gradient + WEIGHT_DECAY * parameter
                move, self.memories[at] = self.stepper.step(decayed, self.memories[at], self.time)
                parameter += move
