"""Grown trees: compiled as in NumPy, against brute force, and against scikit-learn."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import numpy_kernels
from kernel_cases import RESPONSES, assert_equal, columns_of, response_of, rows_of
from mcce import Schema, TreeChain
from mcce.datasets import load_german_credit
from mcce.kernels import (
    LEAF,
    Classes,
    Growth,
    Numbers,
    SplitColumns,
    descend,
    fixed_point,
    join_trees,
    native,
)


def make_columns(codes, by_set, ordered):
    codes = np.asarray(codes, dtype=np.int32)
    n_codes = codes.max(axis=1).astype(np.int64) + 1
    return SplitColumns(codes, np.asarray(by_set), np.asarray(ordered), n_codes)


def grow(columns, response, growth, inputs=None, answers=None, drawn=None, kernels=native):
    """The tree of a response given all columns; its leaves hold row numbers."""
    inputs = np.arange(len(columns.codes)) if inputs is None else inputs
    answers = np.arange(columns.codes.shape[1], dtype=np.int32) if answers is None else answers
    return kernels.grow_tree(columns, inputs, response, answers, growth, drawn)


def assert_grown_alike(columns, response, growth, **more):
    compiled, readable = (
        grow(columns, response, growth, kernels=kernels, **more)
        for kernels in (native, numpy_kernels)
    )
    assert_equal(compiled, readable)


# ---------------------------------------------------------------------------------------------
# The compiled kernel and its twin.


@st.composite
def problems(draw, max_rows=80, sizes=(1, 2, 3, 9, 70, 300, 5000)):
    n_rows, n_columns = draw(st.integers(1, max_rows)), draw(st.integers(1, 5))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    by_set = [draw(st.booleans()) for _ in range(n_columns)]
    columns = columns_of(
        [draw(st.sampled_from(sizes)) for _ in range(n_columns)],
        by_set,
        [not s or draw(st.booleans()) for s in by_set],
        n_rows,
        chance,
    )
    growth = Growth(
        min_samples_leaf=draw(st.integers(1, 6)),
        min_samples_split=draw(st.integers(2, 20)),
        max_depth=draw(st.none() | st.integers(1, 4)),
        decision_column=draw(st.none() | st.integers(0, n_columns - 1)),
        grow_undesired=draw(st.booleans()),
        levels_per_row=draw(st.sampled_from([1, 5, 64])),
        many_levels=draw(st.sampled_from([2, 4, 1024])),
        smallest_part=draw(st.integers(1, 10)),
        max_features=draw(st.none() | st.integers(1, n_columns)),
        key=draw(st.integers(0, 2**64 - 1)),
    )
    return columns, response_of(draw(st.sampled_from(RESPONSES)), n_rows, chance), growth


@settings(max_examples=100)
@given(problems(), st.booleans(), st.integers(0, 2**32 - 1))
def test_trees_are_equal_and_those_of_the_rows_in_any_order(problem, draws_rows, seed):
    columns, response, growth = problem
    n_rows, chance = columns.codes.shape[1], np.random.default_rng(seed)
    drawn = chance.integers(0, n_rows, n_rows) if draws_rows else None
    held, mixed = columns.codes[0], chance.permutation(n_rows)

    tree = grow(columns, response, growth, answers=held, drawn=drawn)

    others = replace(columns, codes=columns.codes[:, mixed])
    places = None if drawn is None else np.argsort(mixed)[drawn]
    assert_equal(
        tree, grow(columns, response, growth, answers=held, drawn=drawn, kernels=numpy_kernels)
    )
    assert_equal(
        tree, grow(others, rows_of(response, mixed), growth, answers=held[mixed], drawn=places)
    )


@pytest.mark.parametrize("kind", RESPONSES)
def test_larger_trees_are_equal_too(kind):
    """Codes of one, two and four bytes, sets of several words, skewed and informative columns."""
    chance = np.random.default_rng(5)
    n_rows = 900
    rare = np.minimum(chance.geometric(0.6, (2, n_rows)) - 1, 3)
    wide = chance.integers(0, 6000, n_rows)
    level, deep = chance.integers(0, 60, n_rows), chance.integers(0, 70_000, n_rows)
    columns = SplitColumns(
        np.array([*rare, wide, deep, rare[0] > 0, wide // 100, level], dtype=np.int32),
        np.array([False, True, False, False, True, True, True]),
        np.array([True, False, True, True, False, True, False]),
        np.array([4, 4, 6000, 70_000, 2, 60, 60]),
    )
    response = response_of(kind, n_rows, chance)
    if kind == "numbers":
        response = Numbers(fixed_point(rare[0] + wide / 1e4 + (level == 7)))
    drawn = chance.integers(0, n_rows, n_rows)

    assert_grown_alike(columns, response, Growth(min_samples_leaf=3, decision_column=4))
    assert_grown_alike(columns, response, Growth(max_features=2, key=17), drawn=drawn)


def test_trees_with_more_tables_than_there_is_room_for_are_equal():
    chance = np.random.default_rng(6)
    columns = columns_of([2, *[2000] * 150], [False] * 151, [True] * 151, 2200, chance)

    assert_grown_alike(columns, response_of("numbers", 2200, chance), Growth(min_samples_leaf=200))


# ---------------------------------------------------------------------------------------------
# Brute force.


def exact_gain(response, left, right):
    """Fall of impurity times rows, as a fraction."""
    if isinstance(response, Classes):

        def purity(rows):
            counts = np.bincount(response.classes[rows])
            return Fraction(int((counts * counts).sum()), len(rows))
    else:

        def purity(rows):
            return Fraction(int(response.units[rows].sum()) ** 2, len(rows))

    return purity(left) + purity(right) - purity(np.concatenate([left, right]))


def level_order(response, rows, column):
    """Levels by mean response, exactly, ties by number."""
    if isinstance(response, Classes):
        counts = np.bincount(response.classes[rows])
        target = 1 if response.n_classes == 2 else int(np.argmax(counts))
        value = [int(c == target) for c in response.classes]
    else:
        value = [int(unit) for unit in response.units]
    means = {}
    for level in np.unique(column[rows]).tolist():
        inside = [value[row] for row in rows if column[row] == level]
        means[level] = Fraction(sum(inside), len(inside))
    return sorted(means, key=lambda level: (means[level], level))


def smallest_side(columns, column, response, rows, growth):
    """How many rows must go either way; None if the column may not split the node."""
    n_levels = np.unique(columns.codes[column, rows]).size
    if columns.by_set[column] and columns.n_codes[column] > growth.levels_per_row * rows.size:
        return None
    classes = np.unique(response.classes[rows]) if isinstance(response, Classes) else np.empty(0)
    regular = classes.size > growth.many_levels and columns.n_codes[column] > 2
    regular |= n_levels > growth.many_levels and not columns.ordered[column]
    return max(growth.min_samples_leaf, Fraction(rows.size, growth.smallest_part) * regular)


def admissible_splits(columns, column, response, rows, growth):
    """Every division that the rules allow, in order: (left rows, right rows)."""
    least = smallest_side(columns, column, response, rows, growth)
    if least is None:
        return
    codes = columns.codes[column]
    if columns.ordered[column]:
        order = sorted(set(codes[rows].tolist()))
    else:
        order = level_order(response, rows, codes)
    for n_levels in range(1, len(order)):
        goes_left = np.isin(codes[rows], order[:n_levels])
        left, right = rows[goes_left], rows[~goes_left]
        if min(left.size, right.size) >= least:
            yield left, right


def rows_by_node(tree, columns):
    """The training rows that pass through each node."""
    rows = {int(tree.roots[0]): np.arange(columns.codes.shape[1])}
    for node in np.flatnonzero(tree.feature != LEAF):
        here, column = rows[node], tree.feature[node]
        code = columns.codes[column, here]
        if columns.by_set[column]:
            word = tree.sets[tree.cut[node] + code // 64]
            left = (word >> (code % 64).astype(np.uint64)) & np.uint64(1) == 1
        else:
            left = code <= tree.cut[node]
        rows[int(tree.left[node])], rows[int(tree.right[node])] = here[left], here[~left]
    return rows


@given(problems(max_rows=30, sizes=(1, 2, 4, 6)))
def test_every_inner_node_takes_the_best_admissible_split(problem):
    columns, response, growth = problem
    growth = replace(
        growth, min_samples_split=2, max_depth=None, decision_column=None, max_features=None
    )

    tree = grow(columns, response, growth)

    rows = rows_by_node(tree, columns)
    for node in range(tree.feature.size):
        gains = [
            (exact_gain(response, left, right), column, set(left.tolist()))
            for column in range(len(columns.codes))
            for left, right in admissible_splits(columns, column, response, rows[node], growth)
        ]
        inside = rows_of(response, rows[node])
        pure = np.unique(inside.units if isinstance(inside, Numbers) else inside.classes).size == 1
        if tree.feature[node] == LEAF:
            held = tree.values[tree.start[node] : tree.start[node] + tree.count[node]]
            assert held.tolist() == rows[node].tolist()
            assert pure or not gains
            continue
        assert not pure
        best = max(gain for gain, _, _ in gains)
        taken = exact_gain(response, rows[int(tree.left[node])], rows[int(tree.right[node])])
        assert float(best - taken) <= 1e-9 * float(best)
        # The first of the splits that gain as much, in the order of columns and cuts. Equal
        # fractions may differ in the last bit of a float, so only clear winners are compared.
        near = [(c, left) for gain, c, left in gains if float(best - gain) <= 1e-9 * float(best)]
        if len({frozenset(left) for _, left in near}) == 1:
            assert tree.feature[node] == near[0][0]
            assert set(rows[int(tree.left[node])].tolist()) == near[0][1]


def test_rows_are_divided_as_by_scikit_learn_for_a_continuous_response():
    def partition(leaves):
        return {frozenset(np.flatnonzero(leaves == leaf).tolist()) for leaf in np.unique(leaves)}

    for seed in range(4):
        chance = np.random.default_rng(seed)
        codes = chance.integers(0, 60, (4, 300)).astype(np.int32)
        values = np.sin(codes[0] / 9.0) + 0.01 * codes[1] + chance.normal(size=300)
        columns = make_columns(codes, [False] * 4, [True] * 4)

        tree = grow(columns, Numbers(fixed_point(values)), Growth())

        theirs = DecisionTreeRegressor(min_samples_leaf=5, random_state=seed).fit(codes.T, values)
        ours = descend(tree, 0, codes, columns.by_set)
        assert partition(ours) == partition(theirs.apply(codes.T))


def impurity(leaves, rows, position):
    """Rows times impurity of the feature, summed over leaves."""
    _, leaves = np.unique(leaves, return_inverse=True)
    size = np.bincount(leaves)
    if rows.schema.features[position].kind == "numeric":
        values = rows.numbers(position)
        means = np.bincount(leaves, weights=values) / size
        return float(((values - means[leaves]) ** 2).sum())
    pairs, counts = np.unique(np.vstack([leaves, rows.codes[position]]), axis=1, return_counts=True)
    return float((size - np.bincount(pairs[0], weights=counts**2) / size).sum())


def test_leaves_on_german_credit_are_as_pure_as_scikit_learn_s():
    german = load_german_credit()
    decision = np.asarray(german.target == "good")
    rows = Schema.learn_rows(german.features, immutable=german.immutable)
    chain = TreeChain(decisions=(False, True)).fit(rows, decision)
    codes = np.vstack([rows.tree_codes, decision[None].astype(np.int32)])
    given = [*rows.schema.immutable, len(rows.schema.features)]

    ratios = []
    for tree, position in enumerate(chain.visit_order_):
        ours = impurity(descend(chain.trees_, tree, codes, chain.n_levels_ > 0), rows, position)
        numeric = rows.schema.features[position].kind == "numeric"
        estimator = DecisionTreeRegressor if numeric else DecisionTreeClassifier
        response = rows.numbers(position) if numeric else rows.codes[position]
        inputs = codes[sorted([*given, *chain.visit_order_[:tree]])].T
        theirs = [
            impurity(
                estimator(min_samples_leaf=5, random_state=seed)
                .fit(inputs, response)
                .apply(inputs),
                rows,
                position,
            )
            for seed in range(4)
        ]
        ratios.append(ours / np.mean(theirs) if np.mean(theirs) else 1.0)

    assert np.mean(ratios) <= 1.005


# ---------------------------------------------------------------------------------------------
# Trees that one can check by eye.


def test_a_cut_lies_halfway_between_the_neighbours_in_the_node():
    columns = make_columns([[0, 0, 7, 7]], [False], [True])

    tree = grow(columns, Classes(np.array([0, 0, 1, 1]), 2), Growth(min_samples_leaf=2))

    assert tree.cut[0] == 3


def test_an_absent_or_unseen_level_goes_to_the_larger_child_and_ties_go_left():
    response, growth = Classes(np.array([0, 0, 1, 1, 1]), 2), Growth(min_samples_leaf=1)
    codes = np.array([[0, 0, 2, 2, 2]], dtype=np.int32)
    columns = SplitColumns(codes, np.array([True]), np.array([False]), np.array([4]))
    even = replace(columns, codes=codes[:, :4])

    tree, tie = grow(columns, response, growth), grow(even, rows_of(response, np.arange(4)), growth)

    queries, by_set = np.arange(5, dtype=np.int32)[None], columns.by_set
    left, right = tree.left[0], tree.right[0]
    assert descend(tree, 0, queries, by_set).tolist() == [left, right, right, right, right]
    assert descend(tie, 0, queries, by_set).tolist() == [left, left, right, left, left]


def test_an_ordered_category_is_split_by_its_order_and_unseen_levels_by_size():
    codes = np.array([[0, 0, 3, 3, 3]], dtype=np.int32)
    columns = SplitColumns(codes, np.array([True]), np.array([True]), np.array([5]))

    tree = grow(columns, Classes(np.array([0, 0, 1, 1, 1]), 2), Growth(min_samples_leaf=1))

    reached = descend(tree, 0, np.arange(6, dtype=np.int32)[None], columns.by_set)
    assert (reached == tree.left[0]).tolist() == [True, True, False, False, False, False]


def test_equal_gains_go_to_the_lowest_column_then_the_lowest_cut():
    columns = make_columns([[0, 0, 1, 1, 2, 2]] * 2, [False, False], [True, True])

    tree = grow(columns, Classes(np.array([0, 1, 0, 1, 0, 1]), 2), Growth(min_samples_leaf=1))

    assert (tree.feature[0], tree.cut[0]) == (0, 0)


def test_a_split_that_gains_nothing_is_still_made_so_that_deeper_ones_can():
    columns = make_columns([[0, 0, 1, 1] * 5, [0, 1, 0, 1] * 5], [False] * 2, [True] * 2)

    tree = grow(columns, Classes(np.array([0, 1, 1, 0] * 5), 2), Growth())

    assert (tree.feature == LEAF).sum() == 4


def test_the_branch_of_an_undesired_decision_is_grown_on_request_only():
    chance = np.random.default_rng(0)
    decision = np.arange(200) % 2
    columns = make_columns([chance.integers(0, 20, 200), decision], [False] * 2, [True] * 2)
    response = Numbers(fixed_point(10.0 * decision + chance.normal(size=200)))

    lazy = grow(columns, response, Growth(decision_column=1))
    whole = grow(columns, response, Growth(decision_column=1, grow_undesired=True))

    def lists_reached(tree):
        leaf = descend(tree, 0, columns.codes[:, decision == 1], columns.by_set)
        return [tree.values[tree.start[n] : tree.start[n] + tree.count[n]].tolist() for n in leaf]

    assert lazy.feature[0] == 1
    assert lazy.count[lazy.left[0]] == 0
    assert lazy.feature.size < whole.feature.size
    assert lists_reached(lazy) == lists_reached(whole)


def test_depth_and_size_limits_hold():
    chance = np.random.default_rng(0)
    columns = make_columns([chance.integers(0, 99, 100)], [False], [True])
    response = Numbers(fixed_point(chance.normal(size=100)))

    stump = grow(columns, response, Growth(min_samples_leaf=1, max_depth=1))
    coarse = grow(columns, response, Growth(min_samples_leaf=1, min_samples_split=40))

    assert stump.feature.size == 3
    rows = rows_by_node(coarse, columns)
    assert min(rows[node].size for node in np.flatnonzero(coarse.feature != LEAF)) >= 40


def test_joined_trees_descend_like_each_alone():
    chance = np.random.default_rng(1)
    columns = columns_of([9] * 3, [True, False, True], [False, True, False], 120, chance)
    trees = [grow(columns, response_of("classes", 120, chance), Growth()) for _ in range(3)]

    joined = join_trees(trees, columns.by_set)

    for number, tree in enumerate(trees):
        alone = descend(tree, 0, columns.codes, columns.by_set)
        together = descend(joined, number, columns.codes, columns.by_set)
        assert np.array_equal(together, alone + joined.roots[number])
        assert np.array_equal(joined.values[joined.start[together]], tree.values[tree.start[alone]])


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=50))
def test_fixed_point_keeps_order_and_its_sums_cannot_overflow(values):
    values = np.array(values)

    units = fixed_point(values)

    assert (np.diff(units[np.argsort(values)]) >= 0).all()
    assert values.size * int(np.abs(units).max()) < 2**62


def test_fixed_point_is_exact_for_whole_numbers():
    units = fixed_point(np.array([0.0, 1.0, 7.0, 99_999.0]))

    assert ((units - units[0]) / (units[1] - units[0])).tolist() == [0, 1, 7, 99_999]


# ---------------------------------------------------------------------------------------------
# Columns drawn per node, rows drawn per tree.


def test_all_columns_and_each_row_once_give_the_tree_of_no_draw_at_all():
    chance = np.random.default_rng(1)
    columns = columns_of([5, 80, 3, 200], [False] * 4, [True] * 4, 300, chance)
    response = response_of("numbers", 300, chance)

    plain = grow(columns, response, Growth())

    growth = Growth(max_features=4, key=5)
    assert_equal(grow(columns, response, growth, drawn=np.arange(300)), plain)


def test_each_column_is_checked_equally_often():
    chance = np.random.default_rng(2)
    columns = columns_of([2] * 6, [False] * 6, [True] * 6, 200, chance)
    response = response_of("numbers", 200, chance)

    roots = [
        grow(columns, response, Growth(max_depth=1, max_features=1, key=key)).feature[0]
        for key in range(1500)
    ]

    assert chisquare(np.bincount(roots, minlength=6)).pvalue > 1e-3


def test_columns_that_cannot_split_a_node_are_not_counted():
    columns = columns_of([1, 1, 1, 2], [False] * 4, [True] * 4, 40, np.random.default_rng(0))
    response = Classes(columns.codes[3].astype(np.int64), 2)

    for key in range(30):
        tree = grow(columns, response, Growth(max_features=1, key=key))
        assert tree.feature.tolist() == [3, LEAF, LEAF]


def test_leaves_keep_all_rows_though_splits_are_chosen_on_some():
    chance = np.random.default_rng(4)
    columns = columns_of([5, 80, 3], [True, False, True], [False, True, False], 300, chance)

    tree = grow(
        columns,
        response_of("numbers", 300, chance),
        Growth(),
        drawn=np.sort(chance.integers(0, 300, 300)),
    )

    leaf = descend(tree, 0, columns.codes, columns.by_set)
    for at in np.flatnonzero(tree.feature == LEAF):
        held = tree.values[tree.start[at] : tree.start[at] + tree.count[at]]
        assert held.tolist() == np.flatnonzero(leaf == at).tolist()


# ---------------------------------------------------------------------------------------------
# Columns of very many levels. Work is counted, not timed: the rows of all nodes, and words of sets.

ROLES = ["response", "input of a number", "input of classes", "response and input"]


def problem_of(role, n_rows, rows_per_level=1):
    """An identifier in some role, beside two numbers, a category and a rare binary column."""
    chance = np.random.default_rng(n_rows)
    ids = (chance.permutation(n_rows) // rows_per_level).astype(np.int32)
    n_codes = np.array([ids.max() + 1, 5000, 70, 8, 2])
    others = [chance.integers(0, n, n_rows) for n in n_codes[1:4]]
    columns = SplitColumns(
        np.array([ids, *others, chance.random(n_rows) < 0.03], dtype=np.int32),
        by_set=np.array([True, False, False, True, False]),
        ordered=np.array([False, True, True, False, True]),
        n_codes=n_codes,
    )
    if role == "input of a number":
        return columns, np.arange(5), response_of("numbers", n_rows, chance)
    if role == "input of classes":
        return columns, np.arange(5), Classes(chance.integers(0, 500, n_rows), 500)
    alone = role == "response"
    classes = ids if alone else chance.permutation(ids)
    return columns, np.arange(int(alone), 5), Classes(classes.astype(np.int64), int(n_codes[0]))


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


@pytest.mark.parametrize("role", ROLES)
def test_trees_of_very_many_levels_stay_shallow_and_their_sets_small(role):
    for n_rows, rows_per_level in ((4_096, 1), (16_384, 1), (16_384, 2), (16_384, 10)):
        columns, inputs, response = problem_of(role, n_rows, rows_per_level)

        tree = grow(columns, response, Growth(), inputs, columns.codes[0])

        sizes = sizes_of(tree)
        by_set = (tree.feature != LEAF) & columns.by_set[tree.feature]
        n_words = columns.n_codes[tree.feature] // 64 + 1
        assert sizes.sum() <= 12 * n_rows * math.log2(n_rows)
        assert depth_of(tree) <= 400
        assert (n_words <= sizes + 1)[by_set].all()
        assert n_words[by_set].sum() == tree.sets.size


@pytest.mark.parametrize("role", ROLES)
def test_trees_of_very_many_levels_are_equal(role):
    columns, inputs, response = problem_of(role, 1_200)

    assert_grown_alike(columns, response, Growth(), inputs=inputs, answers=columns.codes[0])


def test_a_rare_decision_still_splits_a_response_of_many_classes():
    columns, _, response = problem_of("response", 4_096)

    tree = grow(columns, response, Growth(), inputs=np.array([4]))

    assert tree.feature[0] == 4
    assert min(sizes_of(tree)[1:]) < 4_096 // 10


def test_rules_for_many_levels_leave_few_levels_alone():
    chance = np.random.default_rng(0)
    columns = columns_of([128, 90], [True, False], [False, True], 2_000, chance)
    response = Classes(chance.integers(0, 1_000, 2_000), 1_000)
    growth = Growth(min_samples_leaf=1)

    ruled = grow(columns, response, growth)

    unlimited = replace(growth, levels_per_row=10**6, many_levels=10**6)
    assert_equal(ruled, grow(columns, response, unlimited))


# ---------------------------------------------------------------------------------------------
# What a tree cannot be grown from is refused.

CODES = np.arange(0, 5000, 7, dtype=np.int32)[None]


def test_what_no_tree_can_grow_from_is_refused():
    columns = SplitColumns(CODES, np.array([False]), np.array([True]), np.array([5000]))
    usual = {
        "columns": columns,
        "response": Numbers(np.arange(CODES.size)),
        "growth": Growth(),
    }
    unfit = [
        ({"columns": replace(columns, codes=CODES + 50)}, "beyond its last"),
        ({"columns": replace(columns, codes=CODES - 1)}, "beyond its last"),
        ({"response": Numbers(np.full(CODES.size, 2**55))}, "too large"),
        ({"response": Classes(np.full(CODES.size, 3), 3)}, "no class"),
        ({"response": Classes(np.full(CODES.size, -1), 3)}, "no class"),
        ({"growth": Growth(min_samples_leaf=0)}, "must be at least"),
        ({"growth": Growth(max_features=0)}, "max_features must be at least 1"),
        ({"drawn": np.array([CODES.size])}, "no such row"),
        ({"drawn": np.zeros(CODES.size + 1, dtype=np.int64)}, "more rows are drawn"),
    ]

    grow(**usual)
    for change, message in unfit:
        with pytest.raises(ValueError, match=message):
            grow(**usual | change)
