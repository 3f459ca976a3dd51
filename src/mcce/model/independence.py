"""Tests of independence between a feature and what a tree predicts, within a node.

Hothorn, Hornik and Zeileis (2006): the permutation test with a quadratic form, by its asymptotic
chi-square distribution. With every kind of column it has a closed form: n - 1 times the squared
correlation of two numbers, or the share of a number's variance between levels; (n - 1) / n times
Pearson's chi-square of two categorical columns. Levels that the node does not hold do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import BoolArray, Codes, FloatArray, IntArray
from .chi_square import log_survival

# A table of two columns is laid out if it has at most so many cells per row of the node.
CELLS_PER_ROW = 8


@dataclass(frozen=True, eq=False)
class Scored:
    """Columns as the tests see them."""

    codes: Codes
    scores: FloatArray
    by_score: BoolArray
    n_codes: IntArray


@dataclass(frozen=True, slots=True)
class Dependence:
    """How much a column has to do with the response: statistic, degrees of freedom, log p-value."""

    column: int
    statistic: float
    freedom: int
    log_p: float

    @property
    def order(self) -> tuple[float, float, int]:
        """The smallest p-value comes first, then the largest statistic, then the lowest column."""
        return self.log_p, -self.statistic, self.column


def dependences(
    columns: Scored, inputs: IntArray, rows: IntArray, response: int
) -> list[Dependence]:
    """The test of each input that varies in a node, the most significant first."""
    codes = columns.codes[np.append(inputs, response)[:, None], rows]
    varies = (codes != codes[:, :1]).any(axis=1)
    varying = inputs[varies[:-1]]
    if not varying.size or not varies[-1]:
        return []
    by_score = columns.by_score[varying]
    found = [
        *_test_scores(columns, varying[by_score], rows, response),
        *_test_levels(columns, varying[~by_score], rows, response),
    ]
    return sorted(found, key=lambda each: each.order)


def _test_scores(
    columns: Scored, inputs: IntArray, rows: IntArray, response: int
) -> list[Dependence]:
    """Inputs with scores, against a number or levels."""
    if not inputs.size:
        return []
    centred = columns.scores[inputs[:, None], rows]
    centred -= centred.mean(axis=1, keepdims=True)
    squares = np.einsum("ij,ij->i", centred, centred)
    if columns.by_score[response]:
        own = columns.scores[response][rows]
        own = own - own.mean()
        products = np.einsum("ij,j->i", centred, own)
        shares, freedom = products * products / (squares * (own * own).sum()), 1
    else:
        groups, sizes = _groups(columns.codes[response][rows], int(columns.n_codes[response]))
        sums = np.array([np.bincount(groups, weights=own, minlength=sizes.size) for own in centred])
        shares, freedom = (sums * sums / sizes).sum(axis=1) / squares, sizes.size - 1
    return [
        _dependence(int(at), (rows.size - 1) * float(share), freedom)
        for at, share in zip(inputs, np.minimum(shares, 1.0), strict=True)
    ]


def _test_levels(
    columns: Scored, inputs: IntArray, rows: IntArray, response: int
) -> list[Dependence]:
    """Categorical inputs, against a number or levels."""
    if not inputs.size:
        return []
    found, n = [], rows.size
    if columns.by_score[response]:
        own = columns.scores[response][rows]
        own = own - own.mean()
        squares = float((own * own).sum())
        for at in inputs:
            groups, sizes = _groups(columns.codes[at][rows], int(columns.n_codes[at]))
            sums = np.bincount(groups, weights=own, minlength=sizes.size)
            share = min(float((sums * sums / sizes).sum()) / squares, 1.0)
            found.append(_dependence(int(at), (n - 1) * share, sizes.size - 1))
        return found
    classes, totals = _groups(columns.codes[response][rows], int(columns.n_codes[response]))
    for at in inputs:
        groups, sizes = _groups(columns.codes[at][rows], int(columns.n_codes[at]))
        phi_squared = max(_sum_of_shares(groups, sizes, classes, totals) - 1.0, 0.0)
        freedom = (sizes.size - 1) * (totals.size - 1)
        found.append(_dependence(int(at), (n - 1) * phi_squared, freedom))
    return found


def _dependence(column: int, statistic: float, freedom: int) -> Dependence:
    return Dependence(column, statistic, freedom, log_survival(statistic, freedom))


def _groups(codes: Codes, n_codes: int) -> tuple[IntArray, IntArray]:
    """The levels of a node, numbered from 0, and how many rows have each."""
    if n_codes > CELLS_PER_ROW * codes.size:
        _, groups, sizes = np.unique(codes, return_inverse=True, return_counts=True)
        return groups.ravel(), sizes
    counts = np.bincount(codes, minlength=n_codes)
    present = counts > 0
    return (np.cumsum(present) - 1)[codes], counts[present]


def _sum_of_shares(groups: IntArray, sizes: IntArray, classes: IntArray, totals: IntArray) -> float:
    """Sum over the cells of a table of count^2 / (row total * column total)."""
    cell = groups * totals.size + classes
    if sizes.size * totals.size <= CELLS_PER_ROW * cell.size:
        counts = np.bincount(cell, minlength=sizes.size * totals.size)
        at = np.flatnonzero(counts)
        counts = counts[at]
    else:
        at, counts = np.unique(cell, return_counts=True)
    expected = sizes[at // totals.size].astype(np.float64) * totals[at % totals.size]
    return float((counts.astype(np.float64) ** 2 / expected).sum())
