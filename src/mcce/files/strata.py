"""Strata of a sample of training rows: combinations of immutable values, accepted or not.

Levels are compared as they are; numbers fall in bins, four for each power of two, so that whole
numbers up to 8 have a bin each; dates by year. So a row's combination depends on the row alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..kernels import BoolArray, FloatArray, IntArray
from ..tables.columns import as_numbers, factorize, is_missing
from ..tables.schema import Schema

# Bins between a power of two and the next.
PER_DOUBLING = 4


class Strata:
    """Combinations of immutable values, numbered as they are met, and how many rows have them."""

    def __init__(self, schema: Schema) -> None:
        self._features = [schema.features[at] for at in schema.immutable]
        self._numbered: dict[tuple[Any, ...], int] = {}
        self._seen = np.zeros((0, 2), dtype=np.int64)
        # The highest number among the lowest accepted rows of each combination, and which
        # combinations have as many of them as may be kept.
        self._highest = np.zeros(0, dtype=np.uint64)
        self._full = np.zeros(0, dtype=bool)

    @property
    def n_groups(self) -> int:
        """Number of combinations."""
        return len(self._numbered)

    @property
    def n_accepted(self) -> int:
        """Number of accepted rows."""
        return int(self._seen[:, 1].sum())

    def count(self, frame: pd.DataFrame, accepted: BoolArray) -> IntArray:
        """The number of each row's combination, new ones included, after counting the rows."""
        group = self._numbers(frame)
        grown = self.n_groups - len(self._seen)
        self._seen = np.concatenate([self._seen, np.zeros((grown, 2), dtype=np.int64)])
        self._highest = np.append(self._highest, np.zeros(grown, dtype=np.uint64))
        self._full = np.append(self._full, np.zeros(grown, dtype=bool))
        counts = np.bincount(2 * group + accepted, minlength=2 * self.n_groups)
        self._seen += counts.reshape(-1, 2)
        return group

    def may_keep(self, group: IntArray, words: np.ndarray) -> BoolArray:
        """Whether accepted rows that come next may be among the lowest of their combination."""
        return np.asarray(~self._full[group] | (words < self._highest[group]))

    def note(self, group: IntArray, words: np.ndarray, rare: int) -> None:
        """Take the numbers of the lowest rows of each combination, ``rare`` at most."""
        self._full = np.bincount(group, minlength=self.n_groups) >= rare
        self._highest = np.zeros(self.n_groups, dtype=np.uint64)
        np.maximum.at(self._highest, group, words)

    def largest_rare(self, rare: int, n_rows: int) -> int:
        """The largest number of rows of each combination that so many rows have room for."""
        counts = np.sort(self._seen[:, 1])
        low, high = 1, rare
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if np.minimum(counts, middle).sum() <= n_rows else (low, middle - 1)
            )
        return low

    def table(self, group: IntArray, accepted: BoolArray) -> pd.DataFrame:
        """One row for each combination and decision that was seen, given the rows that are kept."""
        kept = np.bincount(2 * group + accepted, minlength=self._seen.size).reshape(
            self._seen.shape
        )
        by_values = sorted(
            self._numbered.items(), key=lambda item: [_rank(cell) for cell in item[0]]
        )
        order = np.array([number for _, number in by_values])
        table = pd.DataFrame(
            {
                "accepted": np.tile([False, True], self.n_groups),
                "n_seen": self._seen[order].ravel(),
                "n_kept": kept[order].ravel(),
            },
            index=self._index([values for values, _ in by_values for _ in range(2)]),
        )
        table["whole"] = table["n_seen"] == table["n_kept"]
        table["weight"] = table["n_seen"] / table["n_kept"].where(table["n_kept"] > 0)
        return table[table["n_seen"] > 0]

    def _index(self, rows: list[tuple[Any, ...]]) -> pd.Index[Any]:
        """The values of each row; not columns, whose names could be those of the counts."""
        names = [feature.name for feature in self._features]
        cells = [pd.Index([row[at] for row in rows], dtype=object) for at in range(len(names))]
        if len(names) == 1:
            return cells[0].rename(names[0])
        return pd.MultiIndex.from_arrays(cells, names=names) if names else pd.RangeIndex(len(rows))

    def _numbers(self, frame: pd.DataFrame) -> IntArray:
        """The number of each row's combination."""
        combined, columns = np.zeros(len(frame), dtype=np.int64), []
        for feature in self._features:
            codes, values = _coded(frame[feature.name], feature.kind)
            columns.append((codes, values))
            combined = np.asarray(pd.factorize(combined * len(values) + codes)[0], dtype=np.int64)
        first = np.unique(combined, return_index=True)[1].tolist()
        keys = [tuple(values[codes[row]] for codes, values in columns) for row in first]
        numbers = [self._numbered.setdefault(cells, len(self._numbered)) for cells in keys]
        return np.array(numbers)[combined]


def bin_numbers(numbers: FloatArray) -> FloatArray:
    """The lower end of each number's bin; NaN stays NaN.

    Examples
    --------
    >>> bin_numbers(np.array([1.0, 7.0, 36.0, 39.0, 40.0, -3.0, 0.0]))
    array([ 1.,  7., 32., 32., 40., -3.,  0.])
    """
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.floor(mantissa * 2 * PER_DOUBLING) / (2 * PER_DOUBLING), exponent)


def _coded(series: pd.Series[Any], kind: str) -> tuple[IntArray, list[Any]]:
    """A code of each cell, and the value of each code; None is that of missing cells."""
    missing = is_missing(series)
    present = series[~missing]
    if kind == "categorical":
        numbers, levels = factorize(present)
    elif present.dtype.kind == "M":
        numbers, levels = pd.factorize(present.dt.year.to_numpy())
    else:
        numbers, levels = pd.factorize(bin_numbers(as_numbers(present)))
    codes = np.full(len(series), len(levels), dtype=np.int64)
    codes[~missing] = numbers
    return codes, [*levels.tolist(), None]


def _rank(cell: Any) -> tuple[bool, bool, float, str]:
    """An order of cells of any type: numbers, then others by their text, then missing ones."""
    number = isinstance(cell, (int, float))
    return cell is None, not number, float(cell) if number else 0.0, str(cell)
