"""People in Ray Data, and tasks on a Ray cluster.

Always true: the explainer goes to each worker once, by Ray's object store; blocks stream through,
in their order if Ray preserves it; the work of a lost worker is repeated by others.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import WorkerError
from ..explainer import MCCE
from ..files.cell_values import holds_whole
from .workers import (
    PARTITION_ROWS,
    Item,
    PartitionTask,
    Result,
    check_block_rows,
    check_frame,
    check_workers,
    require_engine,
    worker_died_error,
)

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["explain"]

# How often a task is tried again whose worker was lost.
LOST_WORKER_RETRIES = 3

# How often a start is tried: Ray gives up after half a minute, too little on a busy machine.
STARTS = 3


def explain(
    explainer: MCCE,
    people: Dataset,
    *,
    key: str | Sequence[str],
    load_predictor: Callable[[], Any] | None = None,
    constraints: Any = None,
    workers: int | None = None,
    block_rows: int = PARTITION_ROWS,
    prefix: str = "",
) -> Dataset:
    """Answers to people in a Ray dataset, block by block; nothing is computed yet.

    Rows come in the order of the people if Ray preserves it
    (``ray.data.DataContext.get_current().execution_options.preserve_order = True``).

    Parameters
    ----------
    explainer
        The fitted explainer.
    people
        Whom to explain, with the columns of training.
    key
        The columns that identify a person.
    load_predictor
        Returns the predictor; called once by each worker. None sends the explainer's own, pickled.
    constraints
        Further constraints for these people.
    workers
        The largest number of workers; None for as many as the cluster has room for.
    block_rows
        The largest number of people that a worker takes at a time; answers do not depend on it.
    prefix
        What stands before the names of added columns.

    Returns
    -------
    ray.data.Dataset
        One row per answer, and one with the reason for everybody without.

    Raises
    ------
    McceError
        If a parameter or a column cannot be used.
    MissingExtraError
        If Ray is not installed.
    """
    ray = _import_ray()
    check_frame(people, ray.data.Dataset, "ray.data.Dataset")
    check_block_rows(block_rows)
    check_workers(workers)
    columns = _columns_of(people, explainer, key)
    task = PartitionTask.plan(
        explainer, load_predictor, columns, key, constraints=constraints, prefix=prefix
    )
    answers = people.map_batches(
        _RayActor,
        fn_constructor_args=[ray.put(task)],
        batch_format="pyarrow",
        batch_size=block_rows,
        # Not all at once: whatever makes the people needs room, too.
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
    )
    # Ray knows no columns of a dataset without rows unless one block has them.
    return ray.data.from_arrow(task.arrow_schema.empty_table()).union(answers)


def _columns_of(
    people: Dataset, explainer: MCCE, key: str | Sequence[str] | None
) -> dict[str, bool]:
    """Names of the columns, and whether each holds whole numbers."""
    schema = people.schema()
    if schema is None:
        # A dataset without rows may have lost its columns.
        keys = [key] if isinstance(key, str) else list(key or [])
        return dict.fromkeys([*map(str, explainer.fitted_.schema.names), *keys], False)
    base = schema.base_schema
    return {str(n): holds_whole(kind) for n, kind in zip(base.names, base.types, strict=True)}


class _RayActor:
    """What an actor of Ray Data does."""

    def __init__(self, task: Any) -> None:
        import ray

        self._task: PartitionTask = ray.get(task)

    def __call__(self, people: Any) -> Any:
        return self._task.arrow(people)


@dataclass(frozen=True)
class RayExecutor:
    """Runs tasks on a Ray cluster; see :class:`~mcce.execution.workers.Executor`.

    The cluster is the one that this process is connected to, else one of this machine for the time
    of the run. The address of a remote one can stand in ``RAY_ADDRESS``.
    """

    workers: int | None = None

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | WorkerError]]:
        """The results of a task for some items, as they come."""
        ray = _import_ray()
        died = ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError
        with self._cluster(ray):
            call = ray.remote(max_retries=LOST_WORKER_RETRIES)(_call)
            # In a list, so that Ray hands over the reference and a worker fetches it once.
            held = [ray.put(task)]
            left = enumerate(items)
            running = {call.remote(held, item): at for at, item in islice(left, _ahead(ray))}
            while running:
                [done], _ = ray.wait(list(running), num_returns=1)
                place = running.pop(done)
                n_more = max(_ahead(ray) - len(running), 0)
                running |= {call.remote(held, item): at for at, item in islice(left, n_more)}
                try:
                    yield place, ray.get(done)
                except died:
                    yield place, worker_died_error()
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from None

    @contextmanager
    def _cluster(self, ray: Any) -> Iterator[None]:
        """A connection to a cluster, which ends with the run if it began with it."""
        if ray.is_initialized():
            yield
            return
        # Not one that happens to run on this machine, whose cores are not ours to set.
        local = {"address": "local", "num_cpus": self.workers, "include_dashboard": False}
        options = {} if os.environ.get("RAY_ADDRESS") else local
        start(**options)
        try:
            yield
        finally:
            ray.shutdown()


def start(**options: Any) -> None:
    """Starts Ray, again where a busy machine took longer than Ray waits."""
    ray = _import_ray()
    for left in reversed(range(STARTS)):
        try:
            ray.init(logging_level=logging.WARNING, **options)
            return
        except Exception as error:  # Ray has no class of its own for a start that took too long.
            ray.shutdown()
            if not left:
                where = os.environ.get("RAY_ADDRESS", "this machine")
                raise WorkerError(
                    f"Ray did not start on {where} in {STARTS} attempts; the last one ended with: "
                    f"{error} Try again when the machine is less busy, or use another engine."
                ) from error


def _ahead(ray: Any) -> int:
    """How many tasks are submitted at a time: more than can run, so that autoscaling starts."""
    return 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))


def _import_ray() -> Any:
    require_engine("ray", "ray.data")
    import ray

    return ray


def _call(held: list[Any], item: Any) -> Any:
    return _fetch(held[0])(item)


@lru_cache(maxsize=1)
def _fetch(reference: Any) -> Callable[[Any], Any]:
    import ray

    return ray.get(reference)
