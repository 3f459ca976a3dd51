"""Draws and lists of rows: compiled as in NumPy, golden, and as frequent as the leaves say."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import numpy_kernels
from kernel_cases import SIZES, codes_of, forest_of, limits_of, response_of, stays_of
from mcce.kernels import (
    DRAWS_VERSION,
    LEAF,
    DrawLimits,
    Forest,
    Growth,
    Person,
    SplitColumns,
    Trees,
    descend,
    draw_keys,
    grow_tree,
    join_trees,
    native,
    person_keys,
    pick,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "draws.json"


def leaf_values(trees, leaf):
    return trees.values[trees.start[leaf] : trees.start[leaf] + trees.count[leaf]]


# ---------------------------------------------------------------------------------------------
# Where draws come from.


def drawn_by_plain_integers(seed, codes, draw, position):
    """The definition once more, in Python's own integers."""
    word = 2**64 - 1

    def scramble(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    state = scramble((seed + golden) & word)
    for part in (*codes, draw, position):
        state = scramble(((state ^ part) + golden) & word)
    return state


def test_draws_are_those_of_the_golden_file_and_of_their_definition():
    golden = json.loads(GOLDEN.read_text())

    assert golden["draws_version"] == DRAWS_VERSION
    for row in golden["draws"]:
        keys = person_keys(row["seed"], np.array([row["codes"]], dtype=np.int32).reshape(1, -1))
        drawn = draw_keys(keys, np.array([row["draw"]]))
        picked = pick(drawn, row["position"], np.array([[row["count"]]])).item()
        word = drawn_by_plain_integers(row["seed"], row["codes"], row["draw"], row["position"])
        assert picked == row["picked"] == (word >> 32) * row["count"] >> 32


def test_draws_of_different_features_and_numbers_are_uncorrelated():
    keys = draw_keys(person_keys(0, np.zeros((1, 1), np.int32)), np.arange(50_000)).ravel()
    wide = np.full(keys.size, 2**32)
    a, b = pick(keys, 0, wide) / 2**32, pick(keys, 1, wide) / 2**32

    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.02
    assert chisquare(np.histogram(a, 64, (0, 1))[0]).pvalue > 1e-4


# ---------------------------------------------------------------------------------------------
# The compiled kernel and its twin.


def assert_kept_to(limits, drawn, forest):
    """Every code lies in a run and outside the neighbourhood, or is the person's own."""
    for place, column in enumerate(np.unique(forest.responses)):
        for group in np.flatnonzero(limits.first[column] >= 0):
            runs = limits.runs[limits.first[column, group] : limits.last[column, group]]
            allowed = {code for low, high in runs for code in range(low, high + 1)}
            low, high = limits.near[column, group]
            allowed -= set(range(low, high + 1))
            assert set(drawn[place, group].tolist()) <= {*allowed, limits.own[column, group]}


@settings(max_examples=100)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 7, 40]),
    st.integers(1, 4),
    st.sampled_from([1, 1, 3]),
    *[st.booleans()] * 4,
)
def test_draws_are_equal_and_depend_on_no_other_group_or_draw(
    seed, n_draws, n_groups, n_trees, pooled, by_set, limited, backs_off
):
    chance = np.random.default_rng(seed)
    forest, _ = forest_of(chance, by_set, n_trees, pooled, n_rows=150)
    # One past the last code is a level that training never saw.
    codes = codes_of([SIZES[0] + by_set, *SIZES[1:]], n_groups, chance)
    own = np.where(chance.random(codes.shape) < 0.1, -1, codes).astype(np.int32)
    keys, draws = person_keys(seed, codes[:1].T), chance.integers(0, 10**6, n_draws)
    limits = least = None
    if limited:
        limits = replace(limits_of(codes.shape, SIZES, forest.responses, chance), own=own)
    if backs_off:
        least = chance.integers(0, 200, n_draws)

    drawn = native.sample(forest, codes, keys, draws, limits, least)

    assert np.array_equal(drawn, numpy_kernels.sample(forest, codes, keys, draws, limits, least))
    if limited:
        assert_kept_to(limits, drawn, forest)
    if not limited:
        last = None if least is None else least[-1:]
        alone = native.sample(forest, codes[:, -1:], keys[-1:], draws[-1:], None, last)
        assert np.array_equal(alone, drawn[:, -1:, -1:])


@pytest.mark.parametrize("kind", ["one tree", "forest", "pooled", "limits", "back off"])
def test_thousands_of_draws_are_equal_too(kind):
    """Lists long enough to be sorted and searched, sets of several words, several rounds."""
    chance = np.random.default_rng(4)
    n_trees = 4 if kind in ("forest", "pooled") else 1
    forest, _ = forest_of(chance, True, n_trees, kind == "pooled", n_rows=1500)
    codes = codes_of(SIZES, 2, chance)
    limits, least = None, np.arange(5000) if kind == "back off" else None
    if kind == "limits":
        limits = replace(limits_of(codes.shape, SIZES, forest.responses, chance), own=codes)
    given_ = forest, codes, person_keys(4, codes[:1].T), np.arange(5000), limits, least

    assert np.array_equal(native.sample(*given_), numpy_kernels.sample(*given_))


def test_an_unseen_own_value_among_64_levels_is_looked_up_in_the_second_word():
    """The tree of column 1 sends levels 0 to 63 left and the unseen one right, by its own bit."""
    i32 = lambda *numbers: np.array(numbers, dtype=np.int32)
    trees = Trees(
        roots=np.array([0, 1]),
        feature=i32(-1, 0, -1, -1),
        cut=i32(0, 0, 0, 0),
        left=i32(0, 2, 0, 0),
        right=i32(0, 3, 0, 0),
        start=np.array([0, 0, 1, 2]),
        count=i32(1, 0, 1, 1),
        sets=np.array([2**64 - 1, 0], dtype=np.uint64),
        values=i32(7, 0, 1),
    )
    forest = Forest(trees, np.array([0, 1]), np.array([64, 0]))
    # Nothing is allowed in column 0, so the person's value stays: one that training never held.
    no_runs, near = np.empty((0, 2), np.int32), i32(1, 0, 1, 0).reshape(2, 1, 2)
    ends = np.array([[0], [-1]])
    stays = DrawLimits(i32(-1, 0)[:, None], ends, ends, no_runs, near)
    given_ = forest, i32(64, 0)[:, None], np.array([5], np.uint64), np.arange(50), stays

    drawn = native.sample(*given_)

    assert np.array_equal(drawn, numpy_kernels.sample(*given_))
    assert (drawn[1] == 1).all()


def test_a_leaf_that_was_never_grown_gives_codes_of_the_column():
    chance = np.random.default_rng(0)
    codes = codes_of([40, 70, 2], 400, chance)
    by_set = np.array([False, True, False])
    columns = SplitColumns(codes, by_set, ~by_set, np.array([40, 70, 2]))
    growth = Growth(min_samples_leaf=20, decision_column=2)
    response = response_of("classes", 400, chance)
    tree = grow_tree(columns, np.array([0, 2]), response, codes[1], growth)
    assert ((tree.feature == LEAF) & (tree.count == 0)).any()
    forest = Forest(join_trees([tree], by_set), np.array([1]), columns.n_codes * by_set)

    undesired = np.array([[3], [0], [0]], dtype=np.int32)
    drawn = native.sample(forest, undesired, np.array([5], np.uint64), np.arange(50))

    assert drawn.min() >= 0
    assert drawn.max() < 70


# ---------------------------------------------------------------------------------------------
# How often what is drawn.


@pytest.mark.parametrize(("n_trees", "pooled"), [(1, False), (5, False), (5, True)])
def test_draws_follow_the_weights_of_trees_and_leaves(n_trees, pooled):
    forest, _ = forest_of(np.random.default_rng(9), True, n_trees, pooled)
    trees, by_set = forest.trees, forest.n_levels > 0
    first, n_draws = int(forest.responses[0]), 40_000
    codes = np.zeros((4, 1), dtype=np.int32)

    drawn = native.sample(forest, codes, person_keys(3, codes[:1].T), np.arange(n_draws))

    leaves = [descend(trees, tree, codes, by_set)[0] for tree in range(n_trees)]
    counts = np.array(
        [np.bincount(leaf_values(trees, leaf), minlength=SIZES[first]) for leaf in leaves]
    )
    shares = counts.sum(axis=0) / counts.sum()
    if not pooled:
        shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    observed = np.bincount(drawn[first - 1, 0], minlength=SIZES[first])
    assert not observed[shares == 0].any()
    assert chisquare(observed[shares > 0], n_draws * shares[shares > 0]).pvalue > 1e-3


def test_later_columns_are_drawn_from_the_leaf_that_the_earlier_ones_lead_to():
    forest, columns = forest_of(np.random.default_rng(3), n_rows=60)
    trees, own = forest.trees, int(np.flatnonzero(columns.codes[0] == 1)[0])
    codes, draws = columns.codes[:, [own]], np.arange(20_000)

    drawn = native.sample(forest, codes, person_keys(0, codes[:1].T), draws)[:, 0]

    rows = np.vstack([np.ones((1, draws.size), np.int32), drawn])
    for tree, column in enumerate(forest.responses):
        leaves = descend(trees, tree, rows, forest.n_levels > 0)
        for leaf in np.unique(leaves):
            held, expected = np.unique(leaf_values(trees, leaf), return_counts=True)
            here = rows[column, leaves == leaf]
            observed = np.array([(here == value).sum() for value in held])
            assert observed.sum() == here.size
            if min(held.size - 1, here.size // 200):
                expected = expected * here.size / trees.count[leaf]
                assert chisquare(observed, expected).pvalue > 1e-5


def runs(column, low, high):
    """One run of allowed codes for one column, in every group."""
    shape = 4, SIZES[0]
    first = np.full(shape, -1)
    first[column] = 0
    near = np.tile(np.array([1, 0], dtype=np.int32), (*shape, 1))
    own = np.zeros(shape, dtype=np.int32)
    return DrawLimits(own, first, first + 1, np.array([[low, high]], dtype=np.int32), near)


def smallest_node(forest, columns, person, bounds, least):
    """Allowed values of the smallest node on a person's path with enough of them, by rows."""
    trees, column, (low, high) = forest.trees, int(forest.responses[0]), bounds
    by_set = forest.n_levels > 0
    leaves = descend(trees, 0, columns.codes, by_set)
    path, node, leaf = [0], 0, descend(trees, 0, person[:, None], by_set)[0]
    while node != leaf:
        node = trees.right[node] if leaf >= trees.right[node] else trees.left[node]
        path.append(node)
    # In preorder, the leaves below a node are those up to where its right sibling begins.
    ends = [trees.feature.size if len(forest.trees.roots) == 1 else trees.roots[1]]
    for parent, child in pairwise(path):
        ends.append(trees.right[parent] if child == trees.left[parent] else ends[-1])
    for start, end in zip(path[::-1], ends[::-1], strict=True):
        values = columns.codes[column, (leaves >= start) & (leaves < end)]
        values = values[(values >= low) & (values <= high)]
        if values.size >= least:
            break
    return values


@pytest.mark.parametrize("limited", [False, True])
def test_a_draw_takes_all_allowed_values_of_the_smallest_node_that_holds_enough(limited):
    """An oracle that knows the training rows and sends each of them down the tree."""
    forest, columns = forest_of(np.random.default_rng(7))
    first = int(forest.responses[0])
    codes = np.zeros((4, SIZES[0]), dtype=np.int32)
    codes[0] = np.arange(SIZES[0])
    keys, draws = person_keys(0, codes[:1].T), np.arange(10_000)
    low, high = (SIZES[first] // 3, SIZES[first] // 2) if limited else (0, SIZES[first])
    limits = runs(first, low, high) if limited else None

    for least in (1, 5, 20, 80, 1000):
        drawn = native.sample(forest, codes, keys, draws, limits, np.full(10_000, least))

        place = sorted(forest.responses.tolist()).index(first)
        for group in range(SIZES[0]):
            allowed = smallest_node(forest, columns, codes[:, group], (low, high), least)
            expected = np.unique(allowed) if allowed.size else np.array([0])
            assert np.array_equal(np.unique(drawn[place, group]), expected)


# ---------------------------------------------------------------------------------------------
# All rows that a person could get, by cost.


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([1, 7, 200]),
    st.sampled_from([10, 10**9]),
)
def test_rows_are_listed_alike_by_both_kernels(seed, by_set, limited, n_changes, n_best, most):
    chance = np.random.default_rng(seed)
    forest, _ = forest_of(chance, by_set)
    budget = {"n_changes": n_changes, "n_best": n_best, "max_nodes": most}
    person = person_of(forest, chance, limited)

    ours = native.enumerate_rows(forest, person, **budget)
    theirs = numpy_kernels.enumerate_rows(forest, person, **budget)

    assert (ours.n_nodes, ours.complete) == (theirs.n_nodes, theirs.complete)
    assert np.array_equal(ours.totals, theirs.totals)
    assert np.array_equal(ours.codes, theirs.codes)
    assert (np.diff(ours.totals) >= 0).all()


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 2), st.integers(1, 9))
@settings(max_examples=20)
def test_rows_listed_piece_by_piece_are_those_listed_at_once(seed, by_set, n_changes, n_best):
    chance = np.random.default_rng(seed)
    forest, _ = forest_of(chance, by_set)
    person, budget = person_of(forest, chance), {"n_changes": n_changes, "max_nodes": 10**9}

    whole = native.enumerate_rows(forest, person, n_best=10**6, **budget)
    after, pieces = None, [np.empty((3, 0), dtype=np.int32)]
    for _ in range(40):
        piece = native.enumerate_rows(forest, person, n_best=n_best, after=after, **budget)
        if not piece.totals.size:
            break
        pieces.append(piece.codes)
        after = piece.totals[-1], piece.codes[:, -1]

    together = np.concatenate(pieces, axis=1)
    assert np.array_equal(together, whole.codes[:, : together.shape[1]])
    assert together.shape[1] == min(whole.totals.size, 40 * n_best)


def person_of(forest, chance, limited=False):
    """Somebody who may have values that training never held, and costs with many ties."""
    codes = codes_of(SIZES, 1, chance)
    own = np.where(chance.random(codes.shape) < 0.1, -1, codes).astype(np.int32)
    limits = limits_of((4, 1), SIZES, forest.responses, chance) if limited else None
    costs = np.round(chance.random(sum(SIZES)), 1)
    stays = stays_of(own, chance)[:, 0]
    return Person(codes[:, 0], own[:, 0], stays, limits, costs, np.cumsum([0, *SIZES[:-1]]))


def test_what_cannot_be_drawn_from_is_refused():
    forest, _ = forest_of(np.random.default_rng(1), n_trees=2)
    codes, keys = np.zeros((4, 1), dtype=np.int32), np.zeros(1, dtype=np.uint64)
    apart = replace(forest, responses=forest.responses[[0, 2, 1, 3, 4, 5]])
    one, _ = forest_of(np.random.default_rng(1))
    later = replace(one, responses=np.append(one.responses[:2], 0))
    person = person_of(forest, np.random.default_rng(0))

    with pytest.raises(ValueError, match="not distinct columns"):
        native.sample(apart, codes, keys, np.arange(4))
    with pytest.raises(ValueError, match="predicted later"):
        native.sample(later, codes, keys, np.arange(4))
    with pytest.raises(ValueError, match="least needs one entry per draw"):
        native.sample(forest, codes, keys, np.arange(4), None, np.ones(3, np.int64))
    with pytest.raises(ValueError, match="several trees"):
        native.enumerate_rows(forest, person, n_changes=1, n_best=1, max_nodes=100)


def limits_of_three_people():
    """Nothing about feature 0; of feature 1 codes 2-5 and 8-9, codes 0-1, and none."""
    return DrawLimits(
        own=np.zeros((2, 3), dtype=np.int32),
        first=np.array([[-1, -1, -1], [0, 2, 3]]),
        last=np.array([[-1, -1, -1], [2, 3, 3]]),
        runs=np.array([[2, 5], [8, 9], [0, 1]], dtype=np.int32),
        near=np.array([[[1, 0]] * 3, [[4, 8], [1, 0], [1, 0]]], dtype=np.int32),
    )


def test_people_may_change_to_codes_of_their_runs_that_are_far_enough():
    limits, codes = limits_of_three_people(), np.arange(-1, 11)

    allowed = [codes[theirs].tolist() for theirs in limits.allow_change(1, codes)]
    of_each = limits.allow_change(1, np.array([[2, 4], [2, 1], [2, 0]]))
    free = limits.allow_change(0, codes)

    assert allowed == [[2, 3, 9], [0, 1], []]
    assert of_each.tolist() == [[True, False], [False, True], [False, False]]
    assert (free == (codes >= 0)).all()


def test_codes_spread_evenly_over_the_runs_of_each_person():
    spread = limits_of_three_people().evenly_spaced(1, 3)

    assert spread.tolist() == [[3, 5, 9], [0, 1, -1], [-1, -1, -1]]
