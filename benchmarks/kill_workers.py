"""Kill workers of Dask and Ray at random moments, and compare with the answers of one process.

``python benchmarks/kill_workers.py dask-frame dask-tasks ray-frame ray-tasks --kills 5``. During a
run, a random worker in the midst of its partitions is ended with SIGKILL, again and again. What is
compared is a checksum of the sorted table: nothing may be lost, come twice, or differ in a bit.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

import engine_people
from engine_people import KEY
from mcce.execution import dask as on_dask
from mcce.execution import ray as on_ray
from mcce.execution.workers import run_all
from mcce.files.sources import arrow_fingerprint

# Seconds of every predictor call: partitions must last long enough to be hit.
SECONDS = 0.2


def main() -> None:
    """Run the trials and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ways", nargs="*", default=list(WAYS), metavar="way")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--partitions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    trials = [trial(way, options.kills, options.partitions, options.seed) for way in options.ways]
    sys.exit(not all(equal and n_killed == options.kills for equal, n_killed in trials))


def trial(way: str, n_kills: int, n_partitions: int, seed: int) -> tuple[bool, int]:
    """Whether a run gives the answers of one process, and how many workers were killed in it."""
    rows = engine_people.people(4 * n_partitions)
    explainer = engine_people.fit()
    task = engine_people.plan(explainer, rows)
    expected = checksum(task.frame(rows), task)
    with tempfile.TemporaryDirectory() as folder:
        killer = Killer(n_kills, seed, folder)
        began = time.monotonic()
        found = WAYS[way](explainer, rows, n_partitions, killer)
    equal = checksum(found, task) == expected
    moments = ", ".join(f"{moment - began:.1f}" for moment in killer.moments)
    print(
        f"{way}: {n_partitions} partitions in {time.monotonic() - began:.1f} s, "
        f"{len(killer.moments)} workers killed at {moments} s: {'equal' if equal else 'DIFFERENT'}",
        flush=True,
    )
    return equal, len(killer.moments)


def checksum(table: pd.DataFrame | pa.Table, task: Any) -> str:
    """A checksum of a table of answers in the order of people and ranks."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, schema=task.arrow_schema, preserve_index=False)
    ordered = table.sort_by([(KEY, "ascending"), ("rank", "ascending")])
    return arrow_fingerprint(dict(zip(ordered.column_names, ordered.columns, strict=True)))


@dataclass
class Killer:
    """Ends workers that are at work, at random moments.

    Parameters
    ----------
    n_kills
        How many.
    seed
        Which moments and workers.
    folder
        Where workers leave the numbers of their processes.
    moments
        When it did so.
    """

    n_kills: int
    seed: int
    folder: str
    moments: list[float] = field(default_factory=list)

    def load_predictor(self) -> Callable[[], Any]:
        """What loads the predictor of workers that are to be killed."""
        return engine_people.scoring(SECONDS, self.folder)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Kill workers as long as this lasts."""
        ended = threading.Event()
        thread = threading.Thread(target=self._work, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _work(self, ended: threading.Event) -> None:
        chance = random.Random(self.seed)
        while len(self.moments) < self.n_kills and not ended.wait(chance.uniform(0.2, 3.0)):
            workers = sorted(Path(self.folder).iterdir())
            if workers:
                worker = chance.choice(workers)
                worker.unlink()
                os.kill(int(worker.name), signal.SIGKILL)
                self.moments.append(time.monotonic())


def dask_frame(explainer: Any, rows: pd.DataFrame, n_partitions: int, killer: Killer) -> Any:
    """Answers by a Dask frame."""
    import dask.dataframe as dd

    frame = dd.from_pandas(rows, npartitions=n_partitions, sort=False)
    load = killer.load_predictor()
    answers = on_dask.explain(explainer, frame, key=KEY, load_predictor=load)
    with dask_cluster(), killer.at_work():
        return answers.compute()


def dask_tasks(explainer: Any, rows: pd.DataFrame, n_partitions: int, killer: Killer) -> Any:
    """Answers by tasks on Dask."""
    with dask_cluster():
        return by_tasks(on_dask.DaskExecutor(), explainer, rows, n_partitions, killer)


@contextmanager
def dask_cluster() -> Iterator[None]:
    """A cluster of two processes, and a client that is the current one."""
    import dask
    from dask.distributed import Client, LocalCluster

    with (
        # Of a frame, Dask gives up on a partition that four workers died with, as they may here.
        dask.config.set(on_dask.SETTINGS | {"distributed.scheduler.allowed-failures": 10}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        yield


def ray_frame(explainer: Any, rows: pd.DataFrame, n_partitions: int, killer: Killer) -> Any:
    """Answers by Ray Data."""
    import ray

    with ray_cluster(), killer.at_work():
        answers = on_ray.explain(
            explainer,
            ray.data.from_pandas(cut(rows, n_partitions)),
            key=KEY,
            load_predictor=killer.load_predictor(),
            workers=2,
            block_rows=len(rows) // n_partitions,
        )
        return pa.concat_tables(ray.get(answers.to_arrow_refs()))


def ray_tasks(explainer: Any, rows: pd.DataFrame, n_partitions: int, killer: Killer) -> Any:
    """Answers by tasks on Ray."""
    with ray_cluster():
        return by_tasks(on_ray.RayExecutor(), explainer, rows, n_partitions, killer)


@contextmanager
def ray_cluster() -> Iterator[None]:
    """Ray with two workers."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="warning")
    try:
        yield
    finally:
        ray.shutdown()


def by_tasks(
    executor: Any, explainer: Any, rows: pd.DataFrame, n_partitions: int, killer: Killer
) -> Any:
    """Answers by an executor, each partition once."""
    task = engine_people.plan(explainer, rows, killer.load_predictor())
    with killer.at_work():
        tables: list[Any] = list(run_all(executor, task.frame, cut(rows, n_partitions)))
    assert sorted(place for place, _ in tables) == list(range(n_partitions))
    return pd.concat([table for _, table in tables], ignore_index=True)


def cut(rows: pd.DataFrame, n_partitions: int) -> list[pd.DataFrame]:
    """Partitions of one size."""
    size = len(rows) // n_partitions
    return [rows.iloc[at : at + size] for at in range(0, len(rows), size)]


WAYS = {
    "dask-frame": dask_frame,
    "dask-tasks": dask_tasks,
    "ray-frame": ray_frame,
    "ray-tasks": ray_tasks,
}

if __name__ == "__main__":
    main()
