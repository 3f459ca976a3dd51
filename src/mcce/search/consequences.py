"""Actions and consequences: columns that follow from others.

Beyond the paper. When an action changes a column that another is computed from, by a formula that
the user declared or a relation found at fit, that other column is recomputed. It keeps the person's
own deviation from the formula, is rounded like its column and must lie in its training range.
Computed values are the one exception to "every changed value occurs in the training data". A column
that another one determines becomes the value that goes with it in training.

Always true: what follows depends on the person and the actions alone; a column that follows never
changes by itself. Where it cannot follow, because it is frozen, limited or would leave its range,
it keeps the person's value, and the filter of the rule excludes the row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..candidates import Candidates
from ..constraints.collection import Constraints
from ..kernels import BoolArray, Codes, IntArray, first_of_each
from ..relations import Dependency, Equality, Linear
from ..tables.columns import is_time
from ..tables.features import Feature
from ..tables.schema import OWN, EncodedRows, Schema
from .followers import Follower, Rule, Target, is_number, make_follower
from .values import GrowingTables


class Consequences:
    """What follows from the actions of people."""

    def __init__(
        self, targets: Sequence[Target], rows: EncodedRows, constraints: Constraints
    ) -> None:
        self.targets = tuple(targets)
        self._rows = rows
        self._limits = constraints.by_feature
        self._frozen = constraints.frozen(rows)
        self._followers = [make_follower(target, rows) for target in self.targets]

    @property
    def rows(self) -> list[int]:
        """Places of the columns that follow among the mutable features."""
        return [target.row for target in self.targets]

    def have_actions(self, codes: Codes) -> BoolArray:
        """Rows in which no column changes without the one that determines it."""
        kept = np.ones(codes.shape[1], dtype=bool)
        for target in self.targets:
            if isinstance(target.rule, Dependency):
                kept &= (codes[target.row] == OWN) | (codes[target.actions] != OWN).any(axis=0)
        return kept

    def complete(self, tables: GrowingTables, owner: IntArray, codes: Codes) -> Codes:
        """Rows of codes with what follows from their changes."""
        codes = codes.copy()
        for follower in self._followers:
            target = follower.target
            codes[target.row] = OWN
            moved = np.flatnonzero((codes[target.actions] != OWN).any(axis=0))
            if moved.size:
                whose = owner[moved]
                value, follows = follower.follow(tables, whose, codes[:, moved])
                follows[follows] = self._allowed(follower, whose[follows], value[follows])
                codes[target.row, moved[follows]] = follower.place(tables, value[follows])
        return codes

    def complete_candidates(self, candidates: Candidates) -> Candidates:
        """Candidates with what follows from their changes.

        The people of a group must be equal in all columns that the rules mention.
        """
        rows, comparison = candidates.rows, candidates.comparison
        tables, codes = GrowingTables(rows, candidates.tables), comparison.codes.copy()
        _, first = np.unique(candidates.group, return_index=True)
        owner = np.repeat(candidates.people[first], candidates.draws.size)
        own = comparison.own_codes[:, first][:, :, None]
        flat = np.where(codes == own, OWN, codes).reshape(len(codes), -1)
        completed = self.complete(tables, owner, flat).reshape(codes.shape)
        numbers = list(comparison.numbers)
        for at in self.rows:
            codes[at] = np.where(completed[at] == OWN, own[at], completed[at])
            numbers[at] = None if numbers[at] is None else tables.numbers(at)
        return replace(
            candidates,
            comparison=replace(comparison, codes=codes, numbers=numbers),
            distinct=first_of_each(codes),
            tables=tables.tables,
        )

    def _allowed(self, follower: Follower, whose: IntArray, value: np.ndarray) -> BoolArray:
        """Whether people's constraints on a column allow its new values."""
        target = follower.target
        position = int(self._rows.schema.mutable[target.row])
        allowed = np.ones(whose.size, dtype=bool)
        if position in self._frozen:
            allowed &= ~self._frozen[position][whose]
        limits = self._limits.get(position, [])
        if limits and whose.size:
            own, new = self._rows.own(position, whose), follower.cells(value)
            for limit in limits:
                allowed &= limit.allows(target.feature, own, new)
        return allowed


def plan_targets(
    constraints: Constraints, relations: Iterable[Equality | Dependency]
) -> list[Target]:
    """The columns that follow: those that the user declared, then those found at fit.

    A column is left out if it is immutable, if nothing that it follows from is mutable, or if it
    would follow from itself; formulas give numbers alone. Of two formulas for one column, the
    second is solved for another, the one with the most values: what is computed rarely has fewer.
    Of two columns that determine each other, the later one follows: they have as many values.
    """
    schema = constraints.schema
    position = {name: at for at, name in enumerate(schema.names)}
    place = {int(at): row for row, at in enumerate(schema.mutable)}
    chosen: dict[Hashable, Target] = {}
    for given in [*constraints.derived, *_by_priority(relations, schema)]:
        for rule in _ways(given, chosen, schema):
            name, sources = rule.target, _sources(rule)
            at = position[name]
            inputs = tuple(position[n] for n in sources if n != name)
            actions = np.array([place[p] for p in inputs if p in place], dtype=np.int64)
            if at not in place or name in chosen or not actions.size:
                continue
            if _is_suitable(rule, schema) and not _leads_to(sources, name, chosen):
                chosen[name] = Target(rule, schema.features[at], place[at], inputs, actions)
                break
    return _in_order(chosen)


def _by_priority(relations: Iterable[Equality | Dependency], schema: Schema) -> list[Rule]:
    """Formulas before dependencies; sums last of them, since only they can be solved otherwise."""
    formulas = [one for one in relations if isinstance(one, Equality)]
    tables = [one for one in relations if isinstance(one, Dependency)]
    formulas.sort(key=lambda one: isinstance(one, Linear))
    tables.sort(key=lambda one: -schema.names.index(one.result))
    return [*formulas, *tables]


def _sources(rule: Rule) -> tuple[Hashable, ...]:
    """The columns that a rule's target follows from."""
    return (rule.determinant,) if isinstance(rule, Dependency) else rule.features[1:]


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


def _ways(rule: Rule, chosen: dict[Hashable, Target], schema: Schema) -> list[Any]:
    """A formula, or if its target is computed already, the same solved for other columns."""
    if rule.target not in chosen or not isinstance(rule, Linear):
        return [rule]
    n_codes = dict(zip(schema.names, (f.n_codes for f in schema.features), strict=True))
    names = sorted((name for name, _ in rule.terms), key=lambda name: -n_codes[name])
    return [rule.solved_for(name) for name in names]


def positions_of(targets: Iterable[Target], schema: Schema) -> list[int]:
    """Positions of all columns that the rules of targets mention."""
    mentioned = {name for target in targets for name in target.rule.features}
    return [at for at, name in enumerate(schema.names) if name in mentioned]


def _leads_to(names: Iterable[Hashable], goal: Hashable, chosen: dict[Hashable, Target]) -> bool:
    """Whether one of the columns follows from another, over any number of steps."""
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
