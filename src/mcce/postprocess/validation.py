"""Lazy validation: the predictor scores only as many candidates as it takes.

Paper, section "Post-processing". Takes a block of ranked candidates and calls the predictor on the
best few of all people together, in growing batches, until everyone has enough valid ones. Only
for people without an answer does it score candidates that a filter excludes, to say why.

``ScoreStore`` is the memory of what the predictor said during a search.

Always true: the answers are those of scoring every candidate; the predictor scores a candidate at
most once, whatever the number of stages; nothing here draws random numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from ..candidates import CandidateRows, MeasuredRows
from ..kernels import BoolArray, Codes, FloatArray, IntArray, Listing, RowTable
from ..predictors.decision import ROWS_PER_CALL, Decision, ScoredRows
from .diversity import NonRedundant, diverse_ranks
from .ranking import RankedCandidates

# People who need more candidates get a list this many times as long.
LIST_MORE = 8
# Size of a batch, as a share of all that were scored before.
GROWTH = 5 / 6
# Excluded candidates scored at once, at least.
N_EXCLUDED = 1_000


class LazyValidation:
    """The search through one ranked block: ``next_batch`` until everyone is ``settled``."""

    def __init__(
        self,
        ranked: RankedCandidates,
        decision: Decision,
        scores: ScoreStore,
        groups: IntArray,
        recomputed: Sequence[int] = (),
    ) -> None:
        self.ranked, self.decision, self.scores = ranked, decision, scores
        # Numbers of the groups of this block among those of all factuals.
        self._groups, self._recomputed = groups, recomputed
        self.n_evaluated = 0
        self.listing = ranked.first
        self.n_allowed = ranked.first.n_allowed
        self.n_tried = 0
        self.n_valid: IntArray = np.zeros_like(self.n_allowed)
        self.nonredundant = None
        if ranked.ranking.diversity is not None:
            shape = len(ranked.candidates.comparison.codes), self.n_allowed.size
            self.nonredundant = NonRedundant(*shape, ranked.n_wanted)
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
        valid, score = self._validate(person, rank_index)
        rank = self.n_valid[person][:, None] + np.cumsum(valid, axis=1)
        who, which = np.nonzero(valid & (rank <= wanted))
        self._select(person[who], rank_index[which], rank[who, which], score[who, which])
        self.n_valid[person] += valid.sum(axis=1)
        self.n_tried += rank_index.size

    def selection(self) -> SelectedDraws:
        """The valid candidates that each person gets."""
        selected, ranking = SelectedDraws.concat(self._selected), self.ranked.ranking
        if ranking.diversity is None:
            return selected
        rows = self.ranked.candidates.select(selected.person, selected.draw)
        rank = diverse_ranks(rows, selected.rank - 1, selected.gower, ranking)
        return selected._replace(rank=rank).take(rank > 0)

    def to_measured(self, selected: SelectedDraws) -> MeasuredRows:
        """Selected candidates with their measures, by person and rank."""
        candidates = self.ranked.candidates
        return MeasuredRows(
            rows=candidates.select(selected.person, selected.draw).compacted(),
            key=self._keys(selected.person, selected.draw),
            rank=selected.rank,
            score=selected.score,
            sparsity=selected.sparsity.astype(np.int64),
            gower=selected.gower,
        ).sort()

    def score_all(self, person: IntArray) -> Iterator[int]:
        """Score all candidates of people, person by person; yields how many people are done.

        Batches grow with what was scored before, so that none takes much longer than all before.
        """
        listing = self.ranked.list_all(person)
        who, at = np.nonzero(np.arange(listing.draw.shape[1]) < listing.n_allowed[:, None])
        n_done = 0
        while n_done < who.size:
            n_rows = min(max(N_EXCLUDED, int(GROWTH * self.n_evaluated)), ROWS_PER_CALL)
            batch = slice(n_done, n_done + n_rows)
            self._score(person[who[batch]], listing.draw[who[batch], at[batch]])
            n_done = batch.stop
            yield int(who[n_done]) if n_done < who.size else person.size

    def list_all(self, person: IntArray) -> tuple[Listing, BoolArray, BoolArray, FloatArray]:
        """All distinct candidates of people, which are listed and valid, and their scores."""
        listing = self.ranked.list_all(person)
        listed = np.arange(listing.draw.shape[1]) < listing.n_allowed[:, None]
        who, at = np.nonzero(listed)
        valid, score = np.zeros_like(listed), np.zeros(listed.shape)
        found = self._score(person[who], listing.draw[who, at])
        valid[who, at], score[who, at] = found.valid, found.score
        return listing, listed, valid, score

    def _score(self, person: IntArray, draw: Codes) -> ScoredRows:
        """Score and decision of candidates; people of a group share theirs."""
        scored, n_new = self.scores.score(
            self.decision,
            self.ranked.candidates.select(person, draw),
            self._keys(person, draw),
        )
        self.n_evaluated += n_new
        return scored

    def _keys(self, person: IntArray, draw: Codes) -> Codes:
        """What tells candidates apart in memory: their group and their draws."""
        candidates = self.ranked.candidates
        group = candidates.group[person]
        codes = candidates.comparison.codes[:, group, draw]
        codes[list(self._recomputed)] = 0
        owner = -1 - self._groups[group]
        return np.concatenate([owner[None].astype(np.int32), codes]).T

    def _validate(self, person: IntArray, rank_index: IntArray) -> tuple[BoolArray, FloatArray]:
        """Whether people's candidates of these ranks are valid, and their scores.

        Both of shape (n_people, n_ranks).
        """
        listed = rank_index < self.n_allowed[person][:, None]
        at = np.minimum(rank_index, self.listing.draw.shape[1] - 1)
        draw = self.listing.draw[self._row[person][:, None], at]
        if self.nonredundant is not None:
            codes = self.ranked.candidates.changes(person[:, None], draw)
            listed &= self.nonredundant.needed(person, codes)
        who, which = np.nonzero(listed)
        valid, score = np.zeros_like(listed), np.zeros(listed.shape)
        found = self._score(person[who], draw[who, which])
        valid[who, which], score[who, which] = found.valid, found.score
        valid = self.ranked.plausible(person, draw, valid)
        if self.nonredundant is not None:
            valid = self.nonredundant.keep(person, codes, valid)
        return valid, score

    def _list_more(self, person: IntArray) -> None:
        """List more candidates of the people who go on."""
        n_listed = self.listing.draw.shape[1]
        if n_listed < self.ranked.candidates.draws.size:
            self.listing = self.ranked.list_allowed(person, LIST_MORE * n_listed)
            self._row[person] = np.arange(person.size)

    def _select(self, person: IntArray, at: IntArray, rank: IntArray, score: FloatArray) -> None:
        listing, row = self.listing, self._row[person]
        costs = listing.sparsity[row, at], listing.gower[row, at]
        self._selected.append(SelectedDraws(person, listing.draw[row, at], rank, score, *costs))


class SelectedDraws(NamedTuple):
    """Candidates selected in a block, one entry each; people and draws as numbered there."""

    person: IntArray
    draw: Codes
    rank: IntArray
    score: FloatArray
    sparsity: Codes
    gower: FloatArray

    @classmethod
    def concat(cls, parts: Sequence[SelectedDraws]) -> SelectedDraws:
        """All parts as one."""
        dtypes = np.int64, np.int32, np.int64, np.float64, np.int32, np.float64
        empty = [np.empty(0, dtype) for dtype in dtypes]
        return cls._make(map(np.concatenate, zip(empty, *parts, strict=True)))

    def take(self, index: BoolArray | IntArray) -> SelectedDraws:
        """The candidates at these indices, or where a mask is true."""
        return SelectedDraws._make(array[index] for array in self)


class ScoreStore:
    """What the predictor said of rows: the memory of a search, which its stages share.

    A key tells a row apart: a person, or a group of people who share draws, and codes. The exact
    search keeps its own scores, and only learns here which answers were withdrawn.
    """

    def __init__(self, n_factuals: int, n_mutable: int, max_evaluations: int | None = None) -> None:
        self.n_scored: IntArray = np.zeros(n_factuals, dtype=np.int64)
        self._max_evaluations = max_evaluations
        self._width = 1 + n_mutable
        self._table = RowTable(self._width)
        self._n = 0
        self._known: BoolArray = np.zeros(0, dtype=bool)
        self._valid: BoolArray = np.zeros(0, dtype=bool)
        self._score: FloatArray = np.zeros(0)
        self._withdrawn: set[bytes] = set()
        # People with a withdrawn answer.
        self.unstable: BoolArray = np.zeros(n_factuals, dtype=bool)
        self._lock = threading.Lock()

    def cleared(self) -> ScoreStore:
        """A memory of nothing, in which the rows scored so far still count."""
        new = copy(self)
        new._table, new._n, new._withdrawn = RowTable(self._width), 0, set()
        new.unstable = np.zeros_like(self.unstable)
        new._known, new._valid, new._score = new._known[:0], new._valid[:0], new._score[:0]
        return new

    @property
    def is_bounded(self) -> bool:
        """Whether ``max_evaluations`` bounds the rows that may be scored."""
        return self._max_evaluations is not None

    def n_left(self, owner: IntArray) -> FloatArray:
        """How many more rows of people the predictor may score."""
        most = np.inf if self._max_evaluations is None else float(self._max_evaluations)
        return np.asarray(most - self.n_scored[owner], dtype=np.float64)

    def score(
        self, decision: Decision, selected: CandidateRows, keys: Codes
    ) -> tuple[ScoredRows, int]:
        """Score and decision of each row, and how many rows the predictor had to score."""
        with self._lock:
            number = self._number(keys)
            unknown = np.flatnonzero(~self._known[number])
        new = unknown[np.unique(number[unknown], return_index=True)[1]]
        # Without the lock: threads search for different people, whose rows are not the same.
        scored = score_in_calls(decision, selected.take(new))
        with self._lock:
            np.add.at(self.n_scored, selected.owner[new], 1)
            self._keep(number[new], scored)
            return ScoredRows(self._score[number], self._valid[number]), new.size

    def are_known(self, keys: Codes) -> BoolArray:
        """Which rows the predictor has scored."""
        with self._lock:
            number = self._number(keys)
            return self._known[number]

    def withdraw(self, owner: IntArray, keys: Codes) -> None:
        """Remember that answers of people turned out not to be valid."""
        self.unstable[owner] = True
        self._withdrawn.update(row.tobytes() for row in keys)
        with self._lock:
            number = self._number(keys)
            nothing = np.zeros(number.size, dtype=bool)
            self._keep(number, ScoredRows(self._score[number], nothing))

    def are_withdrawn(self, keys: Codes) -> BoolArray:
        """Which rows turned out not to be valid."""
        if not self._withdrawn:
            return np.zeros(len(keys), dtype=bool)
        return np.array([row.tobytes() in self._withdrawn for row in keys], dtype=bool)

    def _keep(self, number: IntArray, scored: ScoredRows) -> None:
        self._known[number] = True
        self._score[number], self._valid[number] = scored.score, scored.valid

    def _number(self, keys: Codes) -> IntArray:
        """The number of each row; new rows are added."""
        number = self._table.number_rows(keys)
        self._n = max(self._n, int(number.max(initial=-1)) + 1)
        if self._n > self._known.size:
            more = 0, 2 * self._n - self._known.size
            self._known, self._valid = np.pad(self._known, more), np.pad(self._valid, more)
            self._score = np.pad(self._score, more)
        return number


def score_in_calls(decision: Decision, rows: CandidateRows) -> ScoredRows:
    """Score and decision of rows, in calls of bounded size."""
    parts = [ScoredRows(np.empty(0), np.empty(0, dtype=bool))]
    for start in range(0, rows.owner.size, ROWS_PER_CALL):
        piece = np.arange(start, min(start + ROWS_PER_CALL, rows.owner.size))
        parts.append(decision.score(rows.take(piece).frame))
    score = np.concatenate([part.score for part in parts])
    return ScoredRows(score, np.concatenate([part.valid for part in parts]))
