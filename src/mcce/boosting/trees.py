"""Boosted regression trees: a number predicted from binned columns.

Beyond the paper. The response is centred and made an integer in fixed point; the trees predict what
the mean leaves over (``kernels/reference/_boost.py``). Levels without an order are ordered by their
mean response, once per model, and then split like numbers; rare and unseen levels share one place.

Always true: the order of the training rows changes no bit of a prediction; nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels import (
    Boosting,
    ByteArray,
    Codes,
    Ensemble,
    FloatArray,
    IntArray,
    boost,
    predict_units,
)
from .bins import BinnedColumns

# Bits for sums over all training rows. Nine more are left for the sum of many trees.
SUM_BITS = 54


class BoostedTrees(BaseEstimator):
    """Gradient-boosted regression trees with squared error.

    Examples
    --------
    >>> codes = np.arange(400, dtype=np.int32)[None] // 10
    >>> table = BinnedColumns.learn(codes, np.array([40]), np.array([True]), np.array([False]))
    >>> response = np.where(codes[0] < 20, 1.0, 3.0)
    >>> BoostedTrees().fit(table, response).predict(codes).round(2)[[0, -1]]
    array([1., 3.])
    """

    def __init__(
        self,
        *,
        n_trees: int = 60,
        max_leaves: int = 16,
        min_samples_leaf: int = 10,
        shrinkage: int = 8,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.shrinkage = shrinkage

    def fit(
        self,
        table: BinnedColumns,
        response: FloatArray,
        *,
        inputs: IntArray | None = None,
        rows: IntArray | None = None,
    ) -> Self:
        """Grow the trees."""
        if inputs is None:
            inputs = np.arange(len(table.tables))
        own = response if rows is None else response[rows]
        if not own.size or not np.isfinite(own).all():
            raise ValueError(
                "the response must be finite numbers of at least one row. "
                "Leave out the others with rows=."
            )
        self.low_, self.high_ = float(own.min()), float(own.max())
        units, self.exponent_ = as_units(own)
        self.base_ = int(units.sum() // units.size)
        units -= self.base_
        places, bins = place_bins(table, inputs, rows, units)
        n_bins = np.ascontiguousarray(table.n_bins[inputs])
        boosting = Boosting(self.n_trees, self.max_leaves, self.min_samples_leaf, self.shrinkage)
        own_bins = [
            place[table.tables[column]] for place, column in zip(places, inputs, strict=True)
        ]
        self.ensemble_ = Ensemble(
            nodes=boost(bins, n_bins, units, boosting),
            inputs=inputs.astype(np.int32),
            first=np.cumsum([0, *(part.size for part in own_bins)]),
            bins=np.concatenate([np.empty(0, dtype=np.uint8), *own_bins]),
        )
        return self

    def predict(self, codes: Codes) -> FloatArray:
        """Predict the response of rows."""
        return predict_each([self], codes)[0]


def predict_each(models: Sequence[BoostedTrees], codes: Codes) -> FloatArray:
    """Predict the responses of several models, shape (n_models, n_rows)."""
    codes = np.ascontiguousarray(codes)
    units = np.empty((len(models), codes.shape[1]), dtype=np.int64)
    for at, model in enumerate(models):
        units[at] = predict_units(model.ensemble_, codes) + model.base_
    return _as_responses(models, np.arange(len(models))[:, None], units)


def predict_some(
    models: Sequence[BoostedTrees], codes: Codes, rows: Sequence[IntArray]
) -> FloatArray:
    """Predict the responses of several models to some rows each."""
    codes = np.ascontiguousarray(codes)
    units = [
        predict_units(model.ensemble_, codes, some) + model.base_
        for model, some in zip(models, rows, strict=True)
    ]
    which = np.repeat(np.arange(len(models)), [some.size for some in rows])
    return _as_responses(models, which, np.concatenate([which[:0], *units]))


def _as_responses(models: Sequence[BoostedTrees], which: IntArray, units: IntArray) -> FloatArray:
    """Responses for sums of the trees of models, the base included; which model each is of."""
    low = np.array([model.low_ for model in models])[which]
    high = np.array([model.high_ for model in models])[which]
    exponent = np.array([model.exponent_ for model in models], dtype=np.int32)[which]
    with np.errstate(over="ignore"):
        predicted = np.ldexp(units.astype(np.float64), -exponent) + (low / 2 + high / 2)
    return np.minimum(np.maximum(predicted, low), high)


def as_units(values: FloatArray) -> tuple[IntArray, int]:
    """Values beyond their middle as integers whose sums fit, and the power of two they are in."""
    low, high = float(values.min()), float(values.max())
    centre = low / 2 + high / 2
    largest = max(high - centre, centre - low)
    if largest == 0.0:
        return np.zeros(values.size, dtype=np.int64), 0
    exponent = SUM_BITS - 1 - values.size.bit_length() - math.frexp(largest)[1]
    return np.rint(np.ldexp(values - centre, exponent)).astype(np.int64), exponent


def place_bins(
    table: BinnedColumns, inputs: IntArray, rows: IntArray | None, units: IntArray
) -> tuple[list[ByteArray], ByteArray]:
    """Place of each bin of each input, ordered by mean response, and the places of all rows."""
    places, bins = [], np.empty((inputs.size, units.size), dtype=np.uint8)
    for at, column in enumerate(inputs):
        own = table.bins[column] if rows is None else table.bins[column][rows]
        place = np.arange(table.n_bins[column], dtype=np.uint8)
        if not table.ordered[column]:
            place[_by_mean(own, units, place.size)] = np.arange(place.size)
            own = place[own]
        places.append(place)
        bins[at] = own
    return places, bins


def _by_mean(bins: ByteArray, units: IntArray, n_bins: int) -> IntArray:
    """Bins by mean response, then number; a bin without rows has the mean of all rows, 0."""
    counts, sums = np.bincount(bins, minlength=n_bins), np.zeros(n_bins, dtype=np.int64)
    np.add.at(sums, bins, units)
    return np.argsort(sums / np.maximum(counts, 1), kind="stable")
