"""Work in threads: few at a time, batches of calls that go together, and no endless waits.

A call joins a batch that waits and has the same key: people of several requests are explained by
one search, and each request gets its own part. A request waits until the answer, the limit, or
until its client leaves. All but the work itself happens in the event loop.

Always true: a call is answered once; the work of a client that left is not begun, or is ended if
nobody shares it; a thread that is stuck in a predictor is replaced, a few times; calls that shared
a batch that failed or hangs are tried again alone.
"""

from __future__ import annotations

import asyncio
import math
import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from ..kernels import Cancellation, CancelledError, ExpiredError, context_with
from .refusals import RefusalError

# The client closed the connection: a status for logs and metrics alone.
GONE = 499
# Threads that may hang in a predictor, beside those that work.
SPARE = 8
# Work that can be stopped ends shortly before its time is over: what then goes on hangs.
STOPPED_AFTER, STUCK_AFTER = 0.95, 0.98


@dataclass(eq=False)
class Call:
    """Something to compute for a request; calls with the same key go together."""

    work: Callable[[Sequence[Any]], Sequence[Any]]
    given: Any = None
    size: int = 1
    key: Hashable | None = None
    # It is begun only if so much time is left.
    seconds: float = 0.0
    submitted: float = field(default_factory=time.monotonic)
    result: asyncio.Future[Any] = field(init=False)

    def settle(self, result: Any) -> None:
        """Give the result, or an error, unless the call is settled."""
        if self.result.done():
            return
        if isinstance(result, Exception):
            self.result.set_exception(result)
        else:
            self.result.set_result(result)


@dataclass(eq=False)
class Batch:
    """Calls that wait, or are computed in a thread."""

    calls: list[Call]
    is_retried: bool = False
    is_stuck: bool = False
    cancellation: Cancellation = field(default_factory=Cancellation)
    # The result of each call, or an error.
    outcome: asyncio.Future[Sequence[Any] | Exception] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def has_room(self, call: Call, most: int) -> bool:
        """Whether a call may join."""
        keys, size = {one.key for one in self.calls}, sum(one.size for one in self.calls)
        return keys == {call.key} != {None} and not self.is_retried and size + call.size <= most

    def compute(self) -> Sequence[Any] | Exception:
        """What comes of the work, which may raise anything."""
        given = [call.given for call in self.calls]
        try:
            return context_with(self.cancellation).run(self.calls[0].work, given)
        except Exception as error:
            return error
        except BaseException as error:
            # It would end the event loop.
            name = type(error).__name__
            return RefusalError.of(502, f"The predictor raised {name}.", "predictor")


class Pool:
    """Threads behind a queue, which start with the first call.

    Up to ``most_together`` rows are computed together. A thread is stuck after ``seconds``.
    """

    def __init__(
        self,
        n_threads: int,
        most_waiting: int,
        most_together: int,
        seconds: float,
        observe: Callable[[int], object] = lambda n_calls: None,
    ) -> None:
        self.n_threads, self.most_waiting = n_threads, most_waiting
        self.most_together, self.seconds, self._observe = most_together, seconds, observe
        self._free = asyncio.Semaphore(n_threads)
        self._waiting: list[Batch] = []
        self._running: list[Batch] = []
        # The loop itself holds its tasks weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self._inbox: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._n_started, self._is_closed = 0, False
        # Seconds of a batch, smoothed: for how long those who are refused should wait.
        self._pace = 0.5

    @property
    def n_waiting(self) -> int:
        """Calls that are not begun."""
        return sum(len(batch.calls) for batch in self._waiting)

    @property
    def n_stuck(self) -> int:
        """Threads stuck in a predictor."""
        return sum(batch.is_stuck for batch in self._running)

    @property
    def is_ready(self) -> bool:
        """Whether a new call would begin: not closed, and not all threads stuck."""
        return not self._is_closed and self.n_stuck < self.n_threads + SPARE

    async def answer(self, call: Call, request: Request) -> Any:
        """The result of a call, unless time is over or the client goes before it is there."""
        self.submit(call)
        gone = asyncio.ensure_future(_gone(request))
        try:
            either = {call.result, gone}
            await asyncio.wait(either, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
            if call.result.done():
                return call.result.result()
        except asyncio.CancelledError:
            # The server ends, and has waited for as long as it may.
            raise _closing() from None
        finally:
            gone.cancel()
            self.leave(call)
        if gone.done():
            raise RefusalError.of(GONE, "the client has gone", "gone")
        raise self._late("it waited for others, or takes too long")

    def submit(self, call: Call) -> None:
        """Put a call into the queue."""
        if self._is_closed:
            raise _closing()
        if not self.is_ready:
            raise _stuck()
        if self.n_waiting >= self.most_waiting:
            raise self._busy()
        call.result = asyncio.get_running_loop().create_future()
        for batch in self._waiting:
            if batch.has_room(call, self.most_together):
                batch.calls.append(call)
                return
        self._add(Batch([call]))

    def leave(self, call: Call) -> None:
        """Drop a call that nobody waits for any more, and end its work if nobody shares it."""
        call.result.cancel()
        for batch in self._waiting:
            batch.calls = [one for one in batch.calls if one is not call]
        for batch in self._running:
            if all(one.result.done() for one in batch.calls):
                batch.cancellation.cancel()

    def close(self) -> None:
        """Take no more calls, and end those that are not done."""
        self._is_closed = True
        for call in [call for batch in (*self._waiting, *self._running) for call in batch.calls]:
            call.settle(_closing())
            self.leave(call)
        for _ in range(self._n_started):
            self._inbox.put(None)

    def _add(self, batch: Batch) -> None:
        self._waiting.append(batch)
        task = asyncio.create_task(self._run(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, batch: Batch) -> None:
        """Have a batch computed as soon as a thread is free, and settle its calls."""
        async with self._free:
            self._waiting.remove(batch)
            self._refuse_late(batch)
            if not batch.calls:
                return
            began = time.monotonic()
            self._start(batch)
            await asyncio.wait([batch.outcome], timeout=self._patience(batch))
            if not batch.outcome.done():
                self._give_up(batch)
        # The place of a thread that is stuck is free. It may still return in time.
        try:
            await asyncio.wait([batch.outcome])
        finally:
            self._running.remove(batch)
        self._pace += 0.2 * (time.monotonic() - began - self._pace)
        self._finish(batch, batch.outcome.result())

    def _refuse_late(self, batch: Batch) -> None:
        """Refuse calls that waited so long that their work would not end in time."""
        latest = time.monotonic() - self.seconds
        for call in batch.calls if not batch.is_retried else ():
            if not self.is_ready:
                call.settle(_stuck())
            elif call.submitted < latest + call.seconds:
                call.settle(self._busy())
        batch.calls = [call for call in batch.calls if not call.result.done()]

    def _start(self, batch: Batch) -> None:
        """Give a batch to a thread."""
        self._observe(len(batch.calls))
        self._running.append(batch)
        batch.cancellation = Cancellation(STOPPED_AFTER * self.seconds)
        self._inbox.put(batch)
        if self._n_started < len(self._running):
            self._n_started += 1
            threading.Thread(target=self._work, daemon=True, name="mcce").start()

    def _work(self) -> None:
        """What a thread does."""
        for batch in iter(self._inbox.get, None):
            outcome = batch.compute()
            # The loop may be closed, and nobody waits any more.
            with suppress(RuntimeError):
                batch.outcome.get_loop().call_soon_threadsafe(batch.outcome.set_result, outcome)

    def _patience(self, batch: Batch) -> float:
        """Seconds after which the thread of a batch is stuck.

        Calls that share a batch get half of the time. The other half is for trying each of them
        alone, and one that hangs then must not keep those behind it waiting to the end.
        """
        if len(batch.calls) > 1:
            return self.seconds / 2
        return self.seconds / 4 if batch.is_retried else STUCK_AFTER * self.seconds

    def _give_up(self, batch: Batch) -> None:
        """No longer wait for a thread that is stuck."""
        batch.is_stuck = True
        if len(batch.calls) > 1:
            self._retry(batch)
        elif not batch.is_retried:
            batch.calls[0].settle(self._late("the predictor hangs or is too slow"))

    def _finish(self, batch: Batch, outcome: Sequence[Any] | Exception) -> None:
        """Settle the calls of a batch; if a shared one failed, each of its calls is tried alone."""
        if isinstance(outcome, (CancelledError, ExpiredError)):
            outcome = self._late("it was stopped")
        elif isinstance(outcome, Exception) and len(batch.calls) > 1:
            # If it was stuck before, they are being tried.
            if not batch.is_stuck:
                self._retry(batch)
            return
        for at, call in enumerate(batch.calls):
            call.settle(outcome if isinstance(outcome, Exception) else outcome[at])

    def _retry(self, batch: Batch) -> None:
        for call in batch.calls:
            if not call.result.done():
                self._add(Batch([call], is_retried=True))

    def _late(self, why: str) -> RefusalError:
        message = f"it took longer than {self.seconds:g} s: {why}"
        return RefusalError.of(504, message, "timeout")

    def _busy(self) -> RefusalError:
        wait = math.ceil(self._pace * self.n_waiting / self.n_threads)
        refusal = RefusalError.of(429, "too many requests are waiting: try later", "busy")
        refusal.headers = {"Retry-After": str(min(60, max(1, wait)))}
        return refusal


def _stuck() -> RefusalError:
    return RefusalError.of(503, "the predictor does not answer", "stuck")


def _closing() -> RefusalError:
    return RefusalError.of(503, "the service is shutting down", "closing")


async def _gone(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
