"""Trees against brute force, against scikit-learn, and against all subsets of levels."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from mcce.kernels.reference import (
    LEAF,
    Classes,
    Columns,
    Growth,
    Numbers,
    descend,
    fixed_point,
    grow_tree,
    join,
)


def make_columns(codes, by_set, ordered):
    codes = np.asarray(codes, dtype=np.int32)
    return Columns(
        codes=codes,
        by_set=np.asarray(by_set),
        ordered=np.asarray(ordered),
        n_codes=codes.max(axis=1).astype(np.int64) + 1,
    )


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
        left = rows[np.isin(codes[rows], order[:n_levels])]
        right = rows[~np.isin(codes[rows], order[:n_levels])]
        if min(left.size, right.size) >= least:
            yield left, right


def rows_by_node(tree, columns, n_rows):
    """The training rows that pass through each node."""
    rows = {int(tree.roots[0]): np.arange(n_rows)}
    for node in range(tree.feature.size):
        if tree.feature[node] == LEAF:
            continue
        here, column = rows[node], tree.feature[node]
        code = columns.codes[column, here]
        if columns.by_set[column]:
            word = tree.sets[tree.cut[node] + code // 64]
            left = (word >> (code % 64).astype(np.uint64)) & np.uint64(1) == 1
        else:
            left = code <= tree.cut[node]
        rows[int(tree.left[node])], rows[int(tree.right[node])] = here[left], here[~left]
    return rows


@st.composite
def problems(draw):
    n_rows, n_columns = draw(st.integers(2, 30)), draw(st.integers(1, 4))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.array(
        [chance.integers(0, draw(st.integers(1, 6)), n_rows) for _ in range(n_columns)]
    )
    by_set = [draw(st.booleans()) for _ in range(n_columns)]
    ordered = [not s or draw(st.booleans()) for s in by_set]
    kind = draw(st.sampled_from(["binary", "classes", "numbers", "few numbers"]))
    if kind == "binary":
        response = Classes(chance.integers(0, 2, n_rows), 2)
    elif kind == "classes":
        response = Classes(chance.integers(0, 4, n_rows), 4)
    elif kind == "numbers":
        response = Numbers(fixed_point(chance.normal(size=n_rows)))
    else:
        response = Numbers(fixed_point(chance.integers(0, 3, n_rows).astype(float)))
    growth = Growth(
        min_samples_leaf=draw(st.integers(1, 4)),
        levels_per_row=draw(st.sampled_from([1, 64])),
        many_levels=draw(st.sampled_from([2, 3, 1024])),
        smallest_part=draw(st.integers(1, 10)),
    )
    return make_columns(codes, by_set, ordered), response, growth


@given(problems())
def test_every_inner_node_takes_the_best_admissible_split(problem):
    columns, response, growth = problem
    n_columns, n_rows = columns.codes.shape
    answer = np.arange(n_rows, dtype=np.int32)

    tree = grow_tree(columns, np.arange(n_columns), response, answer, growth)

    rows = rows_by_node(tree, columns, n_rows)
    for node in range(tree.feature.size):
        gains = [
            (exact_gain(response, left, right), column, set(left.tolist()))
            for column in range(n_columns)
            for left, right in admissible_splits(columns, column, response, rows[node], growth)
        ]
        pure = response.take(rows[node]).is_pure()
        if tree.feature[node] == LEAF:
            assert pure or not gains
            continue
        assert not pure
        best = max(gain for gain, _, _ in gains)
        taken = exact_gain(response, rows[int(tree.left[node])], rows[int(tree.right[node])])
        assert float(best - taken) <= 1e-9 * float(best)
        # The first of the splits that gain as much, in the order of columns and cuts. Equal
        # fractions may differ in the last bit of a float, so only clear winners are compared.
        near = [(c, left) for gain, c, left in gains if float(best - gain) <= 1e-9 * float(best)]
        divisions = {frozenset(left) for _, left in near}
        if len(divisions) == 1:
            assert tree.feature[node] == near[0][0]
            assert set(rows[int(tree.left[node])].tolist()) == near[0][1]


@given(problems())
def test_leaves_hold_the_rows_that_reach_them_and_never_too_few(problem):
    columns, response, growth = problem
    n_columns, n_rows = columns.codes.shape
    answer = np.arange(n_rows, dtype=np.int32)

    tree = grow_tree(columns, np.arange(n_columns), response, answer, growth)

    leaf = descend(tree, 0, columns.codes, columns.by_set)
    for node in np.flatnonzero(tree.feature == LEAF):
        held = tree.values[tree.start[node] : tree.start[node] + tree.count[node]]
        assert held.tolist() == np.flatnonzero(leaf == node).tolist()
        assert held.size >= min(growth.min_samples_leaf, n_rows)
    assert np.array_equal(np.sort(tree.values), answer)


@given(problems(), st.integers(0, 2**32 - 1))
def test_the_order_of_training_rows_does_not_matter(problem, seed):
    columns, response, growth = problem
    n_columns, n_rows = columns.codes.shape
    held = columns.codes[0]
    shuffle = np.random.default_rng(seed).permutation(n_rows)

    tree = grow_tree(columns, np.arange(n_columns), response, held, growth)
    shuffled = Columns(columns.codes[:, shuffle], columns.by_set, columns.ordered, columns.n_codes)
    other = grow_tree(shuffled, np.arange(n_columns), response.take(shuffle), held[shuffle], growth)

    for name in ("feature", "cut", "left", "right", "start", "count", "sets", "values"):
        assert np.array_equal(getattr(tree, name), getattr(other, name))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["binary", "numbers"])
def test_prefixes_of_the_level_order_hold_the_best_of_all_subsets(seed, kind):
    chance = np.random.default_rng(seed)
    levels = chance.integers(0, 6, 40)
    columns = make_columns([levels], [True], [False])
    if kind == "binary":
        response = Classes(chance.integers(0, 2, 40), 2)
    else:
        response = Numbers(fixed_point(chance.normal(size=40)))
    rows = np.arange(40)

    growth = Growth(min_samples_leaf=1, max_depth=1)
    tree = grow_tree(columns, np.array([0]), response, rows.astype(np.int32), growth)

    passing = rows_by_node(tree, columns, 40)
    taken = exact_gain(response, passing[1], passing[2])
    present = np.unique(levels)
    everything = max(
        exact_gain(response, rows[np.isin(levels, some)], rows[~np.isin(levels, some)])
        for size in range(1, present.size)
        for some in combinations(present.tolist(), size)
    )
    assert float(everything - taken) <= 1e-9 * float(everything)


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_divided_as_by_scikit_learn_for_a_continuous_response(seed):
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, 60, (4, 300)).astype(np.int32)
    values = np.sin(codes[0] / 9.0) + 0.01 * codes[1] + chance.normal(size=300)
    columns = make_columns(codes, [False] * 4, [True] * 4)

    tree = grow_tree(
        columns, np.arange(4), Numbers(fixed_point(values)), np.zeros(300, np.int32), Growth()
    )
    sklearn_tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=seed).fit(codes.T, values)

    ours, theirs = descend(tree, 0, codes, columns.by_set), sklearn_tree.apply(codes.T)
    assert partition(ours) == partition(theirs)


def partition(leaves):
    return {frozenset(np.flatnonzero(leaves == leaf).tolist()) for leaf in np.unique(leaves)}


def test_a_cut_lies_halfway_between_the_neighbours_in_the_node():
    columns = make_columns([[0, 0, 7, 7]], [False], [True])
    response = Classes(np.array([0, 0, 1, 1]), 2)

    tree = grow_tree(
        columns, np.array([0]), response, np.arange(4, dtype=np.int32), Growth(min_samples_leaf=2)
    )

    assert tree.cut[0] == 3


def test_an_absent_or_unseen_level_goes_to_the_larger_child_and_ties_go_left():
    codes = np.array([[0, 0, 2, 2, 2], [0, 0, 0, 0, 0]])
    response = Classes(np.array([0, 0, 1, 1, 1]), 2)
    columns = Columns(
        codes.astype(np.int32), np.array([True, True]), np.array([False, False]), np.array([4, 1])
    )
    growth = Growth(min_samples_leaf=1)

    tree = grow_tree(columns, np.array([0]), response, np.arange(5, dtype=np.int32), growth)

    queries = np.array([[0, 1, 2, 3, 4], [0, 0, 0, 0, 0]], dtype=np.int32)
    left, right = tree.left[0], tree.right[0]
    assert descend(tree, 0, queries, columns.by_set).tolist() == [left, right, right, right, right]

    even = Columns(columns.codes[:, :4], columns.by_set, columns.ordered, columns.n_codes)
    tie = grow_tree(
        even, np.array([0]), response.take(np.arange(4)), np.arange(4, dtype=np.int32), growth
    )
    assert descend(tie, 0, queries, columns.by_set).tolist() == [left, left, right, left, left]


def test_an_ordered_category_is_split_by_its_order_and_unseen_levels_by_size():
    codes = np.array([[0, 0, 3, 3, 3]])
    columns = Columns(codes.astype(np.int32), np.array([True]), np.array([True]), np.array([5]))
    response = Classes(np.array([0, 0, 1, 1, 1]), 2)

    tree = grow_tree(
        columns, np.array([0]), response, np.arange(5, dtype=np.int32), Growth(min_samples_leaf=1)
    )

    queries = np.array([[0, 1, 2, 3, 4, 5]], dtype=np.int32)
    left, right = int(tree.left[0]), int(tree.right[0])
    expected = [left, left, right, right, right, right]
    assert descend(tree, 0, queries, columns.by_set).tolist() == expected


def test_equal_gains_go_to_the_lowest_column_then_the_lowest_cut():
    column = [0, 0, 1, 1, 2, 2]
    columns = make_columns([column, column], [False, False], [True, True])
    response = Classes(np.array([0, 1, 0, 1, 0, 1]), 2)

    tree = grow_tree(
        columns,
        np.array([0, 1]),
        response,
        np.arange(6, dtype=np.int32),
        Growth(min_samples_leaf=1),
    )

    assert (tree.feature[0], tree.cut[0]) == (0, 0)


def test_a_split_that_gains_nothing_is_still_made_so_that_deeper_ones_can():
    columns = make_columns([[0, 0, 1, 1] * 5, [0, 1, 0, 1] * 5], [False] * 2, [True] * 2)
    exclusive_or = Classes(np.array([0, 1, 1, 0] * 5), 2)

    tree = grow_tree(columns, np.arange(2), exclusive_or, np.arange(20, dtype=np.int32), Growth())

    assert (tree.feature == LEAF).sum() == 4


def test_the_branch_of_an_undesired_decision_is_grown_on_request_only():
    chance = np.random.default_rng(0)
    decision = np.arange(200) % 2
    codes = np.vstack([chance.integers(0, 20, 200), decision])
    columns = make_columns(codes, [False] * 2, [True] * 2)
    response = Numbers(fixed_point(10.0 * decision + chance.normal(size=200)))
    answer = np.arange(200, dtype=np.int32)

    lazy = grow_tree(columns, np.arange(2), response, answer, Growth(decision_column=1))
    whole = grow_tree(
        columns, np.arange(2), response, answer, Growth(decision_column=1, grow_undesired=True)
    )

    assert lazy.feature[0] == 1
    assert lazy.count[lazy.left[0]] == 0
    assert lazy.feature.size < whole.feature.size
    desired = codes[:, decision == 1].astype(np.int32)
    assert lists_reached(lazy, desired, columns) == lists_reached(whole, desired, columns)


def lists_reached(tree, codes, columns):
    leaf = descend(tree, 0, codes, columns.by_set)
    return [tree.values[tree.start[n] : tree.start[n] + tree.count[n]].tolist() for n in leaf]


def test_depth_and_size_limits_hold():
    chance = np.random.default_rng(0)
    columns = make_columns([chance.integers(0, 99, 100)], [False], [True])
    response = Numbers(fixed_point(chance.normal(size=100)))
    answer = np.arange(100, dtype=np.int32)

    stump = grow_tree(
        columns, np.array([0]), response, answer, Growth(min_samples_leaf=1, max_depth=1)
    )
    coarse = grow_tree(
        columns, np.array([0]), response, answer, Growth(min_samples_leaf=1, min_samples_split=40)
    )

    assert stump.feature.size == 3
    inner = rows_by_node(coarse, columns, 100)
    assert all(
        inner[node].size >= 40 for node in range(coarse.feature.size) if coarse.feature[node] >= 0
    )


def test_joined_trees_descend_like_each_alone():
    chance = np.random.default_rng(1)
    codes = chance.integers(0, 9, (3, 120)).astype(np.int32)
    columns = make_columns(codes, [True, False, True], [False, True, False])
    trees = [
        grow_tree(columns, np.arange(3), Classes(chance.integers(0, 3, 120), 3), codes[0], Growth())
        for _ in range(3)
    ]

    joined = join(trees, columns.by_set)

    for number, tree in enumerate(trees):
        alone = descend(tree, 0, codes, columns.by_set)
        together = descend(joined, number, codes, columns.by_set)
        assert np.array_equal(together, alone + joined.roots[number])
        assert np.array_equal(joined.count[together], tree.count[alone])
        assert np.array_equal(joined.values[joined.start[together]], tree.values[tree.start[alone]])


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=50))
def test_fixed_point_keeps_order_and_its_sums_cannot_overflow(values):
    values = np.array(values)

    units = fixed_point(values)

    assert (np.diff(units[np.argsort(values)]) >= 0).all()
    assert values.size * int(np.abs(units).max()) < 2**62


def test_fixed_point_is_exact_for_whole_numbers():
    values = np.array([0.0, 1.0, 7.0, 99_999.0])

    units = fixed_point(values)

    step = int(units[1] - units[0])
    assert [int(unit - units[0]) for unit in units] == [step * int(value) for value in values]
