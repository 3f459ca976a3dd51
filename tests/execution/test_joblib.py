"""Processes of one machine answer as one call does, and say what is wrong before they start."""

from __future__ import annotations

import os
import signal
from concurrent.futures.process import BrokenProcessPool
from datetime import date, datetime
from decimal import Decimal

import pandas as pd
import pytest

from engine_cases import (
    SEARCHES,
    assert_only_the_deadly_are_lost,
    assert_same_answers,
    constraints,
    deadly,
    explainer,
    load_predictor,
    one_call,
    people,
)
from mcce import MCCE
from mcce.errors import ParameterError, PredictorError, ReadError, SchemaError, WorkerError
from mcce.execution.executor import find_executor, run_all
from mcce.execution.joblib import JoblibExecutor, explain


@pytest.mark.parametrize("search", SEARCHES)
def test_answers_are_those_of_one_call(search):
    rows = people(SEARCHES[search])

    found = explain(
        explainer(search),
        rows,
        load_predictor=load_predictor,
        key="customer",
        constraints=constraints(),
        workers=2,
        block_rows=25,
    )

    assert_same_answers(found, one_call(search, rows))
    assert found["customer"].drop_duplicates().tolist() == rows["customer"].tolist()


@pytest.mark.parametrize("block_rows", [1, 7, 1000])
def test_answers_do_not_depend_on_blocks(block_rows):
    rows = people(30)

    found = explain(
        explainer(),
        rows,
        key="customer",
        constraints=constraints(),
        workers=1,
        block_rows=block_rows,
    )

    assert_same_answers(found, one_call("paper", rows))


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


def test_whole_numbers_of_answers_are_compared_exactly():
    ours, theirs = (
        pd.DataFrame({"customer": [1], "rank": [1], "x": [2**53 + more]}) for more in (0, 1)
    )

    with pytest.raises(AssertionError):
        assert_same_answers(ours, theirs)
    assert_same_answers(ours, ours.astype({"x": float}))


def test_without_a_key_people_have_the_labels_of_their_index():
    rows = people(6).drop(columns="customer").set_axis(list("abcdef"))

    found = explain(explainer(), rows, workers=1)

    assert found["index"].drop_duplicates().tolist() == list("abcdef")


def test_several_columns_can_be_the_key():
    rows = people(6).assign(branch=["north", "south"] * 3)

    found = explain(explainer(), rows, key=["branch", "customer"], workers=1)

    assert list(found)[:2] == ["branch", "customer"]
    assert found["branch"].dtype == object


def test_nobody_has_the_columns_of_everybody():
    rows = people(20)

    nobody = explain(explainer(), rows.head(0), key="customer", workers=1)
    everybody = explain(explainer(), rows, key="customer", workers=1)

    pd.testing.assert_series_equal(nobody.dtypes, everybody.dtypes)
    assert nobody.empty


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"key": "number"}, SchemaError, "lacks the columns"),
        ({"key": ()}, ParameterError, "key must name"),
        ({"key": "Age"}, ParameterError, "features already"),
        ({"block_rows": 0}, ParameterError, "block_rows must be a whole number"),
        ({"workers": 0}, ParameterError, "number of workers must be at least 1"),
        ({"load_predictor": "model"}, ParameterError, "load_predictor must be a function"),
        ({"load_predictor": lambda: lambda rows: rows["Age"] / 100}, PredictorError, "probe"),
        ({"people": [1, 2]}, ParameterError, "people must be a pandas frame"),
    ],
)
def test_a_mistake_is_told(change, error, message):
    arguments = {"people": people(5), "key": "customer", "workers": 1} | change

    with pytest.raises(error, match=message):
        explain(explainer(), arguments.pop("people"), **arguments)


def test_columns_of_the_index_must_be_free():
    rows = people(3).drop(columns="customer").rename_axis(index="Age")

    with pytest.raises(ParameterError, match="Name the columns that identify a person"):
        explain(explainer(), rows, workers=1)


def test_no_two_columns_may_have_one_name():
    rows = people(3)
    rows = pd.concat([rows, rows[["Duration"]]], axis=1)

    with pytest.raises(ReadError, match="several columns of one name"):
        explain(explainer(), rows, key="customer", workers=1)


def test_keys_do_not_depend_on_their_neighbours():
    keys = [Decimal("1.5"), Decimal("10.25"), date(2020, 1, 1), datetime(2020, 1, 1, 3), "a", 7]
    rows = people(6).assign(customer=pd.Series(keys, dtype=object))

    found = [
        explain(explainer(), rows, key="customer", workers=1, block_rows=size)["customer"]
        for size in (1, 6)
    ]

    pd.testing.assert_series_equal(*found)
    assert found[0].nunique() == len(keys)


def test_a_limit_of_time_is_refused():
    limited = MCCE(load_predictor(), (0.85, 1.0), max_seconds=5)

    with pytest.raises(ParameterError, match="depend on partitions"):
        explain(limited, people(3), key="customer")


def test_a_cell_that_does_not_fit_is_named():
    rows = people(5).astype({"Duration": object})
    rows.loc[3, "Duration"] = "long"

    with pytest.raises(ReadError, match="Column 'Duration' of 'the people', row 4"):
        explain(explainer(), rows, key="customer", workers=1)


def test_tasks_of_a_worker_that_dies_are_done_by_others(tmp_path):
    def square(number):
        if number == 3 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number**2

    results = list(run_all(JoblibExecutor(2), square, range(8)))

    assert sorted(results) == [(number, number**2) for number in range(8)]


def test_an_item_that_kills_every_worker_costs_no_other():
    results = run_all(JoblibExecutor(2), deadly, range(12))

    assert_only_the_deadly_are_lost(results)


def test_workers_that_die_before_they_begin_end_the_run():
    with pytest.raises(BrokenProcessPool):
        list(JoblibExecutor(2).map(Unreadable(), range(3)))


class Unreadable:
    """A task that kills whoever unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_block_that_kills_its_worker_is_an_error():
    def score(frame):
        return os._exit(3) if frame["age"].eq(99).any() else frame["salary"]

    bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    fitted = MCCE(score, (70, 100), immutable=["age"], random_state=0).fit(bank)

    with pytest.raises(WorkerError, match="ran out of memory, or the predictor ended its process"):
        explain(fitted, bank[:3].assign(age=[25, 99, 36]), workers=2, block_rows=1)


def test_an_engine_must_be_known():
    with pytest.raises(ParameterError, match="must be one of"):
        find_executor("hadoop")
    with pytest.raises(ParameterError, match="at least 1"):
        find_executor("local", 0)
