"""torch for the methods of this package: imported late, in one thread, with seeds of its own.

Always true: without torch the error names the extra to install; the number of threads and the
random numbers of the caller are as before, and threads of the caller take turns; a row's numbers
depend neither on the other rows of its block nor on its place in it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ...errors import MissingExtraError, ParameterError, shorten

# Kernels treat the rows at the end of a matrix differently unless their number is a round one.
ROWS_PER_BLOCK = 256
# What moves is kept on a grid, so that the last bits of another order of sums do not add up.
GRID = 2.0**20
# Why people without all numbers have no answer.
INCOMPLETE = "a number is missing, and the method moves through complete numbers"
# torch has one random state per process: two threads would take each other's numbers. Reentrant,
# because a predictor may itself explain.
_ALONE = threading.RLock()


def check_device(device: Any) -> None:
    """Raise unless a device is one that these methods can use; needs no torch."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", device):
        raise ParameterError(
            f'device must be "cpu", "cuda" or a numbered one such as "cuda:0", got '
            f"{shorten(device)}."
        )


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
        raise MissingExtraError(f'{method} needs torch: pip install "mcce[deep]".') from error
    wanted = torch.device(device)
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted.type == "cuda" and (wanted.index or 0) >= n_devices:
        raise ParameterError(
            f"device={device!r} is not there: torch sees {n_devices} CUDA devices on this machine. "
            'Pass device="cpu", or install a torch that supports the GPU.'
        )
    return torch


@contextmanager
def isolated(seed: int) -> Iterator[Any]:
    """One thread, seeded random numbers and gradients inside; afterwards all is as before."""
    import torch

    with _ALONE, torch.random.fork_rng(devices=[]), torch.enable_grad():
        n_threads = torch.get_num_threads()
        # Not torch.manual_seed, which would also seed the GPUs of the caller.
        torch.default_generator.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield torch
        finally:
            torch.set_num_threads(n_threads)


def snap(values: Any) -> Any:
    """A tensor on the grid."""
    return (values * GRID).round() / GRID


def in_blocks(function: Callable[..., Any], *tensors: Any) -> Any:
    """The output of a function that treats rows alike, called with blocks of one size.

    Parameters
    ----------
    function
        From tensors with the same number of rows to a tensor with a row each.
    *tensors
        Its arguments, with any number of rows above 0; the last block is filled with copies of
        its last row.

    Returns
    -------
    torch.Tensor
        The output of all rows.
    """
    import torch

    everybody = torch.arange(len(tensors[0]), device=tensors[0].device)
    outputs = [function(*(tensor[filled] for tensor in tensors)) for _, filled in blocks(everybody)]
    return torch.cat(outputs)[: len(everybody)]


def blocks(places: Any) -> Iterator[tuple[Any, Any]]:
    """Places in blocks, each as it is and filled up to one size with copies of its last place.

    Parameters
    ----------
    places : torch.Tensor of shape (n_places,)
        Positions of rows.

    Yields
    ------
    places, filled : torch.Tensor
        The positions of a block, and ``ROWS_PER_BLOCK`` of which they are the first.
    """
    import torch

    for start in range(0, len(places), ROWS_PER_BLOCK):
        block = places[start : start + ROWS_PER_BLOCK]
        filled = torch.arange(ROWS_PER_BLOCK, device=places.device).clamp(max=len(block) - 1)
        yield block, block[filled]
