"""Rows sorted by all their codes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mcce.kernels import sort_rows

SIZES = st.lists(st.sampled_from([1, 2, 3, 50, 2**20, 2**31 - 1]), min_size=1, max_size=8)


@given(SIZES, st.integers(0, 60), st.booleans(), st.integers(0, 2**32))
def test_rows_are_sorted_as_by_all_columns(sizes, n_rows, negative, seed):
    chance = np.random.default_rng(seed)
    codes = np.array([chance.integers(0, size, n_rows) for size in sizes], dtype=np.int32)
    # Many equal rows, and values that training never held.
    codes = codes[:, chance.integers(0, max(n_rows, 1), n_rows)] - np.int32(negative)

    assert sort_rows(codes).tolist() == np.lexsort(codes).tolist()
