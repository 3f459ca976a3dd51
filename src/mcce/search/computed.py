"""Which columns follow from others, and by which rule.

Beyond the paper. Columns follow by formulas that the user declared and by relations found at fit.
Their values are computed in :mod:`.consequences`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..constraints.collection import Constraints
from ..constraints.derived import Derived
from ..fitted import Fitted
from ..kernels import IntArray
from ..relations.kinds import Dependency, Equivalence, Linear
from ..relations.relation import Equality, values_of
from ..tables.columns import is_time
from ..tables.features import Feature, is_number
from ..tables.schema import Schema
from .config import ExactSearch, Search, kept_relations

Rule: TypeAlias = Derived | Equality | Dependency


@dataclass(frozen=True, eq=False)
class ComputedColumn:
    """A column that follows others, and by which rule."""

    rule: Rule
    feature: Feature
    place: int
    inputs: tuple[int, ...]
    actions: IntArray


def followed_relations(
    fitted: Fitted,
    search: Search | ExactSearch,
    ignored: bool | Sequence[str],
    constraints: Constraints,
) -> list[Equality | Dependency]:
    """Those of :func:`kept_relations` by which a column follows others.

    Not by dependencies that are not enforced: answers may break them. Two columns of two values
    that are equivalent determine each other.
    """
    sure = {found.relation for found in fitted.relations or () if found.enforced}
    followed: list[Equality | Dependency] = []
    for relation in kept_relations(fitted, search, ignored, constraints):
        if isinstance(relation, Equality):
            followed.append(relation)
        elif relation not in sure:
            continue
        elif isinstance(relation, Dependency):
            followed.append(relation)
        elif isinstance(relation, Equivalence):
            followed += _both_ways(relation, constraints.schema)
    return followed


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


def plan_computed(
    constraints: Constraints, relations: Iterable[Equality | Dependency]
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
    chosen: dict[Hashable, ComputedColumn] = {}
    for given in [*constraints.derived, *_by_priority(relations, schema)]:
        for rule in _ways(given, chosen, schema):
            name, sources = rule.target, _sources(rule)
            at = position[name]
            inputs = tuple(position[n] for n in sources if n != name)
            actions = np.array([place_of[p] for p in inputs if p in place_of], dtype=np.int64)
            if at not in place_of or name in chosen or not actions.size:
                continue
            if _is_suitable(rule, schema) and not _leads_to(sources, name, chosen):
                chosen[name] = ComputedColumn(
                    rule, schema.features[at], place_of[at], inputs, actions
                )
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
    """The columns that the target of a rule follows from."""
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


def _ways(rule: Rule, chosen: dict[Hashable, ComputedColumn], schema: Schema) -> list[Any]:
    """A formula, or if its target is computed already, the same solved for other columns."""
    if rule.target not in chosen or not isinstance(rule, Linear):
        return [rule]
    n_codes = dict(zip(schema.names, (f.n_codes for f in schema.features), strict=True))
    names = sorted((name for name, _ in rule.terms), key=lambda name: -n_codes[name])
    return [rule.solved_for(name) for name in names]


def _leads_to(
    names: Iterable[Hashable], goal: Hashable, chosen: dict[Hashable, ComputedColumn]
) -> bool:
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


def _in_order(chosen: dict[Hashable, ComputedColumn]) -> list[ComputedColumn]:
    left, ordered = dict(chosen), list[ComputedColumn]()
    while left:
        ready = [n for n, t in left.items() if not left.keys() & (set(t.rule.features) - {n})]
        ordered += [left.pop(name) for name in ready]
    return ordered
