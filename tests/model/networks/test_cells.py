"""Columns in cells: which there are, and which values can be drawn from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import SavedFileError, Schema
from mcce.model.networks.cells import group_codes, learn_cells, pack_cells, unpack_cells
from mcce.tables.columns import as_numbers

DTYPES = ["int8", "uint16", "int64", "float32", "float64", "Int32", "Float64", "int64[pyarrow]"]


def cells_of(values, n_bins=8):
    rows = Schema.learn_rows(pd.DataFrame({"x": values}))
    return learn_cells(rows, n_bins)[0], rows.schema


def test_frequent_values_are_cells_of_their_own():
    counts = np.array([90, 1, 1, 1, 1, 1, 1, 40, 1, 1])

    assert group_codes(counts, 6).tolist() == [0, 1, 3, 5, 7, 8]


def test_few_values_are_cells_of_their_own_and_nothing_is_invented():
    column, _ = cells_of([3, 1, 2, 2, 1])

    assert column.table.tolist() == [1, 2, 3]
    assert column.sizes.tolist() == [1, 1, 1]
    assert not column.is_own


def test_bins_hold_about_equally_many_rows():
    column, schema = cells_of(np.random.default_rng(0).gamma(2, 10, 4000), n_bins=16)

    held = np.bincount(column.cell_of[:-1], minlength=column.n_cells)
    assert 14 <= column.n_cells <= 18
    assert held.max() < 1.2 * 4000 / 16
    assert len(column.table) == column.n_cells * 64
    assert schema.features[0].n_codes == 4000


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("missing", [False, True])
def test_values_are_in_the_dtype_and_range_of_the_column(dtype, missing):
    if dtype.endswith("[pyarrow]"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if missing and dtype in ("int8", "uint16", "int64"):
        pytest.skip("the dtype has no missing value")
    values = pd.Series(3 * np.random.default_rng(0).integers(0, 40, 300)).astype(dtype)
    if missing:
        values = values.mask(np.arange(values.size) % 7 == 0)

    column, schema = cells_of(values)

    numbers = as_numbers(column.table)
    known = numbers[: numbers.size - missing]
    assert column.table.dtype == values.dtype
    assert column.is_own
    assert (np.diff(known) > 0).all()
    assert known.min() == values.min()
    assert known.max() == values.max()
    assert np.isnan(numbers).sum() == missing
    assert set(known.tolist()) - set(as_numbers(values).tolist())
    # Every training value lies in the range of its cell.
    feature = schema.features[0]
    for code, cell in enumerate(column.cell_of[: feature.n_codes - missing]):
        inside = numbers[column.starts[cell] : column.starts[cell + 1]]
        assert inside[0] <= as_numbers(feature.table)[code] <= inside[-1]


def test_decimals_are_those_of_training():
    column, _ = cells_of(np.round(np.random.default_rng(0).gamma(2, 500, 900), 2))

    np.testing.assert_array_equal(np.round(column.table, 2), column.table)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_tens_and_hundreds_stay_what_they_are(dtype):
    values = 100 * np.random.default_rng(0).integers(-400, 600, 900).astype(dtype)

    column, _ = cells_of(values)

    assert column.is_own
    assert set(column.table) - set(values)
    assert not np.any(as_numbers(column.table) % 100)


@pytest.mark.parametrize(
    "values",
    [
        pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(200), "h"),
        2**60 + np.arange(200),
    ],
    ids=["dates", "huge integers"],
)
def test_what_float64_cannot_hold_stays_as_in_training(values):
    column, schema = cells_of(values)

    assert not column.is_own
    assert column.table.equals(schema.features[0].table)
    assert column.n_cells == 8


@pytest.mark.parametrize("part", ["cell_of", "starts", "values"])
def test_cells_of_other_columns_are_refused(part):
    column, schema = cells_of(np.random.default_rng(0).normal(size=100))
    (plain,) = pack_cells([column])
    copy = unpack_cells([plain], schema)[0]
    assert copy.table.equals(column.table)

    with pytest.raises(SavedFileError):
        unpack_cells([{**plain, part: plain[part][::-1].copy()}], schema)
