"""People in a Dask frame, and tasks on a Dask cluster.

Always true: the explainer goes to each worker once, as one object of the graph; partitions stay
partitions, in their order; the work of a lost worker is repeated by others.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from ..errors import WorkerError, shorten
from ..explainer import MCCE
from . import joblib
from .pools import Key, WorkerPool, holding_sigint
from .workers import Task

# How often a task that failed is tried again.
TASK_RETRIES = 3
# Of a cluster of this machine: how long a new worker may take to start (Dask gives up on it after
# 15 seconds, for good); for how long there may be none at all; and no profiles, which grow by the
# hour.
SETTINGS = {
    "distributed.deploy.lost-worker-timeout": "5 minutes",
    "distributed.scheduler.no-workers-timeout": "10 minutes",
    "distributed.worker.profile.enabled": False,
}


def columns_of(people: Any, key: Key, explainer: MCCE) -> tuple[dict[str, bool], Key]:
    """The columns of a frame, and whether they hold whole numbers; and its key."""
    return joblib.columns_of(people._meta, key, explainer)


def answers(people: Any, key: Key, task: Task, **_: Any) -> Any:
    """The answers to people in a Dask frame, in the partitions and the order of the people."""
    import dask

    return people.map_partitions(
        _answer,
        dask.delayed(task, pure=False, traverse=False),
        key,
        meta=task.layout.empty(),
        clear_divisions=True,
        enforce_metadata=False,
    )


def _answer(people: pd.DataFrame, task: Task, key: Key) -> pd.DataFrame:
    return task.frame(joblib.with_index(people, key)[0])


@contextmanager
def open_pool(task: Callable[[Any], Any], workers: int | None) -> Iterator[WorkerPool]:
    """Workers of the current client's cluster, else of one of this machine.

    The address of a remote cluster can stand in ``DASK_SCHEDULER_ADDRESS``.
    """
    from dask.distributed import KilledWorker
    from distributed.scheduler import NoWorkerError

    with _client(workers) as client:
        # Computed on a worker: what is scattered is lost with the workers that hold it.
        held = client.submit(_same, task, pure=False)
        executor = client.get_executor(pure=False, retries=TASK_RETRIES)
        try:
            yield WorkerPool(
                lambda item: executor.submit(_call, item, task=held),
                lambda: sys.maxsize,
                (KilledWorker,),
            )
        except NoWorkerError as error:
            raise WorkerError(
                f"The Dask cluster has had no worker for too long ({shorten(error, 200)}): they "
                "died or were stopped, and it started no new ones. Look at their logs, start "
                "workers, and run again."
            ) from error
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _client(workers: int | None) -> Iterator[Any]:
    """The current client, or one for the time of the run."""
    import dask
    from dask.distributed import Client, get_client

    try:
        current = get_client()
    except ValueError:
        current = None
    if current is not None:
        yield current
        return
    local = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "dashboard_address": ":0",  # another cluster may have the usual one
        # What matters is said by mcce; a run that is interrupted would end in tracebacks.
        "silence_logs": logging.CRITICAL,
    }
    options = {} if dask.config.get("scheduler-address", None) else local
    with dask.config.set(SETTINGS):
        with holding_sigint():
            started = Client(**options)
        with started as client:
            yield client


def _same(task: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return task


def _call(item: Any, *, task: Callable[[Any], Any]) -> Any:
    return task(item)
