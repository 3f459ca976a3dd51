"""Value tables that grow by computed values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import Schema
from mcce.search.values import GrowingTables

NUMBERS = pd.DataFrame({"x": [1.5, 2.0, np.nan, 2.5], "k": [1, 2, 3, 3]})


def tables(frame=NUMBERS):
    rows = Schema.learn(frame).encode(frame)
    return rows, GrowingTables(rows, rows.tables)


def test_known_numbers_keep_their_codes_and_nothing_grows():
    rows, growing = tables()

    codes = growing.place(0, np.array([2.5, 1.5, np.nan]))

    assert codes.tolist() == [2, 0, 3]
    assert growing.tables is rows.tables


def test_new_numbers_get_codes_behind_the_others_once():
    rows, growing = tables()

    first = growing.place(0, np.array([9.0, 2.0, 9.0, 0.5]))
    again = growing.place(0, np.array([0.5, 9.0, -0.0]))

    assert growing.tables[0].iloc[first].tolist() == [9.0, 2.0, 9.0, 0.5]
    assert growing.tables[0].iloc[again].tolist() == [0.5, 9.0, 0.0]
    assert again[:2].tolist() == [first[3], first[0]]
    assert growing.tables[1] is rows.tables[1]
    assert growing.numbers(0)[first].tolist() == [9.0, 2.0, 9.0, 0.5]


@pytest.mark.parametrize("dtype", ["int64", "int8", "Int64", "float32", "int64[pyarrow]"])
def test_new_numbers_have_the_dtype_of_the_column(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    _, growing = tables(NUMBERS.astype({"k": dtype}))

    codes = growing.place(1, np.array([7.0, 2.0]))

    assert growing.tables[1].dtype == dtype
    assert growing.tables[1].iloc[codes].tolist() == [7, 2]


def test_a_missing_value_can_be_new():
    _, growing = tables(NUMBERS.astype({"k": "Int64"}))

    codes = growing.place(1, np.array([np.nan, 1.0]))

    assert growing.tables[1].iloc[codes].isna().tolist() == [True, False]
