"""Work spread over threads and shown as it goes.

Threads never change a result: items are independent, results come in the order of the items, and
at most ``n_jobs`` of them wait at a time, so memory stays flat.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from joblib import effective_n_jobs

from ..errors import MissingExtraError

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ordered(
    task: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> Iterator[Result]:
    """Results of the task for each item, in order; ``n_jobs`` as in scikit-learn."""
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


class ProgressBar:
    """How much of a long work is done; drawn on a terminal only, and only if asked for."""

    def __init__(self, total: int, what: str, verbose: bool) -> None:
        self._bar: Any = None
        if not verbose or not sys.stderr.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError as error:
            raise MissingExtraError(
                'verbose=True draws a progress bar with tqdm: pip install "mcce[progress]".'
            ) from error
        self._bar = tqdm(total=total, desc=what, leave=False)

    def show(self, n_done: int) -> None:
        """Draw that so much is done."""
        if self._bar is not None:
            self._bar.update(n_done - self._bar.n)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


class Clock:
    """Wall-clock seconds since the start or the last stop, by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._first = self._last = time.perf_counter()

    def stop(self, step: str) -> None:
        """Note the seconds of a step that ends here."""
        now = time.perf_counter()
        self.seconds[step] = now - self._last
        self._last = now

    def total(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._first
