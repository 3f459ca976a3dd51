"""What every relation between columns has in common.

A relation says for every row how badly it is broken: its *excess*, 0 where it holds. Equalities
also compute their target from the other columns. Rows come as pandas frames that have at least the
columns of ``features``. The kinds are in ``equalities`` and ``patterns``.

Always true: where a relation is undefined, because a cell is missing or a level was never seen, it
holds; every formula is computed cell by cell, whatever other rows there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from ..kernels import BoolArray, FloatArray
from .cells import Rows, numbers_of


class Relation(ABC):
    """Something that holds between the columns of a row."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """The relation in readable form, such as ``total = months * price``."""

    @property
    @abstractmethod
    def features(self) -> tuple[Hashable, ...]:
        """Every column that it mentions."""

    @property
    def target(self) -> Hashable | None:
        """The column that follows from the others; None if there is none."""
        return None

    @abstractmethod
    def excess(self, rows: Rows) -> FloatArray:
        """How badly each row breaks the relation; 0 where it holds or is undefined."""

    def holds(self, rows: Rows) -> BoolArray:
        """Whether the relation holds in each row."""
        return self.excess(rows) == 0


class Equality(Relation):
    """A target that equals a formula of other columns, exactly or within a tolerance."""

    result: Hashable
    tolerance: float
    relative: bool
    rounding: float

    @property
    def target(self) -> Hashable:
        """The column that is computed."""
        return self.result

    @abstractmethod
    def compute(self, rows: Rows) -> FloatArray:
        """The target by the formula, NaN where that is undefined."""

    @np.errstate(over="ignore", invalid="ignore")
    def deviation(self, rows: Rows) -> FloatArray:
        """The target minus the formula, NaN where either is undefined."""
        return numbers_of(rows, self.target) - self.compute(rows)

    @np.errstate(over="ignore", invalid="ignore")
    def excess(self, rows: Rows) -> FloatArray:
        """How far the target is outside the tolerance; 0 within it."""
        formula = self.compute(rows)
        allowed = self.tolerance * np.abs(formula) if self.relative else self.tolerance
        outside = np.abs(numbers_of(rows, self.target) - formula) - allowed
        # No number is near an infinite one, whatever the share of it that is allowed.
        outside = np.where(np.isinf(formula), np.inf, outside)
        return np.where(outside > self.rounding, outside, 0.0)
