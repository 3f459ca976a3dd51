"""The compiled kernels equal their readable twins, bit for bit."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forests import columns_of, limits_of, response_of
from mcce.kernels import native, reference
from mcce.kernels.reference import (
    Classes,
    Columns,
    Comparison,
    Growth,
    Numbers,
    fixed_point,
)


def assert_equal(one, other):
    for field in fields(one):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if ours is theirs:
            continue
        assert ours.dtype == theirs.dtype, field.name
        assert np.array_equal(ours, theirs), field.name


RESPONSES = ["binary", "classes", "levels as many as rows", "numbers", "tenths"]


@st.composite
def problems(draw):
    n_rows = draw(st.integers(1, 80))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_columns = draw(st.integers(1, 5))
    sizes = [draw(st.sampled_from([1, 2, 3, 9, 70, 300, 5000])) for _ in range(n_columns)]
    by_set = [draw(st.booleans()) for _ in range(n_columns)]
    ordered = [not s or draw(st.booleans()) for s in by_set]
    columns = columns_of(sizes, by_set, ordered, n_rows, chance)
    growth = Growth(
        min_samples_leaf=draw(st.integers(1, 6)),
        min_samples_split=draw(st.integers(2, 20)),
        max_depth=draw(st.none() | st.integers(1, 4)),
        decision_column=draw(st.none() | st.integers(0, n_columns - 1)),
        grow_undesired=draw(st.booleans()),
        levels_per_row=draw(st.sampled_from([1, 5, 64])),
        many_levels=draw(st.sampled_from([2, 4, 1024])),
        smallest_part=draw(st.integers(1, 10)),
    )
    return columns, response_of(draw(st.sampled_from(RESPONSES)), n_rows, chance), growth


@given(problems())
def test_trees_are_equal(problem):
    columns, response, growth = problem
    inputs = np.arange(len(columns.codes))
    answers = columns.codes[0]

    assert_equal(
        native.grow_tree(columns, inputs, response, answers, growth),
        reference.grow_tree(columns, inputs, response, answers, growth),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", RESPONSES)
@pytest.mark.parametrize("size", [3, 60, 400, 20_000])
@pytest.mark.parametrize("by_set", [False, True])
def test_larger_trees_are_equal_too(kind, size, by_set):
    chance = np.random.default_rng(size)
    sizes = [size, 2, size, 12, 5000]
    columns = columns_of(
        sizes,
        [by_set, by_set, False, True, False],
        [not by_set, not by_set, True, False, True],
        3000,
        chance,
    )
    response = response_of(kind, 3000, chance)
    inputs, answers = np.arange(5), columns.codes[3]

    assert_equal(
        native.grow_tree(columns, inputs, response, answers, Growth()),
        reference.grow_tree(columns, inputs, response, answers, Growth()),
    )


@pytest.mark.parametrize("kind", RESPONSES)
def test_trees_of_skewed_informative_columns_are_equal(kind):
    chance = np.random.default_rng(5)
    n_rows = 2500
    rare = np.minimum(chance.geometric(0.6, (4, n_rows)) - 1, 3).astype(np.int32)
    wide = chance.integers(0, 6000, (2, n_rows), np.int32)
    codes = np.vstack([rare, wide, rare[0] > 0, wide // 100])
    columns = Columns(
        codes,
        np.array([False, True, True, False, False, False, True, False, True]),
        np.array([True, False, True, True, True, True, False, True, False]),
        np.array([4, 4, 4, 4, 6000, 6000, 2, 60, 60]),
    )
    if kind == "numbers":
        response = Numbers(fixed_point(rare[0] * 1.0 + wide[0] / 1e4 + rare[1] * rare[2]))
    elif kind == "classes":
        response = Classes((rare[0] + 4 * rare[1]).astype(np.int64), 16)
    else:
        response = response_of(kind, n_rows, chance)
    growth = Growth(min_samples_leaf=3, decision_column=6)

    assert_equal(
        native.grow_tree(columns, np.arange(9), response, columns.codes[5], growth),
        reference.grow_tree(columns, np.arange(9), response, columns.codes[5], growth),
    )


def test_trees_with_more_tables_than_there_is_room_for_are_equal():
    chance = np.random.default_rng(6)
    sizes = [2, *[2000] * 150]
    columns = columns_of(sizes, [False] * 151, [True] * 151, 2200, chance)
    response, growth = response_of("numbers", 2200, chance), Growth(min_samples_leaf=40)

    assert_equal(
        native.grow_tree(columns, np.arange(151), response, columns.codes[5], growth),
        reference.grow_tree(columns, np.arange(151), response, columns.codes[5], growth),
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 5), st.booleans())
def test_draws_are_equal(seed, n_draws, n_groups, by_set):
    chance = np.random.default_rng(seed)
    sizes = [5, 80, 3, 200]
    columns = columns_of(
        sizes, [by_set, True, False, by_set], [not by_set, False, True, not by_set], 300, chance
    )
    order = chance.permutation(3) + 1
    trees = [
        reference.grow_tree(
            columns,
            np.sort(np.array([0, *order[:place]])),
            response_of("numbers", 300, chance),
            columns.codes[column],
            Growth(),
        )
        for place, column in enumerate(order)
    ]
    forest = native.Forest(
        reference.join(trees, columns.by_set), order, columns.n_codes * columns.by_set
    )
    # One past the last code is a level that training never saw.
    given_codes = np.zeros((4, n_groups), dtype=np.int32)
    given_codes[0] = chance.integers(0, 6 if by_set else 5, n_groups)
    keys = reference.person_keys(seed, given_codes[:1].T)
    draws = chance.integers(0, 10**6, n_draws)

    arguments = forest, given_codes, keys, draws

    assert np.array_equal(native.sample(*arguments), reference.sample(*arguments))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_draws", [33, 1000, 5000])
def test_many_draws_are_equal_too(seed, n_draws):
    """Lists long enough to be sorted and searched, sets of one word and of two, several rounds."""
    chance = np.random.default_rng(seed)
    sizes = [4, 3000, 64, 65, 2, 40]
    columns = columns_of(
        sizes,
        [True, False, True, True, True, False],
        [False, True, False, False, False, True],
        3000,
        chance,
    )
    order = chance.permutation(5) + 1
    trees = [
        reference.grow_tree(
            columns,
            np.sort(np.array([0, *order[:place]])),
            response_of(RESPONSES[(seed + place) % 2 * 3], 3000, chance),
            columns.codes[column],
            Growth(),
        )
        for place, column in enumerate(order)
    ]
    forest = native.Forest(
        reference.join(trees, columns.by_set), order, columns.n_codes * columns.by_set
    )
    given_codes = np.zeros((6, 3), dtype=np.int32)
    given_codes[0] = [0, 4, 2]
    keys = reference.person_keys(seed, given_codes[:1].T)
    draws = np.arange(n_draws)

    arguments = forest, given_codes, keys, draws

    assert np.array_equal(native.sample(*arguments), reference.sample(*arguments))


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 5), st.booleans())
def test_draws_within_limits_are_equal_and_keep_to_them(seed, n_draws, n_groups, by_set):
    chance = np.random.default_rng(seed)
    sizes = [5, 80, 3, 200]
    columns = columns_of(
        sizes, [by_set, True, False, by_set], [not by_set, False, True, not by_set], 300, chance
    )
    order = chance.permutation(3) + 1
    trees = [
        reference.grow_tree(
            columns,
            np.sort(np.array([0, *order[:place]])),
            response_of("numbers", 300, chance),
            columns.codes[column],
            Growth(),
        )
        for place, column in enumerate(order)
    ]
    forest = native.Forest(
        reference.join(trees, columns.by_set), order, columns.n_codes * columns.by_set
    )
    given_codes = np.array([chance.integers(0, size, n_groups) for size in sizes], dtype=np.int32)
    keys = reference.person_keys(seed, given_codes[:1].T)
    limits = limits_of((4, n_groups), sizes, order, chance)
    arguments = forest, given_codes, keys
    draws = chance.integers(0, 10**6, n_draws)

    drawn = native.sample(*arguments, draws, limits)

    assert np.array_equal(drawn, reference.sample(*arguments, draws, limits))
    for place, column in enumerate(sorted(order)):
        for group in np.flatnonzero(limits.first[column] >= 0):
            runs = limits.runs[limits.first[column, group] : limits.last[column, group]]
            allowed = {code for low, high in runs for code in range(low, high + 1)}
            low, high = limits.near[column, group]
            allowed -= set(range(low, high + 1))
            assert set(drawn[place, group].tolist()) <= {*allowed, limits.own[column, group]}


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 4), st.integers(1, 4))
def test_duplicates_are_equal(seed, n_draws, n_groups, n_columns):
    codes = np.random.default_rng(seed).integers(0, 3, (n_columns, n_groups, n_draws), np.int32)

    assert np.array_equal(native.first_of_each(codes), reference.first_of_each(codes))


@st.composite
def comparisons(draw):
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n_groups, n_draws = (
        draw(st.integers(1, 5)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 50)),
    )
    n_people = draw(st.integers(1, 6))
    numbers, own_numbers = [], np.full((m, n_people), np.nan)
    for feature in range(m):
        if draw(st.booleans()):
            numbers.append(None)
            continue
        table = np.sort(chance.normal(size=6))
        if draw(st.booleans()):
            table[-1] = np.nan
        numbers.append(table)
        own = np.append(table, 0.123)
        own_numbers[feature] = own[chance.integers(0, 7, n_people)]
    return Comparison(
        codes=chance.integers(0, 6, (m, n_groups, n_draws), np.int32),
        numbers=numbers,
        own_codes=chance.integers(-1, 6, (m, n_people), np.int32),
        own_numbers=own_numbers,
        spreads=chance.uniform(0.5, 3.0, m),
        group=np.sort(chance.integers(0, n_groups, n_people)),
        n_features=m + draw(st.integers(0, 3)),
    ), chance


@given(
    comparisons(),
    st.sampled_from(
        [("sparsity", "distance"), ("distance", "sparsity"), ("distance",), ("sparsity",)]
    ),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.2, 2.0]),
    st.none() | st.integers(0, 4),
    st.none() | st.sampled_from([0.0, 0.2, 0.5]),
    st.booleans(),
)
def test_rankings_are_equal(work, rank_by, n_best, tolerance, max_sparsity, max_distance, own):
    comparison, chance = work
    shape = comparison.group.size, comparison.codes.shape[2]
    settings = {
        "rank_by": rank_by,
        "n_best": n_best,
        "tolerance": tolerance,
        "max_sparsity": max_sparsity,
        "max_distance": max_distance,
        "distance": np.round(chance.random(shape), 1) if own else None,
    }
    allowed = chance.random(shape) < 0.8

    assert_equal(
        native.rank(comparison, allowed, **settings),
        reference.rank(comparison, allowed, **settings),
    )


# ---------------------------------------------------------------------------------------------
# What searches beyond the paper look up.


@given(problems(), st.booleans(), st.integers(0, 2**32 - 1))
def test_what_nodes_hold_and_who_is_outside_are_equal(problem, contradictions, seed):
    columns, _, growth = problem
    chance = np.random.default_rng(seed)
    growth = Growth(growth.min_samples_leaf, growth.min_samples_split, growth.max_depth)
    responses = np.flatnonzero(columns.by_set & (columns.n_codes < 5000))[:2]
    if not responses.size:
        return
    everything = np.arange(len(columns.codes))
    trees = reference.join(
        [
            reference.grow_tree(
                columns,
                np.setdiff1d(everything, [column]),
                Classes(columns.codes[column].astype(np.int64), int(columns.n_codes[column])),
                columns.codes[column],
                growth,
            )
            for column in responses
        ],
        columns.by_set,
    )
    n_levels = np.where(columns.by_set, columns.n_codes, 0)
    forest = native.Forest(trees, responses, n_levels)

    rows = np.array([chance.integers(0, n + 1, 40) for n in columns.n_codes], dtype=np.int32)
    scores = []
    for most_levels in (0, 8, 1024):
        rules = {"contradictions": contradictions, "most_levels": most_levels}
        held = native.gather_holdings(forest, **rules)
        assert_equal(held, reference.gather_holdings(forest, **rules))
        scores += [kernels.nonconformity(held, rows) for kernels in (native, reference)]
    assert all(np.array_equal(score, scores[0]) for score in scores)


@given(
    st.integers(1, 300),
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_distances_to_the_nearest_rows_are_equal(n_rows, is_level, k, seed):
    chance = np.random.default_rng(seed)
    levels = np.array(is_level)

    def points(n):
        numbers = chance.choice([chance.random((n, levels.size)), np.zeros((n, levels.size))])
        numbers = np.where(chance.random(numbers.shape) < 0.1, reference.MISSING, numbers)
        return np.where(levels, chance.integers(0, 3, numbers.shape).astype(float), numbers)

    neighbours = native.build_neighbours(points(n_rows), levels)
    queries = np.concatenate([points(20), neighbours.points[:5], points(3) + ~levels * 1.5])

    assert np.array_equal(
        native.nearest(neighbours, queries, k), reference.nearest(neighbours, queries, k)
    )


@given(st.integers(1, 90), st.integers(32, 70), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_distances_of_wide_rows_that_share_cells_are_equal(n_rows, n_columns, k, seed):
    chance = np.random.default_rng(seed)
    levels = chance.random(n_columns) < 0.4

    def points(n):
        numbers = chance.random((n, n_columns)) * 10.0 ** chance.integers(-2, 3)
        numbers = np.where(chance.random(numbers.shape) < 0.1, reference.MISSING, numbers)
        return np.where(levels, chance.integers(0, 4, numbers.shape).astype(float), numbers)

    neighbours = native.build_neighbours(points(n_rows), levels)
    queries = np.repeat(np.concatenate([points(3), neighbours.points[:2]]), 8, axis=0)
    changed = chance.random(queries.shape) < chance.choice([0.02, 0.2], (len(queries), 1))
    queries = np.where(changed, points(len(queries)), queries)

    assert np.array_equal(
        native.nearest(neighbours, queries, k), reference.nearest(neighbours, queries, k)
    )


@given(st.integers(0, 30), st.integers(1, 9), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_weighted_errors_are_equal(n_rows, width, n_errors, seed):
    chance = np.random.default_rng(seed)
    cells = chance.integers(-1, 3, (n_rows + 1, width)).astype(np.int32)
    rows, known = chance.integers(0, n_rows + 1, n_rows), chance.integers(0, n_rows + 1, n_errors)
    between = np.sort(chance.integers(0, n_errors + 1, (2, n_rows)), axis=0)
    error, sums = chance.normal(size=n_errors), tuple(chance.normal(size=(2, n_rows)))

    given_ = cells, rows, (between[0], between[1]), known, error, sums
    for compiled, readable in zip(
        native.weigh_errors(*given_), reference.weigh_errors(*given_), strict=True
    ):
        assert compiled.tobytes() == readable.tobytes()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": [3]}, "no such row"),
        ({"known": [-1]}, "no such row"),
        ({"last": [2]}, "no such error"),
        ({"first": [-1]}, "no such error"),
        ({"total": [0.0, 0.0]}, "differ in size"),
    ],
)
def test_errors_that_do_not_go_together_are_refused(changed, message):
    given_ = {"rows": [0], "first": [0], "last": [1], "known": [1], "error": [1.0]}
    given_ |= {"total": [0.0], "weight": [0.0]} | changed
    arrays = {name: np.array(values) for name, values in given_.items()}
    cells = np.zeros((3, 2), dtype=np.int32)

    with pytest.raises(ValueError, match=message):
        native.weigh_errors(
            cells,
            arrays["rows"],
            (arrays["first"], arrays["last"]),
            arrays["known"],
            arrays["error"],
            (arrays["total"], arrays["weight"]),
        )


@given(st.integers(0, 60), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_numbers_of_rows_are_equal_however_they_come(n_rows, width, n_values, seed):
    chance = np.random.default_rng(seed)
    rows = chance.integers(-1, n_values, (n_rows, width)).astype(np.int32)
    compiled, readable = native.RowTable(width), reference.RowTable(width)

    for part in np.array_split(rows, int(chance.integers(1, 5))):
        numbers = compiled.place(part)

        assert np.array_equal(numbers, readable.place(part))
    first_seen = native.RowTable(width).place(rows)
    assert np.array_equal(compiled.place(rows), first_seen)
    assert sorted(set(first_seen.tolist())) == list(range(len(np.unique(rows, axis=0))))
