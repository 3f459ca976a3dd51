"""Explaining people in files: formats, blocks, what the output says, and what goes wrong."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pandas as pd
import pytest

import mcce
from bank_files import INPUT, PREDICTOR, USAGE
from mcce.cli import main

ANONYMOUS = ["--anonymity", "5", "--quasi-identifiers", "Duration,CreditAmount"]


def test_the_output_says_what_became_of_everybody(explain, here, score):
    explainer = mcce.load("bank.mcce", score)
    result = explainer.finalize(explainer.explain(pd.read_csv("people.csv")))

    assert explain("-o", "answers.csv") == 0

    table = pd.read_csv("answers.csv", keep_default_na=False, na_values=[""])
    assert sorted(set(table["factual"])) == list(range(60))
    status = table.drop_duplicates("factual")["status"]
    assert status.tolist() == result.people["status"].tolist()
    answered = table[table["rank"].notna()].reset_index(drop=True)
    assert answered[list(result.frame)].to_dict("list") == result.frame.to_dict("list")
    assert answered["score"].tolist() == result.measures["score"].tolist()
    changes = result.changes().groupby("factual")["feature"].agg(list)
    assert [json.loads(cell) for cell in answered["changed"]] == [
        changes[factual] for factual in answered["factual"]
    ]


def test_whoever_has_no_answer_has_a_reason(explain, here):
    (here / "none.toml").write_text('[[rules]]\nfrozen = ["Duration", "CreditAmount", "Savings"]\n')

    assert explain("-o", "answers.jsonl", "--rules", "none.toml") == 0

    rows = [json.loads(line) for line in (here / "answers.jsonl").read_text().splitlines()]
    without = [row for row in rows if row["status"] == "no answer"]
    assert without
    assert all(row["reason"] and row["rank"] is None and row["Duration"] is None for row in without)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_answers_do_not_depend_on_formats_blocks_and_streams(explain, here, monkeypatch, kind):
    pd.read_parquet("people.parquet").to_feather("people.arrow")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": pd.read_feather}
    read["jsonl"] = lambda file: pd.read_json(file, lines=True)
    streams = [io.TextIOWrapper(io.BytesIO(given)) for given in (as_stream(kind), b"")]

    assert explain("-o", f"whole.{kind}") == 0
    assert explain("-o", f"blocks.{kind}", "--block-rows", 7, people=f"people.{kind}") == 0
    monkeypatch.setattr(sys, "stdin", streams[0])
    monkeypatch.setattr(sys, "stdout", streams[1])
    formats = ["--format", kind, "--output-format", kind, "--block-rows", 25]
    assert explain("-o", "-", *formats, people="-") == 0

    assert Path(f"whole.{kind}").read_bytes() == Path(f"blocks.{kind}").read_bytes()
    printed = read[kind](io.BytesIO(streams[1].buffer.getvalue()))
    pd.testing.assert_frame_equal(printed, read[kind](f"whole.{kind}"))
    assert not list(here.glob("*.parts"))


def as_stream(kind):
    """The people as bytes in a format that can be read without knowing their end."""
    if kind != "arrow":
        return Path(f"people.{kind}").read_bytes()
    import pyarrow as pa

    table, stream = pa.table(pd.read_parquet("people.parquet")), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def test_compressed_files_and_other_delimiters_are_read(explain, here):
    pd.read_csv("people.csv").to_csv("people.csv.gz", index=False, sep=";")

    assert explain("-o", "whole.csv") == 0
    assert explain("-o", "other.csv", "--delimiter", ";", people="people.csv.gz") == 0

    assert (here / "other.csv").read_bytes() == (here / "whole.csv").read_bytes()


def test_a_folder_keeps_the_parts_and_is_one_table(explain, here):
    assert explain("-o", "answers/", "--block-rows", 25) == 0

    parts = sorted(path.name for path in (here / "answers").glob("part-*"))
    assert parts == [f"part-000000-{first:012d}.parquet" for first in (0, 25, 50)]
    assert json.loads((here / "answers/_manifest.json").read_text())["n_parts"] == 3
    assert explain("-o", "answers.parquet") == 0
    pd.testing.assert_frame_equal(pd.read_parquet("answers"), pd.read_parquet("answers.parquet"))


def test_columns_can_be_kept_and_others_are_left_out(explain, here, capsys):
    people = pd.read_csv("people.csv").assign(outcome=1, score=2)
    people.insert(0, "customer, no", [f"NA-{at:04d}" for at in range(len(people))])
    people.to_csv("more.csv", index=False)
    people.head(0).to_csv("nobody.csv", index=False)
    kept = ["--keep", "customer, no", "--keep", "score"]

    assert explain("-o", "answers.csv", *kept, people="more.csv") == USAGE
    assert "--prefix" in capsys.readouterr().err
    assert explain("-o", "answers.csv", *kept, "--prefix", "our_", people="more.csv") == 0
    assert "not used: ['outcome']" in capsys.readouterr().err
    assert explain("-o", "none.csv", *kept, "--prefix", "our_", people="nobody.csv") == 0

    table = pd.read_csv("answers.csv")
    assert table["customer, no"].tolist() == [f"NA-{at:04d}" for at in table["our_factual"]]
    assert set(table["score"]) == {2}
    assert "our_score" in table
    assert "outcome" not in table
    nobody = pd.read_csv("none.csv")
    assert list(nobody) == list(table)
    assert nobody.empty


def test_machines_get_json(explain, here, capsys):
    assert explain("-o", "answers.csv", "--json") == 0

    said = json.loads(capsys.readouterr().out)
    assert said["n_people"] == 60 == sum(said["status"].values())
    assert said["output"] == "answers.csv"
    assert explain("-o", "other.csv", "--json", people="absent.csv") == INPUT
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["type"], error["exit_code"]) == ("ReadError", INPUT)


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_missing_and_new_values_of_others_change_nobodys_answer(explain, here, search):
    fitted = ["fit", "train.csv", "--predictor", "scoring:score", "--desired", "0.6:"]
    assert main([*fitted, "--immutable", "Age", "--search", search, "-o", "bank.mcce"]) == 0
    people = pd.read_csv("people.csv", dtype=str)
    people.loc[[3, 20, 21], "Sex"] = ""
    people.loc[[5, 20, 44], "Job"] = ["diver", "NA", "0123"]
    people.loc[[7, 30], "Duration"] = ["42.0", " 48"]
    people.to_csv("people.csv", index=False)

    assert explain("-o", "whole.csv") == 0
    assert explain("-o", "blocks.csv", "--block-rows", 7) == 0

    assert (here / "blocks.csv").read_bytes() == (here / "whole.csv").read_bytes()


def test_a_missing_whole_number_leaves_the_dtypes_of_others(here):
    (here / "strict_scoring.py").write_text(
        "def score(frame):\n"
        "    whole = frame['Duration'].dtype == 'int64'\n"
        "    return (0.9 if whole else 0.1) - frame['Duration'].fillna(0).to_numpy() / 100\n"
    )
    predictor = ["--predictor", "strict_scoring:score"]
    assert main(["fit", "train.csv", *predictor, "--desired", "0.6:", "-o", "strict.mcce"]) == 0
    people, lines = pd.read_csv("people.csv", dtype=str), []
    for output in ("whole.csv", "other.csv"):
        people.to_csv("people.csv", index=False)
        assert main(["explain", "strict.mcce", "people.csv", *predictor, "-o", output]) == 0
        lines.append((here / output).read_text().splitlines())
        people.loc[10, "Duration"] = ""

    whole, other = ([line for line in one if not line.startswith("10,")] for one in lines)
    assert whole == other


def test_anonymous_answers_have_ranges_in_place_of_values(explain, here):
    more = (*ANONYMOUS, "--training", "train.csv")
    assert explain("-o", "answers.csv", *more) == 0
    assert explain("-o", "blocks.csv", *more, "--block-rows", 20) == 0
    assert explain("-o", "shared.csv", *more, "--block-rows", 20, "--workers", 1) == 0

    assert (here / "answers.csv").read_bytes() == (here / "blocks.csv").read_bytes()
    assert (here / "answers.csv").read_bytes() == (here / "shared.csv").read_bytes()
    table = pd.read_csv("answers.csv", keep_default_na=False, na_values=[""])
    answered = table[table["rank"].notna()]
    train = pd.read_csv("train.csv")
    assert {"crowd", "pureness", "pure", "sparsity"} <= set(table.columns)
    # From these, exact values could be computed.
    assert not {"score", "gower", "l1", "loss", "n_combinations"} & set(table.columns)
    assert (answered["crowd"] >= 5).all()
    amounts = answered["CreditAmount"].astype(str)
    assert amounts.str.contains("to|at most|at least|any").any()
    exact = amounts[amounts.str.isdigit()].astype(int)
    assert all((train["CreditAmount"] == amount).sum() >= 5 for amount in exact)


def test_what_cannot_work_is_said_and_nothing_is_written(explain, here, capsys):
    (here / "other_scoring.py").write_text("def score(frame):\n    return frame['Age'] / 100\n")
    training = ["--training", "train.csv"]
    wrong = [
        (["--output-format", "xml"], USAGE, "--output-format must be one of"),
        (["--delimiter", ";;"], USAGE, "--delimiter must be one character"),
        (["--keep", "Age"], USAGE, "are features already"),
        (["--predictor", "other_scoring:score"], PREDICTOR, "is not the one"),
        (["--anonymity", "5"], USAGE, "--anonymity needs --quasi-identifiers"),
        (training, USAGE, "--training is for anonymous answers"),
        ([*ANONYMOUS[:3], "Nope", *training], USAGE, "['Nope']"),
        (["--anonymity", "1", *ANONYMOUS[2:], *training], USAGE, "from 2 to"),
    ]
    for arguments, code, text in wrong:
        assert explain("-o", "answers/", *arguments) == code, arguments
        assert text in " ".join(capsys.readouterr().err.split())
    assert explain("-o", "answers.csv.gz") == USAGE
    assert "not compressed" in capsys.readouterr().err
    assert not list(here.glob("answers*"))


def test_a_predictor_that_fails_shows_cells_only_if_asked(explain, here, capsys):
    assert explain("-o", "answers.csv", predictor="scoring:fails") == PREDICTOR

    said = " ".join(capsys.readouterr().err.split())
    assert "a secret cell" not in said
    assert "--debug shows it" in said
    assert "--dtype" in said
    assert explain("-o", "answers.csv", "--debug", predictor="scoring:fails") == PREDICTOR
    assert "a secret cell" in capsys.readouterr().err


def test_a_broken_file_is_an_error_that_says_where(explain, here, capsys):
    lines = (here / "people.csv").read_text().splitlines()
    head, content = lines[0], "\n".join(lines).encode()
    row = json.loads((here / "people.jsonl").read_text().splitlines()[0])
    damaged = bytearray(gzip.compress(content))
    damaged[60:64] = b"\xff" * 4
    broken = {
        "cell.csv": ([*lines[:31], f"{lines[31]},1"], "Row 31"),
        "short.csv": ([*lines[:31], "36,5"], "has 2 cells, but there are 6 columns"),
        "column.csv": ([head.replace("Age", "age"), *lines[1:]], "lacks the columns ['Age']"),
        "quote.csv": ([*lines[:31], '"never closed'], "after row 30"),
        "twice.csv": ([head.replace("Age", "Sex"), *lines[1:]], "several columns of one name"),
        "empty.csv": ([], "is empty"),
        "latin.csv": (content + b"\n" * 2**18 + b"\xff\xfe", "it is no utf-8"),
        "cut.parquet": ((here / "people.parquet").read_bytes()[:900], "Cannot read 'cut.parquet'"),
        "damaged.csv.gz": (bytes(damaged), "damaged.csv.gz"),
        "twice.jsonl": (
            ['{"Job": 1, "Job": 2}'],
            "Line 1 of 'twice.jsonl' has an object",
        ),
        "half.jsonl": ([json.dumps({**row, "Job": "\ud800"})], "Line 1 of 'half.jsonl' has half a"),
        "less.jsonl": ([json.dumps(row), json.dumps({"Age": 1})], "Row 2"),
    }
    for name, (given, text) in broken.items():
        written = given if isinstance(given, bytes) else "\n".join(given).encode()
        (here / name).write_bytes(written)
        assert explain("-o", f"{name}.parquet", "--block-rows", 10, people=name) == INPUT, name
        assert text in capsys.readouterr().err
    for name, code, text in [("absent.csv", INPUT, "No such file"), ("a.xml", USAGE, "not clear")]:
        assert explain("-o", "answers.csv", people=name) == code
        assert text in capsys.readouterr().err
