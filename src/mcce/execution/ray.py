"""People in Ray Data, and tasks on a Ray cluster.

Always true: the explainer goes to each worker once, by Ray's object store; blocks stream through,
in their order if Ray preserves it; the work of a lost worker is repeated by others.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ..errors import WorkerError
from ..explainer import MCCE
from ..files.sources import holds_whole
from .pools import Key, WorkerPool
from .workers import Task

# How often a task is tried again whose worker was lost.
LOST_WORKER_RETRIES = 3

# How often a start is tried: Ray gives up after half a minute, too little on a busy machine.
STARTS = 3


def columns_of(people: Any, key: Key, explainer: MCCE) -> tuple[dict[str, bool], Key]:
    """The columns of a dataset, and whether they hold whole numbers; and its key."""
    schema = people.schema()
    if schema is None:
        # A dataset without rows may have lost its columns.
        keys = [key] if isinstance(key, str) else list(key or [])
        return dict.fromkeys([*map(str, explainer.schema_.names), *keys], False), key
    base = schema.base_schema
    return {str(n): holds_whole(kind) for n, kind in zip(base.names, base.types, strict=True)}, key


def answers(people: Any, _: Key, task: Task, *, workers: int | None, block_rows: int) -> Any:
    """The answers to people in a Ray dataset; the explainer goes to each actor once."""
    import ray

    made = people.map_batches(
        _RayActor,
        fn_constructor_args=[ray.put(task)],
        batch_format="pyarrow",
        batch_size=block_rows,
        # Not all at once: whatever makes the people needs room, too.
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
    )
    # Ray knows no columns of a dataset without rows unless one block has them.
    return ray.data.from_arrow(task.arrow_schema.empty_table()).union(made)


class _RayActor:
    """What an actor of Ray Data does."""

    def __init__(self, task: Any) -> None:
        import ray

        self._task: Task = ray.get(task)

    def __call__(self, people: Any) -> Any:
        return self._task.arrow(people)


@contextmanager
def open_pool(task: Callable[[Any], Any], workers: int | None) -> Iterator[WorkerPool]:
    """Workers of the cluster that this process is connected to, else of one of this machine.

    The address of a remote cluster can stand in ``RAY_ADDRESS``.
    """
    import ray

    ours = not ray.is_initialized()
    if ours:
        # Not one that happens to run on this machine, whose cores are not ours to set.
        local = {"address": "local", "num_cpus": workers, "include_dashboard": False}
        start(**({} if os.environ.get("RAY_ADDRESS") else local))
    try:
        call = ray.remote(max_retries=LOST_WORKER_RETRIES)(_call)
        # In a list, so that Ray hands over the reference and a worker fetches it once.
        held = [ray.put(task)]
        yield WorkerPool(
            lambda item: call.remote(held, item).future(),
            lambda: 2 * max(1, int(ray.cluster_resources().get("CPU", 1))),
            (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError),
        )
    finally:
        if ours:
            ray.shutdown()


def start(**options: Any) -> None:
    """Starts Ray, again where a busy machine took longer than Ray waits."""
    import ray

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


def _call(held: list[Any], item: Any) -> Any:
    return _fetch(held[0])(item)


@lru_cache(maxsize=1)
def _fetch(reference: Any) -> Callable[[Any], Any]:
    import ray

    return ray.get(reference)
