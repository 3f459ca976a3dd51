"""Actions and consequences: columns that are computed from others follow them.

Beyond the paper. When an action changes a column that another is computed from, by a formula that
the user declared or a relation found at fit, that other column is recomputed. It keeps the person's
own deviation from the formula, is rounded like its column and must lie in its training range.
Computed values are the one exception to "every changed value occurs in the training data".

Always true: what follows depends on the person and the actions alone; a column that is computed
never changes by itself. Where it cannot follow, because it is frozen, limited or would leave its
range, it keeps the person's value, and the filter of the formula excludes the row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..candidates import Candidates
from ..constraints.collection import Constraints
from ..constraints.derived import Derived
from ..kernels import BoolArray, Codes, FloatArray, IntArray, first_of_each
from ..relations.equalities import Linear
from ..relations.relation import Equality
from ..tables.columns import as_numbers, assemble, stack, unwrapped
from ..tables.features import Feature
from ..tables.resolution import ULPS, decimals, epsilon, known_numbers
from ..tables.schema import OWN, EncodedRows, Schema
from .values import GrowingTables, to_cells

Rule: TypeAlias = Derived | Equality
# All integers below are exact in float64; columns of larger ones are not computed.
LARGEST = 2.0**53


@dataclass(frozen=True, eq=False)
class Target:
    """A column that is recomputed.

    Parameters
    ----------
    rule
        What it is computed by.
    feature
        The column.
    row
        Its place among the mutable features.
    inputs
        Positions of the columns that it is computed from.
    actions
        Places of the mutable ones of them among the mutable features.
    """

    rule: Rule
    feature: Feature
    row: int
    inputs: tuple[int, ...]
    actions: IntArray


class Consequences:
    """What follows from the actions of people.

    Parameters
    ----------
    targets
        The columns that are recomputed, each after those that it is computed from.
    rows, constraints
        All factuals, and what limits them.
    """

    def __init__(
        self, targets: Sequence[Target], rows: EncodedRows, constraints: Constraints
    ) -> None:
        self.targets = tuple(targets)
        self._rows = rows
        self._limits = constraints.by_feature
        self._frozen = constraints.frozen(rows)
        self._followers = [_Follower(target, rows) for target in self.targets]
        self._place = {int(at): row for row, at in enumerate(rows.schema.mutable)}
        self._numbers = {
            position: as_numbers(rows.frame.iloc[:, position])
            for target in self.targets
            for position in target.inputs
            if _is_number(rows.schema.features[position])
        }

    @property
    def rows(self) -> list[int]:
        """Places of the recomputed columns among the mutable features."""
        return [target.row for target in self.targets]

    def complete(self, tables: GrowingTables, owner: IntArray, codes: Codes) -> Codes:
        """Rows of codes with every computed column recomputed.

        Parameters
        ----------
        tables
            What the codes mean; computed values are added.
        owner : (n_rows,)
            Position of each row's person among the factuals.
        codes : (n_mutable, n_rows)
            Codes, ``OWN`` where the cell is the person's own.

        Returns
        -------
        Codes
            The same, except for the computed columns.
        """
        codes = codes.copy()
        for follower in self._followers:
            target = follower.target
            codes[target.row] = OWN
            moved = np.flatnonzero((codes[target.actions] != OWN).any(axis=0))
            if moved.size:
                whose = owner[moved]
                frame = self._inputs(target, tables, whose, codes[:, moved])
                value, follows = follower.follow(whose, target.rule.compute(frame))
                follows[follows] = self._allowed(target, whose[follows], value[follows])
                codes[target.row, moved[follows]] = tables.place(target.row, value[follows])
        return codes

    def complete_candidates(self, candidates: Candidates) -> Candidates:
        """Candidates with every computed column recomputed.

        The people of a group must be equal in all columns that formulas mention.
        """
        rows, comparison = candidates.rows, candidates.comparison
        tables, codes = GrowingTables(rows, candidates.tables), comparison.codes.copy()
        _, first = np.unique(candidates.group, return_index=True)
        owner = np.repeat(candidates.people[first], candidates.draws.size)
        own = comparison.own_codes[:, first][:, :, None]
        flat = np.where(codes == own, OWN, codes).reshape(len(codes), -1)
        completed = self.complete(tables, owner, flat).reshape(codes.shape)
        own_codes, numbers = comparison.own_codes.copy(), list(comparison.numbers)
        for target in self.targets:
            # Also an own value that training never held, which draws can now keep.
            at = target.row
            mine = as_numbers(rows.own(int(rows.schema.mutable[at]), candidates.people))
            own_codes[at] = tables.place(at, mine)
            codes[at] = np.where(completed[at] == OWN, own_codes[at, first][:, None], completed[at])
            numbers[at] = None if numbers[at] is None else tables.numbers(at)
        return replace(
            candidates,
            comparison=replace(comparison, codes=codes, own_codes=own_codes, numbers=numbers),
            distinct=first_of_each(codes),
            tables=tables.tables,
        )

    def _inputs(
        self, target: Target, tables: GrowingTables, owner: IntArray, codes: Codes
    ) -> pd.DataFrame:
        """The columns that a target is computed from."""
        rows, columns = self._rows, list[Any]()
        for position in target.inputs:
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
        names = pd.Index([rows.schema.names[at] for at in target.inputs], dtype=object)
        return assemble(columns, names)

    def _allowed(self, target: Target, whose: IntArray, value: FloatArray) -> BoolArray:
        """Whether people's constraints on a column allow its new values."""
        position = int(self._rows.schema.mutable[target.row])
        allowed = np.ones(whose.size, dtype=bool)
        if position in self._frozen:
            allowed &= ~self._frozen[position][whose]
        limits = self._limits.get(position, [])
        if limits and whose.size:
            own = self._rows.own(position, whose)
            new = to_cells(value, own.dtype)
            for limit in limits:
                allowed &= limit.allows(target.feature, own, new)
        return allowed


class _Follower:
    """A recomputed column: what it is in the factuals' own rows, and how it follows."""

    def __init__(self, target: Target, rows: EncodedRows) -> None:
        self.target = target
        feature, position = target.feature, int(rows.schema.mutable[target.row])
        self._formula = target.rule.compute(rows.frame)
        self._own = as_numbers(rows.frame.iloc[:, position])
        self._places = decimals(feature)
        rule = target.rule
        if isinstance(rule, Derived):
            self._relative, self._most, self._slack = False, rule.allowed_deviation(feature), 0.0
        else:
            self._relative, self._most, self._slack = rule.relative, rule.tolerance, rule.rounding
        known = known_numbers(feature)
        self._largest = np.inf if feature.table.dtype.kind == "f" else LARGEST
        self._noise = ULPS * epsilon(feature.table.dtype) * np.abs(known).max(initial=0.0)
        self._low, self._high = known.min(initial=np.inf), known.max(initial=-np.inf)

    def follow(self, owner: IntArray, formula: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The new values, NaN for missing, and whether they differ from the own ones and may."""
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
        return isinstance(self.target.rule, Derived) and self.target.feature.has_missing


def plan_targets(constraints: Constraints, relations: Iterable[Equality]) -> list[Target]:
    """The columns to recompute: those that the user declared, then those found at fit.

    A column is left out if it is immutable or no number, if nothing that it is computed from is
    mutable, or if it would be computed from itself. Of two formulas for one column, the second is
    solved for another, the one with the most values: what is computed rarely has fewer.

    Parameters
    ----------
    constraints
        The constraints, with the columns declared as derived.
    relations
        Relations found at fit that are enforced and have a target.

    Returns
    -------
    list of Target
        Each after those that it is computed from.
    """
    schema = constraints.schema
    position = {name: at for at, name in enumerate(schema.names)}
    place = {int(at): row for row, at in enumerate(schema.mutable)}
    chosen: dict[Hashable, Target] = {}
    # Sums last, since only they can be solved for another column.
    sums_last = sorted(relations, key=lambda relation: isinstance(relation, Linear))
    rules: list[Rule] = [*constraints.derived, *sums_last]
    for given in rules:
        for rule in _ways(given, chosen, schema):
            name = rule.target
            at = position[name]
            inputs = tuple(position[n] for n in rule.features if n != name)
            actions = np.array([place[p] for p in inputs if p in place], dtype=np.int64)
            number = _is_number(schema.features[at])
            if at not in place or name in chosen or not number or not actions.size:
                continue
            if not _leads_to(rule.features[1:], name, chosen):
                chosen[name] = Target(rule, schema.features[at], place[at], inputs, actions)
                break
    return _in_order(chosen)


def _ways(rule: Rule, chosen: dict[Hashable, Target], schema: Schema) -> list[Any]:
    """A formula, or if its target is computed already, the same solved for other columns."""
    if rule.target not in chosen or not isinstance(rule, Linear):
        return [rule]
    n_codes = dict(zip(schema.names, (f.n_codes for f in schema.features), strict=True))
    names = sorted((name for name, _ in rule.terms), key=lambda name: -n_codes[name])
    return [rule.solved_for(name) for name in names]


def positions_of(targets: Iterable[Target], schema: Schema) -> list[int]:
    """Positions of all columns that the formulas of targets mention."""
    mentioned = {name for target in targets for name in target.rule.features}
    return [at for at, name in enumerate(schema.names) if name in mentioned]


def _leads_to(names: Iterable[Hashable], goal: Hashable, chosen: dict[Hashable, Target]) -> bool:
    """Whether one of the columns is computed from another, over any number of steps."""
    seen, left = set[Hashable](), list(names)
    while left:
        name = left.pop()
        if name == goal:
            return True
        if name in chosen and name not in seen:
            seen.add(name)
            left += [n for n in chosen[name].rule.features if n != name]
    return False


def _in_order(chosen: dict[Hashable, Target]) -> list[Target]:
    left, ordered = dict(chosen), list[Target]()
    while left:
        ready = [n for n, t in left.items() if not left.keys() & (set(t.rule.features) - {n})]
        ordered += [left.pop(name) for name in ready]
    return ordered


def _is_number(feature: Feature) -> bool:
    return feature.kind == "numeric" and feature.table.dtype.kind in "iuf"
