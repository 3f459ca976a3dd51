"""The kinds of relations.

A formula computes a column from others or bounds it. Orderings compare two columns, equivalences
two conditions. A dependency is a table of the values that go together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import FloatArray, IntArray
from .relation import (
    Limits,
    Relation,
    Rows,
    View,
    find_values,
    numbers_of,
    quote_column,
    quote_number,
    quote_value,
)
from .views import HasValue, Product, Sum

# What floating point may make of nothing, as a share of the numbers compared.
NOISE = 1e-9


@dataclass(frozen=True)
class Equation(Relation):
    """A column whose deviation from a formula lies between two numbers, or shares of the formula.

    If it is an equality, the column follows from the formula; the deviation is then a tolerance.

    Examples
    --------
    >>> product = Product(("months", "price"), (1, 1))
    >>> Equation("total", product, -0.1, 0.1, relative=True).name
    'total = months * price (within 10 %)'
    >>> Equation("total", product, -0.1, 0.2, relative=True, is_bound=True).name
    '0.9 <= total / (months * price) <= 1.2'
    """

    result: Hashable
    formula: View
    low: float = 0.0
    high: float = 0.0
    relative: bool = False
    rounding: float = 0.0
    is_bound: bool = False

    @property
    def kind(self) -> str:
        """What an equality computes, or that it is none."""
        if self.is_bound:
            return "bound"
        if isinstance(self.formula, Product):
            return "ratio" if min(self.formula.powers) < 0 else "product"
        return "linear"

    @property
    def name(self) -> str:
        """Such as ``total = months * price``, or ``-10 <= total - (net + tax) <= 20``."""
        result, formula = quote_column(self.result), self.formula.name
        if self.is_bound:
            low, high = (quote_number(self.relative + one) for one in (self.low, self.high))
            return f"{low} <= {result} {'/' if self.relative else '-'} ({formula}) <= {high}"
        size = quote_number(100 * self.high) + " %" if self.relative else quote_number(self.high)
        return f"{result} = {formula}{f' (within {size})' if self.high else ''}"

    @property
    def tolerance(self) -> float | None:
        """The largest deviation of an equality."""
        return self.high if not self.is_bound else None

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """The column and those of the formula."""
        return (self.result, *self.formula.of)

    def limits(self, rows: Rows) -> Limits:
        """The column, and what it may be beside the formula."""
        return Limits(numbers_of(rows, self.result), *self.around(self.formula.numbers(rows)))

    @np.errstate(over="ignore", invalid="ignore")
    def around(self, formula: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest number that may go with each value of the formula."""
        low, high = (
            # Not as a sum: infinite values stay infinite.
            formula * (1 + most * np.sign(formula)) if self.relative else formula + most
            for most in (self.low, self.high)
        )
        return low - self.rounding, high + self.rounding

    def solved_for(self, feature: Hashable) -> Equation:
        """The same equality, with one of the columns of its sum as the target.

        Examples
        --------
        >>> Equation("total", Sum(("net", "tax"), (1.0, 1.0))).solved_for("tax").name
        'tax = total - net'
        """
        assert isinstance(self.formula, Sum)
        weights = dict(zip(self.formula.of, self.formula.weights, strict=True))
        weight = weights.pop(feature)
        others = tuple(-other / weight for other in weights.values())
        formula = Sum(
            (self.result, *weights), (1 / weight, *others), -self.formula.constant / weight + 0.0
        )
        # A share of the former target is no share of the new one.
        most = math.inf if self.relative else self.high / abs(weight)
        rounding = self.rounding / abs(weight)
        return Equation(feature, formula, -most, most, rounding=rounding)


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

    @property
    def name(self) -> str:
        """Such as ``start <= end``."""
        lower, upper = quote_column(self.lower), quote_column(self.upper)
        if self.offset > 0:
            return f"{upper} - {lower} >= {quote_value(self.offset)}"
        if self.offset:
            return f"{lower} - {upper} <= {quote_value(-self.offset)}"
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
    def limits(self, rows: Rows) -> Limits:
        """The lower side, which has no least number, and the upper side."""
        lower, upper = numbers_of(rows, self.lower), numbers_of(rows, self.upper) * self.factor
        most = np.nextafter(upper, -np.inf) if self.strict else upper
        if not self.is_plain:
            most = most - self.offset + NOISE * np.maximum(np.abs(lower), np.abs(upper))
        return Limits(lower, np.full_like(lower, -np.inf), most)


@dataclass(frozen=True)
class Equivalence(Relation):
    """Two conditions of which both hold or neither does.

    Examples
    --------
    >>> never = HasValue(("outcome",), ("unknown",))
    >>> Equivalence(HasValue(("last_call",), (None,)), never).name
    "last_call is missing if and only if outcome = 'unknown'"
    """

    first: HasValue
    second: HasValue

    @property
    def name(self) -> str:
        """Such as ``spouse is missing if and only if status = 'single'``."""
        return f"{self.first.name} if and only if {self.second.name}"

    @property
    def operands(self) -> tuple[Hashable, ...]:
        """Both conditions."""
        return (self.first, self.second)

    def limits(self, rows: Rows) -> Limits:
        """Whether the first condition holds, and whether the second one does."""
        second = self.second.numbers(rows)
        return Limits(self.first.numbers(rows), second, second)


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

    def limits(self, rows: Rows) -> Limits:
        """The number of the value, and that of the one that goes with the determinant."""
        expected = self.expected(rows)
        number = np.where(expected >= 0, expected, np.nan)
        own = find_values(rows, self.result, self.results).astype(np.float64)
        return Limits(own, number, number)

    def excess(self, rows: Rows) -> FloatArray:
        """1 where the value is not the one that goes with the determinant."""
        return np.minimum(super().excess(rows), 1.0)
