"""Cells are read by the schema, each by itself, and come back as they were."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import Schema
from mcce.errors import ReadError
from mcce.files.cells import MISSING, CellError, make_reader
from mcce.files.people import PeopleReader
from mcce.files.sources import CsvSource, RawBlock
from mcce.files.values import read_values

TRAIN = pd.DataFrame(
    {
        "age": [25, 36, 47, 52],
        "zip": ["0150", "0151", "7010", "NA"],
        "limit": [0.1, 2.5, 1e300, -3.0],
        "member": [True, False, True, True],
        "job": pd.Categorical(["clerk", "1", "smith", "1"]),
        "degree": pd.Categorical(["low", "high", "low", "high"], ["low", "high"], ordered=True),
        "grade": pd.Categorical([1, 2, 3, 1]),
        "since": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"]),
        "bonus": pd.array([1, 2, None, 4], dtype="Int64"),
    }
)
SCHEMA = Schema.learn(TRAIN)


class Table:
    """A source of one block."""

    textual, whole = True, frozenset()

    def __init__(self, names):
        self.names = list(names)


def read(rows, textual=True):
    """Rows as an explainer gets them, by group."""
    source = Table(TRAIN.columns)
    source.textual = textual
    reader = PeopleReader.plan("people.csv", source, SCHEMA)
    return reader.read(RawBlock(0, {name: [row[name] for row in rows] for name in TRAIN}))


GOOD = {
    **{"age": "40", "zip": "0999", "limit": "0.1", "member": "True", "job": "1"},
    **{"degree": "low", "grade": "2", "since": "2024-05-01", "bonus": "7"},
}


def test_cells_have_the_dtypes_of_training_whatever_they_look_like():
    ((at, frame),) = read([GOOD, {**GOOD, "zip": "123", "job": "clerk"}]).groups

    assert at.tolist() == [0, 1]
    assert frame.dtypes.to_dict() == TRAIN.dtypes.to_dict()
    assert frame["zip"].tolist() == ["0999", "123"]
    assert frame["grade"].tolist() == [2, 2]


def test_training_rows_written_as_text_are_read_as_they_were():
    text = TRAIN.to_csv(index=False)
    rows = list(csv.DictReader(io.StringIO(text)))

    groups = read(rows).groups

    back = pd.concat([frame for _, frame in groups]).sort_index()
    pd.testing.assert_frame_equal(back, TRAIN)


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *[("age", cell) for cell in ("36.5", "1_000", "x", "1e400", "٣", "99999999999999999999")],
        *[("limit", cell) for cell in ("inf", "1,5", "0x1p3", "--1")],
        *[("member", cell) for cell in ("1", "yes")],
        *[("degree", "middle"), ("grade", "two"), ("since", "soon"), ("bonus", "1.5")],
    ],
)
def test_a_cell_that_does_not_fit_is_an_error_that_does_not_quote_it(column, cell):
    rows = [GOOD] * 3 + [{**GOOD, column: cell}] + [GOOD]

    with pytest.raises(ReadError) as caught:
        read(rows)

    assert f"Column {column!r}" in str(caught.value)
    assert "row 4 (in the block of rows 1 to 5)" in str(caught.value)
    assert repr(cell) not in str(caught.value)


@pytest.mark.parametrize("cell", ["12.0", " 12 ", "+12", "1.2e1"])
def test_a_whole_number_may_be_written_in_several_ways(cell):
    ((_, frame),) = read([{**GOOD, "age": cell}]).groups

    assert frame["age"].tolist() == [12]


def test_a_text_that_could_be_missing_is_a_level_where_training_had_it():
    groups = read([{**GOOD, "zip": "NA"}, {**GOOD, "zip": "null"}]).groups

    ((_, frame),) = groups
    assert frame["zip"].iloc[0] == "NA"
    assert frame["zip"].isna().tolist() == [False, True]


def test_dtypes_depend_on_a_persons_own_cells_alone():
    missing, new, newer = {**GOOD, "age": ""}, {**GOOD, "job": "diver"}, {**GOOD, "job": "baker"}
    rows = [GOOD, missing, new, GOOD, newer, {**newer, "grade": "9"}, newer]

    together = read(rows).groups

    assert sorted(tuple(at) for at, _ in together) == [(0, 3), (1,), (2,), (4, 6), (5,)]
    for at, frame in together:
        for place in at:
            ((_, alone),) = read([rows[place]]).groups
            pd.testing.assert_frame_equal(frame.loc[[place]].reset_index(drop=True), alone)


@given(
    st.lists(
        st.one_of(
            st.integers(-(2**63), 2**63 - 1), st.none(), st.floats(-(2**53), 2**53).map(round)
        ),
        max_size=20,
    )
)
def test_whole_numbers_come_back_exactly(values):
    column = pd.Series([1, 2], name="n")
    reader = make_reader("n", column.dtype, column, textual=True)

    assert reader.values(["" if value is None else str(value) for value in values]) == values


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_numbers_come_back_bit_by_bit(values):
    column = pd.Series([0.5], name="x")
    reader = make_reader("x", column.dtype, column, textual=True)

    cells = read_values(reader, [repr(value) for value in values])
    read_back = cells.as_column(column.dtype)

    assert read_back.to_numpy().tobytes() == np.array(values, dtype=float).tobytes()


@given(st.lists(st.text().filter(lambda text: text not in MISSING), max_size=20))
def test_texts_come_back_as_they_are(values):
    column = pd.Series(["a"], name="x", dtype=object)
    reader = make_reader("x", column.dtype, column, textual=True)

    assert reader.values(values) == values


@given(
    st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            min_size=3,
            max_size=3,
        ),
        max_size=12,
    ),
    st.integers(1, 5),
)
def test_blocks_of_a_csv_file_are_its_rows(rows, n_rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([["a", "b", "c"], *rows])

    source = CsvSource.open("x.csv", io.BytesIO(text.getvalue().encode()), ",")
    blocks = list(source.blocks(["c", "a"], n_rows))

    assert [block.first for block in blocks] == list(range(0, len(rows), n_rows))
    assert all(block.n_rows == n_rows for block in blocks[:-1])
    for name, at in (("a", 0), ("c", 2)):
        assert [cell for block in blocks for cell in block.columns[name]] == [r[at] for r in rows]


def test_values_of_another_kind_are_errors_where_the_file_has_types():
    column = pd.Series(["a", "b"], name="x", dtype=object)
    reader = make_reader("x", column.dtype, column, textual=False)

    assert reader.values(["a", None, float("nan")]) == ["a", None, None]
    with pytest.raises(CellError) as caught:
        reader.values(["a", 12])
    assert (caught.value.position, caught.value.expected) == (1, "text")


def test_another_dtype_can_be_asked_for():
    source = Table(TRAIN.columns)
    reader = PeopleReader.plan("people.csv", source, SCHEMA, dtypes={"age": "float64"})
    cells = {name: [{**GOOD, "age": "36.5"}[name]] for name in TRAIN}

    ((_, frame),) = reader.read(RawBlock(0, cells)).groups

    assert frame["age"].tolist() == [36.5]


def test_a_column_that_is_kept_may_be_a_feature():
    reader = PeopleReader.plan("people.csv", Table(TRAIN.columns), SCHEMA, keep=["age"])
    assert reader.columns == list(TRAIN.columns)

    people = reader.read(RawBlock(0, {name: [GOOD[name]] for name in TRAIN}))

    assert people.kept == {"age": [GOOD["age"]]}
    assert people.groups[0][1]["age"].tolist() == [int(GOOD["age"])]


@pytest.mark.parametrize("cell", ["now", "today", "10:30", "3/4/2024", "Jan", "12"])
def test_moments_are_never_guessed(cell):
    moments = pd.Series(pd.to_datetime(["2024-01-31"]), name="since")
    reader = make_reader("since", moments.dtype, moments, textual=True)

    assert reader.values([" 2024-02-29 12:30 "]) == [pd.Timestamp("2024-02-29 12:30")]
    with pytest.raises(CellError):
        reader.values([cell])


def test_a_length_of_time_has_a_unit():
    lengths = pd.Series(pd.to_timedelta(["2 days"]), name="delay")
    reader = make_reader("delay", lengths.dtype, lengths, textual=True)

    assert reader.values(["3 days"]) == [pd.Timedelta(days=3)]
    with pytest.raises(CellError):
        reader.values(["3"])


def test_moments_lose_no_fraction_of_a_second():
    moments = pd.Series(np.array(["2024-01-31"], dtype="datetime64[s]"), name="since")
    reader = make_reader("since", moments.dtype, moments, textual=True)

    assert reader.values(["2024-01-31T12:30:05.0"]) == [pd.Timestamp("2024-01-31 12:30:05")]
    with pytest.raises(CellError):
        reader.values(["2024-01-31T12:30:05.5"])


def test_the_example_for_moments_of_a_zone_is_one():
    moments = pd.Series(pd.to_datetime(["2024-01-31"], utc=True), name="since")
    reader = make_reader("since", moments.dtype, moments, textual=True)

    with pytest.raises(CellError) as raised:
        reader.values(["2024-01-31"])
    example = raised.value.expected.split("such as ")[1]
    assert reader.values([example]) == [pd.Timestamp(example)]


@pytest.mark.parametrize("cell", [Decimal(2**63 + 1), Decimal("7.000")])
def test_exact_decimals_are_whole_numbers_of_any_size(cell):
    column = pd.Series([1, 2**63 + 1], dtype="uint64", name="limit")
    reader = make_reader("limit", column.dtype, column, textual=False)

    assert reader.values([cell]) == [int(cell)]


@pytest.mark.parametrize("cell", [Decimal("1.5"), Decimal("NaN"), Decimal("Infinity")])
def test_other_decimals_are_no_whole_numbers(cell):
    column = pd.Series([1, 2], name="limit")

    with pytest.raises(CellError):
        make_reader("limit", column.dtype, column, textual=False).values([cell])


@pytest.mark.parametrize("textual", [True, False])
def test_a_level_of_training_is_never_missing(textual):
    reader = make_reader("zip", TRAIN["zip"].dtype, TRAIN["zip"], textual=textual)

    # Where a file has types, a text is a text.
    assert reader.values(["NA", "0150", "null"]) == ["NA", "0150", None if textual else "null"]


@pytest.mark.parametrize("name", ["age", "limit", "member", "grade", "bonus"])
def test_texts_stand_for_others_only_in_files_without_types(name):
    cell = {"member": "true"}.get(name, "2")
    reader = make_reader(name, TRAIN[name].dtype, TRAIN[name], textual=False)

    assert make_reader(name, TRAIN[name].dtype, TRAIN[name], textual=True).values([cell]) != [cell]
    for text in (cell, "NA", ""):
        with pytest.raises(CellError):
            reader.values([text])
