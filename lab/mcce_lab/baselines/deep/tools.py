"""torch for the methods of this package: rows in blocks, and numbers on a grid.

Always true: a row's numbers depend neither on the other rows of its block nor on its place in it.
What other parts of mcce use of torch too is in ``runtime.networks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...networks import check_device, import_torch, isolated

__all__ = [
    "GRID",
    "INCOMPLETE",
    "ROWS_PER_BLOCK",
    "blocks",
    "check_device",
    "import_torch",
    "in_blocks",
    "isolated",
    "snap",
]

# Kernels treat the rows at the end of a matrix differently unless their number is a round one.
ROWS_PER_BLOCK = 256
# What moves is kept on a grid, so that the last bits of another order of sums do not add up.
GRID = 2.0**20
# Why people without all numbers have no answer.
INCOMPLETE = "a number is missing, and the method moves through complete numbers"


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
