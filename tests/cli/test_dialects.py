"""CSV files as programs write them: Excel's in Norway and Germany, and in other encodings."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from bank_files import INPUT, USAGE
from mcce.cli import main

SCORING = "def score(frame):\n    return frame['lønn'].to_numpy(dtype=float) / 100\n"
PREDICTOR = ["--predictor", "income_scoring:score"]
# Nothing in its beginning shows that commas are decimal marks, or which encoding it is.
LATE = b"l\xf8nn;sted;alder\r\n" + b"90;Oslo;30\r\n" * 30_000 + b"90,5;Bod\xf8;30\r\n"


def table():
    chance = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "lønn": chance.integers(100, 900, 60) / 8,
            "sted": chance.choice(["Ås", "Bodø, sentrum", "Zürich"], 60),
            "alder": chance.integers(20, 60, 60),
        }
    )


def excel(encoding, sep=";"):
    """The bytes that Excel writes where a comma is the decimal mark."""
    rows = table().to_csv(index=False, sep=sep, decimal=",", lineterminator="\r\n")
    return rows.encode(encoding)


KINDS = {
    "norway.csv": lambda: excel("cp1252"),
    "utf-8.csv": lambda: excel("utf-8-sig"),
    "unicode text.csv": lambda: excel("utf-16", "\t"),
    "latin.csv.gz": lambda: gzip.compress(excel("latin-1")),
    "points.csv": lambda: table().to_csv(index=False, sep="|").encode(),
}


def fit(name, *more):
    return main(["fit", name, *PREDICTOR, "--desired", "0.6:", "-o", "own.mcce", *more])


def explain(name, output, *more):
    return main(["explain", "own.mcce", name, *PREDICTOR, "-o", output, *more])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "income_scoring.py").write_text(SCORING, encoding="utf-8")
    table().to_csv("usual.csv", index=False)
    assert fit("usual.csv", "-q") == 0
    return tmp_path


@pytest.mark.parametrize("name", KINDS)
def test_people_and_training_rows_are_read_as_they_are_meant(here, capsys, name):
    (here / name).write_bytes(KINDS[name]())
    assert explain("usual.csv", "usual.parquet", "-q") == 0
    fitted = (here / "own.mcce").read_bytes()

    assert explain(name, "other.parquet") == 0
    assert f"{name} is read with" in capsys.readouterr().err
    assert fit(name) == 0
    marks = "decimal points" if name == "points.csv" else "decimal commas"
    assert marks in " ".join(capsys.readouterr().err.split())

    assert (here / "other.parquet").read_bytes() == (here / "usual.parquet").read_bytes()
    assert (here / "own.mcce").read_bytes() == fitted


def test_a_sample_of_training_rows_is_read_as_it_is_meant(here):
    (here / "norway.csv").write_bytes(excel("cp1252"))
    made = []
    for name in ("usual.csv", "norway.csv"):
        assert fit(name, "--sample-rows", "50", "-q") == 0
        made.append((here / "own.mcce").read_bytes())

    assert made[0] == made[1]


def test_what_cannot_be_found_out_can_be_said_and_the_run_goes_on(here, capsys):
    (here / "late.csv").write_bytes(LATE.replace(b"\xf8nn", "ønn".encode(), 1))
    assert explain("late.csv", "late.parquet", "-q") == INPUT
    said = " ".join(capsys.readouterr().err.split())
    assert "it is no utf-8, or only up to some row" in said
    assert "--encoding" in said
    (here / "late.csv").write_bytes(LATE)
    options = ["--encoding", "cp1252", "--delimiter", ";"]
    assert explain("late.csv", "late.parquet", "-q", "--resume", *options) == INPUT
    assert "row 30001" in capsys.readouterr().err

    assert explain("late.csv", "late.parquet", "--resume", "--decimal", ",", *options) == 0

    assert "is read with" not in capsys.readouterr().err
    answers = pd.read_parquet("late.parquet")
    assert answers["factual"].tolist() == list(range(30_001))
    assert answers["score_before"].iloc[-1] == 0.905


def test_points_among_decimal_commas_may_be_thousands_and_are_refused(here, capsys):
    (here / "mixed.csv").write_bytes(excel("utf-8") + b"1.234;Oslo;30\r\n")
    (here / "more.csv").write_bytes(excel("utf-8") + b"1.234,5;Oslo;30\r\n")

    for name in ("mixed.csv", "more.csv"):
        assert explain(name, "answers.parquet", "--decimal", ",", "--overwrite") == INPUT
        said = " ".join(capsys.readouterr().err.split())
        assert "row 61" in said
        assert "expected a finite number with a decimal comma" in said


def test_what_no_file_is_written_with_is_refused(here, capsys):
    for options, text in [
        (["--decimal", ";"], "--decimal must be . or ,"),
        (["--encoding", "klingon"], "--encoding must be one that Python knows"),
        (["--encoding", "base64"], "--encoding must be one that Python knows"),
        (["--delimiter", '"'], "--delimiter must be one character"),
    ]:
        assert explain("usual.csv", "answers.csv", *options) == USAGE
        assert text in " ".join(capsys.readouterr().err.split())
    (here / "book.csv").write_bytes(b"PK\x03\x04\x14\x00\x06\x00\x08\x00")
    assert explain("book.csv", "answers.csv") == INPUT
    assert "is no text. Save it as CSV." in capsys.readouterr().err
