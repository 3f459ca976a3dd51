"""Finding equalities: a column that is a weighted sum, a product or a ratio of others.

For every numeric column, a forward selection among all others on a sample of rows; then the rows
that deviate most are left out and the selection is repeated, so a few broken rows do no harm.
Levels of categories take part in sums as price lists. On logarithms a product is a sum with weights
1 and 1 and a ratio one with 1 and -1, so their two columns are found without looking at all
triples; rows where the target is 0 are left out of it. Terms that are not needed are dropped, and
coefficients become short decimals where that holds. Rows that break a sum may need a term that is 0
in all others: it is looked for in what the sum leaves over.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
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
    MAX_STRETCH,
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
from .views import DateView

# Columns of a sum, and those among which the two of a product are looked for, at most.
MAX_GROUPS, MAX_SELECTED = 12, 6
# Levels of a column that takes part in sums, and terms of all columns, at most.
MAX_LEVELS, MAX_DESIGN = 12, 600
# What the selection must explain, first with broken rows and then without them.
EXPLAINED_BY_SUM, EXPLAINED_BY_PRODUCT = (0.8, 0.97, 0.97), (0.6, 0.9)
# What is explained by few columns may be a bound.
EXPLAINED_BY_BOUND, MAX_GROUPS_OF_BOUND = 0.7, 4
# How often weights are fitted, and how often only to find the rows that deviate most.
N_ROUNDS, N_SELECTING_ROUNDS = 6, 3
# A term is dropped if the deviation without it is at most this many times as large.
MAX_DROPPED_LOSS = 1.2
# Columns that are 0 in nearly all rows, at most, and what they must explain of the others, of
# which some may be broken.
MAX_RARE, EXPLAINED_BY_RARE = 3, 0.3
# The largest deviation of logarithms, in typical rows, of a pair that may be a product.
MAX_DEVIATION = 0.5
# A target, two terms, and the sign of the second one's weight: 1 for a product, -1 for a ratio.
Pair: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Design:
    """Terms that an equality may use, also as integers, and which of them belong together."""

    terms: FloatArray
    whole: FloatArray
    groups: IntArray

    @classmethod
    def of(cls, terms: FloatArray, groups: IntArray) -> Design:
        """The design of terms in groups."""
        return cls(terms, to_integers(terms)[0], groups)

    @classmethod
    def of_sums(cls, data: TrainingColumns, rows: slice) -> Design:
        """Numbers, and one term for each level but the first; the groups are columns."""
        groups = [*data.numeric]
        terms = [data.numbers(at, rows) for at in groups]
        for column, feature in enumerate(data.schema.features):
            few = 1 < feature.n_codes <= MAX_LEVELS and feature.kind == "categorical"
            if few and len(terms) + feature.n_codes <= MAX_DESIGN:
                levels = np.arange(1, feature.n_codes)[:, None]
                terms += list((data.codes[column, rows] == levels).astype(np.float64))
                groups += [column] * (feature.n_codes - 1)
        return cls.of(np.array(terms), np.array(groups))


def find_sums(data: TrainingColumns) -> Findings:
    """Linear equalities, one for each numeric column at most."""
    rows = slice(0, min(data.half, MAX_ROWS))
    if len(data.numeric) == 0 or rows.stop < MIN_ROWS:
        return Findings((), 0)
    design = Design.of_sums(data, rows)
    targets = (at for at, column in enumerate(data.numeric) if not data.is_view(column))
    sums = (found for target in targets for found in _find_sums(data, design, target))
    return Findings.of(_tried(data, sums), 2 * len(data.numeric) * MAX_GROUPS)


def _tried(
    data: TrainingColumns, relations: Iterable[AnyEquality | None]
) -> Iterator[Proposal | None]:
    """Each relation as an equality, and as a bound."""
    for relation in relations:
        if relation is not None and not relation.uses_cells_twice:
            equality = propose(data, relation)
            yield equality
            if equality is None or not data.holds(equality.relation).all():
                yield propose_bound(data, relation)


def _find_sums(data: TrainingColumns, design: Design, target: int) -> Iterator[Linear | None]:
    """A sum, and the same with terms that it rarely has."""
    groups = _select(design, target, EXPLAINED_BY_SUM, MAX_GROUPS)
    if groups:
        groups = _needed(design, target, groups)
        yield _sum_of(data, design, target, groups)
        if rare := _rare_groups(design, target, groups):
            yield _sum_of(data, design, target, groups, rare)


def _rare_groups(design: Design, target: int, groups: tuple[int, ...]) -> tuple[int, ...]:
    """Groups of terms that make up for what few rows have beside a sum, and are 0 in most."""
    regression = Regression.of(design, target, groups)
    rest = regression.target - predict(regression.inputs, regression.fit(N_ROUNDS)[0])
    noise = max(typical(np.abs(rest)), ROUNDING * float(np.abs(regression.target).max()))
    rest = np.where(np.abs(rest) > MAX_STRETCH * noise, rest, 0.0)
    if not rest.any():
        return ()
    free = np.where(np.isin(design.groups, (*groups, design.groups[target])), -1, design.groups)
    terms = design.whole[:, regression.row_numbers]
    selected = select_forward(terms, free, to_integers(rest[None])[0][0], MAX_RARE)
    return selected.groups if selected.explained >= EXPLAINED_BY_RARE else ()


def _select(
    design: Design, target: int, explained: Sequence[float], max_groups: int, min_groups: int = 1
) -> tuple[int, ...]:
    """Groups of terms that a term is a sum of; none if it is no sum.

    A few groups that explain less may give a bound.
    """
    values = design.terms[target]
    groups = np.where(design.groups == design.groups[target], -1, design.groups)
    row_numbers = np.flatnonzero(~np.isnan(values))
    chosen: tuple[int, ...] = ()
    for least in explained:
        if row_numbers.size < MIN_ROWS:
            return ()
        whole = to_integers(values[None, row_numbers])[0][0]
        selected = select_forward(design.whole[:, row_numbers], groups, whole, max_groups)
        if len(selected.groups) < min_groups:
            return ()
        if selected.explained < least:
            is_loose = selected.explained >= EXPLAINED_BY_BOUND
            return (
                selected.groups if is_loose and len(selected.groups) <= MAX_GROUPS_OF_BOUND else ()
            )
        if set(selected.groups) == set(chosen):
            break
        chosen = selected.groups
        regression = Regression.of(design, target, chosen)
        _, kept = regression.fit(N_SELECTING_ROUNDS)
        row_numbers = regression.row_numbers[kept]
    return chosen


@dataclass(frozen=True, eq=False)
class Regression:
    """A target and the terms that explain it, in the rows where none of them is missing."""

    terms: IntArray
    row_numbers: IntArray
    inputs: FloatArray
    target: FloatArray

    @classmethod
    def of(cls, design: Design, target: int, groups: tuple[int, ...]) -> Regression:
        """The regression of a term on some groups of terms."""
        terms = np.flatnonzero(np.isin(design.groups, groups))
        is_missing = np.isnan(design.terms[[*terms, target]]).any(axis=0)
        row_numbers = np.flatnonzero(~is_missing)
        inputs = design.terms[np.ix_(terms, row_numbers)]
        return cls(terms, row_numbers, inputs, design.terms[target, row_numbers])

    def fit(self, n_rounds: int) -> tuple[FloatArray, IntArray]:
        """Weights fitted to all rows but those that deviate most, and the numbers of these."""
        return fit_robustly(self.inputs, self.target, n_rounds)

    def deviations(self, weights: FloatArray) -> FloatArray:
        """How far each target is from the sum."""
        return np.abs(self.target - predict(self.inputs, weights))


def _deviation(design: Design, target: int, groups: tuple[int, ...]) -> FloatArray:
    """How far typical rows deviate from a sum of some groups, also as a share of the target."""
    regression = Regression.of(design, target, groups)
    gap = regression.deviations(regression.fit(N_ROUNDS)[0])
    size = np.abs(regression.target)
    return np.array([typical(gap), typical(gap[size > 0] / size[size > 0])])


def _needed(design: Design, target: int, groups: tuple[int, ...]) -> tuple[int, ...]:
    """The groups without which a sum would deviate more."""
    floor = np.array([ROUNDING * float(np.nanmax(np.abs(design.terms[target]))), ROUNDING])
    best = np.maximum(_deviation(design, target, groups), floor)
    for group in reversed(groups):
        fewer = tuple(other for other in groups if other != group)
        if fewer and (_deviation(design, target, fewer) <= MAX_DROPPED_LOSS * best).all():
            groups = fewer
    return groups


def _sum_of(
    data: TrainingColumns,
    design: Design,
    target: int,
    groups: tuple[int, ...],
    rare: tuple[int, ...] = (),
) -> Linear | None:
    """The sum of some columns, with short coefficients where that holds."""
    groups = tuple(sorted((*groups, *rare)))
    regression = Regression.of(design, target, groups)
    weights, _ = regression.fit(1 if rare else N_ROUNDS)
    is_rare = regression.inputs[np.isin(design.groups[regression.terms], rare)].any(axis=0)

    def deviation(given: FloatArray) -> float:
        gap = regression.deviations(given)
        return max(typical(gap), typical(gap[is_rare]) if is_rare.any() else 0.0)

    size = float(np.nanmax(np.abs(design.terms[target])))
    parts = np.abs(weights[1:, None] * regression.inputs)
    precision = _precision(data, (data.numeric[target], *groups))
    accepted = max(ROUNDING, WRITTEN_ULPS * precision) * size
    noise = ULPS * precision * float(parts.max(initial=size))
    weights = snap(weights, deviation, accepted, noise)
    by_term = dict(zip(regression.terms.tolist(), weights[1:].tolist(), strict=True))
    names = data.names
    terms = tuple(
        _forward(names[design.groups[term]], weight)
        for term, weight in by_term.items()
        if design.groups[term] in data.numeric and weight
    )
    amounts = tuple(_amounts(data, design, by_term, groups))
    if not terms and not amounts:
        return None
    return Linear(names[data.numeric[target]], terms, amounts, float(weights[0]))


def _forward(operand: Hashable, weight: float) -> tuple[Hashable, float]:
    """A term; days between dates count from the earlier one if that spares a minus sign."""
    if isinstance(operand, DateView) and weight < 0:
        return operand.reversed, -weight
    return operand, weight


def _precision(data: TrainingColumns, columns: tuple[int, ...]) -> float:
    """The relative distance of neighbouring floats in the least precise of some columns."""
    tables = [data.schema.features[at].table for at in columns if not data.is_view(at)]
    return max(epsilon(table.dtype) for table in tables)


def _amounts(
    data: TrainingColumns, design: Design, weights: dict[int, float], groups: tuple[int, ...]
) -> Iterator[tuple[object, tuple[tuple[object, float], ...]]]:
    """The price list of each categorical feature, its first level 0."""
    for group in groups:
        if group in data.numeric:
            continue
        given = [weights[term] for term in np.flatnonzero(design.groups == group).tolist()]
        if any(given):
            levels = values_of(data.schema.features[group])
            yield data.names[group], tuple(zip(levels, [0.0, *given], strict=True))


def find_products(data: TrainingColumns) -> Findings:
    """Products and ratios of two numeric columns, each written in all three ways.

    Correlated columns may hide an equality from some of its columns.
    """
    rows = slice(0, min(data.half, MAX_ROWS))
    n_columns = len(data.numeric)
    if n_columns < 3 or rows.stop < MIN_ROWS:
        return Findings((), 0)
    values = np.array([data.numbers(column, rows) for column in data.numeric])
    logs = np.log(np.abs(values))
    logs[np.isneginf(logs)] = np.nan
    design = Design.of(logs, np.arange(n_columns))
    pairs = dict.fromkeys(
        pair
        for target in range(n_columns)
        for pair in _pairs(logs, target, _selected_factors(design, target))
    )
    targets = {place for place, at in enumerate(data.numeric) if not data.is_view(at)}
    relations = (_product_of(data, values, *pair) for pair in pairs if pair[0] in targets)
    return Findings.of(_tried(data, relations), 6 * n_columns)


def _selected_factors(design: Design, target: int) -> list[int]:
    check_cancellation()
    return sorted(_select(design, target, EXPLAINED_BY_PRODUCT, MAX_SELECTED, min_groups=2))


def _pairs(logs: FloatArray, target: int, terms: list[int]) -> list[Pair]:
    """The best pair of the selected terms, as a product and as both ratios."""
    best: tuple[float, int, int, int] | None = None
    for first, second in permutations(terms, 2):
        for sign in (1, -1) if first < second else (-1,):
            rest = logs[target] - logs[first] - sign * logs[second]
            rest = rest[~np.isnan(rest)]
            if rest.size >= MIN_ROWS:
                size = typical(np.abs(rest - np.median(rest)))
                if best is None or size < best[0]:
                    best = (size, first, second, sign)
    if best is None or best[0] > MAX_DEVIATION:
        return []
    _, first, second, sign = best
    if sign == -1:
        target, first, second = first, *sorted((target, second))
    return [(target, first, second, 1), (first, target, second, -1), (second, target, first, -1)]


def _product_of(
    data: TrainingColumns, values: FloatArray, target: int, first: int, second: int, sign: int
) -> Product | Ratio | None:
    own = values[target]
    formula = values[first] * values[second] if sign == 1 else values[first] / values[second]
    factors = own / formula
    factors = factors[np.isfinite(factors)]
    if not factors.size:
        return None
    formula = np.where(np.isfinite(formula), formula, np.nan)

    def deviation(given: FloatArray) -> float:
        gap = np.abs(own - given[0] * formula)
        return typical(gap[~np.isnan(gap)])

    accepted = ROUNDING * float(np.nanmax(np.abs(own)))
    factor = float(snap(np.array([np.median(factors)]), deviation, accepted)[0])
    if not factor:
        return None
    result, one, other = (data.names[data.numeric[at]] for at in (target, first, second))
    return (Product if sign == 1 else Ratio)(result, one, other, factor)
