"""The direct search: single changes, pairs and promising triples over the allowed values.

Beyond the paper. Draws come from leaves of a few rows, so where few features are free, or rules
leave few values, more draws bring nothing new. Here a person's allowed values are tried themselves:
all levels, or the most frequent of many, and all numbers, or some quantiles of many. Rows with one
change come first, then pairs, then triples, each person's until a good row is found or the budget
is spent. If not all rows fit into the budget, they are made of the changes that raised the score
most. In a wide table, only features that the surrogate splits on are tried, if there is one.

People with an answer are searched for better ones. On a small table, all rows with as many changes
as the answer are tried, so none that the allowed values can make has fewer. On others, all with
fewer changes, as long as they fit into the budget; of many numbers only quantiles are combined.

Always true: a person's rows depend on no other person, and no more are scored than the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from math import isqrt, prod

import numpy as np

from ..caching import cached_property
from ..candidates import Candidates
from ..kernels import BoolArray, Codes, DrawLimits, IntArray, RowTable
from ..postprocess.filters import ExcludeUnstable
from ..tables.features import Feature
from ..tables.schema import OWN, Schema
from .visited import VisitedRows, influential_sets

# Rows scored per person to show that no row is better. A table is small for a person if their
# allowed values can make no more rows than that.
MAX_ROWS_FEWER = 600
# The most changes at once, and rows that one more change is added to.
MAX_CHANGES, MAX_STARTS = 3, 256

# Called between predictor calls; returns True to end the search.
Stop = Callable[[], bool]
# Features with few values have all of them tried; other numbers, this many quantiles.
ALL_VALUES, N_QUANTILES = 32, 15
# The most levels of a feature that are tried.
MAX_LEVELS = 64


@dataclass(frozen=True, eq=False)
class DirectSettings:
    """How to search directly."""

    schema: Schema
    accepted: Codes
    max_sparsity: int | None
    stop_at_first: bool

    @cached_property
    def frequent(self) -> tuple[Codes, ...]:
        """Per mutable feature of accepted rows, quantiles, or levels from the most frequent on."""
        chosen = []
        for position in self.schema.mutable:
            feature, codes = self.schema.features[position], self.accepted[position]
            counts = np.bincount(codes, minlength=feature.n_codes)
            if feature.kind == "numeric":
                found = np.searchsorted(np.cumsum(counts), _even_ranks(codes.size), side="right")
                chosen.append(np.unique(found).astype(np.int32))
            else:
                chosen.append(np.argsort(-counts, kind="stable").astype(np.int32))
        return tuple(chosen)


class DirectSearch:
    """The direct search for some people of a block; it adds to their visited rows."""

    def __init__(
        self,
        settings: DirectSettings,
        candidates: Candidates,
        visited: VisitedRows,
        unstable: ExcludeUnstable,
    ) -> None:
        self.settings = settings
        self.visited = visited
        self.positions = candidates.people
        self._unstable = unstable
        # People whose table is small.
        self.small: IntArray = np.empty(0, dtype=np.int64)
        self._features = _known_features(candidates)
        sets = visited.settings.feature_sets
        influential = sets[influential_sets(visited.settings, candidates.rows.schema)].any(axis=0)
        self._knows_all = None not in self._features and influential.sum() == sets.sum()
        for at in np.flatnonzero(~influential).tolist():
            self._features[at] = None

    def search(self, person: IntArray, stop: Stop) -> None:
        """Score rows of people, and reach the good ones."""
        room = np.full(person.size, self.visited.task.max_direct_rows)
        bound = self.settings.max_sparsity
        most = np.full(person.size, MAX_CHANGES if bound is None else min(bound, MAX_CHANGES))
        self._search(person, self._values(person), room, most, False, stop)

    def improve(self, person: IntArray, fewest: IntArray, several: bool, stop: Stop) -> IntArray:
        """Score rows that may be better than the answers of people, and reach the good ones."""
        values = self._values(person)
        sizes = [prod(1 + choice.n_allowed for choice in theirs) for theirs in values]
        small = np.array(sizes) <= (MAX_ROWS_FEWER if self._knows_all else 0)
        values = [
            [choice.with_all for choice in theirs] if is_small else theirs
            for theirs, is_small in zip(values, small, strict=True)
        ]
        all_ = len(self._features)
        most = np.where(small, all_ if several else fewest, 0 if several else fewest - 1)
        room = np.full(person.size, MAX_ROWS_FEWER)
        self.small = np.union1d(self.small, person[small])
        return person[self._search(person, values, room, most, True, stop)]

    def _search(
        self,
        person: IntArray,
        values: list[list[Choice]],
        room: IntArray,
        most: IntArray,
        complete: bool,
        stop: Stop,
    ) -> BoolArray:
        """Try rows with one change, two and so on; with ``complete``, only if all of them fit.

        Returns who has good ones.
        """
        found = np.zeros(person.size, dtype=bool)
        open_ = np.ones(person.size, dtype=bool)
        scored = [np.empty(0, dtype=np.int64) for _ in person]
        for n_changes in range(1, int(most.max(initial=0)) + 1):
            parts: list[Codes] = []
            for at in range(person.size):
                rows = np.empty((len(self._features), 0), dtype=np.int32)
                if open_[at] and n_changes <= most[at]:
                    rows = self._rows(values[at], n_changes, int(room[at]), scored[at], complete)
                open_[at] &= rows.shape[1] > 0
                parts.append(rows)
            sizes = np.array([part.shape[1] for part in parts])
            if not sizes.any() or stop():
                break
            row_ids, good = self._score(np.repeat(person, sizes), np.concatenate(parts, axis=1))
            room -= sizes
            ends = np.cumsum(sizes)
            for at, (start, end) in enumerate(zip(ends - sizes, ends, strict=True)):
                scored[at] = row_ids[start:end]
                found[at] |= good[start:end].any()
                ends_here = self.settings.stop_at_first and not complete
                open_[at] &= not (ends_here and good[start:end].any())
        return found

    def _score(self, person: IntArray, codes: Codes) -> tuple[IntArray, BoolArray]:
        """The ids of rows among those visited, and which are good."""
        visited = self.visited
        row_ids = visited.number_rows(person, _row_draws(codes), codes)
        visited.evaluate(row_ids)
        good = visited.are_good(row_ids)
        good &= ~self._unstable.has_failed(self.positions[person], visited.draw[row_ids])
        visited.reach(row_ids[good])
        return row_ids, good

    def _rows(
        self,
        values: list[Choice],
        n_changes: int,
        room: int,
        scored: IntArray,
        complete: bool,
    ) -> Codes:
        """One person's rows with ``n_changes`` changes: all of them, or the most promising."""
        if n_changes == 1:
            at = np.repeat(np.arange(len(values)), [choice.alone.size for choice in values])
            codes = np.concatenate([at[:0], *(choice.alone for choice in values)])
            fits = at.size <= room or not complete
            return self._singles(at[: room * fits], codes[: room * fits])
        sizes = [choice.combined.size for choice in values]
        n_rows = _n_combined(sizes, n_changes)
        if n_rows > room:
            return self._unchanged(0) if complete else self._promising(scored, n_changes, room)
        rows, start = self._unchanged(n_rows), 0
        for some in combinations(np.flatnonzero(sizes).tolist(), n_changes):
            start = _fill_grid(rows, start, {at: values[at].combined for at in some})
        return rows

    def _promising(self, scored: IntArray, n_changes: int, room: int) -> Codes:
        """One change more than the best of the rows before: the changes that raised scores most."""
        visited = self.visited
        best = scored[np.argsort(-visited.desirability(scored), kind="stable")][:MAX_STARTS]
        starts = visited.cells[best, 1:]
        starts[:, visited.recomputed] = OWN
        # Each pair of singles comes twice.
        width = isqrt(2 * room) if n_changes == 2 else isqrt(room)
        start, at = np.nonzero(starts != OWN)
        changes = np.stack([at, starts[start, at]], axis=1)
        changes = changes[np.sort(np.unique(changes, axis=0, return_index=True)[1])][:width]
        starts = starts[:width]
        row, change = np.nonzero(starts[:, changes[:, 0]] == OWN)
        made = starts[row]
        made[np.arange(row.size), changes[change, 0]] = changes[change, 1]
        row_ids = RowTable(made.shape[1]).number_rows(made)
        first = np.unique(row_ids, return_index=True)[1][:room]
        return np.ascontiguousarray(made[first].T)

    def _unchanged(self, n_rows: int) -> Codes:
        return np.full((len(self._features), n_rows), OWN, dtype=np.int32)

    def _singles(self, at: IntArray, codes: IntArray) -> Codes:
        """Rows with one change each."""
        rows = self._unchanged(at.size)
        rows[at, np.arange(at.size)] = codes
        return rows

    def _values(self, person: IntArray) -> list[list[Choice]]:
        """Per person and mutable feature, the codes to try alone and in combination."""
        rows, mutable = self.visited.factuals, self.visited.factuals.schema.mutable
        positions = self.positions[person]
        limits = self.visited.task.factual_limits.limits(positions, rows.schema.features)
        # Without limits, the choice depends on the own value alone.
        unlimited: dict[tuple[int, int], Choice] = {}
        values = []
        for at, own_codes in enumerate(rows.codes[mutable][:, positions].T.tolist()):
            theirs = []
            for feature, position, frequent, own in zip(
                self._features, mutable.tolist(), self.settings.frequent, own_codes, strict=True
            ):
                is_limited = limits is not None and limits.first[position, at] >= 0
                choice = None if is_limited else unlimited.get((position, own))
                if feature is None:
                    choice = NO_CHOICE
                elif choice is None:
                    runs = allowed_runs(limits, position, at, feature.n_codes, own)
                    choice = Choice(feature, runs, frequent)
                    if not is_limited:
                        unlimited[position, own] = choice
                theirs.append(choice)
            values.append(theirs)
        return values


def _n_combined(sizes: list[int], n_changes: int) -> int:
    """How many rows have ``n_changes`` changes, given the number of values of each feature."""
    counts = [1] + [0] * n_changes
    for size in sizes:
        for n in range(n_changes, 0, -1):
            counts[n] += size * counts[n - 1]
    return counts[n_changes]


def _fill_grid(rows: Codes, start: int, values: dict[int, Codes]) -> int:
    """Put all combinations of some features' values into rows from ``start``; returns the end."""
    size = each = prod(len(codes) for codes in values.values())
    for at, codes in values.items():
        each //= len(codes)
        rows[at, start : start + size] = np.tile(np.repeat(codes, each), size // each // len(codes))
    return start + size


def _known_features(candidates: Candidates) -> list[Feature | None]:
    """The mutable features, None where a generator's own values replace those of training."""
    rows = candidates.rows
    known: list[Feature | None] = []
    for position, table, trained in zip(
        rows.schema.mutable, candidates.tables, rows.tables, strict=True
    ):
        same = table is trained or table.iloc[: len(trained)].equals(trained)
        known.append(rows.schema.features[position] if same else None)
    return known


def _row_draws(codes: Codes) -> IntArray:
    """A negative number for each row by its codes alone, in place of the draw that led to it."""
    mixed = np.full(codes.shape[1], 0x9E3779B97F4A7C15, dtype=np.uint64)
    for row in codes.astype(np.uint64):
        mixed = (mixed ^ row) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return -1 - (mixed >> np.uint64(2)).astype(np.int64)


def allowed_runs(
    limits: DrawLimits | None, position: int, at: int, n_codes: int, own: int
) -> Codes:
    """Codes that a person's feature may change to: first and end of each run, ascending."""
    runs, left_out = [(0, n_codes)], [(own, own)]
    if limits is not None and limits.first[position, at] >= 0:
        given = limits.runs[limits.first[position, at] : limits.last[position, at]]
        runs = [(low, high + 1) for low, high in given.tolist()]
        low, high = limits.near[position, at].tolist()
        left_out.append((max(low, 0), high))
    for low, high in left_out:
        if 0 <= low <= high:
            halves = [((a, min(b, low)), (max(a, high + 1), b)) for a, b in runs]
            runs = [(a, b) for both in halves for a, b in both if a < b]
    return np.array(runs, dtype=np.int32).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Choice:
    """Codes of a feature that a person may have, and those to try alone and in combination."""

    feature: Feature | None
    runs: Codes
    frequent: Codes
    everything: bool = False

    @cached_property
    def n_allowed(self) -> int:
        """Number of allowed codes; cheaper than listing them."""
        return int((self.runs[:, 1] - self.runs[:, 0]).sum())

    @cached_property
    def allowed(self) -> Codes:
        """All codes that are allowed."""
        none = np.empty(0, dtype=np.int32)
        return np.concatenate([none, *(np.arange(*run, dtype=np.int32) for run in self.runs)])

    @cached_property
    def quantiles(self) -> Codes:
        """Some allowed codes at equal distances."""
        ends = np.cumsum(self.runs[:, 1] - self.runs[:, 0])
        ranks = _even_ranks(self.n_allowed)
        run = np.searchsorted(ends, ranks, side="right")
        return _merge(self.runs[run, 1] - (ends[run] - ranks))

    def allows(self, codes: Codes) -> BoolArray:
        """Whether codes are allowed."""
        run = np.searchsorted(self.runs[:, 0], codes, side="right") - 1
        return (run >= 0) & (codes < np.append(self.runs[:, 1], 0)[run])

    @cached_property
    def alone(self) -> Codes:
        """Codes to try as the only change."""
        if self.everything or self.feature is None or self.feature.kind != "numeric":
            return self.combined
        if self.n_allowed <= ALL_VALUES:
            return self.allowed
        return _merge(self.combined, self.quantiles)

    @cached_property
    def combined(self) -> Codes:
        """Codes to try with other changes."""
        if self.everything or self.feature is None:
            return self.allowed
        usual = self.frequent[self.allows(self.frequent)]
        if self.feature.kind != "numeric":
            return usual[:MAX_LEVELS]
        if self.n_allowed > N_QUANTILES:
            grid = _merge(usual, self.quantiles[: max(N_QUANTILES - usual.size, 0)])
        else:
            grid = self.allowed
        missing = np.array([self.feature.n_codes - 1], dtype=np.int32)
        if self.feature.has_missing and self.allows(missing).all():
            grid = _merge(grid, missing)
        return grid

    @property
    def with_all(self) -> Choice:
        """The same with all allowed codes, alone and in combination."""
        return replace(self, everything=True)


NO_CHOICE = Choice(None, np.empty((0, 2), dtype=np.int32), np.empty(0, dtype=np.int32))


def _even_ranks(n: int) -> IntArray:
    """Evenly spaced positions in a list of length ``n``, without its ends."""
    return (2 * np.arange(N_QUANTILES if n else 0) + 1) * n // (2 * N_QUANTILES)


def _merge(*codes: IntArray | Codes) -> Codes:
    """The distinct codes of some short lists, ascending."""
    return np.array(sorted({code for some in codes for code in some.tolist()}), dtype=np.int32)
