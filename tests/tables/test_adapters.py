"""Frames of every type come back as that type; what cannot is refused by name."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kinds import KINDS, START, scores
from mcce import MCCE, MissingExtraError, SchemaError
from mcce.tables.frames import read_frame

pa = pytest.importorskip("pyarrow", reason="needs the extra frames")
pl = pytest.importorskip("polars", reason="polars is not installed")
nw = pytest.importorskip("narwhals", reason="needs the extra frames")


# Types that must survive, with a cell to change to.
OSLO = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
POLARS = {
    "Int8": (pl.Int8, [1, 2]),
    "UInt64": (pl.UInt64, [2**64 - 1, 2**64 - 2]),
    "Int64": (pl.Int64, [2**60 + 1, 2**60 + 2]),
    "Float32": (pl.Float32, [0.1, float("nan")]),
    "Boolean": (pl.Boolean, [True, False]),
    "String": (pl.String, ["", "ø"]),
    "Categorical": (pl.Categorical, ["b", "a"]),
    "Enum": (pl.Enum(["b", "a", "never"]), ["b", "a"]),
    "Date": (pl.Date, [OSLO.date(), START.date()]),
    "Datetime ms": (pl.Datetime("ms"), [START, START + datetime.timedelta(1)]),
    "Datetime ns with a zone": (
        pl.Datetime("ns", "Europe/Oslo"),
        [OSLO, OSLO + datetime.timedelta(1)],
    ),
    "Duration": (pl.Duration("us"), [datetime.timedelta(1), datetime.timedelta(2)]),
    "Null": (pl.Null, [None, None]),
}
PYARROW = {
    "int16": (pa.int16(), [1, 2]),
    "uint64": (pa.uint64(), [2**64 - 1, 2**64 - 2]),
    "float": (pa.float32(), [0.1, float("nan")]),
    "bool": (pa.bool_(), [True, False]),
    "string": (pa.string(), ["", "ø"]),
    "large_string": (pa.large_string(), ["", "ø"]),
    "dictionary of strings": (pa.dictionary(pa.int8(), pa.string()), ["b", "a"]),
    "dictionary of large strings": (pa.dictionary(pa.uint32(), pa.large_string()), ["b", "a"]),
    "dictionary of numbers": (pa.dictionary(pa.int64(), pa.int32()), [3, 1]),
    "date32": (pa.date32(), [OSLO.date(), START.date()]),
    "date64": (pa.date64(), [OSLO.date(), START.date()]),
    "timestamp s": (pa.timestamp("s"), [START, START + datetime.timedelta(1)]),
    "timestamp ns with a zone": (pa.timestamp("ns", "Europe/Oslo"), [OSLO, OSLO]),
    "duration": (pa.duration("ms"), [datetime.timedelta(1), datetime.timedelta(2)]),
    "null": (pa.null(), [None, None]),
}


def points(data: Any) -> np.ndarray:
    return np.asarray(data["points"]) / 48


@pytest.mark.parametrize("immutable", [[], ["column"]], ids=["mutable", "immutable"])
@pytest.mark.parametrize("name", POLARS)
def test_a_polars_type_comes_back(name, immutable):
    kind, values = POLARS[name]
    train = pl.DataFrame({"column": [*values, None] * 16, "points": range(48)})
    train = train.with_columns(pl.Series("column", train["column"].to_list(), dtype=kind))
    before = train.clone()
    explainer = MCCE(points, (0.5, 1), immutable=immutable, n_samples=60, random_state=0)

    result = explainer.fit(train).explain(train.head(12))

    assert len(result.frame) == 12
    assert result.frame.schema == train.schema
    assert result.factuals.equals(before.head(12))
    assert train.equals(before)
    if immutable:
        own = before["column"].gather(result.owner.tolist())
        assert result.frame["column"].equals(own)


@pytest.mark.parametrize("immutable", [[], ["column"]], ids=["mutable", "immutable"])
@pytest.mark.parametrize("name", PYARROW)
def test_a_pyarrow_type_comes_back(name, immutable):
    kind, values = PYARROW[name]
    if pa.types.is_dictionary(kind):
        numbers = pa.array([0, 1, None], kind.index_type)
        piece = pa.DictionaryArray.from_arrays(numbers, pa.array(values, kind.value_type))
    else:
        piece = pa.array([*values, None], kind)
    column = pa.chunked_array([piece] * 16)
    train = pa.table({"column": column, "points": list(range(48))})
    explainer = MCCE(points, (0.5, 1), immutable=immutable, n_samples=60, random_state=0)

    result = explainer.fit(train).explain(train.slice(0, 12))

    assert result.frame.num_rows == 12
    assert result.frame.schema == train.schema
    # NaN equals nothing, so that cells are compared as they are written.
    assert str(result.factuals.to_pylist()) == str(train.slice(0, 12).to_pylist())
    if immutable:
        own = train.slice(0, 12).take(result.owner)["column"].to_pylist()
        assert str(result.frame["column"].to_pylist()) == str(own)


def test_a_view_of_strings_comes_back_where_arrow_can_read_it():
    column = pa.array(["a", None, "b"] * 16)
    try:
        column = column.cast(pa.string_view())
        column.cast(pa.large_string())
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow cannot cast views of strings")
    train = pa.table({"column": column, "points": list(range(48))})

    result = MCCE(points, (0.5, 1), random_state=0).fit(train).explain(train.slice(0, 3))

    assert result.frame.schema == train.schema


def test_levels_that_no_row_has_stay_in_a_dictionary_and_numbers_of_levels_do_not_move():
    numbers, levels = pa.array([1, 2, None] * 16, pa.int8()), ["never", "b", "a"]
    column = pa.DictionaryArray.from_arrays(numbers, levels)
    train = pa.table({"column": column, "points": list(range(48))})
    seen = []

    def score(table):
        seen.append(table["column"].combine_chunks().dictionary.to_pylist())
        return points(table)

    result = MCCE(score, (0.5, 1), random_state=0).fit(train).explain(train.slice(0, 6))

    assert result.frame["column"].combine_chunks().dictionary.to_pylist() == levels
    assert all(received == levels for received in seen)


def test_people_with_narrower_types_get_them_back_only_if_every_answer_fits():
    train = pl.DataFrame({"points": range(48), "size": [i % 3 for i in range(48)]})
    narrow = train.head(4).with_columns(pl.col("size").cast(pl.Int8))
    tight = train.head(4).with_columns(pl.col("size").cast(pl.Int8), pl.col("points").cast(pl.Int8))
    wide = train.with_columns(pl.col("points") * 1000)
    explainer = MCCE(lambda frame: frame["points"] / 48, (0.5, 1), random_state=0)

    fits = explainer.fit(train).explain(narrow).frame
    explainer.set_params(desired=(500, 1000)).fit(wide)
    grows = explainer.explain(tight).frame

    assert fits.schema == narrow.schema
    assert grows.schema == {"points": pl.Int64, "size": pl.Int8}


NO_FRAMES = {
    "a lazy frame": (lambda: pl.LazyFrame({"a": [1]}), r"LazyFrame, whose rows are not.*\.collect"),
    "a series": (lambda: pl.Series([1, 2]), r"got a polars.*Series.*frame\[:1\]"),
    "an array of Arrow": (lambda: pa.array([1, 2]), "got pyarrow.lib.Int64Array"),
    "a batch of records": (lambda: pa.record_batch({"a": [1]}), "got pyarrow.lib.RecordBatch"),
    "records": (lambda: [{"a": 1}], r"got builtins\.list.*pd\.DataFrame"),
    "a dict of columns": (lambda: {"a": [1]}, r"got builtins\.dict.*pd\.DataFrame"),
    "a generator": (lambda: (i for i in range(3)), r"got builtins\.generator"),
    "a narwhals frame": (lambda: nw.from_native(pl.DataFrame({"a": [1]})), r"\.to_native\(\)"),
    "a name twice": (
        lambda: pa.table([[1], [2]], names=["a", "a"]),
        r"names must be unique.*'a' 2 times",
    ),
    "no rows": (lambda: pl.DataFrame({"a": []}, schema={"a": pl.Int64}), r"0 sample\(s\)"),
    "no columns": (lambda: pl.DataFrame(), r"0 feature\(s\)"),
    "lists": (lambda: pl.DataFrame({"a": [[1]]}), r"Column 'a' has type List, which"),
    "structs": (lambda: pl.DataFrame({"a": [{"b": 1}]}), r"Column 'a' has type Struct"),
    "bytes": (lambda: pl.DataFrame({"a": [b"1"]}), "Column 'a' has type Binary"),
    "objects": (lambda: pl.DataFrame({"a": [object()]}), "Column 'a' has type Object"),
    "times": (lambda: pl.DataFrame({"a": [datetime.time(1)]}), "Column 'a' has type Time"),
    "decimals": (
        lambda: pl.DataFrame({"a": [1]}, schema={"a": pl.Decimal(10, 2)}),
        "Column 'a' has type Decimal",
    ),
    "half floats": (
        lambda: pa.table({"a": pa.array(np.zeros(1, np.float16))}),
        "Column 'a' has type (halffloat|Float16)",
    ),
    "a dictionary of bytes": (
        lambda: pa.table({"a": pa.array([b"1"]).dictionary_encode()}),
        "Column 'a' has type",
    ),
    "a level twice": (
        lambda: pa.table({"a": pa.DictionaryArray.from_arrays([0, 1], ["x", "x"])}),
        "Column 'a' has type dictionary.*levels are not unique",
    ),
    "infinity": (lambda: pl.DataFrame({"a": [float("inf")]}), "Column 'a' holds infinity in 1"),
}


@pytest.mark.parametrize("name", NO_FRAMES)
def test_data_that_cannot_be_read_are_an_error_that_says_what_to_do(name):
    make, says = NO_FRAMES[name]

    with pytest.raises(SchemaError, match=rf"(?s){says}"):
        MCCE(points, (0.5, 1)).fit(make())


def test_names_that_polars_made_at_a_join_are_names_like_any_other():
    left = pl.DataFrame({"key": range(48), "points": range(48)})
    train = left.join(left, on="key")

    result = MCCE(points, (0.5, 1), random_state=0).fit(train).explain(train.head(2))

    assert result.frame.columns == ["key", "points", "points_right"]


def test_numbers_as_names_are_not_their_texts():
    train = pd.DataFrame(np.arange(48).reshape(24, 2), columns=[0, 1])
    explainer = MCCE(lambda frame: frame[0] / 48, (0.5, 1), random_state=0).fit(train)

    with pytest.raises(SchemaError, match=r"missing \[.*\], extra \['0', '1'\]"):
        explainer.explain(pl.DataFrame({"0": [1], "1": [2]}))


def test_a_column_of_nothing_takes_the_type_that_training_needs():
    train = pl.DataFrame({"points": range(48), "since": [START.date(), None] * 24})
    given = pl.DataFrame({"points": [1, 2], "since": [None, None]})
    explainer = MCCE(points, (0.5, 1), random_state=0).fit(train)

    result = explainer.explain(given)

    assert result.frame["since"].null_count() == 2
    assert result.frame.columns == given.columns


@pytest.mark.parametrize("cell", ["a", 3, START])
def test_training_on_nothing_but_null_takes_whatever_people_bring(cell):
    train = pl.DataFrame({"points": range(48), "column": [None] * 48})
    given = pl.DataFrame({"points": [1, 2], "column": [cell, None]})
    explainer = MCCE(points, (0.5, 1), immutable=["column"], random_state=0).fit(train)

    assert explainer.explain(given).frame["column"].to_list() == [cell, None]
    assert explainer.explain(train.head(2)).frame.schema == train.schema


def test_a_category_takes_in_the_levels_of_the_answers_and_stays_one():
    train = pl.DataFrame({"points": range(48), "city": ["a", "b", "c"] * 16})
    given = train.head(4).with_columns(pl.lit("z").cast(pl.Categorical).alias("city"))

    result = MCCE(points, (0.5, 1), random_state=0).fit(train).explain(given)

    assert result.frame.schema == given.schema
    assert set(result.frame["city"].to_list()) <= {"a", "b", "c"}


def test_levels_too_many_for_the_numbers_of_a_dictionary_get_more_room():
    levels = [str(i) for i in range(300)]
    train = pa.table({"points": list(map(float, range(600))), "city": levels * 2})
    city = pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int8()), ["z"])
    given = pa.table({"points": [1, 2, 3], "city": city})
    explainer = MCCE(lambda table: np.asarray(table["points"]) / 600, (0.99, 1), random_state=0)

    result = explainer.fit(train).explain(given)

    assert pa.types.is_dictionary(result.frame.schema.field("city").type)
    assert set(result.frame["city"].to_pylist()) <= set(levels)


def test_an_enum_is_split_in_its_own_order_and_a_category_as_a_set():
    train = KINDS["polars"]()

    fit = MCCE(scores, (0.6, 1.0)).fit(train)
    loose = MCCE(scores, (0.6, 1.0)).fit(train.with_columns(pl.col("size").cast(pl.Categorical)))

    assert fit.schema_.features[3].ordered
    assert not loose.schema_.features[3].ordered


def test_an_array_takes_names_at_fit_and_keeps_them():
    data = np.column_stack([np.arange(24.0), np.arange(24) % 2])
    explainer = MCCE(lambda rows: rows[:, 0] / 24, (0.5, 1), immutable=["age"], random_state=0)

    explainer.fit(data, feature_names=["points", "age"])
    result = explainer.explain(data[:3])

    assert result.frame.columns.tolist() == ["points", "age"]
    assert explainer.feature_names_in_.tolist() == ["points", "age"]
    assert result.frame["age"].tolist() == data[:3, 1].tolist()
    named = explainer.explain(pd.DataFrame(data[:3], columns=["points", "age"]))
    pd.testing.assert_frame_equal(named.frame, result.frame)


@pytest.mark.parametrize(
    ("data", "names", "says"),
    [
        (np.zeros((3, 2)), ["a"], r"has 2 columns, but there are 1 names for them: \['a'\]"),
        (np.zeros((3, 2)), "ab", "feature_names must list one name per column, got 'ab'"),
        (np.zeros((3, 2)), 2, "feature_names must list one name per column, got 2"),
        (np.zeros((3, 2)), ["a", "a"], r"more than once: \['a'\]"),
        (np.zeros((3, 2)), ["a", None], "Every column needs a name"),
        (pd.DataFrame({"a": [1]}), ["b"], "a DataFrame with names of its own"),
    ],
)
def test_names_that_do_not_fit_are_an_error(data, names, says):
    with pytest.raises(SchemaError, match=says):
        MCCE(points, (0.5, 1)).fit(data, feature_names=names)


def test_an_array_of_another_width_than_the_names_is_an_error():
    data = np.arange(48.0).reshape(24, 2)
    explainer = MCCE(lambda rows: rows[:, 0] / 48, (0.5, 1)).fit(data, feature_names=["a", "b"])

    with pytest.raises(SchemaError, match=r"has 1 columns, but there are 2 names.*\['a', 'b'\]"):
        explainer.explain(data[:, :1])


@pytest.mark.parametrize("absent", ["narwhals", "pyarrow"])
def test_without_the_extra_the_error_names_it(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)

    with pytest.raises(MissingExtraError, match=rf'{absent} must be.*pip install "mcce\[frames\]"'):
        read_frame(pl.DataFrame({"a": [1]}))
    with pytest.raises(SchemaError, match=r"got builtins\.list"):
        read_frame([1, 2])


def test_a_frame_of_an_unsupported_library_is_refused(monkeypatch):
    # As narwhals reads frames of other libraries that are like pandas.
    like_pandas = nw.from_native(pd.DataFrame({"a": [1]}))
    monkeypatch.setattr(nw, "from_native", lambda data, **settings: like_pandas)

    with pytest.raises(SchemaError, match=r"not supported. Convert it to a pandas"):
        read_frame(object())


def test_whole_numbers_of_training_are_not_rounded_to_make_room_for_gaps():
    exact = [2**60 + 1, 2**60 + 3]
    train = pd.DataFrame({"points": range(48), "column": exact * 24})
    given = pl.DataFrame(
        {"points": [1, 2], "column": [None, None]}, schema_overrides={"column": int}
    )

    def score(frame):
        return frame["column"].isin(exact) * points(frame)

    result = MCCE(score, (0.5, 1), random_state=0).fit(train).explain(given)

    assert set(result.frame["column"].to_list()) <= set(exact)
    assert result.frame.schema == given.schema


def test_a_predictor_trained_on_objects_receives_null_as_none():
    train = pd.DataFrame({"points": range(48), "city": pd.Series(["a", None] * 24, dtype=object)})
    received = []

    def score(frame):
        received.extend(frame["city"])
        return points(frame)

    MCCE(score, (0.5, 1), random_state=0).fit(train).explain(pl.from_pandas(train.head(4)))

    assert {cell if isinstance(cell, str) else type(cell) for cell in received} == {"a", type(None)}
