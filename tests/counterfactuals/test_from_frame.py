"""Any method can return our result: answers as a frame, in every kind of frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mcce
from mcce import MCCE, Counterfactuals, Schema, SchemaError
from mcce.predictors.desired import make_decision

TRAINING = pd.DataFrame({"age": [20, 40, 60], "job": ["a", "b", "a"], "salary": [30, 50, 70]})
PEOPLE = pd.DataFrame(
    {"age": [25, 35, 50], "job": ["a", "a", "b"], "salary": [40, 45, 70]}, index=["x", "y", "z"]
)
NO_ANSWER = {"age": None, "job": None, "salary": None}


def salary(frame):
    return frame["salary"].to_numpy()


def from_frame(people, answers, *, training=TRAINING, **given):
    rows = Schema.learn_rows(training, immutable=["age"])
    decision = make_decision(salary, (55, 100), adapter=rows.adapter)
    return Counterfactuals.from_frame(
        people, answers, schema=rows.schema, decision=decision, **given
    )


def answers_of(*rows):
    return pd.DataFrame(list(rows))


GOOD = {"age": 25, "job": "b", "salary": 60}


def test_answers_are_measured_and_everybody_is_accounted_for():
    result = from_frame(PEOPLE, answers_of(GOOD, NO_ANSWER, NO_ANSWER), reasons={1: "too hard"})

    assert result.people["status"].tolist() == ["answered", "no answer", "already desired"]
    assert result.people["reason"].tolist() == ["", "too hard", ""]
    assert result.frame.index.tolist() == [("x", 1)]
    measured = result.measures.iloc[0].to_dict()
    assert measured["score"] == 60
    assert measured["sparsity"] == 2
    assert measured["l1"] == 1.5
    assert measured["gower"] == 0.5
    assert measured["valid"]


def test_answers_come_back_in_the_dtypes_and_column_order_of_the_people():
    people = PEOPLE[["salary", "age", "job"]]

    result = from_frame(people, answers_of(GOOD, NO_ANSWER, NO_ANSWER))

    assert result.frame.columns.tolist() == ["salary", "age", "job"]
    assert (result.frame.dtypes == people.dtypes).all()
    pd.testing.assert_frame_equal(result.factuals, people, check_names=False)


def test_a_column_is_widened_where_the_people_cannot_hold_an_answer():
    result = from_frame(PEOPLE, answers_of(GOOD | {"salary": 60.5}, NO_ANSWER, NO_ANSWER))

    assert result.frame["salary"].tolist() == [60.5]
    assert result.frame["age"].dtype == np.int64


def test_an_answer_that_the_predictor_refuses_is_kept_and_marked():
    result = from_frame(PEOPLE, answers_of(GOOD, GOOD | {"salary": 50}, NO_ANSWER))

    assert result.measures["valid"].tolist() == [True, False]


def test_several_answers_of_a_person_are_ranked_as_they_come():
    rows = answers_of(*({"age": 25, "job": "a", "salary": s} for s in (60, 90, 80, 70)))

    result = from_frame(PEOPLE, rows, owner=[1, 0, 1, 0])

    assert result.owner.tolist() == [0, 0, 1, 1]
    assert result.frame["salary"].tolist() == [90, 70, 60, 80]
    assert result.frame.index.get_level_values("rank").tolist() == [1, 2, 1, 2]


def test_an_answer_for_somebody_already_desired_is_left_out():
    result = from_frame(PEOPLE, answers_of(NO_ANSWER, NO_ANSWER, GOOD))

    assert len(result.frame) == 0
    assert result.people["n_counterfactuals"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_the_result_comes_in_the_kind_of_frame_of_the_people(kind):
    def convert(frame):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return pytest.importorskip("polars").from_arrow(table) if kind == "polars" else table

    answers = answers_of(GOOD, NO_ANSWER, NO_ANSWER)

    result = from_frame(convert(PEOPLE), convert(answers), training=convert(TRAINING))

    assert type(result.frame) is type(convert(PEOPLE))
    assert result.frame.shape == (1, 3)
    assert type(result.changes()) is type(convert(PEOPLE))
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
    explainer = MCCE(salary, (55, 100), immutable=["age"], n_counterfactuals=2, random_state=0)
    ours = explainer.fit(training).explain(training.head(30))

    theirs = Counterfactuals.from_frame(
        training.head(30),
        ours.frame.reset_index(drop=True),
        schema=explainer.schema_,
        decision=explainer.decision_,
        owner=ours.owner,
    )

    pd.testing.assert_frame_equal(theirs.frame, ours.frame)
    pd.testing.assert_frame_equal(theirs.measures.drop(columns="valid"), ours.measures)
    assert theirs.people["status"].tolist() == ours.people["status"].tolist()
    assert mcce.metrics.coverage(training.head(30), theirs) == 1


@pytest.mark.parametrize(
    ("frame", "owner", "message"),
    [
        (answers_of(GOOD), None, "3 people but 1 rows of answers"),
        (answers_of(GOOD), [5], "positions of people from 0 to 2, got 5 to 5"),
        (answers_of(GOOD), [0.5], "one whole number per row of answers"),
        (answers_of(GOOD, GOOD), [0], r"shape \(2,\), got shape \(1,\)"),
        (answers_of(GOOD).drop(columns="job"), [0], r"missing \['job'\]"),
        (answers_of(GOOD, GOOD, GOOD).set_axis(["z", "y", "x"]), None, "in another order"),
    ],
)
def test_answers_that_do_not_fit_the_people_are_refused(frame, owner, message):
    with pytest.raises(SchemaError, match=message):
        from_frame(PEOPLE, frame, owner=owner)
