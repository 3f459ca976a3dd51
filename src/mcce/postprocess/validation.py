"""Lazy validation: the predictor scores only as many candidates as it takes.

Paper, section "Post-processing". Takes a block of ranked candidates and calls the predictor on the
best few of all people together, in growing batches, until everyone has enough valid ones. Only
for people without an answer does it score candidates that a filter excludes, to say why.

``ScoreStore`` keeps the predictor's scores during a search.

Always true: the answers are those of scoring every candidate; the predictor scores a candidate at
most once, whatever the number of stages; nothing here draws random numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np

from ..candidates import CandidateRows, MeasuredRows
from ..kernels import BoolArray, Codes, FloatArray, Int32Array, IntArray, Listing, RowTable
from ..predictors.decision import ROWS_PER_CALL, Decision, Interval, ScoredRows
from .diversity import NonRedundant, diverse_ranks
from .ranking import RankedCandidates

# If people need more candidates, their list becomes this many times as long.
LIST_GROWTH = 8
# Size of a batch, as a share of all rows that were scored before.
BATCH_GROWTH = 5 / 6
# The fewest excluded candidates in one call of the predictor.
N_EXCLUDED = 1_000
# The first number of proofs in keys: people count up from 0, groups down from -1, proofs from here.
FIRST_OF_PROOFS = -(2**30)


class LazyValidation:
    """The validation of one ranked block: ``next_batch`` until everyone is ``settled``."""

    def __init__(
        self,
        ranked: RankedCandidates,
        decision: Decision,
        scores: ScoreStore,
        group: IntArray,
        computed_places: Sequence[int] = (),
    ) -> None:
        self.ranked, self.decision, self.scores = ranked, decision, scores
        # The group of each person among those of all factuals.
        self._group, self._computed_places = group, list(computed_places)
        self.n_evaluated = self.n_tried = 0
        self.listing = ranked.first
        self.n_allowed = ranked.first.n_allowed
        shape = self.n_allowed.size, ranked.n_wanted
        # Each person's row in the listing.
        self._row: IntArray = np.arange(shape[0])
        # The valid candidates of each person, best first.
        self.n_valid: IntArray = np.zeros_like(self.n_allowed)
        self._draw, self._sparsity = np.zeros((2, *shape), dtype=np.int32)
        self._score, self._gower = np.zeros((2, *shape))
        self._nonredundant = None
        if ranked.ranking.diversity is not None:
            self._nonredundant = NonRedundant(len(ranked.candidates.comparison.codes), *shape)

    @property
    def settled(self) -> BoolArray:
        """People who have enough valid candidates, or none left to try."""
        enough = self.n_valid >= self.ranked.n_wanted
        return enough | (self.n_tried >= self.n_allowed)

    def next_batch(self) -> None:
        """Validate the next candidates of people not yet settled, more in each batch.

        Slightly fewer than were tried before, as calls are costly and so are rows. The number
        depends on nothing but the number of batches, so blocks do not change what is scored.
        """
        n_wanted = self.ranked.n_wanted
        people = np.flatnonzero(~self.settled)
        entries = self.n_tried + np.arange(max(n_wanted, int(BATCH_GROWTH * self.n_tried)))
        n_listed = self.listing.draw.shape[1]
        if entries[-1] >= n_listed and n_listed < self.ranked.candidates.shape[1]:
            self.listing = self.ranked.list_best(people, LIST_GROWTH * n_listed)
            self._row[people] = np.arange(people.size)
        listed = entries < self.n_allowed[people][:, None]
        cells = self._row[people][:, None], np.minimum(entries, self.listing.draw.shape[1] - 1)
        draw, sparsity = self.listing.draw[cells], self.listing.sparsity[cells]
        valid, score = self._validate(people, draw, listed)
        rank_index = self.n_valid[people][:, None] + np.cumsum(valid, axis=1) - 1
        is_new = valid & (rank_index < n_wanted)
        best = people[np.nonzero(is_new)[0]], rank_index[is_new]
        self._draw[best], self._sparsity[best] = draw[is_new], sparsity[is_new]
        self._score[best], self._gower[best] = score[is_new], self.listing.gower[cells][is_new]
        self.n_valid[people] += valid.sum(axis=1)
        self.n_tried += entries.size

    def answers(self) -> MeasuredRows:
        """The valid candidates that each person gets."""
        ranking = self.ranked.ranking
        best = np.nonzero(np.arange(self.ranked.n_wanted) < self.n_valid[:, None])
        person, rank = best[0], best[1] + 1
        if ranking.diversity is not None:
            rows = self.ranked.candidates.select(person, self._draw[best])
            rank = diverse_ranks(rows, best[1], self._gower[best], ranking)
        values = self._score[best], self._sparsity[best], self._gower[best]
        return self.to_measured(person, self._draw[best], rank, *values).take(rank > 0).sort()

    def to_measured(
        self,
        person: IntArray,
        draw: Int32Array,
        rank: IntArray,
        score: FloatArray,
        sparsity: Codes,
        gower: FloatArray,
    ) -> MeasuredRows:
        """Candidates by person and draw, with their measures."""
        return MeasuredRows(
            rows=self.ranked.candidates.select(person, draw).compacted(),
            key=self._keys(person, draw),
            rank=rank,
            score=score,
            sparsity=sparsity.astype(np.int64),
            gower=gower,
        )

    def score_all(self, people: IntArray) -> Iterator[int]:
        """Score all candidates of people, person by person; yields how many people are done.

        Batches grow with what was scored before, so that none takes much longer than all before.
        """
        listing = self.ranked.list_best(people, only_allowed=False)
        row, entry = np.nonzero(np.arange(listing.draw.shape[1]) < listing.n_allowed[:, None])
        n_done = 0
        while n_done < row.size:
            n_rows = min(max(N_EXCLUDED, int(BATCH_GROWTH * self.n_evaluated)), ROWS_PER_CALL)
            batch = slice(n_done, n_done + n_rows)
            self._score_draws(people[row[batch]], listing.draw[row[batch], entry[batch]])
            n_done = batch.stop
            yield int(row[n_done]) if n_done < row.size else people.size

    def list_all(self, people: IntArray) -> tuple[Listing, BoolArray, BoolArray, FloatArray]:
        """All distinct candidates of people, which are listed and valid, and their scores."""
        listing = self.ranked.list_best(people, only_allowed=False)
        listed = np.arange(listing.draw.shape[1]) < listing.n_allowed[:, None]
        return listing, listed, *self._score_listed(people, listing.draw, listed)

    def _validate(
        self, people: IntArray, draw: Int32Array, listed: BoolArray
    ) -> tuple[BoolArray, FloatArray]:
        """Which candidates are valid and may be returned, and the scores of the listed ones."""
        if self._nonredundant is None:
            valid, score = self._score_listed(people, draw, listed)
            return self.ranked.plausible(people, draw, valid), score
        codes = self.ranked.candidates.changes(people[:, None], draw)
        listed = listed & self._nonredundant.needed(people, codes)
        valid, score = self._score_listed(people, draw, listed)
        valid = self.ranked.plausible(people, draw, valid)
        return self._nonredundant.keep(people, codes, valid), score

    def _score_listed(
        self, people: IntArray, draw: Int32Array, listed: BoolArray
    ) -> tuple[BoolArray, FloatArray]:
        """Decision and score of the listed candidates, shape (n_people, n_draws)."""
        valid, score = np.zeros_like(listed), np.zeros(listed.shape)
        scored = self._score_draws(people[np.nonzero(listed)[0]], draw[listed])
        valid[listed], score[listed] = scored.valid, scored.score
        return valid, score

    def _score_draws(self, person: IntArray, draw: Int32Array) -> ScoredRows:
        """Score and decision of candidates; people of a group share theirs."""
        rows, keys = self.ranked.candidates.select(person, draw), self._keys(person, draw)
        scored, n_new = self.scores.score(self.decision, rows, keys)
        self.n_evaluated += n_new
        return scored

    def _keys(self, person: IntArray, draw: Int32Array) -> Codes:
        """Keys of candidates in the store of scores: their group and drawn codes."""
        candidates = self.ranked.candidates
        codes = candidates.comparison.codes[:, candidates.group[person], draw]
        codes[self._computed_places] = 0
        return keys_of_groups(self._group[person], codes)


class ScoreStore:
    """The predictor's scores, which the stages of a search share.

    A key identifies a row by its owner and its codes. The keys of people, of groups of people who
    share draws, and of proofs differ: the codes of the first two leave out recomputed cells. The
    exact search keeps its own scores, and only learns here which answers were withdrawn.
    """

    def __init__(self, n_factuals: int, n_mutable: int, max_evaluations: int | None = None) -> None:
        self.n_scored: IntArray = np.zeros(n_factuals, dtype=np.int64)
        # People with a withdrawn answer.
        self.unstable: BoolArray = np.zeros(n_factuals, dtype=bool)
        self.is_bounded = max_evaluations is not None
        self._most = np.inf if max_evaluations is None else float(max_evaluations)
        self._n_mutable = n_mutable
        self._table = RowTable(1 + n_mutable)
        # By number of a row in the table, with room for more.
        self._known, self._valid = np.zeros((2, 0), dtype=bool)
        self._score: FloatArray = np.zeros(0)
        self._withdrawn: set[bytes] = set()
        self._lock = threading.Lock()

    def cleared(self) -> ScoreStore:
        """A store without scores, in which the rows scored so far still count."""
        new = ScoreStore(self.n_scored.size, self._n_mutable)
        new.n_scored, new.is_bounded, new._most = self.n_scored, self.is_bounded, self._most
        return new

    def n_left(self, owner: IntArray) -> FloatArray:
        """How many more rows of people the predictor may score."""
        return np.asarray(self._most - self.n_scored[owner], dtype=np.float64)

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
            self._known[number[new]] = True
            self._score[number[new]], self._valid[number[new]] = scored.score, scored.valid
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
            self._known[number], self._valid[number] = True, False

    def decide_again(self, desired: Interval) -> None:
        """Decide by another interval about the rows scored so far; withdrawn ones stay refused."""
        self._valid = self._known & desired.contains(self._score)
        if self._withdrawn:
            keys = np.array([np.frombuffer(key, dtype=np.int32) for key in self._withdrawn])
            self._valid[self._number(keys)] = False

    def are_withdrawn(self, keys: Codes) -> BoolArray:
        """Which rows turned out not to be valid."""
        if not self._withdrawn:
            return np.zeros(len(keys), dtype=bool)
        return np.array([row.tobytes() in self._withdrawn for row in keys], dtype=bool)

    def _number(self, keys: Codes) -> IntArray:
        """The number of each row; new rows are added."""
        number = self._table.number_rows(keys)
        n = int(number.max(initial=-1)) + 1
        if n > self._known.size:
            more = 0, 2 * n - self._known.size
            self._known, self._valid = np.pad(self._known, more), np.pad(self._valid, more)
            self._score = np.pad(self._score, more)
        return number


def keys_of_people(person: IntArray, codes: Codes) -> Codes:
    """Keys of rows of people, given their codes of shape (n_mutable, n_rows)."""
    return _keys(person, codes)


def keys_of_groups(group: IntArray, codes: Codes) -> Codes:
    """Keys of draws that groups of people share."""
    return _keys(-1 - group, codes)


def keys_of_proofs(person: IntArray, codes: Codes) -> Codes:
    """Keys of rows that are visited to prove something of people."""
    return _keys(FIRST_OF_PROOFS - person, codes)


def _keys(whose: IntArray, codes: Codes) -> Codes:
    return np.concatenate([whose[None].astype(np.int32), codes]).T


def score_in_calls(decision: Decision, rows: CandidateRows) -> ScoredRows:
    """Score and decision of rows, in calls of bounded size."""
    starts = range(0, max(rows.owner.size, 1), ROWS_PER_CALL)
    calls = [slice(start, start + ROWS_PER_CALL) for start in starts]
    parts = [decision.score(rows.take(call).frame) for call in calls]
    score = np.concatenate([part.score for part in parts])
    return ScoredRows(score, np.concatenate([part.valid for part in parts]))
