"""The search for all people: generate, rank, ask, walk, confirm.

Paper, sections "Generation" and "Post-processing", and beyond it the walk. Takes the people to
explain and a plan; gives every counterfactual found and, for everybody else, the reason and the
nearest miss.

Always true: what is found does not depend on blocks, threads or the order of people; every
counterfactual was valid in a last, fresh call of the predictor on the rows that are returned.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..constraints.collection import Constraints
from ..constraints.limits import FactualLimits
from ..errors import ConstraintError
from ..execution.threads import map_ordered
from ..generate import Block, blocks, generate
from ..kernels import IntArray
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.misses import Misses, explain_misses
from ..postprocess.ranking import Ranked, Ranking
from ..postprocess.validation import CachedScores, LazyValidation, Picks, PredictionCache
from ..predictors.decision import Decision
from ..protocols import Callback, Generator, Progress
from ..tables.schema import EncodedRows
from .exact import Exact, prove
from .greedy import Terms, Walk
from .outcome import Outcome, Picked
from .selection import Choice, select

STOPPED = "stopped before an answer was found"
TOO_FAR = "every row on the way to a valid candidate is excluded by max_distance"
# Draws up to so many times the first are tried for targets inside the support. After that those
# outside will do too.
SUPPORTED = 10
# What a walk takes in memory, in draws.
DRAWS_PER_WALK = 40


@dataclass(frozen=True, eq=False)
class Walking:
    """How answers are made of valid candidates.

    Parameters
    ----------
    targets, last_targets
        How candidates are chosen to walk towards: so that the answer may be looked for among the
        rows on the way, and, for people who have none then, so that they could be answers.
    terms, choice
        What a row must be, and which of several is returned.
    """

    targets: Ranking
    last_targets: Ranking
    terms: Terms
    choice: Choice


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
    keep
        Probability with which a draw keeps an own value where it can.
    exact
        How answers are proven to be the best, before anything is drawn; None: they are not.
    memory
        Megabytes that one block may take.
    n_jobs
        Threads over blocks; the predictor is called from the caller's thread only.
    watch
        Called between waves; may stop the search.
    walking
        How to go on from valid candidates; None: they are the answers.
    last
        Whether whoever finds nothing now has no answer.
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
    callback: Callback
    walking: Walking | None = None
    keep: float = 0.0
    exact: Exact | None = None
    last: bool = True

    def stages(self) -> Iterator[Plan]:
        """The plan with more and more draws, for those who have no answer yet."""
        plan = self
        if self.exact is not None:
            yield self
            plan = replace(self, exact=None)
        if self.walking is not None:
            most = min(SUPPORTED * self.n_samples, self.max_samples)
            plan = replace(self, ranking=self.walking.targets, last=False)
            yield plan
            while plan.n_samples < most:
                plan = replace(plan, n_samples=min(2 * plan.n_samples, most))
                yield plan
            plan = replace(plan, ranking=self.walking.last_targets, last=True)
        yield plan
        while plan.n_samples < plan.max_samples:
            # All draws, not only the new ones: counts are whole, and what was asked is remembered.
            plan = replace(plan, n_samples=min(2 * plan.n_samples, plan.max_samples))
            yield plan


def search(plan: Plan, rows: EncodedRows, people: IntArray) -> Outcome:
    """Counterfactuals for people; those who have none are searched for again, if allowed."""
    personal = FactualLimits(plan.constraints, rows, whole=plan.keep > 0)
    memory = list[CachedScores]()
    parts: list[Outcome] = []
    for stage in plan.stages():
        for found in parts[-1:]:  # whoever has nothing is looked for anew
            found.forget(people)
        parts.append(_search_once(stage, personal, people, memory))
        left = parts[-1].reasons.keys() - parts[-1].proven
        people = np.array(sorted(left), dtype=np.int64)
        if not people.size or parts[-1].stopped:
            break
    return Outcome.merge(rows, parts)


def _search_once(
    plan: Plan, personal: FactualLimits, people: IntArray, memory: list[CachedScores]
) -> Outcome:
    """Counterfactuals for people, each confirmed by a fresh call on the rows returned.

    One that fails is dropped, and its person is searched again without it, until one stands or
    the candidates run out.
    """
    rows, nobody = personal.rows, np.empty(0, dtype=np.int64)
    failed, parts = ExcludeUnstable(nobody, nobody), list[Outcome]()
    while True:
        found = _find(plan, personal, people, memory)
        bad = _confirm(plan, rows, found)
        if not bad.owner.size:
            return Outcome.merge(rows, [*parts, found])
        people = np.unique(bad.owner)
        parts.append(found.without(people))
        failed = ExcludeUnstable(
            np.concatenate([failed.person, bad.owner]), np.concatenate([failed.draw, bad.draw])
        )
        rules = [rule for rule in plan.ranking.rules if not isinstance(rule, ExcludeUnstable)]
        plan = replace(plan, ranking=replace(plan.ranking, rules=(*rules, failed)))


def _confirm(plan: Plan, rows: EncodedRows, found: Outcome) -> Picked:
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
    found.add_seconds({"confirm": time.perf_counter() - started})
    return bad


def _find(
    plan: Plan, personal: FactualLimits, people: IntArray, memory: list[CachedScores]
) -> Outcome:
    """One pass over people, block by block; what is asked is added to ``memory``."""
    rows = personal.rows
    this = _Pass(plan, personal, people.size, memory)
    parts = list(this.draw(people) if plan.exact is None else this.prove(plan.exact, people))
    found = Outcome.merge(rows, parts)
    unanswered = np.zeros(len(rows), dtype=bool)
    unanswered[people] = True
    unanswered[found.answers.owner] = False
    # Only a distance that is greater for fewer changes leaves a walk to an allowed target nothing.
    reason = STOPPED if this.stopped else TOO_FAR
    left = dict.fromkeys(np.flatnonzero(unanswered).tolist(), reason)
    found.reasons = left | found.reasons
    found.stopped = this.stopped
    return found


class _Pass:
    """What one pass must remember from block to block."""

    def __init__(
        self, plan: Plan, personal: FactualLimits, n_people: int, memory: list[CachedScores]
    ) -> None:
        self.plan = plan
        self.personal = personal
        self.n_people = n_people
        self.memory = memory
        self.earlier = list(memory)
        self.before: list[CachedScores] = []
        self.n_settled = self.n_evaluated = 0
        self.stopped = False

    def prove(self, exact: Exact, people: IntArray) -> Iterator[Outcome]:
        """What is proven of people, block by block."""
        plan, nobody = self.plan, np.empty(0, dtype=np.int64)
        again = [rule for rule in plan.ranking.rules if isinstance(rule, ExcludeUnstable)]
        failed = again[0] if again else ExcludeUnstable(nobody, nobody)
        return prove(
            exact, self.personal, people, failed, plan.memory, plan.n_jobs, self._on_progress
        )

    def draw(self, people: IntArray) -> Iterator[Outcome]:
        """What the draws for people come to, block by block."""
        plan, n_draws = self.plan, self.plan.n_samples
        if plan.walking is not None:
            n_draws += DRAWS_PER_WALK * plan.ranking.n_counterfactuals
        todo = blocks(self.personal, people, n_draws, plan.memory)
        for block, ranked, seconds in map_ordered(self.prepare, todo, plan.n_jobs):
            found = self.settle(block, ranked)
            found.add_seconds(seconds)
            yield found
            if self.stopped:
                break

    def prepare(self, block: Block) -> tuple[Block, Ranked, dict[str, float]]:
        """Steps that need no predictor, in any thread."""
        plan = self.plan
        started = time.perf_counter()
        draws = np.arange(plan.n_samples, dtype=np.int64)
        candidates = generate(plan.generator, self.personal, block, draws, plan.seed, plan.keep)
        generated = time.perf_counter()
        ranked = Ranked(candidates, plan.ranking)
        done = time.perf_counter()
        return block, ranked, {"generate": generated - started, "rank": done - generated}

    def settle(self, block: Block, ranked: Ranked) -> Outcome:
        """Steps that ask the predictor, in the caller's thread."""
        started = time.perf_counter()
        # A group may go on from the block before; all of them may from an earlier pass.
        remembered = (*self.earlier, *self.before)
        cache = PredictionCache(
            ranked.candidates, self.plan.decision, np.unique(block.group), remembered
        )
        validation = LazyValidation(ranked, cache)
        while not self.stopped and not validation.settled.all():
            validation.next_batch()
            self._on_progress(int(validation.settled.sum()), cache.n_evaluated)
        misses = explain_misses(validation) if self.plan.last else Misses.none()
        answers, n_evaluated = self._walk(ranked, cache, validation.answers())
        one_group = block.group[0] == block.group[-1]
        self.before = [*(self.before if one_group else ()), *cache.asked]
        self.memory += cache.asked
        self.n_settled += block.people.size
        self.n_evaluated += cache.n_evaluated + n_evaluated
        missed = block.people[misses.picks.person].tolist()
        return Outcome(
            answers=answers,
            misses=_picked(cache, misses.picks),
            reasons=dict(zip(missed, misses.reasons, strict=True)),
            n_evaluated=cache.n_evaluated + n_evaluated,
            seconds={"validity": time.perf_counter() - started},
        )

    def _walk(self, ranked: Ranked, cache: PredictionCache, found: Picks) -> tuple[Picked, int]:
        """The answers that the valid candidates found lead to, and how many rows were asked."""
        walking, candidates = self.plan.walking, cache.candidates
        if walking is None:
            return _picked(cache, found), 0
        # By person and rank, so that of equal rows that of the better target is kept.
        found = found.take(np.lexsort((found.rank, found.person)))
        stable = ranked.passed.get(ExcludeUnstable.name, np.ones(candidates.shape, dtype=bool))
        walk = Walk(walking.terms, cache, found, ~stable)
        while not self.stopped and not walk.ended:
            walk.next_round()
            self._on_progress(0, cache.n_evaluated + walk.register.n_evaluated)
        chosen = select(walking.choice, candidates, walk)
        register = walk.register
        picked = Picked(
            chosen=register.chosen(chosen.row).compacted(),
            draw=candidates.draws[register.draw[chosen.row]],
            rank=chosen.rank,
            score=register.score[chosen.row],
            sparsity=chosen.sparsity,
            gower=chosen.gower,
        )
        return picked.in_order(), walk.register.n_evaluated

    def _on_progress(self, n_settled: int, n_evaluated: int) -> bool:
        """Tell how far the block has come; the watcher may stop the search."""
        so_far = self.n_settled + n_settled, self.n_evaluated + n_evaluated
        self.stopped = bool(self.plan.callback(Progress(self.n_people, *so_far)))
        return self.stopped


def _picked(cache: PredictionCache, picks: Picks) -> Picked:
    """Picks taken out of their block."""
    candidates = cache.candidates
    picked = Picked(
        chosen=candidates.select(picks.person, picks.draw).compacted(),
        draw=candidates.draws[picks.draw],
        rank=picks.rank,
        score=cache.score[candidates.group[picks.person], picks.draw],
        sparsity=picks.sparsity.astype(np.int64),
        gower=picks.gower,
    )
    return picked.in_order()
