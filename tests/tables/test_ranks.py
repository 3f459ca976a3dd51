"""Codes of training cells: two ways to rank them give the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.tables import ranks
from mcce.tables.features import Feature
from mcce.tables.ranks import rank_by_sorting, rank_cells

NUMBERS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1).map(lambda n: np.array(n, np.int64)),
    st.lists(st.sampled_from([0.0, -0.0, 1.5, -3.25, 1e300]), min_size=1).map(np.array),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1).map(np.array),
)


@given(NUMBERS)
def test_sorting_and_counting_give_the_same_codes(cells):
    sorted_, first = rank_by_sorting(cells)
    counted, expected = rank_cells(cells)

    assert sorted_.dtype == counted.dtype == np.int32
    assert sorted_.tolist() == counted.tolist()
    assert first.tolist() == expected.tolist()
    assert (cells[first][sorted_] == cells).all()


@pytest.mark.parametrize("missing", [False, True])
def test_a_column_of_distinct_numbers_is_coded_by_sorting(missing, monkeypatch):
    cells = np.random.default_rng(0).normal(size=20_000)
    cells[::1000] = np.nan if missing else 0.5
    column = pd.Series(cells, name="number")
    by_sorting, codes = Feature.learn_codes(column, kind=None, immutable=False)
    monkeypatch.setattr(ranks, "MANY_ROWS", 10**9)

    by_counting, expected = Feature.learn_codes(column, kind=None, immutable=False)

    assert (codes == expected).all()
    pd.testing.assert_series_equal(by_sorting.table, by_counting.table)


def test_numbers_of_a_feature_cannot_be_changed():
    feature = Feature.learn(pd.Series([2.5, 1.5], name="number"), kind=None, immutable=False)

    assert feature.numbers is not None
    with pytest.raises(ValueError, match="read-only"):
        feature.numbers[0] = 7.0
    assert feature.table.tolist() == [1.5, 2.5]
