"""Columns of very many levels: trees stay shallow and small, in every role of the column.

Work is counted, not timed: the rows of all nodes, which growing looks at, and the words of sets.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from mcce.kernels import Forest, gather_holdings, native, nonconformity, reference
from mcce.kernels.reference import LEAF, Classes, Columns, Growth, Numbers, fixed_point

ROLES = ["response", "input of a number", "input of 500 classes", "response and input"]


def identifiers(n_rows, rows_per_level, chance):
    return (chance.permutation(n_rows) // rows_per_level).astype(np.int32)


def problem_of(role, n_rows, rows_per_level=1):
    """An identifier in some role, beside two numbers, a category and a rare binary column."""
    chance = np.random.default_rng(n_rows)
    ids = identifiers(n_rows, rows_per_level, chance)
    n_codes = np.array([ids.max() + 1, 5000, 70, 8, 2])
    others = [chance.integers(0, n, n_rows) for n in n_codes[1:4]]
    columns = Columns(
        np.array([ids, *others, chance.random(n_rows) < 0.03], dtype=np.int32),
        by_set=np.array([True, False, False, True, False]),
        ordered=np.array([False, True, True, False, True]),
        n_codes=n_codes,
    )
    if role == "input of a number":
        return columns, np.arange(5), Numbers(fixed_point(chance.normal(size=n_rows)))
    if role == "input of 500 classes":
        return columns, np.arange(5), Classes(chance.integers(0, 500, n_rows), 500)
    inputs = np.arange(1, 5) if role == "response" else np.arange(5)
    classes = ids if role == "response" else identifiers(n_rows, rows_per_level, chance)
    return columns, inputs, Classes(classes.astype(np.int64), int(n_codes[0]))


def grow(kernels, problem, growth=None):
    columns, inputs, response = problem
    answers = columns.codes[0]
    return kernels.grow_tree(columns, inputs, response, answers, growth or Growth())


def sizes_of(tree):
    """Training rows of each node."""
    size = tree.count.astype(np.int64)
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:
        size[node] = size[tree.left[node]] + size[tree.right[node]]
    return size


def depth_of(tree):
    depth = np.zeros(tree.feature.size, dtype=np.int64)
    for node in np.flatnonzero(tree.feature != LEAF):
        depth[[tree.left[node], tree.right[node]]] = depth[node] + 1
    return int(depth.max())


@pytest.mark.parametrize("rows_per_level", [1, 2, 10])
@pytest.mark.parametrize("role", ROLES)
def test_the_rows_of_all_nodes_grow_like_n_log_n(role, rows_per_level):
    for n_rows in (4_096, 16_384):
        tree = grow(native, problem_of(role, n_rows, rows_per_level))

        assert sizes_of(tree).sum() <= 12 * n_rows * math.log2(n_rows)
        assert depth_of(tree) <= 400


@pytest.mark.parametrize("rows_per_level", [1, 10])
@pytest.mark.parametrize("role", ROLES)
def test_no_set_takes_more_words_than_its_node_has_rows(role, rows_per_level):
    columns, *rest = problem_of(role, 16_384, rows_per_level)

    tree = grow(native, (columns, *rest))

    by_set = (tree.feature != LEAF) & columns.by_set[tree.feature]
    n_words = columns.n_codes[tree.feature] // 64 + 1
    assert (n_words <= sizes_of(tree) + 1)[by_set].all()
    assert n_words[by_set].sum() == tree.sets.size


@pytest.mark.parametrize("rows_per_level", [1, 2])
@pytest.mark.parametrize("role", ROLES)
def test_trees_of_many_levels_are_equal(role, rows_per_level):
    problem = problem_of(role, 2_400, rows_per_level)

    ours, theirs = grow(native, problem), grow(reference, problem)

    for name in ("feature", "cut", "left", "right", "start", "count", "sets", "values"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


def test_a_rare_decision_still_splits_a_response_of_many_classes():
    columns, _, response = problem_of("response", 4_096)

    tree = grow(native, (columns, np.array([4]), response))

    assert tree.feature[0] == 4
    assert min(sizes_of(tree)[1:]) < 4_096 // 10


def test_rules_for_many_levels_leave_few_levels_alone():
    chance = np.random.default_rng(0)
    codes = np.array([chance.integers(0, 128, 3_000), chance.integers(0, 90, 3_000)], np.int32)
    columns = Columns(codes, np.array([True, False]), np.array([False, True]), np.array([128, 90]))
    problem = columns, np.arange(2), Classes(chance.integers(0, 1_000, 3_000), 1_000)
    growth = Growth(min_samples_leaf=1)
    unlimited = Growth(min_samples_leaf=1, levels_per_row=10**6, many_levels=10**6)

    assert np.array_equal(grow(native, problem, growth).sets, grow(native, problem, unlimited).sets)


@pytest.mark.parametrize("contradictions", [False, True])
def test_nodes_without_sets_of_levels_hold_the_same(contradictions):
    columns, inputs, _ = problem_of("response", 4_096, rows_per_level=16)
    ids, category = columns.codes[0], columns.codes[3]
    ids[(ids < 100) & (category != 3)] = 0
    response = Classes(ids.astype(np.int64), 256)
    tree = grow(native, (columns, inputs, response), Growth(min_samples_leaf=20))
    forest = Forest(tree, np.array([0]), columns.n_codes * columns.by_set)
    chance = np.random.default_rng(1)
    rows = np.array([chance.permutation(codes) for codes in columns.codes])

    scores = [
        nonconformity(
            gather_holdings(forest, contradictions=contradictions, most_levels=most), rows
        )
        for most in (0, 1_024)
    ]

    assert np.array_equal(*scores)
    assert np.unique(scores[0]).size > (1 if contradictions else 10)


def test_nodes_store_nothing_per_level_of_many():
    columns, inputs, response = problem_of("response", 16_384)
    tree = grow(native, (columns, inputs, response), Growth(min_samples_leaf=20))
    forest = Forest(tree, np.array([0]), columns.n_codes * columns.by_set)

    held = gather_holdings(forest, contradictions=True)

    assert held.sets.size == 0
