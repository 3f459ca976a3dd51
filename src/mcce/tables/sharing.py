"""Which people may share candidates and the predictor's scores of them.

Candidates are drawn by value, but the predictor sees cells. So people share only if every draw
gives each of them the same cells.

Always true: within a group, a draw gives the same row, in type and bits, whoever it is for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels import IntArray
from .identity import (
    are_identical,
    has_look_alikes,
    holds_objects,
    is_float,
    is_unusual,
    number_identical,
)
from .schema import EncodedRows


def sharing_groups(rows: EncodedRows, positions: Sequence[int]) -> IntArray:
    """The same number for people who may share candidates.

    They have identical cells in some features. Elsewhere a draw may give a person's own value and
    thereby keep their own cell, so a cell that is equal but not identical to the training value
    separates them from others.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> schema = Schema.learn(pd.DataFrame({"debt": [0.0, 1.0], "age": [30, 40]}))
    >>> people = schema.encode(pd.DataFrame({"debt": [0.0, -0.0, 1.0], "age": [30, 30, 30]}))
    >>> sharing_groups(people, [1])
    array([0, 1, 0])
    """
    group = np.zeros(len(rows), dtype=np.int64)
    for position in positions:
        group = _split(group, number_identical(rows.cells[position]))
    for row, position in enumerate(rows.schema.mutable.tolist()):
        look_alikes = None if position in positions else _look_alikes(rows, row, position)
        if look_alikes is not None:
            group = _split(group, look_alikes)
    return group


def _look_alikes(rows: EncodedRows, row: int, position: int) -> IntArray | None:
    """0 for own cells that are what a draw of their value gives; other numbers by identity."""
    pool, exact, n_rows = rows.training_pools[row], rows.exact[position], len(rows)
    if not is_float(pool) and not holds_objects(pool):
        return None
    unseen, differs = np.flatnonzero(exact < 0), np.zeros(n_rows, dtype=bool)
    if has_look_alikes(pool):
        differs = ~are_identical(pool, np.arange(n_rows), n_rows + exact)
    # A generator with values of its own may draw these too.
    differs[unseen] = is_unusual(pool.take(unseen))
    if not differs.any():
        return None
    return np.where(differs, 1 + number_identical(rows.cells[position]), 0)


def _split(group: IntArray, numbers: IntArray) -> IntArray:
    pairs = group * (int(numbers.max(initial=0)) + 1) + numbers
    return np.asarray(np.unique(pairs, return_inverse=True)[1])
