"""What the constraints of features mean for each person, as codes.

Takes the people; gives who may share candidates and, for a group of them, the codes that its draws
are held to. People share candidates if their immutable values are equal, and their own values of
every feature that is limited, and what is frozen for them; or if all their values are, where draws
are guided by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ..kernels import BoolArray, Codes, IntArray, Limits
from ..tables.columns import as_numbers
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from .collection import Constraints
from .features import FeatureConstraint, MissingLevel, number_levels

FREE = -1


class FactualLimits:
    """The limits of all people, worked out for those who are asked for.

    Attributes
    ----------
    group : (n_people,)
        A number for people who may share candidates.
    """

    def __init__(self, constraints: Constraints, rows: EncodedRows, *, whole: bool = False) -> None:
        self.rows = rows
        self._rules = constraints.by_feature
        self._steps = constraints.steps
        self._frozen = constraints.frozen(rows)
        self.limited = sorted({*self._rules, *self._steps, *self._frozen})
        shared = range(len(rows.schema.features)) if whole else rows.schema.immutable
        self.group: IntArray = rows.grouped([*shared, *self.limited])
        for whose in self._frozen.values():
            self.group = np.unique(2 * self.group + whose, return_inverse=True)[1]

    def limits(self, people: IntArray, features: Sequence[Feature]) -> Limits | None:
        """The limits of some people.

        Parameters
        ----------
        people : (n_groups,)
            One of each group.
        features
            All features, with the tables that the codes index.
        """
        if not self.limited:
            return None
        # One column more than features: the decision, which is never drawn.
        shape = (len(features) + 1, people.size)
        limits = Limits(
            own=np.zeros(shape, dtype=np.int32),
            first=np.full(shape, FREE, dtype=np.int64),
            last=np.full(shape, FREE, dtype=np.int64),
            runs=np.empty((0, 2), dtype=np.int32),
            near=np.tile(np.array([1, 0], dtype=np.int32), (*shape, 1)),
        )
        parts, n_runs = [limits.runs], 0
        for position in self.limited:
            feature = features[position]
            runs, counts = self._runs(position, feature, people)
            ends = n_runs + np.cumsum(counts)
            limits.first[position], limits.last[position] = ends - counts, ends
            limits.own[position] = feature.encode(self.rows.own(position, people))[0]
            limits.near[position] = self._near(position, feature, people)
            parts.append(runs)
            n_runs += len(runs)
        return Limits(limits.own, limits.first, limits.last, np.concatenate(parts), limits.near)

    def _runs(self, position: int, feature: Feature, people: IntArray) -> tuple[Codes, IntArray]:
        """Runs of allowed codes, person after person, and how many each has."""
        rules = self._rules.get(position, [])
        if feature.kind == "numeric":
            low, high = self._number_runs(rules, position, feature, people)
        else:
            low, high = self._level_runs(rules, position, feature, people)
        if position in self._frozen:
            high[self._frozen[position][people]] = FREE
        keep = high >= low
        return np.stack([low[keep], high[keep]], axis=1).astype(np.int32), keep.sum(axis=1)

    def _number_runs(
        self,
        rules: Sequence[FeatureConstraint],
        position: int,
        feature: Feature,
        people: IntArray,
    ) -> tuple[IntArray, IntArray]:
        """Lowest and highest codes of three runs each: of numbers, missing, and the own one."""
        own = as_numbers(self.rows.own(position, people), feature.table.dtype)
        known = as_numbers(feature.known, feature.table.dtype)
        bounds = [rule.bounds(feature, own) for rule in rules]
        least = reduce(np.maximum, [low for low, _ in bounds], np.full(own.size, -np.inf))
        most = reduce(np.minimum, [high for _, high in bounds], np.full(own.size, np.inf))
        may_miss = feature.has_missing and all(rule.can_become_missing for rule in rules)
        low, high = np.empty((2, people.size, 3), dtype=np.int64)
        low[:, 0] = np.searchsorted(known, least, side="left")
        high[:, 0] = np.searchsorted(known, most, side="right") - 1
        low[:, 1], high[:, 1] = len(known), len(known) if may_miss else FREE
        # Staying is always allowed, so the own value may be drawn as any other.
        code = feature.encode(self.rows.own(position, people))[0]
        inside = ((low[:, :2] <= code[:, None]) & (code[:, None] <= high[:, :2])).any(axis=1)
        low[:, 2], high[:, 2] = code, np.where(inside | (code < 0), FREE, code)
        order = np.argsort(low, axis=1)
        return np.take_along_axis(low, order, axis=1), np.take_along_axis(high, order, axis=1)

    def _level_runs(
        self,
        rules: Sequence[FeatureConstraint],
        position: int,
        feature: Feature,
        people: IntArray,
    ) -> tuple[IntArray, IntArray]:
        """Lowest and highest codes of as many runs as the own level with most of them has."""
        number, own = number_levels(self.rows.own(position, people))
        new = [*feature.level_codes, *([MissingLevel] * feature.has_missing)]
        free = np.ones((len(own), len(new)), dtype=bool)
        allowed = reduce(np.logical_and, [rule.pairs(feature, own, new) for rule in rules], free)
        allowed |= np.array([[a == b for b in new] for a in own], dtype=bool)  # staying
        low, high = _runs_of(allowed)
        return low[number], high[number]

    def _near(self, position: int, feature: Feature, people: IntArray) -> Codes:
        """Lowest and highest codes that are less than a step away."""
        near = np.tile(np.array([1, 0], dtype=np.int32), (people.size, 1))
        if position not in self._steps:
            return near
        own = as_numbers(self.rows.own(position, people), feature.table.dtype)
        known, step = (
            as_numbers(feature.known, feature.table.dtype),
            self._steps[position].size(feature),
        )
        present = ~np.isnan(own)
        near[present, 0] = np.searchsorted(known, own[present] - step, side="right")
        near[present, 1] = np.searchsorted(known, own[present] + step, side="left") - 1
        return near


def _runs_of(allowed: BoolArray) -> tuple[IntArray, IntArray]:
    """First and last places of the runs of True in each row; where there are fewer, none."""
    padded = np.pad(allowed.astype(np.int8), ((0, 0), (1, 1)))
    edges = np.diff(padded, axis=1)
    row, start = np.nonzero(edges == 1)
    _, after = np.nonzero(edges == -1)
    n_runs = np.bincount(row, minlength=len(allowed))
    width = max(1, int(n_runs.max(initial=0)))
    low, high = np.zeros((len(allowed), width), np.int64), np.full((len(allowed), width), FREE)
    place = np.arange(row.size) - (np.cumsum(n_runs) - n_runs)[row]
    low[row, place], high[row, place] = start, after - 1
    return low, high
