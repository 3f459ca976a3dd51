"""Columns of codes in at most 255 bins, learned once per table and shared by all models on it.

Beyond the paper. The codes of a number or an ordered category are cut into bins of about equally
many rows; a code of many rows has a bin of its own, and so has missing, after all others. Levels
without an order keep a bin each if they are frequent; rare ones share the last bin with levels that
training never held.

Always true: a bin depends on how often each code occurs, never on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..caching import cached_property
from ..kernels import BoolArray, ByteArray, Codes, IntArray, sort_rows
from ..tables.schema import EncodedRows

MAX_BINS = 255
# Columns with more codes get bins of about so many rows each, but at least so many bins.
ROWS_PER_BIN, MIN_BINS = 20, 64
N_COARSE = 32
# Levels with fewer rows are rare.
RARE = 10


@dataclass(frozen=True, eq=False)
class BinnedColumns:
    """The bins of some training rows, and how codes become bins.

    Examples
    --------
    >>> codes = np.array([[0, 1, 2, 2], [1, 0, 0, 1]], dtype=np.int32)
    >>> ordered, has_missing = np.array([True, True]), np.array([True, False])
    >>> table = BinnedColumns.learn(codes, np.array([3, 2]), ordered, has_missing)
    >>> table.bins.tolist(), table.n_bins.tolist()
    ([[0, 1, 2, 2], [1, 0, 0, 1]], [3, 2])
    """

    codes: Codes
    ordered: BoolArray
    tables: list[ByteArray]

    @classmethod
    def of(cls, rows: EncodedRows, max_bins: int = MAX_BINS) -> BinnedColumns:
        """The bins of encoded training rows."""
        features = rows.schema.features
        return cls.learn(
            rows.descent,
            np.array([feature.n_codes for feature in features], dtype=np.int64),
            np.array([feature.ordered for feature in features], dtype=bool),
            np.array([feature.has_missing for feature in features], dtype=bool),
            max_bins,
        )

    @classmethod
    def learn(
        cls,
        codes: Codes,
        n_codes: IntArray,
        ordered: BoolArray,
        has_missing: BoolArray,
        max_bins: int = MAX_BINS,
    ) -> BinnedColumns:
        """The bins of codes."""
        tables = []
        for column, own in enumerate(codes):
            counts = np.bincount(own, minlength=int(n_codes[column]))
            if ordered[column]:
                tables.append(_bin_ordered(counts, bool(has_missing[column]), max_bins))
            else:
                tables.append(_bin_levels(counts, max_bins))
        return cls(codes, ordered, tables)

    @cached_property
    def bins(self) -> ByteArray:
        """Bin of each row in each column, shape (n_columns, n_rows)."""
        bins = np.empty(self.codes.shape, dtype=np.uint8)
        for column, table in enumerate(self.tables):
            bins[column] = table[self.codes[column]]
        return bins

    @cached_property
    def n_bins(self) -> Codes:
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
        for column in self.codes:
            ascending = column[order]
            differs |= ascending[1:] != ascending[:-1]
        rank[order[1:]] = np.cumsum(differs)
        return rank


def _bin_ordered(counts: IntArray, has_missing: bool, max_bins: int) -> ByteArray:
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
    frequent[by_count[counts[by_count] >= RARE]] = True
    bins = np.full(counts.size + 1, frequent.sum())
    bins[:-1][frequent] = np.arange(frequent.sum())
    return bins.astype(np.uint8)
