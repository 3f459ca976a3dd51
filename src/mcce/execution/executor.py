"""The seam between work that is cut into tasks and the engines that run them.

Always true: a task is a function of one item that runs in any process, any number of times, with
the same outcome; so an engine may run it again when a worker is lost. An item that kills every
worker costs its own result and no other.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np

from ..errors import MissingExtraError, ParameterError, WorkerError, shorten

Item = TypeVar("Item")
Result = TypeVar("Result")
Engine = Literal["local", "dask", "ray", "spark"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
LIBRARIES = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}


class Executor(Protocol):
    """Runs tasks somewhere."""

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | WorkerError]]:
        """The results of a task for some items, as they come; :func:`run_all` calls it."""
        ...


def run_all(
    executor: Executor, task: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[tuple[int, Result | WorkerError]]:
    """The results of a task for some items; those that a worker died with run again, each alone."""
    suspects: list[int] = []
    for place, result in executor.map(task, items):
        if isinstance(result, WorkerError):
            suspects.append(place)
        else:
            yield place, result
    for place in suspects:
        yield from ((place, result) for _, result in executor.map(task, [items[place]]))


def lost() -> WorkerError:
    """What stands for the result of an item whose worker died."""
    return WorkerError(
        "The worker died: it ran out of memory, or the predictor ended its process. Give workers "
        "more memory, or cut people into smaller blocks."
    )


def find_executor(engine: str, workers: int | None = None) -> Executor:
    """The executor of an engine."""
    if engine not in ENGINES:
        raise ParameterError(f"The engine must be one of {ENGINES!r}, got {shorten(engine)}.")
    check_workers(workers)
    _require(engine)
    if engine == "dask":
        from .dask import DaskExecutor

        return DaskExecutor(workers)
    if engine == "ray":
        from .ray import RayExecutor

        return RayExecutor(workers)
    if engine == "spark":
        from .spark import SparkExecutor

        return SparkExecutor(workers)
    from .joblib import JoblibExecutor

    return JoblibExecutor(workers)


def check_workers(workers: Any) -> None:
    """Raise unless it is a number of workers, or None."""
    if workers is not None and not (isinstance(workers, int | np.integer) and workers >= 1):
        raise ParameterError(f"The number of workers must be at least 1, got {shorten(workers)}.")


def _require(engine: str) -> None:
    """Raise if the library of an engine is not installed."""
    try:
        if engine in LIBRARIES:
            import_module(LIBRARIES[engine])
    except ImportError as error:
        raise missing_engine(engine, error) from error


def missing_engine(engine: str, error: ImportError) -> MissingExtraError:
    """The error that says which extra an engine needs."""
    return MissingExtraError(
        f'The engine {engine} is not installed: pip install "mcce[{engine}]" ({shorten(error)}).'
    )


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


def check_frame(people: Any, kind: type[Any], called: str) -> Any:
    """The people, if they are in the frame of an engine."""
    if not isinstance(people, kind):
        raise ParameterError(
            f"people must be a {called}, got {type(people).__module__}.{type(people).__name__}."
        )
    return people
