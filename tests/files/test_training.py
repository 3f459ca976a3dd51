"""Training rows in CSV files: what pandas would mend in silence is an error."""

from __future__ import annotations

import gzip
from functools import partial

import numpy as np
import pandas as pd
import pytest

from mcce.errors import ReadError
from mcce.files.training import convert, read_training


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("age,age\n1,2\n", "several columns of one name: \\['age'\\]"),
        ("age,salary\n1,2\n3\n", "Row 2 .* has 1 cells, but there are 2 columns"),
        ("age,salary\n1,2,3\n4,5,6\n", "Row 1 .* has 3 cells, but there are 2 columns"),
        ("", "is empty"),
        ('age,salary\n1,"2\n', "Cannot read .* as CSV|in line"),
    ],
)
def test_rows_that_do_not_fit_their_columns_are_an_error(content, message, tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(ReadError, match=message):
        read_training(str(path), "csv")


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz"])
def test_rows_are_read_as_they_are(name, tmp_path):
    content = '\ufeffage;job\n1;"a;b"\n\n2;\n'.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    frame = read_training(str(path), "csv", delimiter=";")

    assert frame["age"].tolist() == [1, 2]
    assert frame["job"].tolist()[0] == "a;b"
    assert frame["job"].isna().tolist() == [False, True]


def test_numbers_are_read_as_python_reads_them(tmp_path):
    texts = [str(number) for number in np.random.default_rng(0).uniform(-1e6, 1e6, 5_000)]
    texts += ["0.1", "1e-320", "1.7976931348623157e308", "123456789.123456789"]
    path = tmp_path / "train.csv"
    path.write_text("\n".join(["x", *texts]), encoding="utf-8")

    assert read_training(str(path), "csv")["x"].tolist() == [float(text) for text in texts]


def test_rows_that_are_converted_stay_as_they_were():
    rows = pd.DataFrame({"age": [1, 2]})

    found = convert("train.jsonl", "jsonl", rows, {"age": np.dtype(float)})

    assert found["age"].dtype == float
    assert rows["age"].dtype == np.int64


@pytest.mark.parametrize("name", ["train.csv", "train.jsonl"])
@pytest.mark.parametrize("cell", ["2024-02-29", "3/4/2024", "now"])
def test_moments_are_read_as_those_of_people(name, cell, tmp_path):
    path = tmp_path / name
    rows = {"csv": f"age,since\n1,{cell}\n2,\n", "jsonl": f'{{"age": 1, "since": "{cell}"}}\n' * 2}
    path.write_text(rows[path.suffix[1:]], encoding="utf-8")
    read = partial(read_training, str(path), path.suffix[1:], dtypes={"since": "datetime64[s]"})

    if cell == "2024-02-29":
        assert read()["since"].iloc[0] == pd.Timestamp(cell)
        assert read()["since"].dtype == "datetime64[s]"
    else:
        with pytest.raises(ReadError, match=r"Column 'since' .* do not fit"):
            read()
