"""People in a Dask frame, and tasks on a Dask cluster.

Always true: the explainer goes to each worker once, as one object of the graph; partitions stay
partitions, in their order; the work of a lost worker is repeated by others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import WorkerError
from ..explainer import MCCE
from .workers import (
    Item,
    PartitionTask,
    Result,
    check_frame,
    columns_of,
    holding_sigint,
    require_engine,
    with_index,
    worker_died_error,
)

if TYPE_CHECKING:
    import dask.dataframe as dd

__all__ = ["explain"]

# How often a task that failed is tried again.
TASK_RETRIES = 3
# Of a cluster of this machine: how long a new worker may take to start (Dask gives up on it after
# 15 seconds, for good, so a busy machine that loses its last worker would wait for ever); and no
# profiles, which grow by the hour.
SETTINGS = {
    "distributed.deploy.lost-worker-timeout": "5 minutes",
    "distributed.worker.profile.enabled": False,
}
# How long to wait, in seconds, while the cluster has no worker; and for the next result.
MAX_IDLE_SECONDS, PAUSE = 600.0, 0.05


def explain(
    explainer: MCCE,
    people: dd.DataFrame,
    *,
    load_predictor: Callable[[], Any] | None = None,
    key: str | Sequence[str] | None = None,
    constraints: Any = None,
    prefix: str = "",
) -> dd.DataFrame:
    """Answers to people in a Dask frame, partition by partition; nothing is computed yet.

    Parameters
    ----------
    explainer
        The fitted explainer.
    people
        Whom to explain, with the columns of training.
    load_predictor
        Returns the predictor; called once by each worker process, whose threads share it. None
        sends the explainer's own, pickled.
    key
        The columns that identify a person; None for the labels of the index.
    constraints
        Further constraints for these people.
    prefix
        What stands before the names of added columns.

    Returns
    -------
    dask.dataframe.DataFrame
        One row per answer, and one with the reason for everybody without, in the partitions and
        the order of the people.

    Raises
    ------
    McceError
        If a parameter or a column cannot be used.
    MissingExtraError
        If Dask is not installed.
    """
    require_engine("dask", "dask.dataframe")
    import dask
    import dask.dataframe as dd

    check_frame(people, dd.DataFrame, "dask.dataframe.DataFrame")
    meta, keys = with_index(people._meta, key)
    columns = columns_of(meta)
    task = PartitionTask.plan(
        explainer, load_predictor, columns, keys, constraints=constraints, prefix=prefix
    )
    return people.map_partitions(
        _answer,
        dask.delayed(task, pure=False, traverse=False),
        key,
        meta=task.empty_table,
        clear_divisions=True,
        enforce_metadata=False,
    )


def _answer(
    people: pd.DataFrame, task: PartitionTask, key: str | Sequence[str] | None
) -> pd.DataFrame:
    return task.frame(with_index(people, key)[0])


@dataclass(frozen=True)
class DaskExecutor:
    """Runs tasks on a Dask cluster; see :class:`~mcce.execution.workers.Executor`.

    The cluster is that of the current client, else one of this machine for the time of the run.
    The address of a remote one can stand in ``DASK_SCHEDULER_ADDRESS``.
    """

    workers: int | None = None

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | WorkerError]]:
        """The results of a task for some items, as they come."""
        with self._client() as client:
            from dask.distributed import KilledWorker

            # Computed on a worker: what is scattered is lost with the workers that hold it.
            held = client.submit(_same, task, pure=False)
            futures = client.map(_call, items, task=held, pure=False, retries=TASK_RETRIES)
            places = {future.key: place for place, future in enumerate(futures)}
            for future in _completed(client, futures):
                try:
                    yield places[future.key], future.result()
                except KilledWorker:
                    yield places[future.key], worker_died_error()
                future.release()

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """The current client, or one for the time of the run."""
        require_engine("dask", "dask.distributed")
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
            "n_workers": self.workers,
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


def _completed(client: Any, futures: list[Any]) -> Iterator[Any]:
    """Futures as they complete; a cluster that stays without workers is an error, not a wait."""
    from dask.distributed import as_completed

    waiting = as_completed(futures)
    seen = looked = time.monotonic()
    while not waiting.is_empty():
        if waiting.has_ready():
            yield from waiting.next_batch(block=False)
            continue
        time.sleep(PAUSE)
        now = time.monotonic()
        if now - looked < MAX_IDLE_SECONDS / 100:
            continue
        looked = now
        if client.nthreads():
            seen = now
        elif now - seen > MAX_IDLE_SECONDS:
            raise WorkerError(
                f"The Dask cluster has had no worker for {MAX_IDLE_SECONDS:.0f} seconds: they died "
                "or were stopped, and it started no new ones. Look at their logs, start workers, "
                "and run again."
            )


def _same(task: Callable[[Item], Result]) -> Callable[[Item], Result]:
    return task


def _call(item: Item, *, task: Callable[[Item], Result]) -> Result:
    return task(item)
