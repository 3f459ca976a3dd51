"""torch for the methods of this package: imported late, in one thread, with seeds of its own.

Always true: without torch the error names the extra to install; the number of threads and the
random numbers of the caller are as before; a row's numbers depend neither on the other rows of
its block nor on its place in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ...errors import MissingExtraError

# Kernels treat the rows at the end of a matrix differently unless their number is a round one.
ROWS_PER_BLOCK = 256
# What moves is kept on a grid, so that the last bits of another order of sums do not add up.
GRID = 2.0**20


def import_torch(method: str) -> Any:
    """The library.

    Parameters
    ----------
    method
        The method that needs it, for the error.

    Raises
    ------
    MissingExtraError
        If torch is not installed.
    """
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError(f'{method} needs torch: pip install "mcce[deep]".') from error


@contextmanager
def isolated(seed: int) -> Iterator[Any]:
    """One thread and seeded random numbers inside; afterwards all is as before."""
    import torch

    n_threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
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

    everybody = torch.arange(len(tensors[0]))
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
        yield block, block[torch.arange(ROWS_PER_BLOCK).clamp(max=len(block) - 1)]
