"""Lazy validation: the predictor scores only as many candidates as it takes.

Paper, section "Post-processing". Takes a block of ranked candidates and calls the predictor on the
best few of all people together, in growing batches, until everybody has enough valid ones.

Always true: the answers are those of scoring every candidate; the predictor scores a candidate at
most once; nothing here draws random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..candidates import CandidateRows, Candidates, Lookup
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..predictors.decision import Decision, ScoredRows
from .answers import Answers
from .diversity import Pool, diverse_ranks
from .ranking import RankedCandidates
from .remembered import RememberedScores, score_rows

if TYPE_CHECKING:
    from ..surrogate import Surrogate

ROWS_PER_CALL = 100_000
# How many times as many candidates are listed for people who need more.
LIST_MORE = 8
# Size of a batch, as a share of all that were scored before.
GROWTH = 5 / 6


@dataclass(frozen=True, eq=False)
class CachedScores:
    """Scores of single candidates, by group (as numbered for all factuals) and draw."""

    group: IntArray
    draw: IntArray
    score: FloatArray
    valid: BoolArray


class PredictionCache:
    """The predictor's scores of the candidates of a block; each is scored at most once.

    Scores of candidates that are not ``known`` are undefined.
    """

    def __init__(
        self,
        candidates: Candidates,
        decision: Decision,
        groups: IntArray,
        earlier: Sequence[CachedScores] = (),
        remembered: RememberedScores | None = None,
        surrogate: Surrogate | None = None,
    ) -> None:
        shape = candidates.distinct.shape
        self.candidates = candidates
        self.decision = decision
        self.groups = groups
        self.remembered = remembered
        self.surrogate = surrogate
        self.added: list[CachedScores] = []
        self.known: BoolArray = np.zeros(shape, dtype=bool)
        self.valid: BoolArray = np.zeros(shape, dtype=bool)
        self.score: FloatArray = np.zeros(shape)
        self.n_evaluated = 0
        self._lookup: Lookup | None = None

        for cached in earlier:
            place = np.minimum(np.searchsorted(groups, cached.group), groups.size - 1)
            # A search may begin again with fewer draws, by laxer rules.
            ours = np.flatnonzero((groups[place] == cached.group) & (cached.draw < shape[1]))
            self._store(place[ours], cached.draw[ours], cached.score[ours], cached.valid[ours])

    def validate(self, person: IntArray, draw: IntArray | Codes) -> BoolArray:
        """Whether each candidate, by person and draw in this block, is valid."""
        group = self.candidates.group[person]
        new = np.flatnonzero(~self.known[group, draw])
        cell = group[new] * self.known.shape[1] + draw[new]
        new = new[np.unique(cell, return_index=True)[1]]
        for start in range(0, new.size, ROWS_PER_CALL):
            rows = new[start : start + ROWS_PER_CALL]
            selected = self.candidates.select(person[rows], draw[rows])
            scored = self._score(selected)
            self._store(group[rows], draw[rows], scored.score, scored.valid)
            drawn = draw[rows].astype(np.int64)
            self.added.append(
                CachedScores(self.groups[group[rows]], drawn, scored.score, scored.valid)
            )
        self.n_evaluated += new.size * (self.surrogate is None)
        return self.valid[group, draw]

    def _score(self, selected: CandidateRows) -> ScoredRows:
        if self.surrogate is None:
            return score_rows(self.decision, selected, self.remembered)
        if self._lookup is None:
            self._lookup = Lookup(selected.rows, selected.tables)
        response = self.surrogate.predict(self._lookup.descent(selected.owner, selected.codes))
        margin = self.surrogate.margin(self.decision, response)
        return ScoredRows(margin, margin >= 0)

    def _store(
        self, group: IntArray, draw: IntArray | Codes, score: FloatArray, valid: BoolArray
    ) -> None:
        self.known[group, draw] = True
        self.score[group, draw] = score
        self.valid[group, draw] = valid


class Selection(NamedTuple):
    """Candidates selected in a block, one entry each; people and draws numbered as in it."""

    person: IntArray
    draw: Codes
    rank: IntArray
    sparsity: Codes
    gower: FloatArray

    @classmethod
    def concat(cls, parts: Sequence[Selection]) -> Selection:
        """All parts as one."""
        dtypes = np.int64, np.int32, np.int64, np.int32, np.float64
        empty = [np.empty(0, dtype) for dtype in dtypes]
        return cls._make(map(np.concatenate, zip(empty, *parts, strict=True)))

    def take(self, places: BoolArray | IntArray) -> Selection:
        """The candidates at the given places."""
        return Selection._make(array[places] for array in self)

    def to_answers(self, cache: PredictionCache) -> Answers:
        """The candidates as answers, by person and rank."""
        candidates = cache.candidates
        return Answers(
            rows=candidates.select(self.person, self.draw).compacted(),
            draw=candidates.draws[self.draw],
            rank=self.rank,
            score=cache.score[candidates.group[self.person], self.draw],
            sparsity=self.sparsity.astype(np.int64),
            gower=self.gower,
        ).sort()


class LazyValidation:
    """The search through one ranked block: ``next_batch`` until everybody is ``settled``."""

    def __init__(self, ranked: RankedCandidates, cache: PredictionCache) -> None:
        self.ranked = ranked
        self.cache = cache
        self.listing = ranked.first
        self.n_allowed = ranked.first.n_allowed
        self.n_tried = 0
        self.n_valid: IntArray = np.zeros_like(self.n_allowed)
        self.pool = None
        if ranked.ranking.diversity is not None:
            self.pool = Pool(ranked.candidates.comparison, ranked.n_wanted)
        self._selected: list[Selection] = []
        # Which row of the listing is whose.
        self._row: IntArray = np.arange(self.n_allowed.size)

    @property
    def settled(self) -> BoolArray:
        """People who have enough valid candidates, or none left to try."""
        enough = self.n_valid >= self.ranked.n_wanted
        return enough | (self.n_tried >= self.n_allowed)

    def next_batch(self) -> None:
        """Validate the next candidates of everybody unsettled, more in each batch.

        Slightly fewer than were tried before: each call has a cost, and so has each row. The size
        depends on nothing but the number of batches, so blocks do not change what is scored.
        """
        wanted = self.ranked.n_wanted
        person = np.flatnonzero(~self.settled)
        place = self.n_tried + np.arange(max(wanted, int(GROWTH * self.n_tried)))
        if place[-1] >= self.listing.draw.shape[1]:
            self._list_more(person)
        valid = self._validate(person, place)
        rank = self.n_valid[person][:, None] + np.cumsum(valid, axis=1)
        who, which = np.nonzero(valid & (rank <= wanted))
        self._select(person[who], self._row[person[who]], place[which], rank[who, which])
        self.n_valid[person] += valid.sum(axis=1)
        self.n_tried += place.size

    def selection(self) -> Selection:
        """The valid candidates that everybody gets."""
        ranking = self.ranked.ranking
        selected = Selection.concat(self._selected)
        if ranking.diversity is None:
            return selected
        rank = diverse_ranks(
            self.ranked.candidates,
            selected.person,
            selected.draw,
            selected.rank - 1,
            selected.gower,
            distance=ranking.distance,
            n_counterfactuals=ranking.n_counterfactuals,
            diversity=ranking.diversity,
        )
        return selected._replace(rank=rank).take(rank > 0)

    def _validate(self, person: IntArray, place: IntArray) -> BoolArray:
        """Whether people's candidates at these places are valid, shape (n_people, n_places)."""
        listed = place < self.n_allowed[person][:, None]
        at = np.minimum(place, self.listing.draw.shape[1] - 1)
        draw = self.listing.draw[self._row[person][:, None], at]
        if self.pool is not None:
            listed &= self.pool.needed(person, draw)
        who, which = np.nonzero(listed)
        valid = np.zeros_like(listed)
        valid[who, which] = self.cache.validate(person[who], draw[who, which])
        self._check(person, draw, valid)
        return valid if self.pool is None else self.pool.keep(person, draw, valid)

    def _check(self, person: IntArray, draw: Codes, valid: BoolArray) -> None:
        """Run the checks on valid candidates, and exclude those that do not pass."""
        for check in self.ranked.ranking.checks:
            who, which = np.nonzero(valid)
            selected = self.ranked.candidates.select(person[who], draw[who, which])
            valid[who, which] = check.keeps(selected)

    def _list_more(self, person: IntArray) -> None:
        """List more candidates of the people who go on."""
        n_listed = self.listing.draw.shape[1]
        if n_listed < self.ranked.candidates.draws.size:
            self.listing = self.ranked.list_allowed(person, LIST_MORE * n_listed)
            self._row[person] = np.arange(person.size)

    def _select(self, person: IntArray, row: IntArray, at: IntArray, rank: IntArray) -> None:
        listing = self.listing
        costs = listing.sparsity[row, at], listing.gower[row, at]
        self._selected.append(Selection(person, listing.draw[row, at], rank, *costs))
