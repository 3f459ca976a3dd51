"""What a tree of a feature may split on, and what it predicts.

Paper, section "Model": CART with every kind of column. Shared by the chain and by the trees of
levels that plausibility uses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels import BoolArray, Classes, Codes, Columns, Numbers, fixed_point
from ..tables.schema import EncodedRows, Schema


def with_decision(codes: Codes, decision: BoolArray | None) -> Codes:
    """The decision as one more column, after all features; None is the desired one."""
    if decision is None:
        decision = np.ones(codes.shape[1], dtype=bool)
    return np.vstack([codes, decision[None, :].astype(np.int32)])


def split_columns(schema: Schema, codes: Codes | Sequence[Codes]) -> Columns:
    """How each column may be split; the decision, if it comes last, is a number."""
    features, decision = schema.features, [True] * (len(codes) - len(schema.features))
    return Columns(
        codes=codes,
        by_set=np.array([f.kind == "categorical" for f in features] + [False for _ in decision]),
        ordered=np.array([f.ordered for f in features] + decision),
        n_codes=np.array([f.n_codes for f in features] + [2 for _ in decision]),
    )


def tree_response(rows: EncodedRows, position: int) -> Numbers | Classes:
    """What the tree of a feature predicts: classes, or numbers with missing above the rest."""
    feature = rows.schema.features[position]
    numbers = rows.numbers(position)
    if numbers is None:
        return Classes(rows.descent[position].astype(np.int64), feature.n_codes)
    missing = np.isnan(numbers)
    if missing.all():
        return Numbers(np.zeros(numbers.size, dtype=np.int64))
    numbers[missing] = np.nanmax(numbers) + feature.spread
    return Numbers(fixed_point(numbers))
