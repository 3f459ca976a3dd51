"""The changes of final answers, cell by cell.

A change is an exact difference between the person's row and the final one. Anonymous answers have
ranges and sets in place of exact values. If such a range holds the person's own value, the change
can no longer be seen: it is vague.

Always true: no change of a widened column holds its exact value, unless its cell is that value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals.anonymous import AnonymousAnswers
from ..counterfactuals.result import Counterfactuals, ranges_by_answer
from ..relations.consequences import ComputedColumn
from ..tables.columns import differ, plain_cells
from ..tables.features import is_float32
from ..tables.schema import Schema
from .labels import level_key

# Levels that a clause lists; of more, it says only that the value would have been another.
MAX_CLAUSE_LEVELS = 4
# The largest share shown for values of which not all are accepted.
ALMOST_ALL = 0.99


@dataclass(frozen=True)
class Change:
    """A cell that differs between a person and an answer.

    ``found`` is its row of the table of ranges, if it has one. ``ends`` and ``others`` are a range
    and levels of which any would do, if a text is to say so.
    """

    feature: Hashable
    before: Any
    after: Any
    is_number: bool = False
    follows: bool = False
    found: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[Any, Any] | None = None
    others: tuple[Any, ...] = ()
    vague: bool = False

    def direction(self, order: Sequence[str] = ()) -> str:
        """``"more"``, ``"less"``, or ``"change"``; ``order`` lists levels from the least."""
        keys = [level_key(self.before), level_key(self.after)]
        if set(keys) <= set(order):
            return "more" if order.index(keys[1]) > order.index(keys[0]) else "less"
        if not self.is_number or self.before is None or self.after is None:
            return "change"
        return "more" if self.after > self.before else "less"

    def asks_at_least(self, other: Change) -> bool:
        """Whether the person would have to go as far as in another change of the same cell."""
        if self.after == other.after or self.after in other.others:
            return True
        if self.direction() == "change" or self.direction() != other.direction():
            return False
        return self.direction() == ("more" if self.after > other.after else "less")


@dataclass(frozen=True)
class AnswerChanges:
    """The changes of one answer: what the person would do, and what would follow.

    ``share`` says which share of the values that an anonymous answer stands for is accepted, if
    not all, ``narrow`` whether the decision is only just the desired one, and ``survival`` the
    share of models trained anew that accept it, if that is known.
    """

    actions: Sequence[Change]
    consequences: Sequence[Change] = ()
    share: float | None = None
    narrow: bool = False
    survival: float | None = None

    def asks_at_least(self, other: AnswerChanges) -> bool:
        """Whether the person would have to do all that another answer asks for, or more."""
        mine = {change.feature: change for change in self.actions}
        return all(
            theirs.feature in mine and mine[theirs.feature].asks_at_least(theirs)
            for theirs in other.actions
        )


def read_changes(
    final: Counterfactuals[pd.DataFrame], schema: Schema, following: Sequence[ComputedColumn]
) -> list[AnswerChanges]:
    """What changes in each final answer, in the order of the columns."""
    only_if_lost = {one.feature.name: one.is_free for one in following}
    found = [{row["feature"]: row for row in rows} for rows in ranges_by_answer(final)]
    listed: list[list[Change]] = [[] for _ in found]
    for feature in schema.features:
        name, is_number = feature.name, feature.kind == "numeric"
        before = final.factuals[name].iloc[final.owner].reset_index(drop=True)
        after = final.frame[name].reset_index(drop=True)
        places = np.flatnonzero(differ(before, after))
        cells = (cells_of(column.iloc[places]) for column in (before, after))
        for at, own, new in zip(places.tolist(), *cells, strict=True):
            follows = name in only_if_lost and (new is None or not only_if_lost[name])
            change = Change(name, own, new, is_number, follows, found[at].get(name, {}))
            listed[at].append(change)
    if final.anonymous is not None:
        pairs = zip(listed, cells_by_answer(final.anonymous), strict=True)
        listed = [[_widen(change, cells) for change in some] for some, cells in pairs]
    return [_divide(some, about) for some, about in zip(listed, _about(final), strict=True)]


def _about(final: Counterfactuals[pd.DataFrame]) -> list[dict[str, Any]]:
    """What is to be said of each answer beside its changes."""
    if final.anonymous is not None:
        shares = final.anonymous.measures["pureness_of_changes"].tolist()
        return [{"share": shown_share(share)} if share < 1 else {} for share in shares]
    words = final.measures.get("margin_word", pd.Series("", final.measures.index))
    measured = "survival" in final.measures
    shares = final.measures["survival"].tolist() if measured else [None] * len(words)
    return [
        {"narrow": word == "narrow", "survival": share}
        for word, share in zip(words, shares, strict=True)
    ]


def _divide(changes: Sequence[Change], about: Mapping[str, Any]) -> AnswerChanges:
    actions = [change for change in changes if not change.follows]
    consequences = [change for change in changes if change.follows]
    # If only such columns differ, they are what the person would have to change.
    pair = (actions, consequences) if actions else (consequences, [])
    return AnswerChanges(*pair, **about)


def _widen(change: Change, cells: Mapping[Any, Mapping[str, Any]]) -> Change:
    """The same change with the range or set of an anonymous answer."""
    cell = cells.get(change.feature)
    if cell is None or cell["kind"] == "value":
        return change
    if cell["kind"] == "any":
        return replace(change, vague=True)
    levels = cell["levels"]
    if levels is not None and (cell["kind"] == "levels" or len(levels) <= MAX_CLAUSE_LEVELS):
        others = [level for level in levels if level != change.before]
        if not others or len(others) > MAX_CLAUSE_LEVELS:
            return replace(change, vague=True)
        return replace(change, after=others[0], others=tuple(others[1:]))
    low, high, own = cell["low"], cell["high"], change.before
    inside = own is not None and (low is None or low <= own) and (high is None or own <= high)
    nearer = high if low is None or (own is not None and high is not None and high < own) else low
    return replace(change, after=nearer, ends=(low, high), vague=inside)


def without_needless(answers: Sequence[AnswerChanges]) -> list[AnswerChanges]:
    """A person's answers, without those that include all changes of another."""
    kept: list[AnswerChanges] = []
    for at, answer in enumerate(answers):
        others = [*kept, *(other for other in answers[at + 1 :] if not other.asks_at_least(answer))]
        if not any(answer.asks_at_least(other) for other in others):
            kept.append(answer)
    return kept


def shown_share(share: float) -> float:
    """A share for a text; one below 1 is never shown as all."""
    return min(share, ALMOST_ALL) if share < 1 else share


def cells_by_answer(answers: AnonymousAnswers[pd.DataFrame]) -> list[dict[Any, dict[str, Any]]]:
    """The cells of each anonymous answer, by column."""
    rows, n_columns = answers.cells.to_dict("records"), len(answers.quasi_identifiers)
    starts = range(0, len(rows), n_columns)
    listed: list[dict[Any, dict[str, Any]]] = [
        {row["feature"]: {str(key): value for key, value in row.items()} for row in some}
        for some in (rows[start : start + n_columns] for start in starts)
    ]
    return listed


def cells_of(column: pd.Series[Any]) -> list[Any]:
    """Cells of a column as plain objects, None if missing; floats of 32 bits keep their type."""
    cells = plain_cells(column)
    if column.dtype.kind == "f" and is_float32(column.dtype):
        # The digits of a float of 32 bits are fewer than those of the same number in 64.
        return [None if cell is None else np.float32(cell) for cell in cells]
    return cells
