"""Diversity: several answers of a person that differ.

Beyond the paper, which returns the l best. Two rows ask for the same if they change the same
features, numbers and ordered levels in the same direction; what only follows from other changes
does not count. In the searches beyond the paper, an answer that makes all changes of a better one
is left out, unless one of these changes is at most half as large, and none is larger. In the
paper's search with ``diversity``, a candidate is redundant if it makes every change of a better
valid candidate, and more.

With ``diversity``, a person's first ``N_POOLED_PER_ANSWER * l`` rows of that kind form the pool.
The best of them is selected first; then, repeatedly, the one with the largest
``diversity * difference - (1 - diversity) * cost``, ties to the better-ranked. ``cost`` is the
distance to the person, ``difference`` the distance to the nearest one selected so far. Weights of
the Gower distance count in neither.

Always true: the first answer is the best candidate; a person's answers depend on no other person.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..candidates import CandidateRows, Candidates
from ..distances import Gower, is_gower, measure_rows
from ..kernels import BoolArray, Codes, FloatArray, IntArray, times_seen_before
from ..tables.schema import OWN
from .ranking import Ranking

# Infinite distances count as this, so that they can be weighed against each other.
MAX_FINITE_DISTANCE = np.finfo(np.float64).max
# What rows ask for of a feature, beside ``OWN`` for nothing: another level has no direction.
UP, DOWN, OTHER = OWN - 1, OWN - 2, OWN - 3
# A change that is at most this share of another answer's asks for less.
LESS = 0.5


class NonRedundant:
    """The valid candidates of each person in a block that no better one makes redundant.

    Candidates come as codes of shape (n_mutable, n_people, n_draws), best first.
    """

    def __init__(self, n_mutable: int, n_people: int, n_wanted: int) -> None:
        self._kept: Codes = np.full((n_mutable, n_people, n_wanted), OWN, dtype=np.int32)
        self._n_kept: IntArray = np.zeros(n_people, dtype=np.int64)

    def needed(self, people: IntArray, codes: Codes) -> BoolArray:
        """Which candidates no kept one makes redundant, shape (n_people, n_draws)."""
        needed = np.ones(codes.shape[1:], dtype=bool)
        n_kept = self._n_kept[people]
        for number in range(int(n_kept.max(initial=0))):
            row = np.flatnonzero(n_kept > number)
            needed[row] &= ~_include(codes[:, row], self._kept[:, people[row], number])
        return needed

    def keep(self, people: IntArray, codes: Codes, valid: BoolArray) -> BoolArray:
        """Keep the valid candidates that are not redundant, best first; returns which."""
        left, kept = valid.copy(), np.zeros_like(valid)
        while True:
            has_room = self._n_kept[people] < self._kept.shape[2]
            row = np.flatnonzero(left.any(axis=1) & has_room)
            if not row.size:
                return kept
            draw, person = left[row].argmax(axis=1), people[row]
            best = codes[:, row, draw]
            kept[row, draw] = True
            self._kept[:, person, self._n_kept[person]] = best
            self._n_kept[person] += 1
            left[row] &= ~_include(codes[:, row], best)


def _include(codes: Codes, better: Codes) -> BoolArray:
    """Which candidates make all changes of ``better``, one candidate of each person."""
    included = np.ones(codes.shape[1:], dtype=bool)
    for code, change in zip(codes, better[:, :, None], strict=True):
        included &= (code == change) | (change == OWN)
    return included


def pick_different(
    person: IntArray, directions: Codes, amount: FloatArray, n_wanted: int
) -> BoolArray:
    """Which rows are each person's first ones that ask for different things; best rows come first.

    ``directions`` have the shape (n_mutable, n_rows), and so has the ``amount`` of each change.
    """
    kept, left = np.zeros(person.size, dtype=bool), np.ones(person.size, dtype=bool)
    n_kept, first_of = np.zeros((2, int(person.max(initial=-1)) + 1), dtype=np.int64)
    while True:
        row = np.flatnonzero(left & (n_kept[person] < n_wanted))
        if not row.size:
            return kept
        first = row[times_seen_before(person[row]) == 0]
        kept[first], first_of[person[first]] = True, first
        n_kept[person[first]] += 1
        pairs = np.stack([row, first_of[person[row]]])
        left[row] = ~_are_alike(directions[:, pairs], amount[:, pairs])


def _are_alike(directions: Codes, amount: FloatArray) -> BoolArray:
    """Whether one row of each pair asks for all that the other one does, and no less of it.

    Both have the shape (n_mutable, 2, n_pairs).
    """
    same, nothing = directions[:, 0] == directions[:, 1], directions == OWN
    has_all, is_part = ((same | nothing[:, side]).all(axis=0) for side in (1, 0))
    longer, shorter = np.where(has_all, amount, amount[:, ::-1]).transpose(1, 0, 2)
    both = ~nothing.any(axis=1)
    asks_less = ~(both & (longer > shorter)).any(axis=0)
    asks_less &= (both & (shorter > 0) & (longer <= LESS * shorter)).any(axis=0)
    return (has_all & is_part) | ((has_all | is_part) & ~asks_less)


def diverse_ranks(
    rows: CandidateRows, rank_index: IntArray, gower: FloatArray, ranking: Ranking
) -> IntArray:
    """Rank of each pooled candidate among its person's answers, from 1; 0 for those not taken."""
    positions, row = np.unique(rows.owner, return_inverse=True)
    everyone = np.arange(positions.size)
    shape = positions.size, int(rank_index.max(initial=0)) + 1
    distance, diversity = ranking.rules.distance, ranking.diversity or 0.0
    if is_gower(distance):
        distance, to_person = Gower(), gower
    else:
        to_person = measure_rows(distance, rows)
    number, free = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    number[row, rank_index], free[row, rank_index] = np.arange(row.size), True
    cost = np.minimum(to_person, MAX_FINITE_DISTANCE)[number] if row.size else np.zeros(shape)
    codes, tables = _codes_of_all_cells(rows, positions, row)
    pooled, codes = rows.factuals.schema.encode(rows.frame), codes[:, number]

    rank, nearest = np.zeros(shape, dtype=np.int64), np.full(shape, MAX_FINITE_DISTANCE)
    taken = np.zeros(positions.size, dtype=np.int64)
    for answer in range(1, ranking.n_counterfactuals + 1):
        left = np.flatnonzero(free.any(axis=1))
        if not left.size:
            break
        rank[left, taken[left]], free[left, taken[left]] = answer, False
        # As if the one taken last were the person's own row.
        owner, own_codes = number[everyone, taken], codes[:, everyone, taken]
        to_taken = distance(Candidates.of(pooled, owner, codes, own_codes, tables))
        nearest = np.minimum(nearest, np.minimum(to_taken, MAX_FINITE_DISTANCE))
        value = diversity * nearest - (1.0 - diversity) * cost
        taken = np.where(free, value, -np.inf).argmax(axis=1)
    return rank[row, rank_index]


def _codes_of_all_cells(
    rows: CandidateRows, positions: IntArray, row: IntArray
) -> tuple[Codes, list[pd.Series]]:
    """Codes of candidates in tables to which the people's own cells are added."""
    sizes = np.array([len(table) for table in rows.tables])
    codes = np.where(rows.codes == OWN, sizes[:, None] + row, rows.codes).astype(np.int32)
    of_features = zip(rows.tables, rows.factuals.schema.mutable.tolist(), strict=True)
    return codes, [
        pd.concat([table, rows.factuals.own(column, positions)], ignore_index=True)
        for table, column in of_features
    ]
