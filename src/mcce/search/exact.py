"""The exact search: the best of all rows that the model could draw, with a proof.

Beyond the paper, which ranks some of these rows. For each person, rows with one change come first,
then those with two, and so on; among equals the nearest. The first valid and allowed row is the
best there is. Further answers are rows that would not be valid or allowed with some of their
changes undone.

The predictor scores the first few rows of all people together, in growing batches. People with more
rows than the budget allows, or whose rows take longer to list, are left to the search "near".

Always true: a proof scores a row at most once; a person's answer, proof and budget depend on no
other person; memory does not grow with the number of people or of rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ..candidates import CandidateRows, MeasuredRows
from ..constraints.limits import FactualLimits
from ..counterfactuals.parts import Reason
from ..distances import Gower, measure_rows
from ..generate import FactualBlock, blocks
from ..kernels import BoolArray, Codes, ExpiredError, IntArray, Person, gower_gap
from ..model.registry import require
from ..postprocess.filters import RowFilter, RowRules
from ..postprocess.ranking import ROWS_PER_PIECE
from ..postprocess.validation import BATCH_GROWTH, keys_of_proofs, score_in_calls
from ..predictors.decision import ScoredRows
from ..protocols import Distance
from ..runtime.threads import map_ordered
from ..tables.schema import OWN
from .config import ENUMERATION_NEEDED, ExactSearch
from .stage import SearchOutcome, SearchTask, Stage, run_blocks

# Rows of a person that are listed at first, and at most at a time.
N_LISTED, MAX_LISTED = 256, 10_000


@dataclass(frozen=True, eq=False)
class ExactStage:
    """Visit rows in the order of the ranking until the best is proven."""

    task: SearchTask
    search: ExactSearch
    rules: RowRules
    # What answers keep where any can.
    preferred: Sequence[RowFilter]
    quick_stage: Stage | None

    @property
    def n_counterfactuals(self) -> int:
        """How many answers each person gets."""
        return self.task.settings.n_counterfactuals

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for people; those not reached in time keep what the quick search found."""
        if self.quick_stage is None:
            return self._run(positions)
        quick, proven = self.quick_stage.run(positions), self._run(positions)
        left = list(proven.reasons) if self.task.monitor.stopped else []
        return proven.updated(quick, np.intersect1d(left, quick.answers.owner))

    def _run(self, positions: IntArray) -> SearchOutcome:
        """List rows for people, block by block."""
        task = self.task
        in_blocks = blocks(task.factual_limits, positions, MAX_LISTED, task.settings.memory)
        return run_blocks(task, positions, in_blocks, partial(map, self._run_block))

    def _run_block(self, block: FactualBlock) -> SearchOutcome:
        started = time.perf_counter()
        proofs = [Proof(self, position) for position in block.positions.tolist()]
        self._prove(block, proofs)
        n_evaluated = sum(proof.n_scored for proof in proofs)
        self.task.monitor.record(block, len(proofs), n_evaluated)
        return self._conclude(proofs, time.perf_counter() - started)

    def _prove(self, block: FactualBlock, proofs: Sequence[Proof]) -> None:
        """Go on until every proof is closed, or the search is stopped."""
        monitor, n_closed, n_evaluated = self.task.monitor, 0, 0
        while not monitor.stopped and any(proof.is_open for proof in proofs):
            used_up = [proof for proof in proofs if proof.is_open and not proof.n_left]
            try:
                for _ in map_ordered(Proof.list_more, used_up, self.task.settings.n_jobs):
                    if monitor.report(block, n_closed, n_evaluated):
                        return
            except ExpiredError:
                monitor.stopped = True
                return
            self._evaluate([proof for proof in proofs if proof.n_left])
            n_closed = sum(not proof.is_open for proof in proofs)
            n_evaluated = sum(proof.n_scored for proof in proofs)
            monitor.report(block, n_closed, n_evaluated)

    def _evaluate(self, proofs: Sequence[Proof]) -> None:
        """Evaluate the next rows of several people together."""
        if not proofs:
            return
        factuals = self.task.factuals
        parts = [proof.next_rows() for proof in proofs]
        sizes = np.array([part.shape[1] for part in parts])
        owner = np.repeat([proof.position for proof in proofs], sizes)
        codes = np.concatenate(parts, axis=1)
        codes = np.where(codes == factuals.codes[factuals.schema.mutable][:, owner], OWN, codes)
        rows = CandidateRows(factuals, owner, codes, factuals.tables)
        keys = keys_of_proofs(owner, codes)
        allowed, scored = self._score(rows, keys)
        is_last = np.zeros_like(scored.valid)
        for check in self.preferred:
            is_last[scored.valid] |= ~check.keeps(rows.take(scored.valid))
        sparsity, gower = (codes != OWN).sum(axis=0), measure_rows(Gower(), rows)
        evaluated = MeasuredRows(rows, keys, np.zeros_like(owner), scored.score, sparsity, gower)
        starts = np.cumsum(sizes) - sizes
        for proof, start, size in zip(proofs, starts, sizes, strict=True):
            rows_of_proof = np.arange(start, start + size)
            checked = (mask[rows_of_proof] for mask in (allowed, scored.valid, is_last))
            proof.update(evaluated.take(rows_of_proof), *checked)

    def _score(self, rows: CandidateRows, keys: Codes) -> tuple[BoolArray, ScoredRows]:
        """Which rows are allowed, and the scores of these."""
        allowed = ~self.task.scores.are_withdrawn(keys)
        if self.task.consequences is not None:
            allowed &= self.task.consequences.has_causes(rows.codes)
        for start in range(0, allowed.size, ROWS_PER_PIECE):
            piece = np.arange(start, min(start + ROWS_PER_PIECE, allowed.size))
            for check in self.rules.filters:
                allowed[piece] &= check.keeps(rows.take(piece))
        scored = score_in_calls(self.task.decision, rows.take(allowed))
        score, valid = np.full(allowed.size, np.nan), np.zeros(allowed.size, dtype=bool)
        score[allowed], valid[allowed] = scored.score, scored.valid
        return allowed, ScoredRows(score, valid)

    def _conclude(self, proofs: Sequence[Proof], seconds: float) -> SearchOutcome:
        """The outcome for a block of people."""
        factuals = self.task.factuals
        unanswered = [proof for proof in proofs if proof.holds and not proof.n_valid]
        answers = [part for proof in proofs for part in proof.answers]
        misses = [proof.miss for proof in unanswered if proof.miss is not None]
        return SearchOutcome(
            answers=MeasuredRows.concat(factuals, answers),
            misses=MeasuredRows.concat(factuals, misses),
            reasons={proof.position: proof.reason() for proof in unanswered},
            seconds={"exact": seconds},
            proven=frozenset(proof.position for proof in proofs if proof.holds),
        )


@dataclass(eq=False)
class Proof:
    """The state of the proof for one person.

    ``is_open`` until the answers are known to be the best, when it ``holds``, or the budget is
    spent. The last ``n_left`` of the listed rows were not visited yet.
    """

    stage: ExactStage
    position: int
    is_open: bool = True
    holds: bool = False
    n_changes: int = 1
    n_left: int = 0
    n_listed: int = 0
    n_nodes: int = 0
    n_scored: int = 0
    answers: list[MeasuredRows] = field(default_factory=list)
    last_answers: list[MeasuredRows] = field(default_factory=list)
    miss: MeasuredRows | None = None
    shortfall: float = np.inf
    _codes: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    _after: tuple[float, Codes] | None = None

    @property
    def n_valid(self) -> int:
        """Answers so far."""
        return sum(part.owner.size for part in self.answers)

    def list_more(self) -> None:
        """List the next rows, if any are left and the budget allows."""
        stage, limits = self.stage, self.stage.task.factual_limits
        most, max_sparsity = limits.rows.schema.mutable.size, stage.rules.max_sparsity
        most = most if max_sparsity is None else min(most, max_sparsity)
        person = _describe_person(limits, self.position, stage.rules.distance)
        while self.is_open and not self.n_left:
            room = stage.search.max_rows - self.n_listed
            if self.n_changes > most:
                self._close(holds=True)
            elif room:
                n_best = min(max(N_LISTED, 4 * self.n_listed), MAX_LISTED, room)
                with stage.task.within_deadline():
                    self._list(person, n_best)
            else:
                self._close(holds=False)

    def _list(self, person: Person, n_best: int) -> None:
        """List at most ``n_best`` rows; after the last with this many changes go on to one more."""
        stage = self.stage
        generator = stage.task.fitted.generator
        listed = require(generator, "enumeration", ENUMERATION_NEEDED).enumerate_rows(
            person,
            n_changes=self.n_changes,
            n_best=n_best,
            max_nodes=stage.search.max_nodes - self.n_nodes,
            after=self._after,
        )
        self.n_nodes += listed.n_nodes
        if not listed.complete:
            self._close(holds=False)
            return
        distance = listed.totals / len(stage.task.factuals.schema.features)
        farthest = np.inf if stage.rules.max_distance is None else stage.rules.max_distance
        n_near = int(np.searchsorted(distance, farthest, side="right"))
        self._codes = listed.codes[:, :n_near]
        self.n_left = n_near
        self.n_listed += n_near
        if n_near == n_best:
            self._after = float(listed.totals[-1]), listed.codes[:, -1]
        else:
            self._after = None
            self.n_changes += 1

    def next_rows(self) -> Codes:
        """The next rows to visit, more in each batch."""
        first = self._codes.shape[1] - self.n_left
        n_visited = self.n_listed - self.n_left
        n_rows = max(self.stage.n_counterfactuals, int(BATCH_GROWTH * n_visited))
        return self._codes[:, first : first + n_rows]

    def update(
        self, rows: MeasuredRows, allowed: BoolArray, valid: BoolArray, is_last: BoolArray
    ) -> None:
        """Record the predictor's results for the next rows."""
        self._add_needed(self.answers, rows.take(valid & ~is_last))
        self._add_needed(self.last_answers, rows.take(valid & is_last))
        self.n_scored += int(allowed.sum())
        self.n_left -= allowed.size
        decision = self.stage.task.decision
        shortfall = np.where(allowed, decision.shortfall(rows.score), np.inf)
        if shortfall.min(initial=np.inf) < self.shortfall:
            nearest = int(shortfall.argmin())
            self.shortfall, self.miss = float(shortfall[nearest]), rows.take(np.array([nearest]))
        if self.n_valid == self.stage.n_counterfactuals:
            self._close(holds=True)

    def reason(self) -> Reason:
        """What is proven of a person without an answer, and how many rows show it."""
        most, farthest = self.stage.rules.max_sparsity, self.stage.rules.max_distance
        within = "" if most is None else f" with at most {most} changes"
        within += "" if farthest is None else f" within a distance of {farthest}"
        text = f"Proven: no row that the model could draw{within} is valid and allowed "
        return Reason("proven", f"{text}({self.n_listed} rows, {self.n_scored} allowed).")

    def _add_needed(self, parts: list[MeasuredRows], valid: MeasuredRows) -> None:
        """Add as many rows as wanted, unless an answer already makes a subset of their changes."""
        answers = [codes for part in parts for codes in part.rows.codes.T]
        n_before, needed = len(answers), list[int]()
        for number, codes in enumerate(valid.rows.codes.T):
            if len(answers) == self.stage.n_counterfactuals:
                break
            if not any(((answer == OWN) | (answer == codes)).all() for answer in answers):
                answers.append(codes)
                needed.append(number)
        best = valid.take(np.array(needed, dtype=np.int64))
        parts.append(replace(best, rank=n_before + 1 + np.arange(len(needed))))

    def _close(self, *, holds: bool) -> None:
        self.is_open, self.holds, self.n_left = False, holds, 0
        if holds and not self.n_valid:
            self.answers = self.last_answers


def _describe_person(factual_limits: FactualLimits, position: int, distance: Distance) -> Person:
    """One person, and what each change would cost them."""
    rows = factual_limits.rows
    features, mutable = rows.schema.features, rows.schema.mutable
    weights = distance.weights if isinstance(distance, Gower) else None
    if weights is None:
        weights = np.ones(mutable.size)
    offsets, costs = np.zeros(len(features), dtype=np.int64), [np.empty(0)]
    own_numbers = rows.all_numbers[mutable, position]
    for column, own, weight in zip(mutable, own_numbers, weights, strict=True):
        feature, offsets[column] = features[column], sum(map(len, costs))
        numbers = feature.numbers if feature.spread else None
        changed = np.ones(feature.n_codes, dtype=bool)
        costs.append(weight * gower_gap(numbers, own, feature.spread, changed))
    return Person(
        given=rows.tree_codes[:, position],
        own=rows.codes[:, position],
        stays=factual_limits.stays[:, position],
        limits=factual_limits.limits(np.array([position]), features),
        costs=np.concatenate(costs),
        offsets=offsets,
    )
