"""What is said of engines that are not installed."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import pytest

from engine_cases import explainer, people, square
from mcce.errors import MissingExtraError
from mcce.execution import dask, ray, spark
from mcce.execution.executor import find_executor

# Without these, neither people nor tasks can be given to an engine.
MODULES = {"dask": "dask", "ray": "ray", "spark": "pyspark"}


@pytest.mark.parametrize("engine", MODULES)
def test_an_engine_that_is_not_installed_is_named_with_its_extra(monkeypatch, engine):
    monkeypatch.setitem(sys.modules, MODULES[engine], None)
    explain = {"dask": dask, "ray": ray, "spark": spark}[engine].explain

    with pytest.raises(MissingExtraError, match=rf'pip install "mcce\[{engine}\]"'):
        list(find_executor(engine).map(square, [1]))
    with pytest.raises(MissingExtraError, match=rf'pip install "mcce\[{engine}\]"'):
        explain(explainer(), people(8), key="customer")


class Cluster:
    """What a run needs of Ray, for tasks that are done at once, on a cluster that grows."""

    exceptions = SimpleNamespace(
        WorkerCrashedError=ConnectionError, OutOfMemoryError=MemoryError, RayTaskError=ValueError
    )

    def __init__(self, *cores):
        self.cores, self.submitted, self.started = list(cores), [], []

    def is_initialized(self):
        return False

    def init(self, **options):
        self.started.append(options)

    def shutdown(self):
        self.started.append("shutdown")

    def cluster_resources(self):
        return {"CPU": float(self.cores.pop(0) if len(self.cores) > 1 else self.cores[0])}

    def put(self, task):
        return task

    def remote(self, **_):
        return lambda function: SimpleNamespace(remote=lambda held, item: (held[0], item))

    def wait(self, running, num_returns):
        self.submitted.append(len(running))
        return running[:num_returns], running[num_returns:]

    def get(self, future):
        task, item = future
        return task(item)


def test_more_tasks_are_submitted_when_a_ray_cluster_grows(monkeypatch):
    cluster = Cluster(0, 1, 4)
    monkeypatch.setattr(ray, "_import_ray", lambda: cluster)

    results = dict(ray.RayExecutor().map(square, range(20)))

    assert results == {n: n * n for n in range(20)}
    assert cluster.submitted[:3] == [2, 2, 8]


@pytest.mark.parametrize("address", ["", "ray://elsewhere:10001"])
def test_ray_uses_a_cluster_only_if_the_environment_names_it(monkeypatch, address):
    cluster = Cluster(1)
    monkeypatch.setattr(ray, "_import_ray", lambda: cluster)
    monkeypatch.setenv("RAY_ADDRESS", address)

    list(ray.RayExecutor(workers=2).map(square, [1]))

    started, ended = cluster.started
    own = {"address": "local", "num_cpus": 2, "include_dashboard": False}
    assert started == {"logging_level": logging.WARNING} | ({} if address else own)
    assert ended == "shutdown"
