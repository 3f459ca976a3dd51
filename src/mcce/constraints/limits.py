"""What the constraints on features mean for each factual, as codes.

Takes the factuals; gives which of them may share candidates and, for one of each group, the codes
that its draws must be among. Factuals share candidates if their cells of immutable and of limited
features are equal (with ``whole``, of all features), and the same features are frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from ..caching import cached_property
from ..kernels import ANY_LEAF, BoolArray, Codes, DrawLimits, IntArray, check_cancellation
from ..tables.columns import as_comparable, is_missing
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from .amounts import moved
from .collection import Constraints
from .of_features import FeatureConstraint, number_levels

# In ``first`` and ``last``: any code is allowed. In ``high``: a run that holds no code.
FREE = -1
EMPTY = -1


class FactualLimits:
    """Limits of all factuals, computed for those they are requested for."""

    def __init__(
        self,
        constraints: Constraints,
        rows: EncodedRows,
        *,
        whole: bool = False,
        keep_unseen: bool = False,
        also: Iterable[int] = (),
    ) -> None:
        self.rows = rows
        self._keep_unseen = keep_unseen
        self._constraints = constraints.by_feature
        self._steps = constraints.steps
        self._frozen = constraints.frozen(rows)
        self.limited = sorted({*self._constraints, *self._steps, *self._frozen})
        shared = range(len(rows.schema.features)) if whole else rows.schema.immutable
        self.group: IntArray = rows.groups(sorted({*map(int, shared), *self.limited, *also}))
        for whose in self._frozen.values():
            self.group = np.unique(2 * self.group + whose, return_inverse=True)[1]

    @cached_property
    def stays(self) -> Codes:
        """The code that the model must be able to draw for an own value to stay.

        For a number that training never held, it is that of the nearest training value. A level
        that training never held, or a missing value where training had none, may stay whatever
        the model draws.
        """
        rows, codes = self.rows, self.rows.codes.copy()
        if self._keep_unseen:
            for position in rows.schema.mutable:
                unseen = np.flatnonzero(codes[position] < 0)
                feature, cells = rows.schema.features[position], rows.own(int(position), unseen)
                codes[position, unseen] = np.where(
                    (feature.kind == "numeric") & ~is_missing(cells),
                    rows.tree_codes[position, unseen],
                    ANY_LEAF,
                )
        return codes

    def limits(self, factuals: IntArray, features: Sequence[Feature]) -> DrawLimits | None:
        """Limits of some factuals."""
        if not self.limited:
            return None
        # One row more than features: the decision, which is never drawn.
        shape = (len(features) + 1, factuals.size)
        limits = DrawLimits(
            own=np.zeros(shape, dtype=np.int32),
            first=np.full(shape, FREE, dtype=np.int64),
            last=np.full(shape, FREE, dtype=np.int64),
            runs=np.empty((0, 2), dtype=np.int32),
            near=np.tile(np.array([1, 0], dtype=np.int32), (*shape, 1)),
        )
        parts, n_runs = [limits.runs], 0
        for position in self.limited:
            feature = features[position]
            runs, counts = self._runs(position, feature, factuals)
            ends = n_runs + np.cumsum(counts)
            limits.first[position], limits.last[position] = ends - counts, ends
            limits.own[position] = feature.encode(self.rows.own(position, factuals))[0]
            limits.near[position] = self._near(position, feature, factuals)
            parts.append(runs)
            n_runs += len(runs)
        return DrawLimits(limits.own, limits.first, limits.last, np.concatenate(parts), limits.near)

    def _runs(self, position: int, feature: Feature, factuals: IntArray) -> tuple[Codes, IntArray]:
        """Runs of allowed codes, factual after factual, and the number of runs of each."""
        check_cancellation()
        constraints = self._constraints.get(position, [])
        if feature.kind == "numeric":
            low, high = self._number_runs(constraints, position, feature, factuals)
        else:
            low, high = self._level_runs(constraints, position, feature, factuals)
        if position in self._frozen:
            high[self._frozen[position][factuals]] = EMPTY
        keep = high >= low
        return np.stack([low[keep], high[keep]], axis=1).astype(np.int32), keep.sum(axis=1)

    def _number_runs(
        self,
        constraints: Sequence[FeatureConstraint],
        position: int,
        feature: Feature,
        factuals: IntArray,
    ) -> tuple[IntArray, IntArray]:
        """First and last codes of three runs: allowed numbers, missing, and the own value."""
        own = as_comparable(self.rows.own(position, factuals), feature.table.dtype)
        known = as_comparable(feature.known, feature.table.dtype)
        bounds = [constraint.bounds(feature, own) for constraint in constraints]
        least = reduce(np.maximum, [low for low, _ in bounds], np.full(own.size, -np.inf))
        most = reduce(np.minimum, [high for _, high in bounds], np.full(own.size, np.inf))
        may_miss = feature.has_missing and all(c.can_become_missing for c in constraints)
        low, high = np.empty((2, factuals.size, 3), dtype=np.int64)
        low[:, 0] = np.searchsorted(known, least, side="left")
        high[:, 0] = np.searchsorted(known, most, side="right") - 1
        low[:, 1], high[:, 1] = len(known), len(known) if may_miss else EMPTY
        # A feature may always keep its value, so its code can be drawn like any other.
        code = feature.encode(self.rows.own(position, factuals))[0]
        inside = ((low[:, :2] <= code[:, None]) & (code[:, None] <= high[:, :2])).any(axis=1)
        low[:, 2], high[:, 2] = code, np.where(inside | (code < 0), EMPTY, code)
        order = np.argsort(low, axis=1)
        return np.take_along_axis(low, order, axis=1), np.take_along_axis(high, order, axis=1)

    def _level_runs(
        self,
        constraints: Sequence[FeatureConstraint],
        position: int,
        feature: Feature,
        factuals: IntArray,
    ) -> tuple[IntArray, IntArray]:
        """First and last codes of the runs of allowed levels."""
        number, own = number_levels(self.rows.own(position, factuals))
        new = [*feature.level_codes, *([None] * feature.has_missing)]
        free = np.ones((len(own), len(new)), dtype=bool)
        pairs = [constraint.pairs(feature, own, new) for constraint in constraints]
        allowed = reduce(np.logical_and, pairs, free)
        place = {level: at for at, level in enumerate(new)}
        kept = [(row, place[level]) for row, level in enumerate(own) if level in place]
        allowed[tuple(np.array(kept, dtype=np.int64).reshape(-1, 2).T)] = True
        low, high = _runs_of(allowed)
        return low[number], high[number]

    def _near(self, position: int, feature: Feature, factuals: IntArray) -> Codes:
        """First and last codes that count as the own value: those less than a step away."""
        near = np.tile(np.array([1, 0], dtype=np.int32), (factuals.size, 1))
        if position in self._steps:
            own = as_comparable(self.rows.own(position, factuals), feature.table.dtype)
            known = as_comparable(feature.known, feature.table.dtype)
            step = self._steps[position].size(feature)
            present = own == own
            near[present, 0] = np.searchsorted(known, moved(own[present], -step), side="right")
            near[present, 1] = np.searchsorted(known, moved(own[present], step), side="left") - 1
        return near


def _runs_of(allowed: BoolArray) -> tuple[IntArray, IntArray]:
    """First and last positions of the runs of True in each row, padded with empty runs."""
    padded = np.pad(allowed.astype(np.int8), ((0, 0), (1, 1)))
    edges = np.diff(padded, axis=1)
    row, start = np.nonzero(edges == 1)
    _, after = np.nonzero(edges == -1)
    n_runs = np.bincount(row, minlength=len(allowed))
    width = max(1, int(n_runs.max(initial=0)))
    low, high = np.zeros((len(allowed), width), np.int64), np.full((len(allowed), width), EMPTY)
    place = np.arange(row.size) - (np.cumsum(n_runs) - n_runs)[row]
    low[row, place], high[row, place] = start, after - 1
    return low, high
