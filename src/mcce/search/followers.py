"""How a column follows others: by a formula, or by the table of a dependency.

A follower knows what the column is in the people's own rows, and gives what it becomes when the
columns change that it follows from.

Always true: what follows depends on the person and the changes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from ..candidates import CandidateRows, ReadColumns, SelectedColumns
from ..constraints.derived import Derived
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..relations import Dependency, Equality
from ..relations.relation import match_values
from ..tables.columns import as_numbers, assemble, stack, unwrapped
from ..tables.features import Feature
from ..tables.resolution import ULPS, decimals, epsilon, known_numbers
from ..tables.schema import OWN, EncodedRows
from .values import GrowingTables, to_cells

Rule: TypeAlias = Derived | Equality | Dependency
# All integers below are exact in float64; columns of larger ones are not computed.
LARGEST = 2.0**53


@dataclass(frozen=True, eq=False)
class Target:
    """A column that follows others."""

    rule: Rule
    feature: Feature
    row: int
    inputs: tuple[int, ...]
    actions: IntArray


class Follower(Protocol):
    """A column that follows others."""

    target: Target

    def follow(
        self, tables: GrowingTables, owner: IntArray, codes: Codes
    ) -> tuple[np.ndarray, BoolArray]:
        """What the column becomes in rows, and where that differs from the person's own value."""
        ...

    def cells(self, values: np.ndarray) -> pd.Series[Any]:
        """What the column becomes, as cells of it."""
        ...

    def place(self, tables: GrowingTables, values: np.ndarray) -> Codes:
        """The same as codes; values that the table lacks are added."""
        ...


def make_follower(target: Target, rows: EncodedRows) -> Follower:
    """The follower of a column, for the factuals in ``rows``."""
    if isinstance(target.rule, Dependency):
        return TableFollower(target, target.rule, rows)
    return FormulaFollower(target, target.rule, rows)


class FormulaFollower:
    """A number that a formula gives: it keeps the person's own deviation from the formula."""

    def __init__(self, target: Target, rule: Derived | Equality, rows: EncodedRows) -> None:
        self.target, self._rule, self._rows = target, rule, rows
        feature, schema = target.feature, rows.schema
        self._formula = rule.compute(rows.frame)
        self._own = as_numbers(rows.frame.iloc[:, int(schema.mutable[target.row])])
        self._place = {int(at): row for row, at in enumerate(schema.mutable)}
        self._numbers = {
            position: as_numbers(rows.frame.iloc[:, position])
            for position in target.inputs
            if is_number(schema.features[position])
        }
        self._places = decimals(feature)
        if isinstance(rule, Derived):
            self._relative, self._most, self._slack = False, rule.allowed_deviation(feature), 0.0
        else:
            self._relative, self._most, self._slack = rule.relative, rule.tolerance, rule.rounding
        known = known_numbers(feature)
        self._largest = np.inf if feature.table.dtype.kind == "f" else LARGEST
        self._noise = ULPS * epsilon(feature.table.dtype) * np.abs(known).max(initial=0.0)
        self._low, self._high = known.min(initial=np.inf), known.max(initial=-np.inf)

    def follow(
        self, tables: GrowingTables, owner: IntArray, codes: Codes
    ) -> tuple[FloatArray, BoolArray]:
        """The new numbers, NaN for missing, and which follow."""
        formula = self._rule.compute(self._inputs(tables, owner, codes))
        own, before = self._own[owner], self._formula[owner]
        with np.errstate(all="ignore"):
            kept = formula + self._scale(own, before, formula) * (own - before)
            # A deviation that is unknown, since a value is missing, is none.
            value = np.where(np.isnan(before) | np.isnan(own), formula, kept)
            value = self._in_cells(value, own, before, formula)
            differs = np.abs(value - own) > self._noise
            inside = (value >= self._low) & (value <= self._high) & (np.abs(value) < self._largest)
        becomes_missing = np.isnan(formula) & ~np.isnan(own) & self._may_be_missing
        return value, ((differs | np.isnan(own)) & inside) | becomes_missing

    def cells(self, values: FloatArray) -> pd.Series[Any]:
        """Numbers as cells of the column."""
        return to_cells(values, self._rows.tables[self.target.row].dtype)

    def place(self, tables: GrowingTables, values: FloatArray) -> Codes:
        """The codes of numbers; new ones are added to the table."""
        return tables.place(self.target.row, values)

    def _inputs(self, tables: GrowingTables, owner: IntArray, codes: Codes) -> pd.DataFrame:
        """The columns that the target is computed from."""
        rows, columns = self._rows, list[Any]()
        for position in self.target.inputs:
            if position not in self._place:
                columns.append(rows.cells[position].take(owner))
                continue
            row = self._place[position]
            own, drawn = codes[row] == OWN, codes[row].astype(np.int64)
            if position in self._numbers:
                new = tables.numbers(row)[drawn]
                columns.append(np.where(own, self._numbers[position][owner], new))
            else:
                pool = stack(rows.cells[position], unwrapped(tables.tables[row]))
                columns.append(pool.take(np.where(own, owner, drawn + len(rows))))
        names = pd.Index([rows.schema.names[at] for at in self.target.inputs], dtype=object)
        return assemble(columns, names)

    def _in_cells(
        self, value: FloatArray, own: FloatArray, before: FloatArray, formula: FloatArray
    ) -> FloatArray:
        """Values as the column holds them: rounded, and within the tolerance if they were."""
        if self._places is None:
            return value
        unit = 10.0**-self._places
        small = np.abs(value - own) <= unit / 2
        rounded = np.where(small, own, np.round(value, self._places))
        most = self._tolerance(formula)
        strays = self._is_within(own, before) & ~self._is_within(rounded, formula)
        low = np.round(np.ceil((formula - most) / unit) * unit, self._places)
        high = np.round(np.floor((formula + most) / unit) * unit, self._places)
        within = np.minimum(np.maximum(rounded, low), high)
        return np.where(strays & (low <= high), within, rounded)

    def _scale(self, own: FloatArray, before: FloatArray, formula: FloatArray) -> FloatArray:
        """How much of the own deviation to keep: all, or the same share of the formula.

        Where the own row is outside the tolerance, no more than all.
        """
        if not self._relative:
            return np.ones_like(formula)
        ratio = np.where(before == 0, 1.0, np.abs(formula / before))
        return np.where(self._is_within(own, before), ratio, np.minimum(ratio, 1.0))

    def _is_within(self, value: FloatArray, formula: FloatArray) -> BoolArray:
        return np.asarray(np.abs(value - formula) - self._tolerance(formula) <= self._slack)

    def _tolerance(self, formula: FloatArray) -> FloatArray:
        return np.abs(formula) * self._most if self._relative else np.full_like(formula, self._most)

    @property
    def _may_be_missing(self) -> bool:
        # A relation that was found holds where its formula is undefined, so the value stays.
        return isinstance(self._rule, Derived) and self.target.feature.has_missing


class TableFollower:
    """A value that another column determines; it is always one of training.

    Where training never held the value of that other column, the person's own value stays.
    """

    def __init__(self, target: Target, rule: Dependency, rows: EncodedRows) -> None:
        self.target, self._rule, self._rows = target, rule, rows
        self._own = rows.exact[rows.schema.mutable[target.row]]
        found = match_values(target.feature.table, rule.results)
        # The last entry stands for a determinant that training never held.
        self._codes = np.full(len(rule.results) + 1, -1, dtype=np.int32)
        self._codes[found] = np.where(found < 0, -1, np.arange(found.size))
        self._read: ReadColumns = {}

    def follow(
        self, tables: GrowingTables, owner: IntArray, codes: Codes
    ) -> tuple[Codes, BoolArray]:
        """The training codes of the new values, and which follow."""
        selected = CandidateRows(self._rows, owner, codes, tables.tables)
        new = self._codes[self._rule.expected(SelectedColumns(selected, self._read))]
        return new, (new >= 0) & (new != self._own[owner])

    def cells(self, values: Codes) -> pd.Series[Any]:
        """Training values as cells of the column."""
        return self._rows.tables[self.target.row].take(values).reset_index(drop=True)

    def place(self, tables: GrowingTables, values: Codes) -> Codes:
        """The codes of training values; those that a generator left out are added."""
        return tables.place_trained(self.target.row, values)


def is_number(feature: Feature) -> bool:
    """Whether a column holds numbers that can be computed with."""
    return feature.kind == "numeric" and feature.table.dtype.kind in "iuf"
