"""The seam to engines: a pool of workers that do one task for many items.

The module of an engine has ``open_pool(task, workers)``, a context manager that gives a
:class:`WorkerPool`.

Always true: a task is a function of one item that runs in any process, any number of times, with
the same outcome, so an engine may repeat it when a worker is lost; an item that kills every worker
costs its own result and no other.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..errors import ParameterError, WorkerError, missing_extra, shorten

# The module of each engine, and the package that it needs.
ENGINE_MODULES = {"local": "joblib", "dask": "dask", "ray": "ray", "spark": "spark"}
ENGINES = tuple(ENGINE_MODULES)
ENGINE_PACKAGES = {"dask": "dask.distributed", "ray": "ray.data", "spark": "pyspark.sql"}
# If so many items are lost before one is done, all workers seem to die, and no more are started.
MAX_LOST = 20
# Columns that tell people apart.
Key = str | Sequence[str] | None
OpenPool = Callable[[Callable[[Any], Any], int | None], AbstractContextManager["WorkerPool"]]


@dataclass(frozen=True)
class WorkerPool:
    """Workers that do a task.

    ``room`` is how many items may run or wait at a time: more than can run, so that clusters grow.
    The future of an item whose worker was lost raises one of ``died``.
    """

    submit: Callable[[Any], Future[Any]]
    room: Callable[[], int]
    died: tuple[type[BaseException], ...] = ()

    def run(self, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The place and the result of each item, as they come.

        Items that a worker died with run again, each alone; a WorkerError stands for the result of
        one that a worker died with once more.
        """
        left, running = enumerate(items), dict[Future[Any], int]()
        done: SimpleQueue[Future[Any]] = SimpleQueue()
        lost, n_done = list[int](), 0
        while n_done or len(lost) < MAX_LOST:
            for place, item in islice(left, max(self.room() - len(running), 0)):
                future = self.submit(item)
                running[future] = place
                future.add_done_callback(done.put)
            if not running:
                break
            future = done.get()
            place = running.pop(future)
            try:
                result = future.result()
            except self.died:
                lost.append(place)
                continue
            n_done += 1
            yield place, result
        for place in [*lost, *running.values(), *(place for place, _ in left)]:
            yield place, self._alone(items[place])

    def _alone(self, item: Any) -> Any:
        try:
            return self.submit(item).result()
        except self.died:
            return WorkerError(
                "The worker died: it ran out of memory, or the predictor ended its process. Give "
                "workers more memory, or cut people into smaller blocks."
            )


def find_engine(engine: str, workers: int | None) -> OpenPool:
    """What opens a pool of an engine; an error names the extra of one that is not installed."""
    if engine not in ENGINES:
        raise ParameterError(f"The engine must be one of {ENGINES!r}, got {shorten(engine)}.")
    check_workers(workers)
    package = ENGINE_PACKAGES.get(engine, "joblib")
    try:
        import_module(package)
    except ImportError as error:
        what = f"{package} ({shorten(error)})"
        raise missing_extra(what, engine, f"The engine {engine}") from error
    found: OpenPool = import_module(f".{ENGINE_MODULES[engine]}", __package__).open_pool
    return found


def check_workers(workers: Any) -> None:
    """Raise unless it is a number of workers, or None."""
    if workers is not None and not (isinstance(workers, int | np.integer) and workers >= 1):
        raise ParameterError(f"The number of workers must be at least 1, got {shorten(workers)}.")


@contextmanager
def holding_sigint() -> Iterator[None]:
    """Processes started inside never see Ctrl-C; this one sees it when the block ends."""
    if sys.platform == "win32":
        yield
        return
    # Held back, not ignored: Ctrl-C while processes start would be lost, and the run would go on.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
