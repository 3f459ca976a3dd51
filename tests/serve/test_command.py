"""The command: what it refuses, what it serves, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

import httpx
import pandas as pd
import pytest

from mcce.cli import main
from mcce.serve import ServiceLimits
from served_bank import TOKEN, declined, fitted, person, running, until
from served_processes import children, served

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

BANK = ["bank.mcce", "--predictor", "served_bank:approval"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of a bank, in the working folder."""
    fitted().save(tmp_path / "bank.mcce")
    people = declined(30).assign(Number=[f"<b>C-{at}</b>" for at in range(30)])
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "token.txt").write_text(f"{TOKEN}\n")
    (tmp_path / "rules.toml").write_text('[[rules]]\nfrozen = ["savings"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def app_of(monkeypatch):
    """Runs the command and gives the application that it would serve, and its settings."""
    import mcce.serve

    apps, settings, create = [], [], mcce.serve.create_app

    def create_app(explainer, given):
        settings.append(given)
        return create(explainer, given)

    monkeypatch.setattr("mcce.serve.create_app", create_app)
    monkeypatch.setattr("uvicorn.run", lambda app, **options: apps.append(app))

    def run(*words):
        assert main(["serve", *words]) == 0
        return apps[-1], settings[-1]

    return run


def test_every_limit_of_the_command_is_a_limit_of_the_service(folder, app_of):
    words = "--threads 3 --queue 4 --batch 1 --max-people 5 --seconds 6 --patience 7"

    _, settings = app_of(*BANK, *words.split())

    expected = ServiceLimits(threads=3, queue=4, batch=1, people=5, seconds=6, patience=7)
    assert settings.limits == expected


def test_rules_token_and_people_of_files_are_those_of_the_service(folder, app_of):
    words = ["--rules", "rules.toml", "--token-file", "token.txt", "--people", "people.csv"]
    app, _ = app_of(*BANK, *words, "--name", "Number", "--title", "A bank")
    with running(app) as client:
        assert client.get("/schema").status_code == 401
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        schema = client.get("/schema").json()
        found = client.get("/people", params={"query": "c-1", "limit": 2}).json()
        second = client.get("/people/1").json()
        last = client.get("/people", params={"offset": 25}).json()
        asked = {"person": person(), "answer": person(salary=64_000)}
        receipt = client.post("/receipts", json=asked).json()
        elsewhere = client.get("/schema", headers={"Host": "elsewhere.example"})

    assert schema["title"] == "A bank"
    assert (found["n_people"], found["n_found"]) == (30, 11)
    assert [one["name"] for one in found["people"]] == ["<b>C-1</b>", "<b>C-10</b>"]
    assert second["person"]["salary"] == pd.read_csv("people.csv")["salary"].iloc[1]
    assert len(last["people"]) == 5
    assert receipt["rules"] == [{"frozen": {"features": ["savings"], "where": None}}]
    # On this machine alone, only its own names are answered.
    assert elsewhere.status_code == 421


def test_elsewhere_any_name_or_those_that_are_allowed_are_answered(folder, app_of):
    _, any_name = app_of(*BANK, "--host", "0.0.0.0")
    named = ["--host", "0.0.0.0", "--allowed-host", "bank.example", "--people", "people.csv"]
    _, one_name = app_of(*BANK, *named)

    assert any_name.hosts is None
    assert one_name.hosts == ["bank.example"]
    # People without names are called by their row.
    assert one_name.people.find("#30", 0, 50)["people"][0]["row"] == 29


def test_what_cannot_be_served_is_said_before_anybody_is_let_in(folder, app_of, capsys):
    (folder / "short.txt").write_text("short")
    (folder / "labels.toml").write_text('features.salary.reason = "Low."\n')
    wrong = [
        ([], "or --demo"),
        ([*BANK, "--demo"], "or --demo"),
        (["people.csv", *BANK[1:]], "people.csv"),
        ([*BANK, "--batch", "0"], "--batch"),
        ([*BANK, "--seconds", "9", "--patience", "8"], "patience must be more"),
        ([*BANK, "--token-file", "short.txt"], "at least 16"),
        ([*BANK, "--labels", "labels.toml"], "no reason"),
    ]
    for words, message in wrong:
        assert main(["serve", *words]) in (2, 3), words
        assert message in " ".join(capsys.readouterr().err.split())


def test_a_port_that_is_in_use_is_said_before_the_explainer_is_loaded(folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        assert main(["serve", "nothing.mcce", *BANK[1:], "--port", port]) == 2

    assert f"cannot listen on '127.0.0.1' at port {port}" in capsys.readouterr().err


def test_the_demo_is_served(app_of):
    app, _ = app_of("--demo")
    with running(app) as client:
        people = client.get("/people", params={"limit": 200}).json()
        one = client.get("/people/0").json()["person"]
        answer = client.post("/explain", json={"people": [one], "details": True}).json()

    desired = [one["desired"] for one in people["people"]]
    assert desired == sorted(desired)
    assert answer["people"][0]["letter"].startswith("We have decided not to grant")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_workers_share_uploads_survive_a_kill_and_end_with_their_parent(folder):
    words = ["--people", "people.csv", "--name", "Number", "--workers", "2"]
    with served(folder, *BANK, *words, "--token-file", "token.txt") as (address, process, log):

        def ask(method, path, **options):
            # A new connection each time, so that either worker is asked.
            headers = {"Authorization": f"Bearer {TOKEN}"}
            return httpx.request(method, address + path, headers=headers, timeout=120, **options)

        def is_gone():
            try:
                httpx.get(f"{address}/health", timeout=120)
            except httpx.TransportError:
                return True
            return False

        assert httpx.get(f"{address}/schema", timeout=120).status_code == 401
        people = {"file": ("people.csv", (folder / "people.csv").read_bytes())}
        job = ask("POST", "/jobs", files=people).json()["id"]
        ended = "done", "failed"
        until(lambda: ask("GET", f"/jobs/{job}").json()["state"] in ended)
        state = ask("GET", f"/jobs/{job}").json()
        workers = children(process.pid)
        os.kill(workers[-1], signal.SIGKILL)
        until(lambda: workers[-1] not in children(process.pid))
        answers = [ask("POST", "/score", json={"people": [person()]}) for _ in range(5)]
        until(lambda: len(children(process.pid)) == len(workers))
        metrics = ask("GET", "/metrics").text
        process.kill()
        process.wait(120)
        # Workers without a parent do not keep the port.
        until(is_gone)

    assert state["state"] == "done"
    assert {answer.status_code for answer in answers} == {200}
    assert "mcce_requests_total" in metrics
    routes = {json.loads(line).get("route") for line in log if line.startswith("{")}
    assert routes >= {"/score", "/jobs/{job}"}
    assert "C-1" not in "".join(log)
    assert TOKEN not in "".join(log)
