"""Cells of Arrow columns are read as the same cells one by one, and so are texts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.files.cells import CellError, make_reader
from mcce.files.values import read_values

pa = pytest.importorskip("pyarrow")

TRAINING = {
    "whole": pd.Series([1, 2], dtype="int64"),
    "small": pd.Series([1, 2], dtype="int8"),
    "natural": pd.Series([1, 2], dtype="uint64"),
    "nullable": pd.Series([1, None], dtype="Int64"),
    "number": pd.Series([0.5, 1.0]),
    "single": pd.Series([0.5, 1.0], dtype="float32"),
    "truth": pd.Series([True, False]),
    "text": pd.Series(["a", "b"], dtype=object),
    "string": pd.Series(["a", "b"], dtype="string"),
    "level": pd.Series(["a", "b"], dtype="category"),
    "ordered": pd.Series(pd.Categorical(["a", "b"], ["a", "b"], ordered=True)),
    "grade": pd.Series([1, 2, 3], dtype="category"),
    "moment": pd.Series(pd.to_datetime(["2020-01-01", "2021-06-01"])),
}
CELLS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 200),
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats() | st.integers(-5, 5).map(float) | st.just(-0.0),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from(["a", "b", "c", "NA", "1", "true", ""]) | st.text(max_size=3),
    pa.large_string(): st.sampled_from(["a", "b", "new"]),
    pa.timestamp("us"): st.datetimes(),
}


@given(st.data())
def test_a_column_of_arrow_is_read_as_its_cells_one_by_one(data):
    column = data.draw(st.sampled_from(list(TRAINING.values())))
    kind = data.draw(st.sampled_from(list(CELLS)))
    cells = data.draw(st.lists(st.none() | CELLS[kind], max_size=12))
    cut = data.draw(st.integers(0, len(cells)))
    arrow = pa.chunked_array([pa.array(cells[:cut], kind), pa.array(cells[cut:], kind)])
    if data.draw(st.booleans()) and (pa.types.is_string(kind) or pa.types.is_integer(kind)):
        arrow = arrow.dictionary_encode()
    reader = make_reader("x", column.dtype, column, textual=False)

    assert_alike(reader, arrow, arrow.to_pylist())


@given(st.sampled_from(list(TRAINING.values())), st.lists(CELLS[pa.string()], max_size=12))
def test_texts_are_read_as_one_by_one(column, cells):
    reader = make_reader("x", column.dtype, column, textual=True)

    assert_alike(reader, cells, cells)


def outcome(read, cells):
    """What is read, or where it fails and why."""
    try:
        return read(cells)
    except CellError as error:
        return error.position, error.expected


def assert_alike(reader, cells, one_by_one):
    expected = outcome(reader.values, one_by_one)
    if isinstance(expected, tuple):
        assert outcome(lambda some: read_values(reader, some), cells) == expected
        return
    values = read_values(reader, cells)
    assert list(map(repr, values.tolist())) == list(map(repr, expected))
    demands = values.demands(reader.dtype)
    for demand in np.unique(demands):
        at = np.flatnonzero(demands == demand)
        got = values.take(at).as_column(reader.dtype)
        assert got.isna().tolist() == [expected[place] is None for place in at]
        known = [place for place in at if expected[place] is not None]
        assert got[got.notna()].tolist() == [expected[place] for place in known]
        assert demand or got.dtype == reader.dtype


@given(
    st.sampled_from(list(TRAINING.values())),
    st.lists(st.sampled_from(["a", "x", "y", "z", "1", "7", "8", ""]), min_size=1, max_size=12),
)
def test_a_column_is_made_of_each_cell_as_if_it_were_alone(column, cells):
    reader = make_reader("x", column.dtype, column, textual=True)
    try:
        values = read_values(reader, cells)
    except CellError:
        return

    demands = values.demands(reader.dtype)
    columns = {
        demand: values.take(np.flatnonzero(demands == demand)).as_column(reader.dtype)
        for demand in np.unique(demands)
    }

    for place, cell in enumerate(cells):
        alone = read_values(reader, [cell]).as_column(reader.dtype)
        found = columns[demands[place]].iloc[[np.sum(demands[:place] == demands[place])]]
        pd.testing.assert_series_equal(found.reset_index(drop=True), alone)


def test_values_with_different_demands_are_no_column():
    column = pd.Series([1, 2], dtype="int64")
    values = read_values(make_reader("x", column.dtype, column, textual=True), ["5", ""])

    with pytest.raises(AssertionError, match="different demands"):
        values.as_column(column.dtype)


def test_levels_that_no_cell_has_are_not_read():
    column = pd.Series(["a", "b"], dtype=object)
    reader = make_reader("x", column.dtype, column, textual=False)
    arrow = pa.DictionaryArray.from_arrays([0, 0, None], ["a", "never"])

    assert read_values(reader, pa.chunked_array([arrow])).tolist() == ["a", "a", None]
