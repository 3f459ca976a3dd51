"""Independent tasks in threads, a time limit on work, and how much memory there is.

A task uses :func:`in_caller` for what must not run in any thread, such as a predictor: it is called
in the thread that takes the results. Where several threads take results of tasks of their own, they
take turns inside :func:`one_at_a_time`.

Always true: results come in the order of the items and never depend on the number of threads; at
most ``n_jobs`` results wait at a time, so memory stays flat; when the caller stops taking results,
by an error or Ctrl-C, nothing is left running.
"""

from __future__ import annotations

import math
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar, cast

from ..errors import TimeLimitError
from ..kernels import CancelledError, ExpiredError, cancellable, context_with, inner_cancellation

Item = TypeVar("Item")
Result = TypeVar("Result")
# Where waiting for a thread cannot be interrupted, Ctrl-C takes effect within this many seconds.
POLL_SECONDS = 0.1
# The result of a function, and what it raised.
_Reply: TypeAlias = "queue.SimpleQueue[tuple[Any, Exception | None]]"


def map_ordered(
    task: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> Iterator[Result]:
    """Result of a task for each item, in the order of the items.

    Examples
    --------
    >>> list(map_ordered(abs, [-1, 2, -3], n_jobs=2))
    [1, 2, 3]
    """
    n_workers = n_threads(n_jobs)
    if n_workers == 1:
        # Not yield from map: a StopIteration raised by the task would end it silently.
        for item in items:
            yield task(item)
        return
    cancellation, calls = inner_cancellation(), _Calls()
    with ThreadPoolExecutor(n_workers) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                context = context_with(cancellation)
                context.run(_current.set, calls)
                waiting.append(pool.submit(context.run, task, item))
                waiting[-1].add_done_callback(calls.wake)
                if len(waiting) >= n_workers:
                    yield calls.serve_until(waiting.popleft())
            while waiting:
                yield calls.serve_until(waiting.popleft())
        finally:
            calls.close()
            cancellation.cancel()
            for future in waiting:
                future.cancel()


def n_threads(n_jobs: int | None) -> int:
    """Number of threads, see :func:`map_ordered`."""
    # Imported here, since joblib is slow to load.
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def in_caller(function: Callable[[], Result]) -> Result:
    """Call a function in the thread that collects the results of this task; returns its result.

    Examples
    --------
    >>> import threading
    >>> def thread(_):
    ...     return in_caller(threading.get_ident)
    >>> set(map_ordered(thread, range(3), n_jobs=2)) == {threading.get_ident()}
    True
    """
    calls = _current.get()
    if calls is not None:
        return calls.call(function)
    with _turn.get() or nullcontext():
        return function()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Inside, functions that :func:`in_caller` calls run one at a time across threads.

    Examples
    --------
    >>> with one_at_a_time():
    ...     in_caller(lambda: "alone")
    'alone'
    """
    before = _turn.set(_alone)
    try:
        yield
    finally:
        _turn.reset(before)


def is_caller() -> bool:
    """Whether this is the thread in which :func:`in_caller` calls functions."""
    return _current.get() is None


@contextmanager
def time_limit(what: str, max_seconds: float | None) -> Iterator[None]:
    """Raise if the work in the block takes too long.

    Kernels notice every few milliseconds; between them, ``kernels.check_cancellation`` does.
    """
    try:
        with cancellable(max_seconds):
            yield
    except ExpiredError as error:
        raise TimeLimitError(
            f"{what} takes longer than max_seconds={max_seconds!r} and was stopped; what was "
            "learned before is unchanged. Allow more seconds, or use fewer rows or columns."
        ) from error


def physical_memory() -> float:
    """Bytes of the machine's memory; infinite where the system does not say.

    Examples
    --------
    >>> physical_memory() > 0
    True
    """
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf


class _Calls:
    """Functions that tasks want to be called in the thread that takes their results."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[_Reply, Callable[[], Any]] | None]
        self._waiting = queue.SimpleQueue()
        self._closed = False

    def call(self, function: Callable[[], Result]) -> Result:
        """Have a function called, and wait for its result."""
        reply: _Reply = queue.SimpleQueue()
        self._waiting.put((reply, function))
        while True:
            try:
                given, error = reply.get(timeout=POLL_SECONDS)
            except queue.Empty:
                # Ctrl-C may have come after the function was taken and before it was called: then
                # no reply will ever come, and only ``_closed`` says so.
                if self._closed:
                    raise CancelledError from None
                continue
            if error is None:
                return cast("Result", given)
            try:
                raise error
            finally:
                # Its traceback holds this frame.
                del error

    def wake(self, _: Future[Any]) -> None:
        """Wake the thread that takes results: there may be one."""
        self._waiting.put(None)

    def serve_until(self, future: Future[Result]) -> Result:
        """Call functions until a task has ended, and give its result."""
        while not future.done():
            try:
                waiting = self._waiting.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            if waiting is not None:
                self._serve(*waiting)
        return future.result()

    @staticmethod
    def _serve(reply: _Reply, function: Callable[[], Any]) -> None:
        try:
            given = in_caller(function)
        except Exception as error:
            reply.put((None, error))
        else:
            reply.put((given, None))

    def close(self) -> None:
        """Call nothing any more."""
        self._closed = True


# Held by the only thread of one_at_a_time that calls a function; a function may call others.
_alone = threading.RLock()
# The lock that this thread must hold to call a function; None for none.
_turn: ContextVar[AbstractContextManager[Any] | None] = ContextVar("mcce_turn", default=None)
# Where the current task has functions called; None: in its own thread.
_current: ContextVar[_Calls | None] = ContextVar("mcce_calls", default=None)
