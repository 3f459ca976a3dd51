"""Ray answers as one call does, with two workers."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from engine_cases import (
    POISON,
    assert_mistakes_are_named,
    assert_same_answers,
    constraints,
    explainer,
    load_deadly,
    load_predictor,
    one_call,
    people,
    poisoned,
)
from mcce import MCCE
from mcce.errors import ParameterError
from mcce.execution import explain

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("ray.data", reason="Ray Data is not installed")
# Ray warns of its own defaults.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")


@pytest.fixture(scope="module", autouse=True)
def cluster(importable):
    for left in reversed(range(3)):
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
            break
        except Exception:  # a busy machine takes longer than Ray waits
            ray.shutdown()
            if not left:
                raise
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


def test_answers_are_those_of_one_call():
    rows = people(24)

    found = answer(dataset(rows), "balanced", load_predictor=load_predictor).to_pandas()

    assert_same_answers(found, one_call("balanced", rows))
    assert found["customer"].drop_duplicates().tolist() == rows["customer"].tolist()


def test_blocks_do_not_change_answers(tmp_path):
    rows = people(40)
    rows.to_parquet(tmp_path / "people.parquet", row_group_size=25)

    found = answer(ray.data.read_parquet(str(tmp_path)), block_rows=7).to_pandas()

    assert_same_answers(found, one_call("paper", rows))


def test_workers_that_die_change_nothing(tmp_path):
    rows = people(60)

    frame, load = dataset(rows, 6), load_deadly(tmp_path)
    found = answer(frame, load_predictor=load, block_rows=10).to_pandas()

    assert_same_answers(found, one_call("paper", rows))
    assert len(list(tmp_path.iterdir())) == 2


# Ray regrets that its actors have nothing to do.
@pytest.mark.filterwarnings("ignore:The minimum number of concurrent actors:UserWarning")
def test_a_dataset_without_any_answer_has_the_same_columns():
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


def test_a_key_may_be_several_columns():
    rows = people(12).assign(branch=[f"b{at % 3}" for at in range(12)])

    found = explain(explainer(), dataset(rows, 2), key=["branch", "customer"], prefix="our_")

    whose = found.to_pandas()[["branch", "customer"]].drop_duplicates()
    assert whose.to_numpy().tolist() == rows[["branch", "customer"]].to_numpy().tolist()


def test_truths_and_intervals_have_a_place_in_tables_of_arrow():
    bank = pd.DataFrame({"salary": range(40), "insured": [True, False, None, True] * 10})
    bank["band"] = pd.cut(bank["salary"] % 9, [-1, 3, 6, 9]).cat.as_unordered()
    model = MCCE(lambda frame: frame["salary"], (30, 100), immutable=["insured"], random_state=0)
    cells = {"id": [1, 2], "salary": [1, 35], "insured": [True, None], "band": [None, None]}

    found = explain(model.fit(bank), ray.data.from_arrow(pa.table(cells)), key="id").to_pandas()

    assert found["id"].tolist() == [1, 2]
    assert found["status"].tolist() == ["answered", "already desired"]
    assert found["insured"].iloc[0]
    assert set(found["band"].dropna()) <= {"(-1, 3]", "(3, 6]", "(6, 9]"}


def test_mistakes_are_named():
    assert_mistakes_are_named(explain, dataset)
    with pytest.raises(ParameterError, match="key must name the column that identifies a person"):
        explain(explainer(), dataset(people(8)), key=None)
    with pytest.raises(ray.exceptions.RayTaskError, match=f"Column 'CreditAmount' .*{POISON}"):
        answer(dataset(poisoned(20))).materialize()
