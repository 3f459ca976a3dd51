"""Files to files: what engines, workers and partitions must not change, and what may go wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from joblib.externals.loky import get_reusable_executor

from mcce.cli import main
from mcce.cli.failures import INPUT, INTERRUPTED, PREDICTOR, USAGE
from mcce.cli.modules import Origin
from mcce.cli.predictors import PredictorChoice, PredictorLoader
from mcce.errors import PredictorError
from mcce.execution.executor import ENGINES, LIBRARIES
from mcce.execution.files import PATIENCE, RETRIES
from terminals import in_terminal

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and terminals of POSIX")
WHERE = [("local", 1), ("local", 2)]
WHERE += [
    pytest.param(engine, 2, marks=pytest.mark.slow) for engine in ENGINES if engine != "local"
]

SLOW_SCORE = """
import time
from scoring import score as good
def score(frame):
    time.sleep(0.05)
    return good(frame)
"""


def require(engine):
    if engine in LIBRARIES and importlib.util.find_spec(LIBRARIES[engine]) is None:
        pytest.skip(f"{engine} is not installed")


@pytest.fixture
def lake(here):
    """People with a number each: in a folder of three files, and in one."""
    pd.read_parquet("lake").to_parquet("all.parquet", index=False)
    return here


@pytest.fixture
def share(lake):
    """Run ``mcce explain`` on the lake with some more arguments."""

    def run(*arguments, people=("lake",), predictor="scoring:score"):
        command = ["explain", "bank.mcce", *people, "--predictor", predictor]
        return main([*command, *map(str, arguments)])

    return run


def table(output):
    """The answers, sorted by key and rank."""
    rows = pd.read_parquet(output)
    rows["customer"] = rows["customer"].astype("int64")
    return rows.sort_values(["customer", "rank"], ignore_index=True)


@pytest.fixture
def expected(share):
    """What one process makes of one file."""
    assert share("-o", "expected.parquet", "--key", "customer", people=["all.parquet"]) == 0
    return table("expected.parquet")


def assert_same(output, expected):
    pd.testing.assert_frame_equal(table(output), expected, check_exact=True)


@pytest.mark.parametrize(("engine", "workers"), WHERE)
def test_answers_do_not_depend_on_engine_and_workers(share, lake, expected, engine, workers):
    require(engine)
    # Whatever a module of the current folder reads must be found by workers too.
    (lake / "weights.txt").write_text("1.5")
    text = (lake / "scoring.py").read_text()
    loaded = text.replace("1.5 -", "float(WEIGHT) -")
    (lake / "weighted.py").write_text(f"WEIGHT = open('weights.txt').read()\n{loaded}")
    # A command starts workers in its own folder; those of an earlier test are in another.
    get_reusable_executor().shutdown(wait=True)

    options = ["--key", "customer", "--engine", engine, "--workers", workers, "--block-rows", 7]
    assert share("-o", "answers/", *options, predictor="weighted:score") == 0

    assert_same("answers", expected)
    assert json.loads((lake / "answers/_manifest.json").read_text())["n_parts"] == 12


@pytest.mark.parametrize("block_rows", [1, 7, 100])
@pytest.mark.parametrize("group_rows", [3, 60])
def test_answers_do_not_depend_on_partitions(share, expected, block_rows, group_rows):
    pd.read_parquet("all.parquet").to_parquet("all.parquet", row_group_size=group_rows)

    options = ["--key", "customer", "--workers", 1, "--block-rows", block_rows]
    assert share("-o", "answers/", *options, people=["all.parquet"]) == 0

    assert_same("answers", expected)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".jsonl"])
def test_a_shared_run_of_one_file_gives_the_bytes_of_a_run_alone(share, lake, suffix):
    one = ["all.parquet"]
    assert share("-o", f"alone{suffix}", "--keep", "customer", people=one) == 0
    options = ["--keep", "customer", "--workers", 1, "--block-rows", 7]
    assert share("-o", f"shared{suffix}", *options, people=one) == 0

    assert (lake / f"shared{suffix}").read_bytes() == (lake / f"alone{suffix}").read_bytes()
    assert not list(lake.glob("*.parts"))


def test_files_of_all_formats_go_together(share, lake, expected):
    people = pd.read_parquet("all.parquet")
    people[:15].to_csv("a.csv", index=False)
    people[15:30].to_json("b.jsonl", orient="records", lines=True)
    people[30:45].reset_index(drop=True).to_feather("c.feather")
    people[45:].to_parquet("d.parquet", index=False)

    files = ["a.csv", "b.jsonl", "c.feather", "d.parquet"]
    options = ["--key", "customer", "--workers", 1, "--block-rows", 4]
    assert share("-o", "answers.parquet", *options, people=files) == 0

    assert pd.read_parquet("answers.parquet")["customer"].iloc[0] == "100"
    assert_same("answers.parquet", expected)


def test_patterns_and_folders_name_files_as_lakes_have_them(share, lake, expected):
    (lake / "lake/_SUCCESS").write_text("")
    (lake / "lake/.hidden.parquet").write_text("no Parquet")
    (lake / "lake/year=2026").mkdir()
    (lake / "lake/2.parquet").rename(lake / "lake/year=2026/2.parquet")
    options = ["--key", "customer", "--workers", 1]

    assert share("-o", "folder/", *options) == 0
    assert share("-o", "pattern/", *options, people=["lake/**/*.parquet"]) == 0
    assert share("-o", "part/", *options, people=["lake/[01].parquet"]) == 0

    assert_same("folder", expected)
    assert_same("pattern", expected)
    assert len(set(table("part")["customer"])) == 40


def poison(lake):
    """Four files that cannot be answered, each in its own way."""
    good = pd.read_parquet("lake/0.parquet")
    (lake / "lake/3.parquet").write_bytes(b"no Parquet at all")
    good.drop(columns="Age").to_parquet("lake/4.parquet", index=False)
    good.astype({"Age": str}).assign(Age="old").to_parquet("lake/5.parquet", index=False)
    (lake / "lake/6.csv").write_text("")


def test_what_cannot_be_answered_never_stops_the_others(share, lake, expected, capsys):
    poison(lake)
    capsys.readouterr()

    assert share("-o", "answers/", "--key", "customer", "--workers", 1, "--json") == INPUT

    said = capsys.readouterr()
    summary, error = json.loads(said.out), json.loads(said.err.splitlines()[-1])
    assert "4 of 7 partitions failed" in error["error"]["message"]
    assert [os.path.basename(one["path"]) for one in summary["failed"]] == [
        *("3.parquet", "4.parquet", "5.parquet", "6.csv")
    ]
    assert "lacks the columns ['Age']" in summary["failed"][1]["reason"]
    assert "row 1 (in the block of rows 1 to 20): expected" in summary["failed"][2]["reason"]
    assert json.loads((lake / "answers/_failures.json").read_text()) == summary["failed"]
    assert json.loads((lake / "answers/_manifest.json").read_text())["n_parts"] is None
    assert summary["n_people"] == 60
    assert_same("answers", expected)


def test_a_run_with_failures_goes_on_once_files_are_mended(share, lake, expected, capsys):
    (lake / "mended").write_bytes((lake / "lake/1.parquet").read_bytes())
    (lake / "lake/1.parquet").write_bytes(b"half")
    options = ["-o", "answers/", "--key", "customer", "--workers", 1, "--block-rows", 7]
    assert share(*options) == INPUT
    said = capsys.readouterr().err
    assert "1.parquet': Cannot read" in said
    assert "1 of 9 partitions failed" in said
    parts = {path: path.stat().st_mtime_ns for path in (lake / "answers").glob("part-*")}
    assert share(*options) == USAGE

    (lake / "mended").rename(lake / "lake/1.parquet")
    assert share(*options, "--resume") == 0

    assert "12 partitions, 8 of them from an earlier run" in capsys.readouterr().err
    assert_same("answers", expected)
    assert all(path.stat().st_mtime_ns == moment for path, moment in parts.items())
    assert not (lake / "answers/_failures.json").exists()
    assert share(*options, "--resume") == 0
    assert "no run is left to resume" in capsys.readouterr().err


def test_rows_that_changed_are_answered_again(share, lake, expected):
    people = pd.read_parquet("lake/0.parquet")
    people.assign(Duration=people["Duration"] + 6).to_parquet("lake/0.parquet", index=False)
    (lake / "mended").write_bytes((lake / "lake/1.parquet").read_bytes())
    (lake / "lake/1.parquet").write_bytes(b"half")
    options = ["-o", "answers.parquet", "--key", "customer", "--workers", 1]
    assert share(*options) == INPUT

    people.to_parquet("lake/0.parquet", index=False)
    (lake / "mended").rename(lake / "lake/1.parquet")
    assert share(*options, "--resume") == 0

    assert_same("answers.parquet", expected)


def test_another_set_of_files_is_another_run(share, lake, capsys):
    (lake / "lake/1.parquet").write_bytes(b"half")
    options = ["-o", "answers/", "--key", "customer", "--workers", 1]
    assert share(*options) == INPUT

    assert share(*options, "--resume", people=["lake/0.parquet", "lake/2.parquet"]) == USAGE

    assert "n_files of people was 3 and is 2 now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (("--delimiter", ";"), "delimiter was ',' and is ';' now"),
        (("--format", "jsonl"), "input_formats was ['csv'] and is ['jsonl'] now"),
    ],
)
def test_rows_that_are_read_otherwise_are_another_run(share, lake, capsys, option, text):
    people = pd.read_parquet("all.parquet")
    people.to_csv("good.csv", index=False)
    people.to_json("lines.jsonl", orient="records", lines=True)
    (lake / "bad.csv").write_text("")
    options = ["-o", "answers/", "--key", "customer", "--workers", 1]
    assert share(*options, people=["good.csv", "bad.csv"]) == INPUT
    # The second file can be read either way, so that the run gets as far as its parts.
    written = people.to_csv(index=False, sep=";") if ";" in option else None
    (lake / "bad.csv").write_text(written or (lake / "lines.jsonl").read_text())

    assert share(*options, "--resume", *option, people=["good.csv", "bad.csv"]) == USAGE

    assert text in capsys.readouterr().err


@pytest.mark.parametrize("rows", ["no rows", "only names"])
def test_files_without_people_are_no_error(share, lake, expected, rows):
    nobody = pd.read_parquet("lake/0.parquet")[:0]
    if rows == "no rows":
        nobody.to_parquet("lake/3.parquet", index=False)
    else:
        nobody.to_csv("lake/3.csv", index=False)

    assert share("-o", "answers/", "--key", "customer", "--workers", 1) == 0

    assert_same("answers", expected)
    alone = ["lake/3.parquet" if rows == "no rows" else "lake/3.csv"]
    assert share("-o", "nobody/", "--key", "customer", "--workers", 1, people=alone) == 0
    assert len(table("nobody")) == 0


def test_if_no_file_can_be_read_that_is_said_at_once(share, lake, capsys):
    for path in (lake / "lake").iterdir():
        path.write_bytes(b"no Parquet")

    assert share("-o", "answers/", "--key", "customer", "--workers", 1) == INPUT

    said = capsys.readouterr().err
    assert "0.parquet' as parquet" in said
    assert ".." not in said
    assert not (lake / "answers").exists()


WRONG = {
    "key": ((), {}, USAGE, "--key customer"),
    "column": (("--key", "nonsense"), {}, INPUT, "lacks the columns ['nonsense']"),
    "feature": (("--key", "Age"), {}, USAGE, "features already"),
    "workers": (("--key", "customer", "--workers", "0"), {}, USAGE, "at least 1, got 0"),
    "engine": (("--key", "customer", "--engine", "abacus"), {}, USAGE, "got 'abacus'"),
    "jobs": (("--key", "customer", "--jobs", "2"), {}, USAGE, "--workers"),
    "rate": (("--key", "customer", "--rows-per-second", "5"), {}, USAGE, "with --workers"),
    "in flight": (("--key", "customer", "--in-flight", "5"), {}, USAGE, "with --workers"),
    "too many": (
        ("--key", "customer", "--rows-per-second", "5", "--workers", "6"),
        {},
        USAGE,
        "at most --workers 5",
    ),
    "blocks": (("--key", "customer", "--block-rows", "0"), {}, USAGE, "at least 1, got 0"),
    "twice": (("--key", "customer"), {"people": ["lake", "lake/1.parquet"]}, USAGE, "twice"),
    "absent": (("--key", "x"), {"people": ["lake", "no.parquet"]}, INPUT, "No such file"),
    "nothing": (("--key", "x"), {"people": ["no*.parquet"]}, INPUT, "There are no files in"),
    "input": (("--workers", "2"), {"people": ["-"]}, USAGE, "Standard input"),
    "inputs": (("--key", "x"), {"people": ["lake", "-"]}, USAGE, "one of several files"),
    "format": (("--key", "x"), {"people": ["lake", "bank.mcce"]}, USAGE, "--format"),
    "predictor": (("--key", "customer"), {"predictor": "scoring:none"}, PREDICTOR, "imported"),
}


@pytest.mark.parametrize(("arguments", "more", "code", "text"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_is_said_before_anything_is_done(
    share, lake, capsys, arguments, more, code, text
):
    assert share("-o", "answers/", *arguments, **more) == code

    assert text in capsys.readouterr().err
    assert not (lake / "answers").exists()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("precious.parquet", "'precious.parquet' exists already"),
        ("lake/", "would take the place of"),
        ("-", "Workers write files"),
    ],
)
def test_output_is_not_replaced_and_not_mixed_with_input(share, lake, capsys, output, text):
    options = ["--output-format", "parquet", "--key", "customer", "--workers", 1]
    (lake / "precious.parquet").write_text("precious")

    assert share("-o", output, *options) == USAGE

    assert text in capsys.readouterr().err
    assert (lake / "precious.parquet").read_text() == "precious"
    assert len(list((lake / "lake").iterdir())) == 3
    assert share("-o", "precious.parquet", "--overwrite", *options) == 0


def test_a_predictor_that_fails_is_tried_again_and_listed(share, lake, capsys):
    tried = lake / "tried.txt"
    (lake / "failing.py").write_text(
        f"from scoring import score as good\n"
        f"def score(frame):\n"
        f"    if frame['Duration'].eq(777).any():\n"
        f"        with open({str(tried)!r}, 'a') as file: file.write('x')\n"
        f"        raise ValueError('a secret cell')\n"
        f"    return good(frame)\n"
    )
    people = pd.read_parquet("lake/1.parquet")
    people.assign(Duration=777).to_parquet("lake/1.parquet", index=False)

    options = ["-o", "answers/", "--key", "customer", "--workers", 1]
    assert share(*options, predictor="failing:score") == PREDICTOR

    assert len(tried.read_text()) >= 3
    said = capsys.readouterr().err
    assert said.count("mcce: failed, to be tried again: ") == RETRIES
    assert said.count("mcce: failed: ") == 1
    assert "1 of 3 partitions failed" in said
    assert "secret" not in said + (lake / "answers/_failures.json").read_text()

    assert share(*options, "--resume", "--debug", predictor="failing:score") == PREDICTOR
    assert "ValueError: a secret cell" in capsys.readouterr().err
    assert "secret" not in (lake / "answers/_failures.json").read_text()


def test_a_predictor_that_fails_for_everybody_stops_the_run(share, lake, capsys):
    (lake / "down.py").write_text(
        "from scoring import score as good\n"
        "def score(frame):\n"
        "    if frame['Duration'].eq(777).any(): raise ConnectionError\n"
        "    return good(frame)\n"
    )
    people = pd.read_parquet("all.parquet").assign(Duration=777)
    people.to_parquet("all.parquet", row_group_size=10)

    options = ["-o", "answers/", "--key", "customer", "--workers", 1, "--block-rows", 1]
    assert share(*options, people=["all.parquet"], predictor="down:score") == PREDICTOR

    said = capsys.readouterr().err
    assert said.count("to be tried again") == 5
    assert "further failures are not shown" in said
    assert f"The first {PATIENCE} partitions failed, and none is complete" in said
    assert "0 of 60 partitions are complete" in said
    assert "--resume goes on from there" in said


def test_a_predictor_that_ends_the_program_fails_alone(share, lake, capsys):
    (lake / "leaving.py").write_text(
        "import sys\nfrom scoring import score as good\n"
        "def score(frame):\n    return sys.exit(7) if len(frame) == 1 else good(frame)\n"
    )
    pd.read_parquet("lake/1.parquet")[:1].to_parquet("lake/1.parquet", index=False)

    options = ["-o", "answers/", "--key", "customer", "--workers", 1]
    assert share(*options, predictor="leaving:score") == PREDICTOR

    assert "ended the program (exit 7)" in capsys.readouterr().err


def test_a_person_who_kills_every_worker_costs_one_partition(share, lake, expected, capsys):
    (lake / "dying.py").write_text(
        "import os\nfrom scoring import score as good\n"
        "def score(frame):\n    return os._exit(3) if frame['Age'].eq(99).any() else good(frame)\n"
    )
    people = pd.read_parquet("lake/1.parquet")
    people[:1].assign(Age=99).to_parquet("lake/3.parquet", index=False)

    options = ["-o", "answers/", "--key", "customer", "--workers", 2]
    assert share(*options, predictor="dying:score") == PREDICTOR

    said = capsys.readouterr().err
    assert "1 of 4 partitions failed" in said
    assert "3.parquet', rows 1 to 1: The worker died: it ran out of memory" in said
    (listed,) = json.loads((lake / "answers/_failures.json").read_text())
    assert listed["kind"] == "WorkerError"
    assert_same("answers", expected)


def test_an_engine_that_is_not_installed_is_named_with_its_extra(share, lake, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)

    assert share("-o", "answers/", "--key", "customer", "--engine", "dask") == USAGE

    assert 'pip install "mcce[dask]"' in capsys.readouterr().err
    assert not (lake / "answers").exists()


def test_a_worker_that_does_not_see_the_folder_says_so(here):
    origin = Origin(str(here / "elsewhere"), "another")
    loader = PredictorLoader(PredictorChoice("scoring:score"), origin)

    with pytest.raises(PredictorError, match="Start the run in a folder that all workers share"):
        loader()


@pytest.mark.parametrize("name", ["scoring:score", "model.joblib"])
def test_a_worker_in_another_folder_loads_the_same_predictor(here, monkeypatch, name):
    loader = PredictorLoader.here(PredictorChoice(name, trust=True))
    (here / "worker").mkdir()
    monkeypatch.chdir(here / "worker")
    stdout = sys.stdout

    predictor = loader()

    assert predictor is not None
    assert os.getcwd() == str(here / "worker")
    assert sys.stdout is stdout


def test_a_module_that_reads_files_of_the_current_folder_is_told_how(here, monkeypatch):
    (here / "reading.py").write_text("WEIGHTS = open('weights.txt').read()")
    loader = PredictorLoader.here(PredictorChoice("reading:WEIGHTS"))

    with pytest.raises(PredictorError, match="find its files by __file__"):
        loader()


def test_a_pickle_is_warned_of_once(share, lake, capsys):
    fit = ["fit", "train.csv", "--predictor", "model.joblib", "--trust", "--desired", "0.5:"]
    assert main([*fit, "-o", "bank.mcce"]) == 0
    capsys.readouterr()

    options = ["-o", "answers/", "--key", "customer", "--workers", 1]
    assert share(*options, "--trust", predictor="model.joblib") == 0

    assert capsys.readouterr().err.count("runs the code") == 1


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_run_that_is_killed_goes_on_with_another_engine(share, lake, expected, engine):
    require(engine)
    (lake / "waiting.py").write_text(SLOW_SCORE)
    options = ["-o", "answers.parquet", "--key", "customer", "--block-rows", "7"]
    command = ["explain", "bank.mcce", "lake", "--predictor", "waiting:score", *options]
    shared = ["--engine", engine, "--workers", "2"]
    process = subprocess.Popen([sys.executable, "-m", "mcce.cli", *command, *shared])
    folder = lake / "answers.parquet.parts"
    deadline = time.monotonic() + 120
    while process.poll() is None and len(list(folder.glob("_part-*"))) < 2:
        assert time.monotonic() < deadline, "two parts should have been written"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL

    assert main([*command, "--workers", "1", "--resume"]) == 0

    assert_same("answers.parquet", expected)
    assert not folder.exists()


@POSIX
def test_a_terminal_shows_how_far_all_files_are(lake):
    pytest.importorskip("tqdm")
    command = ["explain", "bank.mcce", "lake", "--predictor", "scoring:score", "--key", "customer"]

    code, shown = in_terminal([*command, "-o", "answers/", "--workers", "1"], 80)

    assert code == 0
    lines = shown.replace("\r\n", "\n").replace("\r", "\n").splitlines()
    assert any("60/60" in line and "people/s" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert "3 partitions" in shown


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_ctrl_c_ends_a_shared_run_and_says_how_to_go_on(lake, share, expected, engine):
    require(engine)
    (lake / "waiting.py").write_text(SLOW_SCORE)
    options = ["-o", "answers/", "--key", "customer", "--block-rows", "1"]
    command = ["explain", "bank.mcce", "lake", "--predictor", "waiting:score", *options]

    code, shown = in_terminal(
        [*command, "--engine", engine, "--workers", "2"],
        80,
        lambda: (lake / "answers/_part-000000-000001.json").exists(),
    )

    assert code == INTERRUPTED
    assert "partitions are complete" in shown
    assert "--resume" in shown
    assert "Traceback" not in shown
    assert share(*options, "--workers", 1, "--resume") == USAGE  # another predictor
    assert main([*command, "--workers", "1", "--resume"]) == 0
    assert_same("answers", expected)
