"""Independent tasks in threads.

Always true: results come in the order of the items and never depend on the number of threads; at
most ``n_jobs`` results wait at a time, so memory stays flat; whoever stops taking results, by an
error or Ctrl-C, leaves nothing running.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from ..kernels import context_with, inner_cancellation

Item = TypeVar("Item")
Result = TypeVar("Result")
# Where waiting for a thread cannot be interrupted, Ctrl-C takes effect after so many seconds.
WAIT = 0.1


def map_ordered(
    task: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> Iterator[Result]:
    """Result of a task for each item, in the order of the items.

    Parameters
    ----------
    task
        The function to call with each item.
    items
        The items; an iterator is read only as fast as results are taken.
    n_jobs
        Number of threads as in scikit-learn: None or 1 runs in the calling thread, -1 uses all
        cores.

    Yields
    ------
    Result
        The result for the next item. If a task raises, the error is raised here. Then, and if the
        generator is closed, the kernels of running tasks are cancelled.

    Examples
    --------
    >>> list(map_ordered(abs, [-1, 2, -3], n_jobs=2))
    [1, 2, 3]
    """
    # Imported here, since joblib is slow to load.
    from joblib import effective_n_jobs

    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        yield from map(task, items)
        return
    cancellation = inner_cancellation()
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(context_with(cancellation).run, task, item))
                if len(waiting) >= n_threads:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:
            cancellation.cancel()
            for future in waiting:
                future.cancel()


def _first(waiting: deque[Future[Result]]) -> Result:
    """The result of the first task, which leaves the queue."""
    while not waiting[0].done():
        wait([waiting[0]], timeout=WAIT)
    return waiting.popleft().result()
