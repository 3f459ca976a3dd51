"""From the probabilities of cells to codes of values, within limits and with guidance.

A cell is drawn by its probability, then one of its values, all alike. Of a group with limits, a
cell counts by the share of its values that the group may have, and one of these is drawn. Where
there is none, or the code drawn counts as the own one, or the guide says so, the own value is kept.
"""

from __future__ import annotations

import numpy as np

from mcce.kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    pick,
    uniforms,
)
from mcce.protocols import DrawRequest

from .cells import ColumnCells
from .fixed import choose


def draw_cells(
    request: DrawRequest, position: int, column: ColumnCells, logits: FloatArray
) -> tuple[Codes, IntArray]:
    """Codes in the table of a column, and the cells that they are in.

    Parameters
    ----------
    request
        The rows, and what their draws are restricted to.
    position
        Position of the feature.
    column
        Its cells.
    logits : (n_rows, n_cells)
        Log-probabilities of the cells, up to a constant of each row.
    """
    u = uniforms(request.row_keys, position)
    allowed = request.allowed(position, len(column.table))
    if allowed is None:
        cells = choose(logits, u)
        codes = _pick(request, position, column.starts[cells], column.sizes[cells])
        possible = np.ones(cells.size, dtype=bool)
    else:
        codes, cells, possible = _within(request, position, column, logits, u, allowed)
    own, kept = request.kept(position, codes, possible)
    shown = column.cell_of[request.given[position]][request.group]
    return np.where(kept, own, codes), np.where(kept, shown, cells)


def _within(
    request: DrawRequest,
    position: int,
    column: ColumnCells,
    logits: FloatArray,
    u: FloatArray,
    allowed: BoolArray,
) -> tuple[Codes, IntArray, BoolArray]:
    """Allowed codes, the cells that they are in, and where there are any."""
    group = request.group
    counted: IntArray = np.cumsum(allowed, axis=1, dtype=np.int64)
    before = np.pad(counted, ((0, 0), (1, 0)))
    n_allowed = np.diff(before[:, column.starts], axis=1)
    chosen = choose(logits, u, (n_allowed / column.sizes)[group])
    cells = np.maximum(chosen, 0)
    first, sizes = before[group, column.starts[cells]], n_allowed[group, cells]
    nth = _pick(request, position, first, np.maximum(sizes, 1))
    codes = np.empty(nth.size, dtype=np.int32)
    for number, codes_before in enumerate(before):
        rows = group == number
        codes[rows] = np.searchsorted(codes_before, nth[rows], side="right") - 1
    return np.minimum(codes, len(column.table) - 1), cells, chosen >= 0


def _pick(request: DrawRequest, position: int, first: IntArray, sizes: IntArray) -> Codes:
    """One of so many codes from the first, for each row."""
    word = position + 2 * (len(request.given) + 1)
    return (first + pick(request.row_keys, word, sizes)).astype(np.int32)
