"""Which of the relations found at fit the answers of a search keep."""

from __future__ import annotations

from collections.abc import Sequence

from ..constraints.collection import Constraints
from ..errors import NotFittedError, ParameterError, shorten
from ..fitted import Fitted
from ..relations import Relation
from .config import ExactSearch, Search


def kept_relations(
    fitted: Fitted,
    search: Search | ExactSearch,
    ignored: bool | Sequence[str],
    constraints: Constraints,
) -> list[Relation]:
    """All relations that ``fitted`` has, but those that are ignored.

    A formula that the user declared replaces the relations with its target.

    Parameters
    ----------
    fitted
        What ``fit`` learned.
    search
        The search; some ignore all relations.
    ignored
        Names of the relations to leave out; True for all.
    constraints
        The constraints, with the columns declared as derived.

    Raises
    ------
    NotFittedError
        If ``fit`` did not look for relations.
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
