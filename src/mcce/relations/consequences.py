"""Actions and consequences: columns that follow from others.

Beyond the paper. When an action changes a column that another is computed from, by a formula that
the user declared or a relation found at fit, that other column is recomputed. It keeps the person's
own deviation from the formula, is rounded like its column and must lie in its training range; a
column of few values must become one of them.
Computed values are the one exception to "every changed value occurs in the training data". A column
that another one determines becomes the value that goes with it in training. A column that is
missing exactly where a condition on another holds becomes missing with it, and is free otherwise.

Always true: what follows depends on the person and the actions alone; a column that follows never
changes by itself, nor does one that is free otherwise become missing by itself. Where it cannot
follow, because it is frozen, limited or would leave its range or its few values, it keeps the
person's value, and the filter of the rule excludes the row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..candidates import CandidateRows, Candidates, becomes_missing
from ..constraints.collection import Constraints
from ..constraints.conditions import Formula, to_floats
from ..constraints.of_features import NeverAdvised
from ..constraints.of_rows import Derived
from ..encodings import CandidateColumns, ColumnCache, GrowingTables
from ..kernels import BoolArray, Codes, FloatArray, IntArray, first_of_each
from ..tables.columns import is_time
from ..tables.features import ULPS, Feature, epsilon
from ..tables.schema import OWN, EncodedRows, Schema
from .kinds import Dependency, Equation, Equivalence
from .relation import (
    FoundRelation,
    Rows,
    View,
    match_values,
    numbers_of,
    read_cells,
    values_of,
)
from .views import Sum

Rule: TypeAlias = Equation | Dependency
# Smaller integers are exact in float64; columns with larger ones are not computed.
MAX_EXACT_INTEGER = 2.0**53
# Of a column with at most so many numbers, no others are computed.
FEW_NUMBERS = 32
# The table of a column that is missing where a condition holds.
LOST = ((1.0, None),)


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

    @property
    def is_free(self) -> bool:
        """Whether it follows only where it becomes missing."""
        return isinstance(self.rule, Dependency) and self.rule.values == LOST

    def follows(self, codes: Codes, table: pd.Series[Any]) -> BoolArray:
        """Which codes are changes that follow from others."""
        return becomes_missing(codes, table) if self.is_free else codes != OWN

    @property
    def can_become_missing(self) -> bool:
        """Whether it may have to be missing."""
        if isinstance(self.rule, Dependency):
            return None in self.rule.results
        return isinstance(self.rule.formula, Declared) and self.feature.has_missing


@dataclass(frozen=True)
class Declared(View):
    """The number that a formula of the user gives."""

    of: tuple[Hashable, ...]
    formula: Formula

    @property
    def name(self) -> str:
        """The formula as it was written."""
        return self.formula.text

    def numbers(self, rows: Rows) -> FloatArray:
        """The number of each row, NaN where it is undefined."""
        cells = {name: read_cells(rows, name, to_floats, "formula") for name in self.of}
        return self.formula(pd.DataFrame(cells))


def following_columns(
    relations: Sequence[FoundRelation], constraints: Constraints
) -> list[ComputedColumn]:
    """The columns that follow: those that the user declared, then those found at fit.

    A column is left out if it is immutable, if nothing that it follows from is mutable, or if it
    would follow from itself; formulas give numbers alone. Of two formulas for one column, the
    second is solved for its feature with the most values, since computed columns usually have the
    most.
    """
    schema = constraints.schema
    chosen: dict[int, ComputedColumn] = {}
    declared = [_as_equation(one, schema) for one in constraints.derived]
    for rule in [*declared, *_followed(relations, schema)]:
        is_taken = schema.position_of[rule.target] in chosen
        for way in _solutions(rule, schema) if is_taken else [rule]:
            computed = _computed_by(way, schema)
            if computed is None or computed.column in chosen:
                continue
            try:
                chosen = _in_order({**chosen, computed.column: computed})
            except CycleError:
                continue
            break
    return list(chosen.values())


def kept_places(following: Sequence[ComputedColumn], constraints: Constraints) -> list[int]:
    """Places of features of which no value may become missing.

    That is no plan, unless a relation calls for it, or the user constrains the feature otherwise.
    """
    schema = constraints.schema
    others = {one.column for one in following if one.can_become_missing}
    for column, limits in constraints.by_feature.items():
        others |= {column} if any(not isinstance(one, NeverAdvised) for one in limits) else set()
    return [
        place
        for place, column in enumerate(schema.mutable.tolist())
        if schema.features[column].has_missing and column not in others
    ]


def _as_equation(derived: Derived, schema: Schema) -> Equation:
    """A formula of the user, with the deviation that it may have."""
    most = derived.allowed_deviation(schema.features[schema.position_of[derived.target]])
    return Equation(derived.target, Declared(derived.features[1:], derived.formula), -most, most)


def _computed_by(rule: Rule, schema: Schema) -> ComputedColumn | None:
    """The column that a rule computes from others; None if it cannot follow them."""
    sources = [name for name in rule.features if name != rule.target]
    column, *inputs = (schema.position_of[name] for name in (rule.target, *sources))
    place_of = {int(mutable): place for place, mutable in enumerate(schema.mutable)}
    actions = np.array([place_of[one] for one in inputs if one in place_of], dtype=np.int64)
    if column not in place_of or not actions.size or not _is_suitable(rule, schema):
        return None
    feature, place = schema.features[column], place_of[column]
    return ComputedColumn(rule, feature, column, place, tuple(inputs), actions)


def _followed(found: Iterable[FoundRelation], schema: Schema) -> list[Rule]:
    """The relations by which a column follows others: formulas first.

    Sums come last of the formulas, since only they can be solved otherwise. Of two columns that
    determine each other, the one that may be missing follows, else the later one: they have as many
    values.
    """
    formulas, tables = list[Equation](), list[Dependency]()
    for one in found:
        relation = one.relation
        # Of one that rows break, it is uncertain which column is computed, unless it is exact.
        if isinstance(relation, Equation) and (one.enforced or relation.tolerance == 0):
            formulas += [] if relation.is_bound else [relation]
        # Answers may break those that are not enforced.
        elif one.enforced and isinstance(relation, Dependency):
            tables.append(relation)
        elif one.enforced and isinstance(relation, Equivalence):
            tables += _as_tables(relation, schema)
    formulas.sort(key=lambda one: isinstance(one.formula, Sum))
    at = schema.position_of
    tables.sort(key=lambda one: (None not in one.results, one.values == LOST, -at[one.result]))
    return [*formulas, *tables]


def _as_tables(relation: Equivalence, schema: Schema) -> Iterator[Dependency]:
    """An equivalence as a table for each of its columns that it leaves no choice.

    These have two values; of others, what follows is that they become missing.
    """
    sides = relation.first, relation.second
    for cause, side in (sides, sides[::-1]):
        values = values_of(schema.features[schema.position_of[side.of[0]]])
        if len(values) > 2 and side.values == (None,):
            yield Dependency(cause, side.of[0], LOST)
        elif len(values) == 2:
            values.sort(key=lambda value: value in side.values)
            yield Dependency(cause, side.of[0], tuple(zip((0.0, 1.0), values, strict=True)))


def _solutions(rule: Rule, schema: Schema) -> list[Equation]:
    """A sum solved for each of its columns, those with the most values first."""
    if not isinstance(rule, Equation) or not isinstance(rule.formula, Sum):
        return []
    at = schema.position_of
    names = [name for name in rule.formula.of if name in at]
    names.sort(key=lambda name: -schema.features[at[name]].n_codes)
    return [rule.solved_for(name) for name in names]


def _is_suitable(rule: Rule, schema: Schema) -> bool:
    """Whether the target can hold what a rule gives, and a table tells its values apart."""
    if isinstance(rule, Equation):
        return schema.features[schema.position_of[rule.target]].is_number
    if rule.values == LOST:
        return True
    # Tables hold numbers as float64, which merges integers beyond 2**53; times have units.
    at = schema.position_of
    features = [schema.features[at[name]] for name in rule.operands if name in at]
    return not any(
        is_time(one.table.dtype)
        or (one.numbers is not None and np.unique(one.numbers).size < one.n_codes)
        for one in features
    )


def _in_order(chosen: dict[int, ComputedColumn]) -> dict[int, ComputedColumn]:
    """The columns, each after those that it follows from."""
    inputs = {column: chosen.keys() & computed.inputs for column, computed in chosen.items()}
    return {column: chosen[column] for column in TopologicalSorter(inputs).static_order()}


class Consequences:
    """Recomputes the columns that follow from the actions of people."""

    def __init__(
        self, columns: Sequence[ComputedColumn], rows: EncodedRows, constraints: Constraints
    ) -> None:
        self._columns, self._rows = columns, rows
        self.places = [one.place for one in columns if not one.is_free]
        self.free_places = [one.place for one in columns if one.is_free]
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
            if isinstance(computed.rule, Dependency) and not computed.is_free:
                has_cause = (codes[computed.actions] != OWN).any(axis=0)
                kept &= (codes[computed.place] == OWN) | has_cause
        return kept

    def add_consequences(self, tables: GrowingTables, owner: IntArray, codes: Codes) -> Codes:
        """Rows of codes with the consequences of their changes."""
        codes = codes.copy()
        for computed, follower in zip(self._columns, self._followers, strict=True):
            own = codes[computed.place]
            own[computed.follows(own, tables.tables[computed.place])] = OWN
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
        for place in (computed.place for computed in self._columns):
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

    def __init__(self, computed: ComputedColumn, rule: Equation, rows: EncodedRows) -> None:
        self._place, self._rule, self._feature = computed.place, rule, computed.feature
        self._formula = rule.formula.numbers(rows.frame)
        self._own = numbers_of(rows.frame, rule.result)
        low, high = rule.around(self._formula)
        self._keeps = (low <= self._own) & (self._own <= high)
        self._column_cache: ColumnCache = {}
        self._known = self._feature.known_numbers
        largest = np.abs(self._known).max(initial=0.0)
        self._noise = ULPS * epsilon(self._feature.table.dtype) * largest

    def follow(self, tables: GrowingTables, rows: CandidateRows) -> Codes:
        """The codes of the new numbers, ``OWN`` where the person's value stays."""
        formula = self._rule.formula.numbers(CandidateColumns(rows, self._column_cache))
        own, before = self._own[rows.owner], self._formula[rows.owner]
        keeps = self._keeps[rows.owner]
        with np.errstate(all="ignore"):
            share = np.ones_like(formula)
            if self._rule.relative:
                share = np.where(before == 0, 1.0, np.abs(formula / before))
                # No larger share of the formula than before, and no more in all if it was too much.
                share = np.where(keeps, share, np.minimum(share, 1.0))
            # If a value is missing, the deviation is unknown and counts as none.
            deviation = np.nan_to_num(share * (own - before))
            value = self._in_cells(formula + deviation, own, keeps, formula)
            follows = ((np.abs(value - own) > self._noise) | np.isnan(own)) & self._fits(value)
        # A relation that was found holds where its formula is undefined, so the value stays.
        if isinstance(self._rule.formula, Declared) and self._feature.has_missing:
            follows |= np.isnan(formula) & ~np.isnan(own)
        codes = np.full(own.size, OWN, dtype=np.int32)
        codes[follows] = tables.codes_for(self._place, value[follows])
        return codes

    def _in_cells(
        self, value: FloatArray, own: FloatArray, keeps: BoolArray, formula: FloatArray
    ) -> FloatArray:
        """Values as the column holds them: rounded, and within the tolerance if they were."""
        n_decimals = self._feature.decimals
        if n_decimals is None:
            return value
        unit = self._feature.resolution
        stays = np.abs(value - own) <= unit / 2
        rounded = np.where(stays, own, np.round(value, n_decimals))
        least, most = self._rule.around(formula)
        low = np.round(np.ceil(least / unit) * unit, n_decimals)
        high = np.round(np.floor(most / unit) * unit, n_decimals)
        strays = keeps & ((rounded < least) | (rounded > most)) & (low <= high)
        return np.where(strays, np.minimum(np.maximum(rounded, low), high), rounded)

    def _fits(self, value: FloatArray) -> BoolArray:
        """Which values the column can hold: of its training range, and of a few its numbers."""
        if not self._known.size:
            return np.zeros(value.size, dtype=bool)
        fits = (value >= self._known[0]) & (value <= self._known[-1])
        if self._feature.table.dtype.kind != "f":
            fits &= np.abs(value) < MAX_EXACT_INTEGER
        if self._known.size <= FEW_NUMBERS:
            fits &= np.abs(value[:, None] - self._known).min(axis=1) <= self._noise
        return np.asarray(fits)


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
