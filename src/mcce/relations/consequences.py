"""Actions and consequences: columns that follow from others.

Beyond the paper. When an action changes a column that another is computed from, by a formula that
the user declared or a relation found at fit, that other column is recomputed. It keeps the person's
own deviation from the formula, is rounded like its column and must lie in its training range; a
column of few values must become one of them.
Computed values are the one exception to "every changed value occurs in the training data". A column
that another one determines becomes the value that goes with it in training.

Always true: what follows depends on the person and the actions alone; a column that follows never
changes by itself. Where it cannot follow, because it is frozen, limited or would leave its range
or its few values, it keeps the person's value, and the filter of the rule excludes the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..candidates import CandidateRows, Candidates
from ..constraints.collection import Constraints
from ..constraints.conditions import to_floats
from ..constraints.of_rows import Derived
from ..encodings import CandidateColumns, ColumnCache, GrowingTables
from ..kernels import BoolArray, Codes, FloatArray, IntArray, first_of_each
from ..tables.columns import as_numbers, is_time
from ..tables.features import ULPS, Feature, epsilon
from ..tables.schema import OWN, EncodedRows, Schema
from .kinds import Dependency, Equivalence, Linear
from .relation import Equality, FoundRelation, match_values, values_of

Rule: TypeAlias = Derived | Equality | Dependency
# Smaller integers are exact in float64; columns with larger ones are not computed.
MAX_EXACT_INTEGER = 2.0**53
# Of a column with at most so many numbers, no others are computed.
FEW_NUMBERS = 32


@dataclass(frozen=True, eq=False)
class ComputedColumn:
    """A column that follows others, and by which rule."""

    rule: Rule
    feature: Feature
    column: int
    place: int
    # The columns that it follows from, and the places of those that are mutable.
    inputs: tuple[int, ...]
    actions: IntArray


def computed_columns(
    relations: Sequence[FoundRelation], constraints: Constraints
) -> list[ComputedColumn]:
    """The columns that follow: those that the user declared, then those found at fit.

    A column is left out if it is immutable, if nothing that it follows from is mutable, or if it
    would follow from itself; formulas give numbers alone. Of two formulas for one column, the
    second is solved for its feature with the most values, since computed columns usually have the
    most. Of two columns that determine each other, the later one follows: they have as many values.
    """
    schema = constraints.schema
    chosen: dict[int, ComputedColumn] = {}
    for given in [*constraints.derived, *_followed(relations, schema)]:
        rules: Sequence[Rule] = [given]
        if isinstance(given, Linear) and schema.names.index(given.target) in chosen:
            rules = _solutions(given, schema)
        for rule in rules:
            computed = _computed_by(rule, schema)
            if computed is None or computed.column in chosen:
                continue
            try:
                chosen = _in_order({**chosen, computed.column: computed})
            except CycleError:
                continue
            break
    return list(chosen.values())


def _computed_by(rule: Rule, schema: Schema) -> ComputedColumn | None:
    """The column that a rule computes from others; None if it cannot follow them."""
    sources = [name for name in rule.features if name != rule.target]
    column, *inputs = (schema.names.index(name) for name in (rule.target, *sources))
    place_of = {int(mutable): place for place, mutable in enumerate(schema.mutable)}
    actions = np.array([place_of[one] for one in inputs if one in place_of], dtype=np.int64)
    if column not in place_of or not actions.size or not _is_suitable(rule, schema):
        return None
    feature, place = schema.features[column], place_of[column]
    return ComputedColumn(rule, feature, column, place, tuple(inputs), actions)


def _followed(found: Iterable[FoundRelation], schema: Schema) -> list[Equality | Dependency]:
    """The relations by which a column follows others: formulas first.

    Sums come last of the formulas, since only they can be solved otherwise.
    """
    formulas, tables = list[Equality](), list[Dependency]()
    for one in found:
        # Of one that rows break, it is uncertain which column is computed, unless it is exact.
        if isinstance(one.relation, Equality):
            formulas += [one.relation] if one.enforced or one.relation.tolerance == 0 else []
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
    columns = []
    for side in (relation.first, relation.second):
        values = values_of(schema.features[schema.names.index(side.feature)])
        if len(values) != 2 or side.value not in values:
            return []
        columns.append(values if values[0] == side.value else values[::-1])
    one, other = relation.first.feature, relation.second.feature
    tables = [tuple(zip(*order, strict=True)) for order in (columns, columns[::-1])]
    return [Dependency(one, other, tables[0]), Dependency(other, one, tables[1])]


def _solutions(rule: Linear, schema: Schema) -> list[Linear]:
    """A sum solved for each of its columns, those with the most values first."""
    n_codes = {feature.name: feature.n_codes for feature in schema.features}
    terms = [name for name, _ in rule.terms if name in n_codes]
    names = sorted(terms, key=lambda name: -n_codes[name])
    return [rule.solved_for(name) for name in names]


def _is_suitable(rule: Rule, schema: Schema) -> bool:
    """Whether the target can hold what a rule gives, and a table tells its values apart."""
    by_name = {feature.name: feature for feature in schema.features}
    if not isinstance(rule, Dependency):
        return by_name[rule.target].is_number
    # Tables hold numbers as float64, which merges integers beyond 2**53; times have units.
    features = [by_name[name] for name in rule.operands if name in by_name]
    return not any(
        is_time(one.table.dtype)
        or (one.numbers is not None and np.unique(one.numbers).size < one.n_codes)
        for one in features
    )


def _in_order(chosen: Mapping[int, ComputedColumn]) -> dict[int, ComputedColumn]:
    """The columns, each after those that it follows from."""
    inputs = {column: chosen.keys() & computed.inputs for column, computed in chosen.items()}
    return {column: chosen[column] for column in TopologicalSorter(inputs).static_order()}


class Consequences:
    """Recomputes the columns that follow from the actions of people."""

    def __init__(
        self, columns: Sequence[ComputedColumn], rows: EncodedRows, constraints: Constraints
    ) -> None:
        self._columns, self._rows = columns, rows
        self.places = [computed.place for computed in columns]
        self._limits, self._frozen = constraints.by_feature, constraints.frozen(rows)
        self._followers = [
            TableFollower(computed, computed.rule, rows)
            if isinstance(computed.rule, Dependency)
            else FormulaFollower(computed, computed.rule, rows)
            for computed in columns
        ]

    @property
    def mentioned(self) -> list[int]:
        """All columns that the rules of computed ones mention."""
        mentioned = {name for computed in self._columns for name in computed.rule.features}
        names = enumerate(self._rows.schema.names)
        return [column for column, name in names if name in mentioned]

    def has_causes(self, codes: Codes) -> BoolArray:
        """Rows in which no column changes without the one that determines it."""
        kept = np.ones(codes.shape[1], dtype=bool)
        for computed in self._columns:
            if isinstance(computed.rule, Dependency):
                has_cause = (codes[computed.actions] != OWN).any(axis=0)
                kept &= (codes[computed.place] == OWN) | has_cause
        return kept

    def add_consequences(self, tables: GrowingTables, owner: IntArray, codes: Codes) -> Codes:
        """Rows of codes with the consequences of their changes."""
        codes = codes.copy()
        for computed, follower in zip(self._columns, self._followers, strict=True):
            codes[computed.place] = OWN
            moved = np.flatnonzero((codes[computed.actions] != OWN).any(axis=0))
            if moved.size:
                rows = CandidateRows(self._rows, owner[moved], codes[:, moved], tables.tables)
                new = follower.follow(tables, rows)
                follows = new != OWN
                cells = tables.tables[computed.place].take(new[follows]).reset_index(drop=True)
                follows[follows] = self._allowed(computed, rows.owner[follows], cells)
                codes[computed.place, moved[follows]] = new[follows]
        return codes

    def complete_candidates(self, candidates: Candidates) -> Candidates:
        """Candidates with the consequences of their changes.

        The people of a group must be equal in all columns that the rules mention.
        """
        rows, comparison = candidates.factuals, candidates.comparison
        tables, codes = GrowingTables(rows, candidates.tables), comparison.codes.copy()
        _, first = np.unique(candidates.group, return_index=True)
        owner = np.repeat(candidates.positions[first], codes.shape[2])
        own = comparison.own_codes[:, first][:, :, None]
        flat = np.where(codes == own, OWN, codes).reshape(len(codes), -1)
        completed = self.add_consequences(tables, owner, flat).reshape(codes.shape)
        numbers = list(comparison.numbers)
        for place in self.places:
            codes[place] = np.where(completed[place] == OWN, own[place], completed[place])
            numbers[place] = None if numbers[place] is None else tables.numbers(place)
        return replace(
            candidates,
            comparison=replace(comparison, codes=codes, numbers=numbers),
            distinct=first_of_each(codes),
            tables=tables.tables,
        )

    def _allowed(self, computed: ComputedColumn, owner: IntArray, new: pd.Series[Any]) -> BoolArray:
        """Whether people's constraints on a column allow its new cells."""
        column, allowed = computed.column, np.ones(owner.size, dtype=bool)
        if column in self._frozen:
            allowed &= ~self._frozen[column][owner]
        limits = self._limits.get(column, [])
        if limits and owner.size:
            own = self._rows.own(column, owner)
            for limit in limits:
                allowed &= limit.allows(computed.feature, own, new)
        return allowed


class FormulaFollower:
    """A number that a formula gives: it keeps the person's own deviation from the formula."""

    def __init__(
        self, computed: ComputedColumn, rule: Derived | Equality, rows: EncodedRows
    ) -> None:
        self._place, self._rule, feature = computed.place, rule, computed.feature
        self._formula = rule.compute(rows.frame)
        self._own = as_numbers(rows.frame.iloc[:, computed.column])
        self._column_cache: ColumnCache = {}
        self._n_decimals = feature.decimals
        if isinstance(rule, Derived):
            self._relative, self._most, self._slack = False, rule.allowed_deviation(feature), 0.0
        else:
            self._relative, self._most, self._slack = rule.relative, rule.tolerance, rule.rounding
        # A relation that was found holds where its formula is undefined, so the value stays.
        self._may_be_missing = isinstance(rule, Derived) and feature.has_missing
        self._known = known = feature.known_numbers
        self._largest = np.inf if feature.table.dtype.kind == "f" else MAX_EXACT_INTEGER
        self._noise = ULPS * epsilon(feature.table.dtype) * np.abs(known).max(initial=0.0)
        self._low, self._high = known.min(initial=np.inf), known.max(initial=-np.inf)

    def follow(self, tables: GrowingTables, rows: CandidateRows) -> Codes:
        """The codes of the new numbers, ``OWN`` where the person's value stays."""
        formula = self._compute(CandidateColumns(rows, self._column_cache))
        own, before = self._own[rows.owner], self._formula[rows.owner]
        with np.errstate(all="ignore"):
            kept = formula + self._scale(own, before, formula) * (own - before)
            # If a value is missing, the deviation is unknown and counts as none.
            value = np.where(np.isnan(before) | np.isnan(own), formula, kept)
            value = self._in_cells(value, own, before, formula)
            differs = np.abs(value - own) > self._noise
            fits = (value >= self._low) & (value <= self._high) & (np.abs(value) < self._largest)
            if self._known.size <= FEW_NUMBERS:
                gap = np.abs(value[:, None] - self._known).min(axis=1, initial=np.inf)
                fits &= gap <= self._noise
        becomes_missing = np.isnan(formula) & ~np.isnan(own) & self._may_be_missing
        follows = ((differs | np.isnan(own)) & fits) | becomes_missing
        codes = np.full(own.size, OWN, dtype=np.int32)
        codes[follows] = tables.codes_for(self._place, value[follows])
        return codes

    def _compute(self, columns: CandidateColumns) -> FloatArray:
        """What the formula gives."""
        if not isinstance(self._rule, Derived):
            return self._rule.compute(columns)
        names = self._rule.features[1:]
        return self._rule.compute(
            pd.DataFrame({name: columns.read(name, to_floats, "formula") for name in names})
        )

    def _in_cells(
        self, value: FloatArray, own: FloatArray, before: FloatArray, formula: FloatArray
    ) -> FloatArray:
        """Values as the column holds them: rounded, and within the tolerance if they were."""
        if self._n_decimals is None:
            return value
        unit = 10.0**-self._n_decimals
        stays = np.abs(value - own) <= unit / 2
        rounded = np.where(stays, own, np.round(value, self._n_decimals))
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


class TableFollower:
    """A value that another column determines; it is always one of training.

    Where training never held the value of that other column, the person's own value stays.
    """

    def __init__(self, computed: ComputedColumn, rule: Dependency, rows: EncodedRows) -> None:
        self._place, self._rule = computed.place, rule
        self._own = rows.codes[computed.column]
        number = match_values(computed.feature.table, rule.results)
        # The last entry stands for a determinant that training never held.
        self._codes = np.full(len(rule.results) + 1, OWN, dtype=np.int32)
        self._codes[number] = np.where(number < 0, OWN, np.arange(number.size))
        self._column_cache: ColumnCache = {}

    def follow(self, tables: GrowingTables, rows: CandidateRows) -> Codes:
        """The codes of the new values, ``OWN`` where the person's value stays."""
        new = self._codes[self._rule.expected(CandidateColumns(rows, self._column_cache))]
        new[new == self._own[rows.owner]] = OWN
        follows = new != OWN
        new[follows] = tables.codes_for_trained(self._place, new[follows])
        return new
