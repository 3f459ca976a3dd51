"""What logs hold: requests, and nothing about anybody."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from mcce.serve import create_app
from mcce.serve.observing import LOGGER, JsonFormatter, Metrics
from served_bank import approval, fitted, person, running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

SECRET = 47_777


@pytest.fixture
def lines(caplog: Any) -> Any:
    caplog.set_level(logging.INFO, LOGGER.name)
    return lambda: [json.loads(JsonFormatter().format(record)) for record in caplog.records]


def failing(rows: Any) -> Any:
    if (rows["salary"] == SECRET).any():
        raise RuntimeError(f"{SECRET}")
    return approval(rows)


def test_a_line_says_what_was_asked_and_never_of_whom(lines: Any) -> None:
    with running(create_app(fitted(failing))) as client:
        client.post("/score", json={"people": [person(), person()]}, headers={"X-Request-ID": "r1"})
        client.post("/explain", json={"people": [person(salary=SECRET)]})
        client.post("/explain", json={"people": [person(sex=str(SECRET))]})
        client.get("/people", params={"query": str(SECRET)})
        client.get(f"/people/{SECRET}")
        client.get(f"/{SECRET}", headers={"X-Request-ID": f"{SECRET} x"})

    found = [line for line in lines() if line["logger"] == LOGGER.name]
    assert found[0]["request"] == "r1"
    assert found[0]["n_people"] == 2
    assert [line["route"] for line in found] == [
        "/score",
        "/explain",
        "/explain",
        "/people",
        "/people/{row}",
        "other",
    ]
    assert [line["status"] for line in found] == [200, 502, 422, 200, 404, 404]
    assert all(line["ms"] >= 0 for line in found)
    assert str(SECRET) not in json.dumps(lines())


def test_a_client_that_goes_is_no_error(lines: Any) -> None:
    with running(create_app(fitted())) as client:
        url = client.base_url
        with socket.create_connection((url.host, url.port), timeout=10) as half:
            half.sendall(
                b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b'Content-Length: 500\r\n\r\n{"people"'
            )
        time.sleep(0.3)

    (line,) = lines()
    assert line["level"] == "info"
    assert line["status"] == 499


def test_a_bug_is_answered_and_logged_without_its_message(lines: Any, monkeypatch: Any) -> None:
    app = create_app(fitted())

    def broken(self: Any, people: Any) -> Any:
        raise KeyError(SECRET)

    monkeypatch.setattr("mcce.serve.answering.Answerer.score", broken)
    with running(app) as client:
        answer = client.post("/score", json={"people": [person()]})

    assert answer.status_code == 500
    assert answer.json()["detail"][0]["type"] == "bug"
    bug = next(line for line in lines() if line["level"] == "error")
    assert bug["error"] == "KeyError"
    # It was raised in this file, by what our code called.
    assert bug["at"].startswith("tasks.py:")
    assert bug["request"] == answer.headers["x-request-id"]
    assert str(SECRET) not in json.dumps(lines()) + answer.text


@pytest.mark.skipif(os.name != "posix", reason="whether a process lives is asked by a signal")
def test_gauges_of_a_worker_that_was_killed_go(tmp_path: Path, monkeypatch: Any) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    key = mmap_key("mcce_waiting", "mcce_waiting", ["engine"], ["search"], "")
    for pid, n_waiting in ((ended.pid, 7.0), (os.getpid(), 2.0)):
        numbers = MmapedDict(str(tmp_path / f"gauge_livesum_{pid}.db"))
        numbers.write_value(key, n_waiting, 0.0)
        numbers.close()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))

    text = Metrics().text().decode()

    assert 'mcce_waiting{engine="search"} 2.0' in text
