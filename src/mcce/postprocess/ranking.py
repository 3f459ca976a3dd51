"""The order of candidates: by number of changes, then distance, then draw number.

Paper, section "Post-processing". Ranks the candidates of a block for each person, and lists the
best ones lazily.

Always true: the order is strict, so ties are reproducible; the predictor is not called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..candidates import Candidates
from ..distances import as_sum, is_plain_gower
from ..kernels import BoolArray, Int32Array, IntArray, Listing, rank
from .filters import RowFilter, RowRules

# Valid candidates to choose diverse answers from, for each counterfactual wanted.
N_POOLED_PER_ANSWER = 10
# Candidates that a filter checks at a time.
ROWS_PER_PIECE = 100_000
# Candidates listed per person at first.
N_LISTED = 16


@dataclass(frozen=True, eq=False)
class Ranking:
    """How candidates are chosen."""

    n_counterfactuals: int
    rank_by: Sequence[str]
    rules: RowRules
    tolerance: float = 0.0
    diversity: float | None = None

    @property
    def n_wanted(self) -> int:
        """Valid candidates of a person to look for: all that are returned, or a pool of them."""
        return self.n_counterfactuals * (1 if self.diversity is None else N_POOLED_PER_ANSWER)


class RankedCandidates:
    """Candidates in ranked order, listed lazily."""

    def __init__(self, candidates: Candidates, ranking: Ranking) -> None:
        self.candidates = candidates
        self.ranking = ranking
        self.n_wanted = min(ranking.n_wanted, candidates.shape[1])
        # By filter, in their order: names may be equal.
        self.passed = [_passed(candidates, check) for check in ranking.rules.filters]
        distance = ranking.rules.distance
        plain, added = is_plain_gower(distance), as_sum(distance)
        self._axes = None if plain or added is None else added.axes(candidates)
        self._distance = None if plain or self._axes is not None else distance(candidates)
        n_listed = max(N_LISTED, 4 * self.n_wanted)
        self.first = self.list_best(np.arange(candidates.positions.size), n_listed)

    def list_best(
        self, people: IntArray, n_best: int | None = None, *, only_allowed: bool = True
    ) -> Listing:
        """The best candidates of people, or all of them; if asked, excluded ones too."""
        allowed = self.candidates.distinct[self.candidates.group[people]]
        rules, n_draws = self.ranking.rules, self.candidates.shape[1]
        for kept in self.passed if only_allowed else []:
            allowed &= kept[people]
        return rank(
            self.candidates.comparison.take(people),
            allowed,
            rank_by=self.ranking.rank_by,
            n_best=n_draws if n_best is None else min(n_best, n_draws),
            tolerance=self.ranking.tolerance,
            max_sparsity=rules.max_sparsity if only_allowed else None,
            max_distance=rules.max_distance if only_allowed else None,
            distance=None if self._distance is None else self._distance[people],
            axes=None if self._axes is None else self._axes.take(people),
        )

    def plausible(self, people: IntArray, draw: Int32Array, valid: BoolArray) -> BoolArray:
        """Which of the valid candidates are plausible: all of them if that is not required."""
        check = self.ranking.rules.plausible
        if check is None:
            return valid
        person, plausible = people[np.nonzero(valid)[0]], np.zeros_like(valid)
        plausible[valid] = check.keeps(self.candidates.select(person, draw[valid]))
        return plausible


def _passed(candidates: Candidates, check: RowFilter) -> BoolArray:
    """Which candidates pass a filter, shape (n_people, n_draws); of equal ones only the first."""
    passed = np.zeros(candidates.shape, dtype=bool)
    person, draw = np.nonzero(candidates.distinct[candidates.group])
    for start in range(0, person.size, ROWS_PER_PIECE):
        piece = person[start : start + ROWS_PER_PIECE], draw[start : start + ROWS_PER_PIECE]
        passed[piece] = check.keeps(candidates.select(*piece))
    return passed
