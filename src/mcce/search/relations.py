"""Which of the relations found at fit the answers of a search keep."""

from __future__ import annotations

from collections.abc import Sequence

from ..constraints.collection import Constraints
from ..errors import NotFittedError, ParameterError, shorten
from ..fitted import Fitted
from ..relations import Dependency, Equality, Equivalence, Relation
from ..relations.relation import values_of
from ..tables.schema import Schema
from .config import ExactSearch, Search


def kept_relations(
    fitted: Fitted,
    search: Search | ExactSearch,
    ignored: bool | Sequence[str],
    constraints: Constraints,
) -> list[Relation]:
    """All relations that ``fitted`` has, but those that are ignored.

    A formula that the user declared replaces the relations with its target.
    """
    if ignored is True or not search.needs.relations:
        return []
    if fitted.relations is None:
        raise NotFittedError(
            "ignore_relations or search was changed after fit, which did not look for relations "
            "between columns. Fit again, or pass ignore_relations=True."
        )
    declared = {derived.target for derived in constraints.derived}
    relations = [found.relation for found in fitted.relations]
    kept = [relation for relation in relations if relation.name not in (ignored or ())]
    return [relation for relation in kept if relation.target not in declared]


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


def check_ignored(fitted: Fitted, ignored: bool | Sequence[str]) -> None:
    """Raise if relations are to be ignored that ``fit`` did not find."""
    if fitted.relations is None or isinstance(ignored, bool):
        return
    names = {found.relation.name for found in fitted.relations}
    unknown = [name for name in ignored if name not in names]
    if unknown:
        raise ParameterError(
            f"ignore_relations names relations that fit did not find: {shorten(unknown, 200)}. "
            "Take the names from the column 'relation' of relations_."
        )
