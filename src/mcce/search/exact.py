"""The exact search: the best of all rows that the model could draw, with a proof.

Beyond the paper, which ranks some of these rows. The predictor scores the first few of everybody
together, in growing batches. People with more rows than the budget allows, or whose rows take
longer to list, are left to the sampling stages.

Always true: a row is scored at most once; nobody's answer, proof or end of budget depends on
anybody else; memory does not grow with the number of people or of rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..candidates import CandidateRows
from ..generate import blocks
from ..kernels import ExpiredError, FloatArray, IntArray
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.validation import ROWS_PER_CALL, Answers
from ..runtime.threads import map_ordered
from ..tables.schema import OWN
from .outcome import Outcome
from .proof import MAX_LISTED, ExactSettings, Proof, change_costs
from .sampling import SamplingStage, unsettled_reasons
from .stage import BlockMonitor, Monitor, Task, no_unstable


@dataclass(frozen=True, eq=False)
class ExactStage:
    """Visit rows in the order of the ranking until the best is proven."""

    task: Task
    settings: ExactSettings
    draws: SamplingStage | None = None
    final: bool = True
    unstable: ExcludeUnstable = field(default_factory=no_unstable)

    def excluding(self, unstable: ExcludeUnstable) -> ExactStage:
        """The same stage without rows that failed the final call."""
        # Answers from draws have negative numbers, so as not to be mixed up with places.
        drawn = unstable.draw < 0
        listed = ExcludeUnstable(unstable.person[~drawn], unstable.draw[~drawn])
        failed = ExcludeUnstable(unstable.person[drawn], -1 - unstable.draw[drawn])
        draws = None if self.draws is None else self.draws.excluding(failed)
        return replace(self, unstable=listed, draws=draws)

    def run(self, people: IntArray) -> Outcome:
        """Search for people; those whom the time does not suffice for have answers from draws."""
        drawn = None if self.draws is None else self.draws.run(people)
        proven = self._run(people)
        if drawn is None or not proven.stopped:
            return proven
        left = np.array(sorted(proven.reasons), dtype=np.int64)
        answers = drawn.answers.take(np.isin(drawn.answers.owner, left))
        answers = replace(answers, draw=-1 - answers.draw)
        return replace(
            proven.without_reasons(np.unique(answers.owner)),
            answers=Answers.concat(self.task.factuals, [proven.answers, answers]),
            n_evaluated=proven.n_evaluated + drawn.n_evaluated,
        )

    def _run(self, people: IntArray) -> Outcome:
        """List rows for people, block by block."""
        monitor = Monitor(self.task.callback, people.size)
        outcome = Outcome.merge(self.task.factuals, list(self._run_blocks(people, monitor)))
        reasons = unsettled_reasons(people, outcome, stopped=monitor.stopped)
        return replace(outcome, reasons=reasons, stopped=monitor.stopped)

    def _run_blocks(self, people: IntArray, monitor: Monitor) -> Iterator[Outcome]:
        task = self.task
        for block in blocks(task.personal, people, MAX_LISTED, task.memory):
            started = time.perf_counter()
            proofs = [
                Proof(self.settings, task.personal, int(person), self.unstable)
                for person in block.people
            ]
            progress = monitor.block()
            self._prove(proofs, progress)
            outcome = self._conclude(proofs)
            progress.finish(len(proofs), outcome.n_evaluated)
            yield outcome.with_seconds({"exact": time.perf_counter() - started})
            if monitor.stopped:
                return

    def _prove(self, proofs: Sequence[Proof], monitor: BlockMonitor) -> None:
        """Go on until every proof is closed, or the search is stopped."""
        n_closed = n_evaluated = 0
        while not monitor.stopped and any(proof.is_open for proof in proofs):
            used_up = [proof for proof in proofs if proof.is_open and not proof.n_left]
            try:
                for _ in map_ordered(self._list_more, used_up, self.task.n_jobs):
                    if monitor.report(n_closed, n_evaluated):
                        return
            except ExpiredError:
                monitor.stop()
                return
            self._evaluate([proof for proof in proofs if proof.n_left])
            n_closed = sum(not proof.is_open for proof in proofs)
            n_evaluated = sum(proof.n_allowed for proof in proofs)
            monitor.report(n_closed, n_evaluated)

    def _list_more(self, proof: Proof) -> None:
        with self.task.limited():
            proof.list_more()

    def _evaluate(self, proofs: Sequence[Proof]) -> None:
        """Evaluate the next rows of some people together."""
        if not proofs:
            return
        factuals, settings = self.task.factuals, self.settings
        parts = [proof.next_rows() for proof in proofs]
        sizes = np.array([part.shape[1] for part in parts])
        owner = np.repeat([proof.person for proof in proofs], sizes)
        codes = np.concatenate(parts, axis=1)
        codes = np.where(codes == factuals.exact[factuals.schema.mutable][:, owner], OWN, codes)
        rows = CandidateRows(factuals, owner, codes, factuals.tables)
        unstable = [proof.is_unstable(n) for proof, n in zip(proofs, sizes, strict=True)]
        allowed = ~np.concatenate(unstable)
        if self.task.consequences is not None:
            allowed &= self.task.consequences.have_actions(codes)
        valid, score = np.zeros(owner.size, dtype=bool), np.full(owner.size, np.nan)
        for start in range(0, owner.size, ROWS_PER_CALL):
            piece = np.arange(start, min(start + ROWS_PER_CALL, owner.size))
            for keep in settings.filters:
                allowed[piece] &= keep.keeps(rows.take(piece))
            piece = piece[allowed[piece]]
            scored = settings.decision.score(rows.take(piece).frame)
            valid[piece], score[piece] = scored.valid, scored.score
        starts = np.cumsum(sizes) - sizes
        place = np.arange(owner.size) - np.repeat(starts, sizes)
        place += np.repeat([proof.n_evaluated for proof in proofs], sizes)
        sparsity = (codes != OWN).sum(axis=0)
        evaluated = Answers(rows, place, np.zeros_like(place), score, sparsity, _gower(rows))
        for proof, start, size in zip(proofs, starts, sizes, strict=True):
            theirs = np.arange(start, start + size)
            proof.update(evaluated.take(theirs), allowed[theirs], valid[theirs])

    def _conclude(self, proofs: Sequence[Proof]) -> Outcome:
        """The outcome for some people."""
        factuals = self.task.factuals
        unanswered = [proof for proof in proofs if proof.holds and not proof.n_valid]
        misses = [proof.miss for proof in unanswered if proof.miss is not None]
        return Outcome(
            answers=Answers.concat(factuals, [part for proof in proofs for part in proof.answers]),
            misses=Answers.concat(factuals, misses),
            reasons={proof.person: _reason(self.settings, proof) for proof in unanswered},
            n_evaluated=sum(proof.n_allowed for proof in proofs),
            proven=frozenset(
                proof.person for proof in proofs if proof.holds and (self.final or proof.n_valid)
            ),
        )


def _reason(settings: ExactSettings, proof: Proof) -> str:
    """Why somebody has no answer, and how many rows show it."""
    within = ""
    if settings.max_sparsity is not None:
        within += f" with at most {settings.max_sparsity} changes"
    if settings.max_distance is not None:
        within += f" within a distance of {settings.max_distance}"
    return (
        f"proven: no row that the model could draw{within} is valid and allowed "
        f"({proof.n_listed} rows, {proof.n_allowed} allowed)"
    )


def _gower(rows: CandidateRows) -> FloatArray:
    """Gower distance of each row, summed in the same order as where rows are ranked."""
    factuals = rows.rows
    features, total = factuals.schema.features, np.zeros(rows.owner.size)
    own = factuals.own_numbers(rows.owner)
    for at, numbers, codes in zip(factuals.schema.mutable, own, rows.codes, strict=True):
        total += change_costs(features[at], numbers, codes, codes != OWN)
    return total / len(features)
