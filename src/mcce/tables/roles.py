"""Who can act on which column: the immutable ones, and what users say of the others.

Paper, start of section "Generating counterfactual explanations": mutable and immutable features.
Users name either kind. Roles are documentation: they change no answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import pandas as pd

from ..errors import SchemaError, shorten
from .columns import check_names

Role = Literal["action", "ours", "past"]
# Who would have to act for a column of each role to change.
ACTORS: dict[Role, str] = {"action": "person", "ours": "us", "past": "nobody"}


def immutable_columns(immutable: Any, mutable: Any, frame: pd.DataFrame) -> list[Hashable]:
    """The columns that cannot change, from the names of those or of all others.

    Examples
    --------
    >>> immutable_columns(None, ["salary"], pd.DataFrame({"age": [36], "salary": [50]}))
    ['age']
    """
    if mutable is None:
        fixed = check_names(immutable, frame, "immutable")
        if fixed and len(fixed) == frame.shape[1]:
            raise SchemaError(
                f"All {frame.shape[1]} columns are immutable, so nothing can change. "
                "Leave at least one column out of immutable."
            )
        return fixed
    if immutable is not None:
        raise SchemaError(
            "immutable and mutable are two ways to say the same, but both are given: "
            f"immutable={shorten(immutable)} and mutable={shorten(mutable)}. Pass one of them."
        )
    free = check_names(mutable, frame, "mutable")
    if not free:
        raise SchemaError(
            f"mutable names no column, got {shorten(mutable)}, so nothing can change. Name at "
            "least one, or leave mutable out to let all columns change."
        )
    return [name for name in frame.columns if name not in set(free)]


def check_roles(roles: Any, names: Sequence[Hashable]) -> Mapping[Hashable, Role]:
    """The user's roles by column name, checked.

    Examples
    --------
    >>> check_roles({"limit": "ours"}, ["limit", "savings"])
    {'limit': 'ours'}
    """
    if roles is None:
        return {}
    if not isinstance(roles, Mapping):
        raise SchemaError(
            f"roles must map column names to {_listed()}, got {shorten(roles)}. "
            'Write e.g. roles={"savings": "action"}.'
        )
    columns = pd.Index(list(names), dtype=object, tupleize_cols=False)
    check_names(list(roles), pd.DataFrame(columns=columns), "roles")
    for name, role in roles.items():
        if not isinstance(role, str) or role not in get_args(Role):
            raise SchemaError(f"roles[{name!r}] must be {_listed()}, got {shorten(role)}.")
    return dict(roles)


def actors(features: Iterable[Hashable], roles: Mapping[Hashable, Role]) -> list[str]:
    """Who would have to act for each of some features to change; empty where it has no role.

    Examples
    --------
    >>> actors(["savings", "limit", "age"], {"savings": "action", "limit": "ours"})
    ['person', 'us', '']
    """
    return [ACTORS[roles[name]] if name in roles else "" for name in features]


def _listed() -> str:
    *others, last = (f'"{role}"' for role in get_args(Role))
    return f"{', '.join(others)} or {last}"
