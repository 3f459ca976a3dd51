"""The line of a feature: where values stand on it, and the accepted people behind.

Always true: a place is from 0 to 1, or a little outside for values beyond the ends and missing
ones; equal values have equal places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ...kernels import FloatArray
from ...tables.columns import as_numbers, is_measured
from ..changes import cells_of
from ..labels import FeatureLabel, level_key

MISSING_PLACE, BEYOND = -0.07, 0.04
# Bars of a histogram, and distinct numbers up to which each has a bar of its own.
N_BINS, MAX_DISTINCT = 24, 12
# Share of accepted people beyond either end of a line, so that a few do not stretch it.
TAIL = 0.01


@dataclass(frozen=True, eq=False)
class Track:
    """The line of one feature: numbers between two ends, or levels side by side."""

    dtype: Any
    low: float = np.nan
    high: float = np.nan
    order: Mapping[str, int] = field(default_factory=dict)
    bars: FloatArray = field(default_factory=lambda: np.empty(0))
    heights: FloatArray = field(default_factory=lambda: np.empty(0))
    width: float = 0.0
    ends: tuple[Any, ...] = ()

    @classmethod
    def make(
        cls, cells: pd.Series[Any], accepted: pd.Series[Any] | None, label: FeatureLabel
    ) -> Track:
        """The line on which all of some cells stand, before accepted people."""
        behind = cells.iloc[:0] if accepted is None else accepted
        if is_measured(cells.dtype) and is_measured(behind.dtype) and not label.levels:
            return cls._of_numbers(cells, behind)
        return cls._of_levels(cells, behind, label)

    @classmethod
    def _of_numbers(cls, cells: pd.Series[Any], behind: pd.Series[Any]) -> Track:
        own, others = as_numbers(cells), as_numbers(behind, cells.dtype)
        own, others = own[np.isfinite(own)], others[np.isfinite(others)]
        inner = np.quantile(others, [TAIL, 1 - TAIL], method="nearest") if others.size else others
        known = np.concatenate([own, inner])
        if not known.size:
            return cls(cells.dtype)
        low, high = float(known.min()), float(known.max())
        shown = others[(others >= low) & (others <= high)]
        distinct, counts = np.unique(shown, return_counts=True)
        if distinct.size > MAX_DISTINCT:
            counts, edges = np.histogram(_place(shown, low, high), N_BINS, (0.0, 1.0))
            bars, width = (edges[1:] + edges[:-1]) / 2, 1 / N_BINS
        else:
            bars = _place(distinct, low, high)
            width = 0.8 * min([0.12, *np.diff(bars)])
        ends = tuple(_cell_at([cells, behind], number) for number in (low, high) if low < high)
        return cls(cells.dtype, low, high, {}, bars, _share(counts), width, ends)

    @classmethod
    def _of_levels(
        cls, cells: pd.Series[Any], behind: pd.Series[Any], label: FeatureLabel
    ) -> Track:
        others = cells_of(behind)
        order = level_order([cells, behind], [*cells_of(cells), *others], label)
        counts = np.zeros(len(order))
        for key, count in pd.Series([level_key(cell) for cell in others]).value_counts().items():
            if key in order:
                counts[order[key]] = count
        bars = np.linspace(0, 1, len(order)) if len(order) > 1 else np.full(len(order), 0.5)
        width = min(0.12, 0.8 / max(1, len(order) - 1))
        return cls(cells.dtype, order=order, bars=bars, heights=_share(counts), width=width)

    def places(self, cells: pd.Series[Any]) -> FloatArray:
        """Where some cells stand."""
        if self.order or not is_measured(cells.dtype):
            known = (None if c is None else self.order.get(level_key(c)) for c in cells_of(cells))
            return np.array([MISSING_PLACE if at is None else self.bars[at] for at in known])
        places = _place(as_numbers(cells, self.dtype), self.low, self.high)
        return np.where(np.isnan(places), MISSING_PLACE, np.clip(places, -BEYOND, 1 + BEYOND))


def _place(values: FloatArray, low: float, high: float) -> FloatArray:
    """Numbers on a line from 0 to 1."""
    if low == high:
        return np.where(np.isnan(values), np.nan, 0.5)
    # Halves, since the difference of two large floats may be infinite.
    return (values / 2 - low / 2) / (high / 2 - low / 2)


def _share(counts: np.ndarray) -> FloatArray:
    return counts / max(1.0, float(counts.max(initial=0.0)))


def _cell_at(columns: Sequence[pd.Series[Any]], number: float) -> Any:
    """A cell with the given number, as it came."""
    for column in columns:
        places = np.flatnonzero(as_numbers(column, columns[0].dtype) == number)
        if places.size:
            return column.iloc[int(places[0])]
    raise AssertionError("the ends of a line are numbers of its cells")


def level_order(
    columns: Sequence[pd.Series[Any]], cells: Sequence[Any], label: FeatureLabel
) -> dict[str, int]:
    """The place of each level that occurs: that of the labels, of a category, otherwise sorted."""
    known = {level_key(cell): cell for cell in cells if cell is not None}
    listed = [
        level_key(level)
        for column in columns
        if isinstance(column.dtype, pd.CategoricalDtype)
        for level in column.dtype.categories
    ]
    try:
        rest = sorted(known, key=lambda key: known[key])
    except TypeError:
        rest = sorted(known)
    keys = dict.fromkeys([*(key for key in (*label.order, *listed) if key in known), *rest])
    return {key: place for place, key in enumerate(keys)}
