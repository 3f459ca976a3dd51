"""Nearest rows: distances computed in blocks of bounded memory.

The distance of two rows is the sum over features of the range-scaled difference, 0 or 1 for a
category, as in ``l1``. On ranks, a number is replaced by the share of training values below it.

Always true: features are added in column order, so results do not depend on the blocks; of
equally near rows, the first is taken.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import BoolArray, FloatArray, IntArray
from ..parameters import check_count
from ..tables.columns import plain
from ..tables.schema import EncodedRows
from .evaluator import Evaluator, scaled

Scale = Literal["range", "ranks"]
# A feature of some rows and of the others: floats where differences count, integers otherwise.
Coordinates: TypeAlias = tuple[FloatArray | IntArray, FloatArray | IntArray]

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
    """Find the k nearest other rows: their distances and positions, nearest first."""
    places = np.arange(len(others)) if among is None else among
    check_count("k", k)
    if k > places.size:
        raise ParameterError(
            f"k must be at most the number of rows to compare with, {places.size}, got "
            f"{shorten(k)}."
        )
    columns = [
        (own, other[places])
        for own, other in (
            _coordinates(evaluator, rows, others, position, scale)
            for position in range(len(evaluator.schema.features))
        )
    ]
    smallest, neighbours = np.empty((len(rows), k)), np.empty((len(rows), k), dtype=np.int64)
    size = max(1, CELLS_PER_BLOCK // places.size)
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        distances = _distances([(own[block], other) for own, other in columns], squared)
        smallest[block], columns_of = _smallest(distances, k)
        neighbours[block] = places[columns_of]
    return smallest, neighbours


def _coordinates(
    evaluator: Evaluator, rows: EncodedRows, others: EncodedRows, position: int, scale: Scale
) -> Coordinates:
    """A feature of both sides; missing numbers are NaN."""
    if scale not in ("range", "ranks"):
        raise ParameterError(f'scale must be "range" or "ranks", got {shorten(scale)}.')
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
    """Codes that are equal where cells are; those of training where it has the value."""
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


def _distances(columns: list[Coordinates], squared: bool) -> FloatArray:
    """All distances between some rows and the others."""
    n_rows, n_others = len(columns[0][0]), len(columns[0][1])
    total, gap = np.zeros((n_rows, n_others)), np.empty((n_rows, n_others))
    for own, other in columns:
        if own.dtype.kind == "i":
            total += own[:, None] != other
            continue
        np.subtract(own[:, None], other, out=gap)
        np.abs(gap, out=gap)
        missing, others_missing = np.isnan(own), np.isnan(other)
        if missing.any() or others_missing.any():
            _fill_missing(gap, missing, others_missing)
        if squared:
            np.multiply(gap, gap, out=gap)
        total += gap
    return total


def _fill_missing(gap: FloatArray, missing: BoolArray, others_missing: BoolArray) -> None:
    """A missing cell differs from a value by 1, from another missing cell by 0."""
    gap[missing] = 1.0
    gap[:, others_missing] = 1.0
    gap[np.ix_(missing, others_missing)] = 0.0


def _smallest(distances: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """The k smallest entries of each row in order, and their columns."""
    if k == 1:
        columns = distances.argmin(axis=1)[:, None]
        return np.take_along_axis(distances, columns, axis=1), columns
    limits = np.partition(distances, k - 1, axis=1)[:, k - 1]
    columns = np.empty((len(distances), k), dtype=np.int64)
    for row, limit in enumerate(limits):
        # Partitioning alone does not say which of several equal entries come first.
        within = np.flatnonzero(distances[row] <= limit)
        columns[row] = within[np.argsort(distances[row, within], kind="stable")[:k]]
    return np.take_along_axis(distances, columns, axis=1), columns
