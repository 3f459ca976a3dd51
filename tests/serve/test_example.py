"""The example of containers: its command lines run as processes, and its files agree.

No container is started here: names of services, paths and ports of compose.yaml are replaced by
those of this machine, everything else is taken from it as it stands.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcce.cli import main
from shown_commands import commands_of_page, run_shown

yaml = pytest.importorskip("yaml")

EXAMPLE = Path(__file__).parents[2] / "examples" / "service"
COMPOSE: dict[str, Any] = yaml.safe_load((EXAMPLE / "compose.yaml").read_text(encoding="utf-8"))
MODEL, SERVICE = COMPOSE["services"]["model"], COMPOSE["services"]["mcce"]
CONTAINERFILE = (EXAMPLE / "Containerfile").read_text(encoding="utf-8")
README = EXAMPLE / "README.md"
TOKEN = "a token of thirty-two characters"
PORT = "8000"
OF_PREDICTOR = ("--predictor=", "--output-is=", "--class=")


@dataclass(frozen=True)
class Places:
    """What the containers call something, and where it is here."""

    folder: Path
    model_port: int
    port: int

    def here(self, words: Sequence[str]) -> list[str]:
        """The words of a command, with the places of this machine."""
        return [self._here(word) for word in words]

    def _here(self, word: str) -> str:
        mounts = {bind["target"]: bind["source"] for bind in binds(MODEL) + binds(SERVICE)}
        for target, source in mounts.items():
            word = word.replace(target, str(self.folder / source))
        word = word.replace("/run/secrets/token", str(self.folder / secret_file()))
        word = word.replace(f"model:{PORT}", f"127.0.0.1:{self.model_port}")
        return word.replace("0.0.0.0", "127.0.0.1")


def binds(service: dict[str, Any]) -> list[dict[str, Any]]:
    return service["volumes"]


def secret_file() -> str:
    return COMPOSE["secrets"]["token"]["file"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def process(command: Sequence[str], port: int) -> Iterator[subprocess.Popen[str]]:
    """A server as a process, once it answers."""
    # Loopback and the files of this checkout alone, whatever the environment has.
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=paths, stderr=subprocess.PIPE, text=True) as server:
        try:
            for _ in range(600):
                try:
                    httpx.get(f"http://127.0.0.1:{port}/health")
                    break
                except httpx.TransportError:
                    assert server.poll() is None, server.communicate()[1]
                    time.sleep(0.1)
            yield server
        finally:
            server.kill()


@contextmanager
def started(folder: Path) -> Iterator[tuple[Places, list[subprocess.Popen[str]]]]:
    """Both services, with the command lines of the compose file."""
    places = Places(folder, free_port(), free_port())
    # A later --port wins over the one of the file.
    asked = MODEL["entrypoint"][1:], MODEL["command"], ["--port", str(places.model_port)]
    model = [sys.executable, *places.here([word for part in asked for word in part])]
    mcce = [sys.executable, "-m", "mcce.cli", *places.here(SERVICE["command"])]
    with ExitStack() as stack:
        servers = [stack.enter_context(process(model, places.model_port))]
        mcce += ["--port", str(places.port)]
        servers.append(stack.enter_context(process(mcce, places.port)))
        yield places, servers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the example after the steps of its page."""
    made = tmp_path_factory.mktemp("example")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for command in steps():
            assert run_shown(command, patch) == 0
    (made / "token.txt").write_text(f"{TOKEN}\n", encoding="utf-8")
    (made / "model_server.py").symlink_to(EXAMPLE / "model_server.py")
    return made


def steps() -> list[str]:
    return [command for command in commands_of_page(README) if "verify" not in command]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_command_lines_of_the_compose_file_serve_the_files_of_the_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with started(folder) as (places, servers):
        with httpx.Client(base_url=f"http://localhost:{places.port}", timeout=60) as client:
            refused = [client.get("/ready"), client.post("/explain", json={"people": []})]
            stranger = client.get("/ready", headers={"Host": "elsewhere.example"})
            client.headers["Authorization"] = f"Bearer {TOKEN}"
            ready = client.get("/ready")
            answer = explain_somebody(client)
            receipt = client.post("/receipts", json=answer)
        by_address, by_file = (verify(places, receipt, capsys, given) for given in (True, False))
        for server in reversed(servers):
            server.send_signal(signal.SIGTERM)
        logs = [server.communicate(timeout=30)[1] for server in servers]

    assert [one.status_code for one in refused] == [401, 401]
    assert stranger.status_code == 421
    assert ready.json() == {"status": "ok"}
    assert receipt.status_code == 200, receipt.text
    assert by_address == []
    assert by_file == ["the predictor is the same"]
    # uvicorn ends its own process by the signal again, once it has closed everything.
    assert {server.returncode for server in servers} <= {0, -signal.SIGTERM}
    assert TOKEN not in "".join(logs)


def explain_somebody(client: httpx.Client) -> dict[str, Any]:
    """The first declined person who can be answered, and the answer."""
    listed = client.get("/people", params={"limit": 200}).json()["people"]
    for one in listed:
        if not one["desired"]:
            person = client.get(f"/people/{one['row']}").json()["person"]
            found = client.post("/explain", json={"people": [person]}).json()["people"][0]
            if found["counterfactuals"]:
                return {"person": person, "answer": found["counterfactuals"][0]["row"]}
    raise AssertionError("nobody is answered")


def verify(
    places: Places,
    receipt: httpx.Response,
    capsys: pytest.CaptureFixture[str],
    by_address: bool,
) -> list[str]:
    """What does not hold of a receipt, for the address of the model or for its file."""
    path, command = places.folder / "receipt.json", places.here(SERVICE["command"])
    path.write_bytes(receipt.content)
    about = [word for word in command if word.startswith(OF_PREDICTOR)]
    model = ["--predictor", str(places.folder / "files" / "model.joblib"), "--trust"]
    capsys.readouterr()
    main(
        [
            "verify",
            str(path),
            "--explainer",
            command[1],
            *(about if by_address else model),
            "--json",
        ]
    )
    checks = json.loads(capsys.readouterr().out)["checks"]
    return [check["name"] for check in checks if not check["holds"]]


def test_every_option_of_the_compose_file_is_one_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", "--help"]) == 0

    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    used = {word.partition("=")[0] for word in SERVICE["command"] if word.startswith("--")}
    assert used <= known


def test_files_that_commands_name_are_mounted_and_only_those() -> None:
    for service in (MODEL, SERVICE):
        words = " ".join([*service.get("entrypoint", []), *service["command"]])
        named = set(re.findall(r"/files/[\w.]+", words))

        assert {bind["target"] for bind in binds(service)} == named
        assert all(bind["read_only"] for bind in binds(service))
        assert service["read_only"]


def test_ports_agree() -> None:
    given = dict(zip(MODEL["command"], MODEL["command"][1:], strict=False))
    (address,) = [word for word in SERVICE["command"] if word.startswith("--predictor=")]
    health = re.search(r"HTTPConnection as To; c = To\('127\.0\.0\.1', (\d+)", CONTAINERFILE)

    assert given["--port"] == PORT
    assert f"//model:{PORT}/" in address
    # The service has its default port, which the image exposes and asks about.
    assert not any(word.startswith("--port") for word in SERVICE["command"])
    assert f"EXPOSE {PORT}" in CONTAINERFILE
    assert health is not None
    assert health[1] == PORT


def test_only_the_service_is_published_and_on_this_machine_alone() -> None:
    assert SERVICE["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert "ports" not in MODEL
    assert COMPOSE["networks"]["models"]["internal"]
    assert MODEL["networks"] == ["models"]


def test_containers_stop_after_the_grace_of_requests() -> None:
    (grace,) = [word for word in SERVICE["command"] if word.startswith("--grace=")]

    assert int(SERVICE["stop_grace_period"].removesuffix("s")) > int(grace.partition("=")[2])


def test_the_health_check_of_the_image_is_python_that_runs() -> None:
    words = json.loads(re.search(r"^    CMD (\[.*\])$", CONTAINERFILE, re.M)[1])  # type: ignore[index]

    compile(words[2], "HEALTHCHECK", "exec")
    assert words[:2] == ["python", "-c"]


def test_the_image_is_made_of_what_the_build_needs() -> None:
    lines = (EXAMPLE / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]

    assert all((EXAMPLE.parents[1] / name).exists() for name in kept)
    assert {"pyproject.toml", "CMakeLists.txt", "native", "src", "constraints.txt"} <= set(kept)
