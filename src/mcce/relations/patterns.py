"""Relations that compute no numbers: orderings, equivalences and dependencies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import BoolArray, FloatArray, IntArray
from .cells import Rows, find_values, numbers_of
from .naming import quote_column, quote_value
from .relation import Relation


@dataclass(frozen=True)
class Ordering(Relation):
    """One column that is never above another.

    Examples
    --------
    >>> Ordering("years_employed", "age", strict=True).name
    'years_employed < age'
    """

    lower: Hashable
    upper: Hashable
    strict: bool = False
    kind: ClassVar[str] = "ordering"

    @property
    def name(self) -> str:
        """Such as ``start <= end``."""
        sign = "<" if self.strict else "<="
        return f"{quote_column(self.lower)} {sign} {quote_column(self.upper)}"

    @property
    def features(self) -> tuple[Hashable, ...]:
        """Both columns."""
        return (self.lower, self.upper)

    def excess(self, rows: Rows) -> FloatArray:
        """How far the lower column is above the upper one."""
        gap = numbers_of(rows, self.lower) - numbers_of(rows, self.upper)
        # Equal values break a strict ordering by less than any two that differ.
        equal = np.where(gap == 0, np.finfo(np.float64).tiny, 0.0) if self.strict else 0.0
        return np.where(gap > 0, gap, equal)


@dataclass(frozen=True)
class Condition:
    """That a cell has a value; None is missing.

    Examples
    --------
    >>> Condition("phone", None).name
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
    >>> never = Equivalence(Condition("last_call", None), Condition("outcome", "unknown"))
    >>> never.name
    "last_call is missing if and only if outcome = 'unknown'"
    """

    first: Condition
    second: Condition
    kind: ClassVar[str] = "equivalence"

    @property
    def name(self) -> str:
        """Such as ``spouse is missing if and only if status = 'single'``."""
        return f"{self.first.name} if and only if {self.second.name}"

    @property
    def features(self) -> tuple[Hashable, ...]:
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
    def features(self) -> tuple[Hashable, ...]:
        """Both columns."""
        return (self.determinant, self.result)

    @property
    def target(self) -> Hashable:
        """The column that follows."""
        return self.result

    @property
    def results(self) -> list[Any]:
        """The values that go with those of the determinant, each once."""
        return list(dict.fromkeys(value for _, value in self.values))

    def expected(self, rows: Rows) -> IntArray:
        """Place in ``results`` of the value that goes with the determinant; -1 if that is new."""
        left = find_values(rows, self.determinant, [value for value, _ in self.values])
        place = {value: at for at, value in enumerate(self.results)}
        return np.array([*(place[value] for _, value in self.values), -1])[left]

    def excess(self, rows: Rows) -> FloatArray:
        """1 where the value is not the one that goes with the determinant."""
        expected = self.expected(rows)
        found = find_values(rows, self.result, self.results)
        return np.asarray((expected >= 0) & (found != expected), dtype=np.float64)
