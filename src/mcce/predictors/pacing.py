"""When requests to a server may go out.

Every request of a :class:`mcce.predictors.Remote` waits here for its turn: first attempts and
retries, whichever thread they come from.

Always true: in any span of t seconds at most rate * t rows go out, and one request more; in no
second more rows than the rate, even if some requests travel a little longer than others. No request
waits longer than these limits require. After a failure nothing goes out until its pause has passed,
and then one request at a time until one of them succeeds.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from ..kernels import check_cancellation

# A request holds at most this part of a second's rows, so that rows go out evenly.
PART = 10
# Share of the rate that may go unused so that all requests have the same size.
LEFT_OUT = 0.02
# Requests may travel so many seconds longer than others and still never arrive too fast.
SLACK = 0.05
# Where requests wait, Ctrl-C and cancellation take effect after so many seconds.
WAIT = 0.1

Wait = Callable[[threading.Condition, float], Any]


class Pace:
    """Turns of requests; copies in the same process share it."""

    def __init__(
        self,
        rows_per_second: float | None = None,
        in_flight: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Wait = threading.Condition.wait,
    ) -> None:
        self.rows_per_second = rows_per_second
        self.in_flight = in_flight
        self._clock, self._wait = clock, wait
        rate = math.inf if rows_per_second is None else float(rows_per_second)
        # In a second, a small rate that is not whole would lose most of its fraction.
        seconds = 1.0 if rate >= PART or rate.is_integer() else PART / rate
        self._n_most = rate if seconds == 1.0 else PART
        self._span = seconds * (1 + SLACK)
        self.reset()
        _paces.add(self)

    def __deepcopy__(self, _: Any) -> Pace:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Pace, (self.rows_per_second, self.in_flight)

    def reset(self) -> None:
        """Forget all requests, as a process does that was forked while threads had their turn."""
        self._changed = threading.Condition()
        self._sent: deque[tuple[float, int]] = deque()
        self._free = self._resumes = -math.inf
        self._n_running = 0
        self._failing = False
        self._n_failures = 0

    def n_rows(self, most: int) -> int:
        """Rows of a full request, of which a whole number fits almost exactly into a second."""
        if self.rows_per_second is None:
            return most
        rate = self.rows_per_second
        sizes = range(min(most, int(rate / PART)), 1, -1)
        return next((size for size in sizes if rate % size <= LEFT_OUT * rate), 1)

    @contextmanager
    def turn(self, n_rows: int) -> Iterator[int]:
        """Wait until a request may go out; it is in flight until the block ends.

        Yields the number of failures so far, which :meth:`go_on` needs.
        """
        n_running = 0
        # All of it, so that Ctrl-C at any moment leaves no turn taken.
        try:
            with self._changed:
                while (seconds := self._seconds_left(n_rows)) > 0:
                    self._wait(self._changed, min(seconds, WAIT))
                    check_cancellation()
                n_running = self._note(n_rows)
                n_failures = self._n_failures
            yield n_failures
        finally:
            with self._changed:
                self._n_running -= n_running
                self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Send nothing for a while, because a request failed."""
        with self._changed:
            self._resumes = max(self._resumes, self._clock() + seconds)
            self._failing = True
            self._n_failures += 1

    def hold_back(self) -> None:
        """Send nothing yet: an earlier process may just have sent all that is allowed."""
        with self._changed:
            if self.rows_per_second is not None:
                self._resumes = max(self._resumes, self._clock() + self._span)

    def go_on(self, n_failures: int) -> None:
        """Send as many requests at a time as before, because one succeeded.

        One that was in flight already when another failed says nothing about the server since.
        """
        with self._changed:
            if n_failures == self._n_failures:
                self._failing = False
                self._changed.notify_all()

    def _seconds_left(self, n_rows: int) -> float:
        most = 1 if self._failing else self.in_flight
        if most is not None and self._n_running >= most:
            return math.inf
        return max(self._resumes, self._slot(n_rows)) - self._clock()

    def _slot(self, n_rows: int) -> float:
        """When the rate allows a request."""
        for at, n_sent in reversed(self._sent):
            n_rows += n_sent
            if n_rows > self._n_most:
                return max(self._free, at + self._span)
        return self._free

    def _note(self, n_rows: int) -> int:
        """Note a request that goes out; returns 1, by which more are running."""
        self._n_running += 1
        if self.rows_per_second is not None:
            now = self._clock()
            self._free = now + n_rows / self.rows_per_second
            self._sent.append((now, n_rows))
            while self._sent[0][0] + self._span <= now:
                self._sent.popleft()
        return 1


_paces: WeakSet[Pace] = WeakSet()


def _reset_all() -> None:
    for pace in list(_paces):
        pace.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
