"""Results in notebooks and for JSON: HTML tables, styles and plain records."""

from __future__ import annotations

import datetime
import json
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import Counterfactuals, MissingExtraError, ParameterError, Schema, SchemaError
from mcce.counterfactuals.html import MAX_COLUMNS, MAX_ROWS
from mcce.counterfactuals.records import plain_value
from mcce.predictors import make_decision

TRAIN = pd.DataFrame(
    {
        "salary": [100.0, 200.0, 600.0, np.nan],
        "housing": pd.Categorical(["rent", "own", "rent", None]),
        "since": pd.to_datetime(["2020-01-01", "2021-05-06", None, "2022-02-03"]),
        "wait": pd.to_timedelta([1, 2, 3, None], "D"),
        "member": pd.array([True, False, None, True], dtype="boolean"),
    }
)


def make_result(people, answers, owner=None, train=TRAIN):
    decision = make_decision(lambda frame: frame["salary"].to_numpy(float) >= 500, (0.5, 1.0))
    return Counterfactuals.from_frame(
        people, answers, schema=Schema.learn(train), decision=decision, owner=owner
    )


@pytest.fixture
def result():
    """Two answers for the first person, none for the second."""
    answers = TRAIN.iloc[[2, 2]].assign(housing=pd.Categorical(["own", "rent"]))
    return make_result(TRAIN.iloc[[0, 1]].set_axis(["a", "b"]), answers, owner=[0, 0])


class Cells(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self.marked = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.marked.append("style" in dict(attrs))

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


def test_a_result_is_a_table_with_changes_marked(result):
    page = Cells(result._repr_html_())

    head = ["person", "row", "salary", "housing", "since", "wait", "member"]
    assert page.cells[:7] == head
    assert page.cells[7:10] == ["a", "now", "100.0"]
    assert page.cells[14:18] == ["", "answer 1", "600.0", "own"]
    assert page.marked[14:21] == [False, False, True, True, True, True, True]
    assert page.marked[21:25] == [False, False, True, False]


@pytest.mark.parametrize("nasty", ["<script>alert(1)</script>", "\" onload='x'", "&lt;b&gt;"])
def test_everything_in_the_table_is_escaped(nasty):
    train = pd.DataFrame({nasty: [nasty, "b"], "salary": [100, 600]})
    people = train.iloc[[0]].set_axis([nasty])
    shown = make_result(people, train.iloc[[1]].set_axis([nasty]), train=train)._repr_html_()

    page = Cells(shown)

    assert set(page.tags) <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.cells.count(nasty) == 3
    assert "<script" not in shown


def test_the_table_has_bounds():
    n_people, n_columns = 100, 40
    train = pd.DataFrame({f"x{j}": np.arange(2.0) for j in range(n_columns)})
    train = train.assign(salary=[100, 600], text=["y" * 10_000, "z"])
    people = train.iloc[np.zeros(n_people, dtype=int)].reset_index(drop=True)
    shown = make_result(people, people.assign(salary=600), train=train)._repr_html_()

    page = Cells(shown)

    assert page.tags.count("tr") - 1 <= MAX_ROWS
    assert len(page.cells) == page.tags.count("tr") * (MAX_COLUMNS + 2)
    assert "salary" in page.cells
    assert "Not shown: 85 more counterfactuals and 27 more columns." in shown
    assert len(shown) < 60_000


def test_a_result_without_answers_is_no_table(result):
    nobody = make_result(TRAIN.iloc[[0]], TRAIN.iloc[:0], owner=np.empty(0, dtype=int))

    assert "<table>" not in nobody._repr_html_()
    assert "1 no answer" in nobody._repr_html_()


def test_records_are_plain_and_complete(result):
    first, second = json.loads(json.dumps(result.to_dict("records"), allow_nan=False))

    assert first["factual"] == "a"
    assert first["person"] == {
        "salary": 100.0,
        "housing": "rent",
        "since": "2020-01-01T00:00:00",
        "wait": "P1DT0H0M0S",
        "member": True,
    }
    best = first["counterfactuals"][0]
    assert best["rank"] == 1
    assert best["row"]["since"] is None
    assert best["measures"]["sparsity"] == 5
    assert best["changes"][0] == {
        "feature": "salary",
        "before": 100.0,
        "after": 600.0,
        "kind": "action",
    }
    assert second["status"] == "no answer"
    assert second["counterfactuals"] == []
    assert second["nearest_sparsity"] is None


def test_records_belong_to_their_person_where_labels_repeat():
    people = TRAIN.iloc[[0, 1]].set_axis(["same", "same"])
    result = make_result(people, TRAIN.iloc[[2, 2]], owner=[0, 1])

    first, second = result.to_dict()

    assert first["counterfactuals"][0]["changes"][0]["before"] == 100.0
    assert second["counterfactuals"][0]["changes"][0]["before"] == 200.0


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        (np.float32(0.5), 0.5),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.datetime64("2024-01-02"), "2024-01-02T00:00:00"),
        (np.timedelta64(2, "D"), "P2DT0H0M0S"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.timedelta(hours=1), "P0DT3600.000000S"),
        (pd.Timestamp("2024-01-02", tz="UTC"), "2024-01-02T00:00:00+00:00"),
        (float("nan"), None),
        (float("-inf"), "-Infinity"),
        (("a", np.int64(1)), ["a", 1]),
        (pd.Interval(0, 1), "(0, 1]"),
        (pd.NaT, None),
        (b"\xff", "b'\\xff'"),
    ],
)
def test_cells_become_types_of_json(cell, plain):
    assert plain_value(cell) == plain
    assert type(plain_value(cell)) is type(plain)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
        | st.datetimes() | st.dates() | st.timedeltas() | st.decimals() | st.fractions(),
        lambda inner: st.lists(inner, max_size=3) | st.tuples(inner),
        max_leaves=4,
    )
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_json_takes_any_plain_value(value):
    json.dumps(plain_value(value), allow_nan=False)


def test_names_that_agree_as_strings_are_refused():
    train = pd.DataFrame({1: [1, 2], "1": [1, 2], "salary": [100, 600]})
    result = make_result(train.iloc[[0]], train.iloc[[1]].set_axis([0]), train=train)

    with pytest.raises(SchemaError, match="same name once names are strings"):
        result.to_dict()


def test_other_orients_are_refused(result):
    with pytest.raises(ParameterError, match='orient must be one of "records"'):
        result.to_dict("split")


def test_the_styler_of_pandas_marks_changes_and_escapes():
    pytest.importorskip("jinja2")
    train = pd.DataFrame({"<i>": ["<b>x</b>", "b"], "salary": [100, 600], "same": [1, 1]})
    result = make_result(train.iloc[[0]], train.iloc[[1]].set_axis([0]), train=train)

    page = result.style().to_html()

    assert "<i>" not in page
    assert "<b>" not in page
    # One rule of CSS for the two changed cells.
    assert page.count("font-weight: bold") == 1
    assert "#T_" in page.split("font-weight")[0]


def test_labels_that_repeat_can_be_styled():
    pytest.importorskip("jinja2")
    people = TRAIN.iloc[[0, 1]].set_axis(["same", "same"])
    styler = make_result(people, TRAIN.iloc[[2, 2]], owner=[0, 1]).style()

    assert styler.index.names == ["position", "factual", "rank"]
    assert "same" in styler.to_html()


def test_without_jinja2_the_extra_is_named(result, monkeypatch):
    def absent(self):
        raise AttributeError("The '.style' accessor requires jinja2")

    monkeypatch.setattr(pd.DataFrame, "style", property(absent))

    with pytest.raises(MissingExtraError, match=r"mcce\[report\]"):
        result.style()


def test_polars_results_are_great_tables():
    pytest.importorskip("great_tables")
    polars = pytest.importorskip("polars")
    train = polars.DataFrame({"<i>": ["<b>x</b>", "b"], "salary": [100, 600], "rank": [1, 1]})
    decision = make_decision(lambda frame: frame["salary"].to_numpy() >= 500, (0.5, 1.0))
    result = Counterfactuals.from_frame(
        train[:1], train[1:], schema=Schema.learn(train), decision=decision
    )

    page = result.style().as_raw_html()

    assert "<i>" not in page
    assert "<b>" not in page
    assert page.count("font-weight: bold; background-color") + page.count("#f8e2b3") >= 2
    assert ">rank_<" in page


def test_without_great_tables_the_extra_is_named(monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, "great_tables", None)
    people, answers = polars.from_pandas(TRAIN[:1]), polars.from_pandas(TRAIN[2:3])

    with pytest.raises(MissingExtraError, match=r"mcce\[style\]"):
        make_result(people, answers).style()
