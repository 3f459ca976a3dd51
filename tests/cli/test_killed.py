"""Runs that are killed, run out of disk, or lose their reader; each in a process of its own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from mcce.cli.failures import OUTPUT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def command(output, *more):
    files = ["explain", "bank.mcce", "many.csv", "--predictor", "scoring:score", "-o", output]
    return [sys.executable, "-m", "mcce.cli", *files, "--block-rows", "60", *more]


@pytest.fixture
def many(here):
    people = pd.read_csv("people.csv")
    pd.concat([people] * 15).to_csv("many.csv", index=False)
    started = time.monotonic()
    subprocess.run(command("whole.parquet"), check=True, capture_output=True)
    return here, time.monotonic() - started


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_loses_nothing(many):
    here, seconds = many
    chance = random.Random(0)

    for _ in range(4):
        process = subprocess.Popen(command("answers.parquet", "--resume"))
        time.sleep(chance.uniform(0.4, 1) * seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command("answers.parquet", "--resume"), check=True)

    assert (here / "answers.parquet").read_bytes() == (here / "whole.parquet").read_bytes()
    assert not (here / "answers.parquet.parts").exists()


@pytest.mark.slow
def test_a_run_that_is_killed_between_parts_goes_on(many):
    here, _ = many
    process = subprocess.Popen(command("answers.parquet"))
    folder = here / "answers.parquet.parts"
    while process.poll() is None and len(list(folder.glob("_part-*"))) < 5:
        time.sleep(0.005)
    process.kill()
    process.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}

    subprocess.run(command("answers.parquet", "--resume"), check=True)

    assert kept
    assert (here / "answers.parquet").read_bytes() == (here / "whole.parquet").read_bytes()


@pytest.mark.slow
def test_a_disk_that_is_full_is_an_error_and_the_run_goes_on(many):
    here, _ = many
    limited = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({20_000}, {20_000}))
from mcce.cli import main
sys.exit(main({command("answers.csv")[3:]!r}))
"""
    ended = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, check=False
    )

    assert ended.returncode == OUTPUT
    assert "File too large" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (here / "answers.csv").exists()
    subprocess.run(command("answers.csv", "--resume"), check=True)
    subprocess.run(command("whole.csv"), check=True)
    assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()


def test_whoever_stops_reading_our_output_causes_no_traceback(here):
    (here / "many.csv").write_bytes((here / "people.csv").read_bytes())
    shell = " ".join([*command("-", "--output-format", "csv", "--quiet"), "| head -1"])

    ended = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)

    assert ended.stdout.startswith("factual,rank")
    assert ended.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_standard_output_that_is_full_is_an_error(here):
    (here / "many.csv").write_bytes((here / "people.csv").read_bytes())
    shell = " ".join([*command("-", "--output-format", "csv"), "> /dev/full"])

    ended = subprocess.run(shell, shell=True, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == OUTPUT
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_process_that_is_killed_while_it_writes_a_part_goes_on(explain, here, monkeypatch):
    assert explain("-o", "whole.csv") == 0
    program = """
import os, signal, sys
from mcce.files import run
write = run.stream_tables
def killed(tables, format_, stream):
    tables = list(tables)
    if tables[0]["factual"].iloc[0] >= 30:
        stream.write(b"half a part")
        stream.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    write(tables, format_, stream)
run.stream_tables = killed
from mcce.cli import main
main(sys.argv[1:])
"""
    files = ["explain", "bank.mcce", "people.csv", "--predictor", "scoring:score"]
    arguments = [*files, "-o", "answers.csv", "--block-rows", "10"]
    ended = subprocess.run([sys.executable, "-c", program, *arguments], check=False)

    assert ended.returncode == -signal.SIGKILL
    assert len(list((here / "answers.csv.parts").glob("_part-*.json"))) == 3
    assert explain("-o", "answers.csv", "--resume") == 0
    assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()
