"""What users say of columns, by name: which exist, their kinds, and who can act on them.

Paper, start of section "Generating counterfactual explanations": mutable and immutable features.
Users name either kind. Roles are documentation: they change no answer.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from ..errors import SchemaError, did_you_mean, shorten
from .columns import Kind

Role = Literal["action", "ours", "past"]
# Who would have to act for a column of each role to change.
ACTORS: dict[Role, str] = {"action": "person", "ours": "us", "past": "nobody"}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def check_column_names(frame: pd.DataFrame) -> None:
    """Raise unless every column has a name of its own that can be written down."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise SchemaError(
            "The frame has several levels of column names. Flatten them first: "
            "frame.columns = ['_'.join(name) for name in frame.columns]."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].unique().tolist()
        raise SchemaError(
            f"Column names must be unique, but these occur more than once: {shorten(twice, 500)}. "
            "Rename or drop all but one of each."
        )
    check_text(frame.columns)
    if frame.columns.hasnans:
        raise SchemaError(
            f"Every column needs a name, but one of {shorten(list(frame.columns), 500)} is missing."
        )


def check_text(names: Iterable[Any]) -> None:
    """Raise for names that UTF-8 cannot encode: pandas, files and other libraries fail on them."""
    for position, name in enumerate(names):
        if isinstance(name, str) and has_lone_surrogate(name):
            raise SchemaError(
                f"The name of column {position} (counted from 0), {shorten(name)}, has half a "
                "surrogate pair, which UTF-8 cannot encode. Rename the column; if its name was "
                "read from a file, read that with another encoding."
            )


def has_lone_surrogate(text: str) -> bool:
    """Whether a string holds half a surrogate pair, which UTF-8 cannot encode."""
    return not text.isascii() and _LONE_SURROGATE.search(text) is not None


def check_names(names: Any, frame: pd.DataFrame, argument: str) -> list[Hashable]:
    """Column names of a frame, each once, in the order given."""
    if names is None:
        return []
    listed = (Sequence, Set, pd.Index, pd.Series, np.ndarray)
    single = isinstance(names, (str, bytes)) or getattr(names, "ndim", 1) == 0
    if single or not isinstance(names, listed):
        raise SchemaError(
            f"{argument} must be a list of column names, got {shorten(names)}. "
            f"Write {argument}=[{shorten(names)}] for a single column."
        )
    # Not the index itself, which finds "2024" among dates; and True must not match 1.
    known = {(name, isinstance(name, bool)) for name in frame.columns}
    absent = [
        name
        for name in names
        if not isinstance(name, Hashable) or (name, isinstance(name, bool)) not in known
    ]
    if absent:
        raise SchemaError(
            f"{argument} names columns that are not in the data: {_quoted(absent, names)}."
            f"{did_you_mean(absent[0], frame.columns)} The columns are "
            f"{shorten(list(frame.columns), 500)}."
        )
    return list(dict.fromkeys(names))


def check_kinds(kinds: Any, frame: pd.DataFrame) -> Mapping[Hashable, Kind]:
    """The user's kinds by column name, checked."""
    return _check_by_name("kinds", kinds, frame, get_args(Kind), '{"zip": "categorical"}')


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
    columns = pd.Index(list(names), dtype=object, tupleize_cols=False)
    frame = pd.DataFrame(columns=columns)
    return _check_by_name("roles", roles, frame, get_args(Role), '{"savings": "action"}')


def actors(features: Iterable[Hashable], roles: Mapping[Hashable, Role]) -> list[str]:
    """Who would have to act for each of some features to change; empty where it has no role.

    Examples
    --------
    >>> actors(["savings", "limit", "age"], {"savings": "action", "limit": "ours"})
    ['person', 'us', '']
    """
    return [ACTORS[roles[name]] if name in roles else "" for name in features]


def _check_by_name(
    argument: str, given: Any, frame: pd.DataFrame, words: Sequence[str], example: str
) -> dict[Hashable, Any]:
    """One of some words for each column that the user names, checked."""
    if given is None:
        return {}
    *others, last = (f'"{word}"' for word in words)
    listed = f"{', '.join(others)} or {last}"
    if not isinstance(given, Mapping):
        raise SchemaError(
            f"{argument} must map column names to {listed}, got {shorten(given)}. "
            f"Write e.g. {argument}={example}."
        )
    check_names(list(given), frame, argument)
    for name, word in given.items():
        if not isinstance(word, str) or word not in words:
            raise SchemaError(f"{argument}[{name!r}] must be {listed}, got {shorten(word)}.")
    return dict(given)


def _quoted(absent: list[Any], names: Any) -> str:
    """Those of the user's names; entries of a Series or array may be cells, and are not quoted."""
    if isinstance(names, (pd.Series, np.ndarray)):
        return f"{len(absent)} of the {len(names)} entries of a {type(names).__name__}"
    return shorten(absent, 200)
