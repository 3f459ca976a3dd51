"""Training rows of files in blocks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import ParameterError, ReadError, SchemaError
from mcce.files import streaming
from mcce.files.blocks import even_blocks
from mcce.files.streaming import iterate_training
from mcce.files.training import read_training


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 70, 250),
            "salary": rng.normal(size=250).round(3),
            "job": rng.choice(["baker", "clerk"], 250),
        }
    )


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setattr(streaming, "STEP", 64)
    monkeypatch.chdir(tmp_path)


def write(rows, path):
    if path.endswith(".csv") or path.endswith(".csv.gz"):
        rows.to_csv(path, index=False)
    elif path.endswith(".jsonl"):
        rows.to_json(path, orient="records", lines=True)
    elif path.endswith(".parquet"):
        rows.to_parquet(path)
    else:
        rows.to_feather(path)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet", "feather"])
def test_blocks_are_the_rows_of_all_files_in_order(rows, suffix):
    write(rows.head(100), f"one.{suffix}")
    write(rows.tail(150).reset_index(drop=True), f"two.{suffix}")

    blocks = list(iterate_training([f"one.{suffix}", f"two.{suffix}"]))

    assert [len(block) for block in blocks] == [64, 36, 64, 64, 22]
    write(rows, f"all.{suffix}")
    whole = read_training(f"all.{suffix}", streaming.find_format(f"all.{suffix}"))
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), whole)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_all_blocks_have_the_categories_of_all_files(rows, suffix):
    one = rows.head(100).assign(job="baker").astype({"job": "category"})
    two = rows.tail(150).reset_index(drop=True).assign(job="clerk").astype({"job": "category"})
    write(one, f"one.{suffix}")
    write(two, f"two.{suffix}")

    blocks = list(iterate_training([f"one.{suffix}", f"two.{suffix}"]))

    assert all(list(block["job"].cat.categories) == ["baker", "clerk"] for block in blocks)
    assert blocks[0]["job"].eq("baker").all()
    assert blocks[-1]["job"].eq("clerk").all()


def test_columns_have_the_dtypes_that_users_name(rows):
    write(rows, "rows.csv")
    write(rows, "rows.jsonl")

    for path in ("rows.csv", "rows.jsonl"):
        (first, *_) = iterate_training([path], dtypes={"age": "float64"})
        assert first["age"].dtype == np.float64


@pytest.mark.parametrize("dtypes", [{}, {"job": "category"}])
def test_texts_that_are_levels_in_another_file_are_never_lost(rows, dtypes):
    texts = rows.assign(job="diver").astype({"job": object})
    rows.astype({"job": "category"}).to_parquet("a.parquet")
    texts.to_parquet("b.parquet")

    first, *_, last = iterate_training(["a.parquet", "b.parquet"], dtypes=dtypes)

    assert isinstance(first["job"].dtype, pd.CategoricalDtype)
    assert set(last["job"]) == {"diver"}
    with pytest.raises(SchemaError, match="categories included"):
        list(even_blocks([first, last], 100))


def test_levels_may_be_read_as_text(rows):
    rows.astype({"job": "category"}).to_parquet("a.parquet")

    (found, *_) = iterate_training(["a.parquet"], dtypes={"job": "str"})

    assert not isinstance(found["job"].dtype, pd.CategoricalDtype)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ReadError, "empty"),
        ("age,salary\n1,2\n3\n", ReadError, "cells"),
        ("age,age\n1,2\n", ReadError, "one name"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, text, error, message):
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")

    with pytest.raises(error, match=message):
        list(iterate_training(["rows.csv"]))


def test_what_cannot_be_streamed_is_refused(rows):
    write(rows, "rows.csv")
    with pytest.raises(ParameterError, match="standard input"):
        list(iterate_training(["-"], "csv"))
    with pytest.raises(SchemaError, match="lacks the columns"):
        list(iterate_training(["rows.csv"], dtypes={"wage": "float64"}))
    with pytest.raises(ReadError, match="No such file"):
        list(iterate_training(["nowhere.csv"]))
    with pytest.raises(ReadError, match="do not fit the dtypes"):
        list(iterate_training(["rows.csv"], dtypes={"job": "int64"}))


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_damaged_file_is_refused(rows, suffix, tmp_path):
    (tmp_path / f"rows.{suffix}").write_bytes(b"PAR1 no table")

    with pytest.raises(ReadError, match="Cannot read"):
        list(iterate_training([f"rows.{suffix}"]))
