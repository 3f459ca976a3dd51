"""The visit sequence: in which order the chain models the mutable features.

Paper, section "Future steps": one might visit the most correlated features first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParameterError, SavedFileError, shorten
from ..kernels import BoolArray, FloatArray, IntArray
from ..tables.schema import EncodedRows, Schema

DECIMALS = 12


def visit_order(
    order: str | Sequence[Hashable], rows: EncodedRows, decision: BoolArray | None
) -> IntArray:
    """Positions of the mutable features in the order they are modelled."""
    schema = rows.schema
    if isinstance(order, str) and order == "data":
        return schema.mutable
    if isinstance(order, str) and order == "correlation":
        return _by_association(rows, decision)
    return named_order(order, schema)


def check_order(order: str | Sequence[Hashable], saved: IntArray, schema: Schema) -> None:
    """Raise unless positions in a saved file could come from this parameter."""
    if isinstance(order, str) and order == "correlation":
        return
    by_data = isinstance(order, str) and order == "data"
    expected = schema.mutable if by_data else named_order(order, schema)
    if not np.array_equal(saved, expected):
        raise SavedFileError("the visit order is not that of the generator")


def named_order(names: Any, schema: Schema) -> IntArray:
    """Positions of all mutable features in the order in which they are named."""
    mutable = [schema.names[position] for position in schema.mutable]
    listed = isinstance(names, (list, tuple)) and all(isinstance(name, Hashable) for name in names)
    if not listed or len(names) != len(mutable) or set(names) != set(mutable):
        raise ParameterError(
            'visit_order must be "data", "correlation" or a list that names every mutable column '
            f"once: expected some order of {shorten(mutable, 500)}, got {shorten(names)}."
        )
    return np.array([schema.names.index(name) for name in names], dtype=np.int64)


def _by_association(rows: EncodedRows, decision: BoolArray | None) -> IntArray:
    """Greedily the unvisited feature with the largest mean association to the visited ones."""
    columns: list[Column] = [
        _column(rows, position) for position in range(len(rows.schema.features))
    ]
    visited = [columns[position] for position in rows.schema.immutable]
    if decision is not None:
        visited.append(CategoricalColumn(decision.astype(np.int64)))
    waiting = list(rows.schema.mutable)
    order = []
    while waiting:
        # Rounded, so that the last bit of a sum over rows in another order cannot turn a tie.
        scores = [
            round(float(np.mean([association(columns[w], v) for v in visited] or [0.0])), DECIMALS)
            for w in waiting
        ]
        best = waiting.pop(int(np.argmax(scores)))
        order.append(best)
        visited.append(columns[best])
    return np.array(order, dtype=np.int64)


@dataclass(frozen=True)
class NumericColumn:
    """A numeric column, NaN for missing."""

    values: FloatArray


@dataclass(frozen=True)
class CategoricalColumn:
    """A categorical column by the numbers of its levels, missing being one of them."""

    codes: IntArray


Column = NumericColumn | CategoricalColumn


def _column(rows: EncodedRows, position: int) -> Column:
    numbers = rows.numbers(position)
    return (
        CategoricalColumn(rows.descent[position].astype(np.int64))
        if numbers is None
        else NumericColumn(numbers)
    )


def association(first: Column, second: Column) -> float:
    """Strength of association in [0, 1] of two columns, 0 where one is constant.

    Absolute Pearson correlation of two numeric columns, correlation ratio of a numeric and a
    categorical one, bias-corrected Cramér's V of two categorical ones. Rows with a missing number
    are left out.
    """
    match first, second:
        case NumericColumn(a), NumericColumn(b):
            kept = ~(np.isnan(a) | np.isnan(b))
            return _pearson(a[kept], b[kept])
        case NumericColumn(a), CategoricalColumn(codes):
            kept = ~np.isnan(a)
            return _correlation_ratio(a[kept], codes[kept])
        case CategoricalColumn(codes), CategoricalColumn(others):
            return _cramer(codes, others)
        case _:
            return association(second, first)


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
