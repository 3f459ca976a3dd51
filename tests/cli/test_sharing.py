"""Files to files: what workers and partitions must not change, and what may go wrong."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pandas as pd
import pytest

from bank_files import INPUT, INTERRUPTED, PREDICTOR, USAGE, WAITING
from mcce.cli import main
from terminals import in_terminal

KEY = ["--key", "customer"]
ONE = [*KEY, "--workers", 1]


@pytest.fixture
def share(explain):
    """Run ``mcce explain`` on the lake with some more arguments."""
    pd.read_parquet("lake").to_parquet("all.parquet", index=False)

    def run(*arguments, people=("lake",), **options):
        return explain(*arguments, people=people, **options)

    return run


def table(output):
    """The answers, sorted by key and rank."""
    rows = pd.read_parquet(output)
    rows["customer"] = rows["customer"].astype("int64")
    return rows.sort_values(["customer", "rank"], ignore_index=True)


@pytest.fixture
def assert_same(share):
    """The answers are those that one process gives to people in one file."""
    assert share("-o", "expected.parquet", *KEY, people=["all.parquet"]) == 0
    expected = table("expected.parquet")

    def compare(output):
        pd.testing.assert_frame_equal(table(output), expected, check_exact=True)

    return compare


@pytest.mark.slow
def test_two_workers_give_the_answers_of_one_process(share, here, assert_same):
    # Whatever a module of the folder reads is found by workers, too.
    (here / "weights.txt").write_text("1.5")
    text = (here / "scoring.py").read_text().replace("1.5 -", "float(WEIGHT) -")
    read = (
        "from pathlib import Path\nWEIGHT = Path(__file__).with_name('weights.txt').read_text()\n"
    )
    (here / "weighted.py").write_text(read + text)

    options = [*KEY, "--workers", 2, "--block-rows", 7]
    assert share("-o", "answers/", *options, predictor="weighted:score") == 0

    assert_same("answers")
    assert json.loads((here / "answers/_manifest.json").read_text())["n_parts"] == 12


@pytest.mark.parametrize("block_rows", [3, 100])
def test_answers_do_not_depend_on_partitions(share, assert_same, block_rows):
    pd.read_parquet("all.parquet").to_parquet("all.parquet", row_group_size=11)

    options = [*ONE, "--block-rows", block_rows]
    assert share("-o", "answers/", *options, people=["all.parquet"]) == 0

    assert_same("answers")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".jsonl"])
def test_a_shared_run_of_one_file_gives_the_bytes_of_a_run_alone(share, here, suffix):
    one = ["all.parquet"]
    assert share("-o", f"alone{suffix}", "--keep", "customer", people=one) == 0
    options = ["--keep", "customer", "--workers", 1, "--block-rows", 20]
    assert share("-o", f"shared{suffix}", *options, people=one) == 0

    assert (here / f"shared{suffix}").read_bytes() == (here / f"alone{suffix}").read_bytes()
    assert not list(here.glob("*.parts"))


def test_files_of_all_formats_go_together(share, assert_same):
    people = pd.read_parquet("all.parquet")
    people[:15].to_csv("a.csv", index=False)
    people[15:30].to_json("b.jsonl", orient="records", lines=True)
    people[30:45].reset_index(drop=True).to_feather("c.feather")
    people[45:].to_parquet("d.parquet", index=False)
    people[:0].to_csv("e.csv", index=False)
    people[:0].to_parquet("f.parquet", index=False)

    files = ["a.csv", "b.jsonl", "c.feather", "d.parquet", "e.csv", "f.parquet"]
    assert share("-o", "answers.parquet", *ONE, "--block-rows", 4, people=files) == 0

    assert pd.read_parquet("answers.parquet")["customer"].iloc[0] == "100"
    assert_same("answers.parquet")
    assert share("-o", "nobody/", *ONE, people=files[4:]) == 0
    assert table("nobody").empty


def test_what_cannot_be_answered_never_stops_the_others(share, here, assert_same, capsys):
    good = pd.read_parquet("lake/0.parquet")
    (here / "lake/3.parquet").write_bytes(b"no Parquet at all")
    good.drop(columns="Age").to_parquet("lake/4.parquet", index=False)
    good.astype({"Age": str}).assign(Age="old").to_parquet("lake/5.parquet", index=False)
    (here / "lake/6.csv").write_text("")
    good.to_feather("lake/7.arrow")
    (here / "lake/7.arrow").write_bytes((here / "lake/7.arrow").read_bytes()[:-300])
    capsys.readouterr()

    assert share("-o", "answers/", *ONE, "--json") == INPUT

    said = capsys.readouterr()
    summary, error = json.loads(said.out), json.loads(said.err.splitlines()[-1])
    assert "5 of 8 partitions failed" in error["error"]["message"]
    assert [os.path.basename(one["path"]) for one in summary["failed"]] == [
        *("3.parquet", "4.parquet", "5.parquet", "6.csv", "7.arrow")
    ]
    assert "lacks the columns ['Age']" in summary["failed"][1]["reason"]
    assert "row 1 (in the block of rows 1 to 20): expected" in summary["failed"][2]["reason"]
    assert json.loads((here / "answers/_failures.json").read_text()) == summary["failed"]
    assert json.loads((here / "answers/_manifest.json").read_text())["n_parts"] is None
    assert summary["n_people"] == 60
    assert_same("answers")


def test_a_run_with_failures_goes_on_once_files_are_mended(share, here, assert_same, capsys):
    (here / "mended").write_bytes((here / "lake/1.parquet").read_bytes())
    (here / "lake/1.parquet").write_bytes(b"half")
    changed = pd.read_parquet("lake/2.parquet")
    changed.assign(Duration=changed["Duration"] + 6).to_parquet("lake/2.parquet", index=False)
    options = ["-o", "answers/", *ONE, "--block-rows", 7]
    assert share(*options) == INPUT
    said = capsys.readouterr().err
    assert "1.parquet': Cannot read" in said
    assert "1 of 8 partitions failed" in said
    first = (here / "answers/part-000000-000000000000.parquet").stat().st_mtime_ns
    assert share(*options) == USAGE
    assert share(*options, "--resume", people=["lake/0.parquet", "lake/2.parquet"]) == USAGE
    assert "n_files of people was 3 and is 2 now" in capsys.readouterr().err

    (here / "mended").rename(here / "lake/1.parquet")
    changed.to_parquet("lake/2.parquet", index=False)
    assert share(*options, "--resume") == 0

    assert "11 partitions. 4 parts are from an earlier run." in capsys.readouterr().err
    assert_same("answers")
    assert (here / "answers/part-000000-000000000000.parquet").stat().st_mtime_ns == first
    assert not (here / "answers/_failures.json").exists()
    assert share(*options, "--resume") == 0
    assert "no run is left to resume" in capsys.readouterr().err


def test_what_cannot_work_is_said_before_anything_is_done(share, here, capsys, monkeypatch):
    (here / "precious.parquet").write_text("precious")
    monkeypatch.setitem(sys.modules, "distributed", None)
    wrong = [
        ([], ["lake"], USAGE, "--key customer"),
        (["--key", "nonsense"], ["lake"], USAGE, "--key names columns"),
        (["--key", "Age"], ["lake"], USAGE, "features already"),
        ([*KEY, "--workers", "0"], ["lake"], USAGE, "at least 1, got 0"),
        ([*KEY, "--engine", "abacus"], ["lake"], USAGE, "got 'abacus'"),
        ([*KEY, "--engine", "dask"], ["lake"], USAGE, 'pip install ".[dask]"'),
        ([*KEY, "--jobs", "2"], ["lake"], USAGE, "--workers"),
        ([*KEY, "--block-rows", "0"], ["lake"], USAGE, "at least 1, got 0"),
        ([*KEY, "--predictor", "scoring:none"], ["lake"], PREDICTOR, "imported"),
        (KEY, ["lake", "lake/1.parquet"], USAGE, "twice"),
        (KEY, ["lake", "no.parquet"], INPUT, "No such file"),
        (KEY, ["no*.parquet"], INPUT, "There are no files in"),
        (["--workers", "2"], ["-"], USAGE, "Standard input"),
        (KEY, ["lake", "-"], USAGE, "one of several files"),
        (KEY, ["lake", "bank.mcce"], USAGE, "--format"),
        ([*ONE, "-o", "-", "--output-format", "csv"], ["lake"], USAGE, "Workers write files"),
        ([*ONE, "-o", "lake/"], ["lake"], USAGE, "would take the place of"),
        ([*ONE, "-o", "precious.parquet"], ["lake"], USAGE, "exists already"),
    ]
    for arguments, people, code, text in wrong:
        assert share("-o", "answers/", *arguments, people=people) == code, arguments
        assert text in " ".join(capsys.readouterr().err.split())
    for path in (here / "lake").iterdir():
        path.write_bytes(b"no Parquet")
    assert share("-o", "answers/", *ONE) == INPUT
    assert "0.parquet' as parquet" in capsys.readouterr().err
    assert not (here / "answers").exists()
    assert len(list((here / "lake").iterdir())) == 3
    assert (here / "precious.parquet").read_text() == "precious"


FAILING = """
import sys
from pathlib import Path
from scoring import score as good

def score(frame):
    if frame["Duration"].eq(777).any():
        with Path(__file__).with_name("tried.txt").open("a") as file:
            file.write("x")
        if Path(__file__).with_name("tried.txt").stat().st_size <= LIMIT:
            HOW
    return good(frame)
"""


@pytest.fixture
def failing(here):
    """A predictor that fails for the people of a file, so many times."""
    people = pd.read_parquet("lake/1.parquet")
    people.assign(Duration=777).to_parquet("lake/1.parquet", index=False)

    def write(how, limit=1000):
        (here / "failing.py").write_text(FAILING.replace("LIMIT", str(limit)).replace("HOW", how))
        return "failing:score"

    return write


def test_a_predictor_that_fails_is_tried_again_and_listed(share, here, failing, capsys):
    options, predictor = ["-o", "answers/", *ONE], failing("raise ValueError('a secret cell')")

    assert share(*options, predictor=predictor) == PREDICTOR

    assert len((here / "tried.txt").read_text()) >= 3
    said = capsys.readouterr().err
    assert said.count("mcce: failed, to be tried again: ") == 2
    assert said.count("mcce: failed: ") == 1
    assert "1 of 3 partitions failed" in said
    assert "secret" not in said + (here / "answers/_failures.json").read_text()
    assert share(*options, "--resume", "--debug", predictor=predictor) == PREDICTOR
    assert "ValueError: a secret cell" in capsys.readouterr().err
    assert "secret" not in (here / "answers/_failures.json").read_text()


def test_a_failure_that_passes_and_a_pickle_are_told_once(share, failing, capsys):
    assert share("-o", "answers/", *ONE, predictor=failing("raise OSError", 2)) == 0
    assert "mcce: failed, to be tried again: " in capsys.readouterr().err
    fit = ["fit", "train.csv", "--predictor", "model.joblib", "--trust", "--desired", "0.5:"]
    assert main([*fit, "-o", "bank.mcce"]) == 0
    capsys.readouterr()

    assert share("-o", "others/", *ONE, "--trust", predictor="model.joblib") == 0

    assert capsys.readouterr().err.count("runs the code") == 1


def test_a_predictor_that_ends_the_program_fails_alone(share, failing, capsys):
    assert share("-o", "answers/", *ONE, predictor=failing("sys.exit(7)")) == PREDICTOR

    said = capsys.readouterr().err
    assert "ended the program (exit 7)" in said
    assert "1 of 3 partitions failed" in said


def test_a_predictor_that_fails_for_everybody_stops_the_run(share, failing, capsys):
    people = pd.read_parquet("all.parquet").assign(Duration=777)
    people.to_parquet("all.parquet", row_group_size=10)
    predictor = failing("raise ConnectionError")

    options = ["-o", "answers/", *ONE, "--block-rows", 1]
    assert share(*options, people=["all.parquet"], predictor=predictor) == PREDICTOR

    said = capsys.readouterr().err
    assert said.count("to be tried again") == 5
    assert "further failures are not shown" in said
    assert "The first 10 partitions failed, and none is complete" in said
    assert "0 of 60 partitions are complete" in said
    assert "--resume goes on from there" in said


@pytest.mark.slow
def test_a_person_who_kills_every_worker_costs_one_partition(share, here, assert_same, capsys):
    (here / "dying.py").write_text(
        "import os\nfrom scoring import score as good\n"
        "def score(frame):\n    return os._exit(3) if frame['Age'].eq(99).any() else good(frame)\n"
    )
    people = pd.read_parquet("lake/1.parquet")
    people[:1].assign(Age=99).to_parquet("lake/3.parquet", index=False)

    assert share("-o", "answers/", *KEY, "--workers", 2, predictor="dying:score") == PREDICTOR

    said = capsys.readouterr().err
    assert "1 of 4 partitions failed" in said
    assert "3.parquet', rows 1 to 1: The worker died: it ran out of memory" in said
    (listed,) = json.loads((here / "answers/_failures.json").read_text())
    assert listed["kind"] == "WorkerError"
    assert_same("answers")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals and terminals of POSIX")
@pytest.mark.parametrize("how", ["ctrl-c", "kill"])
def test_a_run_that_is_ended_early_goes_on(share, here, capsys, how):
    old = pd.read_parquet("lake/2.parquet").assign(Age=99)
    old.to_parquet("lake/2.parquet", index=False)
    (here / "waiting.py").write_text(WAITING)
    files = ["explain", "bank.mcce", "lake", "--predictor", "waiting:score", *KEY]
    command = [*files, "-o", "answers.parquet", "--block-rows", "7"]

    code, shown = in_terminal(
        [*command, "--workers", 2],
        act_when=Path("inside").exists,
        act=None if how == "ctrl-c" else lambda process: process.kill(),
        WAIT_FOR_RELEASE="yes",
    )

    if how == "kill":
        assert code == -signal.SIGKILL
    else:
        assert code == INTERRUPTED
        assert "partitions are complete" in shown
        assert "/60" in shown  # the bar
        assert "--resume" in shown
    assert "Traceback" not in shown
    assert share("-o", "answers.parquet", *ONE, "--resume") == USAGE  # another predictor
    assert main([*command, "--workers", "1", "--resume"]) == 0
    answers = (here / "answers.parquet").read_bytes()
    # Workers that outlive their run write nothing any more.
    Path("release").touch()
    assert main([*files, "--workers", "1", "-o", "whole.parquet"]) == 0
    pd.testing.assert_frame_equal(table("answers.parquet"), table("whole.parquet"))
    assert (here / "answers.parquet").read_bytes() == answers
    assert not list(here.glob("*.parts"))
