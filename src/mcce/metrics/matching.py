"""Rows of several sets matched with each other: equal cells, equal rows, and nearest rows.

Sets are compared in one space: levels by codes that are equal where cells are, also of values that
training lacks; numbers over their training range.

Always true: features are added in column order, so results do not depend on the blocks; of
equally near rows, the first is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import BoolArray, Codes, FloatArray, IntArray, rows_as_bytes, scaled_gap
from ..parameters import check_count
from ..tables.columns import is_missing, plain
from ..tables.schema import EncodedRows

CELLS_PER_BLOCK = 2**19


def shared_codes(parts: Sequence[EncodedRows]) -> list[Codes]:
    """Codes for each part, equal where cells are equal; training values keep their codes."""
    codes = [part.codes.copy() for part in parts]
    for at in range(len(parts[0].schema.features)):
        unseen = [np.flatnonzero(own[at] < 0) for own in codes]
        if not any(places.size for places in unseen):
            continue
        pairs = list(zip(parts, unseen, strict=True))
        missing = [is_missing(part.frame.iloc[places, at]) for part, places in pairs]
        cells = [
            np.asarray(plain(part.frame.iloc[places, at]), dtype=object) for part, places in pairs
        ]
        number = pd.factorize(np.concatenate(cells), use_na_sentinel=False)[0]
        each = zip(codes, unseen, missing, _split_like(number, unseen), strict=True)
        for own, places, none, numbers in each:
            own[at, places] = np.where(none, -1, -2 - numbers)
    return codes


def shared_points(parts: Sequence[EncodedRows]) -> list[FloatArray]:
    """Each part as points of shape (n_rows, n_features): scaled numbers, or shared codes."""
    is_level, points = parts[0].schema.is_level, [part.points.copy() for part in parts]
    for own, codes in zip(points, shared_codes(parts), strict=True):
        own[:, is_level] = codes[is_level].T
    return points


def number_rows(parts: Sequence[Codes]) -> list[IntArray]:
    """A number for each row of parts of shape (n_features, n_rows), equal where rows are."""
    together = np.concatenate(parts, axis=1)
    if not len(together):
        return [np.zeros(part.shape[1], dtype=np.int64) for part in parts]
    number = np.unique(rows_as_bytes(together.T), return_inverse=True)[1]
    return _split_like(number, [part[0] for part in parts])


def check_k(k: int, n_rows: int) -> None:
    """Raise unless there are k rows to compare with."""
    check_count("k", k)
    if k > n_rows:
        raise ParameterError(
            f"k must be at most the number of rows to compare with, {n_rows}, got {shorten(k)}."
        )


def find_nearest(
    points: FloatArray,
    others: FloatArray,
    is_level: BoolArray,
    k: int,
    *,
    squared: bool = False,
) -> tuple[FloatArray, IntArray]:
    """The k nearest other points of each: their distances and positions, nearest first.

    The distance is the sum of the gaps of all features, or of their squares. Unlike
    :func:`mcce.kernels.nearest_distances`, it says which points are the nearest.
    """
    check_k(k, len(others))
    distances, places = np.empty((len(points), k)), np.empty((len(points), k), dtype=np.int64)
    size = max(1, CELLS_PER_BLOCK // len(others))
    for start in range(0, len(points), size):
        block = slice(start, start + size)
        total = np.zeros((len(points[block]), len(others)))
        for own, other, level in zip(points[block].T, others.T, is_level, strict=True):
            if level:
                total += own[:, None] != other
            else:
                gap = scaled_gap(own[:, None], other)
                total += gap * gap if squared else gap
        distances[block], places[block] = _smallest(total, k)
    return distances, places


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


def _split_like(values: IntArray, parts: Sequence[np.ndarray]) -> list[IntArray]:
    """Values of all parts, one part after the other, as those of each."""
    return np.split(values, list(accumulate(part.size for part in parts))[:-1])
