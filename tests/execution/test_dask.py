"""Dask answers as one call does, on a cluster of two processes."""

from __future__ import annotations

import time

import pandas as pd
import pytest

from engine_cases import (
    MISTAKES,
    POISON,
    SEARCHES,
    assert_only_the_deadly_are_lost,
    assert_same_answers,
    constraints,
    deadly,
    explainer,
    in_order,
    load_predictor,
    one_call,
    people,
    poisoned,
    square,
)
from mcce import MCCE
from mcce.errors import ParameterError, ReadError, WorkerError
from mcce.execution.dask import SETTINGS, DaskExecutor, explain
from mcce.execution.executor import run_all

dask = pytest.importorskip("dask", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask is not installed")


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set(SETTINGS),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def answer(rows: pd.DataFrame, search: str = "paper", n_partitions: int = 3, **options):
    frame = dd.from_pandas(rows, npartitions=n_partitions, sort=False)
    return explain(explainer(search), frame, key="customer", constraints=constraints(), **options)


@pytest.mark.parametrize("search", SEARCHES)
def test_answers_are_those_of_one_call(client, search):
    rows = people(SEARCHES[search])

    found = answer(rows, search, load_predictor=load_predictor).compute()

    assert_same_answers(found, one_call(search, rows))
    assert found["customer"].drop_duplicates().tolist() == rows["customer"].tolist()


def test_partitions_do_not_change_answers(client):
    rows = people(60)

    few, many = (answer(rows, n_partitions=n).compute() for n in (1, 5))

    pd.testing.assert_frame_equal(in_order(few), in_order(many), check_exact=True)


def test_threads_of_one_process_call_a_predictor_one_at_a_time():
    bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    inside, most = [], []

    def score(frame):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()
        return frame["salary"]

    model = MCCE(score, (70, 100), random_state=0).fit(bank)
    frame = dd.from_pandas(bank, npartitions=4, sort=False)

    explain(model, frame).compute(scheduler="threads", num_workers=4)

    assert len(most) > 4
    assert max(most) == 1


def test_every_partition_has_the_columns_that_were_announced(client):
    rows = people(40).sort_values("customer", ignore_index=True)
    frame = dd.from_pandas(rows, npartitions=4, sort=False)
    accepted = {"constraints": None, "load_predictor": load_predictor}
    some = frame[frame["customer"] < rows["customer"].iloc[15]]

    found = explain(explainer(), some, key="customer", **accepted)

    parts = [found.partitions[at].compute() for at in range(4)]
    assert [part["customer"].nunique() for part in parts] == [10, 5, 0, 0]
    assert all(part.dtypes.equals(found._meta.dtypes) for part in parts)


def test_a_partition_without_any_answer_is_like_the_others(client):
    rows = people(40)
    wanted = one_call("paper", rows).query("status == 'already desired'")["customer"]
    accepted = rows[rows["customer"].isin(wanted)]

    found = answer(accepted, n_partitions=1)

    table = found.compute()
    assert set(table["status"]) == {"already desired"}
    assert table.dtypes.equals(found._meta.dtypes)


def test_a_key_may_be_several_columns_or_the_index(client):
    rows = people(12).assign(branch=[f"b{at % 3}" for at in range(12)])
    frame = dd.from_pandas(rows, npartitions=2, sort=False)

    by_two = explain(explainer(), frame, key=["branch", "customer"]).compute()
    by_index = explain(explainer(), frame).compute()

    whose = by_two[["branch", "customer"]].drop_duplicates()
    assert whose.to_numpy().tolist() == rows[["branch", "customer"]].to_numpy().tolist()
    assert by_index["index"].drop_duplicates().tolist() == rows.index.tolist()


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named_before_anything_runs(mistake):
    with pytest.raises(mistake.error, match=mistake.words):
        mistake.call(explain, lambda rows: dd.from_pandas(rows, npartitions=2))


def test_other_frames_are_refused():
    with pytest.raises(ParameterError, match=r"must be a dask.dataframe.DataFrame, got pandas"):
        explain(explainer(), people(8), key="customer")


def test_a_cell_that_does_not_fit_is_named(client):
    with pytest.raises(ReadError, match=f"Column 'CreditAmount' .*{POISON}"):
        answer(poisoned(20)).compute()


def test_tasks_run_on_the_current_cluster(client):
    results = dict(DaskExecutor().map(square, range(20)))

    assert results == {n: n * n for n in range(20)}


@pytest.mark.slow
def test_an_item_that_kills_every_worker_costs_no_other(client):
    results = run_all(DaskExecutor(), deadly, range(12))

    assert_only_the_deadly_are_lost(results)


def test_a_cluster_that_stays_without_workers_is_an_error(monkeypatch):
    monkeypatch.setattr("mcce.execution.dask.PATIENCE", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
        pytest.raises(WorkerError, match="no worker for 0 seconds"),
    ):
        list(DaskExecutor().map(square, range(3)))


def test_tasks_run_without_a_cluster(monkeypatch):
    monkeypatch.setattr("dask.distributed.get_client", _no_client)

    results = dict(DaskExecutor(workers=1).map(square, range(3)))

    assert results == {0: 0, 1: 1, 2: 4}


def _no_client():
    raise ValueError("No clients found")
