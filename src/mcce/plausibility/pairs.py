"""Pairs nobody has: values of two columns that no training row holds together.

Beyond the paper. A pair of values is empty if no training row, accepted or not, has it, although
chance would have given it to many if the columns were unrelated: at least ``MIN_EXPECTED``, and so
many that one of 10,000 tables of unrelated columns has such a pair. Values are levels, few numbers
as they are, or quantile bins of many; a missing cell is a value of its own. Single bins are often
too rare to tell, so groups of 2, 4, 8 and 16 adjacent ones are tried as well with each value of
columns that are not binned; twice as many rows are then required, since a group says less of each
of its values. In tables of over 126 columns, each is paired with the most associated.

Always true: the order of the training rows changes nothing; values that training never held, and
pairs in which both values are the person's own, are never held against a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..caching import cached_property
from ..kernels import BoolArray, ByteArray, Codes, FloatArray, IntArray
from ..model.associations import Associations
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from .boosting import MAX_BINS, BinnedColumns

# Rows that chance would have given an empty pair, at least, and the probability that a table of
# unrelated columns has one.
MIN_EXPECTED, CHANCE = 12.0, 1e-4
# A group of bins is empty only if chance would have given it this many times more.
TIMES_IN_GROUPS = 2.0
# Bins of the known values of a number.
N_BINS = 32
# Pairs of columns that are all looked at; of more, each column is paired with so many.
MAX_PAIRS, N_PARTNERS = 8_000, 16
# The bin of what is never held against a row: unseen values, and levels of too few rows.
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
    >>> pairs.holds(changed, own)
    array([ True, False])
    """

    # Bin of each tree code of each column, and the places of the columns in this array.
    bins: ByteArray
    offsets: IntArray
    # Columns with an empty pair, ascending, shape (2, n_tables), and the bits of their tables.
    columns: Codes
    packed: ByteArray

    @classmethod
    def fit(cls, rows: EncodedRows, associations: Associations | None = None) -> EmptyPairs:
        """Find the empty pairs of training rows."""
        tables = _bin_columns(rows)
        own = [t[c].astype(np.int32) for t, c in zip(tables, rows.tree_codes, strict=True)]
        groups = [
            _Groups.of(*given) for given in zip(tables, own, rows.schema.features, strict=True)
        ]
        least, least_of_groups = (
            len(rows) * _least(np.array([getattr(one, name) for one in groups]))
            for name in ("n_values", "n_groups")
        )
        columns, cells = list[tuple[int, int]](), [np.empty(0, dtype=bool)]
        cell = np.empty(len(rows), dtype=np.int32)
        for at in _pairs(rows.schema, associations):
            one, other = (groups[position] for position in at)
            if one.is_binned and other.is_binned:
                one, other = one.ungrouped, other.ungrouped
            if one.counts.max(initial=0) * other.counts.max(initial=0) < least:
                continue
            np.multiply(own[at[0]], np.int32(other.n_bins), out=cell)
            cell += own[at[1]]
            shape = one.n_bins, other.n_bins
            held = np.bincount(cell, minlength=math.prod(shape)).reshape(shape)
            expected = np.multiply.outer(one.counts, other.counts)
            empty = expected >= TIMES_IN_GROUPS * least_of_groups
            values = np.s_[: one.n_values, : other.n_values]
            empty[values] = expected[values] >= least
            empty &= one.members @ held @ other.members.T == 0
            if empty.any():
                columns.append(at)
                cells.append((one.members.T @ empty @ other.members > 0).ravel())
        found = np.array(columns, dtype=np.int32).reshape(-1, 2).T
        offsets = np.cumsum([0, *(table.size for table in tables[:-1])])
        return cls(np.concatenate(tables), offsets, found, np.packbits(np.concatenate(cells)))

    def holds(self, tree_codes: Codes, own: Codes) -> BoolArray:
        """Whether rows hold an empty pair that the person's own row does not.

        Both of shape (n_features, n_rows): tree codes of the rows, and of their people.
        """
        bins, found = self._bins_of(tree_codes), np.zeros(tree_codes.shape[1], dtype=bool)
        changed = bins != self._bins_of(own)
        for one in np.flatnonzero(changed.any(axis=1)).tolist():
            if one in self._tables:
                others, start, step, other_step = self._tables[one]
                some = np.flatnonzero(changed[one])
                cell = start + step * bins[one, some] + other_step * bins[others, some]
                found[some] |= self._cells[cell].any(axis=0)
        return found

    @property
    def n_cells(self) -> int:
        """How many cells the tables have together."""
        one, other = self._n_bins[self.columns]
        return int(one @ other)

    @cached_property
    def _n_bins(self) -> IntArray:
        return 1 + np.maximum.reduceat(self.bins, self.offsets).astype(np.int64)

    @cached_property
    def _cells(self) -> BoolArray:
        return np.unpackbits(self.packed, count=self.n_cells).astype(bool)

    @cached_property
    def _tables(self) -> dict[int, tuple[IntArray, ...]]:
        """By column the others of its tables, where each begins, and the steps of both bins."""
        (one, other), n_bins = self.columns.astype(np.int64), self._n_bins
        sizes = n_bins[one] * n_bins[other]
        start, step = np.cumsum(sizes) - sizes, n_bins[other]
        unit = np.ones_like(step)
        both = np.stack([[one, other], [other, one], [start] * 2, [step, unit], [unit, step]])
        column, *rest = both.reshape(5, -1)
        return {
            at: tuple(row[column == at, None] for row in rest) for at in np.unique(column).tolist()
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
            ordered, has_missing = np.array([[True], [feature.has_missing]])
            most, n_codes = N_BINS + feature.has_missing, np.array([feature.n_codes])
            binned = BinnedColumns.learn(codes[None], n_codes, ordered, has_missing, most)
            table[:-1] = 1 + binned.tables[0][:-1]
        tables.append(table)
    return tables


@dataclass(frozen=True, eq=False)
class _Groups:
    """The values of a column and groups of its bins: the bins of each, and how many rows it has."""

    members: FloatArray
    counts: FloatArray
    n_values: int

    @classmethod
    def of(cls, table: ByteArray, bins: ByteArray, feature: Feature) -> _Groups:
        """Each bin but ``NOT_TESTED``, and if numbers are binned groups of adjacent bins."""
        n_bins = int(table.max()) + 1
        members, n_known = list(np.eye(n_bins)[NOT_TESTED + 1 :]), n_bins - 1 - feature.has_missing
        if feature.kind == "numeric" and feature.n_codes > n_bins - 1:
            for size in (2, 4, 8, 16):
                group = np.arange(n_known) // size
                of_each = group == np.arange(group[-1] + 1)[:, None]
                members += list(np.pad(of_each, ((0, 0), (1, int(feature.has_missing)))))
        of_bins = np.array(members, dtype=np.float64).reshape(-1, n_bins)
        return cls(of_bins, of_bins @ np.bincount(bins, minlength=n_bins), n_bins - 1)

    @property
    def n_bins(self) -> int:
        return self.members.shape[1]

    @property
    def n_groups(self) -> int:
        return len(self.members)

    @property
    def is_binned(self) -> bool:
        return self.n_groups > self.n_values

    @property
    def ungrouped(self) -> _Groups:
        return replace(
            self, members=self.members[: self.n_values], counts=self.counts[: self.n_values]
        )


def _least(sizes: IntArray) -> float:
    """How many rows chance must have given an empty cell of all tables of two columns."""
    n_cells = (int(sizes.sum()) ** 2 - int(sizes @ sizes)) // 2
    return max(MIN_EXPECTED, math.log(max(n_cells, 1) / CHANCE))


def _pairs(schema: Schema, associations: Associations | None) -> Iterator[tuple[int, int]]:
    """Pairs of columns that can change, ascending; of many the most associated ones."""
    n_features = len(schema.features)
    looked_at = np.ones((n_features, n_features), dtype=bool)
    if associations is not None and n_features * (n_features - 1) // 2 > MAX_PAIRS:
        looked_at[:] = False
        strength = associations.strength.copy()
        np.fill_diagonal(strength, -1)
        nearest = np.argsort(-strength, axis=1, kind="stable")[:, :N_PARTNERS]
        np.put_along_axis(looked_at, nearest, True, axis=1)
        looked_at |= looked_at.T
    looked_at[np.ix_(schema.immutable, schema.immutable)] = False
    yield from zip(*(at.tolist() for at in np.nonzero(np.triu(looked_at, 1))), strict=True)
