"""The paper's search as a composition of its steps: generate, rank, ask, confirm.

Takes the people to explain and a fitted generator; gives every counterfactual found and, for
everybody else, the reason and the nearest miss.

Always true: what is found does not depend on blocks, threads or the order of people; every
counterfactual was valid in a last, fresh call of the predictor on the rows that are returned.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pandas as pd

from .candidates import Chosen
from .constraints.bound import Constraints
from .constraints.personal import Personal
from .decision import Decision
from .errors import ConstraintError
from .generate import Block, blocks, generate
from .kernels import BoolArray, FloatArray, IntArray
from .postprocess import Asked, Ledger, Picks, Ranked, Ranking, Waves, explain_misses
from .protocols import Generator, Progress, Watcher
from .rules import NotAgain
from .schema import Rows
from .threads import map_ordered

STOPPED = "stopped before an answer was found"


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps 2 and 3 of the paper with all their settings.

    Parameters
    ----------
    generator, decision, ranking
        The fitted model, the black box with what is desired, and how to choose.
    constraints
        What answers are checked against at last.
    n_samples, max_samples, seed
        Draws per person, how many people without an answer get at most, and what they hang on.
    memory
        Megabytes that one block may take.
    n_jobs
        Threads over blocks; the predictor is called from the caller's thread only.
    watch
        Called between waves; may stop the search.
    """

    generator: Generator
    decision: Decision
    ranking: Ranking
    constraints: Constraints
    n_samples: int
    max_samples: int
    seed: int
    memory: float
    n_jobs: int | None
    watch: Watcher


@dataclass(frozen=True, eq=False)
class Picked:
    """Candidates picked out of their blocks, one entry each.

    Parameters
    ----------
    chosen
        Whose they are, and the rows themselves.
    draw, rank
        Draw number, and place among the person's counterfactuals from 1.
    score, sparsity, gower
        What the predictor said, and what the candidate costs.
    """

    chosen: Chosen
    draw: IntArray
    rank: IntArray
    score: FloatArray
    sparsity: IntArray
    gower: FloatArray

    @property
    def owner(self) -> IntArray:
        """Position of each one's person among the factuals."""
        return self.chosen.owner

    @property
    def frame(self) -> pd.DataFrame:
        """The rows themselves."""
        return self.chosen.frame

    def take(self, places: IntArray | BoolArray) -> Picked:
        """Those at the given places."""
        arrays = (getattr(self, field.name)[places] for field in fields(self)[1:])
        return Picked(self.chosen.take(places), *arrays)

    def in_order(self) -> Picked:
        """The same, by person and rank."""
        return self.take(np.lexsort((self.rank, self.owner)))


@dataclass(eq=False)
class Found:
    """What a search came to.

    Parameters
    ----------
    answers, misses
        Counterfactuals, and the nearest misses of people without any; by person, then rank.
    reasons
        Why people without an answer have none, by position among the factuals.
    n_evaluated
        Distinct candidates asked.
    n_unstable
        Counterfactuals that failed when asked again.
    stopped
        Whether the search was stopped before everybody was settled.
    seconds
        Seconds by step, added up over threads.
    """

    answers: Picked
    misses: Picked
    reasons: dict[int, str] = field(default_factory=dict)
    n_evaluated: int = 0
    n_unstable: int = 0
    stopped: bool = False
    seconds: dict[str, float] = field(default_factory=dict)


def search(plan: Plan, rows: Rows, people: IntArray) -> Found:
    """Counterfactuals for people, and twice as many draws for those who have none, if allowed."""
    personal, memory = Personal(plan.constraints, rows), list[Asked]()
    found = _search_once(plan, personal, people, memory)
    while plan.n_samples < plan.max_samples and not found.stopped:
        people = np.array(sorted(found.reasons), dtype=np.int64)
        if not people.size:
            break
        # All draws, not only the new ones: counts are whole, and what was asked is remembered.
        plan = replace(plan, n_samples=min(2 * plan.n_samples, plan.max_samples))
        before = replace(found, misses=found.misses.take(people[:0]), reasons={})
        found = _merge(rows, [before, _search_once(plan, personal, people, memory)])
    return found


def _search_once(plan: Plan, personal: Personal, people: IntArray, memory: list[Asked]) -> Found:
    """Counterfactuals for people, each confirmed by a fresh call on the rows returned.

    One that fails is dropped, and its person is searched again without it, until one stands or
    the candidates run out.
    """
    rows, nobody = personal.rows, np.empty(0, dtype=np.int64)
    failed, parts = NotAgain(nobody, nobody), list[Found]()
    while True:
        found = _find(plan, personal, people, memory)
        bad = _confirm(plan, rows, found)
        if not bad.owner.size:
            return _merge(rows, [*parts, found])
        people = np.unique(bad.owner)
        parts.append(_without(found, people))
        failed = NotAgain(
            np.concatenate([failed.person, bad.owner]), np.concatenate([failed.draw, bad.draw])
        )
        rules = [rule for rule in plan.ranking.rules if not isinstance(rule, NotAgain)]
        plan = replace(plan, ranking=replace(plan.ranking, rules=(*rules, failed)))


def found_nothing(rows: Rows, people: IntArray, reason: str) -> Found:
    """The outcome for people who cannot be searched for at all."""
    return Found(_join(rows, []), _join(rows, []), dict.fromkeys(people.tolist(), reason))


def _confirm(plan: Plan, rows: Rows, found: Found) -> Picked:
    """The counterfactuals that do not stand up to a fresh call on their frame."""
    started = time.perf_counter()
    answers = found.answers
    for name, broken in plan.constraints.broken(rows, answers.owner, answers.frame).items():
        if broken.any():
            raise ConstraintError(
                f"{name!r} does not hold for {int(broken.sum())} of {broken.size} answers although "
                "it did when it was first asked. A condition must say the same of a row each time."
            )
    fresh = plan.decision.score(found.answers.frame)
    bad = found.answers.take(~fresh.valid)
    found.answers = replace(found.answers, score=fresh.score)
    found.n_unstable += bad.owner.size
    _add(found.seconds, {"confirm": time.perf_counter() - started})
    return bad


def _find(plan: Plan, personal: Personal, people: IntArray, memory: list[Asked]) -> Found:
    """One pass over people, block by block; what is asked is added to ``memory``."""
    rows = personal.rows
    this = _Pass(plan, personal, people.size, memory)
    todo = blocks(personal, people, plan.n_samples, plan.memory)
    parts = []
    for block, ranked, seconds in map_ordered(this.prepare, todo, plan.n_jobs):
        parts.append(this.settle(block, ranked))
        _add(parts[-1].seconds, seconds)
        if this.stopped:
            break
    found = _merge(rows, parts)
    unanswered = np.zeros(len(rows), dtype=bool)
    unanswered[people] = True
    unanswered[found.answers.owner] = False
    stopped = dict.fromkeys(np.flatnonzero(unanswered).tolist(), STOPPED)
    found.reasons = stopped | found.reasons
    found.stopped = this.stopped
    return found


class _Pass:
    """What one pass must remember from block to block."""

    def __init__(self, plan: Plan, personal: Personal, n_people: int, memory: list[Asked]) -> None:
        self.plan = plan
        self.personal = personal
        self.n_people = n_people
        self.memory = memory
        self.earlier = list(memory)
        self.before: list[Asked] = []
        self.n_settled = self.n_evaluated = 0
        self.stopped = False

    def prepare(self, block: Block) -> tuple[Block, Ranked, dict[str, float]]:
        """Steps that need no predictor, in any thread."""
        plan = self.plan
        started = time.perf_counter()
        draws = np.arange(plan.n_samples, dtype=np.int64)
        candidates = generate(plan.generator, self.personal, block, draws, plan.seed)
        generated = time.perf_counter()
        ranked = Ranked(candidates, plan.ranking)
        done = time.perf_counter()
        return block, ranked, {"generate": generated - started, "rank": done - generated}

    def settle(self, block: Block, ranked: Ranked) -> Found:
        """Steps that ask the predictor, in the caller's thread."""
        started = time.perf_counter()
        # A group may go on from the block before; all of them may from an earlier pass.
        remembered = (*self.earlier, *self.before)
        ledger = Ledger(ranked.candidates, self.plan.decision, np.unique(block.group), remembered)
        waves = Waves(ranked, ledger)
        while not self.stopped and not waves.settled.all():
            waves.next_wave()
            n_settled = self.n_settled + int(waves.settled.sum())
            progress = Progress(self.n_people, n_settled, self.n_evaluated + ledger.n_evaluated)
            self.stopped = bool(self.plan.watch(progress))
        misses = explain_misses(waves)
        one_group = block.group[0] == block.group[-1]
        self.before = [*(self.before if one_group else ()), *ledger.asked]
        self.memory += ledger.asked
        self.n_settled += block.people.size
        self.n_evaluated += ledger.n_evaluated
        missed = block.people[misses.picks.person].tolist()
        return Found(
            answers=_picked(ledger, waves.answers()),
            misses=_picked(ledger, misses.picks),
            reasons=dict(zip(missed, misses.reasons, strict=True)),
            n_evaluated=ledger.n_evaluated,
            seconds={"validity": time.perf_counter() - started},
        )


def _picked(ledger: Ledger, picks: Picks) -> Picked:
    """Picks taken out of their block."""
    candidates = ledger.candidates
    picked = Picked(
        chosen=candidates.choose(picks.person, picks.draw).without_block(),
        draw=candidates.draws[picks.draw],
        rank=picks.rank,
        score=ledger.score[candidates.group[picks.person], picks.draw],
        sparsity=picks.sparsity.astype(np.int64),
        gower=picks.gower,
    )
    return picked.in_order()


def _without(found: Found, people: IntArray) -> Found:
    """The same without some people."""
    answers = found.answers.take(~np.isin(found.answers.owner, people))
    return replace(found, answers=answers)


def _merge(rows: Rows, parts: Sequence[Found]) -> Found:
    """All parts as one, by person."""
    if len(parts) == 1:
        return parts[0]
    seconds: dict[str, float] = {}
    for part in parts:
        _add(seconds, part.seconds)
    return Found(
        answers=_join(rows, [part.answers for part in parts]),
        misses=_join(rows, [part.misses for part in parts]),
        reasons={person: why for part in parts for person, why in part.reasons.items()},
        n_evaluated=sum(part.n_evaluated for part in parts),
        n_unstable=sum(part.n_unstable for part in parts),
        stopped=any(part.stopped for part in parts),
        seconds=seconds,
    )


def _add(seconds: dict[str, float], more: Mapping[str, float]) -> None:
    """Add to the seconds of each step."""
    for step, passed in more.items():
        seconds[step] = seconds.get(step, 0.0) + passed


def _join(rows: Rows, parts: Sequence[Picked]) -> Picked:
    """All picked candidates as one, by person and rank."""
    whole, real = np.empty(0, dtype=np.int64), np.empty(0)
    blank = Picked(Chosen.join(rows, []), whole, whole, real, whole, real)
    arrays = (
        np.concatenate([getattr(part, field.name) for part in (blank, *parts)])
        for field in fields(Picked)[1:]
    )
    return Picked(Chosen.join(rows, [part.chosen for part in parts]), *arrays).in_order()
