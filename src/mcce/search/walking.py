"""From the valid candidates of a block to its answers: walks, direct changes, and the selection.

Beyond the paper. Walks go to valid candidates; where these find nothing, or to show that fewer
changes would not do, changes are tried directly; then the best visited rows are selected.

With a surrogate (``SurrogateBlock``), all of this runs on what it predicts of rows. The predictor
scores what would be selected; that corrects the predictions for the person's other rows, walks go
on where they were misled, and the selection is made again, until everything selected is known to be
valid. Then the predictor scores rows that would be better, should the surrogate be wrong about
them: those that fall short by little, the answers with some changes undone, and the most promising
rows with fewer changes. The reason of people without an answer begins with the predictor's scores;
the surrogate's predictions follow, as an estimate.

Always true: a nearest miss carries a score of the predictor. Where it scored no row of a person, it
scores one, which counts like any other. The first answer of a person is selected before the walks
go on for further ones. Whatever is selected was accepted by the predictor. With some of its changes
undone (any of up to five, otherwise one or two) it was not, or is not allowed or not plausible
enough, unless the person's evaluations or the time were used up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.people import Reason
from ..distances import is_mean
from ..kernels import (
    BoolArray,
    ExpiredError,
    FloatArray,
    IntArray,
    Listing,
    RowTable,
    times_seen_before,
)
from ..postprocess.diversity import MAX_FINITE_DISTANCE
from ..postprocess.filters import ExcludeUnstable, IsPlausible, RowFilter
from ..postprocess.validation import LazyValidation, PredictionCache, SelectedDraws
from ..tables.schema import OWN
from .direct import DirectSearch, DirectSettings
from .greedy import GreedyWalk
from .reasons import Exclusion, beyond_bounds, count_draws, exclusion_of, scores_reason
from .selection import (
    SelectedVisits,
    SelectionSettings,
    are_copies_ranked_last,
    returnable,
    select_rows,
    undone,
    within_bounds,
)
from .stage import BlockMonitor
from .visited import DECIMALS, PredictedRows, WalkSettings

# Rows scored per person because they would be better than the answer: always, and at most; beyond
# the first, they may fall short by this many typical errors of the surrogate.
MIN_BETTER, MAX_BETTER, REACH = 5, 16, 3.0
# Rows scored first for a person for whom nothing is predicted valid; then each time as many as so
# far.
N_TRIED = 8
# Cap for people with more rows than `max_tries`; further rows rarely help.
TRIED_OF_MANY = 150


@dataclass(frozen=True, eq=False)
class Walk:
    """How to make answers of valid candidates: where walks may go, and which row to return."""

    settings: WalkSettings
    selection: SelectionSettings
    direct: DirectSettings | None = None
    fewest_changes: bool = False
    answers_all: bool = False
    max_tries: int = 0


class WalkedBlock:
    """The walks of a block of people, and the answers that they lead to."""

    def __init__(
        self,
        walk: Walk,
        monitor: BlockMonitor,
        cache: PredictionCache,
        valid: SelectedDraws,
        unstable: ExcludeUnstable,
    ) -> None:
        self.walk, self.candidates = walk, cache.candidates
        self._monitor, self._cache = monitor, cache
        self.greedy_walk = GreedyWalk(
            walk.settings, cache, valid, unstable, whole_block=walk.answers_all
        )
        self.visited = self.greedy_walk.visited
        self._direct: DirectSearch | None = None
        if walk.direct is not None:
            self._direct = DirectSearch(walk.direct, self.candidates, self.visited, unstable)
        self._several = False

    def find_answers(self) -> MeasuredRows:
        """Walk, try changes directly, and select."""
        walk, direct = self.walk, self._direct
        self._go_on()
        if direct is not None and walk.answers_all:
            self._answer_directly(direct)
        first = selected = self._settle(self._first)
        if walk.selection.ranking.n_counterfactuals > 1:
            self._several = True
            self.greedy_walk.resume(walk.selection.ranking.n_wanted)
            self._go_on()
            if direct is not None and walk.fewest_changes:
                self._improve(direct, first, several=True)
            selected = self._settle(lambda person: self._select(person, first))
        return selected.to_measured(self.candidates, self.visited)

    def _settle(self, select: Callable[[IntArray | None], SelectedVisits]) -> SelectedVisits:
        """Select for all people: None stands for them."""
        return select(None)

    def _first(self, person: IntArray | None) -> SelectedVisits:
        """The best row of people, of all by default."""
        first = self._select(person)
        if self._direct is None or not self.walk.fewest_changes:
            return first
        better = self._improve(self._direct, first, several=False)
        kept = first.take(~np.isin(self.visited.person[first.row_ids], better))
        return SelectedVisits.concat([kept, self._select(better)])

    def _go_on(self) -> None:
        """Walk until all walks have ended."""
        while not self._monitor.stopped and not self.greedy_walk.ended:
            self.greedy_walk.next_round()
            self._report()

    def _report(self) -> bool:
        return self._monitor.report(0, self._cache.n_evaluated + self.visited.n_evaluated)

    def _stop(self) -> bool:
        return self._monitor.stopped or self._report()

    def _answer_directly(self, direct: DirectSearch) -> None:
        """Try changes directly for people without any answer."""
        left = np.setdiff1d(np.arange(self.candidates.people.size), self._answered())
        direct.search(left, self._stop)

    def _answered(self) -> IntArray:
        """Who has a row that may be returned."""
        ranking = self.walk.selection.ranking
        person = self.visited.cells[returnable(ranking, self.greedy_walk), 0]
        return np.unique(person).astype(np.int64)

    def _improve(self, direct: DirectSearch, first: SelectedVisits, *, several: bool) -> IntArray:
        """Try directly what may be better than first answers; returns the people with new rows."""
        visited, selection = self.visited, self.walk.selection
        changed = visited.cells[first.row_ids, 1:] != OWN
        if selection.count_actions:
            changed[:, visited.recomputed] = False
        # Anything that is no copy may be better than one.
        copied = are_copies_ranked_last(selection, visited, first.row_ids)
        fewest = np.where(copied, changed.shape[1], changed.sum(axis=1))
        person = visited.person[first.row_ids]
        return direct.improve(person, fewest, several, self._stop)

    def _select(
        self, person: IntArray | None, first: SelectedVisits | None = None
    ) -> SelectedVisits:
        """Select visited rows; once the time is up, without distances to accepted rows."""
        selection, walk = self.walk.selection, self.greedy_walk
        try:
            if not self._monitor.stopped:
                with self.visited.task.within_deadline():
                    return select_rows(selection, walk, person, first)
        except ExpiredError:
            self._monitor.stop()
        return select_rows(replace(selection, knn_distance=None), walk, person, first)


class SurrogateBlock(WalkedBlock):
    """The walks of a block of people in a search with a surrogate."""

    visited: PredictedRows

    def _settle(self, select: Callable[[IntArray | None], SelectedVisits]) -> SelectedVisits:
        """Select, score, and select again for people with new scores, until nothing is new."""
        if self.walk.max_tries and not self._several:
            self._add_draws()
        visited, person = self.visited, np.arange(self.candidates.people.size)
        parts = [SelectedVisits(person[:0], person[:0])]
        while person.size:
            stopped = self._stop()
            if stopped:
                visited.close()
            rows = select(person)
            scored = visited.call_predictor(person[:0] if stopped else self._to_score(rows, person))
            self._reset_optimism(rows)
            again = np.unique(visited.person[scored])
            parts.append(rows.take(~np.isin(visited.person[rows.row_ids], again)))
            person = again
            if person.size:
                self.greedy_walk.reconsider(person)
                self._go_on()
        return SelectedVisits.concat(parts)

    def _reset_optimism(self, rows: SelectedVisits) -> None:
        """Where all selected rows are valid, predict what falls short by little as valid again."""
        visited = self.visited
        person = visited.person[rows.row_ids]
        again = np.setdiff1d(person, person[~(visited.scored & visited.valid)[rows.row_ids]])
        visited.reset_optimism(again)

    def _to_score(self, rows: SelectedVisits, person: IntArray) -> IntArray:
        """The rows to score: what is selected; where that is known, what may be better."""
        visited = self.visited
        owner = visited.person[rows.row_ids]
        unknown = ~visited.scored[rows.row_ids]
        known = rows.take(~np.isin(owner, owner[unknown]))
        left = np.setdiff1d(person, owner)
        parts = rows.row_ids[unknown], self._undone(known.row_ids), self._better(known)
        return np.concatenate([*parts, self._tries(left)])

    def _undone(self, row_ids: IntArray) -> IntArray:
        """Rows with some of their changes undone."""
        parent, child = undone(self.greedy_walk, row_ids)
        return self._may_be_good(np.unique(child[child != parent]))

    def _may_be_good(self, row_ids: IntArray) -> IntArray:
        """Rows that were not scored and are allowed, plausible and within the bounds."""
        visited, ranking = self.visited, self.walk.selection.ranking
        row_ids = row_ids[~visited.scored[row_ids]]
        if ranking.max_sparsity is not None or ranking.max_distance is not None:
            row_ids = row_ids[within_bounds(ranking, visited, row_ids)]
        visited.check_filters(row_ids)
        row_ids = row_ids[visited.allowed[row_ids]]
        visited.check_plausibility(row_ids)
        return row_ids[visited.plausible[row_ids]]

    def _better(self, known: SelectedVisits) -> IntArray:
        """The most promising rows that would be better than first answers."""
        visited, all_scored = self.visited, self._all_scored
        promise, some = self._promising(known.take(known.rank == 1))
        person = visited.person
        some = self._by_features(some[np.lexsort((-promise, person[some]))])
        # Further rows are rarely reached, and checking them takes time.
        some = some[(times_seen_before(person[some]) < 20 * MAX_BETTER) | all_scored[person[some]]]
        near = visited.desirability(some) >= -REACH * visited.error
        most = np.where(near, MAX_BETTER, MIN_BETTER) - visited.n_better[person[some]]
        if self.walk.selection.prefer == "distance":
            # The next ones depend on how close these are.
            most = np.minimum(most, 2)
        some = self._first_good(some, np.where(all_scored[person[some]], some.size, most))
        np.add.at(visited.n_better, person[some], 1)
        return some

    def _by_features(self, row_ids: IntArray) -> IntArray:
        """Rows by person, the first that changes each set of features before the second."""
        changed = self.visited.cells[row_ids] != OWN
        changed = changed.astype(np.int32)
        changed[:, 0] = self.visited.person[row_ids]
        n_before = times_seen_before(RowTable(changed.shape[1]).number_rows(changed))
        return row_ids[np.lexsort((n_before, self.visited.person[row_ids]))]

    def _first_good(self, row_ids: IntArray, most: IntArray) -> IntArray:
        """Of rows by person, those that may be good, as long as fewer than ``most`` come before.

        Twice as many are looked at each time, until there are enough.
        """
        person = self.visited.person[row_ids]
        good = np.zeros(row_ids.size, dtype=bool)
        n_good: IntArray = np.zeros(self.visited.positions.size, dtype=np.int64)
        left, size = np.arange(row_ids.size), 1
        while left.size:
            n_before = times_seen_before(person[left])
            here = (n_good[person[left]] + n_before < most[left]) | (n_before < size)
            some = left[here]
            good[some] = np.isin(row_ids[some], self._may_be_good(row_ids[some]))
            np.add.at(n_good, person[some], good[some])
            left, size = left[~here], 2 * size
            left = left[n_good[person[left]] < most[left]]
        found = np.flatnonzero(good)
        return row_ids[found[times_seen_before(person[found]) < most[found]]]

    def _promising(self, first: SelectedVisits) -> tuple[FloatArray, IntArray]:
        """Rows with fewer changes than answers, or as many but closer; how promising, and which."""
        visited = self.visited
        changed = visited.cells[:, 1:] != OWN
        if self.walk.selection.count_actions:
            changed[:, visited.recomputed] = False
        person, n_changes = visited.person, changed.sum(axis=1)
        fewest = np.zeros(visited.positions.size, dtype=np.int64)
        fewest[person[first.row_ids]] = n_changes[first.row_ids]
        closer = self.walk.selection.prefer == "distance"
        # In a small table all rows count: for further answers, and because copies come last.
        copied = first.row_ids[are_copies_ranked_last(self.walk.selection, visited, first.row_ids)]
        any_ = np.isin(np.arange(fewest.size), person[copied]) | self._several
        fewest = np.where(self._all_scored & any_ & (fewest > 0), n_changes.max(initial=0), fewest)
        most = fewest[person] + ((self._all_scored | closer) & (fewest > 0))[person]
        some = visited.evaluated & ~visited.scored & (n_changes < most) & (n_changes > 0)
        row_ids = np.flatnonzero(some)
        margin = visited.desirability(row_ids)
        if not closer:
            return margin, row_ids
        ranking, distance = self.walk.selection.ranking, np.zeros(visited.positions.size)
        distance[person[first.row_ids]] = visited.distance[first.row_ids]
        visited.compute_costs(ranking, row_ids)
        # Infinite distances count as the largest finite one.
        gain = np.minimum(distance[person[row_ids]], MAX_FINITE_DISTANCE) - np.minimum(
            visited.distance[row_ids], MAX_FINITE_DISTANCE
        )
        if not is_mean(ranking.distance):
            # As shares of what changing everything costs, roughly.
            gain /= visited.candidates.comparison.n_features
        gain += (n_changes < fewest[person])[row_ids]
        chance = np.clip(0.5 + margin / (2 * REACH * max(visited.error, 1e-9)), 0.0, 1.0)
        better = (gain > 0) | self._all_scored[person[row_ids]]
        return (gain * chance)[better], row_ids[better]

    @property
    def _all_scored(self) -> BoolArray:
        """People whose rows are all scored: in small tables, where the fewest changes count."""
        bounded = self.visited.run.max_evaluations is not None
        if bounded or self._direct is None or not self.walk.fewest_changes:
            return np.zeros(self.visited.positions.size, dtype=bool)
        return np.isin(np.arange(self.visited.positions.size), self._direct.small)

    def _tries(self, people: IntArray) -> IntArray:
        """The most promising rows of people for whom nothing is predicted valid."""
        visited = self.visited
        if not self.walk.max_tries or not people.size:
            return np.empty(0, dtype=np.int64)
        person = visited.person
        some = np.flatnonzero(visited.evaluated & ~visited.scored & np.isin(person, people))
        some = some[np.lexsort((-visited.desirability(some), person[some]))]
        n_rows = np.bincount(person[visited.evaluated], minlength=visited.positions.size)
        n_tried, few = visited.n_tried, min(self.walk.max_tries, TRIED_OF_MANY)
        most = np.where(n_rows > self.walk.max_tries, few, self.walk.max_tries)
        left = np.maximum(most - visited.run.history.n_scored_here[visited.positions], 0)
        more = np.minimum(np.maximum(n_tried, N_TRIED), left)
        some = self._first_good(some, more[person[some]])
        np.add.at(n_tried, person[some], 1)
        return some

    def _add_draws(self) -> None:
        """Add the draws of people without an answer to their rows."""
        left = np.setdiff1d(np.arange(self.candidates.people.size), self._answered())
        who, draw = np.nonzero(self.candidates.distinct[self.candidates.group[left]])
        codes = self.candidates.select(left[who], draw).codes
        self.visited.evaluate(self.visited.number_rows(left[who], draw, codes))


def explain_unanswered(
    block: SurrogateBlock, validation: LazyValidation, answered: IntArray
) -> tuple[MeasuredRows, dict[int, Reason]]:
    """Why people of a block have no answer."""
    positions = block.candidates.people
    person = np.flatnonzero(~np.isin(positions, answered))
    listing, listed, predicted = validation.list_all(person)
    _score_best_draws(block, validation.cache, person, listing, listed, predicted)
    counted = count_draws(validation.ranked, person, listing, predicted)
    run, margin = block.visited.run, block.visited.task.decision.min_margin
    reasons = {
        at: scores_reason(run, at, _exclusions(block, one), draws, margin)
        for at, one, draws in zip(positions[person].tolist(), person.tolist(), counted, strict=True)
    }
    return _nearest(block, person), reasons


def _score_best_draws(
    block: SurrogateBlock,
    cache: PredictionCache,
    person: IntArray,
    listing: Listing,
    listed: BoolArray,
    predicted: BoolArray,
) -> None:
    """Score the most promising draw of people for whom the predictor scored no row."""
    visited, candidates = block.visited, block.candidates
    untried = np.isin(person, visited.cells[_scored(block), 0], invert=True)
    at = np.flatnonzero(untried & (listing.n_allowed > 0))
    if not at.size:
        return
    draw = listing.draw[at]
    margin = cache.score[candidates.group[person[at]][:, None], draw].round(DECIMALS)
    best = np.lexsort((-margin, ~predicted[at], ~listed[at]), axis=-1)[:, 0]
    draws = draw[np.arange(at.size), best]
    codes = candidates.select(person[at], draws).codes
    visited.call_predictor(visited.number_rows(person[at], draws, codes))


def _scored(block: SurrogateBlock) -> IntArray:
    """Ids of the rows that the predictor scored, except the people's own."""
    visited = block.visited
    return np.flatnonzero(visited.scored & (visited.cells[:, 1:] != OWN).any(axis=1))


def _exclusions(block: SurrogateBlock, person: int) -> list[Exclusion]:
    """What excludes the rows of a person that the predictor accepted."""
    visited, ranking = block.visited, block.walk.selection.ranking
    if not visited.run.history.n_valid[block.candidates.people[person]]:
        return []
    row_ids = _scored(block)
    row_ids = row_ids[visited.valid[row_ids] & (visited.cells[row_ids, 0] == person)]
    rows, settings = visited.rows(row_ids), visited.settings
    checks: list[RowFilter | IsPlausible] = [*settings.filters]
    if ranking.plausible is not None:
        checks.append(ranking.plausible)
    failed = [exclusion_of(one) for one in checks if row_ids.size and not one.keeps(rows).all()]
    visited.compute_costs(ranking, row_ids)
    beyond = beyond_bounds(ranking, visited.sparsity[row_ids], visited.distance[row_ids])
    return failed + [one for one, excluded in beyond.items() if excluded.any()]


def _nearest(block: SurrogateBlock, person: IntArray) -> MeasuredRows:
    """The nearest misses of people, among the rows that the predictor scored."""
    visited, row_ids = block.visited, _scored(block)
    row_ids = row_ids[np.isin(visited.cells[row_ids, 0], person)]
    owner = visited.cells[row_ids, 0]
    shortfall = visited.task.decision.shortfall(visited.score[row_ids]).round(DECIMALS)
    order = np.lexsort((visited.reach_order[row_ids], shortfall, ~visited.valid[row_ids], owner))
    best = row_ids[order[np.unique(owner[order], return_index=True)[1]]]
    visited.compute_costs(block.walk.selection.ranking, best)
    return SelectedVisits(best, np.zeros_like(best)).to_measured(block.candidates, visited)
