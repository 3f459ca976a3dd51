"""Random constraints for a table, each with a check of its own that uses no code of mcce.

A check takes the people and their answers, row by row, and says which answers are allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cell_bits import exact_numbers, missing, values
from mcce import constraints as c
from random_predictors import as_pandas

Chance = np.random.Generator
# How far rounded arithmetic may be from the exact one: a few units in the last place.
SLACK = 1e-12


@dataclass(frozen=True)
class Rule:
    """A constraint, and which answers keep to it.

    ``holds(before, after, people)`` gets the people of the answers, the answers, and the position
    of each person among all people.
    """

    constraint: Any
    holds: Callable[[pd.DataFrame, pd.DataFrame, np.ndarray], np.ndarray]
    # Whom it is for, if it has to be written anew for every call.
    whom: np.ndarray | None = None

    def for_people(self, people: np.ndarray) -> Any:
        """The constraint for a call with the people at these positions."""
        return c.frozen(*self.constraint.features, where=self.whom[people])  # type: ignore[index]


def random_rules(
    chance: Chance,
    train: pd.DataFrame,
    people: pd.DataFrame,
    mutable: list[int],
    numeric: list[bool],
) -> list[Rule]:
    """Up to three constraints on a table."""
    rules = []
    for _ in range(int(chance.choice([0, 0, 1, 2, 3]))):
        at = mutable[int(chance.integers(len(mutable)))]
        if chance.random() < 0.35:
            makers = [_frozen, _max_changes, _together, _relation]
            rule = makers[int(chance.integers(4))](chance, train, people, mutable, at)
        else:
            makers = [_direction, _between, _change, _step] if numeric[at] else [_levels, _moves]
            rule = makers[int(chance.integers(len(makers)))](chance, train, at)
        if rule is not None:
            rules.append(rule)
    # Two constraints of one kind on one feature are refused.
    return list({rule.constraint.name: rule for rule in rules}.values())


def changed(before: pd.DataFrame, after: pd.DataFrame, at: int) -> np.ndarray:
    return values(before.iloc[:, at]) != values(after.iloc[:, at])


def _by_number(train: pd.DataFrame, at: int, allows: Callable[[Any, Any], bool]) -> Any:
    """A check of changed cells by their numbers; ``allows`` gets None for missing."""

    def holds(before: pd.DataFrame, after: pd.DataFrame, people: np.ndarray) -> np.ndarray:
        pairs = zip(
            exact_numbers(before.iloc[:, at]), exact_numbers(after.iloc[:, at]), strict=True
        )
        fine = np.array([allows(old, new) for old, new in pairs], dtype=bool)
        return fine | ~changed(before, after, at)

    return holds


def _direction(chance: Chance, train: pd.DataFrame, at: int) -> Rule:
    name, up, strict = [
        (c.only_up, True, True),
        (c.only_down, False, True),
        (c.not_down, True, False),
        (c.not_up, False, False),
    ][int(chance.integers(4))]

    def allows(old: Any, new: Any) -> bool:
        if old is None or new is None:
            return not strict
        return new >= old if up else new <= old

    return Rule(name(train.columns[at]), _by_number(train, at, allows))


def _between(chance: Chance, train: pd.DataFrame, at: int) -> Rule | None:
    column = train.iloc[:, at]
    known = column[~missing(column)]
    if known.empty:
        return None
    ends = known.iloc[chance.integers(0, len(known), 2)]
    (low, high) = sorted(zip(exact_numbers(ends), ends.astype(object), strict=True))
    use = int(chance.integers(3))
    least, most = (None if use == 1 else low), (None if use == 2 else high)

    def allows(old: Any, new: Any) -> bool:
        if new is None:
            return False
        return (least is None or new >= least[0]) and (most is None or new <= most[0])

    made = c.between(
        train.columns[at],
        None if least is None else least[1],
        None if most is None else most[1],
    )
    return Rule(made, _by_number(train, at, allows))


def _amount(chance: Chance, train: pd.DataFrame, at: int) -> tuple[Any, Any] | None:
    """A difference of two training values, as users write it and as a number."""
    column = train.iloc[:, at]
    known = column[~missing(column)]
    if known.empty:
        return None
    first, second = exact_numbers(known.iloc[chance.integers(0, len(known), 2)])
    size = abs(float(first) - float(second))
    if column.dtype.kind in "mM":
        return pd.Timedelta(int(size), "ns"), float(int(size))
    return size, size


def _change(chance: Chance, train: pd.DataFrame, at: int) -> Rule | None:
    amount = _amount(chance, train, at)
    if amount is None:
        return None
    name, is_time = train.columns[at], train.iloc[:, at].dtype.kind in "mM"
    percent = not is_time and chance.random() < 0.3
    written, size = ("25 %", 0.25) if percent else amount
    rises = bool(chance.random() < 0.5)
    falls = -written if not percent else "-25 %"

    def allows(old: Any, new: Any) -> bool:
        if old is None or new is None:
            return False
        limit = abs(float(old)) * size if percent else size
        slack = SLACK * (abs(float(old)) + abs(float(new)) + limit)
        gap = new - old
        return gap <= limit + slack if rises else gap >= -limit - slack

    made = c.change(name, at_most=written) if rises else c.change(name, at_least=falls)
    return Rule(made, _by_number(train, at, allows))


def _step(chance: Chance, train: pd.DataFrame, at: int) -> Rule | None:
    amount = _amount(chance, train, at)
    if amount is None or not amount[1] > 0:
        return None
    written, size = amount

    def allows(old: Any, new: Any) -> bool:
        if old is None or new is None:
            return True
        return abs(new - old) >= size - SLACK * (abs(float(old)) + abs(float(new)) + size)

    return Rule(c.step(train.columns[at], written), _by_number(train, at, allows))


def _known_levels(train: pd.DataFrame, at: int) -> dict[int, Any]:
    """The levels of a training column by their value; missing is None."""
    column = train.iloc[:, at]
    cells = [
        None if gone else cell
        for gone, cell in zip(missing(column), column.astype(object), strict=True)
    ]
    return dict(zip(values(column).tolist(), cells, strict=True))


def _levels(chance: Chance, train: pd.DataFrame, at: int) -> Rule:
    known = _known_levels(train, at)
    allowed = [value for value in known if chance.random() < 0.6] or list(known)[:1]

    def holds(before: pd.DataFrame, after: pd.DataFrame, people: np.ndarray) -> np.ndarray:
        return np.isin(values(after.iloc[:, at]), allowed) | ~changed(before, after, at)

    return Rule(c.levels(train.columns[at], [known[value] for value in allowed]), holds)


def _moves(chance: Chance, train: pd.DataFrame, at: int) -> Rule:
    known = _known_levels(train, at)
    moves = {
        old: [new for new in known if chance.random() < 0.5]
        for old in known
        if chance.random() < 0.8
    }
    pairs = {(old, new) for old, after in moves.items() for new in after}

    def holds(before: pd.DataFrame, after: pd.DataFrame, people: np.ndarray) -> np.ndarray:
        old, new = values(before.iloc[:, at]).tolist(), values(after.iloc[:, at]).tolist()
        fine = [pair in pairs for pair in zip(old, new, strict=True)]
        return np.array(fine, dtype=bool) | ~changed(before, after, at)

    written = {known[old]: [known[new] for new in after] for old, after in moves.items()}
    return Rule(c.transitions(train.columns[at], written), holds)


def _frozen(
    chance: Chance, train: pd.DataFrame, people: pd.DataFrame, mutable: list[int], at: int
) -> Rule:
    whom = chance.random(len(people)) < 0.5 if chance.random() < 0.6 else None

    def holds(before: pd.DataFrame, after: pd.DataFrame, owner: np.ndarray) -> np.ndarray:
        bound = True if whom is None else whom[owner]
        return ~(changed(before, after, at) & bound)

    return Rule(c.frozen(train.columns[at]), holds, whom)


def _max_changes(
    chance: Chance, train: pd.DataFrame, people: pd.DataFrame, mutable: list[int], at: int
) -> Rule:
    some = mutable if chance.random() < 0.5 else [at, mutable[0]]
    most = int(chance.integers(1, 3))

    def holds(before: pd.DataFrame, after: pd.DataFrame, owner: np.ndarray) -> np.ndarray:
        return np.sum([changed(before, after, place) for place in set(some)], axis=0) <= most

    named = [] if some is mutable else [train.columns[place] for place in some]
    return Rule(c.max_changes(most, named), holds)


def _together(
    chance: Chance, train: pd.DataFrame, people: pd.DataFrame, mutable: list[int], at: int
) -> Rule | None:
    other = mutable[int(chance.integers(len(mutable)))]
    if other == at:
        return None

    def holds(before: pd.DataFrame, after: pd.DataFrame, owner: np.ndarray) -> np.ndarray:
        return changed(before, after, at) == changed(before, after, other)

    return Rule(c.together(train.columns[at], train.columns[other]), holds)


def _relation(
    chance: Chance, train: pd.DataFrame, people: pd.DataFrame, mutable: list[int], at: int
) -> Rule | None:
    """Not missing, or not below a number: as a condition or as a function."""
    name, column = train.columns[at], train.iloc[:, at]
    least = None
    if column.dtype.kind in "iuf" and not missing(column).all():
        first = exact_numbers(column[~missing(column)].iloc[:1])[0]
        # Conditions compute in floating point.
        least = first if abs(first) <= 2**53 else None

    def numbers_hold(cells: pd.Series) -> np.ndarray:
        known = ~missing(cells)
        if least is None:
            return known
        fine = [x is not None and x >= least for x in exact_numbers(cells)]
        return known & np.array(fine, dtype=bool)

    def holds(before: pd.DataFrame, after: pd.DataFrame, owner: np.ndarray) -> np.ndarray:
        return numbers_hold(after.iloc[:, at])

    if chance.random() < 0.4 or not isinstance(name, str) or "`" in name or not name.strip():
        return Rule(
            c.relation("known", lambda rows: numbers_hold(as_pandas(rows).iloc[:, at])), holds
        )
    text = f"not missing(`{name}`)" if least is None else f"`{name}` >= {least!r}"
    return Rule(c.relation("known", text), holds)
