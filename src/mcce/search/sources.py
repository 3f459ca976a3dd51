"""The sources of a pool: where the rows come from that a search considers.

Beyond the paper. Draws of the model (step 2) are realistic as a whole, so the most promising are
kept. The surrogate also ranks each draw's changes by their effect alone; the shortest prefix that
it predicts valid enters the pool, also without single changes. Single changes go to frequent or
evenly spaced values that a person may have, and to values between the person's own and one that is
predicted valid. Combinations start from the most promising single changes. For "nearest", paths
make one change after another, each time the one that gains most for its distance. Columns that
follow from changes are recomputed in every row, and features that may only change together do so.

Always true: a person's rows depend on no other person.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product

import numpy as np

from ..candidates import Candidates
from ..constraints.kinds import Together
from ..constraints.limits import are_allowed, evenly_spaced, is_limited
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

# Draws per person whose changes are also tried in part; fewer for tables of many features.
N_IN_PARTS, MIN_IN_PARTS = 12, 3
# Those among them that may be returned, which are reduced: changes are left out one by one.
N_REDUCED = 6
# Draws that are checked for a person without an answer.
N_CHECKED_DRAWS = 1000
# For people without an answer, the search widens to this many times the draws, then to the most.
WIDER_DRAWS = 10
# The smallest standardized margin of rows that are tried, and of rows with a change left out.
MIN_MARGIN, MIN_REDUCED_MARGIN = -2.0, -1.0
# Of promising rows, those with a standardized margin near this come first.
LIKELY_MARGIN = 1.0
# Prefixes with at most this many changes more than the shortest one predicted valid are tried.
MAX_LONGER = 2
# The most changes that are left out of a draw, one by one.
MAX_LEFT_OUT = 40
# Plausible draws with more changes are not reduced.
MAX_REDUCED = 32
# If there are more mutable features, single changes are tried for those that matter most to the
# surrogate.
MAX_FEATURES = 32
# All values are tried of features with at most this many.
ALL_VALUES = 32
# Of other numbers, this many quantiles are tried, and if none of them helps, evenly spaced values.
N_QUANTILES, N_SPACED = 15, 60
# Of other levels, the most frequent.
MAX_LEVELS = 64
# Single changes kept for a person, at first and if none of those helps.
N_SINGLES, N_MORE_SINGLES = 40, 200
# Single changes that are combined: per person, and per feature of a person.
N_COMBINED, PER_FEATURE = 24, 3
# Pairs of changes per person: predicted, and kept.
PAIRS_PREDICTED, N_PAIRS = 120, 40
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


class Sources:
    """Adds rows to the pool of a block of people."""

    def __init__(self, search: PoolSearch, block: FactualBlock) -> None:
        self.search, self.task = search, search.task
        task, rows, schema = search.task, search.task.factuals, search.task.factuals.schema
        tables = tables_of(task.request.fitted.generator, rows)
        self.pool = Pool(search, block.positions, tables)
        self._by_position = np.argsort(block.positions)
        self._limits = task.factual_limits.limits(block.positions, schema.features)
        self._sets = FeatureSets(task)
        width = max(self._sets.n, MAX_FEATURES)
        self._n_in_parts = max(N_IN_PARTS * MAX_FEATURES // width, MIN_IN_PARTS)
        # Values of a generator's own are only drawn.
        pairs = zip(tables, rows.tables, strict=True)
        trained = np.array([table is known for table, known in pairs])
        self._alone = trained & self._sets.free
        if schema.mutable.size > MAX_FEATURES and search.surrogate.trees:
            used = search.surrogate.inputs(MAX_FEATURES, among=schema.mutable)
            self._alone &= np.isin(schema.mutable, used)
        self._frequent = [
            frequent_codes(counts, schema.features[position].kind == "numeric")
            for counts, position in zip(search.accepted_counts, schema.mutable, strict=True)
        ]

    def add_draws(self, people: IntArray, *, reduce: bool) -> None:
        """Add promising draws and parts of their changes; if asked, reduced ones too."""
        for person, codes, margin, draw in self._drawn(people, 0, self.search.n_samples):
            n_changes = (codes != OWN).sum(axis=0)
            chosen = best_of_each(person, -margin, n_changes, draw, n=self._n_in_parts)
            if reduce:
                self._add_and_reduce(person[chosen], codes[:, chosen])
            self._add_parts(person[chosen], codes[:, chosen])

    def widen(self, people: IntArray, *, to_most: bool) -> None:
        """Add further draws and reduced ones, for people without an answer."""
        first, most = self.search.n_samples, self.search.max_samples
        middle = min(WIDER_DRAWS * first, most)
        start, end = (middle, most) if to_most else (0, middle)
        for person, codes, margin, draw in self._drawn(people, start, end):
            chosen = best_of_each(person, -margin, draw, n=N_CHECKED_DRAWS)
            self._add_and_reduce(person[chosen], codes[:, chosen])

    def add_undone(self, row_ids: IntArray) -> tuple[IntArray, IntArray]:
        """Pairs of rows and their versions with some changes undone, which are added if new.

        Of up to 30 changes one or two are undone at a time, of more, or for
        "nearest", one.
        """
        pool = self.pool
        actions = pool.actions(row_ids)
        changed = self._sets.changed(actions)
        n_changed = changed.sum(axis=1)
        rows, undone = [row_ids[:0]], [np.empty((0, self._sets.n), dtype=bool)]
        for n in np.unique(n_changed[n_changed > 1]).tolist():
            here = np.flatnonzero(n_changed == n)
            most = 1 if self.search.cost.by_distance or n == 2 or n > MAX_CHANGES_FOR_PAIRS else 2
            taken = _subsets(n, most)
            found = np.zeros((here.size, len(taken), self._sets.n), dtype=bool)
            which, feature_set = np.nonzero(changed[here])
            found[which, :, feature_set] = np.tile(taken.T, (here.size, 1))
            rows.append(np.repeat(here, len(taken)))
            undone.append(found.reshape(-1, self._sets.n))
        row = np.concatenate(rows)
        features = self._sets.features(np.concatenate(undone))
        codes = np.where(features.T, OWN, actions[:, row])
        child = pool.add(pool.person[row_ids[row]], codes)
        # Without these changes, nothing or the same row may be left.
        other = (child != row_ids[row]) & (pool.sparsity[child] > 0)
        return row_ids[row[other]], child[other]

    def add_around(self, row_ids: IntArray) -> None:
        """Add versions of rows with changes undone, and with values nearer to the own ones."""
        self.add_undone(row_ids)
        self._add_between(row_ids)

    def add_combinations(self, people: IntArray) -> None:
        """Add pairs of promising single changes."""
        pool = self.pool
        some = np.flatnonzero(np.isin(pool.person, people) & (pool.sparsity >= 1))
        single = some[self._sets.changed(pool.actions(some)).sum(axis=1) == 1]
        feature = (pool.actions(single) != OWN).argmax(axis=0)
        key = pool.person[single] * pool.n_mutable + feature
        single = single[best_of_each(key, -pool.margin[single], single, n=PER_FEATURE)]
        single = single[
            best_of_each(pool.person[single], -pool.margin[single], single, n=N_COMBINED)
        ]
        left, right = _pairs_within(pool.person[single])
        first, second = pool.actions(single[left]), pool.actions(single[right])
        apart = np.flatnonzero(~((first != OWN) & (second != OWN)).any(axis=0))
        left, right = left[apart], right[apart]
        # A first guess: margins add up. The surrogate then predicts the most promising pairs.
        gain = (pool.margin[single] - pool.margin[pool.person[single]]) / pool.error
        margin = pool.margin[single[left]] / pool.error + gain[right]
        some = self._promising(pool.person[single[left]], margin, PAIRS_PREDICTED)
        chosen = apart[some]
        codes = np.where(first[:, chosen] == OWN, second[:, chosen], first[:, chosen])
        self._add_promising(pool.person[single[left[some]]], codes, N_PAIRS)

    def _drawn(
        self, people: IntArray, start: int, end: int
    ) -> Iterator[tuple[IntArray, Codes, FloatArray, IntArray]]:
        """Distinct draws of people: person, changes, margin (0 at most) and draw number of each.

        Columns that follow from changes are recomputed when rows are added.
        """
        pool, task, draws = self.pool, self.task, np.arange(start, end, dtype=np.int64)
        fitted, limits = task.request.fitted, task.factual_limits
        generator = fitted.generator
        if not draws.size:
            return
        for block in blocks(limits, pool.positions[people], draws.size, task.settings.memory):
            at = np.searchsorted(pool.positions, block.positions, sorter=self._by_position)
            theirs = self._by_position[at]
            candidates = generate(
                generator, limits, block, draws, fitted.seed, self.search.n_samples
            )
            has_own = candidates.tables is not task.factuals.tables
            if has_own and not generator.capabilities.own_values:
                raise ParameterError(
                    f"The generator {type(generator).__name__} draws values of its own, which only "
                    "the paper's search takes as they come. For other searches its capabilities "
                    "must say own_values, with all values in tables_."
                )
            who, draw = np.nonzero(candidates.distinct[candidates.group])
            margin = self._predict_draws(candidates, theirs)[candidates.group[who], draw]
            codes = self._actions_of(candidates.select(who, draw).codes)
            some = np.flatnonzero((codes != OWN).any(axis=0))
            yield theirs[who[some]], codes[:, some], np.minimum(margin[some], 0.0), draw[some]

    def _add_and_reduce(self, person: IntArray, codes: Codes) -> None:
        """Add draws, and reduce the first ones that nothing excludes."""
        row_ids = self.pool.add(person, codes)
        self._reduce(self._first_fitting(row_ids[self.pool.margin[row_ids] >= 0]))

    def _predict_draws(self, candidates: Candidates, people: IntArray) -> FloatArray:
        """Predictions of draws, once for each group of people who share them."""
        _, first = np.unique(candidates.group, return_index=True)
        at, draw = np.nonzero(candidates.distinct)
        codes = self._actions_of(candidates.comparison.codes[:, at, draw])
        margin = np.full(candidates.distinct.shape, -np.inf)
        margin[at, draw] = self.pool.standardized_margin(people[first[at]], codes, own=False)
        return margin

    def _actions_of(self, codes: Codes) -> Codes:
        """Codes of new rows without what follows from other changes."""
        codes[self.task.computed_places] = OWN
        return codes

    def _first_fitting(self, row_ids: IntArray) -> IntArray:
        """Of rows by person, the first few of each that nothing excludes."""
        pool, found = self.pool, [row_ids[:0]]
        n_found: IntArray = np.zeros(pool.positions.size, dtype=np.int64)
        while row_ids.size:
            first = times_seen_before(pool.person[row_ids]) < N_REDUCED
            fits = row_ids[first][pool.may_return(row_ids[first])]
            fits = fits[
                times_seen_before(pool.person[fits]) < N_REDUCED - n_found[pool.person[fits]]
            ]
            np.add.at(n_found, pool.person[fits], 1)
            found.append(fits)
            row_ids = row_ids[~first]
            row_ids = row_ids[n_found[pool.person[row_ids]] < N_REDUCED]
        return np.concatenate(found)

    def _add_parts(self, person: IntArray, codes: Codes) -> None:
        """Add rows, and rows with those of their changes that gain most."""
        pool, sets = self.pool, self._sets
        pool.add(person, codes)
        changed = sets.changed(codes)
        row, which = np.nonzero(changed)
        alone = np.zeros((row.size, sets.n), dtype=bool)
        alone[np.arange(row.size), which] = True
        gain = pool.standardized_margin(person[row], self._keep_sets(codes, row, alone))
        order = np.lexsort((which, -gain, row))
        row, which = row[order], which[order]
        prefix_end = times_seen_before(row)
        # Prefixes of each row's changes, sorted by gain, and where each ends.
        rank = np.full(changed.shape, changed.shape[1])
        rank[row, which] = prefix_end
        masks = rank[row] <= prefix_end[:, None]
        margin = pool.standardized_margin(person[row], self._keep_sets(codes, row, masks))
        likely = margin >= 0
        shortest = np.full(person.size, changed.shape[1])
        np.minimum.at(shortest, row[likely], prefix_end[likely])
        near = (margin >= MIN_MARGIN) & (prefix_end <= shortest[row] + MAX_LONGER)
        pool.add(person[row[near]], self._keep_sets(codes, row[near], masks[near]))
        ends = likely & (prefix_end == shortest[row])
        self._leave_out(person, codes, row[ends], masks[ends])

    def _leave_out(self, person: IntArray, codes: Codes, row: IntArray, masks: BoolArray) -> None:
        """Add rows without changes that the surrogate predicts to be needless, one by one."""
        for _ in range(MAX_LEFT_OUT):
            if not row.size:
                return
            check_cancellation()
            at, which, fewer, margin = self._with_one_less(person, codes, row, masks)
            near = np.flatnonzero(margin >= MIN_REDUCED_MARGIN)
            part = self._keep_sets(codes, row[at[near]], fewer[near])
            self.pool.add(person[row[at[near]]], part)
            likely = near[margin[near] >= 0]
            best = likely[best_of_each(at[likely], -margin[likely], which[likely])]
            row, masks = row[at[best]], fewer[best]

    def _reduce(self, row_ids: IntArray) -> None:
        """Add rows without changes that seem needless, as long as nothing excludes them."""
        pool, codes, person = self.pool, self.pool.actions(row_ids), self.pool.person[row_ids]
        masks = self._sets.changed(codes)
        row = np.flatnonzero(masks.sum(axis=1) <= MAX_REDUCED)
        masks = masks[row]
        for _ in range(MAX_LEFT_OUT):
            if not row.size:
                return
            check_cancellation()
            at, which, fewer, margin = self._with_one_less(person, codes, row, masks)
            likely = np.flatnonzero(margin >= 0)
            likely = likely[best_of_each(at[likely], -margin[likely], which[likely], n=2)]
            part = self._keep_sets(codes, row[at[likely]], fewer[likely])
            fits = likely[pool.may_return(pool.add(person[row[at[likely]]], part))]
            best = fits[best_of_each(at[fits], -margin[fits], which[fits])]
            row, masks = row[at[best]], fewer[best]

    def _with_one_less(
        self, person: IntArray, codes: Codes, row: IntArray, masks: BoolArray
    ) -> tuple[IntArray, IntArray, BoolArray, FloatArray]:
        """Each row's changes without one of them, where there are several, and its prediction."""
        at, which = np.nonzero(masks & (masks.sum(axis=1) > 1)[:, None])
        fewer = masks[at]
        fewer[np.arange(at.size), which] = False
        part = self._keep_sets(codes, row[at], fewer)
        return at, which, fewer, self.pool.standardized_margin(person[row[at]], part)

    def add_singles(self, people: IntArray, *, thorough: bool = False) -> None:
        """Add promising rows with one change; with ``thorough``, more rows with more values."""
        values = self._values(people, thorough=thorough)
        if not thorough:
            self._add_all(people, values)
        which, place, code = _single_changes(people.size, values)
        codes = np.full((self.pool.n_mutable, which.size), OWN, dtype=np.int32)
        codes[place, np.arange(which.size)] = code
        n = N_MORE_SINGLES if thorough else N_SINGLES
        kept = self._add_promising(people[which], codes, n)
        self._add_between(kept[self.pool.margin[kept] >= 0])

    def add_paths(self, people: IntArray) -> None:
        """Add rows on a path of changes, each the one that gains most for its distance."""
        own = np.full((self.pool.n_mutable, people.size), OWN, dtype=np.int32)
        self._add_paths(people, own, np.zeros(people.size), np.full(people.size, np.inf))

    def add_detours(self, row_ids: IntArray) -> IntArray:
        """Add nearer rows in which other changes replace one; returns the nearest."""
        pool, actions, person = self.pool, self.pool.actions(row_ids), self.pool.person[row_ids]
        row, which = np.nonzero(self._sets.changed(actions))
        fewer = self._sets.changed(actions)[row]
        fewer[np.arange(row.size), which] = False
        # What is known of a row corrects the predictions around it.
        error = pool.margin[row_ids] / pool.error - pool.standardized_margin(person, actions)
        start = self._keep_sets(actions, row, fewer)
        found = self._add_paths(person[row], start, error[row], pool.distance[row_ids][row])
        found = found[~pool.scored[found] & pool.may_return(found)]
        return found[best_of_each(pool.person[found], pool.distance[found], found, n=N_DETOURS)]

    def _add_paths(
        self, people: IntArray, codes: Codes, error: FloatArray, most: FloatArray
    ) -> IntArray:
        """Add the rows predicted valid that are nearest at each step of paths.

        Each path has a person, a start, an error of predictions on it, and a largest distance.
        """
        pool, found = self.pool, [people[:0]]
        path, place, code = _single_changes(people.size, self._values(people, thorough=True))
        reached = pool.standardized_margin(people, codes) + error
        gone = pool.distances(people, codes)
        for step in range(MAX_STEPS):
            check_cancellation()
            tried = codes[:, path]
            tried[place, np.arange(path.size)] = code
            margin = pool.standardized_margin(people[path], tried) + error[path]
            distance = pool.distances(people[path], tried)
            valid = np.flatnonzero((margin >= 0) & (distance < most[path]))
            some = valid[best_of_each(path[valid], distance[valid], valid, n=PER_STEP)]
            found.append(pool.add(people[path[some]], tried[:, some]))
            gain = margin - reached[path]
            rate = gain / np.maximum(distance - gone[path], 1e-9)
            may = np.flatnonzero((gain > 0) & (distance < most[path]))
            best = may[best_of_each(path[may], -rate[may], place[may], code[may])]
            ahead = path[best]
            codes = codes.copy()
            codes[:, ahead], reached[ahead], gone[ahead] = (
                tried[:, best],
                margin[best],
                distance[best],
            )
            kept = np.isin(path, ahead[reached[ahead] < PATH_END])
            if not step:
                of_feature = path * pool.n_mutable + place
                best = best_of_each(of_feature, -rate, code, n=STEPS_PER_FEATURE)
                kept &= np.isin(np.arange(path.size), best[gain[best] > 0])
            path, place, code = path[kept], place[kept], code[kept]
            if not path.size:
                break
        return np.unique(np.concatenate(found))

    def _values(self, people: IntArray, *, thorough: bool) -> dict[int, tuple[Codes, BoolArray]]:
        """By place, the codes to try for all or for each of the people, and who may have which."""
        rows, mutable = self.task.factuals, self.task.factuals.schema.mutable
        positions = self.pool.positions[people]
        limits = None if self._limits is None else self._limits.take(people)
        found: dict[int, tuple[Codes, BoolArray]] = {}
        for place in np.flatnonzero(self._alone).tolist():
            column = int(mutable[place])
            feature, own = rows.schema.features[column], rows.codes[column, positions]
            everything = feature.n_codes <= ALL_VALUES
            if everything:
                codes = np.arange(feature.n_codes, dtype=np.int32)
            elif thorough and feature.kind == "numeric":
                codes = _even_codes(feature.n_codes, N_SPACED)
            else:
                codes = self._frequent[place]
            if limits is None or not is_limited(limits, column):
                found[place] = codes, codes != own[:, None]
                continue
            theirs = np.tile(codes, (people.size, 1))
            if not everything:
                # Few of the values above may be among those that a person may have.
                spaced = evenly_spaced(limits, column, N_SPACED if thorough else N_QUANTILES)
                theirs = np.concatenate([theirs, spaced], axis=1)
            found[place] = theirs, are_allowed(limits, column, theirs) & (theirs != own[:, None])
        return found

    def _add_all(self, people: IntArray, values: dict[int, tuple[Codes, BoolArray]]) -> None:
        """Add all rows of people for whom there are only a few."""
        pool, features = self.pool, self.task.factuals.schema.features
        free = set(np.flatnonzero(self._sets.free).tolist())
        if set(values) != free or self.task.scores.is_bounded:
            return
        mutable = self.task.factuals.schema.mutable
        if any(features[mutable[place]].n_codes > ALL_VALUES for place in values):
            return
        n_rows = np.ones(people.size)
        for _, allowed in values.values():
            n_rows *= 1 + allowed.sum(axis=1)
        for at in np.flatnonzero(n_rows <= MAX_COMPLETE).tolist():
            choices = [
                [OWN, *(theirs[at] if theirs.ndim == 2 else theirs)[allowed[at]]]
                for theirs, allowed in values.values()
            ]
            combined = np.array([*product(*choices)], dtype=np.int32)
            codes = np.full((pool.n_mutable, len(combined)), OWN, dtype=np.int32)
            codes[list(values)] = combined.T
            pool.add(np.full(len(combined), people[at]), codes)
            pool.complete[people[at]] = True

    def _add_between(self, row_ids: IntArray) -> None:
        """Add rows predicted valid in which one changed number is closer to the person's own."""
        at, which, person, codes = self._nearer(row_ids, SHARES_BETWEEN)
        likely = np.flatnonzero(self.pool.standardized_margin(person, codes) >= 0)
        # The nearest value predicted valid, and the next in case it is not.
        some = likely[best_of_each(at[likely], which[likely], n=2)]
        self.pool.add(person[some], codes[:, some])

    def add_closer(self, row_ids: IntArray) -> IntArray:
        """Add rows with one number nearer to the own one; returns the nearest not scored yet."""
        at, which, person, codes = self._nearer(row_ids, SHARES_CLOSER)
        ids = self.pool.add(person, codes)
        new = np.flatnonzero(~self.pool.scored[ids])
        return np.unique(ids[new[best_of_each(at[new], which[new])]])

    def _nearer(
        self, row_ids: IntArray, shares: FloatArray
    ) -> tuple[IntArray, IntArray, IntArray, Codes]:
        """Rows with one number only a share of the way from the person's own.

        The change and the share of each row, its person, and its codes.
        """
        pool, rows = self.pool, self.task.factuals
        mutable = rows.schema.mutable
        actions = pool.actions(row_ids)
        numeric = np.array([rows.schema.features[at].kind == "numeric" for at in mutable])
        place, row = np.nonzero((actions != OWN) & (numeric & self._alone)[:, None])
        person = pool.person[row_ids[row]]
        own = rows.tree_codes[mutable[place], pool.positions[person]]
        there = actions[place, row]
        features = [rows.schema.features[at] for at in mutable]
        # The last code of a feature with missing values stands for missing.
        last = np.array([f.n_codes - 1 if f.has_missing else f.n_codes for f in features])[place]
        known = (own != last) & (there != last)
        between = np.rint(own[:, None] + (there - own)[:, None] * shares).astype(np.int32)
        distinct = (between != own[:, None]) & (between != there[:, None]) & known[:, None]
        distinct[:, 1:] &= between[:, 1:] != between[:, :-1]
        distinct &= self._allowed(place, person, between)
        at, which = np.nonzero(distinct)
        codes = actions[:, row[at]].copy()
        codes[place[at], np.arange(at.size)] = between[at, which]
        return at, which, person[at], codes

    def _allowed(self, place: IntArray, person: IntArray, codes: Codes) -> BoolArray:
        """Which codes of mutable features people may have, shape (n_rows, n_codes)."""
        allowed, mutable = np.ones(codes.shape, dtype=bool), self.task.factuals.schema.mutable
        if self._limits is None:
            return allowed
        for one in np.unique(place).tolist():
            here = place == one
            theirs = self._limits.take(person[here])
            allowed[here] = are_allowed(theirs, int(mutable[one]), codes[here])
        return allowed

    def _add_promising(self, person: IntArray, codes: Codes, most: int) -> IntArray:
        """Add the rows of each person with the best predictions, at most ``most``."""
        kept = self._promising(person, self.pool.standardized_margin(person, codes), most)
        return np.unique(self.pool.add(person[kept], codes[:, kept]))

    @staticmethod
    def _promising(person: IntArray, margin: FloatArray, most: int) -> IntArray:
        """The best predictions of each person, at most ``most``."""
        order = np.arange(margin.size)
        # Rows that are only just predicted valid have the smallest changes.
        return best_of_each(
            person, margin < MIN_MARGIN, np.abs(margin - LIKELY_MARGIN), order, n=most
        )

    def _keep_sets(self, codes: Codes, row: IntArray, masks: BoolArray) -> Codes:
        """Rows with only the changes in chosen sets of features."""
        return np.where(self._sets.features(masks).T, codes[:, row], OWN)


class FeatureSets:
    """The sets of mutable features that change together; columns that only follow are in none."""

    def __init__(self, task: SearchTask) -> None:
        set_of = np.arange(task.factuals.schema.mutable.size)
        for constraint in task.request.constraints.of_rows:
            if isinstance(constraint, Together):
                places = task.request.constraints.mutable_places(constraint)
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
        found = np.zeros((len(masks), self.free.size), dtype=bool)
        found[:, self._features] = np.repeat(masks, self._sizes, axis=1)
        return found


@lru_cache
def _subsets(n: int, most: int) -> BoolArray:
    """Which of n changes to undo at once, at most ``most``, shape (n_subsets, n)."""
    some = [them for size in range(1, most + 1) for them in combinations(range(n), size)]
    return np.array([[at in them for at in range(n)] for them in some])


def frequent_codes(counts: IntArray | Int32Array, is_number: bool) -> Codes:
    """Quantiles of accepted rows, or their levels from the most frequent on."""
    if is_number:
        total = int(counts.sum())
        ranks = (2 * np.arange(N_QUANTILES if total else 0) + 1) * total // (2 * N_QUANTILES)
        found = np.searchsorted(np.cumsum(counts), ranks, side="right")
        return np.unique(found).astype(np.int32)
    return np.argsort(-counts, kind="stable")[:MAX_LEVELS].astype(np.int32)


def _single_changes(
    n_people: int, values: dict[int, tuple[Codes, BoolArray]]
) -> tuple[IntArray, IntArray, Codes]:
    """All single changes: which person's, of which feature, and to which code."""
    parts = [np.empty((3, 0), dtype=np.int64)]
    for at, (theirs, allowed) in values.items():
        of, value = np.nonzero(allowed)
        codes = theirs[of, value] if theirs.ndim == 2 else theirs[value]
        parts.append(np.stack([of, np.full(of.size, at), codes]))
    listed = np.concatenate(parts, axis=1)
    return listed[0], listed[1], listed[2].astype(np.int32)


def _even_codes(n_codes: int, n: int) -> Codes:
    return np.unique(np.linspace(0, n_codes - 1, n).round()).astype(np.int32)


def _pairs_within(values: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs of different entries with equal values, the first entry first."""
    order = np.argsort(values, kind="stable")
    end = np.searchsorted(values[order], values[order], side="right")
    place = np.arange(values.size)
    left = np.repeat(place, end - place - 1)
    return order[left], order[left + 1 + times_seen_before(left)]
