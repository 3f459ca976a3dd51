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

from .candidates import Candidates
from .decision import Decision
from .distances import Gower
from .diversity import POOL, Pool, diverse_ranks
from .kernels import BoolArray, Codes, FloatArray, IntArray, Listing, rank
from .protocols import Distance, Rule

ROWS_PER_CALL = 100_000
# Candidates listed per person at first, and how many times as many for people who need more.
N_LISTED = 16
LIST_MORE = 8
# Candidates of a wave, as a share of all that were asked before.
GROWTH = 5 / 6


@dataclass(frozen=True, eq=False)
class Ranking:
    """How candidates are chosen.

    Parameters
    ----------
    n_counterfactuals
        How many each person gets at most.
    rank_by
        ``"sparsity"`` and ``"distance"``, one or both, the first being decisive.
    distance
        The distance behind that name.
    tolerance
        Numeric differences up to this share of the training range do not count in sparsity.
    max_sparsity, max_distance
        Upper bounds on what is returned.
    rules
        Candidates must pass all of them.
    diversity
        From 0 to 1, how much several counterfactuals of a person must differ; None: the best.
    """

    n_counterfactuals: int
    rank_by: tuple[str, ...]
    distance: Distance
    tolerance: float = 0.0
    max_sparsity: int | None = None
    max_distance: float | None = None
    rules: tuple[Rule, ...] = ()
    diversity: float | None = None

    @property
    def n_wanted(self) -> int:
        """Valid candidates of a person to look for: all that are returned, or a pool of them."""
        return self.n_counterfactuals * (1 if self.diversity is None else POOL)


class Ranked:
    """A block of candidates in order, listed as far as anybody needs them.

    Attributes
    ----------
    candidates, ranking
        The block, and how it is ordered.
    n_wanted
        Valid candidates of a person to look for, as far as there are draws.
    passed
        Per rule, the candidates it lets pass, shape (n_people, n_draws).
    first
        The best few of everybody.
    """

    def __init__(self, candidates: Candidates, ranking: Ranking) -> None:
        self.candidates = candidates
        self.ranking = ranking
        self.n_wanted = min(ranking.n_wanted, candidates.draws.size)
        self.passed = {rule.name: rule(candidates) for rule in ranking.rules}
        distance = ranking.distance
        plain = type(distance) is Gower and distance.weights is None
        self._distance = None if plain else distance(candidates)
        n_listed = max(N_LISTED, 4 * self.n_wanted)
        self.first = self.list_allowed(np.arange(candidates.people.size), n_listed)

    def list_allowed(self, person: IntArray, n_best: int) -> Listing:
        """The best candidates of some people that may be returned."""
        allowed = self.candidates.distinct[self.candidates.group[person]]
        for kept in self.passed.values():
            allowed &= kept[person]
        return self._list(
            person, allowed, n_best, self.ranking.max_sparsity, self.ranking.max_distance
        )

    def list_all(self, person: IntArray) -> Listing:
        """All distinct candidates of some people in order, excluded ones too."""
        distinct = self.candidates.distinct[self.candidates.group[person]]
        return self._list(person, distinct, self.candidates.draws.size, None, None)

    def _list(
        self,
        person: IntArray,
        allowed: BoolArray,
        n_best: int,
        max_sparsity: int | None,
        max_distance: float | None,
    ) -> Listing:
        return rank(
            self.candidates.comparison.of(person),
            allowed,
            rank_by=self.ranking.rank_by,
            n_best=min(n_best, self.candidates.draws.size),
            tolerance=self.ranking.tolerance,
            max_sparsity=max_sparsity,
            max_distance=max_distance,
            distance=None if self._distance is None else self._distance[person],
        )


@dataclass(frozen=True, eq=False)
class Asked:
    """What the predictor said of single candidates, by group (as numbered for all) and draw."""

    group: IntArray
    draw: IntArray
    score: FloatArray
    valid: BoolArray


class Ledger:
    """What the predictor said of each candidate of a block, asked at most once.

    ``groups`` are the block's groups as numbered for all people; ``remembered`` is what was asked
    about them before, in another block or another pass. Scores of what is not known mean nothing.
    """

    def __init__(
        self,
        candidates: Candidates,
        decision: Decision,
        groups: IntArray,
        remembered: Sequence[Asked] = (),
    ) -> None:
        shape = candidates.distinct.shape
        self.candidates = candidates
        self.decision = decision
        self.groups = groups
        self.asked: list[Asked] = []
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
            scored = self.decision.score(self.candidates.choose(person[rows], draw[rows]).frame)
            self._note(group[rows], draw[rows], scored.score, scored.valid)
            self.asked.append(
                Asked(
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


class Waves:
    """The search through one ranked block: ``next_wave`` until everybody is ``settled``."""

    def __init__(self, ranked: Ranked, ledger: Ledger) -> None:
        self.ranked = ranked
        self.ledger = ledger
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

    def next_wave(self) -> None:
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
        valid[who, which] = self.ledger.ask(person[who], draw[who, which])
        return valid if self.pool is None else self.pool.keep(person, draw, valid)

    def answers(self) -> Picks:
        """What everybody gets of the valid candidates found."""
        found, ranking = Picks.join(self.picks), self.ranked.ranking
        if ranking.diversity is None:
            return found
        rank = diverse_ranks(
            self.ranked.candidates.comparison,
            found.person,
            found.draw,
            found.rank - 1,
            found.gower,
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


@dataclass(frozen=True, eq=False)
class Misses:
    """Nearest misses of people without a counterfactual, their scores, and why they have none."""

    picks: Picks
    reasons: list[str]

    @classmethod
    def none(cls) -> Misses:
        """Nobody's."""
        return cls(Picks.join([]), [])


def explain_misses(waves: Waves) -> Misses:
    """Why people who were asked for in vain have no counterfactual.

    Only here are candidates scored that a rule excludes. The nearest miss has the best score,
    then the best rank.
    """
    ranked, ledger = waves.ranked, waves.ledger
    person = np.flatnonzero(waves.settled & (waves.n_found == 0))
    listing = ranked.list_all(person)
    n_draws = listing.draw.shape[1]
    listed = np.arange(n_draws) < listing.n_allowed[:, None]
    who, at = np.nonzero(listed)
    ledger.ask(person[who], listing.draw[who, at])
    group = ranked.candidates.group[person][:, None]
    valid = ledger.valid[group, listing.draw] & listed
    shortfall = ledger.decision.shortfall(ledger.score[group, listing.draw])
    nearest = np.lexsort((shortfall, ~valid, ~listed), axis=-1)[:, 0]
    rows = np.arange(person.size)
    picks = Picks(
        person,
        listing.draw[rows, nearest],
        np.zeros_like(person),
        listing.sparsity[rows, nearest],
        listing.gower[rows, nearest],
    )
    return Misses(picks, _reasons(ranked, person, listing, valid))


def _reasons(ranked: Ranked, person: IntArray, listing: Listing, valid: BoolArray) -> list[str]:
    """Each person's reason: no candidate is valid, or every valid one is excluded by something."""
    ranking = ranked.ranking
    excluded = {
        name: ~np.take_along_axis(kept[person], listing.draw.astype(np.int64), axis=1)
        for name, kept in ranked.passed.items()
    }
    if ranking.max_sparsity is not None:
        excluded[f"max_sparsity={ranking.max_sparsity}"] = listing.sparsity > ranking.max_sparsity
    if ranking.max_distance is not None:
        excluded[f"max_distance={ranking.max_distance}"] = listing.distance > ranking.max_distance
    allowed = np.arange(valid.shape[1]) < listing.n_allowed[:, None]
    for out in excluded.values():
        allowed &= ~out
    reasons = []
    for row, n_valid in enumerate(valid.sum(axis=1)):
        n_distinct, n_allowed = listing.n_allowed[row], int(allowed[row].sum())
        looked_at = f"{valid.shape[1]} draws ({n_distinct} distinct, {n_allowed} allowed)"
        if not n_valid:
            reasons.append(f"no valid candidate among {looked_at}")
            continue
        counts = {name: int((out[row] & valid[row]).sum()) for name, out in excluded.items()}
        named = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
        reasons.append(f"all {n_valid} valid candidates among {looked_at} are excluded by {named}")
    return reasons
