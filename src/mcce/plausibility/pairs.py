"""Pairs nobody has: values of two columns that no training row holds together.

Beyond the paper. A pair of values is empty if no training row, accepted or not, has it, although
many rows would if the columns were unrelated: at least ``MIN_EXPECTED``, and so many that only one
of 10,000 tables of unrelated columns has such a pair. A value is a level, a number, a quantile bin
if a column has many numbers, or missing. Single bins are often too rare to tell. So groups of 2, 4,
8 and 16 adjacent ones are paired with the values of columns that are not binned; they need twice as
many rows, since a group says less of each of its values. In tables of over 126 columns, each is
paired with those that it is most associated with.

Always true: the order of the training rows changes nothing; neither a value that training never
held nor a pair of two own values of the person is ever held against a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..boosting.trees import MAX_BINS, bin_ordered
from ..caching import cached_property
from ..kernels import BoolArray, ByteArray, Codes, FloatArray, IntArray
from ..model.associations import Associations
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema

# Rows that chance would have given an empty pair, at least, and the probability that a table of
# unrelated columns has one.
MIN_EXPECTED, CHANCE = 12.0, 1e-4
# A group of bins is empty only if chance would have given it this many times more.
TIMES_IN_GROUPS = 2.0
# Bins of the known values of a number, and of a group.
N_BINS, GROUP_SIZES = 32, (2, 4, 8, 16)
# Up to this many pairs of columns are all tried; of more, each column is paired with so many.
MAX_PAIRS, N_PARTNERS = 8_000, 16
# The bin of unseen values and levels of too few rows, which are never held against a row.
NOT_TESTED = 0


@dataclass(frozen=True, eq=False)
class EmptyPairs:
    """The empty pairs of a table.

    Examples
    --------
    >>> import pandas as pd
    >>> job = np.repeat(["manager", "clerk"], 100)
    >>> rows = Schema.learn_rows(pd.DataFrame({"job": job, "level": np.repeat([2, 1], 100)}))
    >>> pairs = EmptyPairs.fit(rows)
    >>> own = rows.tree_codes[:, [150, 150]]  # a clerk at level 1
    >>> changed = own.copy()
    >>> changed[:, 0] = rows.tree_codes[0, 0], own[1, 0]  # a manager at level 1
    >>> pairs.contain_empty(changed, own)
    array([ True, False])
    """

    # Bin of each tree code, column after column, and where each column begins.
    bins: ByteArray
    offsets: IntArray
    # Columns with an empty pair, ascending, shape (2, n_tables), and the bits of their tables.
    columns: Codes
    packed: ByteArray

    @classmethod
    def fit(cls, rows: EncodedRows, associations: Associations | None = None) -> EmptyPairs:
        """Find the empty pairs of training rows."""
        tables = _bin_columns(rows)
        binned = zip(tables, rows.tree_codes, rows.schema.features, strict=True)
        groups = [_Groups.of(*column) for column in binned]
        least, least_of_groups = (
            len(rows) * _least(np.array([getattr(column, name) for column in groups]))
            for name in ("n_values", "n_groups")
        )
        columns, cells = list[tuple[int, int]](), [np.empty(0, dtype=bool)]
        for first, second in _pairs(rows.schema, associations):
            is_empty = _empty_cells(groups[first], groups[second], least, least_of_groups)
            if is_empty.any():
                columns.append((first, second))
                cells.append(is_empty.ravel())
        offsets = np.cumsum([0, *(table.size for table in tables[:-1])])
        pairs = np.array(columns, dtype=np.int32).reshape(-1, 2).T
        return cls(np.concatenate(tables), offsets, pairs, np.packbits(np.concatenate(cells)))

    def contain_empty(self, tree_codes: Codes, own: Codes) -> BoolArray:
        """Whether rows hold an empty pair that the person's own row does not.

        Both of shape (n_features, n_rows): tree codes of the rows, and of their people.
        """
        bins, found = self._bins_of(tree_codes), np.zeros(tree_codes.shape[1], dtype=bool)
        changed = bins != self._bins_of(own)
        for column in np.flatnonzero(changed.any(axis=1)).tolist():
            if column in self._tables:
                others, start, step, other_step = self._tables[column]
                changed_rows = np.flatnonzero(changed[column])
                bin_here, other_bins = bins[column, changed_rows], bins[others, changed_rows]
                cells = self._cells[start + step * bin_here + other_step * other_bins]
                found[changed_rows] |= cells.any(axis=0)
        return found

    @property
    def n_cells(self) -> int:
        """How many cells the tables have together."""
        first, second = self._n_bins[self.columns]
        return int(first @ second)

    @cached_property
    def _n_bins(self) -> IntArray:
        return 1 + np.maximum.reduceat(self.bins, self.offsets).astype(np.int64)

    @cached_property
    def _cells(self) -> BoolArray:
        return np.unpackbits(self.packed, count=self.n_cells).astype(bool)

    @cached_property
    def _tables(self) -> dict[int, tuple[IntArray, ...]]:
        """By column the others of its tables, where each begins, and the steps of both bins."""
        (first, second), n_bins = self.columns.astype(np.int64), self._n_bins
        sizes, step = n_bins[first] * n_bins[second], n_bins[second]
        start, unit = np.cumsum(sizes) - sizes, np.ones_like(step)
        both = np.stack(
            [[first, second], [second, first], [start, start], [step, unit], [unit, step]]
        )
        own, *rest = both.reshape(5, -1)
        return {
            column: tuple(part[own == column, None] for part in rest)
            for column in np.unique(own).tolist()
        }

    def _bins_of(self, tree_codes: Codes) -> ByteArray:
        return self.bins[tree_codes + self.offsets[:, None]]


def _bin_columns(rows: EncodedRows) -> list[ByteArray]:
    """Bin of each tree code of each column; the last code is that of unseen values."""
    tables = []
    for codes, feature in zip(rows.tree_codes, rows.schema.features, strict=True):
        counts = np.bincount(codes, minlength=feature.n_codes + 1)
        table = np.zeros(counts.size, dtype=np.uint8)
        if feature.kind == "categorical":
            frequent = np.argsort(-counts, kind="stable")[: MAX_BINS - 1]
            frequent = np.sort(frequent[counts[frequent] >= MIN_EXPECTED])
            table[frequent] = 1 + np.arange(frequent.size)
        else:
            most = N_BINS + feature.has_missing
            table[:-1] = 1 + bin_ordered(counts[:-1], feature.has_missing, most)[:-1]
        tables.append(table)
    return tables


@dataclass(frozen=True, eq=False)
class _Groups:
    """The values of a column, then groups of them: which bins each has, and in how many rows."""

    # Bin of each row; then by value or group its bins, shape (n_groups, n_bins), and its rows.
    bins: Codes
    members: FloatArray
    counts: FloatArray
    n_values: int

    @classmethod
    def of(cls, table: ByteArray, codes: Codes, feature: Feature) -> _Groups:
        """Each bin but ``NOT_TESTED``, and if numbers are binned groups of adjacent bins."""
        bins, n_values = table[codes].astype(np.int32), int(table.max())
        members = list(np.eye(n_values + 1)[NOT_TESTED + 1 :])
        if feature.kind == "numeric" and feature.n_codes > n_values:
            for size in GROUP_SIZES:
                group = np.arange(n_values - feature.has_missing) // size
                of_each = group == np.arange(group[-1] + 1)[:, None]
                members += list(np.pad(of_each, ((0, 0), (1, int(feature.has_missing)))))
        of_bins = np.array(members, dtype=np.float64).reshape(-1, n_values + 1)
        return cls(bins, of_bins, of_bins @ np.bincount(bins, minlength=n_values + 1), n_values)

    @property
    def n_groups(self) -> int:
        return len(self.members)

    def ungrouped(self) -> _Groups:
        values = slice(self.n_values)
        return replace(self, members=self.members[values], counts=self.counts[values])


def _empty_cells(
    first: _Groups, second: _Groups, least: float, least_of_groups: float
) -> BoolArray:
    """Which pairs of bins are empty, by themselves or in an empty pair of a value and a group."""
    if first.n_groups > first.n_values and second.n_groups > second.n_values:
        first, second = first.ungrouped(), second.ungrouped()
    expected = np.multiply.outer(first.counts, second.counts)
    is_empty = expected >= TIMES_IN_GROUPS * least_of_groups
    values = np.s_[: first.n_values, : second.n_values]
    is_empty[values] = expected[values] >= least
    if is_empty.any():
        shape = first.n_values + 1, second.n_values + 1
        cell = first.bins * np.int32(shape[1]) + second.bins
        n_rows = np.bincount(cell, minlength=math.prod(shape)).reshape(shape)
        is_empty &= first.members @ n_rows @ second.members.T == 0
    return np.asarray(first.members.T @ is_empty @ second.members > 0)


def _least(sizes: IntArray) -> float:
    """Expected count above which an empty cell is significant over all tables."""
    n_cells = (int(sizes.sum()) ** 2 - int(sizes @ sizes)) // 2
    return max(MIN_EXPECTED, math.log(max(n_cells, 1) / CHANCE))


def _pairs(schema: Schema, associations: Associations | None) -> Iterator[tuple[int, int]]:
    """Pairs of columns that can change, ascending; of many the most associated ones."""
    n_features = len(schema.features)
    is_tried = np.ones((n_features, n_features), dtype=bool)
    if associations is not None and n_features * (n_features - 1) // 2 > MAX_PAIRS:
        is_tried[:] = False
        strength = associations.strength.copy()
        np.fill_diagonal(strength, -1)
        nearest = np.argsort(-strength, axis=1, kind="stable")[:, :N_PARTNERS]
        np.put_along_axis(is_tried, nearest, True, axis=1)
        is_tried |= is_tried.T
    is_tried[np.ix_(schema.immutable, schema.immutable)] = False
    first, second = np.nonzero(np.triu(is_tried, 1))
    yield from zip(first.tolist(), second.tolist(), strict=True)
