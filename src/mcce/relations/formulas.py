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
targets from their median: an equality that holds within a larger one would say too little. What a
sum with whole weights or a product leaves over is bounded, as far as that says something.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd

from ..kernels import FloatArray, IntArray, check_cancellation
from .dates import DateView
from .evidence import (
    MAX_BROKEN,
    MIN_CONFIRMING,
    Recipe,
    TrainingColumns,
    count_passing,
    defined,
)
from .fitting import fit_robustly, predict, round_up, select_forward, snap, typical
from .kinds import NOISE, Equation
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
# How far the weight of a logarithm may be from a whole number, which is at most 2.
MAX_FROM_WHOLE, MAX_POWER = 0.2, 2
# How often the columns of a product are selected, each time without the last one, and columns that
# a target is multiplied or divided by; how often factors of several categories are fitted in turn.
N_SELECTIONS, MAX_MULTIPLIERS, N_TURNS = 2, 3, 5
# The largest deviation of logarithms, in typical rows, of a product.
MAX_DEVIATION = 0.5
# Rows that deviate this many times as much as typical ones break an equality.
MAX_STRETCH = 3.0
# The largest tolerance, as a share of the mean deviation of targets from their median.
MAX_TOLERANCE = 0.2
# Rounding errors of a target reach more than this share of half a unit of its last decimal.
REACHED_BY_ROUNDING = 0.6
# A bound on a formula excludes at least this share of permuted targets.
MIN_EXCLUDED = 0.5
Found: TypeAlias = tuple[Hashable, Sum | Product]


def find_formulas(half: TrainingColumns) -> Iterator[Recipe]:
    """Equalities and bounds of each numeric column."""
    sample = half.at(slice(0, MAX_ROWS))
    if len(sample) < MIN_ROWS or not half.numbers:
        return
    finder = _Finder(sample, _Terms.of(sample), _Terms.of(sample, in_logs=True))
    tried = set[Found]()
    for target in half.numbers:
        check_cancellation()
        for found in finder.formulas(target) if not isinstance(target, View) else ():
            result, formula = found
            columns = [result, *(name for one in formula.of for name in columns_of(one))]
            if found in tried or len(set(columns)) < len(columns):
                continue
            tried.add(found)
            yield partial(_equality, result, formula)
            if simple := _simplified(formula):
                yield partial(_bound, result, simple)


@dataclass(frozen=True, eq=False)
class _Terms:
    """Numbers of some rows, or their logarithms, and a term for each level of a category.

    ``groups`` says to which of the operands a term belongs. Scaled terms are 0 where missing.
    """

    operands: list[Hashable]
    values: FloatArray
    groups: IntArray
    scaled: FloatArray

    @classmethod
    def of(cls, sample: TrainingColumns, *, in_logs: bool = False) -> _Terms:
        """The terms of a sample; on logarithms, numbers of few values are categories too."""
        operands, terms = [*sample.numbers], [numbers_of(sample, one) for one in sample.numbers]
        if in_logs:
            terms = [_log(numbers) for numbers in terms]
        groups = [*range(len(terms))]
        for codes, feature in zip(sample.codes, sample.schema.features, strict=True):
            is_category = feature.kind == "categorical" or in_logs * feature.is_number
            few = 1 < feature.n_codes <= MAX_LEVELS
            if is_category and few and len(terms) + feature.n_codes <= MAX_DESIGN:
                levels = np.arange(1, feature.n_codes)[:, None]
                terms += list((codes == levels).astype(np.float64))
                groups += [len(operands)] * (feature.n_codes - 1)
                operands.append(feature.name)
        scaled = np.array([_scaled(term) for term in terms])
        return cls(operands, np.array(terms), np.array(groups), scaled)

    def free(self, banned: Collection[int]) -> IntArray:
        """The groups, negative for terms of some operands."""
        return np.where(np.isin(self.groups, [*banned]), -1, self.groups)

    def select(
        self, target: FloatArray, banned: Collection[int], explained: Sequence[float], most: int
    ) -> list[int]:
        """Operands that a target is a sum of; none if it is no sum.

        A few operands that explain less may give a bound.
        """
        rows, chosen = np.flatnonzero(~np.isnan(target)), list[int]()
        for least in explained:
            if rows.size < MIN_ROWS:
                return []
            selected, share = select_forward(
                self.scaled[:, rows], self.free(banned), _scaled(target[rows]), most
            )
            if share < least:
                few = share >= EXPLAINED_BY_BOUND and len(selected) <= MAX_TERMS_OF_BOUND
                return selected if few else []
            if set(selected) == set(chosen):
                break
            chosen = selected
            fit = _Fit.of(self, target, chosen, N_SELECTING_ROUNDS)
            rows = fit.rows[fit.kept]
        return self._needed(target, chosen)

    def _needed(self, target: FloatArray, chosen: list[int]) -> list[int]:
        """The operands without which a sum would deviate more."""
        floor = np.array([NOISE * float(np.nanmax(np.abs(target))), NOISE])
        best = np.maximum(_Fit.of(self, target, chosen).deviation, floor)
        for one in reversed(chosen):
            fewer = [other for other in chosen if other != one]
            if fewer:
                deviation = _Fit.of(self, target, fewer).deviation
                chosen = fewer if (deviation <= MAX_DROPPED_LOSS * best).all() else chosen
        return chosen


def _log(numbers: FloatArray) -> FloatArray:
    """Logarithms of sizes, NaN for 0."""
    return np.log(np.where(numbers == 0, np.nan, np.abs(numbers)))


def _scaled(numbers: FloatArray) -> FloatArray:
    """Numbers between -1 and 1, 0 for missing."""
    low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    unit = high / 2 - low / 2
    return np.nan_to_num((numbers - (low / 2 + high / 2)) / unit) if unit > 0 else 0.0 * numbers


@dataclass(frozen=True, eq=False)
class _Fit:
    """A robust fit of terms to a target, in the rows where none of them is missing."""

    # The operand of each term, the rows, and which of them were not left out.
    groups: IntArray
    rows: IntArray
    kept: IntArray
    inputs: FloatArray
    target: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls, terms: _Terms, target: FloatArray, chosen: Sequence[int], n_rounds: int = N_ROUNDS
    ) -> _Fit:
        """The fit of the terms of some operands; the first weight is that of a constant."""
        of_chosen = np.isin(terms.groups, chosen)
        inputs = terms.values[of_chosen]
        rows = np.flatnonzero(~(np.isnan(inputs).any(axis=0) | np.isnan(target)))
        weights, kept = fit_robustly(inputs[:, rows], target[rows], n_rounds)
        return cls(terms.groups[of_chosen], rows, kept, inputs[:, rows], target[rows], weights)

    def gaps(self, weights: FloatArray) -> FloatArray:
        """How far each target is from the sum with some weights."""
        return np.abs(self.target - predict(self.inputs, weights))

    @property
    def deviation(self) -> FloatArray:
        """How far typical targets are from the sum, also as a share of the target."""
        gap, size = self.gaps(self.weights), np.abs(self.target)
        return np.array([typical(gap), typical(gap[size > 0] / size[size > 0])])


@dataclass(frozen=True, eq=False)
class _Finder:
    """Finds the formulas that may give a column."""

    sample: TrainingColumns
    terms: _Terms
    logs: _Terms

    def formulas(self, target: Hashable) -> Iterator[Found]:
        """Columns and formulas for them, found from one column."""
        numbers, at = numbers_of(self.sample, target), self.terms.operands.index(target)
        found: list[Found] = [
            (target, one) for one in self._sums(numbers, [at], self.sample.half_unit(target))
        ]
        banned = [number for number, one in enumerate(self.logs.operands) if one == target]
        for _ in range(N_SELECTIONS):
            factors = self.logs.select(_log(numbers), banned, EXPLAINED_BY_PRODUCT, MAX_FACTORS)
            product = self._product(target, sorted(factors)) if factors else None
            if product or not factors:
                break
            # What explained least may stand for something else.
            banned.append(factors[-1])
        found += _ways(target, product) if product else []
        yield from found
        if not any(_equality(*one, self.sample, 1.0) for one in found if one[0] == target):
            multipliers = [one for one in factors if one < len(self.sample.numbers)]
            for multiplier in multipliers[:MAX_MULTIPLIERS]:
                yield from self._multiplied_sums(target, multiplier)

    def _multiplied_sums(self, target: Hashable, multiplier: int) -> Iterator[Found]:
        """Sums that give a column when they are multiplied or divided by another one."""
        operand = self.terms.operands[multiplier]
        numbers, other = (numbers_of(self.sample, one) for one in (target, operand))
        banned = [self.terms.operands.index(target), multiplier]
        for power, scale in ((1, 1 / other), (-1, other)):
            rest = np.where(np.isfinite(numbers * scale), numbers * scale, np.nan)
            half_unit = self.sample.half_unit(target) * float(np.nanmedian(np.abs(scale)))
            for one in self._sums(rest, banned, half_unit):
                if len(one.of) + bool(one.constant) > 1:
                    yield target, Product((one, operand), (1, power))

    def _sums(self, numbers: FloatArray, banned: list[int], half_unit: float) -> Iterator[Sum]:
        """A sum that gives rounded numbers, and the same with terms that it rarely has."""
        chosen = self.terms.select(numbers, banned, EXPLAINED_BY_SUM, MAX_TERMS)
        if chosen:
            fit = _Fit.of(self.terms, numbers, chosen)
            rare = self._rare(fit, [*chosen, *banned])
            sums = [self._sum(fit, [], half_unit)]
            if rare:
                fit = _Fit.of(self.terms, numbers, [*chosen, *rare], n_rounds=1)
                sums.append(self._sum(fit, rare, half_unit))
            yield from (one for one in sums if one.of)

    def _rare(self, fit: _Fit, banned: list[int]) -> list[int]:
        """Operands that make up for what few rows have beside a sum, and are 0 in most."""
        rest = fit.target - predict(fit.inputs, fit.weights)
        noise = max(typical(np.abs(rest)), NOISE * float(np.abs(fit.target).max()))
        rest = np.where(np.abs(rest) > MAX_STRETCH * noise, rest, 0.0)
        if not rest.any():
            return []
        terms, free = self.terms.scaled[:, fit.rows], self.terms.free(banned)
        selected, explained = select_forward(terms, free, _scaled(rest), MAX_RARE)
        return selected if explained >= EXPLAINED_BY_RARE else []

    def _sum(self, fit: _Fit, rare: list[int], half_unit: float) -> Sum:
        """The sum of some operands, with short coefficients where that holds."""
        is_rare = fit.inputs[np.isin(fit.groups, rare)].any(axis=0)

        def deviation(given: FloatArray) -> float:
            gap = fit.gaps(given)
            return max(_beyond(gap, half_unit), _beyond(gap[is_rare], half_unit) if rare else 0.0)

        noise = NOISE * float(np.abs(fit.target).max())
        constant, *weights = snap(fit.weights, deviation, noise).tolist()
        of_operands = [
            self._term(one, [weights[at] for at in np.flatnonzero(fit.groups == one)], fit.rows)
            for one in np.unique(fit.groups).tolist()
        ]
        terms = {operand: weight for operand, weight in of_operands if weight}
        return Sum(tuple(terms), tuple(terms.values()), constant)

    def _term(self, at: int, weights: list[float], rows: IntArray) -> tuple[Hashable, float]:
        """An operand and its weight; of a category its price list, the first level being 0."""
        operand = self.terms.operands[at]
        if at >= len(self.sample.numbers):
            codes = self.sample.codes_of(operand)[rows]
            seen = np.isin(np.arange(len(weights) + 1), codes)
            amounts = self._amounts(operand, np.where(seen, [0.0, *weights], np.nan))
            return amounts, float(any(weights))
        # Days between dates count from the earlier one if that spares a minus sign.
        if isinstance(operand, DateView) and weights[0] < 0:
            return operand.reversed, -weights[0]
        return operand, weights[0]

    def _amounts(self, column: Hashable, amounts: FloatArray) -> Amounts:
        """The amounts of levels, without those that are unknown."""
        pairs = zip(values_of(self.sample.feature(column)), amounts.tolist(), strict=True)
        return Amounts((column,), tuple(pair for pair in pairs if not math.isnan(pair[1])))

    def _product(self, target: Hashable, factors: list[int]) -> Product | None:
        """The product of some operands, with short factors where that holds."""
        own, n_numbers = numbers_of(self.sample, target), len(self.sample.numbers)
        fit = _Fit.of(self.logs, _log(own), factors)
        weights = fit.weights[1:][fit.groups < n_numbers]
        powers = np.rint(weights).astype(int)
        is_whole = (np.abs(weights - powers) <= MAX_FROM_WHOLE) & (powers != 0)
        # One number is a sum, one category a dependency.
        is_more = len(factors) > 1 or (powers < 0).any()
        if not is_more or not is_whole.all() or (np.abs(powers) > MAX_POWER).any():
            return None
        names = [self.logs.operands[one] for one in factors]
        base = Product(tuple(names[: powers.size]), tuple(powers.tolist()))
        product = self._with_factors(target, base, names[powers.size :])
        gap = np.abs(_log(own / product.numbers(self.sample)))
        return product if typical(gap[~np.isnan(gap)]) <= MAX_DEVIATION else None

    def _with_factors(self, target: Hashable, base: Product, categories: list[Hashable]) -> Product:
        """A product times a factor, or times one for each level of some categories."""
        own, numbers = numbers_of(self.sample, target), base.numbers(self.sample)
        codes = [self.sample.codes_of(name) for name in categories]
        codes = codes or [np.zeros(own.size, dtype=np.int32)]
        fitted = [np.ones(self.sample.feature(name).n_codes) for name in categories] or [np.ones(1)]
        ends = np.cumsum([part.size for part in fitted])[:-1]

        def compute(parts: Sequence[FloatArray]) -> FloatArray:
            return np.asarray(math.prod(p[code] for p, code in zip(parts, codes, strict=True)))

        for _ in range(N_TURNS if len(codes) > 1 else 1):
            for at, (part, code) in enumerate(zip(fitted, codes, strict=True)):
                others = compute([*fitted[:at], np.ones(part.size), *fitted[at + 1 :]])
                ratio = own / (numbers * others)
                ratio = np.where(np.isfinite(ratio), ratio, np.nan)
                part[:] = pd.Series(ratio).groupby(code).median().reindex(range(part.size))

        def deviation(given: FloatArray) -> float:
            gap = np.abs(own - numbers * compute(np.split(given[1:], ends)))
            return _beyond(gap[~np.isnan(gap)], self.sample.half_unit(target))

        noise = NOISE * float(np.nanmax(np.abs(own)))
        _, *factors = snap(np.concatenate([[0.0], *fitted]), deviation, noise)
        if not categories:
            return replace(base, factor=float(factors[0]))
        parts = zip(categories, np.split(factors, ends), strict=True)
        lists = [self._amounts(name, part) for name, part in parts]
        return Product((*lists, *base.of), (*(1 for _ in lists), *base.powers))


def _beyond(gap: FloatArray, half_unit: float) -> float:
    """The typical deviation, or 0 if hardly any is more than an error of rounding."""
    is_rounded = gap.size and (gap <= half_unit * (1 + NOISE)).mean() >= 1 - MAX_BROKEN
    return 0.0 if is_rounded else typical(gap)


def _ways(target: Hashable, product: Product) -> list[Found]:
    """A product, also written for each of its columns, which others may hide it from."""
    ways: list[Found] = [(target, product)]
    powers = dict(zip(product.of, product.powers, strict=True))
    for one, power in powers.items():
        factor = product.factor**-power if product.factor else math.inf
        if abs(power) == 1 and not isinstance(one, View) and math.isfinite(factor):
            others = {other: -power * each for other, each in powers.items() if other != one}
            ways.append((one, Product((target, *others), (power, *others.values()), factor)))
    return ways


def _equality(
    result: Hashable, formula: Sum | Product, data: TrainingColumns, margin: float
) -> Equation | None:
    """The equality with the tolerance that rows need; None if that would say too little."""
    target, computed = defined([numbers_of(data, result), formula.numbers(data)])
    if target.size < MIN_CONFIRMING:
        return None
    gap, size, half_unit = np.abs(target - computed), np.abs(computed), data.half_unit(result)
    rounding = NOISE * float(max(np.abs(target).max(), size.max()))
    exact = Equation(result, formula, rounding=rounding)
    needed = _needed(gap, half_unit + rounding)
    if needed <= rounding:
        return exact
    if REACHED_BY_ROUNDING * half_unit < needed <= half_unit + rounding:
        tolerance, relative = half_unit, False
    else:
        share = _needed(gap[size > 0] / size[size > 0], 0.0)
        relative = bool((gap[size == 0] <= rounding).all() and 0 < share * size.mean() < needed)
        tolerance = round_up((share if relative else needed) * margin)
    allowed = tolerance * (size.mean() if relative else 1.0)
    if not allowed <= MAX_TOLERANCE * margin * np.abs(target - np.median(target)).mean():
        return None
    return replace(exact, low=-tolerance, high=tolerance, relative=relative)


def _needed(size: FloatArray, rounding: float) -> float:
    """Tolerance of all rows but those that deviate far more than typical ones."""
    most = max(MAX_STRETCH * typical(size), rounding)
    return float(size.max(where=size <= most, initial=0.0))


def _simplified(formula: Sum | Product) -> Sum | Product | None:
    """A sum with whole weights or a product without a factor, on which there may be bounds.

    None for those that divide or have other weights or price lists, and for one column, whose
    difference to the target is bounded by an ordering.
    """
    if isinstance(formula, Product):
        return replace(formula, factor=1.0) if min(formula.powers) > 0 else None
    weights = tuple(round(weight) + 0.0 for weight in formula.weights)
    if weights == (1.0,) or not all(weights) or any(isinstance(o, Amounts) for o in formula.of):
        return None
    return replace(formula, weights=weights, constant=0.0)


def _bound(
    result: Hashable, formula: Sum | Product, data: TrainingColumns, margin: float
) -> Equation | None:
    """The bound on what is left over beside a formula; None if it says too little.

    That of a product is a share of it, since its error grows with it.
    """
    target, computed = defined([numbers_of(data, result), formula.numbers(data)])
    relative, is_zero = isinstance(formula, Product), computed == 0
    if relative and ((computed < 0).any() or target[is_zero].any()):
        return None
    rest = target[~is_zero] / computed[~is_zero] - 1 if relative else target - computed
    if not rest.size or not np.isfinite(rest).all():
        return None
    rounding = NOISE * float(np.abs([target, computed]).max())
    low, high = -outward(-rest) + 0.0, outward(rest)
    bound = Equation(result, formula, low, high, relative, rounding, is_bound=True)
    excluded = count_passing(*defined(bound.limits(data)))[1]
    return bound if excluded >= MIN_EXCLUDED else None
