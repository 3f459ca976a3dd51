"""The example of containers: its command lines run as processes, and its files agree.

No container is started here: names of services, paths and ports of compose.yaml are replaced by
those of this machine, everything else is taken from it as it stands.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from functools import cache
from pathlib import Path

import httpx
import pytest

from mcce.cli import main
from served_bank import TOKEN
from served_processes import process, reserved_port
from shown_commands import commands_of_page, run_shown

yaml = pytest.importorskip("yaml")

EXAMPLE = Path(__file__).parents[2] / "examples" / "service"
PORT = "8000"


@cache
def compose():
    return yaml.safe_load((EXAMPLE / "compose.yaml").read_text(encoding="utf-8"))


def services():
    return [compose()["services"][name] for name in ("model", "mcce")]


def here(words, folder, model_port):
    """The words of a command of the compose file, with the places of this machine."""
    places = {f"model:{PORT}": f"127.0.0.1:{model_port}", "0.0.0.0": "127.0.0.1"}
    places["/run/secrets/token"] = str(folder / compose()["secrets"]["token"]["file"])
    binds = [bind for service in services() for bind in service["volumes"]]
    places |= {bind["target"]: str(folder / bind["source"]) for bind in binds}
    for there, place in places.items():
        words = [word.replace(there, place) for word in words]
    return words


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the example after the steps of its page."""
    made = tmp_path_factory.mktemp("example")
    steps = [one for one in commands_of_page(EXAMPLE / "README.md") if "verify" not in one]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for command in steps:
            assert run_shown(command, patch) == 0
    (made / "token.txt").write_text(f"{TOKEN}\n", encoding="utf-8")
    (made / "model_server.py").symlink_to(EXAMPLE / "model_server.py")
    return made


def explain_somebody(client):
    """The first declined person who can be answered, and the answer."""
    for one in client.get("/people", params={"limit": 200}).json()["people"]:
        if not one["desired"]:
            person = client.get(f"/people/{one['row']}").json()["person"]
            found = client.post("/explain", json={"people": [person]}).json()["people"][0]
            if found["counterfactuals"]:
                return {"person": person, "answer": found["counterfactuals"][0]["row"]}
    raise AssertionError("nobody is answered")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_command_lines_of_the_compose_file_serve_the_files_of_the_page(folder, capsys):
    model, service = services()
    path, by_file = folder / "receipt.json", ["--predictor", str(folder / "files/model.joblib")]

    def failing(receipt, explainer, words):
        """What does not hold of a receipt, for the address of the model or for its file."""
        path.write_bytes(receipt.content)
        capsys.readouterr()
        main(["verify", str(path), "--explainer", explainer, *words, "--json"])
        checks = json.loads(capsys.readouterr().out)["checks"]
        return [check["name"] for check in checks if not check["holds"]]

    with reserved_port() as model_port, reserved_port() as port:
        # A later --port wins over the one of the file.
        words = [*model["entrypoint"][1:], *model["command"], "--port", str(model_port)]
        command = here(service["command"], folder, model_port)
        by_address = [
            word
            for word in command
            if word.startswith(("--predictor=", "--output-is=", "--class="))
        ]
        serving = [sys.executable, "-m", "mcce", *command, "--port", str(port)]
        asking = httpx.Client(base_url=f"http://localhost:{port}", timeout=120)
        with (
            process(
                [sys.executable, *here(words, folder, model_port)], model_port, folder
            ) as first,
            process(serving, port, folder) as second,
            asking as client,
        ):
            refused = [client.get("/ready"), client.post("/explain", json={"people": []})]
            client.headers["Authorization"] = f"Bearer {TOKEN}"
            elsewhere = client.get("/ready", headers={"Host": "elsewhere.example"})
            ready = client.get("/ready")
            receipt = client.post("/receipts", json=explain_somebody(client))
            found = failing(receipt, command[1], by_address)
            found_by_file = failing(receipt, command[1], [*by_file, "--trust"])
            for server, _ in (second, first):
                server.send_signal(signal.SIGTERM)
                server.wait(120)

    assert [one.status_code for one in refused] == [401, 401]
    assert elsewhere.status_code == 421
    assert ready.json() == {"status": "ok"}
    assert receipt.status_code == 200, receipt.text
    assert found == []
    assert found_by_file == ["the predictor is the same"]
    # uvicorn ends its own process by the signal again, once it has closed everything.
    assert {server.returncode for server, _ in (first, second)} <= {0, -signal.SIGTERM}
    assert TOKEN not in "".join(first[1] + second[1])


def test_options_files_and_ports_of_the_compose_file_agree(capsys):
    model, service = services()
    containerfile = (EXAMPLE / "Containerfile").read_text(encoding="utf-8")
    assert main(["serve", "--help"]) == 0

    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    options = dict(word.partition("=")[::2] for word in service["command"] if word[:2] == "--")
    assert options.keys() <= known
    for one in (model, service):
        words = " ".join([*one.get("entrypoint", []), *one["command"]])
        assert {bind["target"] for bind in one["volumes"]} == set(
            re.findall(r"/files/[\w.]+", words)
        )
        assert all(bind["read_only"] for bind in one["volumes"])
        assert one["read_only"]
    given = dict(zip(model["command"], model["command"][1:], strict=False))
    assert given["--port"] == PORT
    assert f"//model:{PORT}/" in options["--predictor"]
    # The service has its default port, which the image exposes and asks about.
    assert "--port" not in options
    assert f"EXPOSE {PORT}" in containerfile
    # Only the service is published, on this machine alone.
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert "ports" not in model
    assert model["networks"] == ["models"]
    assert compose()["networks"]["models"]["internal"]
    # Containers are stopped after the grace of requests.
    assert int(service["stop_grace_period"].removesuffix("s")) > int(options["--grace"])


def test_the_image_has_what_the_build_needs_and_a_health_check_that_runs():
    containerfile = (EXAMPLE / "Containerfile").read_text(encoding="utf-8")
    lines = (EXAMPLE / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()

    kept = [line[1:] for line in lines if line.startswith("!")]
    assert all((EXAMPLE.parents[1] / name).exists() for name in kept)
    assert {"pyproject.toml", "CMakeLists.txt", "native", "src", "constraints.txt"} <= set(kept)
    words = json.loads(re.search(r"^    CMD (\[.*\])$", containerfile, re.M)[1])
    compile(words[2], "HEALTHCHECK", "exec")
    assert words[:2] == ["python", "-c"]
    assert f"To('127.0.0.1', {PORT}" in words[2]
