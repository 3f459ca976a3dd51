"""Lazy validation: the predictor scores only as many candidates as it takes.

Paper, section "Post-processing". Takes a block of ranked candidates and calls the predictor on the
best few of all people together, in growing batches, until everyone has enough valid ones. Only
for people without an answer does it score candidates that a filter excludes, to say why.

Always true: the answers are those of scoring every candidate; the predictor scores a candidate at
most once, also in several searches for the same people; nothing here draws random numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..candidates import CandidateEncodings, CandidateRows, Candidates, MeasuredRows
from ..kernels import BoolArray, Codes, FloatArray, IntArray, Listing, RowTable
from ..predictors.decision import ROWS_PER_CALL, Decision, ScoredRows
from .diversity import NonRedundant, diverse_ranks
from .ranking import RankedCandidates

if TYPE_CHECKING:
    from ..plausibility.surrogate import Surrogate

# Memory of a row in bytes, in addition to its codes.
BYTES_PER_ROW = 64
# People who need more candidates get a list this many times as long.
LIST_MORE = 8
# Size of a batch, as a share of all that were scored before.
GROWTH = 5 / 6


class LazyValidation:
    """The search through one ranked block: ``next_batch`` until everyone is ``settled``."""

    def __init__(self, ranked: RankedCandidates, cache: PredictionCache) -> None:
        self.ranked = ranked
        self.cache = cache
        self.listing = ranked.first
        self.n_allowed = ranked.first.n_allowed
        self.n_tried = 0
        self.n_valid: IntArray = np.zeros_like(self.n_allowed)
        self.nonredundant = None
        if ranked.ranking.diversity is not None:
            self.nonredundant = NonRedundant(ranked.candidates.comparison, ranked.n_wanted)
        self._selected: list[SelectedDraws] = []
        # Each person's row in the listing.
        self._row: IntArray = np.arange(self.n_allowed.size)

    @property
    def settled(self) -> BoolArray:
        """People who have enough valid candidates, or none left to try."""
        enough = self.n_valid >= self.ranked.n_wanted
        return enough | (self.n_tried >= self.n_allowed)

    def next_batch(self) -> None:
        """Validate the next candidates of people not yet settled, more in each batch.

        Slightly fewer than were tried before: each call has a cost, and so has each row. The size
        depends on nothing but the number of batches, so blocks do not change what is scored.
        """
        wanted = self.ranked.n_wanted
        person = np.flatnonzero(~self.settled)
        rank_index = self.n_tried + np.arange(max(wanted, int(GROWTH * self.n_tried)))
        if rank_index[-1] >= self.listing.draw.shape[1]:
            self._list_more(person)
        valid = self._validate(person, rank_index)
        rank = self.n_valid[person][:, None] + np.cumsum(valid, axis=1)
        who, which = np.nonzero(valid & (rank <= wanted))
        self._select(person[who], self._row[person[who]], rank_index[which], rank[who, which])
        self.n_valid[person] += valid.sum(axis=1)
        self.n_tried += rank_index.size

    def selection(self) -> SelectedDraws:
        """The valid candidates that each person gets."""
        selected, ranking = SelectedDraws.concat(self._selected), self.ranked.ranking
        if ranking.diversity is None:
            return selected
        person, draw, rank, _, gower = selected
        rank = diverse_ranks(self.ranked.candidates, person, draw, rank - 1, gower, ranking)
        return selected._replace(rank=rank).take(rank > 0)

    def list_all(self, person: IntArray) -> tuple[Listing, BoolArray, BoolArray]:
        """All distinct candidates of people, where they are listed, and which are valid."""
        listing = self.ranked.list_all(person)
        listed = np.arange(listing.draw.shape[1]) < listing.n_allowed[:, None]
        who, at = np.nonzero(listed)
        valid = np.zeros_like(listed)
        valid[who, at] = self.cache.validate(person[who], listing.draw[who, at])
        return listing, listed, valid

    def _validate(self, person: IntArray, rank_index: IntArray) -> BoolArray:
        """Whether people's candidates of these ranks are valid, shape (n_people, n_ranks)."""
        listed = rank_index < self.n_allowed[person][:, None]
        at = np.minimum(rank_index, self.listing.draw.shape[1] - 1)
        draw = self.listing.draw[self._row[person][:, None], at]
        if self.nonredundant is not None:
            listed &= self.nonredundant.needed(person, draw)
        who, which = np.nonzero(listed)
        valid = np.zeros_like(listed)
        valid[who, which] = self.cache.validate(person[who], draw[who, which])
        valid = self.ranked.plausible(person, draw, valid)
        return valid if self.nonredundant is None else self.nonredundant.keep(person, draw, valid)

    def _list_more(self, person: IntArray) -> None:
        """List more candidates of the people who go on."""
        n_listed = self.listing.draw.shape[1]
        if n_listed < self.ranked.candidates.draws.size:
            self.listing = self.ranked.list_allowed(person, LIST_MORE * n_listed)
            self._row[person] = np.arange(person.size)

    def _select(self, person: IntArray, row: IntArray, at: IntArray, rank: IntArray) -> None:
        listing = self.listing
        costs = listing.sparsity[row, at], listing.gower[row, at]
        self._selected.append(SelectedDraws(person, listing.draw[row, at], rank, *costs))


class DrawScores:
    """Scores by group and draw, kept across the stages of one search."""

    def __init__(self) -> None:
        self._kept: list[tuple[IntArray, IntArray, ScoredRows]] = []

    def store(self, group: IntArray, draw: IntArray, scored: ScoredRows) -> None:
        """Keep the scores of candidates; groups are numbered for all factuals, and ascend."""
        self._kept.append((group, draw, scored))

    def recall(self, groups: IntArray) -> Iterator[tuple[IntArray, IntArray, ScoredRows]]:
        """Kept scores between the first and the last of some groups, which ascend."""
        # Other threads may add to it.
        for group, draw, scored in self._kept.copy():
            if group[0] <= groups[-1] and groups[0] <= group[-1]:
                yield group, draw, scored


class PredictionCache:
    """The predictor's scores of the candidates of a block; each is scored at most once.

    With a surrogate, ``score`` is its margin and ``valid`` what it predicts; the predictor is not
    called. Scores of candidates that are not ``known`` are undefined.
    """

    def __init__(
        self,
        candidates: Candidates,
        decision: Decision,
        groups: IntArray,
        draw_scores: DrawScores,
        row_scores: RowScores | None = None,
        surrogate: Surrogate | None = None,
    ) -> None:
        shape = candidates.distinct.shape
        self.candidates = candidates
        self.decision = decision
        self.groups = groups
        self.draw_scores = draw_scores
        self.row_scores = row_scores
        self.surrogate = surrogate
        self.known: BoolArray = np.zeros(shape, dtype=bool)
        self.valid: BoolArray = np.zeros(shape, dtype=bool)
        self.score: FloatArray = np.zeros(shape)
        self.n_evaluated = 0
        self._encodings: CandidateEncodings | None = None

        for group, draw, scored in draw_scores.recall(groups):
            row = np.minimum(np.searchsorted(groups, group), groups.size - 1)
            # A search that begins again by relaxed rules may have fewer draws.
            ours = np.flatnonzero((groups[row] == group) & (draw < shape[1]))
            self._store(row[ours], draw[ours], scored.score[ours], scored.valid[ours])

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
            self.draw_scores.store(self.groups[group[rows]], draw[rows].astype(np.int64), scored)
        self.n_evaluated += new.size * (self.surrogate is None)
        return self.valid[group, draw]

    def _score(self, selected: CandidateRows) -> ScoredRows:
        if self.surrogate is None:
            return score_rows(self.decision, selected, self.row_scores)
        if self._encodings is None:
            self._encodings = CandidateEncodings(selected.rows, selected.tables)
        response = self.surrogate.predict(self._encodings.tree_codes(selected))
        margin = self.surrogate.margin(self.decision, response)
        return ScoredRows(margin, margin >= 0)

    def _store(
        self, group: IntArray, draw: IntArray | Codes, score: FloatArray, valid: BoolArray
    ) -> None:
        self.known[group, draw] = True
        self.score[group, draw] = score
        self.valid[group, draw] = valid


class SelectedDraws(NamedTuple):
    """Candidates selected in a block, one entry each; people and draws as numbered there."""

    person: IntArray
    draw: Codes
    rank: IntArray
    sparsity: Codes
    gower: FloatArray

    @classmethod
    def concat(cls, parts: Sequence[SelectedDraws]) -> SelectedDraws:
        """All parts as one."""
        dtypes = np.int64, np.int32, np.int64, np.int32, np.float64
        empty = [np.empty(0, dtype) for dtype in dtypes]
        return cls._make(map(np.concatenate, zip(empty, *parts, strict=True)))

    def take(self, index: BoolArray | IntArray) -> SelectedDraws:
        """The candidates at these indices, or where a mask is true."""
        return SelectedDraws._make(array[index] for array in self)

    def to_measured(self, cache: PredictionCache) -> MeasuredRows:
        """The candidates with their measures, by person and rank."""
        candidates = cache.candidates
        return MeasuredRows(
            rows=candidates.select(self.person, self.draw).compacted(),
            draw=candidates.draws[self.draw],
            rank=self.rank,
            score=cache.score[candidates.group[self.person], self.draw],
            sparsity=self.sparsity.astype(np.int64),
            gower=self.gower,
        ).sort()


class RowScores:
    """The predictor's scores of rows by person and codes, kept across several searches."""

    def __init__(self, n_mutable: int, memory: float) -> None:
        self._table = RowTable(1 + n_mutable)
        self._most = int(memory * 1e6 / (BYTES_PER_ROW + 4 * (1 + n_mutable)))
        self._n = 0
        self._known: BoolArray = np.zeros(0, dtype=bool)
        self._valid: BoolArray = np.zeros(0, dtype=bool)
        self._score: FloatArray = np.zeros(0)
        self._lock = threading.Lock()

    def score(self, decision: Decision, selected: CandidateRows) -> ScoredRows:
        """Score and decision of each row; the predictor scores those that are not known."""
        n_rows = selected.owner.size
        if selected.tables is not selected.rows.tables or self._n + n_rows > self._most:
            return decision.score(selected.frame)
        with self._lock:
            numbers = self._number_rows(selected)
            unknown = np.flatnonzero(~self._known[numbers])
        new = unknown[np.unique(numbers[unknown], return_index=True)[1]]
        # Without the lock: threads search for different people, whose rows are not the same.
        scored = decision.score(selected.take(new).frame) if new.size else None
        with self._lock:
            if scored is not None:
                self._known[numbers[new]] = True
                self._score[numbers[new]], self._valid[numbers[new]] = scored.score, scored.valid
            return ScoredRows(self._score[numbers], self._valid[numbers])

    def _number_rows(self, selected: CandidateRows) -> IntArray:
        """The number of each row; new rows are added."""
        cells = np.concatenate([selected.owner[None].astype(np.int32), selected.codes]).T
        numbers = self._table.number_rows(cells)
        self._n = max(self._n, int(numbers.max(initial=-1)) + 1)
        if self._n > self._known.size:
            more = 0, 2 * self._n - self._known.size
            self._known, self._valid = np.pad(self._known, more), np.pad(self._valid, more)
            self._score = np.pad(self._score, more)
        return numbers


def score_rows(
    decision: Decision, selected: CandidateRows, row_scores: RowScores | None
) -> ScoredRows:
    """Score and decision of each row, from memory where they are known."""
    if row_scores is None:
        return decision.score(selected.frame)
    return row_scores.score(decision, selected)
