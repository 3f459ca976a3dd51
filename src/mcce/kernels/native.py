"""The compiled inner loops, called like their readable twins in ``reference``.

Each gives the same bits as its twin; ``tests/test_native.py`` holds them to it. They work on one
tree or one block of people at a time with the GIL released, so threads come from the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from . import _native
from ._types import BoolArray, Codes, FloatArray, IntArray, WordArray
from .reference import (
    Classes,
    Columns,
    Comparison,
    Enumerated,
    Growth,
    Guide,
    Holdings,
    Limits,
    Listing,
    Neighbours,
    Numbers,
    Person,
    Trees,
)

KEYS = {"sparsity": 0, "distance": 1}
_CODES, _PLACES = np.empty((0, 0), dtype=np.int32), np.empty((0, 0), dtype=np.int64)
NO_GUIDE = Guide(_CODES, 0)
NO_LIMITS = Limits(_CODES, _PLACES, _PLACES, _CODES, _CODES[:, :, None])


def grow_tree(
    columns: Columns,
    inputs: IntArray,
    response: Numbers | Classes,
    response_codes: Codes,
    growth: Growth,
) -> Trees:
    """Tree of ``response`` given some columns; see :func:`reference.grow_tree`."""
    units, classes, n_classes = np.empty(0, np.int64), np.empty(0, np.int32), 0
    if isinstance(response, Numbers):
        units = response.units
    else:
        classes, n_classes = response.classes.astype(np.int32), response.n_classes
    parts = _native.grow_tree(
        columns.narrow,
        columns.n_codes.astype(np.int32),
        columns.by_set.view(np.uint8),
        columns.ordered.view(np.uint8),
        columns.sorted_rows,
        inputs.astype(np.int32),
        units,
        classes,
        n_classes,
        np.ascontiguousarray(response_codes),
        growth.min_samples_leaf,
        growth.min_samples_split,
        -1 if growth.max_depth is None else growth.max_depth,
        -1 if growth.decision_column is None else growth.decision_column,
        growth.grow_undesired,
    )
    return Trees(np.zeros(1, dtype=np.int64), *parts)


def sample(
    trees: Trees,
    responses: IntArray,
    n_levels: IntArray,
    given: Codes,
    keys: WordArray,
    draws: IntArray,
    limits: Limits | None = None,
    guide: Guide | None = None,
) -> Codes:
    """Codes drawn for each response, in column order; see :func:`reference.sample`."""
    held, kept = limits or NO_LIMITS, guide or NO_GUIDE
    return _native.sample(
        *_parts(trees),
        n_levels.astype(np.int32),
        responses.astype(np.int32),
        np.ascontiguousarray(given),
        keys,
        draws,
        *map(np.ascontiguousarray, _parts(held)),
        np.ascontiguousarray(kept.own),
        kept.often,
    )


def enumerate_rows(
    trees: Trees,
    responses: IntArray,
    n_levels: IntArray,
    person: Person,
    *,
    n_changes: int,
    n_best: int,
    max_nodes: int,
    after: tuple[float, Codes] | None = None,
) -> Enumerated:
    """The nearest rows that could be drawn; see :func:`reference.enumerate_rows`."""
    total, codes = after or (-1.0, np.zeros(responses.size, dtype=np.int32))
    parts = _native.enumerate_rows(
        *_parts(trees),
        n_levels.astype(np.int32),
        responses.astype(np.int32),
        np.ascontiguousarray(person.given),
        np.ascontiguousarray(person.own),
        *map(np.ascontiguousarray, _parts(person.limits or NO_LIMITS)),
        person.costs,
        person.offsets,
        n_changes,
        n_best,
        max_nodes,
        total,
        np.ascontiguousarray(codes),
    )
    return Enumerated(*parts)


def first_of_each(codes: Codes) -> BoolArray:
    """Marks the first draw of each distinct candidate; see :func:`reference.first_of_each`."""
    return _native.first_of_each(np.ascontiguousarray(codes)).view(np.bool_)


def first_equal(rows: Codes) -> IntArray:
    """Place of the first row that is equal to each; see :func:`reference.first_equal`."""
    return _native.first_equal(np.ascontiguousarray(rows))


def gather_holdings(
    trees: Trees,
    n_levels: IntArray,
    responses: IntArray,
    missing: Codes,
    *,
    contradictions: bool,
) -> Holdings:
    """What every node holds; see :func:`reference.gather_holdings`."""
    chain = *_parts(trees), n_levels.astype(np.int32), responses.astype(np.int32)
    return Holdings(*_native.gather_holdings(*chain, missing, contradictions))


def strain(
    trees: Trees,
    n_levels: IntArray,
    responses: IntArray,
    missing: Codes,
    held: Holdings,
    n_codes: Codes,
    codes: Codes,
    least: Codes,
) -> Codes:
    """Largest node that lacks a row's value; see :func:`reference.strain`."""
    chain = *_parts(trees), n_levels.astype(np.int32), responses.astype(np.int32)
    return _native.strain(
        *chain, missing, *_parts(held), n_codes, np.ascontiguousarray(codes), least
    )


def build_neighbours(points: FloatArray, is_level: BoolArray) -> Neighbours:
    """Rows to be near to, shape (n_rows, n_columns), with a tree to look them up."""
    parts = _native.build_neighbours(np.ascontiguousarray(points), is_level.view(np.uint8))
    return Neighbours(*(*parts, is_level))


def nearest(neighbours: Neighbours, rows: FloatArray, k: int) -> FloatArray:
    """Distances to the k nearest; see :func:`reference.nearest`."""
    *parts, is_level = _parts(neighbours)
    return _native.nearest(*parts, is_level.view(np.uint8), np.ascontiguousarray(rows), k)


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
) -> Listing:
    """The best candidates of each person; see :func:`reference.rank`."""
    keys = [KEYS[name] for name in rank_by]
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
    )
    return Listing(*parts)


def _parts(arrays: Trees | Limits | Holdings | Neighbours) -> list[np.ndarray]:
    """The arrays of a struct, in order."""
    return [getattr(arrays, field.name) for field in fields(arrays)]
