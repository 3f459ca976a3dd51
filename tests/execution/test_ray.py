"""Ray answers as one call does, with two workers."""

from __future__ import annotations

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
    load_predictor,
    one_call,
    people,
    poisoned,
    square,
)
from mcce.errors import ParameterError
from mcce.execution.executor import run_all
from mcce.execution.ray import RayExecutor, explain

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("ray.data", reason="Ray Data is not installed")
# Ray warns of its own defaults.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")


@pytest.fixture(scope="module")
def cluster(importable):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="warning")
    options = ray.data.DataContext.get_current().execution_options
    options.preserve_order = True
    yield
    ray.shutdown()


def dataset(rows: pd.DataFrame, n_blocks: int = 3):
    size = -(-len(rows) // n_blocks)
    return ray.data.from_pandas([rows.iloc[at : at + size] for at in range(0, len(rows), size)])


def answer(people, search: str = "paper", **options):
    rules = constraints()
    return explain(
        explainer(search), people, key="customer", constraints=rules, workers=2, **options
    )


@pytest.mark.parametrize("search", SEARCHES)
def test_answers_are_those_of_one_call(cluster, search):
    rows = people(SEARCHES[search])

    found = answer(dataset(rows), search, load_predictor=load_predictor).to_pandas()

    assert_same_answers(found, one_call(search, rows))
    assert found["customer"].drop_duplicates().tolist() == rows["customer"].tolist()


def test_blocks_do_not_change_answers(cluster, tmp_path):
    rows = people(60)
    rows.to_parquet(tmp_path / "people.parquet", row_group_size=25)

    found = answer(ray.data.read_parquet(str(tmp_path)), block_rows=7).to_pandas()

    assert_same_answers(found, one_call("paper", rows))


# Ray regrets that its actors have nothing to do.
@pytest.mark.filterwarnings("ignore:The minimum number of concurrent actors:UserWarning")
def test_a_dataset_without_any_answer_has_the_same_columns(cluster):
    rows = people(40)
    wanted = one_call("paper", rows).query("status == 'already desired'")["customer"]
    accepted = rows[rows["customer"].isin(wanted)]

    some = answer(dataset(accepted, 2)).materialize()
    nobody = answer(ray.data.from_pandas(rows.head(0))).materialize()
    forgotten = answer(dataset(rows).limit(0).materialize())

    assert set(some.to_pandas()["status"]) == {"already desired"}
    assert nobody.count() == 0
    assert nobody.schema() == some.schema()
    assert forgotten.schema().names == some.schema().names


def test_a_key_may_be_several_columns(cluster):
    rows = people(12).assign(branch=[f"b{at % 3}" for at in range(12)])

    found = explain(explainer(), dataset(rows, 2), key=["branch", "customer"], prefix="our_")

    whose = found.to_pandas()[["branch", "customer"]].drop_duplicates()
    assert whose.to_numpy().tolist() == rows[["branch", "customer"]].to_numpy().tolist()


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named_before_anything_runs(cluster, mistake):
    with pytest.raises(mistake.error, match=mistake.words):
        mistake.call(explain, dataset)


def test_a_key_is_needed(cluster):
    with pytest.raises(ParameterError, match="key must name the column that identifies a person"):
        explain(explainer(), dataset(people(8)), key=None)


def test_other_frames_are_refused():
    with pytest.raises(ParameterError, match=r"must be a ray.data.Dataset, got pandas"):
        explain(explainer(), people(8), key="customer")


def test_a_cell_that_does_not_fit_is_named(cluster):
    with pytest.raises(ray.exceptions.RayTaskError, match=f"Column 'CreditAmount' .*{POISON}"):
        answer(dataset(poisoned(20))).materialize()


def test_tasks_run_on_the_current_cluster(cluster):
    results = dict(RayExecutor().map(square, range(20)))

    assert results == {n: n * n for n in range(20)}


@pytest.mark.slow
def test_an_item_that_kills_every_worker_costs_no_other(cluster):
    results = run_all(RayExecutor(), deadly, range(12))

    assert_only_the_deadly_are_lost(results)


def test_an_error_of_a_task_is_raised_as_it_was(cluster):
    with pytest.raises(TypeError, match="unsupported operand"):
        dict(RayExecutor().map(square, [1, None]))
