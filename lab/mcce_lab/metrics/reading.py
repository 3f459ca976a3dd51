"""Rows to measure, read with the training data, and as a matrix for classifiers and judges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcce import Counterfactuals
from mcce.errors import SchemaError
from mcce.metrics import Evaluator
from mcce.protocols import EncodedRows, FloatArray, IntArray


def as_evaluator(training: Any) -> Evaluator:
    """The evaluator itself, or a new one of a frame of training data."""
    return training if isinstance(training, Evaluator) else Evaluator.fit(training)


def read_rows(rows: Any, evaluator: Evaluator) -> tuple[EncodedRows, IntArray, pd.Index[Any]]:
    """Rows that hold a value, their places among all rows, and the labels of all.

    A row whose cells are all missing stands for "no counterfactual".
    """
    if isinstance(rows, Counterfactuals):
        rows = rows.to_pandas().frame
    elif not isinstance(rows, pd.DataFrame):
        rows = evaluator.schema.encode(rows).frame
    places = np.flatnonzero(rows.notna().any(axis=1))
    return evaluator.schema.encode(rows.iloc[places]), places, rows.index


def read_sample(rows: Any, evaluator: Evaluator, argument: str) -> EncodedRows:
    """Rows to measure as one sample, of which there must be at least one."""
    encoded = read_rows(rows, evaluator)[0]
    if not len(encoded):
        raise SchemaError(f"{argument} has no row that holds a value. Pass at least one.")
    return encoded


def scaled(rows: EncodedRows, position: int) -> FloatArray | None:
    """Values of a feature as shares of its training range; None if only equality counts."""
    feature = rows.schema.features[position]
    if feature.spread == 0 or feature.numbers is None:
        return None
    return (rows.all_numbers[position] - float(np.nanmin(feature.numbers))) / feature.spread


def matrix(evaluator: Evaluator, rows: EncodedRows) -> FloatArray:
    """Rows as a matrix without gaps, shape (n_rows, n_columns).

    A number is scaled to [0, 1] in training. A second column marks it as missing, in which case
    the first holds the training median. A category has a column per level and one for levels not
    in training; two different levels are at Euclidean distance 1.
    """
    parts = []
    for position, feature in enumerate(evaluator.schema.features):
        own, trained = scaled(rows, position), scaled(evaluator.rows, position)
        if own is None or trained is None:
            exact = rows.codes[position]
            codes = np.where(exact < 0, feature.n_codes, exact)
            parts.append((codes[:, None] == np.arange(feature.n_codes + 1)) / np.sqrt(2.0))
            continue
        missing = np.isnan(own)
        parts.append(np.column_stack([np.where(missing, np.nanmedian(trained), own), missing]))
    return np.concatenate(parts, axis=1)
