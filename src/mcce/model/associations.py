"""Which columns depend on each other: a screen of inputs for tables of many columns.

Beyond the paper. A tree for every column that looks at all others costs the square of the number of
columns. The association of two columns is the phi-squared of their contingency table on at most
2,000 rows: numbers in eight groups of about equally many rows, levels as they are, rare ones
together, less what chance explains. It finds any dependence of two columns, monotone or not. A
column that matters only together with a third is missed.

Always true: the order of the training rows changes nothing; all sums are integers, so
threads change nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import Codes, FloatArray, IntArray, sort_rows
from ..tables.schema import EncodedRows, Schema

# Tables with more columns are wide: there, each column is modelled from so many others at most.
WIDE, MAX_INPUTS = 32, 16
# Rows looked at, groups of the values of an ordered column, and levels that are not put together.
MAX_ROWS, N_GROUPS, MAX_LEVELS = 2_000, 8, 11
# Columns whose tables with all others are computed together, and the unit of phi-squared.
BLOCK, UNIT = 32, 2.0**30


@dataclass(frozen=True, eq=False)
class Associations:
    """How much each two columns have to do with each other.

    Examples
    --------
    >>> import pandas as pd
    >>> x = np.arange(400) % 20
    >>> frame = pd.DataFrame({"x": x, "noise": np.arange(400) // 20, "valley": (x - 10) ** 2})
    >>> found = Associations.of(Schema.learn_rows(frame))
    >>> found.inputs(2, np.array([0, 1]), 1)
    array([0])
    """

    strength: IntArray

    @classmethod
    def of(cls, rows: EncodedRows) -> Associations:
        """The associations of the columns of training rows."""
        schema, chosen = rows.schema, subsample(rows.descent)
        groups = [_group(rows.descent[at, chosen], schema, at) for at in range(len(rows.descent))]
        return cls(_phi_squared(groups))

    def inputs(self, position: int, candidates: IntArray, most: int) -> IntArray:
        """The candidates to predict a column from, at most so many, ascending.

        One after the other, the one most associated with the column for how much it has to do with
        those chosen before: columns that repeat one another would crowd out the rest.
        """
        candidates = np.sort(candidates)
        if candidates.size <= most:
            return candidates
        value = np.maximum(self.strength[position, candidates], 0) / UNIT
        repeated = np.ones(candidates.size)
        chosen = np.zeros(candidates.size, dtype=bool)
        for _ in range(most):
            best = int(np.argmax(np.where(chosen, -1.0, value / repeated)))
            chosen[best] = True
            repeated += np.maximum(self.strength[candidates[best], candidates], 0) / UNIT
        return candidates[chosen]


def is_wide(schema: Schema) -> bool:
    """Whether a table has so many columns that each is modelled from a few others."""
    return len(schema.features) > WIDE


def subsample(codes: Codes) -> IntArray:
    """Places of at most 2,000 rows, evenly from the rows sorted by their codes."""
    step = max(-(-codes.shape[1] // MAX_ROWS), 1)
    return sort_rows(codes)[::step]


def _group(codes: Codes, schema: Schema, position: int) -> IntArray:
    """The group of each cell of a column: values of about equally many rows, or levels."""
    feature = schema.features[position]
    counts = np.bincount(codes, minlength=feature.n_codes)
    if feature.ordered:
        known = counts.copy()
        if feature.has_missing:
            known[-1] = 0
        groups = (np.cumsum(known) - known) * N_GROUPS // max(int(known.sum()), 1)
        if feature.has_missing:
            groups[-1] = N_GROUPS
    else:
        groups = np.full(counts.size, MAX_LEVELS)
        groups[np.argsort(-counts, kind="stable")[:MAX_LEVELS]] = np.arange(
            min(MAX_LEVELS, counts.size)
        )
    _, groups = np.unique(groups[codes], return_inverse=True)
    return groups.astype(np.int64)


def _phi_squared(groups: list[IntArray]) -> IntArray:
    """Phi-squared of each two columns beyond what chance explains."""
    n_rows = groups[0].size if groups else 0
    sizes = np.array([int(own.max(initial=0)) + 1 for own in groups], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)])
    # Counts are exact in float32, in whatever order they are added up.
    cells = np.zeros((first[-1], n_rows), dtype=np.float32)
    for start, own in zip(first, groups, strict=False):
        cells[start + own, np.arange(n_rows)] = 1.0
    total = cells.sum(axis=1, dtype=np.float64)
    strength = np.zeros((sizes.size, sizes.size), dtype=np.int64)
    for begin in range(0, sizes.size, BLOCK):
        end = min(begin + BLOCK, sizes.size)
        some = slice(first[begin], first[end])
        counts = (cells[some] @ cells.T).astype(np.float64)
        terms = np.rint(counts * counts / (total[some, None] * total) * UNIT).astype(np.int64)
        by_column = np.add.reduceat(terms, first[:-1], axis=1)
        strength[begin:end] = np.add.reduceat(by_column, first[begin:end] - first[begin], axis=0)
    return strength - _by_chance(sizes, n_rows)


def _by_chance(sizes: IntArray, n_rows: int) -> IntArray:
    """What the sum of terms would be for independent columns: 1, and the degrees of freedom."""
    freedom: FloatArray = np.multiply.outer(sizes - 1, sizes - 1) / max(n_rows - 1, 1)
    return np.rint((1 + freedom) * UNIT).astype(np.int64)
