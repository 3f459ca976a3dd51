"""Which columns depend on each other: what trees look at, and the order in which they are visited.

Paper, section "Future steps": one might visit the most correlated features first. Beyond the paper,
a screen of inputs for tables of many columns, since a tree for every column that looks at all
others costs the square of their number. There the association of two columns is the phi-squared of
their contingency table on at most 2,000 rows: numbers in eight groups of about equally many rows,
levels as they are, rare ones together, less what chance explains. It finds any dependence of two
columns, monotone or not. A column that matters only together with a third is missed.

Always true: the order of the training rows changes nothing; all sums are integers, so
threads change nothing either.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParameterError, SavedFileError, shorten
from ..kernels import BoolArray, Codes, FloatArray, IntArray, sort_rows
from ..tables.schema import EncodedRows, Schema

# In wide tables, each column is modelled from at most this many others.
MAX_INPUTS = 16
# Rows looked at, groups of the values of an ordered column, and levels that are not put together.
MAX_ROWS, N_GROUPS, MAX_LEVELS = 2_000, 8, 11
# Columns whose tables with all others are computed together, and the unit of phi-squared.
BLOCK, UNIT = 32, 2.0**30
# Associations of the visit order are rounded, so that the last bit of a sum cannot break a tie.
DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Associations:
    """How strongly each two columns are associated.

    Examples
    --------
    >>> import pandas as pd
    >>> x = np.arange(400) % 20
    >>> frame = pd.DataFrame({"x": x, "noise": np.arange(400) // 20, "valley": (x - 10) ** 2})
    >>> associations = Associations.of(Schema.learn_rows(frame))
    >>> associations.inputs(2, np.array([0, 1]), 1)
    array([0])
    """

    strength: IntArray

    @classmethod
    def of(cls, rows: EncodedRows) -> Associations:
        """The associations of the columns of training rows."""
        schema, chosen = rows.schema, subsample(rows.tree_codes)
        groups = [_group(own[chosen], schema, at) for at, own in enumerate(rows.tree_codes)]
        return cls(_phi_squared(groups))

    def inputs(self, column: int, candidates: IntArray, most: int) -> IntArray:
        """The candidates to predict a column from, at most ``most``, ascending.

        Greedily: the candidate with the largest association to the column, divided by its
        association with those already chosen. Columns that repeat one another would crowd out the
        rest.
        """
        candidates = np.sort(candidates)
        if candidates.size <= most:
            return candidates
        value = np.maximum(self.strength[column, candidates], 0) / UNIT
        repeated = np.ones(candidates.size)
        chosen = np.zeros(candidates.size, dtype=bool)
        for _ in range(most):
            best = int(np.argmax(np.where(chosen, -1.0, value / repeated)))
            chosen[best] = True
            repeated += np.maximum(self.strength[candidates[best], candidates], 0) / UNIT
        return candidates[chosen]


def subsample(codes: Codes) -> IntArray:
    """At most 2,000 rows, evenly from those sorted by their codes."""
    return thin_out(sort_rows(codes))


def thin_out(ordered: IntArray) -> IntArray:
    """At most 2,000 of the rows in this order, evenly."""
    return ordered[:: max(-(-ordered.size // MAX_ROWS), 1)]


def _group(codes: Codes, schema: Schema, column: int) -> IntArray:
    """The group of each cell of a column: values of about equally many rows, or levels."""
    feature = schema.features[column]
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
        block = slice(first[begin], first[end])
        counts = (cells[block] @ cells.T).astype(np.float64)
        terms = np.rint(counts * counts / (total[block, None] * total) * UNIT).astype(np.int64)
        by_column = np.add.reduceat(terms, first[:-1], axis=1)
        strength[begin:end] = np.add.reduceat(by_column, first[begin:end] - first[begin], axis=0)
    return strength - _by_chance(sizes, n_rows)


def _by_chance(sizes: IntArray, n_rows: int) -> IntArray:
    """What the sum of terms would be for independent columns: 1, and the degrees of freedom."""
    freedom: FloatArray = np.multiply.outer(sizes - 1, sizes - 1) / max(n_rows - 1, 1)
    return np.rint((1 + freedom) * UNIT).astype(np.int64)


def visit_order(
    order: str | Sequence[Hashable], rows: EncodedRows, is_desired: BoolArray | None
) -> IntArray:
    """Positions of the mutable features in the order they are modelled."""
    schema = rows.schema
    if isinstance(order, str) and order == "data":
        return schema.mutable
    if isinstance(order, str) and order == "correlation":
        return _by_association(rows, is_desired)
    return named_order(order, schema)


def check_order(order: str | Sequence[Hashable], saved: IntArray, schema: Schema) -> None:
    """Raise unless the visit order in a saved file could come from this parameter."""
    if isinstance(order, str) and order == "correlation":
        return
    by_data = isinstance(order, str) and order == "data"
    expected = schema.mutable if by_data else named_order(order, schema)
    if not np.array_equal(saved, expected):
        raise SavedFileError("the visit order is not that of the generator")


def named_order(names: Any, schema: Schema) -> IntArray:
    """Positions of all mutable features in the order in which they are named."""
    mutable = [schema.names[column] for column in schema.mutable]
    listed = isinstance(names, (list, tuple)) and all(isinstance(name, Hashable) for name in names)
    if not listed or len(names) != len(mutable) or set(names) != set(mutable):
        raise ParameterError(
            'visit_order must be "data", "correlation" or a list that names every mutable column '
            f"once: expected some order of {shorten(mutable, 500)}, got {shorten(names)}."
        )
    return np.array([schema.names.index(name) for name in names], dtype=np.int64)


def _by_association(rows: EncodedRows, is_desired: BoolArray | None) -> IntArray:
    """Greedily the unvisited feature with the largest mean association to the visited ones."""
    cells: list[np.ndarray] = []
    for column, codes in enumerate(rows.tree_codes):
        numbers = rows.numbers(column)
        cells.append(codes.astype(np.int64) if numbers is None else numbers)
    visited = [cells[column] for column in rows.schema.immutable]
    if is_desired is not None:
        visited.append(is_desired.astype(np.int64))
    waiting, order = list(rows.schema.mutable), []
    while waiting:
        strengths = [
            np.mean([association(cells[column], other) for other in visited] or [0.0])
            for column in waiting
        ]
        best = waiting.pop(int(np.argmax([round(float(mean), DECIMALS) for mean in strengths])))
        order.append(best)
        visited.append(cells[best])
    return np.array(order, dtype=np.int64)


def association(first: np.ndarray, second: np.ndarray) -> float:
    """Strength of association in [0, 1] of two columns, 0 where one is constant.

    Absolute Pearson correlation of two numeric columns, correlation ratio of a numeric and a
    categorical one, bias-corrected Cramér's V of two categorical ones. Rows with a missing number
    are left out.

    Parameters
    ----------
    first, second : (n_rows,)
        Floats are numbers, NaN where missing; whole numbers are levels, 0 or more.

    Returns
    -------
    float

    Examples
    --------
    >>> association(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))
    1.0
    """
    if second.dtype.kind == "f":
        first, second = second, first
    if first.dtype.kind != "f":
        return _cramer(first, second)
    kept = ~np.isnan(first)
    if second.dtype.kind == "f":
        kept &= ~np.isnan(second)
        return _pearson(first[kept], second[kept])
    return _correlation_ratio(first[kept], second[kept])


def _pearson(a: FloatArray, b: FloatArray) -> float:
    if not a.size:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a * a).sum() * (b * b).sum())
    return float(min(abs((a * b).sum()) / scale, 1.0)) if scale > 0 else 0.0


def _correlation_ratio(numbers: FloatArray, levels: IntArray) -> float:
    """Square root of the share of variance that lies between the levels."""
    if not numbers.size:
        return 0.0
    centred = numbers - numbers.mean()
    total = (centred * centred).sum()
    if total == 0:
        return 0.0
    counts = np.bincount(levels)
    sums = np.bincount(levels, weights=centred)
    between = (sums[counts > 0] ** 2 / counts[counts > 0]).sum()
    return float(np.sqrt(min(between / total, 1.0)))


def _cramer(a: IntArray, b: IntArray) -> float:
    """Cramér's V with Bergsma's correction for bias."""
    n = a.size
    _, a = np.unique(a, return_inverse=True)
    _, b = np.unique(b, return_inverse=True)
    n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
    if n_a == 1 or n_b == 1:
        return 0.0
    seen, counts = np.unique(a * n_b + b, return_counts=True)
    expected = np.bincount(a)[seen // n_b] * np.bincount(b)[seen % n_b] / n
    phi2 = float((counts * counts / expected).sum()) / n - 1.0
    phi2 = max(0.0, phi2 - (n_a - 1) * (n_b - 1) / (n - 1))
    width = min(n_a - (n_a - 1) ** 2 / (n - 1), n_b - (n_b - 1) ** 2 / (n - 1)) - 1
    return float(np.sqrt(min(phi2 / width, 1.0))) if width > 0 else 0.0
