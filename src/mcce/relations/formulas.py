"""Finding formulas: a column that is a sum, a product or a quotient of others, or nearly so.

For every numeric column, a forward selection among all others on a sample of rows; then the rows
that deviate most are left out and the selection is repeated, so a few broken rows do no harm.
Levels of categories take part in sums as price lists. On logarithms products and quotients are sums
whose weights are whole, and levels are factors; rows where the target is 0 are left out there. If a
column times, or divided by, one of the columns so selected is a sum, that is a quotient or product
of sums. Terms that are not needed are dropped, and coefficients become short decimals where that
holds. Rows that break a sum may need a term that is 0 in all others: it is looked for in what the
sum leaves over.

The tolerance of an equality is the largest deviation up to three times that of the best 95 % of
rows, so it is that of all rows unless some are broken. Half a unit of the target's last decimal
breaks nothing, since targets are rounded. A tolerance is at most a fifth of the mean deviation of
targets from their median: an equality that holds within a larger one would say too little. What is
left over beside a formula that says less is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from ..kernels import FloatArray, IntArray, check_cancellation
from ..tables.features import WRITTEN_ULPS, epsilon
from .dates import DateView
from .evidence import MAX_BROKEN, MIN_CONFIRMING, Recipe, TrainingColumns, count_passing, defined
from .fitting import fit_robustly, predict, round_up, select_forward, snap, typical
from .kinds import Equation
from .orderings import outward
from .relation import View, columns_of, numbers_of, values_of
from .views import Amounts, Product, Sum

# Rows that a fit looks at, at most and at least.
MAX_ROWS, MIN_ROWS = 1000, 40
# Columns of a sum, and those of a product, at most.
MAX_TERMS, MAX_FACTORS = 12, 6
# Levels of a column that takes part, and terms of all columns, at most.
MAX_LEVELS, MAX_DESIGN = 12, 600
# What the selection must explain, first with broken rows and then without them.
EXPLAINED_BY_SUM, EXPLAINED_BY_PRODUCT = (0.8, 0.97, 0.97), (0.6, 0.9)
# What is explained by few columns may be a bound.
EXPLAINED_BY_BOUND, MAX_TERMS_OF_BOUND = 0.7, 4
# How often weights are fitted, and how often only to find the rows that deviate most.
N_ROUNDS, N_SELECTING_ROUNDS = 6, 3
# A term is dropped if the deviation without it is at most this many times as large.
MAX_DROPPED_LOSS = 1.2
# Columns that are 0 in nearly all rows, at most, and what they must explain of the others, of
# which some may be broken.
MAX_RARE, EXPLAINED_BY_RARE = 3, 0.3
# How far the weight of a logarithm may be from a whole number, which is at most 2; how often columns
# are selected, each time without the last one; columns that a target is multiplied or divided by;
# how often factors of several categories are fitted in turn.
MAX_FROM_WHOLE, MAX_POWER, N_SELECTIONS, MAX_MULTIPLIERS, N_TURNS = 0.2, 2, 2, 3, 5
# The largest deviation of logarithms, in typical rows, of a product.
MAX_DEVIATION = 0.5
# Rows that deviate this many times as much as typical ones break an equality.
MAX_STRETCH = 3.0
# Rows for discovery are half of all: the others may deviate slightly more.
MARGIN = 1.25
# The largest tolerance, as a share of the mean deviation of targets from their median.
MAX_TOLERANCE = 0.2
# Rounding errors of a target reach more than this share of half a unit of its last decimal.
REACHED_BY_ROUNDING = 0.6
# Relative error that floating point may make.
ROUNDING = 1e-9
# A bound on a formula excludes at least this share of permuted targets; a simpler formula may let
# this many times as many pass.
MIN_EXCLUDED, MAX_SIMPLER = 0.5, 1.1


def find_formulas(half: TrainingColumns) -> Iterator[Recipe]:
    """Equalities and bounds of each numeric column."""
    sample = half.at(slice(0, MAX_ROWS))
    if len(sample) < MIN_ROWS or not half.numbers:
        return
    sums, logs = (Design.of(sample, in_logs) for in_logs in (False, True))
    tried = set[tuple[Hashable, Sum | Product]]()
    for target in half.numbers:
        check_cancellation()
        if isinstance(target, View):
            continue
        for result, formula in _formulas(sample, sums, logs, target):
            columns = [result, *(name for one in formula.of for name in columns_of(one))]
            if (result, formula) in tried or len(set(columns)) < len(columns):
                continue
            tried.add((result, formula))
            yield partial(_equality, result, formula)
            bound = _tightest(half, result, formula)
            if bound is not None:
                yield partial(_bound, result, bound.formula, bound.relative)


@dataclass(frozen=True, eq=False)
class Design:
    """Terms that a formula may use: numbers or their logarithms, and a term for each level.

    ``groups`` says to which of the operands a term belongs. Scaled terms are 0 where missing.
    """

    operands: list[Hashable]
    terms: FloatArray
    groups: IntArray
    scaled: FloatArray

    @classmethod
    def of(cls, sample: TrainingColumns, in_logs: bool) -> Design:
        """The numbers of some rows, and the levels of categories that have few."""
        operands, terms = [*sample.numbers], [numbers_of(sample, one) for one in sample.numbers]
        if in_logs:
            terms = [_log(numbers) for numbers in terms]
        groups = [*range(len(terms))]
        for column, feature in enumerate(sample.schema.features):
            few = 1 < feature.n_codes <= MAX_LEVELS
            # Numbers take part in sums as they are.
            few &= feature.kind == "categorical" or (in_logs and feature.name in sample.numbers)
            if few and len(terms) + feature.n_codes <= MAX_DESIGN:
                levels = np.arange(1, feature.n_codes)[:, None]
                terms += list((sample.codes[column] == levels).astype(np.float64))
                groups += [len(operands)] * (feature.n_codes - 1)
                operands.append(feature.name)
        of_all = np.array(terms)
        return cls(operands, of_all, np.array(groups), np.array([_scaled(one) for one in of_all]))

    def select(
        self, target: FloatArray, banned: Collection[int], explained: Sequence[float], most: int
    ) -> list[int]:
        """Operands that a target is a sum of; none if it is no sum.

        A few operands that explain less may give a bound.
        """
        groups = np.where(np.isin(self.groups, [*banned]), -1, self.groups)
        rows, chosen = np.flatnonzero(~np.isnan(target)), list[int]()
        for least in explained:
            if rows.size < MIN_ROWS:
                return []
            whole = _scaled(target[rows])
            selected, share = select_forward(self.scaled[:, rows], groups, whole, most)
            if share < least:
                few = share >= EXPLAINED_BY_BOUND and len(selected) <= MAX_TERMS_OF_BOUND
                return selected if few else []
            if set(selected) == set(chosen):
                break
            chosen = selected
            regression = Regression.of(self, target, chosen)
            rows = regression.rows[regression.fit(N_SELECTING_ROUNDS)[1]]
        return self.needed(target, chosen)

    def needed(self, target: FloatArray, chosen: list[int]) -> list[int]:
        """The operands without which a sum would deviate more."""
        floor = np.array([ROUNDING * float(np.nanmax(np.abs(target))), ROUNDING])
        best = np.maximum(self._deviation(target, chosen), floor)
        for one in reversed(chosen):
            fewer = [other for other in chosen if other != one]
            if fewer and (self._deviation(target, fewer) <= MAX_DROPPED_LOSS * best).all():
                chosen = fewer
        return chosen

    def _deviation(self, target: FloatArray, chosen: list[int]) -> FloatArray:
        """How far typical rows are from a sum of operands, also as a share of the target."""
        regression = Regression.of(self, target, chosen)
        gap = regression.deviations(regression.fit(N_ROUNDS)[0])
        size = np.abs(regression.target)
        return np.array([typical(gap), typical(gap[size > 0] / size[size > 0])])


def _log(numbers: FloatArray) -> FloatArray:
    """Logarithms of sizes, NaN for 0."""
    return np.log(np.where(numbers == 0, np.nan, np.abs(numbers)))


def _scaled(numbers: FloatArray) -> FloatArray:
    """Numbers between -1 and 1, 0 for missing."""
    low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    unit = high / 2 - low / 2
    return np.nan_to_num((numbers - (low / 2 + high / 2)) / unit) if unit > 0 else 0.0 * numbers


@dataclass(frozen=True, eq=False)
class Regression:
    """A target and the terms that explain it, in the rows where none of them is missing."""

    terms: IntArray
    rows: IntArray
    inputs: FloatArray
    target: FloatArray

    @classmethod
    def of(cls, design: Design, target: FloatArray, chosen: Sequence[int]) -> Regression:
        """The regression of a target on some operands."""
        terms = np.flatnonzero(np.isin(design.groups, chosen))
        is_missing = np.isnan(design.terms[terms]).any(axis=0) | np.isnan(target)
        rows = np.flatnonzero(~is_missing)
        return cls(terms, rows, design.terms[np.ix_(terms, rows)], target[rows])

    def fit(self, n_rounds: int) -> tuple[FloatArray, IntArray]:
        """Weights fitted to all rows but those that deviate most, and the numbers of these."""
        return fit_robustly(self.inputs, self.target, n_rounds)

    def deviations(self, weights: FloatArray) -> FloatArray:
        """How far each target is from the sum."""
        return np.abs(self.target - predict(self.inputs, weights))


def _formulas(
    sample: TrainingColumns, sums: Design, logs: Design, target: Hashable
) -> Iterator[tuple[Hashable, Sum | Product]]:
    """Columns and the formulas that may give them, found from one of them."""
    numbers, at = numbers_of(sample, target), sums.operands.index(target)
    precision = sample.half_unit(target)
    found: list[Sum | Product] = [*_sums(sample, sums, numbers, [at], precision)]
    yield from ((target, formula) for formula in found)
    banned, product = [number for number, one in enumerate(logs.operands) if one == target], None
    for _ in range(N_SELECTIONS):
        factors = logs.select(_log(numbers), banned, EXPLAINED_BY_PRODUCT, MAX_FACTORS)
        if not factors:
            break
        product = _product(sample, logs, target, sorted(factors))
        if product is not None:
            found.append(product)
            yield from _ways(target, product)
            break
        # What explained least may stand for something else.
        banned.append(factors[-1])
    equalities = [_equality(target, formula, sample, 1.0) for formula in found]
    if not any(equalities):
        for multiplier in [one for one in factors if one < len(sample.numbers)][:MAX_MULTIPLIERS]:
            yield from _multiplied_sums(sample, sums, target, multiplier)


def _multiplied_sums(
    sample: TrainingColumns, sums: Design, target: Hashable, multiplier: int
) -> Iterator[tuple[Hashable, Product]]:
    """Sums that give a column when they are multiplied or divided by another one."""
    numbers, other = numbers_of(sample, target), numbers_of(sample, sums.operands[multiplier])
    banned = [sums.operands.index(target), multiplier]
    for power, scale in ((1, 1 / other), (-1, other)):
        rest = np.where(np.isfinite(numbers * scale), numbers * scale, np.nan)
        precision = sample.half_unit(target) * float(np.nanmedian(np.abs(scale)))
        for one in _sums(sample, sums, rest, banned, precision):
            if len(one.of) + bool(one.constant) > 1:
                yield target, Product((one, sums.operands[multiplier]), (1, power))


def _sums(
    sample: TrainingColumns,
    design: Design,
    numbers: FloatArray,
    banned: Collection[int],
    precision: float,
) -> Iterator[Sum]:
    """A sum that gives numbers of some precision, and the same with terms that it rarely has."""
    chosen = design.select(numbers, banned, EXPLAINED_BY_SUM, MAX_TERMS)
    if chosen:
        yield from _sum(sample, design, numbers, chosen, [], precision)
        if rare := _rare(design, numbers, chosen, banned):
            yield from _sum(sample, design, numbers, chosen, rare, precision)


def _rare(
    design: Design, numbers: FloatArray, chosen: Sequence[int], banned: Collection[int]
) -> list[int]:
    """Operands that make up for what few rows have beside a sum, and are 0 in most."""
    regression = Regression.of(design, numbers, chosen)
    rest = regression.target - predict(regression.inputs, regression.fit(N_ROUNDS)[0])
    noise = max(typical(np.abs(rest)), ROUNDING * float(np.abs(regression.target).max()))
    rest = np.where(np.abs(rest) > MAX_STRETCH * noise, rest, 0.0)
    if not rest.any():
        return []
    free = np.where(np.isin(design.groups, [*chosen, *banned]), -1, design.groups)
    terms = design.scaled[:, regression.rows]
    selected, explained = select_forward(terms, free, _scaled(rest), MAX_RARE)
    return selected if explained >= EXPLAINED_BY_RARE else []


def _sum(
    sample: TrainingColumns,
    design: Design,
    numbers: FloatArray,
    chosen: Sequence[int],
    rare: Sequence[int],
    precision: float,
) -> Iterator[Sum]:
    """The sum of some operands, with short coefficients where that holds; none if it is empty."""
    operands = sorted([*chosen, *rare])
    regression = Regression.of(design, numbers, operands)
    weights, _ = regression.fit(1 if rare else N_ROUNDS)
    is_rare = regression.inputs[np.isin(design.groups[regression.terms], rare)].any(axis=0)

    def deviation(given: FloatArray) -> float:
        gap = regression.deviations(given)
        return max(_beyond(gap, precision), _beyond(gap[is_rare], precision) if rare else 0.0)

    operand_names = [design.operands[one] for one in operands]
    accepted = _noise(sample, operand_names) * float(np.nanmax(np.abs(numbers)))
    constant, *weights = snap(weights, deviation, accepted).tolist()
    terms = list[tuple[Hashable, float]]()
    for one in operands:
        of_operand = [weights[at] for at in np.flatnonzero(design.groups[regression.terms] == one)]
        terms.append(_term(sample, design.operands[one], of_operand, regression.rows))
    terms = [(operand, weight) for operand, weight in terms if weight]
    if terms:
        names, of_names = zip(*terms, strict=True)
        yield Sum(names, of_names, constant)


def _term(
    sample: TrainingColumns, operand: Hashable, weights: Sequence[float], rows: IntArray
) -> tuple[Hashable, float]:
    """An operand and its weight; of a category its price list, in which the first level is 0."""
    if operand not in sample.numbers:
        seen = np.isin(np.arange(len(weights) + 1), sample.codes_of(operand)[rows])
        return _price_list(sample, operand, np.where(seen, [0.0, *weights], np.nan)), float(
            any(weights)
        )
    # Days between dates count from the earlier one if that spares a minus sign.
    if isinstance(operand, DateView) and weights[0] < 0:
        return operand.reversed, -weights[0]
    return operand, weights[0]


def _price_list(sample: TrainingColumns, column: Hashable, amounts: FloatArray) -> Amounts:
    """The amounts of levels, those left out that are unknown."""
    pairs = zip(values_of(sample.feature(column)), amounts.tolist(), strict=True)
    return Amounts((column,), tuple(pair for pair in pairs if not math.isnan(pair[1])))


def _beyond(gap: FloatArray, half_unit: float) -> float:
    """The typical deviation, or 0 if hardly any is more than an error of rounding."""
    if gap.size and (gap <= half_unit * (1 + ROUNDING)).mean() >= 1 - MAX_BROKEN:
        return 0.0
    return typical(gap)


def _noise(sample: TrainingColumns, operands: Sequence[Hashable]) -> float:
    """The relative error that floats make in the least precise of some columns."""
    columns = [one for one in operands if not isinstance(one, View)]
    of_columns = (epsilon(sample.feature(one).table.dtype) for one in columns)
    return max(ROUNDING, WRITTEN_ULPS * max(of_columns, default=0.0))


def _product(
    sample: TrainingColumns, design: Design, target: Hashable, factors: Sequence[int]
) -> Product | None:
    """The product of some operands, with short factors where that holds."""
    own = numbers_of(sample, target)
    regression = Regression.of(design, _log(own), factors)
    weights, owners = regression.fit(N_ROUNDS)[0][1:], design.groups[regression.terms]
    numbers = [one for one in factors if one < len(sample.numbers)]
    categories = [design.operands[one] for one in factors if one not in numbers]
    of_numbers = np.array([weights[owners == one][0] for one in numbers])
    powers = np.rint(of_numbers).astype(int)
    is_whole = (np.abs(of_numbers - powers) <= MAX_FROM_WHOLE) & (powers != 0)
    # One number is a sum, one category a dependency.
    is_more = len(factors) > 1 or (powers < 0).any()
    if not is_more or not is_whole.all() or (np.abs(powers) > MAX_POWER).any():
        return None
    base = Product(tuple(design.operands[one] for one in numbers), tuple(powers.tolist()))
    product = _with_factors(sample, target, base, categories)
    gap = np.abs(_log(own / product.numbers(sample))) if product else np.full(1, np.inf)
    return product if typical(gap[~np.isnan(gap)]) <= MAX_DEVIATION else None


def _with_factors(
    sample: TrainingColumns, target: Hashable, base: Product, categories: Sequence[Hashable]
) -> Product | None:
    """A product times a factor, or times one for each level of categories; None if all are 0."""
    own = numbers_of(sample, target)
    codes = [sample.codes_of(name) for name in categories] or [np.zeros(own.size, dtype=np.int32)]
    sizes = [sample.feature(name).n_codes for name in categories] or [1]
    numbers = base.numbers(sample)
    ends_of = np.cumsum(sizes)[:-1]
    fitted = [np.ones(size) for size in sizes]

    def compute(parts: Sequence[FloatArray]) -> FloatArray:
        return np.asarray(math.prod(part[code] for part, code in zip(parts, codes, strict=True)))

    for _ in range(N_TURNS if len(codes) > 1 else 1):
        for at, code in enumerate(codes):
            others = compute([*fitted[:at], np.ones(sizes[at]), *fitted[at + 1 :]])
            ratio = own / (numbers * others)
            medians = pd.Series(np.where(np.isfinite(ratio), ratio, np.nan)).groupby(code).median()
            fitted[at] = medians.reindex(range(sizes[at])).to_numpy()

    def deviation(given: FloatArray) -> float:
        gap = np.abs(own - numbers * compute(np.split(given[1:], ends_of)))
        return _beyond(gap[~np.isnan(gap)], sample.half_unit(target))

    accepted = ROUNDING * float(np.nanmax(np.abs(own)))
    factors = snap(np.concatenate([[0.0], *fitted]), deviation, accepted)[1:]
    if not np.nan_to_num(factors).any():
        return None
    if not categories:
        return replace(base, factor=float(factors[0]))
    parts = zip(categories, np.split(factors, ends_of), strict=True)
    lists = [_price_list(sample, name, part) for name, part in parts]
    return Product((*lists, *base.of), (*(1 for _ in lists), *base.powers))


def _ways(target: Hashable, product: Product) -> Iterator[tuple[Hashable, Product]]:
    """A product, also written for each of its columns, which others may hide it from."""
    yield target, product
    is_simple = all(abs(power) == 1 for power in product.powers)
    if is_simple and not any(isinstance(one, Amounts) for one in product.of):
        powers = dict(zip(product.of, product.powers, strict=True))
        for one, power in powers.items():
            others = {other: -power * each for other, each in powers.items() if other != one}
            factor = product.factor**-power
            if not isinstance(one, View) and math.isfinite(factor):
                yield one, Product((target, *others), (power, *others.values()), factor)


def _equality(
    result: Hashable, formula: Sum | Product, data: TrainingColumns, margin: float
) -> Equation | None:
    """The equality with the tolerance that rows need; None if that would say too little."""
    target, computed = defined([numbers_of(data, result), formula.numbers(data)])
    if target.size < MIN_CONFIRMING:
        return None
    gap, size = np.abs(target - computed), np.abs(computed)
    rounding, half_unit = (
        ROUNDING * float(max(np.abs(target).max(), size.max())),
        data.half_unit(result),
    )
    exact = Equation(result, formula, rounding=rounding)
    needed = _needed(gap, half_unit + rounding)
    if needed <= rounding:
        return exact
    if REACHED_BY_ROUNDING * half_unit < needed <= half_unit + rounding:
        tolerance, relative = half_unit, False
    else:
        share = gap / np.where(size > 0, size, 1.0)
        of_formula = _needed(share[size > 0], 0.0)
        relative = (gap[size == 0] <= rounding).all() and 0 < of_formula * size.mean() < needed
        tolerance = round_up((of_formula if relative else needed) * margin)
    allowed = tolerance * (size.mean() if relative else 1.0)
    if not allowed <= MAX_TOLERANCE * margin * np.abs(target - np.median(target)).mean():
        return None
    return replace(exact, low=-tolerance, high=tolerance, relative=bool(relative))


def _needed(size: FloatArray, rounding: float) -> float:
    """Tolerance of all rows but those that deviate far more than typical ones."""
    most = max(MAX_STRETCH * typical(size), rounding)
    return float(size.max(where=size <= most, initial=0.0))


def _tightest(half: TrainingColumns, result: Hashable, formula: Sum | Product) -> Equation | None:
    """The bound that excludes most permuted targets, or nearly so if its formula is simpler."""
    bounds = [
        bound
        for simple in _simpler(formula)
        for relative in (False, True)
        if (bound := _bound(result, simple, relative, half, 1.0)) and not _is_on_pair(bound)
    ]
    passing = [1 - _excluded(bound, half) for bound in bounds]
    most = MAX_SIMPLER * min(passing, default=0.0)
    pairs = zip(bounds, passing, strict=True)
    return next((bound for bound, share in pairs if share <= most), None)


def _simpler(formula: Sum | Product) -> Iterator[Sum | Product]:
    """A formula with whole weights; none if it divides, or has other weights or price lists."""
    if isinstance(formula, Product):
        if min(formula.powers) > 0:
            yield replace(formula, factor=1.0)
    elif not any(isinstance(one, Amounts) for one in formula.of):
        weights = tuple(round(weight) + 0.0 for weight in formula.weights)
        if all(weights):
            yield replace(formula, weights=weights, constant=0.0)
            yield replace(formula, weights=weights)


def _is_on_pair(bound: Equation) -> bool:
    """Whether it bounds a difference or a ratio of two columns, which are found by themselves."""
    formula = bound.formula
    if isinstance(formula, Product) or len(formula.of) > 1 or formula.constant:
        return False
    return bound.relative or formula.weights == (1.0,)


def _bound(
    result: Hashable, formula: Sum | Product, relative: bool, data: TrainingColumns, margin: float
) -> Equation | None:
    """The bound on what is left over beside a formula; None if it says too little."""
    target, computed = defined([numbers_of(data, result), formula.numbers(data)])
    is_zero = computed == 0
    # The error of a product grows with it.
    if isinstance(formula, Product) > relative or not target.size:
        return None
    if relative and ((computed < 0).any() or target[is_zero].any()):
        return None
    rest = target[~is_zero] / computed[~is_zero] - 1 if relative else target - computed
    if not rest.size or not np.isfinite(rest).all():
        return None
    rounding = ROUNDING * float(np.abs([target, computed]).max())
    low, high = -outward(-rest) + 0.0, outward(rest)
    bound = Equation(result, formula, low, high, relative, rounding, is_bound=True)
    return bound if _excluded(bound, data) >= MIN_EXCLUDED else None


def _excluded(bound: Equation, data: TrainingColumns) -> float:
    """The share of permuted targets that a bound excludes."""
    return count_passing(*defined(bound.limits(data)))[1]
