"""The changes of final answers, cell by cell, and which of them are the reasons for a decision.

A change is an exact difference between the person's row and the final one. Anonymous answers have
ranges and sets in place of exact values. If such a range holds the person's own value, the change
can no longer be seen: it is vague.

Always true: no change of a widened column holds its exact value, unless its cell is that value.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..analysis.rounding import ShownNumber
from ..counterfactuals.anonymous import AnonymousAnswers
from ..tables.columns import differ, plain_cells
from ..tables.features import Feature, is_float32

# The most reasons that a letter gives.
MAX_REASONS = 4
# Levels that a clause lists; of more, it says only that the value would have been another.
MAX_CLAUSE_LEVELS = 4
# The largest share shown for values of which not all are accepted.
ALMOST_ALL = 0.99


@dataclass(frozen=True)
class ChangedCell:
    """A cell that differs between a person and an answer."""

    feature: Hashable
    before: Any
    after: Any
    is_number: bool = False
    shown: ShownNumber | None = None
    others: tuple[Any, ...] = ()
    ends: tuple[Any, Any] | None = None
    vague: bool = False

    @property
    def direction(self) -> str:
        """``"more"``, ``"less"``, or ``"change"`` where neither holds."""
        if not self.is_number or self.before is None or self.after is None:
            return "change"
        return "more" if self.after > self.before else "less"

    def asks_at_least(self, other: ChangedCell) -> bool:
        """Whether the person would have to go as far as in another change of the same cell."""
        if self.ends is not None or other.ends is not None:
            return self.ends == other.ends
        if self.after == other.after or self.after in other.others:
            return True
        if self.shown is None or other.shown is None or self.direction != other.direction:
            return False
        return self.direction == ("more" if self.shown.value > other.shown.value else "less")


@dataclass(frozen=True)
class AnswerChanges:
    """The changes of one answer: what the person would do, and what would follow.

    ``share`` says which share of the values that an anonymous answer stands for is accepted, if
    not all, and ``narrow`` whether the decision is only just the desired one.
    """

    actions: Sequence[ChangedCell]
    consequences: Sequence[ChangedCell] = ()
    share: float | None = None
    narrow: bool = False

    def asks_at_least(self, other: AnswerChanges) -> bool:
        """Whether the person would have to do all that another answer asks for, or more."""
        mine = {change.feature: change for change in self.actions}
        return all(
            theirs.feature in mine and mine[theirs.feature].asks_at_least(theirs)
            for theirs in other.actions
        )


def without_needless(answers: Sequence[AnswerChanges]) -> list[AnswerChanges]:
    """A person's answers, without those that include all changes of another."""
    kept: list[AnswerChanges] = []
    for at, answer in enumerate(answers):
        others = [*kept, *(other for other in answers[at + 1 :] if not other.asks_at_least(answer))]
        if not any(answer.asks_at_least(other) for other in others):
            kept.append(answer)
    return kept


@dataclass(frozen=True)
class ChangedColumn:
    """The changed cells of one column, by answer."""

    feature: Feature
    changes: Mapping[int, ChangedCell]

    @classmethod
    def read(
        cls,
        feature: Feature,
        before: pd.Series[Any],
        after: pd.Series[Any],
        shown: Mapping[int, ShownNumber],
        others: Mapping[int, Sequence[Any]],
    ) -> ChangedColumn:
        """Compare a column of people with that of their answers."""
        old, new = before.reset_index(drop=True), after.reset_index(drop=True)
        places = np.flatnonzero(differ(old, new))
        cells = zip(
            places.tolist(), cells_of(old.iloc[places]), cells_of(new.iloc[places]), strict=True
        )
        is_number = feature.kind == "numeric"
        changes = {
            at: ChangedCell(
                feature.name, own, new, is_number, shown.get(at), tuple(others.get(at, ()))
            )
            for at, own, new in cells
        }
        return cls(feature, changes)


def changes_of(
    columns: Sequence[ChangedColumn],
    consequences: Collection[Hashable],
    losses: Collection[Hashable],
    mentioned: Collection[Hashable],
    n_answers: int,
) -> list[AnswerChanges]:
    """The changes of each answer, in the order of the columns."""
    actions: list[list[ChangedCell]] = [[] for _ in range(n_answers)]
    follow: list[list[ChangedCell]] = [[] for _ in range(n_answers)]
    for column in columns:
        name = column.feature.name
        for answer, change in column.changes.items():
            follows = name in consequences or (name in losses and change.after is None)
            (follow if follows else actions)[answer].append(change)
    answers = []
    for do, then in zip(actions, follow, strict=True):
        if any(change.feature in mentioned for change in then):
            # Another value would have other consequences.
            do = [replace(change, others=(), shown=_nearest(change.shown)) for change in do]
        # If only such columns differ, they are what the person would have to change.
        answers.append(AnswerChanges(do, then) if do else AnswerChanges(then))
    return answers


def _nearest(shown: ShownNumber | None) -> ShownNumber | None:
    """How a number is shown, without the other values that would do."""
    return None if shown is None else ShownNumber(shown.value)


def principal_reasons(
    answers: Sequence[AnswerChanges], spreads: Mapping[Hashable, float]
) -> list[ChangedCell]:
    """The changes that say why a person was declined, the most important first.

    These are the features that differ in most of the person's answers; of equals, those that
    differ in a better answer, then those that differ most, then in the order of the columns.
    """
    found: dict[Hashable, list[tuple[int, ChangedCell]]] = {}
    for rank, answer in enumerate(answers):
        for change in answer.actions:
            found.setdefault(change.feature, []).append((rank, change))

    def importance(changes: list[tuple[int, ChangedCell]]) -> tuple[int, int, float]:
        rank, first = changes[0]
        return -len(changes), rank, -_size(first, spreads.get(first.feature, 0.0))

    ordered: Iterable[list[tuple[int, ChangedCell]]] = sorted(found.values(), key=importance)
    return [changes[0][1] for changes in ordered][:MAX_REASONS]


def _size(change: ChangedCell, spread: float) -> float:
    """How large a change is as a share of the training range; 1 for levels."""
    if change.before is None or change.after is None or not spread:
        return 1.0
    return abs(float(change.after) - float(change.before)) / spread


def widen_changes(
    columns: Sequence[ChangedColumn], answers: AnonymousAnswers[Any]
) -> list[ChangedColumn]:
    """The same changes with the ranges and sets of anonymous answers."""
    cells = cells_by_answer(answers)
    return [
        replace(column, changes={at: _widen(c, cells[at]) for at, c in column.changes.items()})
        for column in columns
    ]


def _widen(change: ChangedCell, cells: Mapping[Any, Mapping[str, Any]]) -> ChangedCell:
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
        return replace(change, after=others[0], others=tuple(others[1:]), shown=None)
    low, high = cell["low"], cell["high"]
    own = change.before
    inside = own is not None and (low is None or low <= own) and (high is None or own <= high)
    return replace(change, ends=(low, high), shown=None, vague=inside)


def with_shares(changes: Sequence[AnswerChanges], shares: Sequence[float]) -> list[AnswerChanges]:
    """The changes of answers, with the share of their values that is accepted if that is not 1."""
    pairs = zip(changes, shares, strict=True)
    return [replace(c, share=shown_share(s)) if s < 1 else c for c, s in pairs]


def shown_share(share: float) -> float:
    """A share for a text; one below 1 is never shown as all."""
    return min(share, ALMOST_ALL) if share < 1 else share


def cells_by_answer(answers: AnonymousAnswers[pd.DataFrame]) -> list[dict[Any, dict[str, Any]]]:
    """The cells of each answer, by column."""
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
