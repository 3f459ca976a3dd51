"""The best of all rows that the model could draw for a person, with a proof.

Beyond the paper, which ranks some of these rows. They are gone through in the order of the ranking:
those with one change, with two, and so on, the nearest first. The predictor is asked about the
first few of everybody together, in growing waves; the first row that is valid and allowed is the
best there is. Whoever has more rows, or rows that take longer to list, than the budget allows is
left to the draws.

Always true: a row is asked at most once; nobody's answer, proof or end of budget depends on anybody
else; what is held in memory at a time does not grow with the number of people or of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..candidates import CandidateRows
from ..constraints.limits import FactualLimits
from ..execution.threads import map_ordered
from ..generate import blocks
from ..kernels import BoolArray, Codes, FloatArray, IntArray, Person, gower_gap
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.validation import GROWTH, ROWS_PER_CALL
from ..predictors.decision import Decision
from ..protocols import EnumeratingGenerator, RowFilter
from ..tables.features import Feature
from ..tables.schema import OWN, EncodedRows
from .outcome import Outcome, Picked

# Rows of a person that are listed at first, and at most at a time.
N_LISTED, MOST_LISTED = 256, 10_000


@dataclass(frozen=True, eq=False)
class Exact:
    """What is looked for, among which rows, and how long.

    Parameters
    ----------
    generator, decision
        The fitted model, and the black box with what is desired.
    rules
        Rows must pass all of them.
    n_counterfactuals
        How many each person gets at most.
    max_sparsity, max_distance
        Upper bounds on the number of changes and on the distance.
    weights : (n_mutable,)
        How many times each feature's difference counts in the distance.
    max_rows, max_nodes
        The budget of a person: rows looked at, and leaves visited to list them.
    """

    generator: EnumeratingGenerator
    decision: Decision
    rules: tuple[RowFilter, ...]
    n_counterfactuals: int
    max_sparsity: int | None
    max_distance: float | None
    weights: FloatArray
    max_rows: int
    max_nodes: int


def prove(
    exact: Exact,
    personal: FactualLimits,
    people: IntArray,
    failed: ExcludeUnstable,
    memory: float,
    n_jobs: int | None,
    on_progress: Callable[[int, int], bool],
) -> Iterator[Outcome]:
    """What is proven of people, block by block.

    Parameters
    ----------
    exact
        What is looked for.
    personal, people
        All factuals with their limits, and who of them is asked for.
    failed
        Rows, by person and place in the order, that failed when they were asked again.
    memory, n_jobs
        Megabytes that one block may take, and threads over its people.
    look_on
        Told how many people are settled and rows asked; True ends the search.
    """
    n_settled = n_evaluated = 0
    for block in blocks(personal, people, MOST_LISTED, memory):
        started, so_far = time.perf_counter(), (n_settled, n_evaluated)
        proofs = [_Proof(exact, personal, int(person), failed) for person in block.people]
        stopped = False
        while not stopped and any(proof.is_open for proof in proofs):
            used_up = [proof for proof in proofs if proof.is_open and not proof.n_left]
            for _ in map_ordered(_Proof.list_more, used_up, n_jobs):
                stopped = on_progress(*so_far)
                if stopped:
                    break
            else:
                _look_at(exact, personal.rows, [proof for proof in proofs if proof.n_left])
                n_ended = sum(not proof.is_open for proof in proofs)
                n_asked = sum(proof.n_allowed for proof in proofs)
                so_far = n_settled + n_ended, n_evaluated + n_asked
                stopped = on_progress(*so_far)
        found = _conclude(personal.rows, exact, proofs)
        found.add_seconds({"exact": time.perf_counter() - started})
        n_settled += len(proofs)
        n_evaluated += found.n_evaluated
        yield found
        if stopped:
            return


@dataclass(eq=False)
class _Proof:
    """How far the proof for one person has come.

    ``is_open`` until the answers are known to be the best, when it ``holds``, or the budget is at
    its end. The last ``n_left`` of the rows that are listed were not looked at yet.
    """

    exact: Exact
    personal: FactualLimits
    person: int
    failed: ExcludeUnstable
    is_open: bool = True
    holds: bool = False
    n_changes: int = 1
    n_left: int = 0
    n_listed: int = 0
    n_nodes: int = 0
    n_allowed: int = 0
    n_found: int = 0
    answers: list[Picked] = field(default_factory=list)
    miss: Picked | None = None
    least: float = np.inf
    _codes: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    _after: tuple[float, Codes] | None = None

    @property
    def n_seen(self) -> int:
        """Rows looked at; the next one has this place in the order."""
        return self.n_listed - self.n_left

    def list_more(self) -> None:
        """List the rows that come next, if any are left and the budget allows."""
        exact, rows = self.exact, self.personal.rows
        bounds = rows.schema.mutable.size, exact.max_sparsity
        most = min(bound for bound in bounds if bound is not None)
        person = _person(self.personal, self.person, exact.weights)
        while self.is_open and not self.n_left:
            room = exact.max_rows - self.n_listed
            if self.n_changes > most:
                self._end(holds=True)
            elif room:
                self._list(person, min(max(N_LISTED, 4 * self.n_listed), MOST_LISTED, room))
            else:
                self._end(holds=False)

    def _list(self, person: Person, n_best: int) -> None:
        """List so many rows at most; after the last of its kind go on to one more change."""
        exact = self.exact
        listed = exact.generator.enumerate_rows(
            person,
            n_changes=self.n_changes,
            n_best=n_best,
            max_nodes=exact.max_nodes - self.n_nodes,
            after=self._after,
        )
        self.n_nodes += listed.n_nodes
        if not listed.complete:
            self._end(holds=False)
            return
        distance = listed.totals / len(self.personal.rows.schema.features)
        farthest = np.inf if exact.max_distance is None else exact.max_distance
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
        """The next rows to look at, more in each wave."""
        first = self._codes.shape[1] - self.n_left
        n_rows = max(self.exact.n_counterfactuals, int(GROWTH * self.n_seen))
        return self._codes[:, first : first + n_rows]

    def failed_before(self, n_rows: int) -> BoolArray:
        """Which of the next rows failed when they were asked again."""
        theirs = self.failed.draw[self.failed.person == self.person]
        return np.isin(self.n_seen + np.arange(n_rows), theirs)

    def learn(self, rows: Picked, allowed: BoolArray, valid: BoolArray) -> None:
        """Take in what the predictor says of the next rows, as far as they are allowed."""
        n_wanted = self.exact.n_counterfactuals - self.n_found
        best = rows.take(np.flatnonzero(valid)[:n_wanted])
        self.answers.append(replace(best, rank=self.n_found + 1 + np.arange(best.owner.size)))
        self.n_found += best.owner.size
        self.n_allowed += int(allowed.sum())
        self.n_left -= allowed.size
        shortfall = np.where(allowed, self.exact.decision.shortfall(rows.score), np.inf)
        if shortfall.min(initial=np.inf) < self.least:
            at = int(shortfall.argmin())
            self.least, self.miss = float(shortfall[at]), rows.take(np.array([at]))
        if self.n_found == self.exact.n_counterfactuals:
            self._end(holds=True)

    def _end(self, *, holds: bool) -> None:
        self.is_open, self.holds, self.n_left = False, holds, 0


def _look_at(exact: Exact, rows: EncodedRows, proofs: Sequence[_Proof]) -> None:
    """Look at the next rows of some people together."""
    if not proofs:
        return
    parts = [proof.next_rows() for proof in proofs]
    sizes = np.array([part.shape[1] for part in parts])
    owner = np.repeat([proof.person for proof in proofs], sizes)
    codes = np.concatenate(parts, axis=1)
    codes = np.where(codes == rows.exact[rows.schema.mutable][:, owner], OWN, codes)
    chosen = CandidateRows(rows, owner, codes, rows.tables)
    allowed = ~np.concatenate([p.failed_before(n) for p, n in zip(proofs, sizes, strict=True)])
    valid, score = np.zeros(owner.size, dtype=bool), np.full(owner.size, np.nan)
    for start in range(0, owner.size, ROWS_PER_CALL):
        piece = np.arange(start, min(start + ROWS_PER_CALL, owner.size))
        some = chosen.take(piece)
        for rule in exact.rules:
            allowed[piece] &= rule.keeps(some)
        piece = piece[allowed[piece]]
        scored = exact.decision.score(chosen.take(piece).frame)
        valid[piece], score[piece] = scored.valid, scored.score
    starts = np.cumsum(sizes) - sizes
    place = np.arange(owner.size) - np.repeat(starts, sizes)
    place += np.repeat([proof.n_seen for proof in proofs], sizes)
    sparsity = (codes != OWN).sum(axis=0)
    seen = Picked(chosen, place, np.zeros_like(place), score, sparsity, _gower(chosen))
    for proof, start, size in zip(proofs, starts, sizes, strict=True):
        theirs = np.arange(start, start + size)
        proof.learn(seen.take(theirs), allowed[theirs], valid[theirs])


def _conclude(rows: EncodedRows, exact: Exact, proofs: Sequence[_Proof]) -> Outcome:
    """What became of some people."""
    nobody = [proof for proof in proofs if proof.holds and not proof.n_found]
    return Outcome(
        answers=Picked.join(rows, [part for proof in proofs for part in proof.answers]),
        misses=Picked.join(rows, [proof.miss for proof in nobody if proof.miss is not None]),
        reasons={proof.person: _reason(exact, proof) for proof in nobody},
        n_evaluated=sum(proof.n_allowed for proof in proofs),
        proven={proof.person for proof in proofs if proof.holds},
    )


def _reason(exact: Exact, proof: _Proof) -> str:
    """Why somebody has no answer, and how many rows show it."""
    within = ""
    if exact.max_sparsity is not None:
        within += f" with at most {exact.max_sparsity} changes"
    if exact.max_distance is not None:
        within += f" within a distance of {exact.max_distance}"
    return (
        f"proven: no row that the model could draw{within} is valid and allowed "
        f"({proof.n_listed} rows, {proof.n_allowed} allowed)"
    )


def _person(personal: FactualLimits, person: int, weights: FloatArray) -> Person:
    """One person, and what each change would cost them."""
    rows = personal.rows
    features, one = rows.schema.features, np.array([person])
    offsets, costs = np.zeros(len(features), dtype=np.int64), [np.empty(0)]
    for at, own, weight in zip(
        rows.schema.mutable, rows.own_numbers(one)[:, 0], weights, strict=True
    ):
        codes = np.arange(features[at].n_codes, dtype=np.int32)
        offsets[at] = sum(map(len, costs))
        costs.append(weight * _gaps(features[at], own, codes, np.ones(codes.size, dtype=bool)))
    return Person(
        given=rows.descent[:, person],
        own=rows.exact[:, person],
        limits=personal.limits(one, features),
        costs=np.concatenate(costs),
        offsets=offsets,
    )


def _gower(chosen: CandidateRows) -> FloatArray:
    """Gower distance of each row, added up as wherever rows are ranked."""
    rows = chosen.rows
    features, total = rows.schema.features, np.zeros(chosen.owner.size)
    own = rows.own_numbers(chosen.owner)
    for at, numbers, codes in zip(rows.schema.mutable, own, chosen.codes, strict=True):
        total += _gaps(features[at], numbers, codes, codes != OWN)
    return total / len(features)


def _gaps(
    feature: Feature, own: FloatArray | float, codes: Codes, differs: BoolArray
) -> FloatArray:
    """Gower's gap between values of a feature, by code, and a person's own number."""
    numbers = None if feature.spread == 0 or feature.numbers is None else feature.numbers[codes]
    return gower_gap(numbers, own, feature.spread, differs)
