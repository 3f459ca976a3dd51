"""Commands whose work engines share, on clusters that they start themselves."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

from bank_files import INTERRUPTED, PREDICTOR, USAGE, WAITING
from mcce.cli import main
from terminals import in_terminal

LIBRARIES = {"dask": "distributed", "ray": "ray.data", "spark": "pyspark"}
KEY = ["--key", "customer"]


def require(engine):
    """Skip a test whose engine is not there."""
    pytest.importorskip(LIBRARIES[engine], reason=f"{engine} is not installed")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")


def table(output):
    """The answers, sorted by key and rank."""
    return pd.read_parquet(output).sort_values(["customer", "rank"], ignore_index=True)


def explain_alone(output, people="lake", predictor="scoring:score"):
    """What one process answers."""
    files = ["explain", "bank.mcce", people, *KEY, "--workers", "1", "-o", output, "-q"]
    assert main([*files, "--predictor", predictor]) == 0
    return table(output)


DYING = """
import os
from pathlib import Path
from scoring import score as good
# Found because the cluster starts its workers in the folder of the command.
WEIGHT = float(Path("weight.txt").read_text())

def score(frame):
    return os._exit(3) if frame["Age"].eq(99).any() else WEIGHT * good(frame)
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", LIBRARIES)
def test_a_person_who_kills_every_worker_costs_one_partition(here, engine):
    require(engine)
    expected = explain_alone("expected.parquet")
    (here / "dying.py").write_text(DYING)
    (here / "weight.txt").write_text("1.0")
    old = pd.read_parquet("lake/1.parquet")[:1].assign(Age=99)
    old.to_parquet("lake/3.parquet", index=False)

    files = ["explain", "bank.mcce", "lake", *KEY, "--predictor", "dying:score"]
    options = ["--engine", engine, "--workers", "2", "-o", "answers/"]
    ended = subprocess.run(
        [sys.executable, "-m", "mcce", *files, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )

    assert ended.returncode == PREDICTOR, ended.stderr
    assert "1 of 4 partitions failed" in ended.stderr
    (listed,) = json.loads((here / "answers/_failures.json").read_text())
    assert listed["kind"] == "WorkerError"
    assert os.path.basename(listed["path"]) == "3.parquet"
    pd.testing.assert_frame_equal(table("answers"), expected, check_exact=True)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals and terminals of POSIX")
def test_ctrl_c_ends_a_run_on_dask_that_goes_on_without(here):
    require("dask")
    old = pd.read_parquet("lake/2.parquet").assign(Age=99)
    old.to_parquet("lake/2.parquet", index=False)
    (here / "waiting.py").write_text(WAITING)
    command = ["explain", "bank.mcce", "lake", *KEY, "--predictor", "waiting:score"]
    command += ["-o", "answers/", "--block-rows", "7"]

    code, shown = in_terminal(
        [*command, "--engine", "dask", "--workers", 2],
        act_when=Path("inside").exists,
        WAIT_FOR_RELEASE="yes",
    )
    Path("release").touch()

    assert code == INTERRUPTED, shown
    assert "partitions are complete" in shown
    assert "--resume" in shown
    assert "Traceback" not in shown
    assert main([*command, "--workers", "1", "--resume"]) == 0
    pd.testing.assert_frame_equal(table("answers"), explain_alone("whole.parquet"))


def test_an_engine_that_is_not_installed_is_named_with_its_extra(here, monkeypatch, capsys):
    files = ["explain", "bank.mcce", "lake", *KEY, "--predictor", "scoring:score", "-o", "answers/"]
    for engine, library in {"dask": "dask", "ray": "ray", "spark": "pyspark"}.items():
        loaded = [name for name in sys.modules if name.partition(".")[0] == library]
        for name in (library, *loaded):
            monkeypatch.setitem(sys.modules, name, None)
        assert main([*files, "--engine", engine]) == USAGE
        assert f'pip install ".[{engine}]"' in " ".join(capsys.readouterr().err.split())


class FakeRay(ModuleType):
    """What a run needs of Ray, for tasks that are done at once, on a cluster that grows."""

    exceptions = SimpleNamespace(
        WorkerCrashedError=ConnectionError, OutOfMemoryError=MemoryError, RayTaskError=ValueError
    )

    def __init__(self, n_failures=0):
        super().__init__("ray")
        self.cores, self.started, self.n_failures = [0, 1, 4], [], n_failures
        # How many tasks there were each time that mcce looked how many there may be.
        self.n_tasks, self.seen = 0, []

    def is_initialized(self):
        return False

    def init(self, **options):
        self.started.append(options)
        if len(self.started) <= 2 * self.n_failures:
            raise Exception("The current node timed out during startup.")

    def shutdown(self):
        self.started.append("shutdown")

    def cluster_resources(self):
        self.seen.append(self.n_tasks)
        return {"CPU": float(self.cores.pop(0) if len(self.cores) > 1 else self.cores[0])}

    def put(self, task):
        return task

    def remote(self, **_):
        return lambda _: SimpleNamespace(remote=self.do)

    def do(self, held, item):
        self.n_tasks += 1
        future = Future()
        future.set_result(held[0](item))
        return SimpleNamespace(future=lambda: future)


@pytest.mark.parametrize("address", ["", "ray://elsewhere:10001"], ids=["own", "named"])
def test_ray_gets_tasks_as_its_cluster_grows_and_is_remote_only_if_named(
    here, monkeypatch, address
):
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setitem(sys.modules, "ray.data", ModuleType("ray.data"))
    monkeypatch.setenv("RAY_ADDRESS", address)
    command = ["explain", "bank.mcce", "lake", *KEY, "--predictor", "scoring:score"]

    options = ["--engine", "ray", "--workers", "2", "--block-rows", "6"]
    assert main([*command, *options, "-o", "answers/"]) == 0

    # Twice as many as there are cores, at least 2; one is done between two looks.
    assert fake.seen[:4] == [0, 2, 3, 10]
    started, ended = fake.started
    own = {"address": "local", "num_cpus": 2, "include_dashboard": False}
    assert started == {"logging_level": logging.WARNING} | ({} if address else own)
    assert ended == "shutdown"
    expected = explain_alone("expected.parquet")
    pd.testing.assert_frame_equal(table("answers"), expected, check_exact=True)


@pytest.mark.parametrize("n_failures", [2, 3])
def test_a_start_of_ray_that_takes_too_long_is_tried_again(here, monkeypatch, capsys, n_failures):
    fake = FakeRay(n_failures)
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setitem(sys.modules, "ray.data", ModuleType("ray.data"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    files = ["explain", "bank.mcce", "lake", *KEY, "--predictor", "scoring:score", "-o", "answers/"]

    code = main([*files, "--engine", "ray"])

    assert code == (0 if n_failures == 2 else PREDICTOR)
    # What was half started is shut down each time.
    assert fake.started[1::2] == ["shutdown"] * 3
    if code:
        said = " ".join(capsys.readouterr().err.split())
        assert "did not start on this machine in 3 attempts" in said
        assert "timed out during startup" in said
