"""Finding orderings: one column that is never above another, in numbers or in dates.

Columns whose ranges are apart are ordered by their scale alone: permuting one of them would change
nothing, so that is no evidence. The same goes for pairs that nearly always are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..kernels import FloatArray, check_cancellation
from .patterns import Ordering
from .proposals import Findings, Proposal
from .significance import MAX_CHANCE, log_chance
from .training import TrainingColumns

MAX_ROWS = 2000
# Up to this share of rows may be broken in a relation that is listed.
MAX_BROKEN = 0.02
# At least this share of rows would be broken if the columns had nothing to do with each other.
MIN_INFORMATIVE = 0.05
# An ordering is broken at most this often, compared with columns that have nothing to do with it.
MAX_RELATIVE = 0.03
N_QUANTILES = 32


def find_orderings(data: TrainingColumns) -> Findings:
    """Orderings between numbers, and between dates or durations."""
    by_kind: dict[str, list[int]] = {}
    for position in data.numeric + data.times:
        dtype = data.schema.features[position].table.dtype
        by_kind.setdefault(dtype.kind if position in data.times else "number", []).append(position)
    proposals, n_tried = [], 0
    for positions in by_kind.values():
        proposals += list(_confirmed(data, positions))
        n_tried += 2 * len(positions) * (len(positions) - 1)
    return Findings(tuple(proposals), n_tried)


def _confirmed(data: TrainingColumns, positions: list[int]) -> Iterator[Proposal]:
    names = data.schema.names
    for low, high in _screened(data, positions):
        check_cancellation()
        lower, upper = data.numbers(low, data.held_out), data.numbers(high, data.held_out)
        both = ~np.isnan(lower) & ~np.isnan(upper)
        lower, upper = lower[both], upper[both]
        passing = lower.size - np.searchsorted(np.sort(upper), lower, side="left")
        if not lower.size or passing.mean() > (1 - MIN_INFORMATIVE) * lower.size:
            continue
        n_broken = int((lower > upper).sum())
        by_chance = lower.size - passing.mean()
        if n_broken > min(MAX_BROKEN * lower.size, MAX_RELATIVE * by_chance):
            continue
        chance = log_chance(passing, n_broken)
        strict = _never_equal(lower, upper)
        yield Proposal(Ordering(names[low], names[high], strict), chance, int(lower.size))


def _never_equal(lower: FloatArray, upper: FloatArray) -> bool:
    """Whether values are never equal although chance would have made some so."""
    if (lower == upper).any():
        return False
    ranks = np.sort(upper)
    equal = np.searchsorted(ranks, lower, side="right") - np.searchsorted(ranks, lower)
    return log_chance(lower.size - equal, 0) < math.log(MAX_CHANCE)


def _screened(data: TrainingColumns, positions: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs that hold in nearly all rows for discovery, and not by their scale alone."""
    rows = slice(0, min(data.half, MAX_ROWS))
    values = np.array([data.numbers(at, rows) for at in positions])
    if len(positions) < 2:
        return
    sketches = _sketches(values)
    for place, low in enumerate(positions):
        check_cancellation()
        above = (values[place] > values).sum(axis=1)
        present = (~np.isnan(values[place]) & ~np.isnan(values)).sum(axis=1)
        passing = (sketches[place][:, None] <= sketches[:, None, :]).mean(axis=(1, 2))
        hold = (present > 0) & (above <= MAX_BROKEN * present)
        hold &= passing <= 1 - MIN_INFORMATIVE / 2
        hold[place] = False
        for other in np.flatnonzero(hold):
            yield low, positions[other]


def _sketches(values: FloatArray) -> FloatArray:
    """Some order statistics of each column; those of an empty one are NaN."""
    sketches = np.full((len(values), N_QUANTILES), np.nan)
    for row, column in enumerate(values):
        present = np.sort(column[~np.isnan(column)])
        if present.size:
            places = (np.arange(N_QUANTILES) * 2 + 1) * present.size // (2 * N_QUANTILES)
            sketches[row] = present[places]
    return sketches
