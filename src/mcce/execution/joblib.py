"""People in pandas frames, and processes of one machine, by loky, which comes with joblib.

Always true: a worker gets the explainer once; a few blocks per worker wait at a time; processes
that die are replaced.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pandas as pd

from ..errors import ParameterError, WorkerError, shorten
from ..explainer import MCCE
from ..files.sources import holds_whole
from .pools import Key, WorkerPool, holding_sigint
from .workers import Task

# Threads that libraries would start in every process.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
}


def columns_of(people: pd.DataFrame, key: Key, _: MCCE) -> tuple[dict[str, bool], Key]:
    """The columns of a frame, and whether they hold whole numbers; and its key.

    Examples
    --------
    >>> columns_of(pd.DataFrame({"customer": [7], "salary": [1.5]}), "customer", None)
    ({'customer': True, 'salary': False}, 'customer')
    """
    frame, key = with_index(people, key)
    return {str(name): holds_whole(dtype) for name, dtype in frame.dtypes.items()}, key


def with_index(frame: pd.DataFrame, key: Key) -> tuple[pd.DataFrame, Key]:
    """A frame and its key; without a key, the index becomes columns, which are the key.

    Examples
    --------
    >>> with_index(pd.DataFrame({"salary": [40, 50]}, index=["a", "b"]), None)[0]
      index  salary
    0     a      40
    1     b      50
    """
    if key is not None:
        return frame, key
    names = [f"index{at or ''}" if n is None else str(n) for at, n in enumerate(frame.index.names)]
    count = Counter([*names, *map(str, frame.columns)])
    taken = [name for name in dict.fromkeys(names) if count[name] > 1]
    if taken:
        raise ParameterError(
            f"The labels of the index would be columns, but several would be named "
            f"{shorten(taken)}. Name the columns that identify a person with key, or rename the "
            "levels of the index."
        )
    return frame.rename_axis(index=names).reset_index(), names


def answers(
    people: pd.DataFrame, key: Key, task: Task, *, workers: int | None, block_rows: int
) -> pd.DataFrame:
    """The answers to people in a pandas frame, in their order."""
    people, _ = with_index(people, key)
    blocks = [people.iloc[at : at + block_rows] for at in range(0, len(people), block_rows)]
    tables: dict[int, pd.DataFrame] = {}
    with open_pool(task.frame, workers) as pool:
        for place, table in pool.run(blocks):
            if isinstance(table, WorkerError):
                raise table
            tables[place] = table
    return pd.concat(
        [task.layout.empty(), *(tables[at] for at in sorted(tables))], ignore_index=True
    )


@contextmanager
def open_pool(task: Callable[[Any], Any], workers: int | None) -> Iterator[WorkerPool]:
    """Processes that do a task; one worker is this process."""
    import joblib
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.backend.reduction import dumps

    n_workers = joblib.effective_n_jobs(-1 if workers is None else workers)
    if n_workers == 1:
        yield WorkerPool(lambda item: _done(task, item), lambda: 1)
        return
    content = bytes(dumps(task))
    left = {name: value for name, value in ONE_THREAD.items() if name not in os.environ}

    def start() -> Any:
        return ProcessPoolExecutor(n_workers, initializer=_receive, initargs=(content,), env=left)

    executor = start()

    def submit(item: Any) -> Future[Any]:
        nonlocal executor
        with holding_sigint():  # a call starts processes
            try:
                return executor.submit(_call, item)
            except BrokenProcessPool:
                # One worker has died, and loky ends the others with it.
                executor.shutdown(kill_workers=True)
                executor = start()
                return executor.submit(_call, item)

    try:
        yield WorkerPool(submit, lambda: 2 * n_workers, (BrokenProcessPool,))
    finally:
        executor.shutdown(kill_workers=True)


def _done(task: Callable[[Any], Any], item: Any) -> Future[Any]:
    """The result of a task that is done at once."""
    future: Future[Any] = Future()
    try:
        future.set_result(task(item))
    except Exception as error:
        future.set_exception(error)
    return future


_content = b""


def _receive(content: bytes) -> None:
    """Keep the task of this process until it is needed: then it can say what is wrong with it."""
    global _content
    _content = content


@lru_cache(maxsize=1)
def _task(content: bytes) -> Callable[[Any], Any]:
    from pickle import loads

    return loads(content)


def _call(item: Any) -> Any:
    return _task(_content)(item)
