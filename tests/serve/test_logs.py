"""What logs hold: requests, and nothing about anybody."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from mcce.serve import ServiceSettings, create_app
from served_bank import FAILING, fitted, half_sent, person, running, until

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

SECRET = 47_777


@pytest.fixture
def lines(caplog):
    """What the log of the service holds so far."""
    caplog.set_level(logging.INFO, "mcce.serve")
    return lambda: [
        {"level": record.levelname, **json.loads(record.getMessage())}
        for record in caplog.records
        if record.name == "mcce.serve"
    ]


class BrokenPeople:
    """People to choose from, whom nobody can find."""

    def __len__(self):
        return 1

    def find(self, query, offset, limit):
        raise KeyError(SECRET)


def test_a_line_says_what_was_asked_and_never_of_whom(lines, caplog, gate):
    def broken(rows):
        raise RuntimeError(f"{SECRET}")

    app = create_app(fitted(gate))
    gate.broken = broken
    with running(app) as client:
        client.post("/score", json={"people": [person(), person()]}, headers={"X-Request-ID": "r1"})
        client.post("/explain", json={"people": [person(age=FAILING, salary=SECRET)]})
        client.post("/explain", json={"people": [person(sex=str(SECRET))]})
        client.get("/people", params={"query": str(SECRET)})
        client.get(f"/people/{SECRET}")
        client.get(f"/{SECRET}", headers={"X-Request-ID": f"{SECRET} x"})

    # The first asked whether the service lives.
    found = lines()[1:]
    assert found[0]["request"] == "r1"
    assert found[0]["n_people"] == 2
    assert [(line["route"], line["status"]) for line in found] == [
        ("/score", 200),
        ("/explain", 502),
        ("/explain", 422),
        ("/people", 200),
        ("/people/{row}", 404),
        ("other", 404),
    ]
    assert all(line["ms"] >= 0 for line in found)
    assert str(SECRET) not in caplog.text


def test_a_client_that_goes_is_no_error(lines, explainer):
    with running(create_app(explainer)) as client:
        with half_sent(client, "/score", b'{"people"', n_bytes=500):
            pass
        until(lambda: len(lines()) == 2)

    line = lines()[1]
    assert line["level"] == "INFO"
    assert line["status"] == 499


def test_a_bug_is_answered_and_logged_without_its_message(lines, caplog, explainer):
    with running(create_app(explainer, ServiceSettings(people=BrokenPeople()))) as client:
        answer = client.get("/people")

    assert answer.status_code == 500
    assert answer.json()["detail"][0]["type"] == "bug"
    (bug,) = [line for line in lines() if line["level"] == "ERROR"]
    assert bug["error"] == "KeyError"
    # The last place in our code.
    assert bug["at"].startswith("app.py:")
    assert bug["request"] == answer.headers["x-request-id"]
    assert str(SECRET) not in caplog.text + answer.text


@pytest.mark.skipif(os.name != "posix", reason="whether a process lives is asked by a signal")
def test_gauges_of_a_worker_that_was_killed_go(tmp_path, monkeypatch, explainer):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    key = mmap_key("mcce_waiting", "mcce_waiting", ["engine"], ["search"], "")
    for pid, n_waiting in ((ended.pid, 7.0), (os.getpid(), 2.0)):
        numbers = MmapedDict(str(tmp_path / f"gauge_livesum_{pid}.db"))
        numbers.write_value(key, n_waiting, 0.0)
        numbers.close()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))

    with running(create_app(explainer)) as client:
        text = client.get("/metrics").text

    assert 'mcce_waiting{engine="search"} 2.0' in text
