"""Boosted regression trees: a number predicted from binned columns.

Beyond the paper. Bin the columns once per table, then fit any number of models on it::

    table = BinnedColumns.of(rows)  # rows: EncodedRows of training
    inputs = screen(table, response, candidates)  # at most 16 useful columns
    model = BoostedTrees.fit(table, response, inputs=inputs)
    model.predict(other.tree_codes)  # (n_rows,), in units of the response

Bins: the codes of a number or an ordered category are cut into bins of about equally many rows; a
code of many rows has a bin of its own, and so has missing, after all others. Frequent levels
without an order have a bin each; rare ones share the last with levels that training never held.
Trees: the response is made an integer in fixed point, and the trees predict what its mean leaves
over. Levels without an order are ordered by their mean response, once per model.

Always true: neither the order of the training rows nor the machine changes a bit of a prediction;
nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..caching import cached_property
from ..errors import SavedFileError
from ..kernels import (
    BoolArray,
    BoostedNodes,
    Boosting,
    ByteArray,
    Codes,
    Ensemble,
    FloatArray,
    Int32Array,
    IntArray,
    boost,
    predict_units,
    sort_rows,
)
from ..model.associations import thin_out
from ..tables.schema import EncodedRows

# Bits for sums over all training rows. Nine more are left for the sum of many trees.
SUM_BITS = 54
# Bins of a column.
MAX_BINS = 255
# Columns with more codes get bins of about this many rows each, but at least this many bins.
ROWS_PER_BIN, MIN_BINS = 20, 64
# Groups of bins that the screen looks at.
N_COARSE = 32
# Levels with fewer rows are rare.
RARE_LEVEL_ROWS = 10
# The trees of the screen.
SCREEN_TREES = Boosting(n_trees=24, max_leaves=8, min_samples_leaf=10, shrinkage=4)
# The arrays and numbers of a saved model.
NODES = {
    "roots": np.int32,
    "feature": np.int32,
    "cut": np.int32,
    "left": np.int32,
    "value": np.int64,
}
INPUTS = {"inputs": np.int32, "bins": np.uint8}
SCALE = ("base", "exponent", "low", "high")
# A response between the smallest and the largest float has a scale between these powers of two.
MAX_EXPONENT = 1200


@dataclass(frozen=True, eq=False)
class BinnedColumns:
    """The bins of some training rows, and how codes become bins.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> frame = pd.DataFrame({"age": [30, 40, None, None], "home": [20, 10, 10, 20]})
    >>> table = BinnedColumns.of(Schema.learn_rows(frame))
    >>> table.bins.tolist(), table.n_bins.tolist()
    ([[0, 1, 2, 2], [1, 0, 0, 1]], [3, 2])
    """

    codes: Codes
    ordered: BoolArray
    tables: list[ByteArray]

    @classmethod
    def of(cls, rows: EncodedRows, max_bins: int = MAX_BINS) -> BinnedColumns:
        """The bins of encoded training rows."""
        tables = []
        for feature, codes in zip(rows.schema.features, rows.tree_codes, strict=True):
            counts = np.bincount(codes, minlength=feature.n_codes)
            if feature.ordered:
                tables.append(bin_ordered(counts, feature.has_missing, max_bins))
            else:
                tables.append(_bin_levels(counts, max_bins))
        ordered = np.array([feature.ordered for feature in rows.schema.features], dtype=bool)
        return cls(rows.tree_codes, ordered, tables)

    @cached_property
    def bins(self) -> ByteArray:
        """Bin of each row in each column, shape (n_columns, n_rows)."""
        bins = np.empty(self.codes.shape, dtype=np.uint8)
        for column, table in enumerate(self.tables):
            bins[column] = table[self.codes[column]]
        return bins

    @cached_property
    def n_bins(self) -> Int32Array:
        """Number of bins of each column."""
        return np.array([int(table.max(initial=0)) + 1 for table in self.tables], dtype=np.int32)

    @cached_property
    def coarse(self) -> list[ByteArray]:
        """Group of each bin, about 32 of about equally many rows; levels stay as they are."""
        groups = []
        for own, n_bins, ordered in zip(self.bins, self.n_bins, self.ordered, strict=True):
            if n_bins <= N_COARSE or not ordered:
                groups.append(np.arange(n_bins, dtype=np.uint8))
                continue
            counts = np.bincount(own, minlength=n_bins)
            group = (np.cumsum(counts) - counts) * N_COARSE // max(own.size, 1)
            groups.append(np.cumsum(np.diff(group, prepend=0) != 0).astype(np.uint8))
        return groups

    @cached_property
    def rank(self) -> IntArray:
        """Rank of each row in an order that depends on its codes alone; equal rows share one."""
        rank = np.zeros(self.codes.shape[1], dtype=np.int64)
        if not self.codes.size:
            return rank
        order = sort_rows(self.codes)
        differs = np.zeros(order.size - 1, dtype=bool)
        for codes in self.codes:
            ascending = codes[order]
            differs |= ascending[1:] != ascending[:-1]
        rank[order[1:]] = np.cumsum(differs)
        return rank


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Gradient-boosted regression trees with squared error.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> frame = pd.DataFrame({"age": np.arange(400) // 10})
    >>> table = BinnedColumns.of(Schema.learn_rows(frame))
    >>> response = np.where(frame["age"] < 20, 1.0, 3.0)
    >>> BoostedTrees.fit(table, response).predict(table.codes).round(2)[[0, -1]]
    array([1., 3.])
    """

    ensemble: Ensemble
    # The trees add up to units of 2**-exponent around the middle of the range, without the base.
    base: int
    exponent: int
    low: float
    high: float

    @classmethod
    def fit(
        cls,
        table: BinnedColumns,
        response: FloatArray,
        boosting: Boosting | None = None,
        *,
        inputs: IntArray | None = None,
        row_numbers: IntArray | None = None,
    ) -> BoostedTrees:
        """Grow the trees."""
        if inputs is None:
            inputs = np.arange(len(table.tables))
        own = response if row_numbers is None else response[row_numbers]
        if not own.size or not np.isfinite(own).all():
            raise ValueError(
                "the response must be finite numbers of at least one row. "
                "Leave out the others with row_numbers=."
            )
        units, exponent = as_units(own)
        base = int(units.sum() // units.size)
        units -= base
        ranks, bins = rank_bins(table, inputs, row_numbers, units)
        n_bins = np.ascontiguousarray(table.n_bins[inputs])
        bin_of = [rank[table.tables[column]] for rank, column in zip(ranks, inputs, strict=True)]
        ensemble = Ensemble(
            nodes=boost(bins, n_bins, units, boosting or Boosting()),
            inputs=inputs.astype(np.int32),
            first=np.cumsum([0, *(part.size for part in bin_of)]),
            bins=np.concatenate([np.empty(0, dtype=np.uint8), *bin_of]),
        )
        return cls(ensemble, base, exponent, float(own.min()), float(own.max()))

    def predict(self, codes: Codes) -> FloatArray:
        """Predict the response of rows."""
        return predict_each([self], codes)[0]


def predict_each(models: Sequence[BoostedTrees], codes: Codes) -> FloatArray:
    """Predict the responses of several models, shape (n_models, n_rows)."""
    row_numbers = np.arange(codes.shape[1])
    predicted = predict_some(models, codes, [row_numbers] * len(models))
    return predicted.reshape(len(models), row_numbers.size)


def predict_some(
    models: Sequence[BoostedTrees], codes: Codes, row_numbers: Sequence[IntArray]
) -> FloatArray:
    """Predict the responses of several models to some rows each."""
    codes = np.ascontiguousarray(codes)
    units = [
        predict_units(model.ensemble, codes, own_rows) + model.base
        for model, own_rows in zip(models, row_numbers, strict=True)
    ]
    sizes = [own_rows.size for own_rows in row_numbers]
    low, high, exponent = (
        np.repeat([getattr(model, name) for model in models], sizes)
        for name in ("low", "high", "exponent")
    )
    with np.errstate(over="ignore"):
        predicted = np.ldexp(np.concatenate(units).astype(np.float64), -exponent.astype(np.int32))
        predicted += low / 2 + high / 2
    return np.minimum(np.maximum(predicted, low), high)


def screen(
    table: BinnedColumns,
    response: FloatArray,
    candidates: IntArray,
    *,
    row_numbers: IntArray | None = None,
    most: int = 16,
) -> IntArray:
    """The columns that a model of a response should use.

    A model of every column from all others costs the square of the number of columns. So a few
    coarse trees on at most 2,000 rows look at all columns, and only those that they split on are
    used. Trees look for what the others left over, so columns that repeat one another do not crowd
    out the rest, and a column that matters together with another is found below it.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> frame = pd.DataFrame(np.random.default_rng(0).integers(0, 50, (3000, 30)))
    >>> table = BinnedColumns.of(Schema.learn_rows(frame))
    >>> screen(table, 1.0 * table.codes[3] * table.codes[7], np.arange(30), most=2)
    array([3, 7])
    """
    if candidates.size <= most:
        return candidates
    if row_numbers is None:
        row_numbers = np.arange(response.size)
    chosen = _subsample(table, response, row_numbers)
    if not chosen.size:
        return candidates[:most]
    units, _ = as_units(response[chosen])
    units -= units.sum() // units.size
    _, bins = rank_bins(table, candidates, chosen, units)
    coarse = [table.coarse[column] for column in candidates]
    bins = np.array([group[own] for group, own in zip(coarse, bins, strict=True)])
    n_bins = np.array([group[-1] + 1 for group in coarse], dtype=np.int32)
    nodes = boost(bins, n_bins, units, SCREEN_TREES)
    inner = nodes.gain > 0.0
    gains = np.bincount(nodes.feature[inner], nodes.gain[inner], minlength=candidates.size)
    best = np.argsort(-gains, kind="stable")[:most]
    return np.sort(candidates[best[gains[best] > 0.0]])


def pack_boosted(model: BoostedTrees) -> dict[str, Any]:
    """What a model learned, by name; its parameters and the gains of its splits are left out."""
    ensemble = model.ensemble
    return {
        **{name: getattr(ensemble.nodes, name) for name in NODES},
        **{name: getattr(ensemble, name) for name in INPUTS},
        **{name: getattr(model, name) for name in SCALE},
    }


def unpack_boosted(plain: Any, n_codes: IntArray) -> BoostedTrees:
    """The model of what :func:`pack_boosted` gave; raises SavedFileError for anything else.

    The arrays may come from an unknown file. They are accepted only if the compiled kernel accepts
    them, and every input has a bin for each of its codes.
    """
    names = {*NODES, *INPUTS, *SCALE}
    if not isinstance(plain, Mapping) or set(plain) != names:
        raise SavedFileError("boosted trees have other entries")
    for name, dtype in {**NODES, **INPUTS}.items():
        array = plain[name]
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
            raise SavedFileError("the arrays of boosted trees have other dtypes or shapes")
    scale = [plain[name] for name in SCALE]
    _check_scale(*scale)
    return BoostedTrees(_ensemble(plain, n_codes), *scale)


def as_units(values: FloatArray) -> tuple[IntArray, int]:
    """Values minus their middle as integers, in units of 2**-exponent; and that exponent."""
    low, high = float(values.min()), float(values.max())
    centre = low / 2 + high / 2
    largest = max(high - centre, centre - low)
    if largest == 0.0:
        return np.zeros(values.size, dtype=np.int64), 0
    exponent = SUM_BITS - 1 - values.size.bit_length() - math.frexp(largest)[1]
    return np.rint(np.ldexp(values - centre, exponent)).astype(np.int64), exponent


def rank_bins(
    table: BinnedColumns, inputs: IntArray, row_numbers: IntArray | None, units: IntArray
) -> tuple[list[ByteArray], ByteArray]:
    """Rank of each bin of each input by mean response, and the rank of the bin of each row."""
    ranks, ranked = [], np.empty((inputs.size, units.size), dtype=np.uint8)
    for row_ranks, column in zip(ranked, inputs, strict=True):
        bins = table.bins[column] if row_numbers is None else table.bins[column][row_numbers]
        rank = np.arange(table.n_bins[column], dtype=np.uint8)
        if not table.ordered[column]:
            rank[_by_mean(bins, units, rank.size)] = np.arange(rank.size)
            bins = rank[bins]
        ranks.append(rank)
        row_ranks[:] = bins
    return ranks, ranked


def _by_mean(bins: ByteArray, units: IntArray, n_bins: int) -> IntArray:
    """Bins by mean response, then number; a bin without rows has the mean of all rows, 0."""
    counts, sums = np.bincount(bins, minlength=n_bins), np.zeros(n_bins, dtype=np.int64)
    np.add.at(sums, bins, units)
    return np.argsort(sums / np.maximum(counts, 1), kind="stable")


def _subsample(table: BinnedColumns, response: FloatArray, row_numbers: IntArray) -> IntArray:
    """At most 2,000 of the rows, evenly from those sorted by their codes, then response."""
    return thin_out(row_numbers[np.lexsort((response[row_numbers], table.rank[row_numbers]))])


def bin_ordered(counts: IntArray, has_missing: bool, max_bins: int) -> ByteArray:
    """Bin of each code of an ordered column, and of an unseen level: that of the median row."""
    known = counts[:-1] if has_missing else counts
    most = max_bins - has_missing
    if known.size <= most:
        bins = np.arange(known.size)
    else:
        bins = _even_bins(known, min(most, max(int(known.sum()) // ROWS_PER_BIN, MIN_BINS)))
    n_bins = int(bins[-1]) + 1 if known.size else 0
    unseen = bins[np.searchsorted(np.cumsum(known), known.sum() / 2)] if known.size else n_bins
    return np.concatenate([bins, [n_bins] * has_missing, [unseen]]).astype(np.uint8)


def _even_bins(counts: IntArray, most: int) -> IntArray:
    """Bins of about equally many rows, but one for each code that fills several."""
    large = counts * (most // 4) > counts.sum()
    # A large code may cut a bin in two.
    n_shared = most - 2 * int(large.sum())
    small = np.where(large, 0, counts)
    before = np.cumsum(small) - small
    shared = before * n_shared // max(int(small.sum()), 1)
    key = 2 * np.cumsum(large) - large + np.minimum(shared, n_shared - 1) * (2 * large.size)
    return np.cumsum(np.diff(key, prepend=key[:1]) != 0)


def _bin_levels(counts: IntArray, max_bins: int) -> ByteArray:
    """Bin of each level: its own for the most frequent, the last for all others."""
    by_count = np.argsort(-counts, kind="stable")[: max_bins - 1]
    frequent = np.zeros(counts.size, dtype=bool)
    frequent[by_count[counts[by_count] >= RARE_LEVEL_ROWS]] = True
    bins = np.full(counts.size + 1, frequent.sum())
    bins[:-1][frequent] = np.arange(frequent.sum())
    return bins.astype(np.uint8)


def _check_scale(base: Any, exponent: Any, *ends: Any) -> None:
    whole = type(base) is int and type(exponent) is int
    if not whole or abs(base) >= 2**62 or abs(exponent) > MAX_EXPONENT:
        raise SavedFileError("the scale of boosted trees is out of range")
    if not all(type(end) is float and math.isfinite(end) for end in ends) or ends[0] > ends[1]:
        raise SavedFileError("the range of boosted trees is no interval")


def _ensemble(plain: Mapping[str, Any], n_codes: IntArray) -> Ensemble:
    inputs = plain["inputs"]
    if inputs.size and (
        inputs[0] < 0 or inputs[-1] >= n_codes.size or (np.diff(inputs) <= 0).any()
    ):
        raise SavedFileError("the inputs of boosted trees are not ascending columns")
    # One bin more, for a level that training never held.
    first = np.cumsum(np.append(0, n_codes[inputs] + 1))
    gain = np.zeros(plain["feature"].size)
    nodes = BoostedNodes(**{name: plain[name] for name in NODES}, gain=gain)
    ensemble = Ensemble(nodes, inputs, first, plain["bins"])
    try:
        _ = ensemble.bound
    except ValueError as error:
        raise SavedFileError(f"boosted trees are not whole: {error}") from None
    return ensemble
