"""Processes of one machine answer as one call does, and say what is wrong before they start."""

from __future__ import annotations

import os
import signal
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from joblib.externals import loky

from engine_cases import (
    assert_mistakes_are_named,
    assert_same_answers,
    constraints,
    explainer,
    load_deadly,
    load_predictor,
    one_call,
    people,
)
from mcce import MCCE
from mcce.errors import ParameterError, PredictorError, ReadError, WorkerError
from mcce.execution import explain

DAYS = [date(2020, 1, 1), date(2021, 5, 1), date(2022, 9, 1)]
LEVELS = [1, "a", 2.5]
FEATURES = {
    "float[pyarrow]": lambda at: pd.Series(at % 3 / 2, dtype="float[pyarrow]"),
    "string[pyarrow]": lambda at: pd.Series(list("abc"), dtype="string[pyarrow]").take(at % 3),
    "float32": lambda at: pd.Series(at % 3 / 10, dtype="float32"),
    "Float32": lambda at: pd.Series(at % 3 / 10, dtype="Float32"),
    "truths": lambda at: pd.Series([True, False, None], dtype=object).take(at % 3),
    "truths of numpy": lambda at: pd.Series([np.True_, np.False_], dtype=object).take(at % 2),
    "texts and NA": lambda at: pd.Series(["a", "b", pd.NA], dtype=object).take(at % 3),
    "intervals": lambda at: pd.Series(pd.cut(at % 9, [-1, 3, 6, 9])),
    "days": lambda at: pd.Series(pd.Categorical([DAYS[place % 3] for place in at])),
    "moments": lambda at: pd.Series(pd.Categorical(pd.to_datetime(DAYS).take(at % 3))),
    "several types": lambda at: pd.Series(
        pd.Categorical([LEVELS[n % 3] for n in at], LEVELS, True)
    ),
}
KEYS = {
    "periods": pd.period_range("2020-01", periods=4, freq="M"),
    "intervals": pd.IntervalIndex.from_breaks([0, 0.1, 0.25, 1, 2], closed="left"),
    "tuples": [(1, 2), (1, 2.5), ("a", 1), ("", None)],
    "texts": ["", "a", "NA", " "],
    "unsigned": np.array([0, 2**53 + 1, 2**63, 2**64 - 1], dtype="uint64"),
    "moments": pd.to_datetime(
        ["2020-01-01", "2020-01-02", "2020-01-02 03:00", "2021"], format="ISO8601"
    ),
    "objects": [Decimal("1.50"), date(2020, 1, 1), datetime(2020, 1, 1), 7],
    "numbers": [0.1, 0.1 + 1e-17 + 2e-17, 1e300, -2.0],
}


def rows_of(kind: str = "truths") -> pd.DataFrame:
    at = np.arange(60)
    cells = FEATURES[kind](at).reset_index(drop=True)
    return pd.DataFrame({"x": cells, "salary": at * 7 % 60, "age": 20 + at * 11 % 40})


def explainer_of(rows: pd.DataFrame) -> MCCE:
    model = MCCE(lambda frame: frame["salary"], (40, 100), immutable=["x"], random_state=0)
    model.set_params(search="paper")
    return model.fit(rows)


@pytest.mark.slow
def test_answers_are_those_of_one_call():
    rows = people(40)
    options = {"key": "customer", "constraints": constraints(), "workers": 2, "block_rows": 15}

    found = explain(explainer(), rows, load_predictor=load_predictor, **options)

    assert_same_answers(found, one_call("paper", rows))
    assert found["customer"].drop_duplicates().tolist() == rows["customer"].tolist()


@pytest.mark.slow
def test_workers_that_die_change_nothing(tmp_path):
    rows = people(60)
    options = {"key": "customer", "constraints": constraints(), "workers": 2, "block_rows": 10}

    found = explain(explainer(), rows, load_predictor=load_deadly(tmp_path, 1), **options)

    assert_same_answers(found, one_call("paper", rows))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_answers_do_not_depend_on_blocks():
    rows = people(12)
    expected = one_call("paper", rows)

    for size in (1, 5, 1000):
        options = {"constraints": constraints(), "workers": 1, "block_rows": size}
        found = explain(explainer(), rows, key="customer", **options)
        assert_same_answers(found, expected)


def test_codes_of_new_levels_do_not_depend_on_blocks():
    def score(frame):
        return frame["salary"] + 100 * frame["home"].cat.codes.astype(int)

    bank = pd.DataFrame(
        {"home": pd.Categorical(["rent", "own"] * 20), "salary": range(40), "age": [30, 40] * 20}
    )
    model = MCCE(score, (120, 500), immutable=["home"], random_state=0).fit(bank)
    homes = ["tent", "ship", "own", "ship", None, "tent"]
    rows = bank.head(6).assign(home=pd.Categorical(homes, ["rent", "own", "tent", "ship"]))

    alone, together = (explain(model, rows, workers=1, block_rows=size) for size in (1, 6))

    pd.testing.assert_frame_equal(alone, together)
    scores = together.groupby("index")["score_before"].first()
    # Categories of training are sorted, and a new level is the third.
    assert scores.tolist() == [200, 201, 2, 203, -96, 205]


def test_people_are_named_by_columns_or_by_their_index():
    rows = people(6).assign(branch=["north", "south"] * 3)

    by_two = explain(explainer(), rows, key=["branch", "customer"], workers=1)
    labelled = rows.drop(columns="customer").set_axis(list("abcdef"))
    by_index = explain(explainer(), labelled, workers=1)
    nobody = explain(explainer(), rows.head(0), key=["branch", "customer"], workers=1)

    assert list(by_two)[:2] == ["branch", "customer"]
    assert by_index["index"].drop_duplicates().tolist() == list("abcdef")
    pd.testing.assert_series_equal(nobody.dtypes, by_two.dtypes)
    assert nobody.empty


def test_mistakes_are_named_before_anything_runs():
    assert_mistakes_are_named(explain, lambda rows: rows)
    rows = people(3)
    unkeyed = rows.drop(columns="customer")
    twice = pd.MultiIndex.from_tuples([(1, 2), (3, 4), (5, 6)], names=["a", "a"])
    mistakes = [
        ("block_rows must be a whole number from 1", {"block_rows": 0}),
        ("block_rows must be a whole number from 1", {"block_rows": 2.5}),
        ("number of workers must be at least 1", {"workers": 0}),
        ("Name the columns that", {"people": unkeyed.rename_axis(index="Age"), "key": None}),
        ("several would be named", {"people": unkeyed.set_axis(twice), "key": None}),
    ]
    for words, change in mistakes:
        options = {"people": rows, "key": "customer", "workers": 1} | change
        with pytest.raises(ParameterError, match=words):
            explain(explainer(), options.pop("people"), **options)
    with pytest.raises(ReadError, match="several columns of one name"):
        explain(explainer(), pd.concat([rows, rows[["Duration"]]], axis=1), key="customer")
    other = {"load_predictor": lambda: lambda rows: rows["Age"] / 100}
    with pytest.raises(PredictorError, match="probe"):
        explain(explainer(), rows, key="customer", workers=1, **other)


def test_what_explain_takes_engines_take():
    for kind in FEATURES:
        rows = rows_of(kind)
        fitted = explainer_of(rows)
        some = rows.head(9)
        result = fitted.explain(some)
        strange = some.assign(id=range(9), z=np.array([1j] * 9), thing=[object()] * 9)

        found = explain(fitted, strange, key="id", workers=1, block_rows=4)

        answered = found[found["status"] == "answered"]
        assert answered["id"].tolist() == result.owner.tolist(), kind
        for name in rows:
            theirs = result.frame[name]
            assert answered[name].isna().tolist() == theirs.isna().tolist(), kind
            assert answered[name].dropna().tolist() == theirs.dropna().tolist(), kind


def test_keys_of_any_dtype_are_texts_that_tell_people_apart():
    rows = rows_of()
    fitted = explainer_of(rows)
    for kind, cells in KEYS.items():
        keys = pd.Series(cells, dtype=object if kind in ("tuples", "objects") else None)
        given = rows.head(4).assign(id=keys)

        found = [
            explain(fitted, given, key="id", workers=1, block_rows=size)["id"] for size in (1, 4)
        ]

        pd.testing.assert_series_equal(*found)
        assert found[0].drop_duplicates().tolist() == [str(key) for key in keys], kind
    given = rows.head(3).assign(id=pd.Series(["a", object(), "b"], dtype=object))
    with pytest.raises(ReadError, match=r"Column 'id' .* row 2 .* has a text"):
        explain(fitted, given, key="id", workers=1)


def test_a_cell_of_another_type_is_refused_without_options_of_the_command_line():
    rows = rows_of()
    fitted = explainer_of(rows)
    for column, cells, expected in [
        ("salary", ["50", "60"], "a whole number that fits int64"),
        ("salary", [50, 50.5], "a whole number that fits int64"),
        ("x", ["True", "False"], "true or false"),
    ]:
        given = rows.head(2).assign(id=["a", "b"], **{column: pd.Series(cells)})
        with pytest.raises(ReadError, match=f"Column '{column}' of 'the people'") as caught:
            explain(fitted, given, key="id", workers=1)
        assert expected in str(caught.value)
        assert "convert the column" in str(caught.value)
        assert "--" not in str(caught.value)


def test_texts_of_frames_never_mean_missing():
    rows = pd.DataFrame({"x": ["a", "b"] * 20, "salary": range(40)})
    cells, seen = ["NA", "null", "", "a", "None", "nan"], []

    def score(frame):
        seen.append(frame["x"].tolist())
        return frame["salary"]

    fitted = MCCE(score, (30, 100), immutable=["x"], random_state=0).fit(rows)
    explain(fitted, pd.DataFrame({"x": cells, "salary": 35}), workers=1)

    assert cells in seen


@pytest.mark.slow
def test_a_block_that_kills_every_worker_is_an_error():
    def score(frame):
        return os._exit(3) if frame["age"].eq(99).any() else frame["salary"]

    bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    fitted = MCCE(score, (70, 100), immutable=["age"], random_state=0).fit(bank)

    with pytest.raises(WorkerError, match="ran out of memory, or the predictor ended its process"):
        explain(fitted, bank[:3].assign(age=[25, 99, 36]), workers=2, block_rows=1)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_while_processes_start_ends_the_run(monkeypatch):
    started = []

    def interrupted(self, task, *_):
        assert not started, "the run went on"
        started.append(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(loky.ProcessPoolExecutor, "submit", interrupted)

    with pytest.raises(KeyboardInterrupt):
        explain(explainer(), people(4), key="customer", workers=2, load_predictor=load_predictor)
