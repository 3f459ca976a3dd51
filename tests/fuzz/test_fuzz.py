"""A few cases of every kind of fuzzing, always the same ones, and those that once broke something.

``make fuzz`` tries new ones. ``corpus/findings.json`` lists the kinds and seeds of past findings
with what was wrong. A seed means another case once the generator of its kind changes; every
finding has a test of its own beside the code that was mended.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz_kinds import KINDS
from fuzz_report import Report
from fuzz_runner import Worker

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes, forks and signals")
CORPUS = json.loads((Path(__file__).parent / "corpus/findings.json").read_text("utf-8"))
# Cases of each kind: those that run always, and how many more when slow tests run.
QUICK = {
    "files": range(24),
    "rules": range(6),
    "frames": range(8),
    "predictors": range(0, 54, 6),
    "threads": range(1),
    "interrupts": range(1),
    "forks": range(1),
}
N_SLOW = {"files": 600, "rules": 120, "frames": 80, "predictors": 220, "threads": 3}
N_SLOW |= {"interrupts": 4, "forks": 3}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


def run_all(worker: Worker, kind: str, seeds: range) -> Report:
    total = Report()
    for seed in seeds:
        report = worker.run(kind, seed, {"threads": 3, "span": 0.7})
        report.broken = [f"make fuzz KIND={kind} SEED={seed}: {text}" for text in report.broken]
        total.add(report)
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_cases_of_every_kind_break_nothing(worker, kind):
    total = run_all(worker, kind, QUICK[kind])

    assert not total.broken
    assert total.counts["cases"] == len(QUICK[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_cases_of_every_kind_break_nothing(worker, kind):
    first = QUICK[kind].stop
    total = run_all(worker, kind, range(first, first + N_SLOW[kind]))

    assert not total.broken


@pytest.mark.parametrize("finding", CORPUS, ids=lambda one: f"{one['kind']} {one['seed']}")
def test_what_was_found_once_does_not_come_back(worker, finding):
    report = worker.run(finding["kind"], finding["seed"], {})

    assert not report.broken, finding["was"]


def test_a_process_that_dies_is_a_finding_and_the_next_case_runs(worker):
    died = worker.run("dies", 3, {})
    after = worker.run("dies", 4, {})

    assert "died with status -6" in died.broken[0]
    assert "Fatal Python error: Aborted" in died.broken[0]
    assert after.broken == []


def test_cases_that_break_a_promise_are_counted_and_named():
    report = Report()

    report.check(True, "a promise that holds")
    report.check(False, "a promise that does not")

    assert report.summary() == "2 checks, 1 broken"
    assert Report.from_json(report.to_json()).broken == ["a promise that does not"]
