"""The columns worth using as inputs of a model, found by a small model of few rows and bins.

Beyond the paper. A model of every column from all others costs the square of the number of columns;
so a few coarse trees on at most 2,000 rows look at all columns, and only those that they split on
are used. As trees look for what the others left over, columns that repeat one another do not
crowd out the rest, and a column that matters together with another is found below it.

Always true: the rows looked at depend on the codes and responses alone, not on their order.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Boosting, FloatArray, IntArray, boost
from .bins import BinnedColumns
from .trees import as_units, place_bins

MAX_ROWS = 2_000
SMALL = Boosting(n_trees=24, max_leaves=8, min_samples_leaf=10, shrinkage=4)


def screen(
    table: BinnedColumns,
    response: FloatArray,
    candidates: IntArray,
    *,
    rows: IntArray | None = None,
    most: int = 16,
) -> IntArray:
    """The columns that a model of a response should use.

    Examples
    --------
    >>> codes = np.random.default_rng(0).integers(0, 50, (30, 3000), dtype=np.int32)
    >>> flags = np.ones(30, dtype=bool)
    >>> table = BinnedColumns.learn(codes, np.full(30, 50), flags, ~flags)
    >>> screen(table, 1.0 * codes[3] * codes[7], np.arange(30), most=2)
    array([3, 7])
    """
    if candidates.size <= most:
        return candidates
    chosen = _subsample(table, response, np.arange(response.size) if rows is None else rows)
    if not chosen.size:
        return candidates[:most]
    units, _ = as_units(response[chosen])
    units -= units.sum() // units.size
    _, bins = place_bins(table, candidates, chosen, units)
    coarse = [table.coarse[column] for column in candidates]
    bins = np.array([group[own] for group, own in zip(coarse, bins, strict=True)])
    n_bins = np.array([group[-1] + 1 for group in coarse], dtype=np.int32)
    nodes = boost(bins, n_bins, units, SMALL)
    inner = nodes.gain > 0.0
    gains = np.bincount(nodes.feature[inner], nodes.gain[inner], minlength=candidates.size)
    best = np.argsort(-gains, kind="stable")[:most]
    return np.sort(candidates[best[gains[best] > 0.0]])


def _subsample(table: BinnedColumns, response: FloatArray, rows: IntArray) -> IntArray:
    """At most 2,000 of the rows, evenly from those sorted by their codes, then response."""
    step = max(-(-rows.size // MAX_ROWS), 1)
    return rows[np.lexsort((response[rows], table.rank[rows]))[::step]]
