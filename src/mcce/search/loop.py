"""The loop: which row of each person to score next, and when to stop.

Beyond the paper. Each round the predictor scores, for everybody in one call, the row that is most
worth it: the one with the smallest *index*, its cost plus the price of a score divided by the
chance that the row is valid. A row that is cheaper or more likely to be valid goes first, and when
no index is below the cost of the best valid row so far, nothing else is worth a score. (Where the
chances of rows are independent, that is the optimal rule: Weitzman, "Optimal Search for the Best
Alternative".) Scores correct the predictions for the person's other rows. An answer is tried with
its changes undone. For people without an answer, ever wider sources add rows. Further answers are
looked for at the end.

Always true: the predictor accepted every answer, and it may be returned. With one or two changes
undone (one in "nearest", and if there are more than 30) it would be no answer any more, unless the
person's evaluations or the time were used up. A person's answer depends on no other person, and the
first one does not depend on how many are wanted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.parts import Reason
from ..distances import is_mean
from ..generate import FactualBlock
from ..kernels import (
    BoolArray,
    ExpiredError,
    FloatArray,
    IntArray,
    RowTable,
    times_seen_before,
)
from ..postprocess.diversity import NonRedundant, diverse_ranks
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
# Among the latter, only this many that change the same features come first.
MAX_ALIKE = 3


@dataclass(frozen=True, eq=False)
class PoolStage:
    """Search beyond the paper, for people in blocks."""

    search: PoolSearch
    gives_reasons: bool = False

    def run(self, positions: IntArray) -> SearchOutcome:
        """Search for people, block by block; whole blocks run in threads."""
        task = self.search.task
        n = min(n_threads(task.settings.n_jobs), MAX_THREADS)
        n_rows = ROWS_PER_PERSON + self.search.n_samples
        n_least = min(BLOCKS_PER_THREAD * n, positions.size * n_rows // MIN_DRAWS)
        in_blocks = blocks_of(task, positions, n_rows, max(n_least, 1))
        run = lambda some: map_ordered(self._run_block, some, n)  # noqa: E731
        return run_blocks(task, positions, in_blocks, run)

    def _run_block(self, block: FactualBlock) -> SearchOutcome:
        started, expired = time.perf_counter(), False
        loop: Loop | None = None
        further: FurtherAnswers | None = None
        task, monitor = self.search.task, self.search.task.request.monitor
        try:
            with task.within_deadline():
                loop = Loop(self.search, block)
                loop.run()
                if self.search.ranking.n_counterfactuals > 1:
                    further = FurtherAnswers(loop)
                    further.find()
        except ExpiredError:
            expired = True
            monitor.stopped = True
        if loop is None:
            return SearchOutcome.merge(task.factuals, [])
        pool = loop.pool
        # Time that is up may leave the pool in the middle of a step.
        if further is not None and not expired:
            answers, rank = further.answers()
        else:
            answers = loop.best[loop.best >= 0]
            rank = np.ones_like(answers)
        misses, reasons = MeasuredRows.empty(task.factuals), dict[int, Reason]()
        if self.gives_reasons and not monitor.stopped:
            left = np.flatnonzero(loop.best < 0)
            misses, reasons = pool.misses_and_reasons(left)
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

    def __init__(self, search: PoolSearch, block: FactualBlock) -> None:
        self.search, self._block = search, block
        self.sources = Sources(search, block)
        self.pool: Pool = self.sources.pool
        n_people = block.positions.size
        model = search.knn_model
        self._median_knn = 0.0 if model is None else model.median
        self._price = search.cost.price(self._median_knn)
        features = len(search.task.factuals.schema.features)
        self._scale = features if is_mean(search.row_rules.distance) else 1
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
        """Add single changes and draws, and combinations where no single change is likely valid."""
        self.sources.add_singles(people)
        people = people[~self.pool.complete[people]]
        self.sources.add_draws(people, reduce=self.search.extra_changes > 0)
        if self.search.cost.by_distance:
            self.sources.add_paths(people)
        pool, rows = self.pool, self.open_rows(people)
        likely = rows[(pool.n_changes[rows] == 1) & (pool.chance(rows) >= LIKELY)]
        left = np.setdiff1d(people, pool.person[likely[pool.may_return(likely)]])
        self.sources.add_singles(left, thorough=True)
        self.sources.add_combinations(left)

    def stopped(self) -> bool:
        """Report the progress; whether to stop."""
        monitor, n_settled = self.search.task.request.monitor, int(self._done.sum())
        return monitor.stopped or monitor.report(self._block, n_settled, self.pool.n_evaluated)

    def costs(self, row_ids: IntArray) -> FloatArray:
        """What rows cost, as far as is known."""
        pool = self.pool
        distance = np.minimum(pool.distance[row_ids] * self._scale, MAX_DISTANCE)
        # A knn distance that is not known yet counts as 0.
        knn_distance = np.minimum(np.nan_to_num(pool.knn_distance[row_ids]), MAX_DISTANCE)
        n_changes = pool.n_changes[row_ids]
        measures = RowMeasures(n_changes, distance, knn_distance, self._median_knn)
        cost = self.search.cost.compute(measures) + EXCESS_PENALTY * self._excess(row_ids)
        return cost + COPY_PENALTY * pool.copy[row_ids]

    def _excess(self, row_ids: IntArray) -> IntArray:
        """How many changes rows have beyond what answers may have."""
        most = self.fewest[self.pool.person[row_ids]] + self.search.extra_changes
        excess: IntArray = np.maximum(self.pool.n_changes[row_ids] - most, 0)
        return excess

    def open_rows(self, people: IntArray) -> IntArray:
        """Rows of people that were not scored, and that nothing excludes as far as is known."""
        pool, here = self.pool, np.zeros(self._done.size, dtype=bool)
        here[people] = True
        may = (pool.excluded_by == UNKNOWN) | (pool.excluded_by == MAY_RETURN)
        return np.flatnonzero(~pool.scored & may & here[pool.person])

    def _choose(self, people: IntArray) -> IntArray:
        """The rows that are most worth a score: one of each person, more if many failed."""
        pool, chosen = self.pool, [np.empty(0, dtype=np.int64)]
        people = people[self._may_go_on(people)]
        n_wanted = np.where(self.best >= 0, 1, np.maximum(self.n_tried // 3, 1))
        rows = self.open_rows(people)
        self._update_fewest(people, rows)
        rows = rows[pool.excluded_by[rows] <= MAY_RETURN]
        n_checked = N_CHECKED
        while rows.size:
            index = self._index(rows)
            worth = index < self._best_cost[pool.person[rows]]
            rows, index = rows[worth], index[worth]
            n = np.maximum(n_checked, n_wanted[pool.person[rows]])
            top = rows[best_of_each(pool.person[rows], index, rows, n=n)]
            person = pool.person[top]
            unknown = pool.excluded_by[top] == UNKNOWN
            if self.search.cost.uses_knn:
                unknown |= np.isnan(pool.knn_distance[top])
            leads = times_seen_before(person) < n_wanted[person]
            undecided = np.zeros(self._done.size, dtype=bool)
            undecided[person[unknown & leads]] = True
            chosen.append(top[leads & ~undecided[person]])
            self._check(top[unknown & undecided[person]])
            rows = rows[undecided[pool.person[rows]]]
            rows = rows[pool.excluded_by[rows] <= MAY_RETURN]
            n_checked *= 2
        return np.concatenate(chosen)

    def _may_go_on(self, people: IntArray) -> BoolArray:
        """Whether people may have another row scored."""
        most = np.array(MAX_TRIES)[self._n_widened[people]]
        few = (self.best[people] >= 0) | (self.n_tried[people] < most) | self.pool.complete[people]
        return few & self.pool.may_score(people)

    def _index(self, row_ids: IntArray) -> FloatArray:
        """How much rows are worth a score, the smaller the better."""
        pool, person = self.pool, self.pool.person[row_ids]
        chance, complete = pool.chance(row_ids), self.pool.complete[person]
        # If there are only a few rows, all that may be better are scored.
        price = np.where(
            complete, 0.0, self._price * (1 + PRICE_PER_REFUSAL * self.n_refused[person])
        )
        return self.costs(row_ids) + price / np.maximum(chance, MIN_CHANCE)

    def _check(self, row_ids: IntArray) -> None:
        """Find out what decides whether rows are worth a score."""
        may = row_ids[self.pool.may_return(row_ids)]
        if self.search.cost.uses_knn:
            self.pool.measure_knn(may)

    def _update_fewest(self, people: IntArray, rows: IntArray) -> None:
        """Find the fewest changes that are enough, by the scores and predictions so far."""
        if self.search.fewest_first:
            return
        pool = self.pool
        fewest = self.fewest_known()
        rows = rows[pool.chance(rows) >= LIKELY]
        n_checked = N_CHECKED
        while rows.size:
            known = rows[pool.excluded_by[rows] == MAY_RETURN]
            np.minimum.at(fewest, pool.person[known], pool.n_changes[known])
            fewer = pool.n_changes[rows] < fewest[pool.person[rows]]
            rows = rows[fewer & (pool.excluded_by[rows] == UNKNOWN)]
            first = best_of_each(
                pool.person[rows], pool.n_changes[rows], pool.distance[rows], rows, n=n_checked
            )
            pool.may_return(rows[first])
            n_checked *= 2
        self.fewest[people] = fewest[people]

    def fewest_known(self) -> IntArray:
        """The fewest changes of the good rows of each person; copies count only on their own."""
        pool, fewest = self.pool, np.full(self._done.size, self.pool.n_mutable)
        good = self.keep_good(np.flatnonzero(pool.valid))
        for rows in (good[pool.copy[good]], good[~pool.copy[good]]):
            fewest[pool.person[rows]] = pool.n_mutable
            np.minimum.at(fewest, pool.person[rows], pool.n_changes[rows])
        return fewest

    def keep_good(self, row_ids: IntArray) -> IntArray:
        """Those of some rows that are valid and may be returned."""
        row_ids = row_ids[self.pool.valid[row_ids] & self.pool.scored[row_ids]]
        return row_ids[self.pool.may_return(row_ids)]

    def _score(self, row_ids: IntArray) -> None:
        """Have rows scored, and note what that changes."""
        if not row_ids.size:
            return
        pool = self.pool
        person = pool.person[row_ids]
        pool.score_rows(row_ids)
        np.add.at(self.n_tried, person, pool.scored[row_ids])
        np.add.at(self.n_refused, person, pool.scored[row_ids] & ~pool.valid[row_ids])
        found = self.keep_good(row_ids)
        if found.size:
            # Kept at once, because the time may be up at any moment.
            first = found[best_of_each(pool.person[found], self.costs(found), found)]
            first = first[self.best[pool.person[first]] < 0]
            self.best[pool.person[first]] = first
            self.add_around(found)
            self._update(np.unique(pool.person[found]))

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
        np.minimum.at(self.fewest, pool.person[originals], pool.n_changes[originals])
        cost = self.costs(good)
        # Of rows that do equally well, the closest to the person.
        first = best_of_each(pool.person[good], cost, pool.distance[good], good)
        best = good[first]
        self.best[people], self._best_cost[people] = -1, np.inf
        self.best[pool.person[best]], self._best_cost[pool.person[best]] = best, cost[first]

    def keep_needed(self, good: IntArray) -> IntArray:
        """Good rows that are not good any more with some of their changes undone."""
        parent, child = self.sources.add_undone(good)
        needless = parent[self.pool.valid[child] & (self.pool.excluded_by[child] == MAY_RETURN)]
        return good[~np.isin(good, needless)]

    def keep_open(self, row_ids: IntArray) -> IntArray:
        """Those of some rows that were not scored and may be returned."""
        row_ids = np.unique(row_ids[~self.pool.scored[row_ids]])
        return row_ids[self.pool.may_return(row_ids)]

    def _improve(self, answered: IntArray) -> None:
        """Try versions of answers once no other row is worth a score; then people are done."""
        pool, cost = self.pool, self.search.cost
        may = answered[pool.may_score(answered)]
        tried = self.keep_open(self.sources.add_undone(self.best[may])[1])
        if cost.by_distance:
            tried = np.union1d(tried, self.keep_open(self.sources.add_closer(self.best[may])))
        self._score(tried)
        done = np.setdiff1d(answered, pool.person[tried])
        if cost.by_distance:
            done = np.setdiff1d(done, self._take_detours(done))
        if self.search.fewest_first:
            done = np.setdiff1d(done, self._try_singles(done))
        self._done[done] = True

    def _widen(self, people: IntArray) -> None:
        """Add rows from wider sources for people without an answer, until there are none."""
        pool = self.pool
        most = len(MAX_TRIES) - 1 if self.search.task.request.widens else 0
        over = (self._n_widened[people] == most) | pool.complete[people] | ~pool.may_score(people)
        self._done[people[over]] = True
        people = people[~over]
        self._n_widened[people] += 1
        for n_widened in range(1, len(MAX_TRIES)):
            theirs = people[self._n_widened[people] == n_widened]
            self.sources.widen(theirs, to_most=n_widened == most)
            self.sources.add_combinations(theirs)

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
        people = people[(pool.n_changes[self.best[people]] > 1) & pool.may_score(people)]
        self._n_detours[people] += 1
        self.sources.add_singles(people, thorough=True)
        rows = self.open_rows(people)
        rows = rows[(pool.n_changes[rows] == 1) & (pool.chance(rows) >= MIN_SINGLE_CHANCE)]
        feature = (pool.cells[rows, 1:] != OWN).argmax(axis=1)
        of_feature = pool.person[rows] * pool.n_mutable + feature
        rows = rows[best_of_each(of_feature, -pool.margin[rows], rows)]
        rows = rows[pool.may_return(rows)]
        rows = rows[best_of_each(pool.person[rows], -pool.margin[rows], rows, n=N_LAST_SINGLES)]
        self._score(rows)
        return np.unique(pool.person[rows])


class FurtherAnswers:
    """Finds further answers; the first ones stay as the loop found them."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._pool = loop, loop.pool
        self._ranking = loop.search.ranking

    def find(self) -> None:
        """Score rows that would be further answers, until all that are selected are good."""
        loop, pool, n_wanted = self._loop, self._pool, self._ranking.n_counterfactuals
        n_tried: IntArray = np.zeros(loop.best.size, dtype=np.int64)
        people = np.flatnonzero(loop.best >= 0)
        while people.size and not loop.stopped():
            rows = loop.open_rows(people)
            rows = rows[(pool.chance(rows) >= LIKELY) | pool.complete[pool.person[rows]]]
            rows = self._different(rows, CHOICE_PER_ANSWER * n_wanted)
            rows = rows[pool.may_return(rows)]
            good = loop.keep_good(np.flatnonzero(np.isin(pool.person, people)))
            selected, _ = self._select(np.concatenate([loop.keep_needed(good), rows]))
            child = self._loop.sources.add_undone(selected[pool.scored[selected]])[1]
            chosen = np.concatenate([selected[~pool.scored[selected]], loop.keep_open(child)])
            chosen = np.unique(chosen)
            person = pool.person[chosen]
            left = n_tried[person] + times_seen_before(person) < TRIES_PER_ANSWER * n_wanted
            chosen = chosen[(left | pool.complete[person]) & pool.may_score(person)]
            people = np.unique(pool.person[chosen])
            pool.score_rows(chosen)
            np.add.at(n_tried, pool.person[chosen], pool.scored[chosen])
            found = loop.keep_good(chosen)
            if found.size:
                loop.add_around(found)

    def answers(self) -> tuple[IntArray, IntArray]:
        """All answers by id, and their ranks."""
        loop = self._loop
        good = loop.keep_needed(loop.keep_good(np.flatnonzero(self._pool.valid)))
        parent, child = loop.sources.add_undone(good)
        # A further answer is returned only if none of its changes may be needless.
        doubtful = parent[np.isin(child, loop.keep_open(child))]
        good = good[~np.isin(good, doubtful)]
        return self._select(np.union1d(good, loop.best[loop.best >= 0]))

    def _different(self, row_ids: IntArray, most: int) -> IntArray:
        """The cheapest rows of each person, and first those that change other features."""
        pool = self._pool
        changed = (pool.cells[row_ids] != OWN).astype(np.int32)
        changed[:, 0] = pool.person[row_ids]
        alike = RowTable(changed.shape[1]).number_rows(changed)
        cost = self._loop.costs(row_ids)
        by_cost = np.lexsort((row_ids, cost, alike))
        n_cheaper = np.empty_like(row_ids)
        n_cheaper[by_cost] = times_seen_before(alike[by_cost])
        n = np.where(pool.complete[pool.person[row_ids]], row_ids.size, most)
        return row_ids[
            best_of_each(pool.person[row_ids], n_cheaper >= MAX_ALIKE, cost, row_ids, n=n)
        ]

    def _select(self, row_ids: IntArray) -> tuple[IntArray, IntArray]:
        """Rows with ranks: each person's first answer, then those that are best or differ most."""
        loop, pool, ranking = self._loop, self._pool, self._ranking
        is_first = loop.best[pool.person[row_ids]] == row_ids
        if not loop.search.fewest_first:
            fewest = np.minimum(loop.fewest, loop.fewest_known())
            most = fewest[pool.person[row_ids]] + loop.search.extra_changes
            few = is_first | (pool.n_changes[row_ids] <= most)
            row_ids, is_first = row_ids[few], is_first[few]
        answered = loop.best[pool.person[row_ids]] >= 0
        row_ids, is_first = row_ids[answered], is_first[answered]
        if not row_ids.size:
            return row_ids, row_ids
        order = np.lexsort((row_ids, loop.costs(row_ids), ~is_first, pool.person[row_ids]))
        row_ids = row_ids[order]
        _, person = np.unique(pool.person[row_ids], return_inverse=True)
        number = times_seen_before(person)
        n_people, n_rows = int(person.max()) + 1, int(number.max()) + 1
        listed = np.zeros((n_people, n_rows), dtype=bool)
        codes = np.full((pool.n_mutable, n_people, n_rows), OWN, dtype=np.int32)
        listed[person, number], codes[:, person, number] = True, pool.codes(row_ids)
        nonredundant = NonRedundant(pool.n_mutable, n_people, min(ranking.n_wanted, n_rows))
        kept = nonredundant.keep(np.arange(n_people), codes, listed)[person, number]
        row_ids, number = row_ids[kept], times_seen_before(person[kept])
        rank = number + 1
        if ranking.diversity is not None:
            rank = diverse_ranks(pool.rows(row_ids), number, pool.gower(row_ids), ranking)
        taken = (rank > 0) & (rank <= ranking.n_counterfactuals)
        return row_ids[taken], rank[taken]
