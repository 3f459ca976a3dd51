"""The nearest rows: distances in blocks of bounded memory.

The distance of two rows is the sum over features of the range-scaled difference, 0 or 1 for a
category, as in ``l1``; on ranks a number's place is its share of training values below it.

Always true: features are added in column order, so no bit depends on the blocks; of rows that are
equally near the first is taken.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..kernels import BoolArray, FloatArray, IntArray
from ..parameters import check_count
from ..tables.columns import plain
from ..tables.schema import EncodedRows
from .evaluator import Evaluator, scaled

Scale = Literal["range", "ranks"]

CELLS_PER_BLOCK = 2**19


def nearest(
    evaluator: Evaluator,
    rows: EncodedRows,
    others: EncodedRows,
    k: int,
    *,
    among: IntArray | None = None,
    scale: Scale = "range",
    squared: bool = False,
) -> tuple[FloatArray, IntArray]:
    """Distances to the k nearest other rows and their positions, nearest first.

    Parameters
    ----------
    judge
        Whose training data scale the numbers.
    rows, others
        Rows of its schema.
    k
        How many.
    among
        Positions of the others that count; all if None.
    scale
        Numbers over their training range, or their ranks in training as shares.
    squared
        Whether differences are squared before they are added: the nearest are then those of
        Euclidean distance.

    Returns
    -------
    Two arrays of shape (n_rows, k).
    """
    places = np.arange(len(others)) if among is None else among
    check_count("k", k)
    if k > places.size:
        raise ParameterError(
            f"k must be at most the number of rows to be near to, {places.size}, got {k!r}."
        )
    columns = [
        (own, other[places])
        for own, other in (
            _coordinates(evaluator, rows, others, position, scale)
            for position in range(len(evaluator.schema.features))
        )
    ]
    found = np.empty((len(rows), k)), np.empty((len(rows), k), dtype=np.int64)
    size = max(1, CELLS_PER_BLOCK // places.size)
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        far = _distances([(own[block], other) for own, other in columns], squared)
        found[0][block], near = _smallest(far, k)
        found[1][block] = places[near]
    return found


def _coordinates(
    evaluator: Evaluator, rows: EncodedRows, others: EncodedRows, position: int, scale: Scale
) -> tuple[Any, Any]:
    """A feature of both: floats, NaN for missing, where their difference counts, else integers."""
    if scale not in ("range", "ranks"):
        raise ParameterError(f'scale must be "range" or "ranks", got {scale!r}.')
    own, other = scaled(rows, position), scaled(others, position)
    if own is None or other is None:
        return _level_numbers(rows, others, position)
    if scale == "range":
        return own, other
    trained = np.asarray(scaled(evaluator.rows, position))
    trained = np.sort(trained[~np.isnan(trained)])
    return _ranks(trained, own), _ranks(trained, other)


def _ranks(trained: FloatArray, values: FloatArray) -> FloatArray:
    """Share of the sorted training values below each value, equal ones counted half."""
    below = np.searchsorted(trained, values, side="left")
    up_to = np.searchsorted(trained, values, side="right")
    return np.where(np.isnan(values), np.nan, (below + up_to) / (2 * trained.size))


def _level_numbers(
    rows: EncodedRows, others: EncodedRows, position: int
) -> tuple[IntArray, IntArray]:
    """Numbers that are equal where the cells are; training codes where it held the value."""
    codes = [side.exact[position].astype(np.int64) for side in (rows, others)]
    unseen = [np.flatnonzero(side < 0) for side in codes]
    if unseen[0].size and unseen[1].size:
        cells = [
            plain(side.frame.iloc[at, position])
            for side, at in zip((rows, others), unseen, strict=True)
        ]
        numbers = pd.factorize(np.concatenate(cells), use_na_sentinel=False)[0]
        for side, at, own in zip(codes, unseen, np.split(numbers, [unseen[0].size]), strict=True):
            side[at] = -1 - own
    return codes[0], codes[1]


def _distances(columns: list[tuple[Any, Any]], squared: bool) -> FloatArray:
    """All distances between some rows and the others."""
    n_rows, n_others = len(columns[0][0]), len(columns[0][1])
    total, gap = np.zeros((n_rows, n_others)), np.empty((n_rows, n_others))
    for own, other in columns:
        if own.dtype.kind == "i":
            total += own[:, None] != other
            continue
        np.subtract(own[:, None], other, out=gap)
        np.abs(gap, out=gap)
        gone, others_gone = np.isnan(own), np.isnan(other)
        if gone.any() or others_gone.any():
            _fill_missing(gap, gone, others_gone)
        if squared:
            np.multiply(gap, gap, out=gap)
        total += gap
    return total


def _fill_missing(gap: FloatArray, gone: BoolArray, others_gone: BoolArray) -> None:
    """One side missing is 1, both 0."""
    gap[gone] = 1.0
    gap[:, others_gone] = 1.0
    gap[np.ix_(gone, others_gone)] = 0.0


def _smallest(far: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """The k smallest entries of each row in order, and where they stand."""
    if k == 1:
        near = far.argmin(axis=1)[:, None]
        return np.take_along_axis(far, near, axis=1), near
    limits = np.partition(far, k - 1, axis=1)[:, k - 1]
    near = np.empty((len(far), k), dtype=np.int64)
    for row, limit in enumerate(limits):
        # Partitioning alone would leave it to the machine which of equals are taken.
        within = np.flatnonzero(far[row] <= limit)
        near[row] = within[np.argsort(far[row, within], kind="stable")[:k]]
    return np.take_along_axis(far, near, axis=1), near
