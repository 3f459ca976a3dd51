"""Spark answers as one call does, with two tasks at a time."""

from __future__ import annotations

import shutil
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
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
from mcce.errors import ParameterError, ReadError, SchemaError
from mcce.execution import explain

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    # What the tests here are for.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture(scope="module")
def session(importable):
    # Two tasks at a time, each of which is tried four times.
    builder = pyspark.sql.SparkSession.builder.master("local[2,4]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    # Not the zone of any machine that runs this.
    builder = builder.config("spark.sql.session.timeZone", "Asia/Kathmandu")
    with builder.getOrCreate() as session:
        yield session


def answer(people, search: str = "paper", **options):
    return explain(explainer(search), people, key="customer", constraints=constraints(), **options)


def collected(frame) -> pd.DataFrame:
    """All rows; Spark's own toPandas turns whole numbers with missing ones into decimals."""
    return frame.toArrow().to_pandas(integer_object_nulls=True)


def test_answers_are_those_of_one_call(session):
    rows = people(24)
    frame = session.createDataFrame(rows).repartition(3)

    found = collected(answer(frame, "balanced", load_predictor=load_predictor))

    assert_same_answers(found, one_call("balanced", rows))


@pytest.mark.parametrize(("n_partitions", "block_rows"), [(1, 7), (4, 20_000)])
def test_partitions_do_not_change_answers(session, n_partitions, block_rows):
    rows = people(40)
    frame = session.createDataFrame(rows).repartition(n_partitions)

    found = collected(answer(frame, block_rows=block_rows))

    assert_same_answers(found, one_call("paper", rows))


def test_workers_that_die_change_nothing(session, tmp_path):
    rows = people(60)
    frame = session.createDataFrame(rows).repartition(3)

    found = collected(answer(frame, load_predictor=load_deadly(tmp_path)))

    assert_same_answers(found, one_call("paper", rows))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_frame_without_any_answer_has_the_same_columns(session):
    rows = people(40)
    wanted = one_call("paper", rows).query("status == 'already desired'")["customer"]
    frame = session.createDataFrame(rows)

    found = answer(frame.where(frame["customer"].isin(wanted.tolist())))
    nobody = answer(frame.where(frame["customer"] < 0))

    assert set(collected(found)["status"]) == {"already desired"}
    assert collected(nobody).empty
    assert nobody.schema == found.schema == answer(frame).schema


def test_a_key_may_be_several_columns(session):
    rows = people(12).assign(branch=[f"b{at % 3}" for at in range(12)])

    found = explain(explainer(), session.createDataFrame(rows), key=["branch", "customer"])

    whose = collected(found)[["branch", "customer"]].drop_duplicates().sort_values("customer")
    expected = rows[["branch", "customer"]].sort_values("customer")
    assert whose.to_numpy().tolist() == expected.to_numpy().tolist()


def test_types_that_spark_has_not_come_back_with_the_same_values(session):
    bank, score = types_bank()
    model = MCCE(score, (0.5, 1.0), immutable=["age"], n_samples=50, random_state=0).fit(bank)
    rows = bank.head(12).assign(customer=range(12))
    rows.loc[3, "insured"], rows.loc[4, "children"], rows.loc[5, "since"] = pd.NA, pd.NA, pd.NaT

    # Spark has no such type, so a lake holds it like this.
    stored = rows.assign(limit=[Decimal(int(cell)) for cell in rows["limit"]])
    frame = session.createDataFrame(stored).coalesce(1)
    found = explain(model, frame, key="customer").toArrow()

    expected = in_process(model, rows)
    for name in expected:
        cells = found.column(name).to_pylist()
        assert [plain(cell) for cell in cells] == [
            plain(cell) for cell in expected[name].tolist()
        ], name


@pytest.mark.parametrize("name", ["since", "waited"])
def test_values_that_spark_would_cut_off_are_refused(session, name):
    bank, score = types_bank()
    bank[name] += pd.to_timedelta(1, "ns")
    frame = session.createDataFrame(bank[["age"]].assign(customer=range(80)))

    def call(immutable):
        explain(MCCE(score, (0.5, 1.0), immutable=immutable).fit(bank), frame, key="customer")

    with pytest.raises(SchemaError, match=f"'{name}' .* below a microsecond.*Round them"):
        call(["age"])
    # What stays as it is comes from Spark itself.
    with pytest.raises(SchemaError, match="lacks the columns"):
        call(["age", name])


def types_bank() -> tuple[pd.DataFrame, object]:
    chance = np.random.default_rng(5)
    days = pd.to_timedelta(chance.integers(0, 9000, 80), "h")
    bank = pd.DataFrame(
        {
            "age": chance.integers(20, 60, 80),
            "since": pd.Timestamp("2015-03-29") + days,
            "paid": pd.Timestamp("2024-10-27", tz="Europe/Oslo") + days,
            "waited": days,
            "insured": pd.array(chance.random(80) < 0.5, dtype="boolean"),
            "children": pd.array(chance.integers(0, 4, 80), dtype="Int64"),
            "limit": pd.array(chance.integers(2**63, 2**64, 80, dtype="uint64")),
            "rate": chance.random(80).astype("float32"),
            "home": pd.Categorical(chance.choice(["own", "rent"], 80)),
        }
    )

    def score(frame):
        late = (frame["paid"] > pd.Timestamp("2025-04-01", tz="UTC")).to_numpy(dtype=float)
        return (0.4 * late + 0.4 * frame["home"].eq("own") + 0.3 * frame["rate"]).to_numpy()

    return bank, score


def in_process(model: MCCE, rows: pd.DataFrame) -> pd.DataFrame:
    return explain(model, rows, key="customer", workers=1)


def plain(cell: object) -> object:
    """A cell as Python has it; moments in UTC, missing ones as None."""
    if pd.isna(cell):
        return None
    if isinstance(cell, Decimal):
        return int(cell)
    if isinstance(cell, (pd.Timestamp, datetime)):
        at = pd.Timestamp(cell)
        return at if at.tz is None else at.tz_convert("UTC")
    return cell


def test_mistakes_are_named(session):
    assert_mistakes_are_named(explain, session.createDataFrame)
    frame = session.createDataFrame(people(8))
    with pytest.raises(ParameterError, match="key must name the column that identifies a person"):
        explain(explainer(), frame, key=None)
    with pytest.raises(ReadError, match=r"several columns of one name: .*Age"):
        explain(explainer(), frame.select("*", frame["Age"]), key="customer")
    with pytest.raises(pyspark.errors.PythonException, match=f"Column 'CreditAmount' .*{POISON}"):
        answer(session.createDataFrame(poisoned(20))).collect()
