"""The kinds of relations.

Equalities compute a column from others, exactly or within a tolerance: a linear sum, a product or a
ratio. Orderings, bounds, equivalences and dependencies compute no numbers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..kernels import BoolArray, FloatArray, IntArray
from .relation import (
    Equality,
    Relation,
    Rows,
    find_values,
    numbers_of,
    quote_column,
    quote_number,
    quote_tolerance,
    quote_value,
)

# Categorical columns, each with the amount of every level.
PriceLists: TypeAlias = tuple[tuple[Hashable, tuple[tuple[Any, float], ...]], ...]
# Levels that a name shows, in all and of one price list.
MAX_SHOWN, MAX_SHOWN_OF_ONE = 6, 3


@dataclass(frozen=True)
class Linear(Equality):
    """A weighted sum of columns, of amounts by level (a price list), and of a constant.

    Examples
    --------
    >>> total = Linear("total", (("net", 1.0), ("tax", 1.0)))
    >>> total.name
    'total = net + tax'
    >>> import pandas as pd
    >>> total.deviation(pd.DataFrame({"net": [1.0, 2.0], "tax": [0.5, 1.0], "total": [1.5, 3.5]}))
    array([0. , 0.5])
    """

    result: Hashable
    terms: tuple[tuple[Hashable, float], ...] = ()
    amounts: PriceLists = ()
    constant: float = 0.0
    tolerance: float = 0.0
    relative: bool = False
    rounding: float = 0.0
    kind: ClassVar[str] = "linear"

    @property
    def name(self) -> str:
        """Such as ``total = 2 * net - rebate + price(plan)``."""
        parts = [_term(quote_column(feature), weight) for feature, weight in self.terms]
        parts += _price_lists(self.amounts)
        if self.constant or not parts:
            parts.append(quote_number(self.constant))
        formula = " + ".join(parts).replace("+ -", "- ")
        return f"{quote_column(self.result)} = {formula}{quote_tolerance(self)}"

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """The target and the columns of the formula."""
        return (self.result, *(name for name, _ in (*self.terms, *self.amounts)))

    @np.errstate(over="ignore", invalid="ignore")
    def compute(self, rows: Rows) -> FloatArray:
        """The sum, term by term in the order of the relation."""
        total = np.full(len(rows), self.constant)
        for feature, weight in self.terms:
            total = total + weight * numbers_of(rows, feature)
        for feature, amounts in self.amounts:
            table = np.array([*(amount for _, amount in amounts), np.nan])
            total = total + table[find_values(rows, feature, [level for level, _ in amounts])]
        return total

    def solved_for(self, feature: Hashable) -> Linear:
        """The same equality, with one of its numeric terms as the target.

        Examples
        --------
        >>> Linear("total", (("net", 1.0), ("tax", 1.0))).solved_for("tax").name
        'tax = total - net'
        """
        weight = dict(self.terms)[feature]
        others = ((name, -other / weight) for name, other in self.terms if name != feature)
        return Linear(
            feature,
            ((self.result, 1 / weight), *others),
            tuple(
                (name, tuple((level, -amount / weight) for level, amount in amounts))
                for name, amounts in self.amounts
            ),
            -self.constant / weight + 0.0,
            # A share of the former target is no share of the new one.
            tolerance=math.inf if self.relative else self.tolerance / abs(weight),
            rounding=self.rounding / abs(weight),
        )


@dataclass(frozen=True)
class Product(Equality):
    """A factor times two columns.

    Examples
    --------
    >>> Product("total", "months", "price", tolerance=0.1, relative=True).name
    'total = months * price (within 10 %)'
    """

    result: Hashable
    first: Hashable
    second: Hashable
    factor: float = 1.0
    tolerance: float = 0.0
    relative: bool = False
    rounding: float = 0.0
    kind: ClassVar[str] = "product"

    @property
    def name(self) -> str:
        """Such as ``total = months * price``."""
        formula = f"{_term(quote_column(self.first), self.factor)} * {quote_column(self.second)}"
        return f"{quote_column(self.result)} = {formula}{quote_tolerance(self)}"

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """The target and both columns."""
        return (self.result, self.first, self.second)

    @np.errstate(over="ignore", invalid="ignore")
    def compute(self, rows: Rows) -> FloatArray:
        """The product."""
        return self.factor * numbers_of(rows, self.first) * numbers_of(rows, self.second)


@dataclass(frozen=True)
class Ratio(Equality):
    """A factor times one column divided by another.

    Examples
    --------
    >>> Ratio("rate", "debt", "income", factor=100.0).name
    'rate = 100 * debt / income'
    """

    result: Hashable
    numerator: Hashable
    denominator: Hashable
    factor: float = 1.0
    tolerance: float = 0.0
    relative: bool = False
    rounding: float = 0.0
    kind: ClassVar[str] = "ratio"

    @property
    def name(self) -> str:
        """Such as ``rate = debt / income``."""
        above = _term(quote_column(self.numerator), self.factor)
        formula = f"{above} / {quote_column(self.denominator)}"
        return f"{quote_column(self.result)} = {formula}{quote_tolerance(self)}"

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """The target and both columns."""
        return (self.result, self.numerator, self.denominator)

    @np.errstate(over="ignore", invalid="ignore")
    def compute(self, rows: Rows) -> FloatArray:
        """The ratio; undefined where the denominator is 0."""
        below = numbers_of(rows, self.denominator)
        below = np.where(below == 0, np.nan, below)
        return self.factor * numbers_of(rows, self.numerator) / below


def _term(text: str, weight: float) -> str:
    if weight in (1.0, -1.0):
        return text if weight == 1 else f"-{text}"
    return f"{quote_number(weight)} * {text}"


def _price_lists(amounts: PriceLists) -> Iterator[str]:
    """Each price list, with the levels that a name has room for."""
    left = MAX_SHOWN
    for feature, prices in amounts:
        n_shown = min(len(prices), MAX_SHOWN_OF_ONE, left)
        shown = [
            f"{quote_value(level)}: {quote_number(price)}" for level, price in prices[:n_shown]
        ]
        more = ["..."] if n_shown < len(prices) else []
        yield f"{quote_column(feature)} {{{', '.join(shown + more)}}}"
        left -= n_shown


@dataclass(frozen=True)
class Ordering(Relation):
    """One column plus an offset that is never above another one times a factor.

    Examples
    --------
    >>> Ordering("years_employed", "age", strict=True).name
    'years_employed < age'
    >>> Ordering("years_employed", "age", offset=18.0).name
    'age - years_employed >= 18'
    >>> Ordering("saved", "net", factor=0.5).name
    'saved <= 0.5 * net'
    """

    lower: Hashable
    upper: Hashable
    strict: bool = False
    offset: float = 0.0
    factor: float = 1.0
    kind: ClassVar[str] = "ordering"

    @property
    def name(self) -> str:
        """Such as ``start <= end``."""
        lower, upper = quote_column(self.lower), quote_column(self.upper)
        if self.offset and self.factor == 1 and not self.strict:
            if self.offset > 0:
                return f"{upper} - {lower} >= {quote_value(self.offset)}"
            return f"{lower} - {upper} <= {quote_value(-self.offset)}"
        lower = f"{lower} + {quote_value(self.offset)}" if self.offset else lower
        upper = f"{quote_value(self.factor)} * {upper}" if self.factor != 1 else upper
        return f"{lower} {'<' if self.strict else '<='} {upper}"

    @property
    def is_plain(self) -> bool:
        """Whether it compares the columns as they are."""
        return self.offset == 0 and self.factor == 1

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """Both columns."""
        return (self.lower, self.upper)

    @np.errstate(over="ignore", invalid="ignore")
    def excess(self, rows: Rows) -> FloatArray:
        """How far the lower side is above the upper one."""
        lower, upper = numbers_of(rows, self.lower), numbers_of(rows, self.upper)
        if not self.is_plain:
            upper = self.factor * upper
            return _outside(lower - upper + self.offset, lower, upper)
        gap = lower - upper
        # Equal values break a strict ordering by less than any two that differ.
        equal = np.where(gap == 0, np.finfo(np.float64).tiny, 0.0) if self.strict else 0.0
        return np.where(gap > 0, gap, equal)


@dataclass(frozen=True)
class Bound(Relation):
    """A formula that its target differs from by so much at most, or is so many times at most.

    Examples
    --------
    >>> Bound(Product("total", "months", "price"), 0.7, 1.5, relative=True).name
    '0.7 <= total / (months * price) <= 1.5'
    """

    formula: Linear | Product
    low: float
    high: float
    relative: bool
    kind: ClassVar[str] = "bound"

    @property
    def name(self) -> str:
        """Such as ``-10 <= total - (net + tax) <= 20``."""
        target = quote_column(self.formula.result)
        text = replace(self.formula, tolerance=0.0).name.removeprefix(f"{target} = ")
        sign = "/" if self.relative else "-"
        low, high = quote_value(self.low), quote_value(self.high)
        return f"{low} <= {target} {sign} ({text}) <= {high}"

    @property
    def target(self) -> Hashable:
        """The column that the formula is for."""
        return self.formula.result

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """The target and the columns of the formula."""
        return self.formula.operands

    def limits(self, formula: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest target that go with values of the formula."""
        if self.relative:
            return self.low * formula, self.high * formula
        return formula + self.low, formula + self.high

    @np.errstate(over="ignore", invalid="ignore")
    def excess(self, rows: Rows) -> FloatArray:
        """How far the target is outside the limits."""
        target, formula = numbers_of(rows, self.target), self.formula.compute(rows)
        low, high = self.limits(formula)
        return _outside(np.maximum(low - target, target - high), target, formula)


def _outside(gap: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """A gap where it is more than floating point may make of nothing."""
    noise = 1e-9 * np.maximum(np.abs(first), np.abs(second))
    return np.where(gap > noise, gap, 0.0)


@dataclass(frozen=True)
class HasValue:
    """That a cell has a value; None is missing.

    Examples
    --------
    >>> HasValue("phone", None).name
    'phone is missing'
    """

    feature: Hashable
    value: Any

    @property
    def name(self) -> str:
        """Such as ``status = 'single'``."""
        if self.value is None:
            return f"{quote_column(self.feature)} is missing"
        return f"{quote_column(self.feature)} = {quote_value(self.value)}"

    def __call__(self, rows: Rows) -> BoolArray:
        """Whether the cell of each row has the value."""
        return find_values(rows, self.feature, [self.value]) == 0


@dataclass(frozen=True)
class Equivalence(Relation):
    """Two conditions of which both hold or neither does.

    Examples
    --------
    >>> never = Equivalence(HasValue("last_call", None), HasValue("outcome", "unknown"))
    >>> never.name
    "last_call is missing if and only if outcome = 'unknown'"
    """

    first: HasValue
    second: HasValue
    kind: ClassVar[str] = "equivalence"

    @property
    def name(self) -> str:
        """Such as ``spouse is missing if and only if status = 'single'``."""
        return f"{self.first.name} if and only if {self.second.name}"

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """Both columns."""
        return (self.first.feature, self.second.feature)

    def excess(self, rows: Rows) -> FloatArray:
        """1 where exactly one of the conditions holds."""
        return np.asarray(self.first(rows) != self.second(rows), dtype=np.float64)


@dataclass(frozen=True)
class Dependency(Relation):
    """A column that another one determines.

    Examples
    --------
    >>> Dependency("city", "country", (("Bergen", "Norway"), ("Oslo", "Norway"))).name
    'city determines country'
    """

    determinant: Hashable
    result: Hashable
    values: tuple[tuple[Any, Any], ...]
    kind: ClassVar[str] = "dependency"

    @property
    def name(self) -> str:
        """Such as ``city determines country``."""
        return f"{quote_column(self.determinant)} determines {quote_column(self.result)}"

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """Both columns."""
        return (self.determinant, self.result)

    @property
    def results(self) -> list[Any]:
        """The values that go with those of the determinant, each once."""
        return list(dict.fromkeys(value for _, value in self.values))

    def expected(self, rows: Rows) -> IntArray:
        """Number in ``results`` of the value that goes with the determinant; -1 if that is new."""
        left = find_values(rows, self.determinant, [value for value, _ in self.values])
        number_of = {value: number for number, value in enumerate(self.results)}
        return np.array([*(number_of[value] for _, value in self.values), -1])[left]

    def excess(self, rows: Rows) -> FloatArray:
        """1 where the value is not the one that goes with the determinant."""
        expected = self.expected(rows)
        own = find_values(rows, self.result, self.results)
        return np.asarray((expected >= 0) & (own != expected), dtype=np.float64)
