"""Step 3: from candidates to counterfactuals.

Paper, section "Post-processing". Takes a block of candidates, puts each person's in order (by
number of changes, then distance, then draw number) and asks the predictor about the best few of
all people together, in growing waves, until everybody has enough valid ones.

Always true: the answer is that of evaluating every candidate; the predictor sees a candidate at
most once; nothing here draws random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from ..candidates import Candidates
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..predictors.decision import Decision
from .diversity import Pool, diverse_ranks
from .ranking import Ranked

ROWS_PER_CALL = 100_000
# How many times as many candidates are listed for people who need more.
LIST_MORE = 8
# Candidates of a wave, as a share of all that were asked before.
GROWTH = 5 / 6


@dataclass(frozen=True, eq=False)
class CachedScores:
    """What the predictor said of single candidates, by group (as numbered for all) and draw."""

    group: IntArray
    draw: IntArray
    score: FloatArray
    valid: BoolArray


class PredictionCache:
    """What the predictor said of each candidate of a block, asked at most once.

    ``groups`` are the block's groups as numbered for all people; ``remembered`` is what was asked
    about them before, in another block or another pass. Scores of what is not known mean nothing.
    """

    def __init__(
        self,
        candidates: Candidates,
        decision: Decision,
        groups: IntArray,
        remembered: Sequence[CachedScores] = (),
    ) -> None:
        shape = candidates.distinct.shape
        self.candidates = candidates
        self.decision = decision
        self.groups = groups
        self.asked: list[CachedScores] = []
        self.known: BoolArray = np.zeros(shape, dtype=bool)
        self.valid: BoolArray = np.zeros(shape, dtype=bool)
        self.score: FloatArray = np.zeros(shape)
        self.n_evaluated = 0

        for asked in remembered:
            place = np.minimum(np.searchsorted(groups, asked.group), groups.size - 1)
            ours = np.flatnonzero(groups[place] == asked.group)
            self._note(place[ours], asked.draw[ours], asked.score[ours], asked.valid[ours])

    def _note(
        self, group: IntArray, draw: IntArray | Codes, score: FloatArray, valid: BoolArray
    ) -> None:
        self.known[group, draw] = True
        self.score[group, draw] = score
        self.valid[group, draw] = valid

    def ask(self, person: IntArray, draw: IntArray | Codes) -> BoolArray:
        """Whether each candidate, by person and draw in this block, is valid."""
        group = self.candidates.group[person]
        new = np.flatnonzero(~self.known[group, draw])
        cell = group[new] * self.known.shape[1] + draw[new]
        new = new[np.unique(cell, return_index=True)[1]]
        for start in range(0, new.size, ROWS_PER_CALL):
            rows = new[start : start + ROWS_PER_CALL]
            scored = self.decision.score(self.candidates.select(person[rows], draw[rows]).frame)
            self._note(group[rows], draw[rows], scored.score, scored.valid)
            self.asked.append(
                CachedScores(
                    self.groups[group[rows]],
                    draw[rows].astype(np.int64),
                    scored.score,
                    scored.valid,
                )
            )
        self.n_evaluated += new.size
        return self.valid[group, draw]


@dataclass(frozen=True, eq=False)
class Picks:
    """Candidates picked in a block, one entry each: whose, which, and what they cost.

    ``person`` and ``draw`` are numbered as in the block, ``rank`` from 1.
    """

    person: IntArray
    draw: Codes
    rank: IntArray
    sparsity: Codes
    gower: FloatArray

    @classmethod
    def join(cls, parts: Sequence[Picks]) -> Picks:
        """All as one."""
        whole, short, real = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
        nobody = cls(whole, short, whole, short, real)
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(p, n) for p in (nobody, *parts)]) for n in names))

    def take(self, places: IntArray | BoolArray) -> Picks:
        """Those at the given places."""
        return Picks(*(getattr(self, field.name)[places] for field in fields(self)))


class LazyValidation:
    """The search through one ranked block: ``next_batch`` until everybody is ``settled``."""

    def __init__(self, ranked: Ranked, cache: PredictionCache) -> None:
        self.ranked = ranked
        self.cache = cache
        self.listing = ranked.first
        self.n_allowed = ranked.first.n_allowed
        self.n_asked = 0
        self.n_found: IntArray = np.zeros_like(self.n_allowed)
        self.picks: list[Picks] = []
        self.pool = None
        if ranked.ranking.diversity is not None:
            self.pool = Pool(ranked.candidates.comparison, ranked.n_wanted)
        # Which row of the listing is whose.
        self._row: IntArray = np.arange(self.n_allowed.size)

    @property
    def settled(self) -> BoolArray:
        """People who have enough, or nothing left to try."""
        enough = self.n_found >= self.ranked.n_wanted
        return enough | (self.n_asked >= self.n_allowed)

    def next_batch(self) -> None:
        """Ask about the next candidates of everybody unsettled, more in each wave.

        Somewhat fewer than were asked before: each call costs, and so does each row. The width
        hangs on nothing but the wave, so that blocks do not change what is asked.
        """
        wanted = self.ranked.n_wanted
        person = np.flatnonzero(~self.settled)
        width = int(GROWTH * self.n_asked)
        place = self.n_asked + np.arange(max(wanted, width))
        if place[-1] >= self.listing.draw.shape[1]:
            self._list_more(person)
        valid = self._ask(person, place)
        rank = self.n_found[person][:, None] + np.cumsum(valid, axis=1)
        who, which = np.nonzero(valid & (rank <= wanted))
        self._pick(person[who], self._row[person[who]], place[which], rank[who, which])
        self.n_found[person] += valid.sum(axis=1)
        self.n_asked += place.size

    def _ask(self, person: IntArray, place: IntArray) -> BoolArray:
        """Whether people's candidates at these places are found, shape (n_people, n_places)."""
        listed = place < self.n_allowed[person][:, None]
        at = np.minimum(place, self.listing.draw.shape[1] - 1)
        draw = self.listing.draw[self._row[person][:, None], at]
        if self.pool is not None:
            listed &= self.pool.needed(person, draw)
        who, which = np.nonzero(listed)
        valid = np.zeros_like(listed)
        valid[who, which] = self.cache.ask(person[who], draw[who, which])
        return valid if self.pool is None else self.pool.keep(person, draw, valid)

    def answers(self) -> Picks:
        """What everybody gets of the valid candidates found."""
        found, ranking = Picks.join(self.picks), self.ranked.ranking
        if ranking.diversity is None:
            return found
        rank = diverse_ranks(
            self.ranked.candidates,
            found.person,
            found.draw,
            found.rank - 1,
            found.gower,
            distance=ranking.distance,
            n_counterfactuals=ranking.n_counterfactuals,
            diversity=ranking.diversity,
        )
        return replace(found, rank=rank).take(rank > 0)

    def _list_more(self, person: IntArray) -> None:
        """List more candidates of the people who go on."""
        n_listed = self.listing.draw.shape[1]
        if n_listed < self.ranked.candidates.draws.size:
            self.listing = self.ranked.list_allowed(person, LIST_MORE * n_listed)
            self._row[person] = np.arange(person.size)

    def _pick(self, person: IntArray, row: IntArray, at: IntArray, rank: IntArray) -> None:
        listing = self.listing
        self.picks.append(
            Picks(
                person,
                listing.draw[row, at],
                rank,
                listing.sparsity[row, at],
                listing.gower[row, at],
            )
        )
