"""Results: answers of any method as a frame, and what notebooks and JSON get of them."""

from __future__ import annotations

import datetime
import json
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import MCCE, Counterfactuals, MissingExtraError, Schema, SchemaError
from mcce.predictors import make_decision

TRAINING = pd.DataFrame({"age": [20, 40, 60], "job": ["a", "b", "a"], "salary": [30, 50, 70]})
PEOPLE = pd.DataFrame(
    {"age": [25, 35, 50], "job": ["a", "a", "b"], "salary": [40, 45, 70]}, index=["x", "y", "z"]
)
NO_ANSWER = {"age": None, "job": None, "salary": None}
GOOD = {"age": 25, "job": "b", "salary": 60}


def salary(frame):
    return np.asarray(frame["salary"], dtype=float)


def from_frame(people, answers, *, training=TRAINING, desired=(55, 100), **given):
    rows = Schema.learn_rows(training)
    decision = make_decision(salary, desired, adapter=rows.adapter)
    return Counterfactuals.from_frame(
        people, answers, schema=rows.schema, decision=decision, **given
    )


def answers_of(*rows):
    return pd.DataFrame(list(rows))


def test_answers_are_measured_and_everybody_is_accounted_for():
    result = from_frame(PEOPLE, answers_of(GOOD, NO_ANSWER, GOOD), reasons={1: "too hard"})

    assert result.people["status"].tolist() == ["answered", "no answer", "already desired"]
    assert result.people["reason"].tolist() == ["", "too hard", ""]
    assert result.people["reason_kind"].tolist() == ["", "unknown", ""]
    assert result.people["n_counterfactuals"].tolist() == [1, 0, 0]
    assert result.frame.index.tolist() == [("x", 1)]
    measured = result.measures.iloc[0].to_dict()
    # Job differs, and salary by 20 of a range of 40: 1 + 1/2, and a third of it.
    assert (measured["score"], measured["sparsity"], measured["l1"]) == (60, 2, 1.5)
    assert measured["gower"] == 0.5
    assert measured["valid"]


def test_answers_come_back_in_the_dtypes_and_column_order_of_the_people():
    people = PEOPLE[["salary", "age", "job"]]

    result = from_frame(people, answers_of(GOOD, NO_ANSWER, NO_ANSWER))
    widened = from_frame(people, answers_of(GOOD | {"salary": 60.5}, NO_ANSWER, NO_ANSWER))

    assert result.frame.columns.tolist() == ["salary", "age", "job"]
    assert (result.frame.dtypes == people.dtypes).all()
    pd.testing.assert_frame_equal(result.factuals, people, check_names=False)
    assert widened.frame["salary"].tolist() == [60.5]
    assert widened.frame["age"].dtype == np.int64


def test_several_answers_of_a_person_are_ranked_as_they_come_and_refused_ones_are_marked():
    rows = answers_of(*({"age": 25, "job": "a", "salary": s} for s in (60, 90, 50, 70)))

    result = from_frame(PEOPLE, rows, owner=[1, 0, 1, 0])

    assert result.owner.tolist() == [0, 0, 1, 1]
    assert result.frame["salary"].tolist() == [90, 70, 60, 50]
    assert result.frame.index.get_level_values("rank").tolist() == [1, 2, 1, 2]
    assert result.measures["valid"].tolist() == [True, True, True, False]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_the_result_comes_in_the_kind_of_frame_of_the_people(kind):
    pa = pytest.importorskip("pyarrow")

    def convert(frame):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return pytest.importorskip("polars").from_arrow(table) if kind == "polars" else table

    answers = convert(answers_of(GOOD, NO_ANSWER, NO_ANSWER))

    result = from_frame(convert(PEOPLE), answers, training=convert(TRAINING))

    assert type(result.frame) is type(result.changes()) is type(convert(PEOPLE))
    assert result.frame.shape == (1, 3)
    assert result.to_pandas().measures["l1"].tolist() == [1.5]


def test_answers_of_mcce_are_measured_as_mcce_measures_them():
    chance = np.random.default_rng(0)
    training = pd.DataFrame(
        {
            "age": chance.integers(20, 60, 200),
            "job": chance.choice(["a", "b", "c"], 200),
            "salary": chance.integers(20, 90, 200),
        }
    )
    explainer = MCCE(salary, (55, 100), immutable=["age"], search="paper", n_counterfactuals=2)
    ours = (
        explainer.set_params(n_samples=100, random_state=0).fit(training).explain(training.head(30))
    )

    theirs = Counterfactuals.from_frame(
        training.head(30),
        ours.frame.reset_index(drop=True),
        schema=explainer.schema_,
        decision=explainer.decision_,
        owner=ours.owner,
    )

    pd.testing.assert_frame_equal(theirs.frame, ours.frame)
    theirs_too = theirs.measures.drop(columns="valid")
    pd.testing.assert_frame_equal(theirs_too, ours.measures[theirs_too.columns])
    assert theirs.people["status"].tolist() == ours.people["status"].tolist()


def test_answers_that_do_not_fit_the_people_are_refused():
    for frame, owner, message in [
        (answers_of(GOOD), None, "3 people but 1 rows of answers"),
        (answers_of(GOOD), [5], "positions of people from 0 to 2, got 5 to 5"),
        (answers_of(GOOD), [0.5], "one whole number per row of answers"),
        (answers_of(GOOD, GOOD), [0], r"shape \(2,\), got shape \(1,\)"),
        (answers_of(GOOD).drop(columns="job"), [0], r"missing \['job'\]"),
        (answers_of(GOOD, GOOD, GOOD).set_axis(["z", "y", "x"]), None, "in another order"),
    ]:
        with pytest.raises(SchemaError, match=message):
            from_frame(PEOPLE, frame, owner=owner)
    for labels in (["a", "b", "c"], ["x", "y", "other"], [3.5, None, 1.0]):
        from_frame(PEOPLE, answers_of(GOOD, GOOD, GOOD).set_axis(labels))


MIXED = pd.DataFrame(
    {
        "salary": [100.0, 200.0, 600.0, np.nan],
        "housing": pd.Categorical(["rent", "own", "rent", None]),
        "since": pd.to_datetime(["2020-01-01", "2021-05-06", None, "2022-02-03"]),
        "wait": pd.to_timedelta([1, 2, 3, None], "D"),
        "member": pd.array([True, False, None, True], dtype="boolean"),
    }
)


def shown(people, answers, owner=None, train=MIXED):
    return from_frame(people, answers, training=train, desired=(500, 999), owner=owner)


@pytest.fixture
def result():
    """Two answers for the first person, none for the second."""
    answers = MIXED.iloc[[2, 2]].assign(housing=pd.Categorical(["own", "rent"]))
    return shown(MIXED.iloc[[0, 1]].set_axis(["a", "b"]), answers, owner=[0, 0])


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


def test_everything_in_the_table_is_escaped():
    for nasty in ("<script>alert(1)</script>", "\" onload='x'", "&lt;b&gt;"):
        train = pd.DataFrame({nasty: [nasty, "b"], "salary": [100, 600]})
        people = train.iloc[[0]].set_axis([nasty])
        html = shown(people, train.iloc[[1]].set_axis([nasty]), train=train)._repr_html_()

        page = Cells(html)

        assert set(page.tags) <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
        assert page.cells.count(nasty) == 3
        assert "<script" not in html


def test_the_table_has_bounds_and_none_is_drawn_of_nothing():
    train = pd.DataFrame({f"x{j}": np.arange(2.0) for j in range(40)})
    train = train.assign(salary=[100, 600], text=["y" * 10_000, "z"])
    people = train.iloc[np.zeros(100, dtype=int)].reset_index(drop=True)

    html = shown(people, people.assign(salary=600), train=train)._repr_html_()
    nobody = shown(MIXED.iloc[[0]], MIXED.iloc[:0], owner=np.empty(0, dtype=int))._repr_html_()

    page = Cells(html)
    assert page.tags.count("tr") <= 50
    assert "salary" in page.cells
    assert "Not shown: 85 more counterfactuals and 27 more columns." in html
    assert len(html) < 60_000
    assert "<table>" not in nobody
    assert "1 no answer" in nobody


def test_records_are_plain_and_complete(result):
    first, second = json.loads(json.dumps(result.to_dict(), allow_nan=False))

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
    changed = {"feature": "salary", "before": 100.0, "after": 600.0, "kind": "action"}
    assert best["changes"][0] == changed
    assert (second["status"], second["counterfactuals"]) == ("no answer", [])
    assert second["nearest_sparsity"] is None


def test_records_and_styles_belong_to_their_person_where_labels_repeat():
    pytest.importorskip("jinja2")
    people = MIXED.iloc[[0, 1]].set_axis(["same", "same"])
    result = shown(people, MIXED.iloc[[2, 2]], owner=[0, 1])

    first, second = result.to_dict()

    assert first["counterfactuals"][0]["changes"][0]["before"] == 100.0
    assert second["counterfactuals"][0]["changes"][0]["before"] == 200.0
    styler = result.style()
    assert styler.index.names == ["position", "factual", "rank"]
    assert "same" in styler.to_html()


LABELS = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    st.dates() | st.datetimes() | st.timedeltas() | st.decimals() | st.tuples(st.floats()),
)


@given(LABELS)
def test_json_takes_the_label_of_any_person(label):
    people = PEOPLE.head(1).set_axis(pd.Index([label], dtype=object, tupleize_cols=False))
    result = from_frame(people, answers_of(NO_ANSWER))

    (person,) = json.loads(json.dumps(result.to_dict(), allow_nan=False))

    assert person["status"] == "no answer"


def test_labels_become_types_of_json():
    for label, plain in [
        (np.float32(0.5), 0.5),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.datetime64("2024-01-02"), "2024-01-02T00:00:00"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (pd.Timestamp("2024-01-02", tz="UTC"), "2024-01-02T00:00:00+00:00"),
        (float("-inf"), "-Infinity"),
        (pd.Interval(0, 1), "(0, 1]"),
        (pd.NaT, None),
        (b"\xff", "b'\\xff'"),
    ]:
        people = PEOPLE.head(1).set_axis(pd.Index([label], dtype=object))

        (person,) = from_frame(people, answers_of(NO_ANSWER)).to_dict()

        assert person["factual"] == plain
        assert type(person["factual"]) is type(plain)


def test_names_that_agree_as_strings_are_refused():
    train = pd.DataFrame({1: [1, 2], "1": [1, 2], "salary": [100, 600]})
    result = shown(train.iloc[[0]], train.iloc[[1]].set_axis([0]), train=train)

    with pytest.raises(SchemaError, match="same name once names are strings"):
        result.to_dict()


def test_the_styler_of_pandas_marks_changes_and_escapes(result, monkeypatch):
    pytest.importorskip("jinja2")
    train = pd.DataFrame({"<i>": ["<b>x</b>", "b"], "salary": [100, 600], "same": [1, 1]})
    page = shown(train.iloc[[0]], train.iloc[[1]].set_axis([0]), train=train).style().to_html()

    assert "<i>" not in page
    assert "<b>" not in page
    # One rule of CSS for the two changed cells.
    assert page.count("font-weight: bold") == 1
    assert "#T_" in page.split("font-weight")[0]

    def absent(self):
        raise AttributeError("The '.style' accessor requires jinja2")

    monkeypatch.setattr(pd.DataFrame, "style", property(absent))
    with pytest.raises(MissingExtraError, match=r"\.\[report\]"):
        result.style()


def test_results_in_polars_are_great_tables(monkeypatch):
    pytest.importorskip("great_tables")
    polars = pytest.importorskip("polars")
    train = polars.DataFrame({"<i>": ["<b>x</b>", "b"], "salary": [100, 600], "rank": [1, 1]})
    result = shown(train[:1], train[1:], train=train)

    page = result.style().as_raw_html()

    assert "<i>" not in page
    assert "<b>" not in page
    assert page.count("font-weight: bold; background-color") + page.count("#f8e2b3") >= 2
    assert ">rank_<" in page
    monkeypatch.setitem(sys.modules, "great_tables", None)
    with pytest.raises(MissingExtraError, match=r"\.\[style\]"):
        result.style()
