"""What answers cost by group: a picture and a table for each column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...counterfactuals import ALREADY, UNANSWERED, Counterfactuals
from ...errors import ParameterError, shorten
from ...kernels import IntArray
from ...tables.columns import is_measured
from ...tables.schema import Schema
from ..cells import cells_of
from ..label_checks import level_key
from ..plots import plot_group_costs
from ..plots.selecting import best_answers
from ..plots.tracks import level_order
from .images import Image, make_image
from .words import PageWords

# Groups of a column, and columns that are compared unless asked for.
MOST_GROUPS, MOST_COLUMNS = 12, 4
# Parts that numbers of many values are cut into.
N_PARTS = 4


@dataclass(frozen=True)
class TableView:
    """A table: what it shows, its heads, and rows of texts, the first of each being its head."""

    caption: str
    heads: list[str]
    rows: list[list[str]]
    numeric: bool = True


@dataclass(frozen=True)
class GroupView:
    """Costs by the groups of one column."""

    name: str
    image: Image | None
    table: TableView


def view_groups(
    result: Counterfactuals[pd.DataFrame],
    schema: Schema,
    words: PageWords,
    groups: Sequence[Hashable] | None,
) -> list[GroupView]:
    """The costs by groups."""
    columns = _choose(result, schema, words) if groups is None else _check(groups, result)
    return [_view(result, name, words) for name in columns]


def _choose(
    result: Counterfactuals[pd.DataFrame], schema: Schema, words: PageWords
) -> list[Hashable]:
    """Columns that nobody can change and that have few values."""
    names = [feature.name for feature in schema.features if feature.immutable]
    sizes = {name: len(_members(result, name, words)) for name in names}
    return [name for name in names if 2 <= sizes[name] <= MOST_GROUPS][:MOST_COLUMNS]


def _check(groups: Any, result: Counterfactuals[pd.DataFrame]) -> list[Hashable]:
    names = [groups] if isinstance(groups, str) else list(groups)
    unknown = [name for name in names if name not in result.factuals.columns]
    if unknown:
        raise ParameterError(
            f"groups must be columns of the people, got {shorten(unknown, 200)}. The columns are "
            f"{shorten(list(result.factuals.columns), 300)}."
        )
    return names


def _members(
    result: Counterfactuals[pd.DataFrame], name: Hashable, words: PageWords
) -> dict[str, IntArray]:
    """The people of each group by its name, in the order of the groups."""
    column = result.factuals[name].reset_index(drop=True)
    if is_measured(column.dtype) and column.nunique() > MOST_GROUPS:
        return _quarters(column, words)
    cells = cells_of(column)
    order = level_order([column], cells)
    numbers = np.array([len(order) if c is None else order[level_key(c)] for c in cells], np.int64)
    members = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    texts = words.cells.values(name, [cells[at[0]] for at in members])
    joined: dict[str, list[int]] = {}
    for text, at in zip(texts, members, strict=True):
        # Long levels may look alike; such groups are shown as one.
        joined.setdefault(text, []).extend(at.tolist())
    return {text: np.array(sorted(at), dtype=np.int64) for text, at in joined.items()}


def _quarters(column: pd.Series[Any], words: PageWords) -> dict[str, IntArray]:
    """People by quarters of a number, named by the least and the largest in each."""
    parts = pd.qcut(column.rank(method="min"), N_PARTS, labels=False, duplicates="drop")
    members = {}
    for part in sorted(parts.dropna().unique()):
        at = np.flatnonzero(parts == part)
        ends = cells_of(pd.Series([column.iloc[at].min(), column.iloc[at].max()]))
        low, high = words.cells.values(column.name, ends)
        members[words.say("from_to", low=low, high=high)] = at
    missing = np.flatnonzero(parts.isna())
    if missing.size:
        members[words.language.messages["values.missing"]] = missing
    return members


def _view(result: Counterfactuals[pd.DataFrame], name: Hashable, words: PageWords) -> GroupView:
    members, title = _members(result, name, words), words.cells.name(name)
    table = TableView(
        words.say("group_caption", name=title),
        [title, *(words.say(key) for key in ("declined_people", "no_answer"))]
        + [words.say(key) for key in ("mean_sparsity", "mean_distance")],
        _rows(result, members, words),
    )
    if not len(result.frame):
        return GroupView(title, None, table)
    codes = np.zeros(len(result.people), dtype=np.int64)
    for code, at in enumerate(members.values()):
        codes[at] = code
    groups = pd.Series(pd.Categorical.from_codes(codes, pd.Index(list(members)), ordered=True))
    image = make_image(
        lambda axes: plot_group_costs(result, groups, labels=words.cells.labels, ax=axes),
        1.0 + 0.42 * len(members),
        words.say("group_alt", name=title),
    )
    return GroupView(title, image, table)


def _rows(
    result: Counterfactuals[pd.DataFrame], members: dict[str, IntArray], words: PageWords
) -> list[list[str]]:
    best = best_answers(result)
    costs = result.measures[["sparsity", "gower"]].iloc[best].set_axis(result.owner[best])
    status = result.people["status"].to_numpy()
    rows = []
    for text, at in members.items():
        theirs = costs.loc[costs.index.isin(at)]
        counts = [int((status[at] != ALREADY).sum()), int((status[at] == UNANSWERED).sum())]
        means = [
            words.number(theirs["sparsity"].mean(), 2),
            words.number(theirs["gower"].mean()),
        ]
        rows.append([text, *map(words.number, counts), *means])
    return rows
