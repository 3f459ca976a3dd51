"""The changes of rounded answers, cell by cell, and which of them are the reasons for a decision.

Always true: a change is an exact difference between the person's row and the rounded one.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..tables.columns import differ, is_missing, plain
from ..tables.features import Feature, is_single
from .clauses import Change
from .ladder import Rung
from .text import AnswerChanges

# The most reasons that a letter gives.
MAX_REASONS = 4


@dataclass(frozen=True)
class Changed:
    """The changed cells of one column, by answer."""

    feature: Feature
    changes: Mapping[int, Change]

    @classmethod
    def read(
        cls,
        feature: Feature,
        before: pd.Series[Any],
        after: pd.Series[Any],
        rungs: Mapping[int, Rung],
        others: Mapping[int, Sequence[Any]],
    ) -> Changed:
        """Compare a column of people with that of their answers."""
        old, new = before.reset_index(drop=True), after.reset_index(drop=True)
        places = np.flatnonzero(differ(old, new))
        cells = zip(places.tolist(), _cells(old, places), _cells(new, places), strict=True)
        is_number = feature.kind == "numeric"
        changes = {
            at: Change(feature.name, own, new, is_number, rungs.get(at), tuple(others.get(at, ())))
            for at, own, new in cells
        }
        return cls(feature, changes)


def changes_of(
    columns: Sequence[Changed],
    consequences: Collection[Hashable],
    told: Collection[Hashable],
    n_answers: int,
) -> list[AnswerChanges]:
    """The changes of each answer, in the order of the columns."""
    actions: list[list[Change]] = [[] for _ in range(n_answers)]
    follow: list[list[Change]] = [[] for _ in range(n_answers)]
    for column in columns:
        of = follow if column.feature.name in consequences else actions
        for answer, change in column.changes.items():
            of[answer].append(change)
    answers = []
    for do, then in zip(actions, follow, strict=True):
        if any(change.feature in told for change in then):
            # Another value would have other consequences.
            do = [replace(change, others=(), rung=_nearest(change.rung)) for change in do]
        # Where nothing but such a column differs, it is what the person would have to change.
        answers.append(AnswerChanges(do, then) if do else AnswerChanges(then))
    return answers


def _nearest(rung: Rung | None) -> Rung | None:
    """What is said of a number, without the other values that would do."""
    return None if rung is None else Rung(rung.value)


def principal_reasons(
    answers: Sequence[AnswerChanges], spreads: Mapping[Hashable, float]
) -> list[Change]:
    """The changes that say why a person was declined, the most important first.

    These are the features that differ in most of the person's answers; of equals, those that
    differ in a better answer, then those that differ most, then in the order of the columns.
    """
    found: dict[Hashable, list[tuple[int, Change]]] = {}
    for rank, answer in enumerate(answers):
        for change in answer.actions:
            found.setdefault(change.feature, []).append((rank, change))

    def importance(changes: list[tuple[int, Change]]) -> tuple[int, int, float]:
        rank, first = changes[0]
        return -len(changes), rank, -_size(first, spreads.get(first.feature, 0.0))

    ordered: Iterable[list[tuple[int, Change]]] = sorted(found.values(), key=importance)
    return [changes[0][1] for changes in ordered][:MAX_REASONS]


def _size(change: Change, spread: float) -> float:
    """How large a change is as a share of the training range; 1 for levels."""
    if change.before is None or change.after is None or not spread:
        return 1.0
    return abs(float(change.after) - float(change.before)) / spread


def _cells(column: pd.Series[Any], places: np.ndarray) -> list[Any]:
    """Some cells as plain objects, None if missing."""
    taken = column.iloc[places]
    cells = [
        None if none else cell for cell, none in zip(plain(taken), is_missing(taken), strict=True)
    ]
    if column.dtype.kind == "f" and is_single(column.dtype):
        # The digits of a float of 32 bits are fewer than those of the same number in 64.
        return [None if cell is None else np.float32(cell) for cell in cells]
    return cells
