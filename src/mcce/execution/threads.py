"""Independent tasks in threads.

Always true: results come in the order of the items and never depend on the number of threads; at
most ``n_jobs`` results wait at a time, so memory stays flat.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


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
        The result for the next item. If a task raises, the error is raised here.

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
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(task, item))
                if len(waiting) >= n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
