"""Nearest rows and what nodes hold, against brute force, whatever the number of levels."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel_cases import columns_of
from mcce.kernels import (
    LEAF,
    MISSING,
    Classes,
    Forest,
    Growth,
    grow_tree,
    join_trees,
    native,
    scaled_gap,
)
from mcce.kernels.trees import in_set
from numpy_kernels import node_slices

SEEDS = st.integers(0, 2**32 - 1)


def points_of(n_rows, levels, chance, scale=1.0):
    """Rows of numbers and levels with many ties and missing cells."""
    shape = n_rows, levels.size
    numbers = chance.choice([chance.random(shape), np.zeros(shape)]) * scale
    numbers = np.where(chance.random(shape) < 0.1, MISSING, numbers)
    return np.where(levels, chance.integers(0, 3, shape).astype(float), numbers)


def nearest_by_brute_force(neighbours, rows, k):
    """Distances to every row, sorted."""
    distances = np.full((len(rows), k), np.inf)
    for place, row in enumerate(rows):
        total = np.zeros(len(neighbours.points))
        for other, own, is_level in zip(neighbours.points.T, row, neighbours.is_level, strict=True):
            total += (other != own) if is_level else scaled_gap(other, own)
        best = np.sort(total)[:k]
        distances[place, : best.size] = best
    return distances


@given(
    st.integers(1, 300), st.lists(st.booleans(), min_size=1, max_size=5), st.integers(1, 8), SEEDS
)
def test_distances_to_the_nearest_rows_are_equal(n_rows, is_level, k, seed):
    chance, levels = np.random.default_rng(seed), np.array(is_level)
    near = native.build_neighbours(points_of(n_rows, levels, chance), levels)
    far = points_of(3, levels, chance) + ~levels * 1.5
    queries = np.concatenate([points_of(20, levels, chance), near.points[:5], far])

    assert np.array_equal(
        native.nearest_distances(near, queries, k), nearest_by_brute_force(near, queries, k)
    )


@given(st.integers(1, 90), st.integers(32, 70), st.integers(1, 8), SEEDS)
def test_distances_of_wide_rows_that_share_cells_are_equal(n_rows, n_columns, k, seed):
    chance = np.random.default_rng(seed)
    levels = chance.random(n_columns) < 0.4
    scale = 10.0 ** chance.integers(-2, 3)
    near = native.build_neighbours(points_of(n_rows, levels, chance, scale), levels)
    some = np.concatenate([points_of(3, levels, chance, scale), near.points[:2]])
    queries = np.repeat(some, 8, axis=0)
    changed = chance.random(queries.shape) < chance.choice([0.02, 0.2], (len(queries), 1))
    queries = np.where(changed, points_of(len(queries), levels, chance, scale), queries)

    assert np.array_equal(
        native.nearest_distances(near, queries, k), nearest_by_brute_force(near, queries, k)
    )


def test_distances_are_sums_of_gaps_and_missing_cells_differ_by_one():
    levels = np.array([False, True])
    near = native.build_neighbours(
        np.array([[0.0, 0.0], [0.5, 1.0], [MISSING, 1.0], [0.25, 2.0]]), levels
    )

    found = native.nearest_distances(near, np.array([[0.0, 1.0], [MISSING, 1.0]]), 4)

    assert found.tolist() == [[0.5, 1.0, 1.0, 1.25], [0.0, 1.0, 2.0, 2.0]]


def test_rows_that_differ_in_one_column_each_make_no_deep_tree():
    points = np.eye(700)
    near = native.build_neighbours(points, np.zeros(700, dtype=bool))

    found = native.nearest_distances(near, points[:5], 2)

    assert np.array_equal(found, np.tile([0.0, 2.0], (5, 1)))


def nonconformity_by_brute_force(forest, rows, contradictions):
    """The largest node on the path of each row whose values count too few of the row's level."""
    trees, n_levels, held = forest.trees, forest.n_levels, node_slices(forest.trees)
    scores = np.zeros((forest.responses.size, rows.shape[1]), dtype=np.int32)
    for (tree, column), place in product(enumerate(forest.responses), range(rows.shape[1])):
        row, node = rows[:, place], trees.roots[tree]
        level, everybody = row[column], trees.values[held.first[node] : held.end[node]]
        while level < n_levels[column]:
            values = trees.values[held.first[node] : held.end[node]]
            count, expected = (values == level).sum(), values.size * (everybody == level).sum()
            holds = count > 0
            if contradictions:
                holds = count * 100 * everybody.size >= expected or expected < 5 * everybody.size
            if not holds:
                scores[tree, place] = values.size
            if not holds or trees.feature[node] == LEAF:
                break
            split = trees.feature[node]
            left = row[split] <= trees.cut[node]
            if n_levels[split]:
                left = in_set(trees, np.array([node]), row[[split]])[0]
            node = trees.left[node] if left else trees.right[node]
    return scores


@given(
    SEEDS,
    st.lists(st.sampled_from([2, 3, 9, 70, 300]), min_size=2, max_size=5),
    st.booleans(),
    st.integers(1, 6),
)
def test_who_is_outside_of_nodes_is_as_counted(seed, sizes, contradictions, least):
    chance = np.random.default_rng(seed)
    by_set = np.append([True], chance.random(len(sizes) - 1) < 0.5)
    columns = columns_of(sizes, by_set, ~by_set, 80, chance)
    responses, everything = np.flatnonzero(by_set)[:2], np.arange(len(sizes))
    trees = [
        grow_tree(
            columns,
            np.delete(everything, column),
            Classes(columns.codes[column].astype(np.int64), sizes[column]),
            columns.codes[column],
            Growth(min_samples_leaf=least),
        )
        for column in responses
    ]
    forest = Forest(join_trees(trees, by_set), responses, np.where(by_set, columns.n_codes, 0))
    # One past the last code is a level that training never saw.
    rows = np.array([chance.integers(0, n + 1, 40) for n in sizes], dtype=np.int32)

    expected = nonconformity_by_brute_force(forest, rows, contradictions)
    for most_levels in (0, 8, 1024):
        held = native.gather_holdings(
            forest, contradictions=contradictions, most_levels=most_levels
        )
        assert np.array_equal(native.largest_rejecting_nodes(held, rows), expected)


def test_nodes_store_nothing_per_level_of_many():
    n_rows = 4096
    columns = columns_of(
        [n_rows, 70], [True, False], [False, True], n_rows, np.random.default_rng(0)
    )
    ids = np.arange(n_rows)
    tree = grow_tree(columns, np.array([1]), Classes(ids, n_rows), ids.astype(np.int32), Growth(20))

    held = native.gather_holdings(
        Forest(tree, np.array([0]), columns.n_codes * columns.by_set), contradictions=True
    )

    assert held.sets.size == 0
