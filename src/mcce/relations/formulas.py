"""Finding equalities: a column that is a weighted sum, a product or a ratio of others.

For every numeric column, a forward selection among all others on a sample of rows; then the rows
that deviate most are left out and the selection is repeated, so a few broken rows do no harm.
Levels of categories take part in sums as price lists. On logarithms a product is a sum with weights
1 and 1 and a ratio one with 1 and -1, so their two columns are found without looking at all
triples; rows where the target is 0 are left out of it. Terms that are not needed are dropped, and
coefficients become short decimals where that holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import numpy as np

from ..kernels import FloatArray, IntArray, check_cancellation
from ..tables.features import ULPS, WRITTEN_ULPS, epsilon
from .bounds import propose_bound
from .evidence import Findings, Proposal, TrainingColumns
from .fitting import (
    MAX_ROWS,
    MIN_ROWS,
    ROUNDING,
    AnyEquality,
    fit_robustly,
    predict,
    propose,
    select_forward,
    snap,
    to_integers,
    typical,
)
from .kinds import Linear, Product, Ratio
from .relation import values_of

# Columns of a sum, and those among which the two of a product are looked for, at most.
MAX_TERMS, MAX_SELECTED = 12, 6
MAX_LEVELS = 12
MAX_COLUMNS = 600
# What the selection must explain, first with broken rows and then without them.
EXPLAINED_BY_SUM, EXPLAINED_BY_PRODUCT = (0.8, 0.97, 0.97), (0.6, 0.9)
# What is explained by few columns may be a bound.
EXPLAINED_BY_BOUND, MAX_TERMS_OF_BOUND = 0.7, 4
# How often weights are fitted, and how often only to find the rows that deviate most.
N_ROUNDS, N_SELECTING_ROUNDS = 6, 3
# A term is dropped if the deviation without it is at most this many times as large.
MAX_DROPPED_LOSS = 1.2
# The largest deviation of logarithms, in typical rows, of a pair that may be a product.
MAX_DEVIATION = 0.5
# A target, two columns, and the sign of the second one's weight: 1 for a product, -1 for a ratio.
Pair: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Design:
    """Columns that an equality may use, also as integers, and which belong together."""

    columns: FloatArray
    whole: FloatArray
    groups: IntArray

    @classmethod
    def of(cls, columns: FloatArray, groups: IntArray) -> Design:
        """The design of columns in groups."""
        return cls(columns, to_integers(columns)[0], groups)

    @classmethod
    def of_sums(cls, data: TrainingColumns, rows: slice) -> Design:
        """Numbers, and one column for each level but the first."""
        columns = [data.numbers(at, rows) for at in data.numeric]
        groups = list(data.numeric)
        for at, feature in enumerate(data.schema.features):
            few = 1 < feature.n_codes <= MAX_LEVELS and feature.kind == "categorical"
            if few and len(columns) + feature.n_codes <= MAX_COLUMNS:
                levels = np.arange(1, feature.n_codes)[:, None]
                columns += list((data.codes[at, rows] == levels).astype(np.float64))
                groups += [at] * (feature.n_codes - 1)
        return cls.of(np.array(columns), np.array(groups))


def find_sums(data: TrainingColumns) -> Findings:
    """Linear equalities, one for each numeric column at most."""
    rows = slice(0, min(data.half, MAX_ROWS))
    if len(data.numeric) == 0 or rows.stop < MIN_ROWS:
        return Findings((), 0)
    design = Design.of_sums(data, rows)
    sums = (_find_sum(data, design, place) for place in range(len(data.numeric)))
    return Findings.of(_tried(data, sums), 2 * len(data.numeric) * MAX_TERMS)


def _tried(
    data: TrainingColumns, relations: Iterable[AnyEquality | None]
) -> Iterator[Proposal | None]:
    """Each relation as an equality, and as a bound."""
    for relation in relations:
        if relation is not None:
            equality = propose(data, relation)
            yield equality
            if equality is None or not data.holds(equality.relation).all():
                yield propose_bound(data, relation)


def _find_sum(data: TrainingColumns, design: Design, place: int) -> Linear | None:
    groups = _select(design, place, EXPLAINED_BY_SUM, MAX_TERMS)
    if not groups:
        return None
    return _sum_of(data, design, place, tuple(sorted(_needed(design, place, groups))))


def _select(
    design: Design, place: int, explained: Sequence[float], max_groups: int, min_groups: int = 1
) -> tuple[int, ...]:
    """Groups of columns that a column is a sum of; none if it is no sum.

    A few groups that explain less may give a bound.
    """
    values, own = design.columns[place], design.groups[place]
    groups = np.where(design.groups == own, -1, design.groups)
    row_numbers = np.flatnonzero(~np.isnan(values))
    chosen: tuple[int, ...] = ()
    for least in explained:
        if row_numbers.size < MIN_ROWS:
            return ()
        target = to_integers(values[None, row_numbers])[0][0]
        found = select_forward(design.whole[:, row_numbers], groups, target, max_groups)
        if len(found.groups) < min_groups:
            return ()
        if found.explained < least:
            is_loose = found.explained >= EXPLAINED_BY_BOUND
            return found.groups if is_loose and len(found.groups) <= MAX_TERMS_OF_BOUND else ()
        if set(found.groups) == set(chosen):
            break
        chosen = found.groups
        _, row_numbers = _robust_fit(design, place, chosen, N_SELECTING_ROUNDS)
    return chosen


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
    design: Design, place: int, columns: IntArray, row_numbers: IntArray, weights: FloatArray
) -> FloatArray:
    inputs = design.columns[np.ix_(columns, row_numbers)]
    return design.columns[place, row_numbers] - predict(inputs, weights)


def _deviation(design: Design, place: int, groups: tuple[int, ...]) -> FloatArray:
    """What typical rows deviate by if the features of a sum are these, and which share of it."""
    columns, row_numbers = _usable(design, place, groups)
    weights, _ = _robust_fit(design, place, groups, N_ROUNDS)
    gap = np.abs(_residuals(design, place, columns, row_numbers, weights))
    size = np.abs(design.columns[place, row_numbers])
    share = gap[size > 0] / size[size > 0]
    return np.array([typical(gap), typical(share)])


def _needed(design: Design, place: int, groups: tuple[int, ...]) -> tuple[int, ...]:
    """The features without which a sum would deviate more."""
    floor = np.array([ROUNDING * float(np.nanmax(np.abs(design.columns[place]))), ROUNDING])
    best = np.maximum(_deviation(design, place, groups), floor)
    for group in reversed(groups):
        fewer = tuple(other for other in groups if other != group)
        if fewer and (_deviation(design, place, fewer) <= MAX_DROPPED_LOSS * best).all():
            groups = fewer
    return groups


def _sum_of(
    data: TrainingColumns, design: Design, place: int, groups: tuple[int, ...]
) -> Linear | None:
    """The sum of some features, with short coefficients where that holds."""
    columns, row_numbers = _usable(design, place, groups)
    weights, _ = _robust_fit(design, place, groups, N_ROUNDS)

    def deviation(given: FloatArray) -> float:
        return typical(np.abs(_residuals(design, place, columns, row_numbers, given)))

    size = float(np.nanmax(np.abs(design.columns[place])))
    parts = np.abs(weights[1:, None] * design.columns[np.ix_(columns, row_numbers)])
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


def find_products(data: TrainingColumns) -> Findings:
    """Products and ratios of two numeric columns, each written in all three ways.

    Correlated columns may hide an equality from some of its columns.
    """
    rows = slice(0, min(data.half, MAX_ROWS))
    n_columns = len(data.numeric)
    if n_columns < 3 or rows.stop < MIN_ROWS:
        return Findings((), 0)
    values = np.array([data.numbers(at, rows) for at in data.numeric])
    logs = np.log(np.abs(values))
    logs[np.isneginf(logs)] = np.nan
    design = Design.of(logs, np.arange(n_columns))
    pairs = dict.fromkeys(
        pair
        for place in range(n_columns)
        for pair in _pairs(logs, place, _selected_factors(design, place))
    )
    relations = (_product_of(data, values, *pair) for pair in pairs)
    return Findings.of(_tried(data, relations), 6 * n_columns)


def _selected_factors(design: Design, place: int) -> list[int]:
    check_cancellation()
    return sorted(_select(design, place, EXPLAINED_BY_PRODUCT, MAX_SELECTED, min_groups=2))


def _pairs(logs: FloatArray, place: int, columns: list[int]) -> list[Pair]:
    """The best pair of the selected columns, as a product and as both ratios."""
    best: tuple[float, int, int, int] | None = None
    for first, second in permutations(columns, 2):
        for sign in (1, -1) if first < second else (-1,):
            rest = logs[place] - logs[first] - sign * logs[second]
            rest = rest[~np.isnan(rest)]
            if rest.size >= MIN_ROWS:
                size = typical(np.abs(rest - np.median(rest)))
                if best is None or size < best[0]:
                    best = (size, first, second, sign)
    if best is None or best[0] > MAX_DEVIATION:
        return []
    _, first, second, sign = best
    result, *factors = (place, first, second) if sign == 1 else (first, *sorted((place, second)))
    one, other = factors
    return [(result, one, other, 1), (one, result, other, -1), (other, result, one, -1)]


def _product_of(
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
