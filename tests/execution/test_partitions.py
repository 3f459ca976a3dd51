"""Partitions are read as explain reads frames: what it takes they take, or they say what to do."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import MCCE
from mcce.errors import ParameterError, ReadError
from mcce.execution.joblib import explain
from mcce.execution.partitions import PartitionTask, columns_of
from mcce.execution.shipment import Shipment
from mcce.files.writing import arrow_table

N_TRAIN = 60
DAYS = [date(2020, 1, 1), date(2021, 5, 1), date(2022, 9, 1)]
LEVELS = [1, "a", 2.5]
FEATURES = {
    "float[pyarrow]": lambda at: pd.Series(at % 3 / 2, dtype="float[pyarrow]"),
    "double[pyarrow]": lambda at: pd.Series(at % 3 / 10, dtype="double[pyarrow]"),
    "string[pyarrow]": lambda at: pd.Series(list("abc"), dtype="string[pyarrow]").take(at % 3),
    "float32": lambda at: pd.Series(at % 3 / 10, dtype="float32"),
    "Float32": lambda at: pd.Series(at % 3 / 10, dtype="Float32"),
    "truths": lambda at: pd.Series([True, False, None], dtype=object).take(at % 3),
    "truths of numpy": lambda at: pd.Series([np.True_, np.False_], dtype=object).take(at % 2),
    "texts and NA": lambda at: pd.Series(["a", "b", pd.NA], dtype=object).take(at % 3),
    "intervals": lambda at: pd.Series(pd.cut(at % 9, [-1, 3, 6, 9])),
    "unordered intervals": lambda at: pd.Series(pd.cut(at % 9, [-1, 3, 6, 9]).as_unordered()),
    "days": lambda at: pd.Series(pd.Categorical([DAYS[place % 3] for place in at])),
    "moments": lambda at: pd.Series(pd.Categorical(pd.to_datetime(DAYS).take(at % 3))),
    "several types": lambda at: pd.Series(
        pd.Categorical([LEVELS[n % 3] for n in at], LEVELS, True)
    ),
}


def rows_of(kind: str, n_rows: int = N_TRAIN) -> pd.DataFrame:
    at = np.arange(n_rows)
    cells = FEATURES[kind](at).reset_index(drop=True)
    return pd.DataFrame({"x": cells, "salary": at * 7 % 60, "age": 20 + at * 11 % 40})


def explainer_of(rows: pd.DataFrame) -> MCCE:
    model = MCCE(lambda frame: frame["salary"], (40, 100), immutable=["x"], random_state=0)
    return model.fit(rows)


def task_of(explainer: MCCE, rows: pd.DataFrame, key: str = "id") -> PartitionTask:
    return PartitionTask.plan(explainer, Shipment.pack(explainer, None), columns_of(rows), key)


@pytest.mark.parametrize("kind", FEATURES)
def test_what_explain_takes_engines_take(kind):
    rows = rows_of(kind)
    explainer = explainer_of(rows)
    some = rows.head(9)
    result = explainer.explain(some)

    found = explain(explainer, some.assign(id=range(9)), key="id", workers=1, block_rows=4)

    answered = found[found["status"] == "answered"]
    assert answered["id"].tolist() == result.owner.tolist()
    for name in rows:
        theirs = result.frame[name]
        assert answered[name].isna().tolist() == theirs.isna().tolist()
        assert answered[name].dropna().tolist() == theirs.dropna().tolist()


@pytest.mark.parametrize("kind", FEATURES)
def test_every_feature_has_a_place_in_tables_of_arrow(kind):
    pa = pytest.importorskip("pyarrow")
    rows = rows_of(kind)
    explainer = explainer_of(rows)
    task = task_of(explainer, rows.assign(id=0))
    table = task.frame(rows.head(9).assign(id=range(9)))

    found = task.arrow(
        pa.table({"id": range(9), "salary": range(9), "age": range(20, 29), "x": [None] * 9})
    )

    assert found.schema == task.arrow_schema
    if kind == "truths":
        assert table["x"].dtype == "boolean"
        assert found.schema.field("x").type == pa.bool_()


def test_a_table_of_arrow_has_truths_and_intervals():
    pa = pytest.importorskip("pyarrow")
    rows = rows_of("truths")
    truths = task_of(explainer_of(rows), rows.assign(id=0))
    cells = pa.table({"id": [1, 2], "salary": [1, 2], "age": [30, 40], "x": [True, None]})

    assert truths.arrow(cells).column("x").to_pylist() == [True, None]
    people = rows_of("unordered intervals")
    intervals = task_of(explainer_of(people), people.assign(id=0))
    table = intervals.frame(people.head(2).assign(id=0))
    assert set(arrow_table(table, intervals.arrow_schema).column("x").to_pylist()) == {"(-1, 3]"}


def test_columns_that_nobody_reads_may_hold_anything():
    rows = rows_of("truths")
    strange = rows.head(4).assign(id=range(4), z=np.array([1j] * 4), thing=[object()] * 4)

    found = explain(explainer_of(rows), strange, key="id", workers=1)

    assert found["id"].nunique() == 4


KEYS = {
    "periods": pd.Series(pd.period_range("2020-01", periods=4, freq="M")),
    "intervals": pd.Series(pd.IntervalIndex.from_breaks([0, 0.1, 0.25, 1, 2], closed="left")),
    "tuples": pd.Series([(1, 2), (1, 2.5), ("a", 1), ("", None)]),
    "texts": pd.Series(["", "a", "NA", " "]),
    "unsigned": pd.Series([0, 2**53 + 1, 2**63, 2**64 - 1], dtype="uint64"),
    "moments": pd.Series(
        pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-02 03:00", "2021"], format="ISO8601")
    ),
    "objects": pd.Series(
        [Decimal("1.50"), date(2020, 1, 1), datetime(2020, 1, 1), 7], dtype=object
    ),
    "levels": pd.Series(pd.cut([1, 2, 3, 4], 4)),
    "numbers": pd.Series([0.1, 0.1 + 1e-17 + 2e-17, 1e300, -2.0]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_dtype_are_texts_that_tell_people_apart(kind):
    rows, keys = rows_of("truths"), KEYS[kind]
    people = rows.head(4).assign(id=keys)

    found = [
        explain(explainer_of(rows), people, key="id", workers=1, block_rows=size)["id"]
        for size in (1, 4)
    ]

    pd.testing.assert_series_equal(*found)
    assert found[0].drop_duplicates().tolist() == [str(key) for key in keys]


@pytest.mark.parametrize("key", [object(), np.zeros(3)])
def test_a_key_without_a_text_is_refused(key):
    rows = rows_of("truths")
    people = rows.head(3).assign(id=pd.Series(["a", key, "b"], dtype=object))

    with pytest.raises(ReadError, match=r"Column 'id' .* row 2 .* has a text"):
        explain(explainer_of(rows), people, key="id", workers=1)


@pytest.mark.parametrize(
    ("column", "cells", "expected"),
    [
        ("salary", ["50", "60"], "a whole number that fits int64"),
        ("salary", [50, 50.5], "a whole number that fits int64"),
        ("salary", [1j, 2j], "a whole number that fits int64"),
        ("x", ["True", "False"], "true or false"),
    ],
)
def test_a_cell_of_another_type_is_refused_without_options_of_the_command_line(
    column, cells, expected
):
    rows = rows_of("truths")
    people = rows.head(2).assign(id=["a", "b"], **{column: pd.Series(cells)})

    with pytest.raises(ReadError, match=expected) as caught:
        explain(explainer_of(rows), people, key="id", workers=1)

    assert "convert the column" in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize("names", [[None, "index"], ["a", "a"], ["index1", None]])
def test_levels_of_an_index_need_names_of_their_own(names):
    rows = rows_of("truths")
    people = rows.head(2).set_axis(pd.MultiIndex.from_tuples([(1, 2), (3, 4)], names=names))

    with pytest.raises(ParameterError, match=r"several would be named .*rename the levels"):
        explain(explainer_of(rows), people, workers=1)


@pytest.mark.parametrize("block_rows", [0, 2.5, "2", True, None])
def test_a_block_has_a_whole_number_of_people(block_rows):
    rows = rows_of("truths")

    with pytest.raises(ParameterError, match="block_rows must be a whole number from 1"):
        explain(explainer_of(rows), rows, workers=1, block_rows=block_rows)


@given(st.lists(st.sampled_from(["NA", "null", "", "a", "None", "nan"]), min_size=1, max_size=6))
def test_texts_of_frames_never_mean_missing(cells):
    rows = pd.DataFrame({"x": ["a", "b"] * 20, "salary": range(40)})
    seen = []

    def score(frame):
        seen.append(frame["x"].tolist())
        return frame["salary"]

    explainer = MCCE(score, (30, 100), immutable=["x"], random_state=0).fit(rows)
    people = pd.DataFrame({"x": cells, "salary": 35})
    seen.clear()

    explain(explainer, people, workers=1)

    assert cells in seen
