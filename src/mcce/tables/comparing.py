"""How two sets of rows of one schema differ, cell by cell.

Always true: a change is an exact difference; of two cells one missing differs by 1, both by 0; a
number differs by its distance over the training range, everything else by 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import BoolArray, FloatArray, gower_gap
from .columns import as_numbers, differ
from .schema import EncodedRows


def changed_cells(before: EncodedRows, after: EncodedRows) -> BoolArray:
    """Which cells differ, shape (n_features, n_rows)."""
    columns = zip(before.frame.items(), after.frame.items(), strict=True)
    return np.array([differ(old, new) for (_, old), (_, new) in columns])


def gower_gaps(before: EncodedRows, after: EncodedRows) -> FloatArray:
    """How far apart cells are in shares of the training range, shape (n_features, n_rows)."""
    differs = changed_cells(before, after)
    return np.array(
        [
            gower_gap(
                own_numbers(after, position),
                own_numbers(before, position),
                feature.spread,
                differs[position],
            )
            for position, feature in enumerate(after.schema.features)
        ]
    )


def own_numbers(rows: EncodedRows, position: int) -> FloatArray | None:
    """Values of a feature in the unit of training; None if only equality counts.

    That is so for a category and for a number that is constant in training.
    """
    feature = rows.schema.features[position]
    if feature.spread == 0:
        return None
    return as_numbers(rows.frame.iloc[:, position], feature.table.dtype)


def check_same_order(factuals: pd.Index[Any], answers: pd.Index[Any]) -> None:
    """Raise if labels say that rows, which are matched by position, stand in another order."""
    numbered = answers.equals(pd.RangeIndex(len(answers)))
    if numbered or factuals.equals(answers) or not (factuals.is_unique and answers.is_unique):
        return
    # Labels of other kinds, such as those of people and of their answers by rank, match nothing.
    if set(factuals) <= set(answers):
        raise SchemaError(
            "factuals and counterfactuals have the same labels in another order, but rows are "
            "matched by position. Pass counterfactuals.loc[factuals.index]."
        )
