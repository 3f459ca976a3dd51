"""Finding products and ratios of two columns.

On logarithms a product is a sum with weights 1 and 1, a ratio one with 1 and -1: the selection of
linear equalities finds the two columns without looking at all triples. Rows where the target is 0
are left out of it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..kernels import FloatArray, IntArray, check_cancellation
from .equalities import Product, Ratio
from .proposals import Findings, Proposal
from .regression import MAX_ROWS, MIN_ROWS, fit_robustly, select_forward, to_integers
from .snapping import snap
from .tolerances import ROUNDING, propose, typical
from .training import TrainingColumns

MAX_SELECTED = 6
MIN_EXPLAINED = (0.6, 0.9)
N_ROUNDS = 3
# A target, two columns, and the sign of the second one's weight: 1 for a product, -1 for a ratio.
Pair: TypeAlias = tuple[int, int, int, int]
# The largest deviation of logarithms, in typical rows, of a pair that may be a product.
MAX_DEVIATION = 0.5


def find_products(data: TrainingColumns) -> Findings:
    """Products and ratios of two numeric columns.

    A ratio is also written as a product: correlated columns may hide a product from its target.
    """
    rows = slice(0, min(data.half, MAX_ROWS))
    n_columns = len(data.numeric)
    if n_columns < 3 or rows.stop < MIN_ROWS:
        return Findings((), 0)
    values = np.array([data.numbers(at, rows) for at in data.numeric])
    logs = np.log(np.abs(values))
    logs[np.isneginf(logs)] = np.nan
    whole = to_integers(logs)[0]
    proposals: list[Proposal] = []
    for place in range(n_columns):
        check_cancellation()
        for pair in _candidates(logs, whole, place):
            relation = _relation(data, values, *pair)
            proposal = None if relation is None else propose(data, relation)
            proposals += [] if proposal is None else [proposal]
    return Findings(tuple(proposals), 3 * n_columns)


def _candidates(logs: FloatArray, whole: FloatArray, place: int) -> list[Pair]:
    """What a column may be the product or ratio of."""
    groups = np.arange(len(logs))
    groups[place] = -1
    rows = np.flatnonzero(~np.isnan(logs[place]))
    for least in MIN_EXPLAINED:
        if rows.size < MIN_ROWS:
            return []
        target = to_integers(logs[place, rows][None])[0][0]
        found = select_forward(whole[:, rows], groups, target, MAX_SELECTED)
        if found.explained < least or len(found.groups) < 2:
            return []
        rows = _kept(logs, place, np.array(sorted(found.groups)))
    return _pairs(logs, place, sorted(found.groups))


def _kept(logs: FloatArray, place: int, columns: IntArray) -> IntArray:
    """Rows but those that deviate most from the sum of some columns."""
    present = ~np.isnan(logs[columns]).any(axis=0) & ~np.isnan(logs[place])
    rows = np.flatnonzero(present)
    _, kept = fit_robustly(logs[np.ix_(columns, rows)], logs[place, rows], N_ROUNDS)
    return rows[kept]


def _pairs(logs: FloatArray, place: int, columns: list[int]) -> list[Pair]:
    """The best pair of the selected columns, as a product, or as a ratio and the same product."""
    best: tuple[float, int, int, int] | None = None
    for first in columns:
        for second in columns:
            for sign in (1, -1):
                if first == second or (sign == 1 and first > second):
                    continue
                rest = logs[place] - logs[first] - sign * logs[second]
                rest = rest[~np.isnan(rest)]
                if rest.size >= MIN_ROWS:
                    size = typical(np.abs(rest - np.median(rest)))
                    if best is None or size < best[0]:
                        best = (size, first, second, sign)
    if best is None or best[0] > MAX_DEVIATION:
        return []
    _, first, second, sign = best
    pairs = [(place, first, second, sign)]
    return pairs if sign == 1 else [*pairs, (first, min(place, second), max(place, second), 1)]


def _relation(
    data: TrainingColumns, values: FloatArray, place: int, first: int, second: int, sign: int
) -> Product | Ratio | None:
    names = [data.schema.names[at] for at in data.numeric]
    formula = values[first] * values[second] if sign == 1 else values[first] / values[second]
    factors = values[place] / formula
    factors = factors[np.isfinite(factors)]
    if not factors.size:
        return None
    target, formula = values[place], np.where(np.isfinite(formula), formula, np.nan)

    def deviation(given: FloatArray) -> float:
        gap = np.abs(target - given[0] * formula)
        return typical(gap[~np.isnan(gap)])

    accepted = ROUNDING * float(np.nanmax(np.abs(target)))
    factor = float(snap(np.array([np.median(factors)]), deviation, accepted)[0])
    if not factor:
        return None
    if sign == 1:
        return Product(names[place], names[first], names[second], factor)
    return Ratio(names[place], names[first], names[second], factor)
