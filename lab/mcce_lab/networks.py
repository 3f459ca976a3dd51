"""torch for whatever trains networks: imported late, in one thread, with seeds of its own.

Always true: without torch the error names the extra to install; the number of threads and the
random numbers of the caller are as before, and threads of the caller take turns.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mcce.errors import ParameterError, missing_extra

# torch has one random state per process: two threads would take each other's numbers. Reentrant,
# because a predictor may itself explain.
_ALONE = threading.RLock()
HELDOUT_SHARE, WEIGHT_DECAY = 0.1, 1e-6
# Small data get smaller batches, or an epoch would hardly move the weights.
MIN_EPOCH_STEPS, MIN_BATCH = 50, 32


def import_torch(method: str, device: str) -> Any:
    """The library, with a device that is there.

    Parameters
    ----------
    method
        The method that needs it, for the error.
    device
        Where the method computes.

    Returns
    -------
    module
        torch.

    Raises
    ------
    MissingExtraError
        If torch is not installed.
    ParameterError
        If the device is absent.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise missing_extra("torch", "deep", method, folder="./lab") from error
    wanted = torch.device(device)
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted.type == "cuda" and (wanted.index or 0) >= n_devices:
        raise ParameterError(
            f"device={device!r} is not there: torch sees {n_devices} CUDA devices on this machine. "
            'Pass device="cpu", or install a torch that supports the GPU.'
        )
    return torch


@contextmanager
def isolated(seed: int, device: str = "cpu") -> Iterator[Any]:
    """One thread, seeded random numbers and gradients inside; afterwards all is as before."""
    import torch

    gpus = [torch.device(device)] if device != "cpu" else []
    with _ALONE, torch.random.fork_rng(devices=gpus), torch.enable_grad():
        n_threads = torch.get_num_threads()
        # Not torch.manual_seed, which would also seed other GPUs of the caller.
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield torch
        finally:
            torch.set_num_threads(n_threads)


@dataclass(frozen=True, eq=False)
class Goal:
    """A loss of a batch of tensors in an epoch, summed over rows, and what shall lower it."""

    loss: Callable[[Sequence[Any], int], Any]
    parameters: Sequence[Any]


def train(
    model: Any,
    tensors: Sequence[Any],
    goals: Sequence[Goal],
    plan: Any,
    *,
    rate: float = 1e-3,
    patience: int = 5,
    show: Callable[[int], None] = lambda n_epochs: None,
) -> Any:
    """A trained model, in evaluation mode and float64.

    Adam, with the ``n_epochs``, ``batch_size`` and ``device`` of a plan. With ``early_stopping``
    training ends when the first loss of held-out rows has not fallen for a while, and the best
    weights are kept.
    """
    import torch

    order = torch.randperm(len(tensors[0]))
    n_heldout = int(len(order) * HELDOUT_SHARE) if plan.early_stopping else 0
    tensors = [(t.float() if t.is_floating_point() else t).to(plan.device) for t in tensors]
    heldout = [tensor[order[:n_heldout]] for tensor in tensors]
    kept = [tensor[order[n_heldout:]] for tensor in tensors]
    optimizers = [
        torch.optim.Adam(goal.parameters, lr=rate, weight_decay=WEIGHT_DECAY) for goal in goals
    ]
    lowest, best, idle = float("inf"), None, 0
    for epoch in range(plan.n_epochs):
        model.train()
        _train_epoch(kept, goals, optimizers, plan.batch_size, epoch)
        show(epoch + 1)
        if not n_heldout:
            continue
        model.eval()
        with torch.no_grad():
            reached = float(goals[0].loss(heldout, plan.n_epochs))
        idle += 1
        if reached < lowest:
            lowest, best, idle = reached, copy.deepcopy(model.state_dict()), 0
        elif idle >= patience:
            break
    if best is not None:
        model.load_state_dict(best)
    return model.double().eval().requires_grad_(False)


def _train_epoch(
    tensors: Sequence[Any],
    goals: Sequence[Goal],
    optimizers: Sequence[Any],
    most: int,
    epoch: int,
) -> None:
    """One pass over the rows."""
    import torch

    n_rows = len(tensors[0])
    batch_size = min(most, max(MIN_BATCH, n_rows // MIN_EPOCH_STEPS))
    order = torch.randperm(n_rows)
    for start in range(0, n_rows, batch_size):
        batch = order[start : start + batch_size]
        if len(batch) < 2:
            continue  # the spread of one row, which batch normalisation needs, is undefined
        rows = [tensor[batch] for tensor in tensors]
        for goal, optimizer in zip(goals, optimizers, strict=True):
            mean = goal.loss(rows, epoch) / len(batch)
            gradients = torch.autograd.grad(mean, goal.parameters)
            for parameter, gradient in zip(goal.parameters, gradients, strict=True):
                parameter.grad = gradient
            optimizer.step()
            optimizer.zero_grad()
