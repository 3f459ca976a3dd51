"""Made-up columns, responses, limits and chains of trees for the oracles of kernels."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from mcce.kernels import (
    Classes,
    DrawLimits,
    Forest,
    Growth,
    Numbers,
    SplitColumns,
    fixed_point,
    grow_tree,
    join_trees,
)

RESPONSES = ["binary", "classes", "levels as many as rows", "numbers", "tenths"]
# Codes of the columns of `forest_of`; the first is given, the others have trees.
SIZES = [5, 80, 3, 200]


def assert_equal(one, other):
    """Every array of one struct has the bits of the other's."""
    for field in fields(one):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if ours is not theirs:
            assert ours.dtype == theirs.dtype, field.name
            assert np.array_equal(ours, theirs), field.name


def response_of(kind, n_rows, chance):
    if kind == "binary":
        return Classes(chance.integers(0, 2, n_rows), 2)
    if kind == "classes":
        return Classes(chance.integers(0, 7, n_rows), 7)
    if kind == "levels as many as rows":
        return Classes(np.arange(n_rows), n_rows)
    if kind == "tenths":
        return Numbers(fixed_point(chance.integers(0, 4, n_rows) / 10))
    return Numbers(fixed_point(chance.normal(size=n_rows)))


def rows_of(response, rows):
    """The response of some rows."""
    if isinstance(response, Classes):
        return Classes(response.classes[rows], response.n_classes)
    return Numbers(response.units[rows])


def codes_of(sizes, n_rows, chance):
    return np.array([chance.integers(0, n, n_rows) for n in sizes], dtype=np.int32)


def columns_of(sizes, by_set, ordered, n_rows, chance):
    return SplitColumns(
        codes_of(sizes, n_rows, chance), np.array(by_set), np.array(ordered), np.array(sizes)
    )


def limits_of(shape, sizes, responses, chance):
    """Some columns and groups held to a few runs of codes, some with a neighbourhood."""
    first, last = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
    near = np.tile(np.array([1, 0], np.int32), (*shape, 1))
    own = np.array([chance.integers(-1, size, shape[1]) for size in sizes], np.int32)
    runs = []
    for column, group in np.ndindex(shape):
        if column not in responses or chance.random() < 0.4:
            continue
        first[column, group] = len(runs)
        ends = np.sort(chance.choice(sizes[column] + 4, 2 * chance.integers(0, 3), replace=False))
        runs += ends.reshape(-1, 2).tolist()
        last[column, group] = len(runs)
        near[column, group] = np.sort(chance.integers(0, sizes[column], 2))
    return DrawLimits(own, first, last, np.array(runs, np.int32).reshape(-1, 2), near)


def stays_of(own, chance):
    """What own values need to stay: their code, any other, any leaf, or nothing will do."""
    others = np.where(chance.random(own.shape) < 0.5, chance.integers(-2, 5, own.shape), own)
    return np.where(own < 0, others, own).astype(np.int32)


def forest_of(chance, by_set=False, n_trees=1, pooled=False, n_rows=300):
    """A chain of three columns, some trees each, given a fourth; and the rows it was grown on."""
    kinds = [by_set, True, False, by_set], [not by_set, False, True, not by_set]
    columns = columns_of(SIZES, *kinds, n_rows, chance)
    order = chance.permutation(3) + 1
    trees = [
        grow_tree(
            columns,
            np.sort(np.array([0, *order[:place]])),
            response_of("numbers", n_rows, chance),
            columns.codes[column],
            Growth(min_samples_leaf=5 + 20 * tree),
        )
        for place, column in enumerate(order)
        for tree in range(n_trees)
    ]
    joined = join_trees(trees, columns.by_set)
    n_levels = columns.n_codes * columns.by_set
    return Forest(joined, np.repeat(order, n_trees), n_levels, pooled), columns
