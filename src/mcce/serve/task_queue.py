"""Work in threads: a bounded queue, batches of tasks that go together, and no endless waits.

A thread takes the first task in the queue and all others with the same key: people of several
requests are explained by one search, and each request gets its own part. A request waits until the
answer, the limit, or until its client leaves.

Always true: a task is answered once; the task of a client that left is not begun, or is ended if
nobody shares it; a thread that is stuck in a predictor is replaced, a few times; tasks that shared
a batch that failed or hangs are tried again alone.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from ..kernels import Cancellation, CancelledError, ExpiredError, cancellable
from .refusals import RefusalError


class TaskQueue:
    """Threads behind a queue of tasks; they start with the first task."""

    def __init__(
        self,
        limits: QueueLimits,
        observe: Callable[[int, int], None] = lambda tasks, people: None,
    ) -> None:
        self.limits, self._observe = limits, observe
        self._queue: deque[QueuedTask] = deque()
        self._threads: list[QueueThread] = []
        self._change = threading.Condition()
        self._is_closed = False
        self._watcher: threading.Thread | None = None
        self._end = threading.Event()
        # Seconds of a batch, smoothed: for how long those who are refused should wait.
        self._pace = 0.5

    @property
    def n_waiting(self) -> int:
        """Tasks in the queue."""
        return len(self._queue)

    @property
    def n_stuck(self) -> int:
        """Threads stuck in a predictor."""
        return sum(self._is_stuck(thread) for thread in list(self._threads))

    @property
    def is_ready(self) -> bool:
        """Whether a new task would start: not closed, and not all threads stuck."""
        return not self._is_closed and self.n_stuck < self.limits.threads + self.limits.spare

    def submit(self, task: QueuedTask) -> None:
        """Put a task into the queue."""
        with self._change:
            if self._is_closed:
                raise RefusalError.of(503, "the service is shutting down", "closing")
            self._start_threads()
            if not self.is_ready:
                raise RefusalError.of(503, "the predictor does not answer", "stuck")
            if len(self._queue) >= self.limits.queue:
                raise self._busy()
            self._queue.append(task)
            self._change.notify()

    def leave(self, task: QueuedTask) -> None:
        """Drop a task that nobody waits for any more, and end its work if nobody shares it."""
        with self._change:
            task.is_gone = True
            if task in self._queue:
                self._queue.remove(task)
            for thread in self._threads:
                if task in thread.batch:
                    thread.stop_if_left()

    def close(self, grace: float = 0.0) -> None:
        """Take no more tasks; after some seconds end those that are not done."""
        ends = time.monotonic() + grace
        with self._change:
            self._is_closed = True
            self._change.notify_all()
            while (self._queue or self._is_busy) and (left := ends - time.monotonic()) > 0:
                self._change.wait(min(left, 0.1))
            self._end.set()
            threads = list(self._threads)
            tasks = [*self._queue, *(task for one in threads for task in one.batch)]
            self._queue.clear()
        # Answer first, then stop the work: a thread that is stopped would report a timeout.
        for task in tasks:
            task.settle(error=RefusalError.of(503, "the service is shutting down", "closing"))
        for thread in threads:
            thread.stop()

    @property
    def _is_busy(self) -> bool:
        return any(thread.batch for thread in self._threads)

    def _is_stuck(self, thread: QueueThread) -> bool:
        return time.monotonic() - thread.began > self.limits.allowed(thread.batch)

    def _start_threads(self) -> None:
        """Start threads while there are spare ones, also in the place of stuck ones."""
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, daemon=True, name="mcce-watch")
            self._watcher.start()
        n_alive = sum(not thread.is_replaced for thread in self._threads)
        n_more = self.limits.threads + self.limits.spare - len(self._threads)
        for _ in range(min(self.limits.threads - n_alive, n_more)):
            thread = QueueThread()
            self._threads.append(thread)
            threading.Thread(target=self._run, args=(thread,), daemon=True, name="mcce").start()

    def _watch(self) -> None:
        """Replace threads that are stuck, until the queue is closed."""
        while not self._end.wait(self.limits.seconds / 50):
            with self._change:
                for thread in self._threads:
                    if self._is_stuck(thread) and not thread.is_replaced:
                        thread.is_replaced = True
                        # It may still return in time: the first result is the answer.
                        self._retry(thread.batch)
                if self._queue or not self._is_closed:
                    self._start_threads()

    def _retry(self, batch: Sequence[QueuedTask]) -> None:
        """Put the tasks of a shared batch first in the queue, each alone."""
        for task in reversed(batch if len(batch) > 1 else ()):
            task.is_retried, task.key = True, None
            self._queue.appendleft(task)
        self._change.notify_all()

    def _run(self, thread: QueueThread) -> None:
        """Work until the queue is closed, or another thread took this place."""
        while batch := self._take(thread):
            began = time.monotonic()
            self._observe(len(batch), sum(task.size for task in batch))
            self._answer(thread, batch)
            with self._change:
                self._pace += 0.2 * (time.monotonic() - began - self._pace)
                thread.batch, thread.began, thread.cancellation = (), math.inf, None
                for other in self._threads:
                    other.stop_if_left()
                self._change.notify_all()
        with self._change:
            self._threads.remove(thread)

    def _take(self, thread: QueueThread) -> list[QueuedTask]:
        """The next batch; nothing if the thread is to end."""
        with self._change:
            while not self._has_work() and not self._is_closed and not thread.is_replaced:
                self._change.wait()
            if thread.is_replaced or not self._has_work():
                return []
            first = self._queue.popleft()
            batch, room = [first], self.limits.batch - first.size
            for task in list(self._queue) if first.key is not None else ():
                if task.key == first.key and task.size <= room and self._in_time(task):
                    self._queue.remove(task)
                    batch.append(task)
                    room -= task.size
            thread.batch, thread.began = batch, time.monotonic()
            return batch

    def _has_work(self) -> bool:
        """Whether a task waits that is wanted and can be in time; those before it are dropped."""
        while self._queue and not (self._queue[0].is_wanted and self._in_time(self._queue[0])):
            self._queue.popleft().settle(error=self._busy())
        return bool(self._queue)

    def _in_time(self, task: QueuedTask) -> bool:
        """Whether the work of a task that waited would end before its client is answered."""
        left = task.submitted + self.limits.seconds - time.monotonic()
        return task.is_retried or task.seconds is None or left >= task.seconds

    def _busy(self) -> RefusalError:
        wait = math.ceil(self._pace * len(self._queue) / self.limits.threads)
        refusal = RefusalError.of(429, "too many requests are waiting: try later", "busy")
        refusal.headers["Retry-After"] = str(min(60, max(1, wait)))
        return refusal

    def _answer(self, thread: QueueThread, batch: Sequence[QueuedTask]) -> None:
        """Compute the results of a batch; if that fails, each of its tasks is tried alone."""
        try:
            with cancellable(self.limits.seconds) as cancellation:
                with self._change:
                    thread.cancellation = cancellation
                    # Clients may have left before this.
                    thread.stop_if_left()
                results = batch[0].work([task.given for task in batch])
        except (CancelledError, ExpiredError):
            error = RefusalError.of(504, "it took too long, and was stopped", "timeout")
            for task in batch:
                task.settle(error=error)
        except BaseException as error:
            if len(batch) == 1:
                batch[0].settle(error=_safe(error))
                return
            # An error of one task must not fail the others.
            with self._change:
                if not thread.is_replaced:
                    self._retry(batch)
        else:
            for task, result in zip(batch, results, strict=True):
                task.settle(result)


@dataclass(eq=False)
class QueuedTask:
    """Something to compute for a request."""

    work: Callable[[Sequence[Any]], Sequence[Any]]
    given: Any
    size: int = 1
    key: Hashable | None = None
    seconds: float | None = None
    submitted: float = field(default_factory=time.monotonic)
    future: Future[Any] = field(default_factory=Future, repr=False)
    # Makes the answer from the result.
    reply: Callable[[Any], Any] = lambda result: result
    is_gone: bool = False
    is_retried: bool = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for its result."""
        return not self.is_gone and not self.future.done()

    def settle(self, result: Any = None, error: BaseException | None = None) -> None:
        """Give the result, or what went wrong, unless the task is settled."""
        with suppress(InvalidStateError):
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)


@dataclass(eq=False)
class QueueThread:
    """A thread and what it does."""

    batch: Sequence[QueuedTask] = ()
    began: float = math.inf
    cancellation: Cancellation | None = None
    is_replaced: bool = False

    def stop(self) -> None:
        """End the kernels of its work, if it has begun."""
        if self.cancellation is not None:
            self.cancellation.cancel()

    def stop_if_left(self) -> None:
        """End its work if nobody waits for any of it."""
        if not any(task.is_wanted for task in self.batch):
            self.stop()


@dataclass(frozen=True)
class QueueLimits:
    """How much a queue takes on."""

    threads: int
    queue: int
    batch: int
    seconds: float
    spare: int = 8

    def allowed(self, batch: Sequence[QueuedTask]) -> float:
        """Seconds after which the thread of a batch is stuck.

        Tasks that share a batch get half of the time. The other half is for trying each of them
        alone, and one that hangs then must not keep those behind it waiting to the end.
        """
        if len(batch) > 1:
            return self.seconds / 2
        return self.seconds / 4 if batch and batch[0].is_retried else self.seconds


def _safe(error: BaseException) -> BaseException:
    """The error, or a refusal in place of one that would end an event loop."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RefusalError.of(502, f"The predictor raised {type(error).__name__}.", "predictor")


async def answer_of(queue: TaskQueue, task: QueuedTask, request: Request) -> Any:
    """The result of a task."""
    queue.submit(task)
    answer = asyncio.wrap_future(task.future)
    gone = asyncio.ensure_future(_gone(request))
    try:
        done, _ = await asyncio.wait(
            {answer, gone}, timeout=queue.limits.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if answer in done:
            return answer.result()
    except asyncio.CancelledError:
        # The server ends, and has waited for as long as it may.
        raise RefusalError.of(503, "the service is shutting down", "closing") from None
    finally:
        gone.cancel()
        if not answer.done():
            queue.leave(task)
            answer.cancel()
    if gone in done:
        raise ClientGoneError
    message = f"no answer within {queue.limits.seconds:g} s: the predictor hangs or is too slow"
    raise RefusalError.of(504, message, "timeout")


async def _gone(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class ClientGoneError(Exception):
    """The client has gone; nobody reads an answer."""
