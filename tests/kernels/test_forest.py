"""Columns drawn per node, rows drawn per tree, trees drawn per value: compiled as in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from forests import assert_equal, columns_of, limits_of, response_of, stays_of
from mcce.kernels import native, reference
from mcce.kernels.reference import LEAF, Classes, Growth, Guide

RESPONSES = ["binary", "classes", "levels as many as rows", "numbers", "tenths"]
SIZES = [5, 80, 3, 200]


@st.composite
def problems(draw):
    n_rows = draw(st.integers(1, 80))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_columns = draw(st.integers(1, 6))
    sizes = [draw(st.sampled_from([1, 2, 3, 9, 70, 5000])) for _ in range(n_columns)]
    by_set = [draw(st.booleans()) for _ in range(n_columns)]
    ordered = [not s or draw(st.booleans()) for s in by_set]
    growth = Growth(
        min_samples_leaf=draw(st.integers(1, 6)),
        decision_column=draw(st.none() | st.integers(0, n_columns - 1)),
        many_levels=draw(st.sampled_from([2, 1024])),
        max_features=draw(st.none() | st.integers(1, n_columns)),
        key=draw(st.integers(0, 2**64 - 1)),
    )
    drawn = chance.integers(0, n_rows, n_rows) if draw(st.booleans()) else None
    response = response_of(draw(st.sampled_from(RESPONSES)), n_rows, chance)
    return columns_of(sizes, by_set, ordered, n_rows, chance), response, growth, drawn


@given(problems())
def test_trees_with_drawn_columns_and_rows_are_equal(problem):
    columns, response, growth, drawn = problem
    what = columns, np.arange(len(columns.codes)), response, columns.codes[0], growth, drawn

    assert_equal(native.grow_tree(*what), reference.grow_tree(*what))


@pytest.mark.parametrize("kind", RESPONSES)
def test_larger_trees_with_drawn_columns_and_rows_are_equal(kind):
    chance = np.random.default_rng(3)
    columns = columns_of(
        [60, 2, 400, 12, 6000],
        [True] * 2 + [False] * 3,
        [False, True, True, True, True],
        900,
        chance,
    )
    response, drawn = response_of(kind, 900, chance), chance.integers(0, 900, 900)
    for n_checked in (1, 2, 4):
        growth = Growth(min_samples_leaf=2, max_features=n_checked, key=17 * n_checked)
        what = columns, np.arange(5), response, columns.codes[3], growth, drawn

        assert_equal(native.grow_tree(*what), reference.grow_tree(*what))


def test_all_columns_give_the_tree_of_no_draw_at_all():
    chance = np.random.default_rng(1)
    columns = columns_of(SIZES, [False] * 4, [True] * 4, 300, chance)
    response, inputs = response_of("numbers", 300, chance), np.arange(4)
    growth = Growth(max_features=4, key=5)
    every_row = np.arange(300)

    plain = native.grow_tree(columns, inputs, response, columns.codes[1], Growth())

    assert_equal(native.grow_tree(columns, inputs, response, columns.codes[1], growth), plain)
    assert_equal(
        native.grow_tree(columns, inputs, response, columns.codes[1], growth, every_row), plain
    )


def test_each_column_is_checked_equally_often():
    chance = np.random.default_rng(2)
    columns = columns_of([2] * 6, [False] * 6, [True] * 6, 200, chance)
    response = response_of("numbers", 200, chance)

    def root(key):
        growth = Growth(max_depth=1, max_features=1, key=key)
        return native.grow_tree(columns, np.arange(6), response, columns.codes[0], growth).feature[
            0
        ]

    counts = np.bincount([root(key) for key in range(3000)], minlength=6)

    assert chisquare(counts).pvalue > 1e-3


def test_columns_that_cannot_split_a_node_are_not_counted():
    columns = columns_of([1, 1, 1, 2], [False] * 4, [True] * 4, 40, np.random.default_rng(0))
    response = Classes(columns.codes[3].astype(np.int64), 2)

    for key in range(30):
        growth = Growth(max_features=1, key=key)
        tree = native.grow_tree(columns, np.arange(4), response, columns.codes[3], growth)
        assert tree.feature.tolist() == [3, LEAF, LEAF]


def test_leaves_keep_all_rows_though_splits_are_chosen_on_some():
    chance = np.random.default_rng(4)
    columns = columns_of(SIZES, [True, False, True, False], [False, True] * 2, 300, chance)
    drawn = np.sort(chance.integers(0, 300, 300))
    response = response_of("numbers", 300, chance)

    tree = native.grow_tree(columns, np.arange(3), response, columns.codes[3], Growth(), drawn)

    leaf = reference.descend(tree, 0, columns.codes, columns.by_set)
    assert np.array_equal(np.bincount(leaf, minlength=tree.count.size), tree.count)
    for at in np.unique(leaf):
        held = tree.values[tree.start[at] : tree.start[at] + tree.count[at]]
        assert np.array_equal(held, np.sort(columns.codes[3][leaf == at]))


@pytest.mark.parametrize(
    ("growth", "drawn", "message"),
    [
        (Growth(max_features=0), None, "max_features must be at least 1"),
        (Growth(), np.array([40]), "no such row"),
        (Growth(), np.array([-1]), "no such row"),
        (Growth(), np.zeros(41, dtype=np.int64), "more rows are drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused(growth, drawn, message):
    columns = columns_of([3, 9], [False] * 2, [True] * 2, 40, np.random.default_rng(0))
    response = response_of("numbers", 40, np.random.default_rng(0))

    with pytest.raises(ValueError, match=message):
        native.grow_tree(columns, np.arange(2), response, columns.codes[0], growth, drawn)


def forest_of(chance, n_trees, pooled, by_set=True, n_rows=200):
    """Three columns with several trees each, given a fourth."""
    columns = columns_of(
        SIZES, [by_set, True, False, by_set], [not by_set, False, True, not by_set], n_rows, chance
    )
    order = chance.permutation(3) + 1
    trees = [
        reference.grow_tree(
            columns,
            np.sort(np.array([0, *order[:place]])),
            response_of("numbers", n_rows, chance),
            columns.codes[column],
            Growth(min_samples_leaf=3 + 20 * tree, max_features=1, key=tree),
            chance.integers(0, n_rows, n_rows),
        )
        for place, column in enumerate(order)
        for tree in range(n_trees)
    ]
    joined, n_levels = reference.join(trees, columns.by_set), columns.n_codes * columns.by_set
    return native.Forest(joined, np.repeat(order, n_trees), n_levels, pooled)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["free", "limits", "guide", "back off", "everything"]),
)
def test_draws_from_several_trees_are_equal(seed, n_trees, pooled, by_set, held_to):
    chance = np.random.default_rng(seed)
    forest = forest_of(chance, n_trees, pooled, by_set)
    given_codes = np.array([chance.integers(0, size, 3) for size in SIZES], dtype=np.int32)
    own = np.where(chance.random((4, 3)) < 0.1, -1, given_codes).astype(np.int32)
    limits = limits_of((4, 3), SIZES, [1, 2, 3], chance)
    limits = replace(limits, own=own) if held_to in ("limits", "everything") else None
    guide = Guide(own, stays_of(own, chance), 2**31) if held_to in ("guide", "everything") else None
    draws = chance.integers(0, 10**6, 20)
    backs_off = held_to in ("back off", "everything")
    least = chance.integers(1, 60, 20) if backs_off else None
    keys = reference.person_keys(seed, given_codes[:1].T)
    what = forest, given_codes, keys, draws, limits, guide, least

    drawn = native.sample(*what)

    assert drawn.shape == (3, 3, 20)
    assert np.array_equal(drawn, reference.sample(*what))


@pytest.mark.parametrize("pooled", [False, True])
def test_many_draws_from_several_trees_are_equal(pooled):
    chance = np.random.default_rng(8)
    forest = forest_of(chance, 4, pooled, n_rows=800)
    given_codes = np.zeros((4, 2), dtype=np.int32)
    given_codes[0] = [1, 4]
    keys = reference.person_keys(0, given_codes[:1].T)
    what = forest, given_codes, keys, np.arange(5000)

    assert np.array_equal(native.sample(*what), reference.sample(*what))


@pytest.mark.parametrize("pooled", [False, True])
def test_draws_follow_the_weights_of_trees_and_leaves(pooled):
    chance = np.random.default_rng(9)
    forest = forest_of(chance, 5, pooled)
    first = int(forest.responses[0])
    given_codes = np.zeros((4, 1), dtype=np.int32)
    keys = reference.person_keys(3, given_codes[:1].T)

    drawn = native.sample(forest, given_codes, keys, np.arange(60_000))

    by_set = forest.n_levels > 0
    trees = forest.trees
    leaves = [reference.descend(trees, tree, given_codes, by_set)[0] for tree in range(5)]
    held = [trees.values[trees.start[at] : trees.start[at] + trees.count[at]] for at in leaves]
    counts = np.array([np.bincount(values, minlength=SIZES[first]) for values in held])
    shares = counts.sum(axis=0) / counts.sum()
    if not pooled:
        shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    observed = np.bincount(drawn[first - 1, 0], minlength=SIZES[first])
    assert not observed[shares == 0].any()
    assert chisquare(observed[shares > 0], 60_000 * shares[shares > 0]).pvalue > 1e-3
    assert len({values.size for values in held}) > 1


def test_rows_of_several_trees_are_not_listed():
    forest = forest_of(np.random.default_rng(1), 2, False)
    person = reference.Person(
        given=np.zeros(4, np.int32),
        own=np.zeros(4, np.int32),
        stays=np.zeros(4, np.int32),
        limits=None,
        costs=np.ones(sum(SIZES)),
        offsets=np.cumsum([0, *SIZES[:-1]]),
    )

    with pytest.raises(ValueError, match="several trees"):
        native.enumerate_rows(forest, person, n_changes=1, n_best=1, max_nodes=100)


def test_trees_of_a_column_must_be_adjacent():
    forest = forest_of(np.random.default_rng(1), 2, False)
    apart = native.Forest(forest.trees, forest.responses[[0, 2, 1, 3, 4, 5]], forest.n_levels)

    with pytest.raises(ValueError, match="not distinct columns"):
        apart.bound  # noqa: B018
