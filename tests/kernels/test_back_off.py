"""Draws that back off to larger nodes: the compiled kernel, its twin, and an oracle by rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forests import columns_of, limits_of, response_of, stays_of
from mcce.kernels import native, reference
from mcce.kernels.reference import Growth, Guide, Limits
from mcce.kernels.reference._trees import LEAF, in_set

SIZES = [5, 80, 3, 200]


def grown(seed, n_rows=300):
    """Three trees that follow each other, and the rows they were grown on."""
    chance = np.random.default_rng(seed)
    columns = columns_of(
        SIZES, [False, True, False, False], [True, False, True, True], n_rows, chance
    )
    order = chance.permutation(3) + 1
    inputs = [np.sort(np.array([0, *order[:place]])) for place in range(3)]
    trees = [
        reference.grow_tree(
            columns,
            inputs[place],
            response_of("numbers", n_rows, chance),
            columns.codes[column],
            Growth(),
        )
        for place, column in enumerate(order)
    ]
    levels = columns.n_codes * columns.by_set
    return native.Forest(reference.join(trees, columns.by_set), order, levels), columns


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 400),
)
def test_backed_off_draws_are_equal(seed, n_draws, n_groups, limited, guided, most):
    forest, _ = grown(seed % 50)
    chance = np.random.default_rng(seed)
    codes = np.array([chance.integers(0, size, n_groups) for size in SIZES], dtype=np.int32)
    keys = reference.person_keys(seed, codes[:1].T)
    draws, least = chance.integers(0, 10**6, n_draws), chance.integers(0, most + 1, n_draws)
    limits = limits_of((4, n_groups), SIZES, forest.responses, chance) if limited else None
    guide = Guide(codes, stays_of(codes, chance), 2**31) if guided else None
    arguments = forest, codes, keys, draws, limits, guide, least

    assert np.array_equal(native.sample(*arguments), reference.sample(*arguments))


@pytest.mark.parametrize("limited", [False, True])
def test_draws_are_those_of_the_leaf_where_it_holds_enough(limited):
    forest, _ = grown(3)
    chance = np.random.default_rng(3)
    codes = np.array([chance.integers(0, size, 5) for size in SIZES], dtype=np.int32)
    keys, draws = reference.person_keys(3, codes[:1].T), np.arange(5000)
    limits = runs(3, 50, 52) if limited else None

    plain = native.sample(forest, codes, keys, draws, limits)
    none = native.sample(forest, codes, keys, draws, limits, None, np.zeros(5000, np.int64))
    one = native.sample(forest, codes, keys, draws, limits, None, np.ones(5000, np.int64))

    assert np.array_equal(plain, none)
    assert np.array_equal(plain, one) != limited


@pytest.mark.parametrize("least", [1, 5, 20, 80, 1000])
@pytest.mark.parametrize("limited", [False, True])
def test_a_draw_takes_all_allowed_values_of_the_smallest_node_that_holds_enough(least, limited):
    """An oracle that knows the training rows and sends each of them down the tree."""
    forest, columns = grown(7)
    first = int(forest.responses[0])
    codes = np.zeros((4, SIZES[0]), dtype=np.int32)
    codes[0] = np.arange(SIZES[0])
    keys, draws = reference.person_keys(0, codes[:1].T), np.arange(20_000)
    low, high = (SIZES[first] // 3, SIZES[first] // 2) if limited else (0, SIZES[first])
    needed = np.full(draws.size, least)

    drawn = native.sample(
        forest, codes, keys, draws, runs(first, low, high) if limited else None, None, needed
    )

    place = sorted(forest.responses.tolist()).index(first)
    for group in range(SIZES[0]):
        allowed = smallest_node(forest, columns, codes[:, group], (low, high), least)
        expected = np.unique(allowed) if allowed.size else np.array([0])
        assert np.array_equal(np.unique(drawn[place, group]), expected)


def smallest_node(forest, columns, person, bounds, least):
    """Allowed values of the smallest node on a person's path with enough of them, by rows."""
    trees, column, (low, high) = forest.trees, int(forest.responses[0]), bounds
    node, inside, path = 0, np.ones(columns.codes.shape[1], dtype=bool), []
    while True:
        values = columns.codes[column, inside]
        path.append(values[(values >= low) & (values <= high)])
        if trees.feature[node] == LEAF:
            break
        goes = [goes_left(forest, node, codes) for codes in (columns.codes, person[:, None])]
        inside = inside & (goes[0] == goes[1])
        node = trees.left[node] if goes[1][0] else trees.right[node]
    enough = [values for values in path[::-1] if values.size >= least]
    return enough[0] if enough else path[0]


def goes_left(forest, node, codes):
    column = forest.trees.feature[node]
    if forest.n_levels[column]:
        return in_set(forest.trees, np.full(codes.shape[1], node), codes[column])
    return codes[column] <= forest.trees.cut[node]


def runs(column, low, high):
    """One run of allowed codes for one column, in every group."""
    shape = 4, SIZES[0]
    first = np.full(shape, -1)
    first[column] = 0
    near = np.tile(np.array([1, 0], dtype=np.int32), (*shape, 1))
    own = np.zeros(shape, dtype=np.int32)
    return Limits(own, first, first + 1, np.array([[low, high]], dtype=np.int32), near)


def test_a_column_without_allowed_values_keeps_the_own_one():
    forest, _ = grown(7)
    column = int(forest.responses[1])
    codes = np.zeros((4, SIZES[0]), dtype=np.int32)
    nothing = runs(column, 0, 0)
    nothing.last[column] = 0
    keys, draws = reference.person_keys(0, codes[:1].T), np.arange(100)

    arguments = forest, codes, keys, draws, nothing, None, np.full(100, 50)
    drawn = native.sample(*arguments)

    assert np.array_equal(drawn, reference.sample(*arguments))
    assert (drawn[sorted(forest.responses.tolist()).index(column)] == 0).all()


def test_draws_do_not_depend_on_other_groups_or_draws():
    forest, _ = grown(11)
    chance = np.random.default_rng(11)
    codes = np.array([chance.integers(0, size, 6) for size in SIZES], dtype=np.int32)
    keys, draws = reference.person_keys(1, codes.T), np.arange(6000)
    least = draws // 100
    whole = native.sample(forest, codes, keys, draws, None, None, least)

    some = chance.permutation(6000)[:500]
    part = native.sample(forest, codes[:, [4]], keys[[4]], some, None, None, least[some])

    assert np.array_equal(part[:, 0], whole[:, 4, some])


def test_least_needs_one_entry_per_draw():
    forest, _ = grown(1)
    codes, keys = np.zeros((4, 1), dtype=np.int32), np.zeros(1, dtype=np.uint64)

    with pytest.raises(ValueError, match="least needs one entry per draw"):
        native.sample(forest, codes, keys, np.arange(4), None, None, np.ones(3, np.int64))
