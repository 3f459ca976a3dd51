"""Finding linear equalities: a column that is a weighted sum of others, or a price list of levels.

For every numeric column, a forward selection among all others on a sample of rows; then the rows
that deviate most are left out and the selection is repeated, so a few broken rows do no harm.
Terms that are not needed are dropped, and coefficients become short decimals where that holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels import FloatArray, IntArray, check_cancellation
from ..tables.features import ULPS, WRITTEN_ULPS, epsilon
from .cells import values_of
from .equalities import Linear
from .proposals import Findings, Proposal
from .regression import (
    MAX_ROWS,
    MIN_ROWS,
    fit_robustly,
    predict,
    select_forward,
    to_integers,
)
from .snapping import snap
from .tolerances import ROUNDING, propose, typical
from .training import TrainingColumns

MAX_TERMS = 12
MAX_LEVELS = 12
MAX_COLUMNS = 600
# What the selection must explain, first with broken rows and then without them.
MIN_EXPLAINED = (0.8, 0.97, 0.97)
# How often weights are fitted, and how often only to find the rows that deviate most.
N_ROUNDS, N_SELECTING_ROUNDS = 6, 3
# A term is dropped if the deviation without it is at most this many times as large.
MAX_LOSS = 1.2


@dataclass(frozen=True, eq=False)
class Design:
    """Columns that a sum may use: numbers, and one column for each level but the first."""

    columns: FloatArray
    whole: FloatArray
    groups: IntArray

    @classmethod
    def of(cls, data: TrainingColumns, rows: slice) -> Design:
        """The design of some training rows."""
        columns = [data.numbers(at, rows) for at in data.numeric]
        groups = list(data.numeric)
        for at, feature in enumerate(data.schema.features):
            few = 1 < feature.n_codes <= MAX_LEVELS and feature.kind == "categorical"
            if few and len(columns) + feature.n_codes <= MAX_COLUMNS:
                levels = np.arange(1, feature.n_codes)[:, None]
                columns += list((data.codes[at, rows] == levels).astype(np.float64))
                groups += [at] * (feature.n_codes - 1)
        values = np.array(columns)
        return cls(values, to_integers(values)[0], np.array(groups))


def find_sums(data: TrainingColumns) -> Findings:
    """Linear equalities, one for each numeric column at most."""
    rows = slice(0, min(data.half, MAX_ROWS))
    if len(data.numeric) == 0 or rows.stop < MIN_ROWS:
        return Findings((), 0)
    design = Design.of(data, rows)
    proposals: list[Proposal] = []
    for place, at in enumerate(data.numeric):
        check_cancellation()
        groups = _select(design, place, at)
        if groups:
            relation = _relation(data, design, place, groups)
            proposal = None if relation is None else propose(data, relation)
            proposals += [] if proposal is None else [proposal]
    return Findings(tuple(proposals), len(data.numeric) * MAX_TERMS)


def _select(design: Design, place: int, at: int) -> tuple[int, ...]:
    """Features that a column is a sum of; none if it is no sum."""
    values, groups = design.columns[place], np.where(design.groups == at, -1, design.groups)
    rows = np.flatnonzero(~np.isnan(values))
    chosen: tuple[int, ...] = ()
    for least in MIN_EXPLAINED:
        if rows.size < MIN_ROWS:
            return ()
        target = to_integers(values[None, rows])[0][0]
        found = select_forward(design.whole[:, rows], groups, target, MAX_TERMS)
        if found.explained < least:
            return ()
        if set(found.groups) == set(chosen):
            break
        chosen = found.groups
        _, rows = _robust_fit(design, place, chosen, N_SELECTING_ROUNDS)
    return tuple(sorted(_needed(design, place, chosen)))


def _usable(design: Design, place: int, groups: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Columns of some features, and rows in which neither they nor the target are missing."""
    columns = np.flatnonzero(np.isin(design.groups, groups))
    present = ~np.isnan(design.columns[columns]).any(axis=0) & ~np.isnan(design.columns[place])
    return columns, np.flatnonzero(present)


def _robust_fit(
    design: Design, place: int, groups: tuple[int, ...], n_rounds: int
) -> tuple[FloatArray, IntArray]:
    """Weights fitted to all rows but those that deviate most, and those rows."""
    columns, usable = _usable(design, place, groups)
    given = design.columns[np.ix_(columns, usable)], design.columns[place, usable]
    weights, kept = fit_robustly(*given, n_rounds)
    return weights, usable[kept]


def _residuals(
    design: Design, place: int, columns: IntArray, rows: IntArray, weights: FloatArray
) -> FloatArray:
    return design.columns[place, rows] - predict(design.columns[np.ix_(columns, rows)], weights)


def _deviation(design: Design, place: int, groups: tuple[int, ...]) -> FloatArray:
    """What typical rows deviate by if the features of a sum are these, and which share of it."""
    columns, rows = _usable(design, place, groups)
    weights, _ = _robust_fit(design, place, groups, N_ROUNDS)
    gap = np.abs(_residuals(design, place, columns, rows, weights))
    size = np.abs(design.columns[place, rows])
    share = gap[size > 0] / size[size > 0]
    return np.array([typical(gap), typical(share)])


def _needed(design: Design, place: int, groups: tuple[int, ...]) -> tuple[int, ...]:
    """The features without which a sum would deviate more."""
    floor = np.array([ROUNDING * float(np.nanmax(np.abs(design.columns[place]))), ROUNDING])
    best = np.maximum(_deviation(design, place, groups), floor)
    for group in reversed(groups):
        fewer = tuple(other for other in groups if other != group)
        if fewer and (_deviation(design, place, fewer) <= MAX_LOSS * best).all():
            groups = fewer
    return groups


def _relation(
    data: TrainingColumns, design: Design, place: int, groups: tuple[int, ...]
) -> Linear | None:
    """The sum of some features, with short coefficients where that holds."""
    columns, rows = _usable(design, place, groups)
    weights, _ = _robust_fit(design, place, groups, N_ROUNDS)

    def deviation(given: FloatArray) -> float:
        return typical(np.abs(_residuals(design, place, columns, rows, given)))

    size = float(np.nanmax(np.abs(design.columns[place])))
    parts = np.abs(weights[1:, None] * design.columns[np.ix_(columns, rows)])
    precision = _precision(data, (data.numeric[place], *groups))
    accepted = max(ROUNDING, WRITTEN_ULPS * precision) * size
    noise = ULPS * precision * float(parts.max(initial=size))
    weights = snap(weights, deviation, accepted, noise)
    by_column = dict(zip(columns.tolist(), weights[1:].tolist(), strict=True))
    names = data.schema.names
    terms = tuple(
        (names[design.groups[column]], weight)
        for column, weight in by_column.items()
        if design.groups[column] in data.numeric and weight
    )
    amounts = tuple(_amounts(data, design, by_column, groups))
    if not terms and not amounts:
        return None
    return Linear(names[data.numeric[place]], terms, amounts, float(weights[0]))


def _precision(data: TrainingColumns, positions: tuple[int, ...]) -> float:
    """The relative distance of neighbouring floats in the least precise of some columns."""
    return max(epsilon(data.schema.features[at].table.dtype) for at in positions)


def _amounts(
    data: TrainingColumns, design: Design, weights: dict[int, float], groups: tuple[int, ...]
) -> Iterator[tuple[object, tuple[tuple[object, float], ...]]]:
    """The price list of each categorical feature, its first level 0."""
    for group in groups:
        if group in data.numeric:
            continue
        given = [weights[column] for column in np.flatnonzero(design.groups == group).tolist()]
        if any(given):
            levels = values_of(data.schema.features[group])
            yield data.schema.names[group], tuple(zip(levels, [0.0, *given], strict=True))
