"""Comparing rows: rankings, distances, duplicates and numbers of rows, compiled as in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numpy_kernels
from kernel_cases import assert_equal
from mcce.kernels import (
    Comparison,
    DistanceAxes,
    Summation,
    differences,
    gower_gap,
    native,
    sort_rows,
)

N_CODES = 6
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def comparisons(draw):
    """A comparison, coordinates on the axes of a distance, and which rows are allowed."""
    chance = np.random.default_rng(draw(SEEDS))
    m, n_groups, n_draws, n_people = (draw(st.integers(1, most)) for most in (5, 3, 40, 6))
    numbers, own_numbers = [], np.full((m, n_people), np.nan)
    coordinates, own_coordinates, spreads = [], [], []
    for feature in range(m):
        spreads.append(draw(st.sampled_from([0.0, 0.5, 3.0])))
        kind = draw(st.sampled_from(["level", "number", "number with gaps", "point"]))
        if kind == "level":
            numbers.append(None)
            coordinates.append(None)
            own_coordinates.append(None)
            continue
        table = np.sort(chance.normal(size=N_CODES))
        if kind == "number with gaps":
            table[-1] = np.nan
        own = np.append(table, 0.123)[chance.integers(0, N_CODES + 1, n_people)]
        numbers.append(table)
        own_numbers[feature] = own
        if kind == "point":
            coordinates.append(chance.normal(size=(N_CODES, 2)))
            own_coordinates.append(chance.normal(size=(n_people, 2)))
        else:
            scale = float(spreads[-1] > 0)
            coordinates.append(scale * table[:, None])
            own_coordinates.append(scale * own[:, None])
    comparison = Comparison(
        codes=chance.integers(0, N_CODES, (m, n_groups, n_draws), np.int32),
        numbers=numbers,
        own_codes=chance.integers(-1, N_CODES, (m, n_people), np.int32),
        own_numbers=own_numbers,
        spreads=chance.uniform(0.5, 3.0, m),
        group=np.sort(chance.integers(0, n_groups, n_people)),
        n_features=m + draw(st.integers(0, 3)),
    )
    axes = DistanceAxes(
        coordinates,
        own_coordinates,
        np.array(spreads),
        chance.choice([0.0, 1.0, 1.3], m),
        chance.integers(0, m + 2, n_people).astype(float),
        Summation(*(draw(st.booleans()) for _ in range(4))),
    )
    return comparison, axes, chance


@given(
    comparisons(),
    st.sampled_from(
        [("sparsity", "distance"), ("distance", "sparsity"), ("distance",), ("sparsity",)]
    ),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.2, 2.0]),
    st.none() | st.integers(0, 4),
    st.none() | st.sampled_from([0.0, 0.2, 0.5, 2.0]),
    st.sampled_from(["gower", "given", "axes"]),
)
def test_rankings_are_equal(work, rank_by, n_best, tolerance, max_sparsity, max_distance, by):
    comparison, axes, chance = work
    shape = comparison.group.size, comparison.codes.shape[2]
    rules = {
        "rank_by": rank_by,
        "n_best": n_best,
        "tolerance": tolerance,
        "max_sparsity": max_sparsity,
        "max_distance": max_distance,
        "distance": np.round(chance.random(shape), 1) if by == "given" else None,
        "axes": axes if by == "axes" else None,
    }
    allowed = chance.random(shape) < 0.8

    assert_equal(
        native.rank(comparison, allowed, **rules), numpy_kernels.rank(comparison, allowed, **rules)
    )


@given(comparisons())
def test_distances_are_equal_and_everybodys_own(work):
    comparison, axes, _ = work
    some = np.arange(comparison.group.size)[::2]

    found = native.measure(comparison, axes)

    assert np.array_equal(found, numpy_kernels.measure(comparison, axes))
    assert not np.isnan(found).any()
    assert np.array_equal(native.measure(comparison.take(some), axes.take(some)), found[some])


def test_differences_are_shares_of_the_range_and_1_where_one_side_is_missing():
    comparison = Comparison(
        codes=np.array([[[0, 1, 2]]], dtype=np.int32),
        numbers=[np.array([10.0, 20.0, np.nan])],
        own_codes=np.array([[0]], dtype=np.int32),
        own_numbers=np.array([[10.0]]),
        spreads=np.array([40.0]),
        group=np.array([0]),
        n_features=1,
    )

    changed, gap = differences(comparison, 0)

    assert changed.tolist() == [[False, True, True]]
    assert gap.tolist() == [[0.0, 0.25, 1.0]]
    far = gower_gap(np.array([1e308, 2.0]), np.array([-1e308, 2.0]), 1.0, np.array([True, False]))
    assert far.tolist() == [np.inf, 0.0]


@given(SEEDS, st.integers(1, 60), st.integers(1, 4), st.integers(1, 4))
def test_duplicates_are_equal(seed, n_draws, n_groups, n_columns):
    codes = np.random.default_rng(seed).integers(0, 3, (n_columns, n_groups, n_draws), np.int32)

    first = native.first_of_each(codes)

    assert np.array_equal(first, numpy_kernels.first_of_each(codes))
    for group in range(n_groups):
        rows = [tuple(row) for row in codes[:, group].T]
        assert first[group].tolist() == [row not in rows[:at] for at, row in enumerate(rows)]


@given(
    st.lists(st.sampled_from([1, 2, 3, 50, 2**20, 2**31 - 1]), min_size=1, max_size=8),
    st.integers(0, 60),
    st.booleans(),
    SEEDS,
)
def test_rows_are_sorted_as_by_all_columns(sizes, n_rows, negative, seed):
    chance = np.random.default_rng(seed)
    codes = np.array([chance.integers(0, size, n_rows) for size in sizes], dtype=np.int32)
    # Many equal rows, and values that training never held.
    codes = codes[:, chance.integers(0, max(n_rows, 1), n_rows)] - np.int32(negative)

    assert sort_rows(codes).tolist() == np.lexsort(codes).tolist()


@given(st.integers(0, 60), st.integers(1, 4), st.integers(1, 4), SEEDS)
def test_numbers_of_rows_are_equal_however_they_come(n_rows, width, n_values, seed):
    chance = np.random.default_rng(seed)
    rows = chance.integers(-1, n_values, (n_rows, width)).astype(np.int32)
    compiled, readable = native.RowTable(width), numpy_kernels.RowTable(width)

    for part in np.array_split(rows, int(chance.integers(1, 5))):
        assert np.array_equal(compiled.number_rows(part), readable.number_rows(part))
    first_seen = native.RowTable(width).number_rows(rows)
    assert np.array_equal(compiled.number_rows(rows), first_seen)
    assert sorted(set(first_seen.tolist())) == list(range(len(np.unique(rows, axis=0))))


@given(st.integers(0, 30), st.integers(1, 9), st.integers(0, 12), SEEDS)
def test_weighted_errors_are_equal(n_rows, width, n_errors, seed):
    chance = np.random.default_rng(seed)
    cells = chance.integers(-1, 3, (n_rows + 1, width)).astype(np.int32)
    rows, known = chance.integers(0, n_rows + 1, n_rows), chance.integers(0, n_rows + 1, n_errors)
    between = np.sort(chance.integers(0, n_errors + 1, (2, n_rows)), axis=0)
    error, sums = chance.normal(size=n_errors), tuple(chance.normal(size=(2, n_rows)))
    given_ = cells, rows, tuple(between), known, error, sums

    compiled, readable = native.weigh_errors(*given_), numpy_kernels.weigh_errors(*given_)

    for ours, theirs in zip(compiled, readable, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_what_does_not_go_together_is_refused():
    codes = np.zeros((1, 1, 4), dtype=np.int32)
    people = np.ones((1, 2), dtype=np.int32), np.zeros((1, 2)), np.ones(1)
    comparison = Comparison(codes, [None], *people, np.zeros(2, dtype=np.int64), 1)
    axes = DistanceAxes(
        [np.zeros((2, 1))], [np.zeros((2, 1))], *np.ones((2, 1)), np.ones(2), Summation()
    )
    allowed, ranking = np.ones((2, 4), dtype=bool), {"rank_by": ("sparsity",), "n_best": 1}

    native.measure(comparison, axes)
    for change, message in [
        ({"coordinates": [None]}, "only one side"),
        ({"coordinates": [np.zeros((2, 2))]}, "one or two"),
        ({"spreads": np.ones(2)}, "differ in size"),
        ({"n_present": np.ones(3), "own_coordinates": [np.zeros((3, 1))]}, "other rows"),
        ({"coordinates": [np.zeros((0, 1))]}, "no place"),
    ]:
        with pytest.raises(ValueError, match=message):
            native.measure(comparison, replace(axes, **change))
    for change, message in [
        ({"group": np.ones(2, dtype=np.int64)}, "group"),
        ({"own_codes": np.ones((1, 3), dtype=np.int32)}, "own codes"),
        ({"codes": codes - 1}, "no place"),
        ({"codes": codes + 9}, "no place"),
    ]:
        with pytest.raises(ValueError, match=message):
            native.measure(replace(comparison, **change), axes)
    with pytest.raises(ValueError, match="no number"):
        native.rank(replace(comparison, codes=codes + 7), allowed, axes=axes, **ranking)
    with pytest.raises(ValueError, match="allowed"):
        native.rank(comparison, allowed[:1], **ranking)
