"""Anonymous answers in words: ranges and sets in place of exact values.

Takes the table of cells of a result. A change whose range holds the person's own value can no
longer be told: letters then say no more than that the value would have been another one.

Always true: no text holds the exact value of a widened column, unless its cell is that value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ..counterfactuals import AnonymousAnswers
from .cells import CellWords
from .changes import Changed
from .clauses import Change
from .text import AnswerChanges

# Levels that a clause lists; of more, it says only that the value would have been another.
MOST_LEVELS = 4
# The largest share that is said of values of which not all are accepted.
ALMOST_ALL = 0.99


def cells_by_answer(answers: AnonymousAnswers[pd.DataFrame]) -> list[dict[Any, dict[str, Any]]]:
    """The cells of each answer, by column."""
    rows, n_columns = answers.cells.to_dict("records"), len(answers.quasi_identifiers)
    starts = range(0, len(rows), n_columns)
    listed: list[dict[Any, dict[str, Any]]] = [
        {row["feature"]: {str(key): value for key, value in row.items()} for row in some}
        for some in (rows[start : start + n_columns] for start in starts)
    ]
    return listed


def widen_changes(columns: Sequence[Changed], answers: AnonymousAnswers[Any]) -> list[Changed]:
    """The same changes with the ranges and sets of anonymous answers."""
    cells = cells_by_answer(answers)
    return [
        replace(column, changes={at: _widen(c, cells[at]) for at, c in column.changes.items()})
        for column in columns
    ]


def with_shares(changes: Sequence[AnswerChanges], shares: Sequence[float]) -> list[AnswerChanges]:
    """Answers with the share of their values that is accepted, where that is not all."""
    pairs = zip(changes, shares, strict=True)
    return [replace(c, share=shown_share(s)) if s < 1 else c for c, s in pairs]


def shown_share(share: float) -> float:
    """A share that is not rounded to all."""
    return min(share, ALMOST_ALL) if share < 1 else share


def say_cells(words: CellWords, cells: Mapping[Any, Mapping[str, Any]]) -> str:
    """The cells of an answer in a row, such as "Age 20 to 30; Housing any"."""
    return "; ".join(f"{words.name(name)} {_say(words, name, c)}" for name, c in cells.items())


def _widen(change: Change, cells: Mapping[Any, Mapping[str, Any]]) -> Change:
    cell = cells.get(change.feature)
    if cell is None or cell["kind"] == "value":
        return change
    if cell["kind"] == "any":
        return replace(change, vague=True)
    levels = cell["levels"]
    if levels is not None and (cell["kind"] == "levels" or len(levels) <= MOST_LEVELS):
        others = [level for level in levels if level != change.before]
        if not others or len(others) > MOST_LEVELS:
            return replace(change, vague=True)
        return replace(change, after=others[0], others=tuple(others[1:]), rung=None)
    low, high = cell["low"], cell["high"]
    own = change.before
    inside = own is not None and (low is None or low <= own) and (high is None or own <= high)
    return replace(change, ends=(low, high), rung=None, vague=inside)


def _say(words: CellWords, name: Any, cell: Mapping[str, Any]) -> str:
    language = words.language
    if cell["kind"] == "any":
        return language.messages["values.any"]
    if cell["kind"] == "range":
        ends = [end for end in (cell["low"], cell["high"]) if end is not None]
        texts = words.values(name, ends)
        if len(texts) == 2:
            return language.say("values.between", low=texts[0], high=texts[1])
        key = "values.at_least" if cell["high"] is None else "values.at_most"
        return language.say(key, value=texts[0])
    levels = [cell["low"]] if cell["levels"] is None else list(cell["levels"])
    levels = [level for level in levels if level is not None]
    levels += [None] if cell["missing"] else []
    return language.listed(words.values(name, levels), "or")
