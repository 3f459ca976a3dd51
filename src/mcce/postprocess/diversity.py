"""Diversity: several answers of a person that differ.

Beyond the paper, which returns the l best. A candidate is redundant if it makes every change of a
better valid candidate, and more. A person's first ``N_POOLED_PER_ANSWER * l`` valid candidates that
are not redundant form the pool. The best of them is selected first; then, repeatedly, the one with
the largest ``diversity * difference - (1 - diversity) * cost``, ties to the better-ranked. ``cost``
is the distance to the person, ``difference`` the distance to the nearest one selected so far.
Weights of the Gower distance count in neither.

Always true: the first answer is the best candidate; a person's answers depend on no other person.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..candidates import Candidates, pair_rows
from ..distances import Gower, axes_of, is_gower
from ..kernels import (
    BoolArray,
    Codes,
    Comparison,
    DistanceAxes,
    FloatArray,
    IntArray,
    Total,
)
from ..protocols import Distance
from ..tables.schema import EncodedRows
from .ranking import Ranking

# Infinite distances count as this, so that they can be weighed against each other.
MAX_FINITE_DISTANCE = np.finfo(np.float64).max


class NonRedundant:
    """The valid candidates of each person in a block that no better one makes redundant."""

    def __init__(self, comparison: Comparison, n_wanted: int) -> None:
        n_people = comparison.group.size
        self.comparison = comparison
        self._draw: Codes = np.zeros((n_people, n_wanted), dtype=np.int32)
        self._n_kept: IntArray = np.zeros(n_people, dtype=np.int64)

    def needed(self, person: IntArray, draw: Codes) -> BoolArray:
        """Which candidates no kept one makes redundant, shape (n_people, n_draws)."""
        needed = np.ones(draw.shape, dtype=bool)
        for at in range(int(self._n_kept[person].max(initial=0))):
            some = np.flatnonzero(self._n_kept[person] > at)
            better = self._draw[person[some], at]
            needed[some] &= ~self._include(person[some], draw[some], better)
        return needed

    def keep(self, person: IntArray, draw: Codes, valid: BoolArray) -> BoolArray:
        """Keep the valid candidates that are not redundant, best first; returns which."""
        left, kept = valid.copy(), np.zeros_like(valid)
        while True:
            room = self._n_kept[person] < self._draw.shape[1]
            some = np.flatnonzero(left.any(axis=1) & room)
            if not some.size:
                return kept
            at, who = left[some].argmax(axis=1), person[some]
            best = draw[some, at]
            kept[some, at] = True
            self._draw[who, self._n_kept[who]] = best
            self._n_kept[who] += 1
            left[some] &= ~self._include(who, draw[some], best)

    def _include(self, person: IntArray, draw: Codes, better: Codes) -> BoolArray:
        """Candidates that make all changes of ``better``, one candidate of each person."""
        compared = self.comparison
        group = compared.group[person]
        same = np.ones(draw.shape, dtype=bool)
        for codes, own in zip(compared.codes, compared.own_codes, strict=True):
            change = codes[group, better]
            unchanged = change == own[person]
            same &= (codes[group[:, None], draw] == change[:, None]) | unchanged[:, None]
        return same


def diverse_ranks(
    candidates: Candidates,
    person: IntArray,
    draw: Codes,
    rank_index: IntArray,
    gower: FloatArray,
    ranking: Ranking,
) -> IntArray:
    """Rank of each pooled candidate among its person's answers, from 1; 0 for those not taken."""
    people, row = np.unique(person, return_inverse=True)
    shape = people.size, int(rank_index.max(initial=0)) + 1
    draws, cost, free = np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape, dtype=bool)
    draws[row, rank_index], cost[row, rank_index], free[row, rank_index] = draw, gower, True
    distance, diversity = ranking.rules.distance, ranking.diversity or 0.0
    between: AxesBetween | DistanceBetween
    axes = axes_of(Gower() if is_gower(distance) else distance, candidates)
    if axes is not None:
        between = AxesBetween(axes, candidates.comparison, people, draws)
    else:
        between = DistanceBetween(distance, candidates, people, draws)
    cost = np.minimum(cost if is_gower(distance) else between.to_person(), MAX_FINITE_DISTANCE)

    rank, nearest = np.zeros(shape, dtype=np.int64), np.full(shape, MAX_FINITE_DISTANCE)
    taken = np.zeros(people.size, dtype=np.int64)
    for number in range(1, ranking.n_counterfactuals + 1):
        some = np.flatnonzero(free.any(axis=1))
        if not some.size:
            break
        rank[some, taken[some]], free[some, taken[some]] = number, False
        nearest = np.minimum(nearest, np.minimum(between.to_taken(taken), MAX_FINITE_DISTANCE))
        value = diversity * nearest - (1.0 - diversity) * cost
        taken = np.where(free, value, -np.inf).argmax(axis=1)
    return rank[row, rank_index]


class AxesBetween:
    """Distances that come with mcce, between the candidates of each person's pool."""

    def __init__(
        self, axes: DistanceAxes, comparison: Comparison, people: IntArray, draws: Codes
    ) -> None:
        self.axes = axes.of(people)
        self.codes = comparison.codes[:, comparison.group[people][:, None], draws]
        self.own_codes = comparison.own_codes[:, people, None]
        self.own = [None if own is None else own[:, None] for own in self.axes.own_coordinates]
        # The person's own coordinates where a cell has no code.
        self.coordinates = [
            None if table is None or own is None else np.where(c[..., None] < 0, own, table[c])
            for table, own, c in zip(self.axes.coordinates, self.own, self.codes, strict=True)
        ]

    def to_person(self) -> FloatArray:
        """From each candidate to its person."""
        return self._distances(self.own_codes, self.own, self.axes.n_present[:, None])

    def to_taken(self, taken: IntArray) -> FloatArray:
        """From each candidate to the one at ``taken``, one of each person."""
        at = np.arange(taken.size)[:, None], taken[:, None]
        there = [None if every is None else every[at] for every in self.coordinates]
        present = self.axes.n_present[:, None].copy()
        if self.axes.how.ignores_missing:
            for old, new in zip(self.own, there, strict=True):
                if old is not None and new is not None:
                    present += np.isnan(old[..., 0]).astype(float) - np.isnan(new[..., 0])
        return self._distances(self.codes[:, *at], there, present)

    def _distances(
        self, codes: Codes, others: Sequence[FloatArray | None], n_present: FloatArray
    ) -> FloatArray:
        """From each candidate to another row of its person."""
        total = Total(self.axes.how, self.codes.shape[1:])
        weights = zip(self.axes.spreads, self.axes.weights, strict=True)
        for at, (spread, weight) in enumerate(weights):
            total.add(self.codes[at] != codes[at], self.coordinates[at], others[at], spread, weight)
        return total.distance(n_present)


class DistanceBetween:
    """Distances of any other kind between the candidates of each person's pool."""

    def __init__(
        self, distance: Distance, candidates: Candidates, people: IntArray, draws: Codes
    ) -> None:
        self.distance, self.candidates = distance, candidates
        self.people, self.draws = people, draws
        owner = np.repeat(people, draws.shape[1])
        self.frame = candidates.select(owner, draws.ravel()).frame

    def to_person(self) -> FloatArray:
        """From each candidate to its person."""
        positions = self.candidates.positions[self.people]
        return self._distances(self.candidates.rows, positions)

    def to_taken(self, taken: IntArray) -> FloatArray:
        """From each candidate to the one at ``taken``, one of each person."""
        at = np.arange(taken.size)
        chosen = self.candidates.select(self.people, self.draws[at, taken])
        return self._distances(self.candidates.rows.schema.encode(chosen.frame), at)

    def _distances(self, rows: EncodedRows, positions: IntArray) -> FloatArray:
        if not positions.size:
            return np.zeros(self.draws.shape)
        return self.distance(pair_rows(rows, positions, self.frame, self.draws.shape[1]))
