"""The command: what it refuses, what it serves, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from mcce.cli import main, serving
from mcce.cli.predictors import PredictorChoice
from mcce.cli.running import ExplainerFile, PeopleFile
from mcce.cli.serving import LimitOptions, Operation, ServeRequest
from mcce.cli.serving_people import read_directory
from mcce.errors import McceError, ParameterError
from mcce.serve import Limits
from mcce.serve.engine import EngineLimits
from served_bank import customers, fitted, person

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TOKEN = "a token of thirty-two characters"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fitted().save(tmp_path / "bank.mcce")
    people = customers(30).assign(Number=[f"<b>C-{at}</b>" for at in range(30)])
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "token.txt").write_text(f"{TOKEN}\n")
    return tmp_path


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """The command in a process of its own, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    helpers = Path(__file__).parents[1] / "helpers"
    paths = os.pathsep.join([str(helpers), *sys.path])
    command = [sys.executable, "-m", "mcce.cli", "serve", "--port", str(port), *options]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            for _ in range(600):
                try:
                    client.get("/health")
                    break
                except httpx.TransportError:
                    assert process.poll() is None, process.communicate()[1]
                    time.sleep(0.1)
            yield client, process
    finally:
        process.kill()
        process.communicate()


def choice() -> PredictorChoice:
    return PredictorChoice("served_bank:approval")


def test_a_request_survives_the_way_to_a_worker(folder: Path) -> None:
    request = ServeRequest(
        explainer=ExplainerFile(str(folder / "bank.mcce"), choice(), n_counterfactuals=3),
        people=PeopleFile(str(folder / "people.csv"), keep=["Number"]),
        limits=LimitOptions(threads=1),
        operation=Operation(workers=3, allowed_hosts=["a"]),
    )
    sent = json.dumps(asdict(request))

    again = ServeRequest.from_json(sent)

    assert json.dumps(asdict(again)) == sent
    assert again.explainer == request.explainer


def test_rules_of_the_command_are_in_receipts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: list[Any] = []
    monkeypatch.setattr("mcce.serve.create_app", lambda made, given: settings.append(given))
    Path(folder, "rules.toml").write_text('[[rules]]\nfrozen = ["savings"]\n', encoding="utf-8")
    file = ExplainerFile(str(folder / "bank.mcce"), choice(), rules=str(folder / "rules.toml"))

    ServeRequest(file).make_app()

    assert repr(settings[0].rules) == "[frozen('savings')]"


def test_every_limit_of_the_command_is_a_limit_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[ServeRequest] = []
    monkeypatch.setattr(serving, "run", asked.append)
    words = "--threads 3 --queue 4 --batch 1 --max-people 5 --seconds 6 --patience 7"

    assert main(["serve", "--demo", *words.split()]) == 0

    limits = Limits(**asdict(asked[0].limits))
    assert limits.searching == EngineLimits(threads=3, queue=4, batch=1, seconds=7)
    assert (limits.people, limits.seconds) == (5, 6)


def test_a_batch_of_nobody_is_refused() -> None:
    assert main(["serve", "--demo", "--batch", "0"]) == 2


def test_the_parent_of_workers_keeps_no_application(monkeypatch: pytest.MonkeyPatch) -> None:
    class App:
        pass

    kept: list[Any] = []

    def make_app(request: ServeRequest) -> App:
        app = App()
        kept.append(weakref.ref(app))
        return app

    monkeypatch.setattr(ServeRequest, "make_app", make_app)
    for name in (serving.REQUEST, serving.METRICS):
        monkeypatch.setenv(name, "")
    seen: list[Any] = []
    monkeypatch.setattr("uvicorn.run", lambda app, **given: seen.append((app, kept[0]())))

    serving.run(ServeRequest(demo=True, operation=Operation(workers=2)))

    assert seen == [("mcce.cli.serving:make_worker_app", None)]


def test_either_a_file_or_the_demo_is_served() -> None:
    with pytest.raises(ParameterError, match="or --demo"):
        ServeRequest()
    with pytest.raises(ParameterError, match="or --demo"):
        ServeRequest(explainer=ExplainerFile("x", choice()), demo=True)


def test_on_this_machine_alone_only_its_own_names_are_answered() -> None:
    assert Operation().hosts == ["127.0.0.1", "localhost", "[::1]"]
    assert Operation(host="0.0.0.0").hosts is None
    assert Operation(host="0.0.0.0", allowed_hosts=["bank.example"]).hosts == ["bank.example"]


def test_people_of_a_file_are_found_by_name(folder: Path) -> None:
    file = PeopleFile(str(folder / "people.csv"), keep=["Number"])

    people = read_directory(fitted(), file)

    found = people.find("c-1", 0, 50)
    assert found["n_people"] == 30
    assert [one["name"] for one in found["people"]][:2] == ["<b>C-1</b>", "<b>C-10</b>"]
    first = pd.read_csv(folder / "people.csv").iloc[1]
    assert people.person(1)["person"]["salary"] == first["salary"]
    assert len(people.find("", 25, 50)["people"]) == 5


def test_people_without_names_are_called_by_their_row(folder: Path) -> None:
    people = read_directory(fitted(), PeopleFile(str(folder / "people.csv")))

    assert people.find("#30", 0, 50)["people"][0]["row"] == 29


def test_a_file_that_is_no_explainer_is_said_before_anybody_is_let_in(folder: Path) -> None:
    request = ServeRequest(explainer=ExplainerFile(str(folder / "people.csv"), choice()))

    with pytest.raises(McceError):
        request.make_app()


def test_a_short_token_is_refused(folder: Path) -> None:
    (folder / "token.txt").write_text("short")
    operation = Operation(token_file=str(folder / "token.txt"))
    file = ExplainerFile(str(folder / "bank.mcce"), choice())

    with pytest.raises(ParameterError, match="at least 16"):
        ServeRequest(explainer=file, operation=operation).make_app()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_workers_share_uploads_and_survive_a_kill(folder: Path) -> None:
    options = ["bank.mcce", "--predictor", "served_bank:approval", "--people", "people.csv"]
    options += ["--name", "Number", "--workers", "2", "--token-file", "token.txt"]
    with served(folder, *options) as (client, process):
        assert client.get("/schema").status_code == 401
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        people = {"file": ("people.csv", (folder / "people.csv").read_bytes())}
        job = client.post("/jobs", files=people).json()["id"]
        states: list[Any] = []
        while not states or states[-1] not in ("done", "failed"):
            # A new connection each time, so that either worker is asked.
            with httpx.Client(base_url=client.base_url, headers=client.headers) as other:
                states.append(other.get(f"/jobs/{job}").json()["state"])
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        workers = [int(pid) for pid in Path(children).read_text().split()]
        os.kill(workers[-1], signal.SIGKILL)
        answers = []
        for _ in range(20):
            with httpx.Client(base_url=client.base_url, headers=client.headers) as other:
                answers.append(other.post("/score", json={"people": [person()]}, timeout=30))
            time.sleep(0.1)
        metrics = client.get("/metrics").text
        process.send_signal(signal.SIGTERM)
        # The worker in place of the killed one may still be starting, for which it has a minute.
        _, log = process.communicate(timeout=120)

    assert states[-1] == "done"
    assert {answer.status_code for answer in answers} == {200}
    assert "mcce_requests_total" in metrics
    assert process.returncode == 0
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {line.get("route") for line in lines} >= {"/score", "/jobs/{job}"}
    assert "C-1" not in log
    assert TOKEN not in log


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_workers_end_with_a_parent_that_is_killed(folder: Path) -> None:
    options = ["bank.mcce", "--predictor", "served_bank:approval", "--workers", "2"]
    with served(folder, *options) as (client, process):
        process.kill()
        process.wait()
        for _ in range(100):
            time.sleep(0.1)
            try:
                httpx.get(client.base_url.join("/health"), timeout=5)
            except httpx.TransportError:
                return

    pytest.fail("workers still answer, and keep the port")


@pytest.mark.slow
def test_the_demo_is_served(tmp_path: Path) -> None:
    with served(tmp_path, "--demo") as (client, _):
        people = client.get("/people", params={"limit": 200}).json()
        one = client.get("/people/0").json()["person"]
        answer = client.post("/explain", json={"people": [one], "details": True}).json()

    desired = [person["desired"] for person in people["people"]]
    assert desired == sorted(desired)
    assert answer["people"][0]["letter"].startswith("We have decided not to grant")
