"""Gower's gap, which callers outside the kernels share."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mcce.kernels import Comparison, differences, gower_gap

numbers = st.floats(width=64, allow_infinity=False)


@given(st.lists(st.tuples(numbers, numbers), min_size=1), st.floats(1e-300, 1e300))
def test_it_is_the_distance_over_the_range_and_1_where_one_side_is_missing(pairs, spread):
    new, old = np.array(pairs).T
    differs = ~((new == old) | (np.isnan(new) & np.isnan(old)))

    gap = gower_gap(new, old, spread, differs)

    for a, b, far, value in zip(new, old, differs, gap, strict=True):
        if not far:
            assert value == 0
        elif np.isnan(a) or np.isnan(b):
            assert value == 1
        else:
            with np.errstate(over="ignore"):
                assert value == abs(a - b) / spread


def test_numbers_too_far_apart_are_infinitely_far_apart():
    gap = gower_gap(np.array([1e308]), -1e308, 1.0, np.array([True]))

    assert gap.tolist() == [np.inf]


def test_without_numbers_it_is_0_or_1():
    differs = np.array([[True, False], [False, True]])

    assert gower_gap(None, None, 0.0, differs).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_flag_decides_whether_cells_differ():
    """A value that training never held may be no float of its own, and still is another."""
    gap = gower_gap(np.array([2.0, 2.0, 3.0]), 2.0, 4.0, np.array([True, False, False]))

    assert gap.tolist() == [0.0, 0.0, 0.0]


def test_differences_of_a_comparison_are_made_of_it():
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
