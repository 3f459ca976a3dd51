"""The loop: which row of each person to score next, and when to stop.

Beyond the paper. Each round the predictor scores, for everybody in one call, the row that is most
worth it: the one with the smallest *index*, its cost plus the price of a score divided by the
chance that the row is valid. A row that is cheaper or more likely to be valid goes first, and when
no index is below the cost of the best valid row so far, nothing else is worth a score. (Where the
chances of rows are independent, that is the optimal rule: Weitzman, "Optimal Search for the Best
Alternative".) Scores correct the predictions for the person's other rows. An answer is tried with
its changes undone. For people without an answer, ever wider sources add rows. Further answers are
looked for at the end.

Always true: every answer was accepted by the predictor and passes every check. With one or two of
its changes undone (one in "nearest", and of more than 30) a row fails one of these, unless the
person's evaluations or the time were used up. A person's answer depends on no other person, and the
first one does not depend on how many are wanted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.parts import Reason
from ..distances import as_sum
from ..generate import FactualBlock
from ..kernels import (
    BoolArray,
    Codes,
    ExpiredError,
    FloatArray,
    IntArray,
    RowTable,
    times_seen_before,
)
from ..postprocess.diversity import DOWN, OTHER, UP, diverse_ranks, pick_different
from ..runtime.threads import map_ordered, n_threads
from ..tables.schema import OWN
from .costs import MAX_DISTANCE, RowMeasures
from .pool import LIKELY, MAY_RETURN, UNKNOWN, Pool, PoolSearch, best_of_each
from .sources import Sources
from .stage import SearchOutcome, blocks_of, run_blocks

# Memory per person, in draws.
ROWS_PER_PERSON = 1_000
# More threads would wait for Python's lock.
MAX_THREADS = 4
# Blocks per thread, as long as each block has at least this many draws.
BLOCKS_PER_THREAD, MIN_DRAWS = 2, 100_000
# Rows per person in the first round of checks; each further round has twice as many.
N_CHECKED = 8
# Smaller chances to be valid count as this.
MIN_CHANCE = 1e-9
# The most rows scored for a person without an answer, before the search widens for the first time,
# for the second time, and ends.
MAX_TRIES = (12, 36, 150)
# Each refused row of a person raises the price of the next by this share.
PRICE_PER_REFUSAL = 0.7
# If an answer has several changes, single changes are scored last: how many, and the least chance.
N_LAST_SINGLES, MIN_SINGLE_CHANCE = 8, 0.01
# If only the distance counts, how often detours from the best answer are tried.
MAX_DETOURS = 10
# Penalties, larger than all costs: for each change beyond the limit, and for a copy.
EXCESS_PENALTY, COPY_PENALTY = 1e7, 1e10
# For each further answer, the most rows that are scored, and the rows that it is chosen from.
TRIES_PER_ANSWER, CHOICE_PER_ANSWER = 12, 10


@dataclass(frozen=True, eq=False)
class PoolStage:
    """Search beyond the paper, for people in blocks."""

    pool_search: PoolSearch
    explains_misses: bool = False

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for people, block by block; whole blocks run in threads."""
        task = self.pool_search.task
        n_jobs = min(n_threads(task.settings.n_jobs), MAX_THREADS)
        n_rows = ROWS_PER_PERSON + self.pool_search.n_samples
        n_least = min(BLOCKS_PER_THREAD * n_jobs, positions.size * n_rows // MIN_DRAWS)
        in_blocks = blocks_of(task, positions, n_rows, max(n_least, 1))
        run = partial(map_ordered, self._run_block, n_jobs=n_jobs)
        return run_blocks(task, positions, in_blocks, run)

    def _run_block(self, block: FactualBlock) -> SearchOutcome:
        started, expired = time.perf_counter(), False
        loop: Loop | None = None
        task, monitor = self.pool_search.task, self.pool_search.task.monitor
        wants_further = self.pool_search.ranking.n_counterfactuals > 1
        try:
            with task.within_deadline():
                loop = Loop(self.pool_search, block)
                loop.run()
                if wants_further:
                    FurtherAnswers(loop).find()
        except ExpiredError:
            expired = True
            monitor.stopped = True
        if loop is None:
            return SearchOutcome.merge(task.factuals, [])
        pool, answers = loop.pool, loop.best[loop.best >= 0]
        rank = np.ones_like(answers)
        # Time that is up may leave the pool in the middle of a step.
        if wants_further and not expired:
            answers, rank = FurtherAnswers(loop).answers()
        misses, reasons = MeasuredRows.empty(task.factuals), dict[int, Reason]()
        if self.explains_misses and not monitor.stopped:
            misses, reasons = pool.misses_and_reasons(np.flatnonzero(loop.best < 0))
        monitor.record(block, block.positions.size, pool.n_evaluated)
        searched = time.perf_counter() - started - pool.seconds_scored
        return SearchOutcome(
            answers=pool.measured(answers, rank),
            misses=misses,
            reasons=reasons,
            seconds={"search": searched, "validity": pool.seconds_scored},
        )


class Loop:
    """Scores the rows of a block of people until everybody has an answer or a reason."""

    def __init__(self, pool_search: PoolSearch, block: FactualBlock) -> None:
        self.pool_search, self._block = pool_search, block
        self.sources = Sources(pool_search, block)
        self.pool: Pool = self.sources.pool
        n_people = block.positions.size
        model = pool_search.knn_model
        self._median_knn = 0.0 if model is None else model.median
        self._price = pool_search.cost.price(self._median_knn)
        # Costs are about distances summed over the features; other distances are taken for means.
        n_features = len(pool_search.task.factuals.schema.features)
        added = as_sum(pool_search.ranking.rules.distance)
        self._scale = n_features if added is None or added.summation.mean else 1
        # The best answer so far of each person, -1 for none, and its cost.
        self.best: IntArray = np.full(n_people, -1)
        self._best_cost: FloatArray = np.full(n_people, np.inf)
        # The fewest changes with which a person has an answer, as far as is known or predicted.
        self.fewest: IntArray = np.full(n_people, self.pool.n_mutable)
        self.n_tried, self.n_refused, self._n_detours, self._n_widened = np.zeros(
            (4, n_people), dtype=np.int64
        )
        self._done: BoolArray = np.zeros(n_people, dtype=bool)

    def run(self) -> None:
        """Find everybody's first answer."""
        self._add_first(np.arange(self._done.size))
        self._score(self.pool.remembered())
        while not self.stopped() and not self._done.all():
            people = np.flatnonzero(~self._done)
            chosen = self._choose(people)
            self._score(chosen)
            left = np.setdiff1d(people, self.pool.person[chosen])
            self._improve(left[self.best[left] >= 0])
            self._widen(left[self.best[left] < 0])
        # From here on, only rows that were scored count.
        self.fewest = self.fewest_known()
        self._update(np.flatnonzero(self.best >= 0))

    def _add_first(self, people: IntArray) -> None:
        """Add single changes and draws, and pairs where no single change is likely to be valid."""
        pool = self.pool
        self.sources.add_singles(people)
        people = people[~pool.complete[people]]
        self.sources.add_draws(people)
        if self.pool_search.cost.by_distance:
            self.sources.add_paths(people)
        row_ids = self.open_rows(people)
        likely = row_ids[(pool.n_counted[row_ids] == 1) & (pool.chance(row_ids) >= LIKELY)]
        left = np.setdiff1d(people, pool.person[likely[pool.may_return(likely)]])
        self.sources.add_combinations(left)

    def stopped(self) -> bool:
        """Report the progress; whether to stop."""
        monitor, n_settled = self.pool_search.task.monitor, int(self._done.sum())
        return monitor.stopped or monitor.report(self._block, n_settled, self.pool.n_evaluated)

    def costs(self, row_ids: IntArray) -> FloatArray:
        """What rows cost, as far as is known."""
        pool, n_changes = self.pool, self.pool.n_counted[row_ids]
        distance = np.minimum(pool.distance[row_ids] * self._scale, MAX_DISTANCE)
        # A knn distance that is not known yet counts as 0.
        knn_distance = np.minimum(np.nan_to_num(pool.knn_distance[row_ids]), MAX_DISTANCE)
        measures = RowMeasures(n_changes, distance, knn_distance, self._median_knn)
        most = self.fewest[pool.person[row_ids]] + self.pool_search.extra_changes
        excess: IntArray = np.maximum(n_changes - most, 0)
        cost = self.pool_search.cost.compute(measures) + EXCESS_PENALTY * excess
        return cost + COPY_PENALTY * pool.copy[row_ids]

    def open_rows(self, people: IntArray) -> IntArray:
        """Rows of people that were not scored, and that nothing excludes as far as is known."""
        pool, is_wanted = self.pool, np.zeros(self._done.size, dtype=bool)
        is_wanted[people] = True
        return np.flatnonzero(
            ~pool.scored & (pool.excluded_by <= MAY_RETURN) & is_wanted[pool.person]
        )

    def _choose(self, people: IntArray) -> IntArray:
        """The rows that are most worth a score: one of each person, more if many failed."""
        pool, chosen = self.pool, [np.empty(0, dtype=np.int64)]
        people = people[self._may_go_on(people)]
        n_wanted = np.where(self.best >= 0, 1, np.maximum(self.n_tried // 3, 1))
        row_ids = self.open_rows(people)
        self._update_fewest(people, row_ids)
        n_checked = N_CHECKED
        while row_ids.size:
            row_ids = row_ids[pool.excluded_by[row_ids] <= MAY_RETURN]
            index = self._index(row_ids)
            is_better = index < self._best_cost[pool.person[row_ids]]
            row_ids, index = row_ids[is_better], index[is_better]
            n = np.maximum(n_checked, n_wanted[pool.person[row_ids]])
            top = row_ids[best_of_each(pool.person[row_ids], index, n=n)]
            person = pool.person[top]
            is_unknown = pool.excluded_by[top] == UNKNOWN
            if self.pool_search.cost.uses_knn:
                is_unknown |= np.isnan(pool.knn_distance[top])
            leads = times_seen_before(person) < n_wanted[person]
            is_undecided = np.zeros(self._done.size, dtype=bool)
            is_undecided[person[is_unknown & leads]] = True
            chosen.append(top[leads & ~is_undecided[person]])
            self._check(top[is_unknown & is_undecided[person]])
            row_ids = row_ids[is_undecided[pool.person[row_ids]]]
            n_checked *= 2
        return np.concatenate(chosen)

    def _may_go_on(self, people: IntArray) -> BoolArray:
        """Whether people may have another row scored."""
        is_early = self.n_tried[people] < np.array(MAX_TRIES)[self._n_widened[people]]
        goes_on = (self.best[people] >= 0) | is_early | self.pool.complete[people]
        return goes_on & self.pool.may_score(people)

    def _index(self, row_ids: IntArray) -> FloatArray:
        """How much rows are worth a score, the smaller the better."""
        pool, person = self.pool, self.pool.person[row_ids]
        price = self._price * (1 + PRICE_PER_REFUSAL * self.n_refused[person])
        # If there are only a few rows, all that may be better are scored.
        price = np.where(pool.complete[person], 0.0, price)
        return self.costs(row_ids) + price / np.maximum(pool.chance(row_ids), MIN_CHANCE)

    def _check(self, row_ids: IntArray) -> None:
        """Find out what decides whether rows are worth a score."""
        returnable = row_ids[self.pool.may_return(row_ids)]
        if self.pool_search.cost.uses_knn:
            self.pool.measure_knn(returnable)

    def _update_fewest(self, people: IntArray, row_ids: IntArray) -> None:
        """Find the fewest changes that are enough, by the scores and predictions so far."""
        if self.pool_search.fewest_first:
            return
        pool = self.pool
        fewest = self.fewest_known()
        row_ids = row_ids[pool.chance(row_ids) >= LIKELY]
        n_checked = N_CHECKED
        while row_ids.size:
            known = row_ids[pool.excluded_by[row_ids] == MAY_RETURN]
            np.minimum.at(fewest, pool.person[known], pool.n_counted[known])
            has_fewer = pool.n_counted[row_ids] < fewest[pool.person[row_ids]]
            row_ids = row_ids[has_fewer & (pool.excluded_by[row_ids] == UNKNOWN)]
            keys = pool.n_counted[row_ids], pool.distance[row_ids], row_ids
            pool.may_return(row_ids[best_of_each(pool.person[row_ids], *keys, n=n_checked)])
            n_checked *= 2
        self.fewest[people] = fewest[people]

    def fewest_known(self) -> IntArray:
        """The fewest changes of the good rows of each person; copies count only on their own."""
        pool, fewest = self.pool, np.full(self._done.size, self.pool.n_mutable)
        good = self.keep_good(np.flatnonzero(pool.valid))
        for row_ids in (good[pool.copy[good]], good[~pool.copy[good]]):
            fewest[pool.person[row_ids]] = pool.n_mutable
            np.minimum.at(fewest, pool.person[row_ids], pool.n_counted[row_ids])
        return fewest

    def keep_good(self, row_ids: IntArray) -> IntArray:
        """Those rows that are valid and may be returned."""
        row_ids = row_ids[self.pool.valid[row_ids] & self.pool.scored[row_ids]]
        return row_ids[self.pool.may_return(row_ids)]

    def _score(self, row_ids: IntArray) -> None:
        """Have rows scored, and note what that changes."""
        if not row_ids.size:
            return
        pool, person = self.pool, self.pool.person[row_ids]
        pool.score_rows(row_ids)
        np.add.at(self.n_tried, person, pool.scored[row_ids])
        np.add.at(self.n_refused, person, pool.scored[row_ids] & ~pool.valid[row_ids])
        good = self.keep_good(row_ids)
        if good.size:
            # Kept at once, because the time may be up at any moment.
            first = good[best_of_each(pool.person[good], self.costs(good), good)]
            first = first[self.best[pool.person[first]] < 0]
            self.best[pool.person[first]] = first
            self.add_around(good)
            self._update(np.unique(pool.person[good]))

    def add_around(self, good: IntArray) -> None:
        """Add versions of good rows to the pool."""
        self.pool.measure_knn(good)
        self.sources.add_around(good)

    def _update(self, people: IntArray) -> None:
        """Choose each person's best row again, among those without a needless change."""
        pool = self.pool
        good = np.flatnonzero(pool.valid & np.isin(pool.person, people))
        good = self.keep_needed(self.keep_good(good))
        originals = good[~pool.copy[good]]
        np.minimum.at(self.fewest, pool.person[originals], pool.n_counted[originals])
        cost = self.costs(good)
        # Of rows that do equally well, the closest to the person.
        first = best_of_each(pool.person[good], cost, pool.distance[good], good)
        best = good[first]
        self.best[people], self._best_cost[people] = -1, np.inf
        self.best[pool.person[best]], self._best_cost[pool.person[best]] = best, cost[first]

    def keep_needed(self, good: IntArray) -> IntArray:
        """Good rows without a needless change: no version with changes undone is good."""
        parent, child = self.sources.add_undone(good)
        needless = parent[self.pool.valid[child] & (self.pool.excluded_by[child] == MAY_RETURN)]
        return good[~np.isin(good, needless)]

    def keep_open(self, row_ids: IntArray) -> IntArray:
        """Those rows that were not scored and may be returned."""
        row_ids = np.unique(row_ids[~self.pool.scored[row_ids]])
        return row_ids[self.pool.may_return(row_ids)]

    def _improve(self, answered: IntArray) -> None:
        """Try versions of answers once no other row is worth a score; then people are done."""
        pool, by_distance = self.pool, self.pool_search.cost.by_distance
        best = self.best[answered[pool.may_score(answered)]]
        versions = self.keep_open(self.sources.add_undone(best)[1])
        if by_distance:
            versions = np.union1d(versions, self.keep_open(self.sources.add_closer(best)))
        self._score(versions)
        done = np.setdiff1d(answered, pool.person[versions])
        if by_distance:
            done = np.setdiff1d(done, self._take_detours(done))
        if self.pool_search.fewest_first:
            done = np.setdiff1d(done, self._try_singles(done))
        self._done[done] = True

    def _widen(self, people: IntArray) -> None:
        """Add rows from wider sources for people without an answer, until there are none."""
        pool = self.pool
        most = len(MAX_TRIES) - 1 if self.pool_search.task.request.widens else 0
        is_over = (self._n_widened[people] == most) | pool.complete[people]
        is_over |= ~pool.may_score(people)
        self._done[people[is_over]] = True
        people = people[~is_over]
        self._n_widened[people] += 1
        # Where limits exclude all rows so far, nearer values may be within them.
        self.sources.add_singles(people[self.n_tried[people] == 0], evenly=True)
        for n_widened in range(1, len(MAX_TRIES)):
            widened = people[self._n_widened[people] == n_widened]
            self.sources.add_draws(widened, n_widened=n_widened)
            self.sources.add_combinations(widened)

    def _take_detours(self, people: IntArray) -> IntArray:
        """Score nearer rows that replace changes of answers; returns the people who had some."""
        people = people[self._n_detours[people] < MAX_DETOURS]
        people = people[self.pool.may_score(people)]
        self._n_detours[people] += 1
        row_ids = self.keep_open(self.sources.add_detours(self.best[people]))
        self._score(row_ids)
        return np.unique(self.pool.person[row_ids])

    def _try_singles(self, people: IntArray) -> IntArray:
        """Score less likely single changes of people whose answers have several changes.

        The most likely one of each feature is scored, since the surrogate may be wrong about it.
        Returns the people who had some.
        """
        pool = self.pool
        people = people[self._n_detours[people] == 0]
        people = people[(pool.n_counted[self.best[people]] > 1) & pool.may_score(people)]
        self._n_detours[people] += 1
        single = self.open_rows(people)
        is_single = (pool.n_counted[single] == 1) & (pool.chance(single) >= MIN_SINGLE_CHANCE)
        single = single[is_single]
        place = (pool.cells[single, 1:] != OWN).argmax(axis=1)
        of_feature = pool.person[single] * pool.n_mutable + place
        single = single[best_of_each(of_feature, -pool.margin[single], single)]
        single = single[pool.may_return(single)]
        keys = -pool.margin[single], single
        single = single[best_of_each(pool.person[single], *keys, n=N_LAST_SINGLES)]
        self._score(single)
        return np.unique(pool.person[single])


class FurtherAnswers:
    """Finds further answers that ask for something else; the first ones stay as they are."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._pool = loop, loop.pool
        self._ranking = loop.pool_search.ranking

    def find(self) -> None:
        """Score rows that would be further answers, until all that are selected are good."""
        loop, pool, n_wanted = self._loop, self._pool, self._ranking.n_counterfactuals
        n_tried: IntArray = np.zeros(loop.best.size, dtype=np.int64)
        people = np.flatnonzero(loop.best >= 0)
        incomplete = people[~pool.complete[people]]
        loop.sources.add_singles(incomplete, evenly=True)
        loop.sources.add_combinations(incomplete)
        while people.size and not loop.stopped():
            good = loop.keep_good(np.flatnonzero(np.isin(pool.person, people)))
            good = loop.keep_needed(good)
            likely = self._cheapest_new(people, good, CHOICE_PER_ANSWER * n_wanted)
            selected, _ = self._select(np.concatenate([good, likely]))
            child = loop.sources.add_undone(selected[pool.scored[selected]])[1]
            chosen = np.union1d(selected[~pool.scored[selected]], loop.keep_open(child))
            person = pool.person[chosen]
            has_tries = n_tried[person] + times_seen_before(person) < TRIES_PER_ANSWER * n_wanted
            chosen = chosen[(has_tries | pool.complete[person]) & pool.may_score(person)]
            people = np.unique(pool.person[chosen])
            pool.score_rows(chosen)
            np.add.at(n_tried, pool.person[chosen], pool.scored[chosen])
            good = loop.keep_good(chosen)
            if good.size:
                loop.add_around(good)

    def answers(self) -> tuple[IntArray, IntArray]:
        """All answers by id, and their ranks."""
        loop = self._loop
        good = loop.keep_needed(loop.keep_good(np.flatnonzero(self._pool.valid)))
        parent, child = loop.sources.add_undone(good)
        # A further answer is returned only if none of its changes may be needless.
        doubtful = parent[np.isin(child, loop.keep_open(child))]
        good = good[~np.isin(good, doubtful)]
        return self._select(np.union1d(good, loop.best[loop.best >= 0]))

    def _cheapest_new(self, people: IntArray, good: IntArray, most: int) -> IntArray:
        """The cheapest row, likely valid, of each set of directions that no good row has."""
        loop, pool = self._loop, self._pool
        row_ids = loop.open_rows(people)
        is_complete = pool.complete[pool.person[row_ids]]
        row_ids = np.append(good, row_ids[(pool.chance(row_ids) >= LIKELY) | is_complete])
        made = np.concatenate([pool.person[row_ids][None], self._directions(row_ids)[0]])
        direction_id = RowTable(len(made)).number_rows(made.T.astype(np.int32))
        is_new = ~np.isin(direction_id, direction_id[: good.size])
        row_ids, direction_id = row_ids[is_new], direction_id[is_new]
        cost = loop.costs(row_ids)
        while True:
            first = best_of_each(direction_id, cost, row_ids)
            person = pool.person[row_ids[first]]
            n = np.where(pool.complete[person], row_ids.size, most)
            first = first[best_of_each(person, cost[first], row_ids[first], n=n)]
            if pool.may_return(row_ids[first]).all():
                return row_ids[first]
            left = pool.excluded_by[row_ids] <= MAY_RETURN
            row_ids, direction_id, cost = row_ids[left], direction_id[left], cost[left]

    def _directions(self, row_ids: IntArray) -> tuple[Codes, FloatArray]:
        """What rows ask for, as :func:`pick_different` takes it, and how far they go."""
        pool, factuals = self._pool, self._pool.factuals
        rows, people = pool.rows(row_ids), pool.positions[pool.person[row_ids]]
        before = self._on_scale(factuals.all_numbers[:, people], factuals.tree_codes[:, people])
        after = self._on_scale(pool.encodings.numbers(rows), pool.encodings.tree_codes(rows))
        # Levels without an order that do as well are alternatives within one answer.
        directions = np.select([after > before, after < before], [UP, DOWN], OTHER)
        actions = pool.actions(row_ids)
        directions = np.where(actions == OWN, OWN, directions).astype(np.int32)
        return directions, np.where(actions == OWN, 0.0, np.abs(np.nan_to_num(after - before)))

    def _on_scale(self, numbers: FloatArray, tree_codes: Codes) -> FloatArray:
        """Numbers and ordered levels of mutable features; NaN for missing and other levels."""
        schema = self._pool.factuals.schema
        on_scale = numbers[schema.mutable].copy()
        for place, column in enumerate(schema.mutable.tolist()):
            feature = schema.features[column]
            if feature.kind == "categorical" and feature.ordered:
                levels = tree_codes[column]
                on_scale[place] = np.where(levels < len(feature.known), levels, np.nan)
        return on_scale

    def _select(self, row_ids: IntArray) -> tuple[IntArray, IntArray]:
        """Rows with ranks: each person's first answer, then those that are best or differ most."""
        loop, pool, ranking = self._loop, self._pool, self._ranking
        row_ids = row_ids[loop.best[pool.person[row_ids]] >= 0]
        is_first = loop.best[pool.person[row_ids]] == row_ids
        if not loop.pool_search.fewest_first:
            fewest = np.minimum(loop.fewest, loop.fewest_known())
            most = fewest[pool.person[row_ids]] + loop.pool_search.extra_changes
            has_few = is_first | (pool.n_counted[row_ids] <= most)
            row_ids, is_first = row_ids[has_few], is_first[has_few]
        if not row_ids.size:
            return row_ids, row_ids
        order = np.lexsort((row_ids, loop.costs(row_ids), ~is_first, pool.person[row_ids]))
        row_ids = row_ids[order]
        is_kept = pick_different(pool.person[row_ids], *self._directions(row_ids), ranking.n_wanted)
        row_ids = row_ids[is_kept]
        number = times_seen_before(pool.person[row_ids])
        rank = number + 1
        if ranking.diversity is not None:
            rank = diverse_ranks(pool.rows(row_ids), number, pool.gower(row_ids), ranking)
        is_answer = (rank > 0) & (rank <= ranking.n_counterfactuals)
        return row_ids[is_answer], rank[is_answer]
