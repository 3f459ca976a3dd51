"""Files that must not be harmed or misread: pipes, inputs, folders of others, runs at once."""

from __future__ import annotations

import csv
import json
import os
import sys
import threading

import pandas as pd
import pytest

from bank_files import PREDICTOR, USAGE
from mcce.cli import main

PREDICTORS = """
import os
from mcce.cli import main
from scoring import score

codes = []

def prints(frame):
    print("hello")
    return score(frame)

def ends(frame):
    raise SystemExit(0)

def meets(frame):
    if os.path.isdir("answers.csv.parts") and not codes:
        codes.append(None)
        again = ["explain", "bank.mcce", "people.csv", "--predictor", "scoring:score"]
        codes[0] = main([*again, "-o", "answers.csv", "--overwrite"])
    return score(frame)
"""


@pytest.fixture
def odd(here):
    """A module of predictors that do more than they should."""
    (here / "odd.py").write_text(PREDICTORS)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_read_once_and_whole(explain, here):
    rows = (here / "people.csv").read_text().splitlines(keepends=True)
    os.mkfifo("pipe")

    def send():
        with open("pipe", "w") as stream:
            stream.write("".join([rows[0], *rows[1:] * 20]))

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    assert explain("-o", "answers.csv", "--format", "csv", people="pipe") == 0
    sender.join(60)

    assert pd.read_csv("answers.csv")["factual"].nunique() == 20 * (len(rows) - 1)


def test_an_input_is_never_replaced(here, capsys):
    os.link("people.csv", "same.html")
    (here / "data").mkdir()
    for at in range(2):
        os.link("people.csv", f"data/part-00000{at}.csv")
    before, predictor = (here / "people.csv").read_bytes(), ["--predictor", "scoring:score"]
    parts = ["-o", "data/", "--output-format", "csv"]

    for command, text in [
        (["explain", "bank.mcce", "people.csv", "--overwrite", "-o", "./people.csv"], "would take"),
        (["fit", "people.csv", "--desired", "0.6:", "-o", "./people.csv"], "would take"),
        (["report", "bank.mcce", "people.csv", "--overwrite", "-o", "same.html"], "would take"),
        (["explain", "bank.mcce", "data/part-000000.csv", *parts, "--overwrite"], "would take"),
        (["explain", "bank.mcce", "train.csv", *parts], "holds other files"),
        (["explain", "bank.mcce", "train.csv", *parts, "--overwrite"], "holds other files"),
    ]:
        assert main([*command, *predictor]) == USAGE, command
        assert text in capsys.readouterr().err

    assert (here / "people.csv").read_bytes() == before
    assert len(list((here / "data").iterdir())) == 2


def test_neither_a_predictor_nor_what_describes_the_run_is_replaced(here, capsys):
    (here / "models").mkdir()
    (here / "models/__init__.py").write_text("")
    (here / "models/bank.py").write_text("from scoring import score")
    (here / "secret.key").write_bytes(b"k" * 32)
    predictor, people = ["--predictor", "models.bank:score"], ["explain", "bank.mcce", "people.csv"]
    csv, fit = ["--output-format", "csv", "--overwrite"], ["fit", "train.csv", "--desired", "0.6:"]
    wrong = [
        [*fit, *predictor, "-o", "models/bank.py"],
        [*fit, *predictor, "-o", "scoring.py"],
        [*fit, *predictor, "--key-file", "secret.key", "-o", "secret.key"],
        [*people, *predictor, *csv, "-o", "./scoring.py"],
        [*people, *predictor, *csv, "--rules", "rules.toml", "-o", "rules.toml"],
        [*people, *predictor, *csv, "--labels", "labels.toml", "-o", "labels.toml"],
        [*people, *predictor, *csv, "-o", "bank.mcce"],
        [*people, "--predictor", "model.joblib", "--trust", *csv, "-o", "model.joblib"],
    ]
    kept = ["scoring.py", "models/bank.py", "secret.key", "rules.toml", "labels.toml"]
    kept += ["bank.mcce", "model.joblib"]
    before = [(here / name).read_bytes() for name in kept]

    for command in wrong:
        assert main(command) == USAGE, command
        assert "would take the place of" in " ".join(capsys.readouterr().err.split())

    assert [(here / name).read_bytes() for name in kept] == before


def test_two_runs_do_not_share_an_output(explain, here, odd, capsys):
    assert explain("-o", "answers.csv", predictor="odd:meets") == 0

    assert sys.modules["odd"].codes == [USAGE]
    assert "Another run is writing to" in capsys.readouterr().err
    assert not (here / "answers.csv.parts").exists()


@pytest.mark.parametrize("shared", [[], ["--workers", "1"]], ids=["alone", "shared"])
def test_an_output_that_appears_meanwhile_stays(explain, here, capsys, shared):
    # As if another run ended while the predictor was loaded.
    (here / "meanwhile.py").write_text(
        "from scoring import score\nopen('answers.csv', 'w').write('of another run')"
    )

    assert explain("-o", "answers.csv", *shared, predictor="meanwhile:score") == USAGE
    assert explain("-o", "answers.csv", "--resume", *shared, predictor="meanwhile:score") == 0

    assert " people in " not in capsys.readouterr().err
    assert (here / "answers.csv").read_text() == "of another run"
    assert not (here / "answers.csv.parts").exists()


def test_a_folder_that_another_run_has_just_removed_is_locked_anew(explain, here, monkeypatch):
    fcntl, handles = pytest.importorskip("fcntl"), []
    lock = fcntl.flock

    def remove_first(handle, how):
        if not handles:
            (here / "answers.csv.parts").rmdir()
        handles.append(handle)
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)

    assert explain("-o", "answers.csv") == 0

    # The number of a handle that is closed is given to the next.
    assert len(handles) == 2
    assert handles[0] == handles[1]


def test_no_cell_forges_a_row(explain, here):
    table = pd.read_csv("people.csv").head(3)
    table["id"] = ["a\rforged", "b\nforged", "c\r\nforged"]
    table.to_json("people.jsonl", orient="records", lines=True)

    assert explain("-o", "made.csv", "--keep", "id", people="people.jsonl") == 0

    with open("made.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows if row["rank"] in ("", "1")] == table["id"].tolist()


def test_what_a_predictor_prints_is_no_result(explain, odd, capfd):
    assert explain("-o", "-", "--output-format", "csv", "-q", predictor="odd:prints") == 0

    printed = capfd.readouterr()
    assert "hello" in printed.err
    assert "hello" not in printed.out
    assert printed.out.startswith("factual,")
    command = ["fit", "train.csv", "--predictor", "odd:prints", "--desired", "0.6:"]
    assert main([*command, "-o", "other.mcce", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["output"] == "other.mcce"


def test_a_predictor_that_ends_the_program_is_an_error(explain, here, odd, capsys):
    (here / "leaving.py").write_text("raise SystemExit(0)")

    for predictor in ("odd:ends", "leaving:score"):
        assert explain("-o", "answers.csv", predictor=predictor) == PREDICTOR
        assert "the predictor ended the program" in capsys.readouterr().err
    assert not (here / "answers.csv").exists()


def test_each_command_gets_the_module_of_its_own_folder(here, monkeypatch):
    command = ["fit", "../train.csv", "--predictor", "mybox:score", "--desired", "30:"]
    for folder in ("a", "b", "a"):
        (here / folder).mkdir(exist_ok=True)
        # A helper of the module is found in the same folder.
        (here / folder / "myname.py").write_text(f"name = {folder!r}")
        (here / folder / "mybox.py").write_text(
            "from pathlib import Path\nfrom myname import name\n"
            "def score(frame):\n    Path(name).touch()\n    return frame['Age']\n"
        )
        monkeypatch.chdir(here / folder)
        assert main([*command, "-o", "own.mcce", "--quiet"]) == 0

    assert (here / "a/a").exists()
    assert (here / "b/b").exists()
    assert not (here / "b/a").exists()


def test_an_output_may_be_a_link(explain, here):
    (here / "elsewhere").mkdir()
    os.symlink(here / "elsewhere" / "real.csv", "answers.csv")

    assert explain("-o", "answers.csv", "--block-rows", 20) == 0

    assert (here / "answers.csv").is_symlink()
    assert [file.name for file in (here / "elsewhere").iterdir()] == ["real.csv"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
def test_a_report_on_a_file_whose_name_is_no_unicode(here):
    name = os.fsdecode(b"pe\xffople.csv")
    os.rename("people.csv", name)
    command = ["report", "bank.mcce", name, "--predictor", "scoring:score", "--row", "0"]

    assert main([*command, "-o", "report.html", "-q"]) == 0

    assert "pe\\udcffople.csv" in (here / "report.html").read_text(encoding="utf-8")
