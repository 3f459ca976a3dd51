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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..candidates import CandidateColumns, CandidateRows, Candidates, ColumnCache, table_numbers
from ..constraints.collection import Constraints
from ..constraints.derived import Derived
from ..fitted import Fitted
from ..kernels import BoolArray, Codes, FloatArray, IntArray, first_of_each
from ..relations.kinds import Dependency, Equivalence, Linear
from ..relations.relation import Equality, FoundRelation, match_values, values_of
from ..tables.columns import as_numbers, assemble, is_time, stack, unwrapped
from ..tables.dtypes import to_dtype
from ..tables.features import (
    ULPS,
    Feature,
    decimals,
    epsilon,
    is_float32,
    is_number,
    known_numbers,
)
from ..tables.schema import OWN, EncodedRows, Schema
from .config import ExplainSettings, kept_relations

Rule: TypeAlias = Derived | Equality | Dependency
# Smaller integers are exact in float64; columns with larger ones are not computed.
MAX_EXACT_INTEGER = 2.0**53


@dataclass(frozen=True, eq=False)
class ComputedColumn:
    """A column that follows others, and by which rule."""

    rule: Rule
    feature: Feature
    place: int
    # Positions of the columns that it follows from, and the places of those that are mutable.
    inputs: tuple[int, ...]
    actions: IntArray


def computed_columns(
    fitted: Fitted, settings: ExplainSettings, constraints: Constraints
) -> list[ComputedColumn]:
    """The columns that follow: those that the user declared, then those found at fit.

    A column is left out if it is immutable, if nothing that it follows from is mutable, or if it
    would follow from itself; formulas give numbers alone. Of two formulas for one column, the
    second is solved for its feature with the most values, since computed columns usually have the
    most. Of two columns that determine each other, the later one follows: they have as many values.
    """
    schema = constraints.schema
    position = {name: at for at, name in enumerate(schema.names)}
    place_of = {int(at): place for place, at in enumerate(schema.mutable)}
    chosen: dict[int, ComputedColumn] = {}
    found = _followed(kept_relations(fitted, settings, constraints), schema)
    for given in [*constraints.derived, *found]:
        rules: Sequence[Rule] = [given]
        if isinstance(given, Linear) and position[given.target] in chosen:
            rules = _solutions(given, schema)
        for rule in rules:
            at = position[rule.target]
            sources = [rule.determinant] if isinstance(rule, Dependency) else rule.features[1:]
            inputs = tuple(position[name] for name in sources)
            actions = np.array([place_of[p] for p in inputs if p in place_of], dtype=np.int64)
            if at not in place_of or at in chosen or not actions.size:
                continue
            if _is_suitable(rule, schema) and not _leads_to(inputs, at, chosen):
                chosen[at] = ComputedColumn(
                    rule, schema.features[at], place_of[at], inputs, actions
                )
                break
    return _in_order(chosen)


def _followed(found: Iterable[FoundRelation], schema: Schema) -> list[Equality | Dependency]:
    """The relations by which a column follows others: formulas first.

    Sums come last of the formulas, since only they can be solved otherwise.
    """
    formulas, tables = list[Equality](), list[Dependency]()
    for one in found:
        if isinstance(one.relation, Equality):
            formulas.append(one.relation)
        # Answers may break those that are not enforced.
        elif one.enforced and isinstance(one.relation, Dependency):
            tables.append(one.relation)
        elif one.enforced and isinstance(one.relation, Equivalence):
            tables += _both_ways(one.relation, schema)
    formulas.sort(key=lambda one: isinstance(one, Linear))
    tables.sort(key=lambda one: -schema.names.index(one.result))
    return [*formulas, *tables]


def _both_ways(relation: Equivalence, schema: Schema) -> list[Dependency]:
    """An equivalence as dependencies; none unless both columns have two values."""
    names, columns = relation.features, []
    for side in (relation.first, relation.second):
        values = values_of(schema.features[schema.names.index(side.feature)])
        if len(values) != 2 or side.value not in values:
            return []
        columns.append(values if values[0] == side.value else values[::-1])
    first, second = columns
    return [
        Dependency(names[0], names[1], tuple(zip(first, second, strict=True))),
        Dependency(names[1], names[0], tuple(zip(second, first, strict=True))),
    ]


def _solutions(rule: Linear, schema: Schema) -> list[Linear]:
    """A sum solved for each of its columns, those with the most values first."""
    n_codes = {feature.name: feature.n_codes for feature in schema.features}
    names = sorted((name for name, _ in rule.terms), key=lambda name: -n_codes[name])
    return [rule.solved_for(name) for name in names]


def _is_suitable(rule: Rule, schema: Schema) -> bool:
    """Whether the target can hold what a rule gives, and a table tells its values apart."""
    by_name = {feature.name: feature for feature in schema.features}
    if isinstance(rule, Dependency):
        return all(_has_table_values(by_name[name]) for name in rule.features)
    return is_number(by_name[rule.target])


def _has_table_values(feature: Feature) -> bool:
    # Tables hold numbers as float64, which merges integers beyond 2**53; times have units.
    distinct = feature.numbers is None or np.unique(feature.numbers).size == feature.n_codes
    return distinct and not is_time(feature.table.dtype)


def _leads_to(inputs: Iterable[int], goal: int, chosen: Mapping[int, ComputedColumn]) -> bool:
    """Whether a column is among some others or what these follow from, over any steps."""
    return any(
        at == goal or (at in chosen and _leads_to(chosen[at].inputs, goal, chosen)) for at in inputs
    )


def _in_order(chosen: Mapping[int, ComputedColumn]) -> list[ComputedColumn]:
    """The columns, each after those that it follows from."""
    left, ordered = dict(chosen), list[ComputedColumn]()
    while left:
        ready = [at for at, column in left.items() if left.keys().isdisjoint(column.inputs)]
        ordered += [left.pop(at) for at in ready]
    return ordered


class Consequences:
    """Recomputes the columns that follow from the actions of people."""

    def __init__(
        self, columns: Sequence[ComputedColumn], rows: EncodedRows, constraints: Constraints
    ) -> None:
        self.columns, self._rows = columns, rows
        self.places = [column.place for column in columns]
        self._limits = constraints.by_feature
        self._frozen = constraints.frozen(rows)
        self._followers = [
            TableFollower(column, column.rule, rows)
            if isinstance(column.rule, Dependency)
            else FormulaFollower(column, column.rule, rows)
            for column in columns
        ]

    @property
    def mentioned(self) -> list[int]:
        """Positions of all columns that the rules of computed ones mention."""
        mentioned = {name for column in self.columns for name in column.rule.features}
        return [at for at, name in enumerate(self._rows.schema.names) if name in mentioned]

    def causes_change(self, codes: Codes) -> BoolArray:
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
        # The value of each code; the given tables themselves if nothing was added.
        self.tables = tables
        self._numbers: dict[int, FloatArray] = {}
        # Per feature, numbers in ascending order, infinity standing for missing, and their codes.
        self._known: dict[int, tuple[FloatArray, Codes]] = {}

    def numbers(self, place: int) -> FloatArray:
        """The value of each code of a numeric feature, NaN for missing."""
        if place not in self._numbers:
            feature = self.rows.schema.features[self.rows.schema.mutable[place]]
            numbers = table_numbers(feature, self.tables[place], self.rows.tables[place])
            assert numbers is not None
            self._numbers[place] = numbers
        return self._numbers[place]

    def codes_for(self, place: int, numbers: FloatArray) -> Codes:
        """The code of each number of a numeric feature, NaN being missing; new ones are added."""
        known, codes = self._known.get(place) or self._sorted(place)
        cells = self._as_cells(place, numbers)
        distinct, inverse = np.unique(np.where(np.isnan(cells), np.inf, cells), return_inverse=True)
        # NaN stands for what is beyond the last.
        new = np.append(known, np.nan)[np.searchsorted(known, distinct)] != distinct
        if new.any():
            added = np.where(np.isinf(distinct[new]), np.nan, distinct[new])
            self._numbers[place] = np.concatenate([self.numbers(place), added])
            self._add(place, to_cells(added, self.tables[place].dtype))
            known, codes = self._sorted(place)
        return codes[np.searchsorted(known, distinct)][inverse]

    def codes_for_trained(self, place: int, codes: Codes) -> Codes:
        """The code of each training value of a feature, by its code there; new ones are added."""
        table, trained = self.tables[place], self.rows.tables[place]
        if table is trained:
            return codes
        exact = self.rows.schema.features[self.rows.schema.mutable[place]].encode(table)[0]
        known = np.full(len(trained), -1, dtype=np.int32)
        known[exact[exact >= 0]] = np.flatnonzero(exact >= 0)
        new = np.setdiff1d(codes, np.flatnonzero(known >= 0))
        if new.size:
            known[new] = len(table) + np.arange(new.size)
            self._add(place, trained.take(new))
            self._numbers.pop(place, None)
        return known[codes]

    def _add(self, place: int, cells: pd.Series[Any]) -> None:
        """Add cells at the end of a table."""
        table = self.tables[place]
        both = stack(unwrapped(table), unwrapped(cells))
        grown = pd.Series(both, name=table.name, dtype=table.dtype)
        self.tables = [grown if at == place else old for at, old in enumerate(self.tables)]

    def _as_cells(self, place: int, numbers: FloatArray) -> FloatArray:
        """Numbers as cells of the column hold them, with one zero."""
        single = is_float32(self.tables[place].dtype)
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
