"""Files that must not be harmed or misread: pipes, inputs, folders of others, runs at once."""

from __future__ import annotations

import csv
import json
import os
import sys
import threading

import pandas as pd
import pytest

from mcce.cli import main
from mcce.cli.failures import INPUT, PREDICTOR, USAGE
from mcce.cli.predictors import PredictorChoice
from mcce.files.parts import MANIFEST, alone

EXPLAIN = ["explain", "bank.mcce"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_read_once_and_whole(explain, here):
    rows = (here / "people.csv").read_text().splitlines(keepends=True)
    content = "".join([rows[0], *rows[1:] * 20])
    os.mkfifo("pipe")

    def send():
        with open("pipe", "w") as stream:
            stream.write(content)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    assert explain("-o", "answers.csv", "--format", "csv", people="pipe") == 0
    sender.join(10)

    assert pd.read_csv("answers.csv")["factual"].nunique() == 20 * (len(rows) - 1)


@pytest.mark.parametrize("read", ["people.csv", "train.csv"])
def test_an_input_is_never_replaced(explain, here, capsys, read):
    before = (here / read).read_bytes()
    command = {
        "people.csv": ["explain", "bank.mcce", read, "--overwrite"],
        "train.csv": ["fit", read, "--desired", "0.6:"],
    }[read]

    assert main([*command, "--predictor", "scoring:score", "-o", f"./{read}"]) == USAGE

    assert "would take the place of" in capsys.readouterr().err
    assert (here / read).read_bytes() == before


def test_a_report_never_replaces_its_people(here, capsys):
    before = (here / "people.csv").read_bytes()
    os.link("people.csv", "same.html")
    command = ["report", "bank.mcce", "people.csv", "--predictor", "scoring:score", "--overwrite"]

    assert main([*command, "-o", "same.html"]) == USAGE

    assert "would take the place of" in capsys.readouterr().err
    assert (here / "people.csv").read_bytes() == before


@pytest.mark.parametrize("people", ["people.csv", "data/part-000000.csv"])
@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_parts_of_others_stay(explain, here, options, people):
    (here / "data").mkdir()
    files = [here / "data" / f"part-00000{number}.csv" for number in range(2)]
    for file in files:
        file.write_bytes((here / "people.csv").read_bytes())

    given = ["-o", "data/", "--output-format", "csv", *options]
    assert explain(*given, people=people) == USAGE

    assert [file.read_bytes() for file in files] == [(here / "people.csv").read_bytes()] * 2


def test_two_runs_do_not_share_an_output(explain, here, capsys):
    with alone(here / "answers.csv.parts"):
        assert explain("-o", "answers.csv", "--overwrite") == USAGE
    assert "Another run is writing to" in capsys.readouterr().err

    assert explain("-o", "answers.csv") == 0
    assert not (here / "answers.csv.parts").exists()


@pytest.mark.parametrize(("option", "code"), [([], USAGE), (["--resume"], 0)])
@pytest.mark.parametrize("shared", [[], ["--workers", "1"]])
def test_an_output_that_appears_meanwhile_stays(explain, here, capsys, shared, option, code):
    # As if another run ended while the predictor was loaded.
    (here / "meanwhile.py").write_text(
        "from scoring import score\nopen('answers.csv', 'w').write('of another run')"
    )

    assert explain("-o", "answers.csv", *option, *shared, predictor="meanwhile:score") == code

    assert " people in " not in capsys.readouterr().err
    assert (here / "answers.csv").read_text() == "of another run"
    assert not (here / "answers.csv.parts").exists()


@pytest.fixture
def unfinished(explain, here):
    """A run that failed in its third block."""
    table = pd.read_csv("people.csv", dtype=str)
    table.loc[45, "Age"] = "old"
    table.to_csv("people.csv", index=False)
    assert explain("-o", "answers.csv", "--block-rows", 20) == INPUT
    return here / "answers.csv.parts"


def test_resuming_wins_over_overwriting(explain, here, unfinished):
    before = (unfinished / "part-000000.csv").stat().st_mtime_ns

    assert explain("-o", "answers.csv", "--overwrite", "--resume") == INPUT

    assert (unfinished / "part-000000.csv").stat().st_mtime_ns == before


def test_a_run_whose_manifest_is_damaged_can_be_overwritten(explain, here, unfinished):
    (unfinished / MANIFEST).write_text("{}")
    table = pd.read_csv("people.csv", dtype=str)
    table.loc[45, "Age"] = "50"
    table.to_csv("people.csv", index=False)

    assert explain("-o", "answers.csv", "--resume") == INPUT
    assert explain("-o", "answers.csv", "--overwrite") == 0


@pytest.mark.parametrize("block_rows", ["many", None, [1], -5])
def test_a_manifest_with_odd_blocks_is_of_another_run(
    explain, here, unfinished, capsys, block_rows
):
    content = json.loads((unfinished / MANIFEST).read_text())
    content["job"]["block_rows"] = block_rows
    (unfinished / MANIFEST).write_text(json.dumps(content))

    assert explain("-o", "answers.csv", "--resume") == USAGE

    assert "block_rows was" in capsys.readouterr().err


@pytest.mark.parametrize("delimiter", ["", ";;", r"\t", "\n"])
@pytest.mark.parametrize("command", ["fit", "explain"])
def test_a_delimiter_is_one_character(here, capsys, command, delimiter):
    given = {"fit": ["fit", "train.csv"], "explain": ["explain", "bank.mcce", "people.csv"]}
    more = ["--predictor", "scoring:score", "-o", "new.csv", "--delimiter", delimiter]

    assert main([*given[command], *more]) == USAGE

    assert "--delimiter must be one character" in capsys.readouterr().err


def test_a_compressed_output_is_refused(explain, capsys):
    assert explain("-o", "answers.csv.gz") == USAGE
    assert "not compressed" in capsys.readouterr().err


def test_a_damaged_gzip_file_is_named(explain, here, capsys):
    import gzip

    content = bytearray(gzip.compress((here / "people.csv").read_bytes()))
    content[60:64] = b"\xff\xff\xff\xff"
    (here / "people.csv.gz").write_bytes(content)

    assert explain("-o", "answers.csv", people="people.csv.gz") == INPUT
    assert "people.csv.gz" in capsys.readouterr().err


def test_half_a_character_in_json_is_named(explain, here, capsys):
    row = json.loads((here / "people.jsonl").read_text().splitlines()[0])
    (here / "half.jsonl").write_text(json.dumps({**row, "Job": "\ud800"}) + "\n")
    (here / "whole.jsonl").write_text(json.dumps({**row, "Job": "\U0001f600"}) + "\n")

    assert explain("-o", "answers.csv", people="half.jsonl") == INPUT
    assert "Line 1 of 'half.jsonl' has half a character" in capsys.readouterr().err
    assert explain("-o", "others.csv", people="whole.jsonl") == 0
    assert "unclosed" not in capsys.readouterr().err


def test_no_cell_forges_a_row(explain, here):
    table = pd.read_csv("people.csv").head(3)
    table["id"] = ["a\rforged", "b\nforged", "c\r\nforged"]
    table.to_json("people.jsonl", orient="records", lines=True)

    assert explain("-o", "made.csv", "--keep", "id", people="people.jsonl") == 0

    with open("made.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows if row["rank"] in ("", "1")] == table["id"].tolist()


PREDICTORS = """
from scoring import score

def prints(frame):
    print("hello")
    return score(frame)

def ends(frame):
    raise SystemExit(0)
"""


def test_what_a_predictor_prints_is_no_result(explain, here, capfd):
    (here / "odd.py").write_text(PREDICTORS)

    assert explain("-o", "-", "--output-format", "csv", "-q", predictor="odd:prints") == 0

    printed = capfd.readouterr()
    assert "hello" in printed.err
    assert "hello" not in printed.out
    assert printed.out.startswith("factual,")


def test_what_a_predictor_prints_at_fit_is_no_json(here, capfd):
    (here / "odd.py").write_text(PREDICTORS)
    command = ["fit", "train.csv", "--predictor", "odd:prints", "--desired", "0.6:"]

    assert main([*command, "-o", "other.mcce", "--json"]) == 0

    assert json.loads(capfd.readouterr().out)["output"] == "other.mcce"


@pytest.mark.parametrize("predictor", ["odd:ends", "leaving:score"])
def test_a_predictor_that_ends_the_program_is_an_error(explain, here, capsys, predictor):
    (here / "odd.py").write_text(PREDICTORS)
    (here / "leaving.py").write_text("raise SystemExit(0)")

    assert explain("-o", "answers.csv", predictor=predictor) == PREDICTOR

    assert "the predictor ended the program" in capsys.readouterr().err
    assert not (here / "answers.csv").exists()


def test_an_output_may_be_a_link(explain, here):
    (here / "elsewhere").mkdir()
    os.symlink(here / "elsewhere" / "real.csv", "answers.csv")

    assert explain("-o", "answers.csv", "--block-rows", 20) == 0

    assert (here / "answers.csv").is_symlink()
    assert [file.name for file in (here / "elsewhere").iterdir()] == ["real.csv"]


def test_secrets_of_an_address_are_not_written_down():
    choice = PredictorChoice("https://user:hush@example.org/score?token=hush")

    assert choice.shown == choice.fingerprint() == "https://example.org/score"


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
def test_a_report_on_a_file_whose_name_is_no_unicode(here):
    name = os.fsdecode(b"pe\xffople.csv")
    os.rename("people.csv", name)
    command = ["report", "bank.mcce", name, "--predictor", "scoring:score", "--row", "0"]

    assert main([*command, "-o", "report.html", "-q"]) == 0

    assert "pe\\udcffople.csv" in (here / "report.html").read_text(encoding="utf-8")
