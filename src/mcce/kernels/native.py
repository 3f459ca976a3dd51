"""The compiled kernels, and the structs that are bound to them.

Those of the method give the same bits as their readable versions in ``tests/oracles``. They start
no threads of their own and release the GIL while they work, so callers may run them in threads.

Forests, holdings, ensembles and neighbours are checked and handed over to the compiled code once,
at first use. It copies the arrays that hold indices: changing them later has no effect, and cannot
make it read beyond other arrays. Pickles and copies leave the compiled half behind. Arguments
that do not go together raise ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..caching import cached_property
from . import _native
from .cancellation import watch
from .structs import (
    BoolArray,
    BoostedNodes,
    Boosting,
    ByteArray,
    Classes,
    Codes,
    Comparison,
    DistanceAxes,
    DrawLimits,
    Enumerated,
    FloatArray,
    Growth,
    Int32Array,
    IntArray,
    Listing,
    Numbers,
    Person,
    SplitColumns,
    Trees,
    WordArray,
)

# Numbers of the costs that candidates are ranked by.
RANK_KEYS = {"sparsity": 0, "distance": 1}
# Nodes have sets of levels of categories with at most this many.
MAX_SET_LEVELS = 1024


class _Bound:
    """A dataclass with a compiled half, which pickles and copies leave behind."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Forest(_Bound):
    """Trees with the columns that they predict and split."""

    trees: Trees
    responses: IntArray
    n_levels: IntArray
    pooled: bool = False

    @cached_property
    def bound(self) -> _native.Forest:
        """The compiled half."""
        responses, n_levels = self.responses.astype(np.int32), self.n_levels.astype(np.int32)
        return _native.Forest(*[*_parts(self.trees), responses, n_levels])


@dataclass(frozen=True, eq=False)
class Holdings(_Bound):
    """A forest and the levels that each node holds of the category that its tree predicts.

    A node holds a level if one of its training rows has it; with ``contradictions``, every level
    that is not far rarer in it than among all rows.
    """

    forest: Forest
    contradictions: bool
    size: Int32Array
    offset: IntArray
    sets: WordArray

    @cached_property
    def bound(self) -> _native.Holdings:
        """The compiled half."""
        _, *arrays = _parts(self)
        return _native.Holdings(self.forest.bound, *arrays)


@dataclass(frozen=True, eq=False)
class Ensemble(_Bound):
    """Boosted trees, and how codes become the bins that they split."""

    nodes: BoostedNodes
    inputs: Int32Array
    first: IntArray
    bins: ByteArray

    @cached_property
    def bound(self) -> _native.Ensemble:
        """The compiled half."""
        *nodes, _gain = _parts(self.nodes)
        return _native.Ensemble(*[*nodes, self.inputs, self.first, self.bins])


@dataclass(frozen=True, eq=False)
class Neighbours(_Bound):
    """Rows, in the order and with the nodes of a k-d tree that finds the nearest of them."""

    points: FloatArray
    first: np.ndarray
    last: np.ndarray
    left: np.ndarray
    right: np.ndarray
    column: np.ndarray
    left_edge: FloatArray
    right_edge: FloatArray
    is_level: BoolArray

    @cached_property
    def bound(self) -> _native.Neighbours:
        """The compiled half."""
        *arrays, is_level = _parts(self)
        return _native.Neighbours(*[*arrays, is_level.view(np.uint8)])


def grow_tree(
    columns: SplitColumns,
    inputs: IntArray,
    response: Numbers | Classes,
    response_codes: Codes,
    growth: Growth,
    drawn: IntArray | None = None,
) -> Trees:
    """Tree of ``response`` given the columns numbered in ``inputs``, as a struct of one.

    ``drawn`` are the rows that splits are chosen on; leaves hold all rows.
    """
    units, classes, n_classes = np.empty(0, np.int64), np.empty(0, np.int32), 0
    if isinstance(response, Numbers):
        units = response.units
    else:
        classes, n_classes = response.classes.astype(np.int32), response.n_classes
    arguments: list[Any] = [
        columns.narrow,
        columns.n_codes.astype(np.int32),
        columns.by_set.view(np.uint8),
        columns.ordered.view(np.uint8),
        inputs.astype(np.int32),
        units,
        classes,
        n_classes,
        np.ascontiguousarray(response_codes),
        *_growth_arguments(growth),
        drawn,
        watch(),
    ]
    return Trees(np.zeros(1, dtype=np.int64), *_native.grow_tree(*arguments))


def _growth_arguments(growth: Growth) -> list[int]:
    """The settings in the order of the compiled code, -1 for None."""
    settings = [
        growth.min_samples_leaf,
        growth.min_samples_split,
        growth.max_depth,
        growth.decision_column,
        growth.grow_undesired,
        growth.levels_per_row,
        growth.many_levels,
        growth.smallest_part,
        growth.max_features,
        growth.key,
    ]
    return [-1 if setting is None else setting for setting in settings]


def boost(bins: ByteArray, n_bins: Int32Array, units: IntArray, boosting: Boosting) -> BoostedNodes:
    """Trees whose sum predicts a response.

    Friedman's gradient boosting with squared error. Trees are grown best first. All sums are
    integers, so the order of rows changes nothing; of equal gains the lowest node, column and cut
    win.
    """
    settings = boosting.n_trees, boosting.max_leaves, boosting.min_samples_leaf, boosting.shrinkage
    return BoostedNodes(*_native.boost(bins, n_bins, units, *settings, watch()))


def predict_units(
    ensemble: Ensemble, codes: Codes, row_numbers: IntArray | None = None
) -> IntArray:
    """Sum of all trees for each row, or for some of them; codes are (n_columns, n_rows)."""
    if row_numbers is None:
        row_numbers = np.arange(codes.shape[1])
    return ensemble.bound.predict(np.ascontiguousarray(codes), row_numbers, watch())


def sample(
    forest: Forest,
    given: Codes,
    keys: WordArray,
    draws: IntArray,
    limits: DrawLimits | None = None,
    least: IntArray | None = None,
) -> Codes:
    """Codes drawn for each response, in column order, shape (n_responses, n_groups, n_draws)."""
    bound_limits, pooled = _bind_limits(limits), forest.pooled
    return forest.bound.sample(
        np.ascontiguousarray(given), keys, draws, bound_limits, least, pooled, watch()
    )


def enumerate_rows(
    forest: Forest,
    person: Person,
    *,
    n_changes: int,
    n_best: int,
    max_nodes: int,
    after: tuple[float, Codes] | None = None,
) -> Enumerated:
    """The nearest rows with exactly ``n_changes`` changes that the forest could draw."""
    total, codes = after or (-1.0, np.zeros(forest.responses.size, dtype=np.int32))
    parts = forest.bound.enumerate_rows(
        given=np.ascontiguousarray(person.given),
        own=np.ascontiguousarray(person.own),
        stays=np.ascontiguousarray(person.stays),
        limits=_bind_limits(person.limits),
        costs=person.costs,
        offsets=person.offsets,
        n_changes=n_changes,
        n_best=n_best,
        max_nodes=max_nodes,
        after_total=total,
        after=np.ascontiguousarray(codes),
        watch=watch(),
    )
    return Enumerated(*parts)


def gather_holdings(
    forest: Forest, *, contradictions: bool, most_levels: int = MAX_SET_LEVELS
) -> Holdings:
    """The levels that every node holds."""
    parts = forest.bound.gather_holdings(contradictions, most_levels, watch())
    return Holdings(forest, contradictions, *parts)


def largest_rejecting_nodes(held: Holdings, codes: Codes) -> Int32Array:
    """For each tree and row, the size of the largest node on its path that lacks its level."""
    return held.bound.nonconformity(np.ascontiguousarray(codes), watch())


def build_neighbours(points: FloatArray, is_level: BoolArray) -> Neighbours:
    """A k-d tree of points, shape (n_rows, n_columns), that finds the nearest of them."""
    points, levels = np.ascontiguousarray(points), is_level.view(np.uint8)
    parts = _native.build_neighbours(points, levels, watch())
    return Neighbours(*[*parts, is_level])


def nearest_distances(neighbours: Neighbours, rows: FloatArray, k: int) -> FloatArray:
    """Distances to the k nearest, ascending, infinite beyond their number; (n_rows, k).

    A distance is the sum of the gaps of all columns; see :func:`scaled_gap`.
    """
    return neighbours.bound.nearest(np.ascontiguousarray(rows), k, watch())


def first_of_each(codes: Codes) -> BoolArray:
    """Marks the first draw of each distinct candidate within its group."""
    return _native.first_of_each(np.ascontiguousarray(codes), watch()).view(np.bool_)


class RowTable:
    """Distinct rows, numbered in the order of their first appearance."""

    def __init__(self, width: int) -> None:
        self._table = _native.RowTable(width)

    def number_rows(self, rows: Codes) -> IntArray:
        """Number of each row, shape (n_rows,); rows never seen before get the next numbers."""
        return self._table.place(np.ascontiguousarray(rows), watch())


def weigh_errors(
    cells: Codes,
    row_numbers: IntArray,
    between: tuple[IntArray, IntArray],
    known: IntArray,
    error: FloatArray,
    sums: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Errors, weighted by similarity: each cell in which the rows differ halves the weight."""
    return _native.weigh_errors(
        np.ascontiguousarray(cells), row_numbers, *between, known, error, *sums, watch()
    )


def rank(
    comparison: Comparison,
    allowed: BoolArray,
    *,
    rank_by: Sequence[str],
    n_best: int,
    tolerance: float = 0.0,
    max_sparsity: int | None = None,
    max_distance: float | None = None,
    distance: FloatArray | None = None,
    axes: DistanceAxes | None = None,
) -> Listing:
    """The best candidates of each person."""
    keys = [RANK_KEYS[name] for name in rank_by]
    parts = _native.rank(
        np.ascontiguousarray(comparison.codes),
        list(comparison.numbers),
        np.ascontiguousarray(comparison.own_codes),
        np.ascontiguousarray(comparison.own_numbers),
        comparison.spreads,
        comparison.group,
        np.ascontiguousarray(allowed).view(np.uint8),
        np.empty((0, 0)) if distance is None else np.ascontiguousarray(distance),
        comparison.n_features,
        min(n_best, allowed.shape[1]),
        keys[0],
        keys[1] if len(keys) > 1 else -1,
        tolerance,
        np.iinfo(np.int64).max if max_sparsity is None else max_sparsity,
        np.inf if max_distance is None else max_distance,
        None if axes is None else _bind_axes(axes),
        watch(),
    )
    return Listing(*parts)


def measure(comparison: Comparison, axes: DistanceAxes) -> FloatArray:
    """Distance of each candidate to its person, shape (n_people, n_draws).

    A mean over no feature at all is infinite, unless the candidate equals the person.
    """
    return _native.measure(
        np.ascontiguousarray(comparison.codes),
        np.ascontiguousarray(comparison.own_codes),
        comparison.group,
        _bind_axes(axes),
        watch(),
    )


def _bind_axes(axes: DistanceAxes) -> _native.Measure:
    coordinates, own_coordinates = (
        [None if table is None else np.ascontiguousarray(table) for table in side]
        for side in (axes.coordinates, axes.own_coordinates)
    )
    arrays = axes.spreads, axes.weights, axes.n_present
    how = axes.how.squared, axes.how.city_block, axes.how.mean, axes.how.ignores_missing
    return _native.Measure(coordinates, own_coordinates, *arrays, *how)


def _bind_limits(limits: DrawLimits | None) -> _native.Limits | None:
    if limits is None:
        return None
    return _native.Limits(*map(np.ascontiguousarray, _parts(limits)))


def _parts(struct: Any) -> list[Any]:
    """The fields of a struct in order, which is that of the arguments of the compiled code."""
    return [getattr(struct, field.name) for field in fields(struct)]
