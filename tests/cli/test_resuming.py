"""Runs that end early leave complete parts, and go on without losing or repeating anything."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys

import pandas as pd
import pytest

from bank_files import INPUT, INTERRUPTED, OUTPUT, PREDICTOR, USAGE

BLOCKS = ["-o", "answers.csv", "--block-rows", 10]
# What happens to whoever is 99 years old, unless a file says that it is over.
SUDDEN = """
import os, signal
from pathlib import Path
from scoring import score as good

def score(frame):
    if frame["Age"].eq(99).any() and not Path("over").exists():
        {what}
    return good(frame)
"""


@pytest.fixture
def parts(here):
    """Where the answers to complete blocks are until all are."""
    return here / "answers.csv.parts"


@pytest.fixture
def change(here):
    """Change a cell of people.csv."""

    def write(row, column, text):
        people = pd.read_csv("people.csv", dtype=str)
        people.loc[row, column] = text
        people.to_csv("people.csv", index=False)

    return write


@pytest.fixture
def assert_whole(explain, here):
    """The answers are those of a run that nothing interrupts."""

    def compare(**options):
        assert explain("-o", "whole.csv", **options) == 0
        assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()
        assert not (here / "answers.csv.parts").exists()

    return compare


def test_a_wrong_cell_half_way_names_row_and_column_and_the_run_goes_on(
    explain, here, parts, change, assert_whole, capsys
):
    change(36, "Age", "Smith")

    assert explain(*BLOCKS) == INPUT

    said = capsys.readouterr().err
    assert "'Age'" in said
    assert "row 37 (in the block of rows 31 to 40)" in said
    assert "whole number" in said
    assert "Smith" not in said
    assert "first 30 people are complete" in said
    assert not (here / "answers.csv").exists()
    written = {path: path.stat().st_mtime_ns for path in parts.glob("part-*.csv")}
    assert len(written) == 3
    assert explain(*BLOCKS, "--overwrite", "--resume") == USAGE
    assert "Leave out one of them" in capsys.readouterr().err
    assert explain(*BLOCKS, "--resume") == INPUT
    assert written == {path: path.stat().st_mtime_ns for path in parts.glob("part-*.csv")}
    change(36, "Age", "50")
    assert explain("-o", "answers.csv", "--resume") == 0
    assert_whole()


def test_parts_that_were_damaged_and_people_who_changed_are_answered_again(
    explain, parts, change, assert_whole
):
    change(3, "CreditAmount", "18000")
    change(36, "Age", "?")
    assert explain(*BLOCKS) == INPUT
    part = sorted(parts.glob("part-*.csv"))[1]
    part.write_bytes(part.read_bytes().replace(b"1", b"2", 1))

    change(3, "CreditAmount", "1500")
    change(36, "Age", "50")

    assert explain("-o", "answers.csv", "--resume") == 0
    assert_whole()


def test_a_run_with_other_settings_is_not_continued(explain, parts, change, assert_whole, capsys):
    change(36, "Age", "?")
    assert explain(*BLOCKS) == INPUT
    capsys.readouterr()

    assert explain("-o", "answers.csv") == USAGE
    assert "unfinished run" in capsys.readouterr().err
    assert explain("-o", "answers.csv", "--resume", "--block-rows", 20) == USAGE
    assert "block_rows was 10 and is 20 now" in capsys.readouterr().err
    for other in (["--n-counterfactuals", 2], ["--rules", "rules.toml"], ["--delimiter", ";"]):
        assert explain("-o", "answers.csv", "--resume", *other) != 0
    manifest = json.loads((parts / "_manifest.json").read_text())
    manifest["run_key"]["block_rows"] = "many"
    (parts / "_manifest.json").write_text(json.dumps(manifest))
    assert explain("-o", "answers.csv", "--resume") == USAGE
    (parts / "_manifest.json").write_text("{}")
    change(36, "Age", "50")
    assert explain("-o", "answers.csv", "--resume") == INPUT
    assert explain("-o", "answers.csv", "--overwrite") == 0
    assert_whole()


def test_a_run_does_not_go_on_with_another_predictor(explain, here, change, assert_whole, capsys):
    text = (here / "scoring.py").read_text()
    (here / "helper.py").write_text("BASE = 1.5")
    (here / "mine.py").write_text(f"import helper\n{text.replace('1.5 -', 'helper.BASE -')}")
    change(36, "Age", "?")
    assert explain(*BLOCKS, predictor="mine:score") == INPUT
    change(36, "Age", "50")
    forget = ["helper", "mine"]
    # A score that differs where no probe of the explainer is, in the module or one it imports.
    for name, code in [("mine", "#"), ("helper", "import os\nBASE = 1.5")]:
        before = (here / f"{name}.py").read_text()
        (here / f"{name}.py").write_text(before + "\n" + code)
        for module in forget:
            sys.modules.pop(module)
        assert explain("-o", "answers.csv", "--resume", predictor="mine:score") == USAGE
        assert "predictor_sha256 was" in capsys.readouterr().err
        (here / f"{name}.py").write_text(before)
    for module in forget:
        sys.modules.pop(module)

    assert explain("-o", "answers.csv", "--resume", predictor="mine:score") == 0

    said = " ".join(capsys.readouterr().err.split())
    assert "3 parts are from an earlier run" in said
    assert "whatever else it reads was not compared" in said
    assert_whole()


def test_one_person_of_every_part_is_scored_again(explain, here, change, capsys):
    (here / "more.txt").write_text("0")
    (here / "reading.py").write_text(
        "from pathlib import Path\nfrom scoring import score as good\n"
        "def score(frame):\n"
        "    more = float(Path(__file__).with_name('more.txt').read_text())\n"
        "    return good(frame) - more * frame['CreditAmount'].eq(77).to_numpy()\n"
    )
    change(20, "CreditAmount", "77")
    change(36, "Age", "?")
    assert explain(*BLOCKS, predictor="reading:score") == INPUT
    change(36, "Age", "50")
    (here / "more.txt").write_text("0.1")

    assert explain("-o", "answers.csv", "--resume", predictor="reading:score") == PREDICTOR

    said = " ".join(capsys.readouterr().err.split())
    assert "had another predictor: it scored row 21 of 'people.csv' otherwise" in said
    assert "--overwrite" in said
    (here / "more.txt").write_text("0")
    assert explain("-o", "answers.csv", "--resume", predictor="reading:score") == 0


def test_a_run_that_has_ended_has_nothing_to_resume(explain, here, capsys):
    assert explain("-o", "answers.csv", "--resume") == 0
    content = (here / "answers.csv").read_bytes()

    assert explain("-o", "answers.csv", "--resume") == 0

    assert "no run is left to resume" in capsys.readouterr().err
    assert (here / "answers.csv").read_bytes() == content
    assert explain("-o", "answers.csv") == USAGE
    assert "--overwrite" in capsys.readouterr().err


def test_ctrl_c_leaves_complete_parts(explain, here, change, assert_whole, capsys):
    change(25, "Age", "99")
    (here / "sudden.py").write_text(SUDDEN.format(what="raise KeyboardInterrupt"))

    assert explain(*BLOCKS, predictor="sudden:score") == INTERRUPTED

    assert "interrupted. The answers to the first 20 people" in capsys.readouterr().err
    (here / "over").touch()
    assert explain("-o", "answers.csv", "--resume", predictor="sudden:score") == 0
    assert_whole()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_run_that_is_killed_goes_on(explain, here, parts, change, assert_whole):
    change(35, "Age", "99")
    kill = SUDDEN.format(what="os.kill(os.getpid(), signal.SIGKILL)")
    (here / "sudden.py").write_text(kill)
    files = ["explain", "bank.mcce", "people.csv", "--predictor", "sudden:score"]
    command = [sys.executable, "-m", "mcce", *files, *map(str, BLOCKS)]

    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL

    assert len(list(parts.glob("_part-*.json"))) == 3
    (here / "over").touch()
    assert explain("-o", "answers.csv", "--resume", predictor="sudden:score") == 0
    assert_whole()


def test_a_disk_that_is_full_leaves_complete_parts_and_the_run_goes_on(
    explain, here, parts, capsys
):
    resource = pytest.importorskip("resource")
    people = pd.read_csv("people.csv").assign(note="")
    people.loc[35, "note"] = "x" * 500_000
    people.to_csv("people.csv", index=False)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, limits[1]))
    try:
        code = explain(*BLOCKS, "--keep", "note")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    said = capsys.readouterr().err
    assert code == OUTPUT
    assert "File too large" in said
    assert "--resume" in said
    kinds = [path.name.split("-")[0] for path in parts.iterdir()]
    assert sorted(kinds) == ["_manifest.json", *["_part"] * 3, *["part"] * 3]
    assert explain("-o", "answers.csv", "--keep", "note", "--resume") == 0
    assert explain("-o", "whole.csv", "--keep", "note") == 0
    assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()


def stdout_to(monkeypatch, descriptor):
    stream = io.TextIOWrapper(os.fdopen(descriptor, "wb", buffering=0))
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_standard_output_that_is_full_or_closed_is_an_error(explain, capsys, monkeypatch):
    streaming = ["-o", "-", "--output-format", "csv", "-q"]
    reading, writing = os.pipe()
    os.close(reading)

    with stdout_to(monkeypatch, os.open("/dev/full", os.O_WRONLY)):
        assert explain(*streaming) == OUTPUT
    assert "No space left on device" in capsys.readouterr().err
    with stdout_to(monkeypatch, writing):
        assert explain(*streaming) == OUTPUT
    assert capsys.readouterr().err == ""
