"""The sources of a pool: where the rows come from that a search considers.

Beyond the paper. Draws of the model (step 2) are realistic as a whole, so the most promising are
kept. The surrogate also ranks each draw's changes by their effect alone; the shortest prefix that
it predicts valid enters the pool, also without single changes. Single changes go to frequent
values that a person may have, and to values between the person's own and one that is predicted
valid. The most promising ones are combined to pairs. For "nearest", paths make one change after
another, each time the one that gains most for its distance. Columns that follow from changes are
recomputed in every row, and features that may only change together do so.

Always true: a person's rows depend on no other person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..candidates import Candidates, becomes_missing
from ..constraints.of_rows import Together
from ..errors import ParameterError
from ..generate import FactualBlock, blocks, generate, tables_of
from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    Int32Array,
    IntArray,
    check_cancellation,
    times_seen_before,
)
from ..tables.schema import OWN
from .pool import Pool, PoolSearch, best_of_each
from .stage import SearchTask

# Draws per person whose changes are also tried in part; fewer for tables of many features. With
# 12, answers have .045 changes more on FICO.
N_IN_PARTS, MIN_IN_PARTS = 24, 6
# Whole draws for a person without an answer.
N_WIDER_DRAWS = 1000
# For people without an answer, the search widens to this many times the draws, then to the most.
WIDER_DRAWS = 10
# The smallest standardized margin of rows that are tried.
MIN_MARGIN = -2.0
# Of promising rows, those with a standardized margin near this come first: they have the smallest
# changes. With the largest first, answers of "balanced" have .1 more on Adult with all levels.
LIKELY_MARGIN = 1.0
# The most changes that are left out of a draw, one by one.
MAX_LEFT_OUT = 40
# If there are more mutable features, single changes are tried for those that matter most to the
# surrogate.
MAX_FEATURES = 32
# All values are tried of features with at most this many.
ALL_VALUES = 32
# Of other numbers, this many quantiles are tried; on paths, and where nothing could be scored,
# so many evenly spaced values.
N_QUANTILES, N_SPACED = 15, 60
# Of other levels, the most frequent.
MAX_LEVELS = 64
# Single changes kept for a person.
N_SINGLES = 40
# Single changes that are combined: per person, and per feature of a person.
N_COMBINED, PER_FEATURE = 24, 3
# Pairs of changes kept for a person.
N_PAIRS = 40
# Shares of the way from the own number to one predicted valid, where further values are tried.
SHARES_BETWEEN = np.arange(1, 7) / 7
# If the values that a person may have make at most this many rows, all of them are tried.
MAX_COMPLETE = 300
# Rows with at most this many changes are also tried with any two undone, unless only the distance
# counts.
MAX_CHANGES_FOR_PAIRS = 30
# Steps of a path at most, and the standardized margin where it ends.
MAX_STEPS, PATH_END = 40, 12.0
# Rows predicted valid that are kept at each step, and values of each feature tried after the first
# step.
PER_STEP, STEPS_PER_FEATURE = 3, 10
# If only the distance counts: shares of the way from the own number to that of an answer, tried in
# turn until a row is valid; and detours kept per answer.
SHARES_CLOSER = np.array([0.5, 0.75, 0.875, 0.95])
N_DETOURS = 6
# By place of a mutable feature: codes to try, shape (n_people, n_codes), and who may have which.
Values: TypeAlias = dict[int, tuple[Codes, BoolArray]]


class Sources:
    """Adds rows to the pool of a block of people."""

    def __init__(self, pool_search: PoolSearch, block: FactualBlock) -> None:
        self.pool_search, self.task = pool_search, pool_search.task
        task, factuals, schema = self.task, self.task.factuals, self.task.factuals.schema
        tables = tables_of(task.fitted.generator, factuals)
        self.pool = Pool(pool_search, block.positions, tables)
        self._by_position = np.argsort(block.positions)
        self._limits = task.factual_limits.limits(block.positions, schema.features)
        self._sets = FeatureSets(task)
        width = max(self._sets.n, MAX_FEATURES)
        self._n_in_parts = max(N_IN_PARTS * MAX_FEATURES // width, MIN_IN_PARTS)
        # Values of a generator's own are only drawn.
        of_features = zip(tables, factuals.tables, strict=True)
        is_trained = np.array([table is trained for table, trained in of_features])
        self._tried_alone = is_trained & self._sets.free
        if schema.mutable.size > MAX_FEATURES and pool_search.surrogate.trees:
            used = pool_search.surrogate.inputs(MAX_FEATURES, among=schema.mutable)
            self._tried_alone &= np.isin(schema.mutable, used)
        self._frequent = [
            frequent_codes(counts, schema.features[column].kind == "numeric")
            for counts, column in zip(pool_search.accepted_counts, schema.mutable, strict=True)
        ]

    def add_draws(self, people: IntArray, *, n_widened: int = 0) -> None:
        """Add promising draws and parts of their changes, more for people without an answer."""
        first, most = self.pool_search.n_samples, self.pool_search.max_samples
        middle = min(WIDER_DRAWS * first, most)
        start, end = [(0, first), (0, middle), (middle, most)][n_widened]
        for person, codes, margin, draw in self._drawn(people, start, end):
            keys = -margin, (codes != OWN).sum(axis=0), draw
            chosen = best_of_each(person, *keys, n=self._n_in_parts)
            self._add_parts(person[chosen], codes[:, chosen])
            if n_widened:
                chosen = best_of_each(person, *keys, n=N_WIDER_DRAWS)
                self.pool.add(person[chosen], codes[:, chosen])

    def add_undone(self, row_ids: IntArray) -> tuple[IntArray, IntArray]:
        """Pairs of rows and their versions with some changes undone, which are added if new.

        Of up to 30 changes, one or two are undone at a time; of more, or for "nearest", one.
        """
        pool, sets = self.pool, self._sets
        actions = pool.actions(row_ids)
        changed = sets.changed(actions)
        n_changed = changed.sum(axis=1)
        rows, undone = [row_ids[:0]], [np.empty((0, sets.n), dtype=bool)]
        for n in np.unique(n_changed[n_changed > 1]).tolist():
            row = np.flatnonzero(n_changed == n)
            by_distance = self.pool_search.cost.by_distance
            subsets = _subsets(n, 1 if by_distance or n == 2 or n > MAX_CHANGES_FOR_PAIRS else 2)
            is_undone = np.zeros((row.size, len(subsets), sets.n), dtype=bool)
            number, feature_set = np.nonzero(changed[row])
            is_undone[number, :, feature_set] = np.tile(subsets.T, (row.size, 1))
            rows.append(np.repeat(row, len(subsets)))
            undone.append(is_undone.reshape(-1, sets.n))
        row = np.concatenate(rows)
        codes = np.where(sets.features(np.concatenate(undone)).T, OWN, actions[:, row])
        parent = row_ids[row]
        child = pool.add(pool.person[parent], codes)
        # Without these changes, nothing or the same row may be left.
        is_other = (child != parent) & (pool.sparsity[child] > 0)
        return parent[is_other], child[is_other]

    def add_around(self, row_ids: IntArray) -> None:
        """Add versions of rows with changes undone, and with values nearer to the own ones."""
        self.add_undone(row_ids)
        self._add_between(row_ids)

    def add_combinations(self, people: IntArray) -> None:
        """Add pairs of promising single changes."""
        pool = self.pool
        changed = np.flatnonzero(np.isin(pool.person, people) & (pool.sparsity >= 1))
        single = changed[self._sets.changed(pool.actions(changed)).sum(axis=1) == 1]
        place = (pool.actions(single) != OWN).argmax(axis=0)
        of_feature = pool.person[single] * pool.n_mutable + place
        single = single[best_of_each(of_feature, -pool.margin[single], single, n=PER_FEATURE)]
        single = single[
            best_of_each(pool.person[single], -pool.margin[single], single, n=N_COMBINED)
        ]
        left, right = _pairs_within(pool.person[single])
        first, second = pool.actions(single[left]), pool.actions(single[right])
        apart = np.flatnonzero(~((first != OWN) & (second != OWN)).any(axis=0))
        left, right, first, second = left[apart], right[apart], first[:, apart], second[:, apart]
        codes = np.where(first == OWN, second, first)
        self._add_promising(pool.person[single[left]], codes, N_PAIRS)

    def _drawn(
        self, people: IntArray, start: int, end: int
    ) -> Iterator[tuple[IntArray, Codes, FloatArray, IntArray]]:
        """Distinct draws of people: person, changes, margin (0 at most) and draw number of each.

        Columns that follow from changes are recomputed when rows are added.
        """
        pool, task, draws = self.pool, self.task, np.arange(start, end, dtype=np.int64)
        fitted, limits = task.fitted, task.factual_limits
        generator = fitted.generator
        if not draws.size:
            return
        for block in blocks(limits, pool.positions[people], draws.size, task.settings.memory):
            candidates = generate(
                generator, limits, block, draws, fitted.seed, self.pool_search.n_samples
            )
            has_own = candidates.tables is not task.factuals.tables
            if has_own and not generator.capabilities.value_tables:
                raise ParameterError(
                    f"The generator {type(generator).__name__} draws values of its own, which only "
                    "the paper's search takes as they come. For other searches its capabilities "
                    "must say value_tables, with all values in tables_."
                )
            # The numbers of the people here, and which of them each draw is for.
            numbers = self._by_position[
                np.searchsorted(pool.positions, block.positions, sorter=self._by_position)
            ]
            member, draw = np.nonzero(candidates.distinct[candidates.group])
            margin = self._predict_draws(candidates, numbers)[candidates.group[member], draw]
            codes = self._actions(candidates.select(member, draw).codes, candidates.tables)
            kept = np.flatnonzero((codes != OWN).any(axis=0))
            yield numbers[member[kept]], codes[:, kept], np.minimum(margin[kept], 0.0), draw[kept]

    def _actions(self, codes: Codes, tables: Sequence[pd.Series[Any]]) -> Codes:
        """Draws without what no action does: change columns that follow, or lose values."""
        codes[self.task.computed_places] = OWN
        for place in self.task.never_missing:
            codes[place, becomes_missing(codes[place], tables[place])] = OWN
        return codes

    def _predict_draws(self, candidates: Candidates, people: IntArray) -> FloatArray:
        """Predictions of draws, once for each group of people who share them."""
        _, first = np.unique(candidates.group, return_index=True)
        group, draw = np.nonzero(candidates.distinct)
        codes = candidates.comparison.codes[:, group, draw]
        # Values that get lost are left: what they are for a person depends on the person.
        codes[self.task.computed_places] = OWN
        margin = np.full(candidates.distinct.shape, -np.inf)
        person = people[first[group]]
        response = self.pool.predict(person, codes)
        margin[group, draw] = self.pool.standardized_margin(None, response)
        return margin

    def _add_parts(self, person: IntArray, codes: Codes) -> None:
        """Add rows, and rows with those of their changes that gain most."""
        pool, sets = self.pool, self._sets
        pool.add(person, codes)
        changed = sets.changed(codes)
        row, feature_set = np.nonzero(changed)
        alone = np.zeros((row.size, sets.n), dtype=bool)
        alone[np.arange(row.size), feature_set] = True
        response = pool.predict(person[row], self._keep_sets(codes, row, alone))
        gain = pool.standardized_margin(person[row], response)
        order = np.lexsort((feature_set, -gain, row))
        row, feature_set = row[order], feature_set[order]
        prefix_end = times_seen_before(row)
        # Prefixes of each row's changes, sorted by gain, and where each ends.
        rank = np.full(changed.shape, changed.shape[1])
        rank[row, feature_set] = prefix_end
        masks = rank[row] <= prefix_end[:, None]
        prefixes = self._keep_sets(codes, row, masks)
        response = pool.predict(person[row], prefixes)
        margin = pool.standardized_margin(person[row], response)
        likely = margin >= 0
        shortest = np.full(person.size, changed.shape[1])
        np.minimum.at(shortest, row[likely], prefix_end[likely])
        near = margin >= MIN_MARGIN
        pool.add(person[row[near]], prefixes[:, near], response[near])
        ends = likely & (prefix_end == shortest[row])
        self._leave_out(person, codes, row[ends], masks[ends])

    def _leave_out(self, person: IntArray, codes: Codes, row: IntArray, masks: BoolArray) -> None:
        """Add rows without changes that the surrogate predicts to be needless, one by one."""
        pool = self.pool
        for _ in range(MAX_LEFT_OUT):
            if not row.size:
                return
            check_cancellation()
            parent, left_out = np.nonzero(masks & (masks.sum(axis=1) > 1)[:, None])
            fewer = masks[parent]
            fewer[np.arange(parent.size), left_out] = False
            part, whose = self._keep_sets(codes, row[parent], fewer), person[row[parent]]
            response = pool.predict(whose, part)
            margin = pool.standardized_margin(whose, response)
            near, likely = margin >= MIN_MARGIN, np.flatnonzero(margin >= 0)
            pool.add(whose[near], part[:, near], response[near])
            best = likely[best_of_each(parent[likely], -margin[likely], left_out[likely])]
            row, masks = row[parent[best]], fewer[best]

    def add_singles(self, people: IntArray, *, evenly: bool = False) -> None:
        """Add promising rows with one change; where there are only a few rows, all of them."""
        values = self._values(people, evenly=evenly)
        self._add_all(people, values)
        member, place, code = _single_changes(values)
        codes = np.full((self.pool.n_mutable, member.size), OWN, dtype=np.int32)
        codes[place, np.arange(member.size)] = code
        kept = self._add_promising(people[member], codes, N_SINGLES)
        self._add_between(kept[self.pool.margin[kept] >= 0])

    def add_paths(self, people: IntArray) -> None:
        """Add rows on a path of changes, each the one that gains most for its distance."""
        own = np.full((self.pool.n_mutable, people.size), OWN, dtype=np.int32)
        self._add_paths(people, own, np.zeros(people.size), np.full(people.size, np.inf))

    def add_detours(self, row_ids: IntArray) -> IntArray:
        """Add nearer rows in which other changes replace one; returns the nearest."""
        pool, actions, person = self.pool, self.pool.actions(row_ids), self.pool.person[row_ids]
        changed = self._sets.changed(actions)
        row, left_out = np.nonzero(changed)
        fewer = changed[row]
        fewer[np.arange(row.size), left_out] = False
        # What is known of a row corrects the predictions around it.
        predicted = pool.standardized_margin(person, pool.predict(person, actions))
        error = pool.margin[row_ids] / pool.typical_error - predicted
        start = self._keep_sets(actions, row, fewer)
        added = self._add_paths(person[row], start, error[row], pool.distance[row_ids][row])
        added = added[~pool.scored[added] & pool.may_return(added)]
        return added[best_of_each(pool.person[added], pool.distance[added], added, n=N_DETOURS)]

    def _add_paths(
        self, people: IntArray, codes: Codes, error: FloatArray, most: FloatArray
    ) -> IntArray:
        """Add the rows predicted valid that are nearest at each step of paths.

        Each path has a person, a start, an error of predictions on it, and a largest distance.
        """
        pool, added = self.pool, [people[:0]]
        path, place, code = _single_changes(self._values(people, evenly=True))
        margin_so_far = pool.standardized_margin(people, pool.predict(people, codes)) + error
        distance_so_far = pool.distances(people, codes)
        for step in range(MAX_STEPS):
            check_cancellation()
            tried = codes[:, path]
            tried[place, np.arange(path.size)] = code
            response = pool.predict(people[path], tried)
            margin = pool.standardized_margin(people[path], response) + error[path]
            distance = pool.distances(people[path], tried)
            near = distance < most[path]
            likely = np.flatnonzero((margin >= 0) & near)
            likely = likely[best_of_each(path[likely], distance[likely], likely, n=PER_STEP)]
            added.append(pool.add(people[path[likely]], tried[:, likely], response[likely]))
            gain = margin - margin_so_far[path]
            rate = gain / np.maximum(distance - distance_so_far[path], 1e-9)
            better = np.flatnonzero((gain > 0) & near)
            best = better[best_of_each(path[better], -rate[better], place[better], code[better])]
            moved, codes = path[best], codes.copy()
            codes[:, moved] = tried[:, best]
            margin_so_far[moved], distance_so_far[moved] = margin[best], distance[best]
            goes_on = np.isin(path, moved[margin_so_far[moved] < PATH_END])
            if not step:
                of_feature = path * pool.n_mutable + place
                best = best_of_each(of_feature, -rate, code, n=STEPS_PER_FEATURE)
                goes_on &= np.isin(np.arange(path.size), best[gain[best] > 0])
            path, place, code = path[goes_on], place[goes_on], code[goes_on]
            if not path.size:
                break
        return np.unique(np.concatenate(added))

    def _values(self, people: IntArray, *, evenly: bool = False) -> Values:
        """The values to try for people, who may have fewer of them with limits of their own."""
        factuals, positions = self.task.factuals, self.pool.positions[people]
        limits = None if self._limits is None else self._limits.take(people)
        values: Values = {}
        for place in np.flatnonzero(self._tried_alone).tolist():
            column = int(factuals.schema.mutable[place])
            feature, own = factuals.schema.features[column], factuals.codes[column, positions]
            if feature.n_codes <= ALL_VALUES:
                tried = np.arange(feature.n_codes, dtype=np.int32)
            elif evenly and feature.kind == "numeric":
                even = np.linspace(0, feature.n_codes - 1, N_SPACED)
                tried = np.unique(even.round()).astype(np.int32)
            else:
                tried = self._frequent[place]
            codes = np.broadcast_to(tried, (people.size, tried.size))
            may_have = np.ones_like(codes, dtype=bool)
            if limits is not None and limits.is_limited(column):
                if feature.n_codes > ALL_VALUES:
                    # Few of the values above may be among those that a person may have.
                    spaced = limits.evenly_spaced(column, N_SPACED if evenly else N_QUANTILES)
                    codes = np.concatenate([codes, spaced], axis=1)
                may_have = limits.allow_change(column, codes)
            if place in self.task.never_missing:
                may_have = may_have & ~becomes_missing(codes, factuals.tables[place])
            values[place] = codes, may_have & (codes != own[:, None])
        return values

    def _add_all(self, people: IntArray, values: Values) -> None:
        """Add all rows of people for whom there are only a few."""
        pool, schema = self.pool, self.task.factuals.schema
        free = np.flatnonzero(self._sets.free).tolist()
        if set(values) != set(free) or self.task.scores.is_bounded:
            return
        if any(schema.features[schema.mutable[place]].n_codes > ALL_VALUES for place in values):
            return
        n_rows = np.ones(people.size)
        for _, may_have in values.values():
            n_rows *= 1 + may_have.sum(axis=1)
        for member in np.flatnonzero(n_rows <= MAX_COMPLETE).tolist():
            choices = [
                [OWN, *codes[member, may_have[member]]] for codes, may_have in values.values()
            ]
            combined = np.array([*product(*choices)], dtype=np.int32)
            codes = np.full((pool.n_mutable, len(combined)), OWN, dtype=np.int32)
            codes[list(values)] = combined.T
            pool.add(np.full(len(combined), people[member]), codes)
            pool.complete[people[member]] = True

    def _add_between(self, row_ids: IntArray) -> None:
        """Add rows predicted valid in which one changed number is closer to the person's own."""
        change, share, person, codes = self._nearer(row_ids, SHARES_BETWEEN)
        response = self.pool.predict(person, codes)
        likely = np.flatnonzero(self.pool.standardized_margin(person, response) >= 0)
        # The nearest value predicted valid, and the next in case it is not.
        nearest = likely[best_of_each(change[likely], share[likely], n=2)]
        self.pool.add(person[nearest], codes[:, nearest], response[nearest])

    def add_closer(self, row_ids: IntArray) -> IntArray:
        """Add rows with one number nearer to the own one; returns the nearest not scored yet."""
        change, share, person, codes = self._nearer(row_ids, SHARES_CLOSER)
        closer = self.pool.add(person, codes)
        new = np.flatnonzero(~self.pool.scored[closer])
        return np.unique(closer[new[best_of_each(change[new], share[new])]])

    def _nearer(
        self, row_ids: IntArray, shares: FloatArray
    ) -> tuple[IntArray, IntArray, IntArray, Codes]:
        """Rows with one number only a share of the way from the person's own.

        For each: the changed number and the share, both by number, its person, and its codes.
        """
        pool, factuals = self.pool, self.task.factuals
        mutable = factuals.schema.mutable
        features = [factuals.schema.features[column] for column in mutable]
        actions = pool.actions(row_ids)
        numeric = np.array([feature.kind == "numeric" for feature in features])
        place, row = np.nonzero((actions != OWN) & (numeric & self._tried_alone)[:, None])
        person = pool.person[row_ids[row]]
        own = factuals.tree_codes[mutable[place], pool.positions[person]]
        target = actions[place, row]
        # The last code of a feature with missing values stands for missing.
        last = np.array([f.n_codes - 1 if f.has_missing else f.n_codes for f in features])[place]
        known = (own != last) & (target != last)
        between = np.rint(own[:, None] + (target - own)[:, None] * shares).astype(np.int32)
        is_new = (between != own[:, None]) & (between != target[:, None]) & known[:, None]
        is_new[:, 1:] &= between[:, 1:] != between[:, :-1]
        is_new &= self._may_have(place, person, between)
        change, share = np.nonzero(is_new)
        codes = actions[:, row[change]].copy()
        codes[place[change], np.arange(change.size)] = between[change, share]
        return change, share, person[change], codes

    def _may_have(self, place: IntArray, person: IntArray, codes: Codes) -> BoolArray:
        """Which codes of mutable features people may have, shape (n_rows, n_codes)."""
        may_have, mutable = np.ones(codes.shape, dtype=bool), self.task.factuals.schema.mutable
        if self._limits is None:
            return may_have
        for each in np.unique(place).tolist():
            row = np.flatnonzero(place == each)
            limits = self._limits.take(person[row])
            may_have[row] = limits.allow_change(int(mutable[each]), codes[row])
        return may_have

    def _add_promising(self, person: IntArray, codes: Codes, most: int) -> IntArray:
        """Add the rows of each person with the best predictions, at most ``most``."""
        response = self.pool.predict(person, codes)
        margin = self.pool.standardized_margin(person, response)
        kept = best_of_each(person, margin < MIN_MARGIN, np.abs(margin - LIKELY_MARGIN), n=most)
        return self.pool.add(person[kept], codes[:, kept], response[kept])

    def _keep_sets(self, codes: Codes, row: IntArray, masks: BoolArray) -> Codes:
        """Rows with only the changes in chosen sets of features."""
        return np.where(self._sets.features(masks).T, codes[:, row], OWN)


class FeatureSets:
    """The sets of mutable features that change together; columns that only follow are in none."""

    def __init__(self, task: SearchTask) -> None:
        set_of = np.arange(task.factuals.schema.mutable.size)
        for constraint in task.constraints.of_rows:
            if isinstance(constraint, Together):
                places = task.constraints.mutable_places(constraint)
                linked = np.isin(set_of, set_of[places])
                set_of[linked] = set_of[linked].min()
        self.free: BoolArray = np.ones(set_of.size, dtype=bool)
        self.free[task.computed_places] = False
        order = np.argsort(set_of, kind="stable")
        # Features by set, where each set starts among them, and how many it has.
        self._features = order[self.free[order]]
        _, self._offsets, self._sizes = np.unique(
            set_of[self._features], return_index=True, return_counts=True
        )
        self.n = self._offsets.size

    def changed(self, codes: Codes) -> BoolArray:
        """Which sets rows change, shape (n_rows, n_sets)."""
        if not self.n:
            return np.zeros((codes.shape[1], 0), dtype=bool)
        changed = codes[self._features] != OWN
        return np.logical_or.reduceat(changed, self._offsets, axis=0).T

    def features(self, masks: BoolArray) -> BoolArray:
        """Which features are in chosen sets, shape (n_rows, n_mutable)."""
        are_in = np.zeros((len(masks), self.free.size), dtype=bool)
        are_in[:, self._features] = np.repeat(masks, self._sizes, axis=1)
        return are_in


@lru_cache
def _subsets(n: int, most: int) -> BoolArray:
    """Which of n changes to undo at once, at most ``most``, shape (n_subsets, n)."""
    subsets = [subset for size in range(1, most + 1) for subset in combinations(range(n), size)]
    return np.array([[change in subset for change in range(n)] for subset in subsets])


def frequent_codes(counts: IntArray | Int32Array, is_number: bool) -> Codes:
    """Quantiles and both ends of accepted rows, or their levels from the most frequent on."""
    if is_number:
        total = int(counts.sum())
        ranks = (2 * np.arange(N_QUANTILES) + 1) * total // (2 * N_QUANTILES)
        ranks = np.array([0, *ranks, total - 1] if total else [], dtype=np.int64)
        codes = np.searchsorted(np.cumsum(counts), ranks, side="right")
        return np.unique(codes).astype(np.int32)
    return np.argsort(-counts, kind="stable")[:MAX_LEVELS].astype(np.int32)


def _single_changes(values: Values) -> tuple[IntArray, IntArray, Codes]:
    """All single changes: of which of the people and of which feature, and to which code."""
    parts = [np.empty((3, 0), dtype=np.int64)]
    for place, (codes, may_have) in values.items():
        member, value = np.nonzero(may_have)
        parts.append(np.stack([member, np.full(member.size, place), codes[member, value]]))
    member, place, code = np.concatenate(parts, axis=1)
    return member, place, code.astype(np.int32)


def _pairs_within(values: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs of different entries with equal values, the first entry first."""
    order = np.argsort(values, kind="stable")
    end = np.searchsorted(values[order], values[order], side="right")
    entry = np.arange(values.size)
    left = np.repeat(entry, end - entry - 1)
    return order[left], order[left + 1 + times_seen_before(left)]
