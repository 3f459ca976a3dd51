"""Step 3: from candidates to counterfactuals.

Paper, section "Post-processing". Takes a block of candidates, puts each person's in order (by
number of changes, then distance, then draw number) and asks the predictor about the best few of
all people together, in growing waves, until everybody has enough valid ones.

Always true: the answer is that of evaluating every candidate; the predictor sees a candidate at
most once; nothing here draws random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .candidates import Candidates
from .decision import Decision
from .distances import Gower, sparsity
from .kernels import BoolArray, FloatArray, IntArray
from .protocols import Costs, Distance, Rule

ROWS_PER_CALL = 100_000


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
    rules
        Candidates must pass all of them.
    """

    n_counterfactuals: int
    rank_by: tuple[str, ...]
    distance: Distance
    tolerance: float = 0.0
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, eq=False)
class Ranked:
    """A block in order; all arrays have the shape (n_people, n_draws).

    Parameters
    ----------
    candidates, costs
        The block and what its candidates cost.
    passed
        Per rule, the candidates it lets pass.
    order
        Each person's draws, the best first, those that may not be returned last.
    n_allowed : (n_people,)
        How many of them may be returned.
    """

    candidates: Candidates
    costs: Costs
    passed: dict[str, BoolArray]
    order: IntArray
    n_allowed: IntArray


def rank(candidates: Candidates, ranking: Ranking) -> Ranked:
    """The candidates of a block in the order in which they would be returned."""
    gower = Gower()(candidates)
    costs = Costs(
        sparsity=sparsity(candidates, ranking.tolerance),
        gower=gower,
        distance=gower if ranking.distance.name == "gower" else ranking.distance(candidates),
    )
    passed = {rule.name: rule(candidates, costs) for rule in ranking.rules}
    allowed = candidates.distinct[candidates.group]
    for kept in passed.values():
        allowed = allowed & kept
    order = np.lexsort((*_keys(costs, ranking.rank_by), ~allowed), axis=-1)
    return Ranked(candidates, costs, passed, order, allowed.sum(axis=1))


def _keys(costs: Costs, rank_by: Sequence[str]) -> list[np.ndarray]:
    """Sort keys, the decisive one last; a stable sort leaves ties in the order of draws."""
    return [getattr(costs, name) for name in reversed(rank_by)]


class Ledger:
    """What the predictor said of each candidate of a block, asked at most once."""

    def __init__(self, candidates: Candidates, decision: Decision) -> None:
        shape = candidates.distinct.shape
        self.candidates = candidates
        self.decision = decision
        self.known: BoolArray = np.zeros(shape, dtype=bool)
        self.valid: BoolArray = np.zeros(shape, dtype=bool)
        self.score: FloatArray = np.full(shape, np.nan)
        self.n_evaluated = 0

    def continue_group(self, before: Ledger) -> None:
        """Take over what the block before asked about its last group, which is our first."""
        for ours, theirs in (
            (self.known, before.known),
            (self.valid, before.valid),
            (self.score, before.score),
        ):
            ours[0] = theirs[-1]

    def ask(self, person: IntArray, draw: IntArray) -> BoolArray:
        """Whether each candidate, by person and draw in this block, is valid."""
        group = self.candidates.group[person]
        new = np.flatnonzero(~self.known[group, draw])
        cell = group[new] * self.known.shape[1] + draw[new]
        new = new[np.unique(cell, return_index=True)[1]]
        for start in range(0, new.size, ROWS_PER_CALL):
            rows = new[start : start + ROWS_PER_CALL]
            scored = self.decision.score(self.candidates.frame(person[rows], draw[rows]))
            at = group[rows], draw[rows]
            self.known[at], self.valid[at], self.score[at] = True, scored.valid, scored.score
        self.n_evaluated += new.size
        return self.valid[group, draw]


@dataclass(eq=False)
class Waves:
    """The search through one ranked block; ``next_wave`` until ``settled`` is all true."""

    ranked: Ranked
    ledger: Ledger
    n_counterfactuals: int
    n_asked: IntArray = field(init=False)
    n_found: IntArray = field(init=False)
    picks: list[tuple[IntArray, IntArray, IntArray]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.n_asked = np.zeros_like(self.ranked.n_allowed)
        self.n_found = np.zeros_like(self.ranked.n_allowed)

    @property
    def settled(self) -> BoolArray:
        """People who have enough, or nothing left to try."""
        enough = self.n_found >= self.n_counterfactuals
        return enough | (self.n_asked >= self.ranked.n_allowed)

    def next_wave(self) -> None:
        """Ask for everybody unsettled about as many candidates as have been asked before."""
        person = np.flatnonzero(~self.settled)
        width = max(self.n_counterfactuals, int(self.n_asked[person[0]]))
        place = self.n_asked[person][:, None] + np.arange(width)
        inside = place < self.ranked.n_allowed[person][:, None]
        draw = self.ranked.order[person[:, None], np.where(inside, place, 0)]
        valid = np.zeros(inside.shape, dtype=bool)
        who, which = np.nonzero(inside)
        valid[who, which] = self.ledger.ask(person[who], draw[who, which])
        rank = self.n_found[person][:, None] + np.cumsum(valid, axis=1)
        who, which = np.nonzero(valid & (rank <= self.n_counterfactuals))
        self.picks.append((person[who], draw[who, which], rank[who, which]))
        self.n_found[person] += valid.sum(axis=1)
        self.n_asked[person] += width

    def chosen(self) -> tuple[IntArray, IntArray, IntArray]:
        """Person, draw and rank (from 1) of every counterfactual found."""
        nobody = (np.empty(0, dtype=np.int64),) * 3
        person, draw, rank = map(np.concatenate, zip(nobody, *self.picks, strict=True))
        order = np.lexsort((rank, person))
        return person[order], draw[order], rank[order]


@dataclass(frozen=True, eq=False)
class Misses:
    """People of a block without a counterfactual, why, and the draw that came nearest."""

    person: IntArray
    draw: IntArray
    score: FloatArray
    reasons: list[str]


def explain_misses(waves: Waves, rank_by: Sequence[str]) -> Misses:
    """Why people who were asked for in vain have no counterfactual.

    Only here are candidates scored that a rule excludes. The nearest miss has the best score,
    then the best rank.
    """
    ranked, ledger = waves.ranked, waves.ledger
    candidates = ranked.candidates
    person = np.flatnonzero(waves.settled & (waves.n_found == 0))
    distinct = candidates.distinct[candidates.group[person]]
    who, draw = np.nonzero(distinct)
    ledger.ask(person[who], draw)
    group = candidates.group[person]
    shortfall = ledger.decision.shortfall(ledger.score[group])
    valid = ledger.valid[group] & distinct
    keys = [key[person] for key in _keys(ranked.costs, rank_by)]
    order = np.lexsort((*keys, shortfall, ~valid, ~distinct), axis=-1)
    nearest = order[:, 0]
    return Misses(
        person=person,
        draw=nearest,
        score=ledger.score[group, nearest],
        reasons=[
            _reason(valid[i], distinct[i], {name: kept[p] for name, kept in ranked.passed.items()})
            for i, p in enumerate(person)
        ],
    )


def _reason(valid: BoolArray, distinct: BoolArray, passed: dict[str, BoolArray]) -> str:
    n_valid = int(valid.sum())
    if not n_valid:
        return f"no valid candidate among {valid.size} draws ({int(distinct.sum())} distinct)"
    counts = {name: int((valid & ~kept).sum()) for name, kept in passed.items()}
    excluding = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
    return f"all {n_valid} valid candidates are excluded by {excluding}"
