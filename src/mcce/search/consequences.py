"""Actions and consequences: columns that follow from others.

Beyond the paper. When an action changes a column that another is computed from, by a formula that
the user declared or a relation found at fit, that other column is recomputed. It keeps the person's
own deviation from the formula, is rounded like its column and must lie in its training range.
Computed values are the one exception to "every changed value occurs in the training data". A column
that another one determines becomes the value that goes with it in training.

Candidates are codes that index a table of values per mutable feature, mostly that of training. What
follows from changes need not occur there, so the table grows (``GrowingTables``). Codes never
change their meaning.

Always true: what follows depends on the person and the actions alone; a column that follows never
changes by itself. Where it cannot follow, because it is frozen, limited or would leave its range,
it keeps the person's value, and the filter of the rule excludes the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..candidates import CandidateColumns, CandidateRows, Candidates, ColumnCache, table_numbers
from ..constraints.collection import Constraints
from ..constraints.derived import Derived
from ..kernels import BoolArray, Codes, FloatArray, IntArray, first_of_each
from ..relations.kinds import Dependency
from ..relations.relation import Equality, match_values
from ..tables.columns import as_numbers, assemble, stack, unwrapped
from ..tables.dtypes import to_dtype
from ..tables.features import (
    ULPS,
    decimals,
    epsilon,
    is_float32,
    is_number,
    known_numbers,
)
from ..tables.schema import OWN, EncodedRows
from .computed import ComputedColumn

# Smaller integers are exact in float64; columns with larger ones are not computed.
MAX_EXACT_INTEGER = 2.0**53


class Consequences:
    """Recomputes the columns that follow from the actions of people."""

    def __init__(
        self, columns: Sequence[ComputedColumn], rows: EncodedRows, constraints: Constraints
    ) -> None:
        self.columns = tuple(columns)
        self._rows = rows
        self._limits = constraints.by_feature
        self._frozen = constraints.frozen(rows)
        self._followers = [
            TableFollower(column, column.rule, rows)
            if isinstance(column.rule, Dependency)
            else FormulaFollower(column, column.rule, rows)
            for column in self.columns
        ]

    @property
    def places(self) -> list[int]:
        """Places of the computed columns."""
        return [column.place for column in self.columns]

    @property
    def mentioned(self) -> list[int]:
        """Positions of all columns that the rules of computed ones mention."""
        mentioned = {name for column in self.columns for name in column.rule.features}
        return [at for at, name in enumerate(self._rows.schema.names) if name in mentioned]

    def have_actions(self, codes: Codes) -> BoolArray:
        """Rows in which no column changes without the one that determines it."""
        kept = np.ones(codes.shape[1], dtype=bool)
        for column in self.columns:
            if isinstance(column.rule, Dependency):
                kept &= (codes[column.place] == OWN) | (codes[column.actions] != OWN).any(axis=0)
        return kept

    def complete(self, tables: GrowingTables, owner: IntArray, codes: Codes) -> Codes:
        """Rows of codes with the consequences of their changes."""
        codes = codes.copy()
        for follower in self._followers:
            column = follower.column
            codes[column.place] = OWN
            moved = np.flatnonzero((codes[column.actions] != OWN).any(axis=0))
            if moved.size:
                moved_owner = owner[moved]
                value, follows = follower.follow(tables, moved_owner, codes[:, moved])
                follows[follows] = self._allowed(follower, moved_owner[follows], value[follows])
                codes[column.place, moved[follows]] = follower.codes_for(tables, value[follows])
        return codes

    def complete_candidates(self, candidates: Candidates) -> Candidates:
        """Candidates with the consequences of their changes.

        The people of a group must be equal in all columns that the rules mention.
        """
        rows, comparison = candidates.rows, candidates.comparison
        tables, codes = GrowingTables(rows, candidates.tables), comparison.codes.copy()
        _, first = np.unique(candidates.group, return_index=True)
        owner = np.repeat(candidates.positions[first], codes.shape[2])
        own = comparison.own_codes[:, first][:, :, None]
        flat = np.where(codes == own, OWN, codes).reshape(len(codes), -1)
        completed = self.complete(tables, owner, flat).reshape(codes.shape)
        numbers = list(comparison.numbers)
        for at in self.places:
            codes[at] = np.where(completed[at] == OWN, own[at], completed[at])
            numbers[at] = None if numbers[at] is None else tables.numbers(at)
        return replace(
            candidates,
            comparison=replace(comparison, codes=codes, numbers=numbers),
            distinct=first_of_each(codes),
            tables=tables.tables,
        )

    def _allowed(
        self, follower: FormulaFollower | TableFollower, owner: IntArray, value: np.ndarray
    ) -> BoolArray:
        """Whether people's constraints on a column allow its new values."""
        column = follower.column
        position = int(self._rows.schema.mutable[column.place])
        allowed = np.ones(owner.size, dtype=bool)
        if position in self._frozen:
            allowed &= ~self._frozen[position][owner]
        limits = self._limits.get(position, [])
        if limits and owner.size:
            own, new = self._rows.own(position, owner), follower.cells(value)
            for limit in limits:
                allowed &= limit.allows(column.feature, own, new)
        return allowed


class FormulaFollower:
    """A number that a formula gives: it keeps the person's own deviation from the formula.

    Like :class:`TableFollower`, it tells what its column becomes in rows and where that differs
    from the person's own value (``follow``), and turns that into ``cells`` or codes
    (``codes_for``).
    """

    def __init__(self, column: ComputedColumn, rule: Derived | Equality, rows: EncodedRows) -> None:
        self.column, self._rule, self._rows = column, rule, rows
        feature, schema = column.feature, rows.schema
        self._formula = rule.compute(rows.frame)
        self._own = as_numbers(rows.frame.iloc[:, int(schema.mutable[column.place])])
        self._place_of = {int(at): place for place, at in enumerate(schema.mutable)}
        self._numbers = {
            position: as_numbers(rows.frame.iloc[:, position])
            for position in column.inputs
            if is_number(schema.features[position])
        }
        self._n_decimals = decimals(feature)
        if isinstance(rule, Derived):
            self._relative, self._most, self._slack = False, rule.allowed_deviation(feature), 0.0
        else:
            self._relative, self._most, self._slack = rule.relative, rule.tolerance, rule.rounding
        known = known_numbers(feature)
        self._largest = np.inf if feature.table.dtype.kind == "f" else MAX_EXACT_INTEGER
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
            # If a value is missing, the deviation is unknown and counts as none.
            value = np.where(np.isnan(before) | np.isnan(own), formula, kept)
            value = self._in_cells(value, own, before, formula)
            differs = np.abs(value - own) > self._noise
            inside = (value >= self._low) & (value <= self._high) & (np.abs(value) < self._largest)
        becomes_missing = np.isnan(formula) & ~np.isnan(own) & self._may_be_missing
        return value, ((differs | np.isnan(own)) & inside) | becomes_missing

    def cells(self, values: np.ndarray) -> pd.Series[Any]:
        """Numbers as cells of the column."""
        return to_cells(values, self._rows.tables[self.column.place].dtype)

    def codes_for(self, tables: GrowingTables, values: np.ndarray) -> Codes:
        """The codes of numbers; new ones are added to the table."""
        return tables.codes_for(self.column.place, values)

    def _inputs(self, tables: GrowingTables, owner: IntArray, codes: Codes) -> pd.DataFrame:
        """The columns that the formula reads."""
        rows, columns = self._rows, list[Any]()
        for position in self.column.inputs:
            if position not in self._place_of:
                columns.append(rows.cells[position].take(owner))
                continue
            place = self._place_of[position]
            own, drawn = codes[place] == OWN, codes[place].astype(np.int64)
            if position in self._numbers:
                new = tables.numbers(place)[drawn]
                columns.append(np.where(own, self._numbers[position][owner], new))
            else:
                cells = stack(rows.cells[position], unwrapped(tables.tables[place]))
                columns.append(cells.take(np.where(own, owner, drawn + len(rows))))
        names = pd.Index([rows.schema.names[at] for at in self.column.inputs], dtype=object)
        return assemble(columns, names)

    def _in_cells(
        self, value: FloatArray, own: FloatArray, before: FloatArray, formula: FloatArray
    ) -> FloatArray:
        """Values as the column holds them: rounded, and within the tolerance if they were."""
        if self._n_decimals is None:
            return value
        unit = 10.0**-self._n_decimals
        small = np.abs(value - own) <= unit / 2
        rounded = np.where(small, own, np.round(value, self._n_decimals))
        most = self._tolerance(formula)
        strays = self._is_within(own, before) & ~self._is_within(rounded, formula)
        low = np.round(np.ceil((formula - most) / unit) * unit, self._n_decimals)
        high = np.round(np.floor((formula + most) / unit) * unit, self._n_decimals)
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
        return isinstance(self._rule, Derived) and self.column.feature.has_missing


class TableFollower:
    """A value that another column determines; it is always one of training.

    Where training never held the value of that other column, the person's own value stays.
    """

    def __init__(self, column: ComputedColumn, rule: Dependency, rows: EncodedRows) -> None:
        self.column, self._rule, self._rows = column, rule, rows
        self._own = rows.codes[rows.schema.mutable[column.place]]
        found = match_values(column.feature.table, rule.results)
        # The last entry stands for a determinant that training never held.
        self._codes = np.full(len(rule.results) + 1, -1, dtype=np.int32)
        self._codes[found] = np.where(found < 0, -1, np.arange(found.size))
        self._column_cache: ColumnCache = {}

    def follow(
        self, tables: GrowingTables, owner: IntArray, codes: Codes
    ) -> tuple[Codes, BoolArray]:
        """The training codes of the new values, and which follow."""
        selected = CandidateRows(self._rows, owner, codes, tables.tables)
        new = self._codes[self._rule.expected(CandidateColumns(selected, self._column_cache))]
        return new, (new >= 0) & (new != self._own[owner])

    def cells(self, values: np.ndarray) -> pd.Series[Any]:
        """Training values as cells of the column."""
        return self._rows.tables[self.column.place].take(values).reset_index(drop=True)

    def codes_for(self, tables: GrowingTables, values: np.ndarray) -> Codes:
        """The codes of training values; those that a generator left out are added."""
        return tables.codes_for_trained(self.column.place, values)


class GrowingTables:
    """Value tables of the mutable features, to which values can be added."""

    def __init__(self, rows: EncodedRows, tables: Sequence[pd.Series[Any]]) -> None:
        self.rows = rows
        self._tables = tables
        self._numbers: dict[int, FloatArray] = {}
        # Per feature, numbers in ascending order, infinity standing for missing, and their codes.
        self._known: dict[int, tuple[FloatArray, Codes]] = {}

    @property
    def tables(self) -> Sequence[pd.Series[Any]]:
        """The value of each code; the given tables themselves if nothing was added."""
        grown = {
            place: numbers
            for place, numbers in self._numbers.items()
            if numbers.size > len(self._tables[place])
        }
        if grown:
            self._tables = [
                _grown(table, grown[place]) if place in grown else table
                for place, table in enumerate(self._tables)
            ]
        return self._tables

    def numbers(self, place: int) -> FloatArray:
        """The value of each code of a numeric feature, NaN for missing."""
        if place not in self._numbers:
            feature = self.rows.schema.features[self.rows.schema.mutable[place]]
            numbers = table_numbers(feature, self._tables[place], self.rows.tables[place])
            assert numbers is not None
            self._numbers[place] = numbers
        return self._numbers[place]

    def codes_for(self, place: int, numbers: FloatArray) -> Codes:
        """The code of each number of a numeric feature, NaN being missing; new ones are added."""
        known, codes = self._known.get(place) or self._sorted(place)
        cells = self._as_cells(place, numbers)
        distinct, inverse = np.unique(np.where(np.isnan(cells), np.inf, cells), return_inverse=True)
        at = np.minimum(np.searchsorted(known, distinct), known.size - 1)
        new = known[at] != distinct if known.size else np.ones(distinct.size, dtype=bool)
        if new.any():
            added = np.where(np.isinf(distinct[new]), np.nan, distinct[new])
            self._numbers[place] = np.concatenate([self.numbers(place), added])
            known, codes = self._sorted(place)
            at = np.searchsorted(known, distinct)
        return codes[at][inverse]

    def codes_for_trained(self, place: int, codes: Codes) -> Codes:
        """The code of each training value of a feature, by its code there; new ones are added."""
        table, trained = self._tables[place], self.rows.tables[place]
        if table is trained:
            return codes
        exact = self.rows.schema.features[self.rows.schema.mutable[place]].encode(table)[0]
        known = np.full(len(trained), -1, dtype=np.int32)
        known[exact[exact >= 0]] = np.flatnonzero(exact >= 0)
        new = np.setdiff1d(codes, np.flatnonzero(known >= 0))
        if new.size:
            known[new] = len(table) + np.arange(new.size)
            cells = stack(unwrapped(table), unwrapped(trained.take(new)))
            grown = pd.Series(cells, name=table.name, dtype=table.dtype)
            self._tables = [grown if at == place else old for at, old in enumerate(self._tables)]
            self._numbers.pop(place, None)
        return known[codes]

    def _as_cells(self, place: int, numbers: FloatArray) -> FloatArray:
        """Numbers as cells of the column hold them, with one zero."""
        single = is_float32(self._tables[place].dtype)
        return (numbers.astype(np.float32).astype(np.float64) if single else numbers) + 0.0

    def _sorted(self, place: int) -> tuple[FloatArray, Codes]:
        keys = np.where(np.isnan(self.numbers(place)), np.inf, self.numbers(place))
        # Of equal ones the first.
        known, first = np.unique(keys, return_index=True)
        self._known[place] = known, first.astype(np.int32)
        return self._known[place]


def to_cells(numbers: FloatArray, dtype: Any) -> pd.Series[Any]:
    """Numbers that a dtype holds, as cells of it; NaN is missing."""
    missing = np.isnan(numbers)
    if dtype.kind in "iu" and not missing.any():
        return to_dtype(pd.Series(numbers.astype(np.int64)), dtype)
    return to_dtype(pd.Series(numbers), dtype)


def _grown(table: pd.Series[Any], numbers: FloatArray) -> pd.Series[Any]:
    """A table with further numbers at its end."""
    added = to_cells(numbers[len(table) :], table.dtype)
    cells = stack(unwrapped(table), unwrapped(added))
    return pd.Series(cells, name=table.name, dtype=table.dtype)
