"""What is bound to the compiled kernels is checked, outlives its arrays, and survives copies."""

from __future__ import annotations

import copy
import gc
import pickle
from dataclasses import replace

import numpy as np
import pytest

from mcce.kernels import native, reference
from mcce.kernels.cancellation import watch
from mcce.kernels.reference import Classes, Columns, Comparison, Growth, Guide, Limits, Person

N_CODES = np.array([40, 70, 5, 2], dtype=np.int32)
BY_SET = np.array([False, True, True, False])
COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "replace": replace,
}


def grown(**growth):
    """Trees of the columns 1 and 2, which are levels, given those before and the decision."""
    chance = np.random.default_rng(0)
    codes = np.array([chance.integers(0, n, 400) for n in N_CODES], dtype=np.int32)
    columns = Columns(codes, BY_SET, ~BY_SET, N_CODES)
    trees = [
        reference.grow_tree(
            columns,
            np.array([*range(column), 3]),
            Classes(codes[column].astype(np.int64), int(N_CODES[column])),
            codes[column],
            Growth(min_samples_leaf=20, **growth),
        )
        for column in (1, 2)
    ]
    joined = reference.join(trees, BY_SET)
    return native.Forest(joined, np.array([1, 2]), np.where(BY_SET, N_CODES, 0))


def held_by(forest):
    return native.gather_holdings(forest, contradictions=False)


def neighbours():
    points = np.random.default_rng(1).random((100, 2))
    return native.build_neighbours(points, np.array([False, False]))


GIVEN = np.array([[3, 20], [0, 0], [0, 0], [1, 1]], dtype=np.int32)
KEYS, DRAWS = np.array([5, 6], dtype=np.uint64), np.arange(50)
ROWS = np.array([[3, 20, 39], [5, 69, 70], [0, 4, 5], [1, 0, 1]], dtype=np.int32)
FREE = np.full((4, 2), -1, dtype=np.int64)
LIMITS = Limits(
    np.zeros((4, 2), np.int32),
    FREE,
    FREE,
    np.empty((0, 2), np.int32),
    np.zeros((4, 2, 2), np.int32),
)
PERSON = Person(
    GIVEN[:, 0], GIVEN[:, 0], GIVEN[:, 0], None, np.ones(117), np.array([0, 40, 110, 115])
)
LISTED = {"n_changes": 1, "n_best": 10, "max_nodes": 1000}


# ---------------------------------------------------------------------------------------------
# Bound once, and owned.


@pytest.mark.parametrize("how", COPIES)
def test_copies_leave_the_compiled_half_behind_and_give_the_same(how):
    forest = grown()
    held, near = held_by(forest), neighbours()
    bound = [value.bound for value in (forest, held, near)]

    others = [COPIES[how](value) for value in (forest, held, near)]

    assert all("bound" not in vars(other) for other in others)
    assert [value.bound for value in (forest, held, near)] == bound
    drawn = [native.sample(value, GIVEN, KEYS, DRAWS) for value in (forest, others[0])]
    assert np.array_equal(*drawn)
    scores = [native.nonconformity(value, ROWS) for value in (held, others[1])]
    assert np.array_equal(*scores)
    distances = [native.nearest(value, near.points[:9] + 0.1, 3) for value in (near, others[2])]
    assert np.array_equal(*distances)


def test_arrays_that_change_after_binding_are_not_read_again():
    forest = grown()
    held = held_by(forest)
    before = native.sample(forest, GIVEN, KEYS, DRAWS), native.nonconformity(held, ROWS)

    for value in (forest.trees, held):
        for name in ("feature", "cut", "left", "right", "start", "count", "values", "offset"):
            if hasattr(value, name):
                getattr(value, name)[:] = 2**30

    assert np.array_equal(native.sample(forest, GIVEN, KEYS, DRAWS), before[0])
    assert np.array_equal(native.nonconformity(held, ROWS), before[1])


def test_the_compiled_half_outlives_what_it_was_made_of():
    forest, near = grown(), neighbours()
    held, rows = held_by(forest), near.points[:9].copy()
    expected = native.nonconformity(held, ROWS), native.nearest(near, rows, 3)

    bound = held.bound, near.bound
    del forest, held, near
    gc.collect()
    _ = [np.full(10_000, 2**30, dtype=np.int32) for _ in range(100)]

    assert np.array_equal(bound[0].nonconformity(ROWS, watch()), expected[0])
    assert np.array_equal(bound[1].nearest(rows, 3, watch()), expected[1])


# ---------------------------------------------------------------------------------------------
# Checked.


def broken(name, at, value):
    forest = grown()
    arrays = getattr(forest.trees, name).copy()
    arrays[at] = value
    return replace(forest, trees=replace(forest.trees, **{name: arrays}))


LEAF = int(np.flatnonzero(grown().trees.feature == -1)[0])


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("roots", 0, 1),
        ("roots", 1, 0),
        ("roots", 1, 10**6),
        ("feature", 0, 4),
        ("feature", 0, -2),
        ("left", 0, 0),
        ("left", 0, -1),
        ("right", 0, 10**6),
        ("start", LEAF, -1),
        ("count", LEAF, -1),
        ("count", LEAF, 10**6),
        ("values", 0, -1),
        ("values", 0, 70),
        ("values", -1, 5),
    ],
)
def test_trees_that_could_be_left_are_refused(name, at, value):
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        native.sample(broken(name, at, value), GIVEN, KEYS, DRAWS)


def test_trees_that_split_on_columns_beyond_the_last_are_refused():
    forest = grown()
    inner = forest.trees.feature != -1
    feature, cut = forest.trees.feature.copy(), forest.trees.cut.copy()
    feature[inner], cut[inner] = 4, 2**31 - 1
    hostile = replace(forest, trees=replace(forest.trees, feature=feature, cut=cut))

    with pytest.raises(ValueError, match="splits on no column"):
        held_by(hostile)


def test_nodes_with_two_parents_are_refused():
    """Each level would double the rows of a node, and so reach beyond the values."""
    n = 20
    inner = np.arange(n, dtype=np.int32)
    array = lambda numbers, last: np.array([*numbers, last], dtype=np.int32)
    child = array(inner + 1, 0)
    trees = reference.Trees(
        roots=np.array([0]),
        feature=array(0 * inner, -1),
        cut=array(0 * inner, 0),
        left=child,
        right=child,
        start=np.zeros(n + 1, dtype=np.int64),
        count=array(0 * inner, 1),
        sets=np.empty(0, dtype=np.uint64),
        values=np.array([0], dtype=np.int32),
    )
    forest = native.Forest(trees, np.array([1]), np.array([0, 0]))

    with pytest.raises(ValueError, match="preorder"):
        native.gather_holdings(forest, contradictions=False)


def test_trees_that_split_on_what_is_drawn_later_cannot_be_drawn_from():
    forest = replace(grown(), responses=np.array([1, 0]))

    with pytest.raises(ValueError, match="predicted later"):
        native.sample(forest, GIVEN, KEYS, DRAWS)


def test_a_tree_of_neighbours_with_too_many_levels_is_refused():
    n = 1000
    numbers = np.arange(n, dtype=np.int64)
    near = replace(
        neighbours(),
        first=0 * numbers,
        last=0 * numbers,
        left=np.minimum(2 * (numbers // 2) + 1, n - 1),
        right=np.minimum(2 * (numbers // 2) + 2, n - 1),
        column=np.where(numbers % 2 | (numbers >= n - 2), -1, 0).astype(np.int32),
        left_edge=np.zeros(n),
        right_edge=np.zeros(n),
    )

    with pytest.raises(ValueError, match="too deep"):
        native.nearest(near, np.zeros((1, 2)), 1)


def test_rows_that_differ_in_one_column_each_make_no_deep_tree():
    points = np.eye(700)
    near = native.build_neighbours(points, np.zeros(700, dtype=bool))

    found = native.nearest(near, points[:5], 2)

    assert np.array_equal(found, np.tile([0.0, 2.0], (5, 1)))


@pytest.mark.parametrize("name", ["cut", "left", "right", "start", "count", "values", "feature"])
def test_trees_with_an_array_cut_short_are_refused(name):
    forest = grown()
    short = replace(forest.trees, **{name: getattr(forest.trees, name)[:-1]})

    with pytest.raises(ValueError, match=r"\w+ \w+"):
        native.sample(replace(forest, trees=short), GIVEN, KEYS, DRAWS)


def test_sets_that_are_cut_off_are_refused():
    forest = grown()
    assert (forest.trees.feature == 1).any()
    short = replace(forest.trees, sets=forest.trees.sets[:-1])

    with pytest.raises(ValueError, match="set of levels"):
        native.sample(replace(forest, trees=short), GIVEN, KEYS, DRAWS)


@pytest.mark.parametrize("responses", [[1], [1, 4], [-1, 2]])
def test_responses_that_are_no_distinct_columns_are_refused(responses):
    with pytest.raises(ValueError, match="response"):
        native.sample(replace(grown(), responses=np.array(responses)), GIVEN, KEYS, DRAWS)


def with_code(codes, at, value):
    codes = codes.copy()
    codes[at] = value
    return codes


@pytest.mark.parametrize(
    "call",
    [
        lambda f: native.sample(f, GIVEN[:3], KEYS, DRAWS),
        lambda f: native.sample(f, GIVEN, KEYS[:1], DRAWS),
        lambda f: native.sample(f, with_code(GIVEN, (1, 0), 71), KEYS, DRAWS),
        lambda f: native.sample(f, with_code(GIVEN, (1, 0), -1), KEYS, DRAWS),
        lambda f: native.sample(f, GIVEN, KEYS, DRAWS, replace(LIMITS, own=LIMITS.own[:3])),
        lambda f: native.sample(f, GIVEN, KEYS, DRAWS, replace(LIMITS, first=FREE + 1)),
        lambda f: native.sample(f, GIVEN, KEYS, DRAWS, None, Guide(GIVEN[:3], GIVEN[:3], 9)),
        lambda f: native.enumerate_rows(f, replace(PERSON, given=GIVEN[:3, 0]), **LISTED),
        lambda f: native.enumerate_rows(f, replace(PERSON, own=GIVEN[:2, 0]), **LISTED),
        lambda f: native.enumerate_rows(f, replace(PERSON, stays=GIVEN[:2, 0]), **LISTED),
        lambda f: native.enumerate_rows(f, replace(PERSON, costs=np.ones(113)), **LISTED),
        lambda f: native.enumerate_rows(f, replace(PERSON, offsets=PERSON.offsets - 200), **LISTED),
        lambda f: native.enumerate_rows(f, replace(PERSON, limits=LIMITS), **LISTED),
        lambda f: native.enumerate_rows(f, PERSON, after=(0.0, GIVEN[0, :1]), **LISTED),
        lambda f: native.enumerate_rows(f, PERSON, **LISTED | {"n_best": 0}),
        lambda f: native.enumerate_rows(f, PERSON, **LISTED | {"max_nodes": -1}),
        lambda f: native.enumerate_rows(f, replace(PERSON, costs=np.full(117, np.nan)), **LISTED),
        lambda f: held_by(replace(f, n_levels=np.array([0, 70, 0, 0]))),
        lambda f: replace(held_by(f), forest=replace(f, n_levels=np.array([0, 70, 0, 0]))).bound,
        lambda f: native.nonconformity(held_by(f), ROWS[:3]),
        lambda f: native.nonconformity(held_by(f), with_code(ROWS, (2, 0), 6)),
        lambda f: native.nonconformity(replace(held_by(f), size=N_CODES), ROWS),
        lambda f: native.nonconformity(replace(held_by(f), sets=held_by(f).sets[:-1]), ROWS),
        lambda f: native.nearest(neighbours(), np.zeros((1, 3)), 1),
        lambda f: native.nearest(neighbours(), np.zeros((1, 2)), 0),
        lambda f: native.build_neighbours(np.full((99, 2), np.nan), np.array([False, False])),
        lambda f: native.nearest(replace(neighbours(), last=np.full(7, 101)), np.zeros((1, 2)), 1),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call):
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        call(grown())


@pytest.mark.parametrize("k", [2**61, 2**63])
def test_results_beyond_any_memory_are_refused(k):
    with pytest.raises(MemoryError):
        native.nearest(neighbours(), np.zeros((8, 2)), k)


def test_a_comparison_of_other_people_is_refused():
    codes = np.zeros((1, 1, 4), dtype=np.int32)
    people = codes[0, :, :2], np.zeros((1, 2)), np.ones(1)
    comparison = Comparison(codes, [None], *people, np.array([0, 1]), 1)
    ranking = {"rank_by": ("sparsity",), "n_best": 1}

    with pytest.raises(ValueError, match="group"):
        native.rank(comparison, np.ones((2, 4), dtype=bool), **ranking)
    with pytest.raises(ValueError, match="allowed"):
        native.rank(replace(comparison, group=np.zeros(2, int)), np.ones((1, 4), bool), **ranking)
    beyond = replace(comparison, group=np.zeros(2, int), codes=codes + 3, numbers=[np.ones(3)])
    with pytest.raises(ValueError, match="no number"):
        native.rank(beyond, np.ones((2, 4), dtype=bool), **ranking)


# ---------------------------------------------------------------------------------------------
# Corners.


def test_a_leaf_that_was_never_grown_gives_code_0():
    forest = grown(decision_column=3)
    empty = (forest.trees.feature == -1) & (forest.trees.count == 0)
    assert empty.any()
    undesired = GIVEN * np.array([[1], [1], [1], [0]], dtype=np.int32)

    drawn = native.sample(forest, undesired, KEYS, DRAWS)

    assert drawn.min() >= 0
    assert (drawn.max(axis=(1, 2)) < N_CODES[[1, 2]]).all()


def test_an_unseen_own_value_among_64_levels_is_looked_up_in_the_second_word():
    """The tree of column 1 sends levels 0 to 63 left and the unseen one right, by its own bit."""
    i32 = lambda *numbers: np.array(numbers, dtype=np.int32)
    trees = reference.Trees(
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
    forest = native.Forest(trees, np.array([0, 1]), np.array([64, 0]))
    # Nothing is allowed in column 0, so the person's value stays: one that training never held.
    no_runs, near = np.empty((0, 2), np.int32), i32(1, 0, 1, 0).reshape(2, 1, 2)
    ends = np.array([[0], [-1]])
    stays = Limits(i32(-1, 0)[:, None], ends, ends, no_runs, near)
    arguments = forest, i32(64, 0)[:, None], KEYS[:1], DRAWS, stays

    drawn = native.sample(*arguments)

    assert np.array_equal(drawn, reference.sample(*arguments))
    assert (drawn[1] == 1).all()
