"""What the generators share: draws in parts, so that memory stays bounded, and a progress bar."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from mcce import Schema
from mcce.protocols import Codes, DrawRequest, Draws

from .cells import ColumnCells


def draw_in_parts(
    request: DrawRequest, draw: Callable[[DrawRequest], Codes], n_mutable: int, n_rows: int
) -> Codes:
    """Codes of all draws, about ``n_rows`` at a time: (n_mutable, n_groups, n_draws)."""
    codes = np.empty((n_mutable, request.keys.size, request.draws.size), dtype=np.int32)
    n_draws = max(1, min(request.draws.size, n_rows))
    n_groups = max(1, n_rows // n_draws)
    for group in range(0, request.keys.size, n_groups):
        for first in range(0, request.draws.size, n_draws):
            some = slice(group, group + n_groups), slice(first, first + n_draws)
            part = codes[:, *some]
            part[...] = draw(request.part(*some)).reshape(part.shape)
    return codes


class DrawsCells(ABC):
    """Draws of a generator that cuts columns into cells."""

    schema_: Schema
    cells_: list[ColumnCells]

    @property
    def tables_(self) -> list[pd.Series[Any]]:
        """The values that can be drawn, one table per mutable feature."""
        return [self.cells_[position].table for position in self.schema_.mutable]

    def sample(self, request: DrawRequest) -> Draws:
        """Draws for each group, within its limits.

        Parameters
        ----------
        request
            For whom to draw, and within which limits.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        n_mutable, n_rows = self.schema_.mutable.size, self._rows_at_once()
        return Draws(draw_in_parts(request, self._draw, n_mutable, n_rows), self.tables_)

    @abstractmethod
    def _rows_at_once(self) -> int:
        """How many rows are drawn at a time."""

    @abstractmethod
    def _draw(self, request: DrawRequest) -> Codes:
        """Codes of some rows, shape (n_mutable, n_rows)."""


@contextmanager
def progress(total: int, what: str, verbose: bool) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, moved by a function of the amount of work done so far."""
    hidden = not verbose or not sys.stderr.isatty()
    with tqdm(total=total, desc=what, leave=False, disable=hidden) as bar:
        yield lambda n_done: bar.update(n_done - bar.n)
