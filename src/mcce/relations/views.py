"""Numbers that relations compute from columns: sums, products, amounts by level, steps, conditions.

Dates and their parts are in ``dates``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import FloatArray
from .relation import Rows, View, find_values, numbers_of, quote_column, quote_number, quote_value

# Levels of a column that a name shows.
MAX_SHOWN = 3


@dataclass(frozen=True)
class Sum(View):
    """A weighted sum and a constant.

    Examples
    --------
    >>> Sum(("net", "tax"), (1.0, 0.5)).name
    'net + 0.5 * tax'
    """

    of: tuple[Hashable, ...]
    weights: tuple[float, ...]
    constant: float = 0.0

    @property
    def name(self) -> str:
        """Such as ``2 * net - rebate + 20``."""
        pairs = sorted(zip(self.of, self.weights, strict=True), key=lambda pair: pair[1] < 0)
        parts = [_times(weight, quote_column(one)) for one, weight in pairs]
        if self.constant or not parts:
            parts.append(quote_number(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    @np.errstate(over="ignore", invalid="ignore")
    def numbers(self, rows: Rows) -> FloatArray:
        """The sum, term by term in this order."""
        total = np.full(len(rows), self.constant)
        for operand, weight in zip(self.of, self.weights, strict=True):
            total = total + weight * numbers_of(rows, operand)
        return total


@dataclass(frozen=True)
class Product(View):
    """A factor times powers of columns and views; undefined where it divides by 0.

    Examples
    --------
    >>> Product(("debt", "income"), (1, -1), 100.0).name
    '100 * debt / income'
    """

    of: tuple[Hashable, ...]
    powers: tuple[int, ...]
    factor: float = 1.0

    @property
    def name(self) -> str:
        """Such as ``months * price``."""
        names = [f"({o.name})" if isinstance(o, Sum) else quote_column(o) for o in self.of]
        pairs = [*zip(names, self.powers, strict=True)]
        above = " * ".join(name for name, power in pairs for _ in range(power))
        below = [name for name, power in pairs for _ in range(-power)]
        text = _times(self.factor, above) if above else quote_number(self.factor)
        divisor = " * ".join(below)
        return f"{text} / {f'({divisor})' if len(below) > 1 else divisor}" if below else text

    @np.errstate(all="ignore")
    def numbers(self, rows: Rows) -> FloatArray:
        """The product, operand by operand in this order."""
        product = np.full(len(rows), self.factor)
        for operand, power in zip(self.of, self.powers, strict=True):
            numbers = numbers_of(rows, operand)
            base = numbers if power > 0 else 1 / np.where(numbers == 0, np.nan, numbers)
            for _ in range(abs(power)):
                product = product * base
        return product


@dataclass(frozen=True)
class Amounts(View):
    """An amount for each level of a column, undefined for others.

    Examples
    --------
    >>> Amounts(("plan",), (("basic", 0.0), ("plus", 15.0))).name
    "plan {'basic': 0, 'plus': 15}"
    """

    of: tuple[Hashable, ...]
    amounts: tuple[tuple[Any, float], ...]

    @property
    def name(self) -> str:
        """The column with its first levels."""
        shown = [f"{quote_value(one)}: {quote_number(n)}" for one, n in self.amounts[:MAX_SHOWN]]
        more = ["..."] if len(shown) < len(self.amounts) else []
        return f"{quote_column(self.of[0])} {{{', '.join(shown + more)}}}"

    def numbers(self, rows: Rows) -> FloatArray:
        """The amount of each row's level."""
        table = np.array([*(amount for _, amount in self.amounts), np.nan])
        return table[find_values(rows, self.of[0], [level for level, _ in self.amounts])]


@dataclass(frozen=True)
class Steps(View):
    """How many limits a number exceeds.

    Examples
    --------
    >>> Steps(("area",), (0.0,)).name
    'area > 0'
    """

    of: tuple[Hashable, ...]
    limits: tuple[float, ...]

    @property
    def name(self) -> str:
        """Such as ``age > 18, 30, 65``."""
        return f"{quote_column(self.of[0])} > {', '.join(map(quote_number, self.limits))}"

    def numbers(self, rows: Rows) -> FloatArray:
        """The number of limits below each cell, NaN where it is missing."""
        cells = numbers_of(rows, self.of[0])
        return np.where(np.isnan(cells), np.nan, np.searchsorted(self.limits, cells))


@dataclass(frozen=True)
class HasValue(View):
    """Whether a cell has one of some values; None is missing.

    Examples
    --------
    >>> HasValue(("phone",), (None,)).name
    'phone is missing'
    >>> HasValue(("contact",), ("mail", "letter")).name
    "contact in ['mail', 'letter']"
    """

    of: tuple[Hashable, ...]
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Such as ``status = 'single'``."""
        column, values = quote_column(self.of[0]), [quote_value(one) for one in self.values]
        if len(values) > 1:
            return f"{column} in [{', '.join(values)}]"
        return f"{column} is missing" if None in self.values else f"{column} = {values[0]}"

    def numbers(self, rows: Rows) -> FloatArray:
        """1 where the cell has such a value, else 0."""
        return (find_values(rows, self.of[0], self.values) >= 0).astype(np.float64)


def _times(factor: float, text: str) -> str:
    if factor in (1.0, -1.0):
        return text if factor == 1 else f"-{text}"
    return f"{quote_number(factor)} * {text}"
