"""Answers without a needless change.

Beyond the paper. What was selected is tried again with some of its changes undone: any of them, or
single ones and pairs of many. A row that stays good without some of its changes is needless: the
better one takes part in the selection instead, until nothing selected is needless. What follows
from changes is undone with them, and what changes only together is undone together.

Always true: the first answer of a person is the one they would get alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from ..kernels import BoolArray, IntArray
from ..tables.schema import OWN
from .greedy import GreedyWalk
from .selection import SelectedRows, SelectionSettings, returnable, select_rows

# Of up to so many changes any may be undone; of more, so many at once.
ALL_SUBSETS_OF, MAX_UNDONE = 5, 2


def select_first(
    settings: SelectionSettings,
    walk: GreedyWalk,
    person: IntArray | None = None,
) -> SelectedRows:
    """The best row of everybody, without a needless change."""
    one = replace(settings.ranking, n_counterfactuals=1, diversity=None)
    nothing = np.empty(0, dtype=np.int64)
    return _select(replace(settings, ranking=one), walk, nothing, person)


def select_more(
    settings: SelectionSettings,
    walk: GreedyWalk,
    first: SelectedRows,
    person: IntArray | None = None,
) -> SelectedRows:
    """The best rows of everybody, those given first; none has a needless change."""
    if settings.ranking.n_counterfactuals == 1:
        return first
    return _select(settings, walk, first.numbers, person)


def _select(
    settings: SelectionSettings,
    walk: GreedyWalk,
    first: IntArray,
    person: IntArray | None,
) -> SelectedRows:
    """Select and undo, again for those whose rows turn out to be needless."""
    visited, parts = walk.visited, list[SelectedRows]()
    may_return = returnable(settings.ranking, walk, person)
    needless = np.empty(0, dtype=np.int64)
    while True:
        selected = select_rows(settings, walk, may_return, first)
        undone = _undo(walk, selected.numbers[~np.isin(selected.numbers, first)])
        if undone[0].size:
            may_return = returnable(settings.ranking, walk, person)
        lesser = _replaced(undone, may_return)
        needless = np.concatenate([needless, lesser])
        whose, again = visited.person, visited.person[lesser]
        parts.append(selected.take(~np.isin(whose[selected.numbers], again)))
        if not lesser.size:
            return SelectedRows.concat(parts)
        theirs = np.isin(whose[may_return], again)
        may_return = may_return[theirs & ~np.isin(may_return, needless)]


def _undo(walk: GreedyWalk, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """The same, as far as the rows are good."""
    visited = walk.visited
    parent, child = undone(walk, numbers)
    visited.evaluate(child)
    good: BoolArray = visited.good(child) & (child != parent)
    visited.reach(child[good])
    return parent[good], child[good]


def undone(walk: GreedyWalk, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Rows without some of the changes of others, which are placed among the visited ones."""
    visited, units = walk.visited, walk.settings.units
    place, undone = _subsets((visited.cells[numbers, 1:] != OWN) @ units.T)
    parent = numbers[place]
    codes = np.where(undone @ units, OWN, visited.cells[parent, 1:]).T
    child = visited.place(visited.person[parent], visited.draw[parent], codes)
    return parent, child


def _subsets(changed: BoolArray) -> tuple[IntArray, BoolArray]:
    """Changes to undo at once, smallest sets first: place of the row, and which of its units."""
    places, undone = [np.empty(0, dtype=np.int64)], [np.empty((0, changed.shape[1]), dtype=bool)]
    n_changed = changed.sum(axis=1)
    for n in np.unique(n_changed[n_changed > 1]).tolist():
        most = n if n <= ALL_SUBSETS_OF else MAX_UNDONE + 1
        taken = _all_subsets(n, most)
        here = np.flatnonzero(n_changed == n)
        found = np.zeros((here.size, len(taken), changed.shape[1]), dtype=bool)
        row, unit = np.nonzero(changed[here])
        found[row, :, unit] = np.tile(taken.T, (here.size, 1))
        places.append(np.repeat(here, len(taken)))
        undone.append(found.reshape(-1, changed.shape[1]))
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    return place[order], np.concatenate(undone)[order]


@lru_cache
def _all_subsets(n: int, most: int) -> BoolArray:
    """The sets of fewer than ``most`` out of n, smallest first, shape (n_sets, n)."""
    sets = [some for size in range(1, most) for some in combinations(range(n), size)]
    return np.array([[at in some for at in range(n)] for some in sets])


def _replaced(undone: tuple[IntArray, IntArray], may_return: IntArray) -> IntArray:
    """Rows that one with fewer of their changes can replace."""
    parent, child = undone
    return np.unique(parent[np.isin(child, may_return)])
