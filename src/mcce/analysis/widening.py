"""Cells: the values that stand for one value of an answer, and how they are made wider.

A number stands for a range with round ends, a level of an ordered category for a run of levels, any
other level for a set of them. Missing is one more level; of numbers and ordered levels it joins
last, with everything else.

Always true: a cell holds the answer's own value, and a wider one all that the narrower holds; the
loss of a cell is 0 for a single value, 1 for all values, and between them its width or its number
of further levels as a share of all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..kernels import BoolArray, IntArray
from ..tables.columns import as_comparable, is_time, unit_of
from ..tables.features import Feature, is_single
from .round_ends import round_ranges

# Levels that are tried next, those with the most people.
MOST_LEVELS = 3
# Levels on either side of a level of an ordered category that a run may have.
LONGEST_RUN = 50
# A run of no codes.
NO_RUN = (0, -1)


@dataclass(frozen=True)
class Own:
    """A value of an answer."""

    code: int
    value: Any


@dataclass(frozen=True)
class Cell:
    """Values that stand for one."""

    run: tuple[int, int] = NO_RUN
    levels: tuple[int, ...] = ()
    loss: float = 0.0
    low: Any = None
    high: Any = None
    is_whole: bool = False
    is_round: bool = True

    @property
    def codes(self) -> IntArray:
        """All training codes inside, ascending."""
        run = np.arange(self.run[0], self.run[1] + 1)
        return run if not self.levels else np.sort(np.append(run, self.levels))

    def inside(self, n_codes: int) -> BoolArray:
        """Whether each training code is inside."""
        inside = np.zeros(n_codes, dtype=bool)
        inside[self.codes] = True
        return inside

    def covers(self, other: Cell) -> bool:
        """Whether a run holds all of another."""
        return self.run[0] <= other.run[0] and self.run[1] >= other.run[1]


# A wider cell, and how many of the counted people it has inside.
Wider: TypeAlias = tuple[Cell, int]


class Widening:
    """The cells of one feature, from a single value to all."""

    def __init__(self, feature: Feature) -> None:
        self.feature = feature
        self._n_known = len(feature.known)
        self._ranges: dict[Own, list[Cell]] = {}

    def start(self, own: Own) -> Cell:
        """The cell of a single value."""
        if own.value is None or not self.feature.ordered:
            return Cell(levels=(own.code,) if own.code >= 0 else ())
        run = (own.code, own.code) if own.code >= 0 else NO_RUN
        return Cell(run, low=own.value, high=own.value)

    def wider(self, own: Own, cell: Cell, counts: IntArray) -> list[Wider]:
        """Wider cells with more people."""
        if cell.is_whole or not counts.any():
            return []
        before = np.concatenate([[0], np.cumsum(counts)])
        found = []
        for wide in self._some(own, cell, counts):
            gain = before[wide.run[1] + 1] - before[wide.run[0]] + counts[list(wide.levels)].sum()
            if gain > 0:
                found.append((wide, int(gain)))
        return found

    def narrower(self, own: Own, cell: Cell) -> list[Cell]:
        """Cells inside another one, the narrowest first."""
        found = [self.start(own)]
        if not self.feature.ordered:
            levels = set(cell.codes.tolist())
            for code in levels - {own.code}:
                left = tuple(sorted(levels - {code}))
                found.append(Cell(levels=left, loss=self._share(len(left), own)))
        else:
            found += self._inner_ranges(own)
        inside = [one for one in found if one.loss < cell.loss and cell.covers(one)]
        return sorted(inside, key=lambda one: (one.loss, not one.is_round, one.run, one.levels))

    def whole(self) -> Cell:
        """The cell of all values."""
        missing = (self._n_known,) if self.feature.has_missing else ()
        return Cell((0, self._n_known - 1), missing, 1.0, is_whole=True)

    def _some(self, own: Own, cell: Cell, counts: IntArray) -> Iterator[Cell]:
        if not self.feature.ordered:
            yield from self._sets(own, cell, counts)
        else:
            yield from (wide for wide in self._inner_ranges(own) if wide.covers(cell))
        yield self.whole()

    def _inner_ranges(self, own: Own) -> list[Cell]:
        """All ranges around a value but the whole."""
        if own.value is None or (own.code < 0 and self.feature.kind == "categorical"):
            return []
        if own not in self._ranges:
            numeric = self.feature.kind == "numeric"
            cells = _number_cells(self.feature, own) if numeric else self._runs(own)
            self._ranges[own] = list(cells)
        return self._ranges[own]

    def _sets(self, own: Own, cell: Cell, counts: IntArray) -> Iterator[Cell]:
        """The set with one more level, for those with the most people."""
        most = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
        for code in most[counts[most] > 0].tolist():
            levels = tuple(sorted((*cell.levels, code)))
            if len(levels) < self.feature.n_codes:
                yield Cell(levels=levels, loss=self._share(len(levels), own))

    def _runs(self, own: Own) -> Iterator[Cell]:
        """Runs of levels around one."""
        known = self.feature.known.array
        lows = range(max(0, own.code - LONGEST_RUN), own.code + 1)
        highs = range(own.code, min(self._n_known, own.code + LONGEST_RUN + 1))
        for low, high in itertools.product(reversed(lows), highs):
            n_levels = high - low + 1
            if 1 < n_levels < self._n_known:
                yield Cell((low, high), (), self._share(n_levels, own), known[low], known[high])

    def _share(self, n_levels: int, own: Own) -> float:
        unseen = own.code < 0
        return (n_levels + unseen - 1) / (self.feature.n_codes + unseen - 1)


def _number_cells(feature: Feature, own: Own) -> Iterator[Cell]:
    """The ranges with round ends around a number, but all of them with the same people once."""
    ranges = round_ranges(feature, own.value)
    if not ranges:
        return
    dtype = feature.table.dtype
    known = as_comparable(feature.known, dtype)
    lows, highs = (_comparable([ends[at] for ends in ranges], feature) for at in (0, 1))
    value = _comparable([own.value], feature)[0]
    least, most = min(known[0], value), max(known[-1], value)
    firsts, lasts = np.searchsorted(known, lows), np.searchsorted(known, highs, side="right") - 1
    told = set()
    for at, (low, high) in enumerate(ranges):
        run = int(firsts[at]), int(lasts[at])
        low_open, high_open = lows[at] <= least, highs[at] >= most
        if run in told or (low_open and high_open):
            continue
        told.add(run)
        width = min(highs[at], most) - max(lows[at], least)
        ends = None if low_open else _cell(low, dtype), None if high_open else _cell(high, dtype)
        is_round = not isinstance(low, Decimal) or low % (high - low) == 0
        yield Cell(run, (), float(width / (most - least)), *ends, is_round=is_round)


def _comparable(ends: list[Any], feature: Feature) -> np.ndarray:
    """Ends of ranges for comparing with training values."""
    dtype = feature.table.dtype
    if is_time(dtype):
        return np.array([_count_units(end, dtype) for end in ends], dtype=object)
    if dtype.kind in "iu":
        return np.array([int(end) for end in ends], dtype=object)
    numbers = np.array([float(end) for end in ends])
    return numbers.astype(np.float32).astype(np.float64) if is_single(dtype) else numbers


def _count_units(end: Any, dtype: Any) -> Fraction:
    """A date or duration in the unit of a dtype, without rounding."""
    moment = (pd.Timestamp if dtype.kind == "M" else pd.Timedelta)(end)
    own = moment.asm8
    return Fraction(int(own.astype(np.int64)) * unit_of(own.dtype), unit_of(dtype))


def _cell(end: Any, dtype: Any) -> Any:
    """The end of a range as a cell of its column."""
    if not isinstance(end, Decimal):
        return end
    return int(end) if dtype.kind in "iu" else float(end)
