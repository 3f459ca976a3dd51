"""Requests to a server: when they may go out, and what may be sent where.

Used by :class:`mcce.predictors.Remote`. Every request waits for its turn (``RateLimiter``): first
attempts and retries, whichever thread they come from. The exchange itself is in ``exchange``.

Always true: in any span of t seconds at most rate * t rows go out, and one request more; in no
second more rows than the rate, even if some requests travel a little longer than others. No request
waits longer than these limits require. After a failure nothing goes out until its pause has passed,
and then one request at a time until one of them succeeds. No error quotes a secret.
"""

from __future__ import annotations

import base64
import math
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit
from weakref import WeakSet

from ..errors import ParameterError
from ..kernels import check_cancellation

# A request holds at most this part of a second's rows, so that rows go out evenly.
PART = 10
# Share of the rate that may go unused so that all requests have the same size.
UNUSED_SHARE = 0.02
# Requests that travel this many seconds longer than others still do not arrive too fast.
SLACK = 0.05

PORTS = {"http": 80, "https": 443}
# Headers that users cannot set, since they depend on what is sent.
OWN_HEADERS = ("content-length", "transfer-encoding", "content-encoding", "connection")
# While requests wait, Ctrl-C and cancellation take effect within this many seconds.
POLL_SECONDS = 0.1
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Wait = Callable[[threading.Condition, float], Any]
_limiters: WeakSet[RateLimiter] = WeakSet()


class RateLimiter:
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
        # Over one second, a small rate would lose most of its fraction.
        seconds = 1.0 if rate >= PART or rate.is_integer() else PART / rate
        self._n_most = rate if seconds == 1.0 else PART
        self._span = seconds * (1 + SLACK)
        self.reset()
        _limiters.add(self)

    def __deepcopy__(self, _: Any) -> RateLimiter:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return RateLimiter, (self.rows_per_second, self.in_flight)

    def reset(self) -> None:
        """Forget all requests, after a fork while other threads had their turn."""
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
        return next((size for size in sizes if rate % size <= UNUSED_SHARE * rate), 1)

    @contextmanager
    def turn(self, n_rows: int) -> Iterator[int]:
        """Wait until a request may go out; it is in flight until the block ends.

        Yields the number of failures so far, which :meth:`resume` needs.
        """
        n_running = 0
        # The wait is inside, so that Ctrl-C at any moment gives the turn back.
        try:
            with self._changed:
                while (seconds := self._seconds_left(n_rows)) > 0:
                    self._wait(self._changed, min(seconds, POLL_SECONDS))
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
        """Wait: an earlier process may just have used the whole rate."""
        with self._changed:
            if self.rows_per_second is not None:
                self._resumes = max(self._resumes, self._clock() + self._span)

    def resume(self, n_failures: int) -> None:
        """Send as many requests at a time as before, because one succeeded.

        Requests that were in flight when another failed do not count.
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
        """Record a request that goes out; returns 1, the number of requests added."""
        self._n_running += 1
        if self.rows_per_second is not None:
            now = self._clock()
            self._free = now + n_rows / self.rows_per_second
            self._sent.append((now, n_rows))
            while self._sent[0][0] + self._span <= now:
                self._sent.popleft()
        return 1


def _reset_all() -> None:
    for limiter in list(_limiters):
        limiter.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)


@dataclass(frozen=True)
class Address:
    """The parts of a web address; credentials and query are not shown."""

    shown: str
    scheme: str
    host: str  # as it stands in an address: IPv6 in brackets
    port: int | None
    target: str = field(repr=False)
    credentials: str | None = field(repr=False)

    def __str__(self) -> str:
        return self.shown


def read_address(argument: str, url: Any, schemes: tuple[str, ...] = ("http", "https")) -> Address:
    """The parts of an address, checked; errors do not quote it, because it may hold a secret."""
    flaw = f"is of type {type(url).__name__}"
    if isinstance(url, str):
        parts, flaw = _split(url, schemes)
    if flaw:
        expected = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ParameterError(
            f"{argument} must be a web address that begins with {expected}, but it {flaw}. It is "
            "not shown, because it may hold a secret."
        )
    credentials = None
    if parts.username is not None or parts.password is not None:
        pair = [unquote_to_bytes(part or "") for part in (parts.username, parts.password)]
        credentials = base64.b64encode(b":".join(pair)).decode()
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = None if parts.port == PORTS[parts.scheme] else parts.port
    shown = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"
    target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    return Address(shown, parts.scheme, host, port, target, credentials)


def check_headers(headers: Any) -> dict[str, str]:
    """A copy of the user's headers, checked; errors name a header and never quote its value."""
    if not isinstance(headers, Mapping):
        raise ParameterError(
            f"headers must map names to values, got {type(headers).__name__}. Write e.g. "
            'headers={"Authorization": "Bearer ..."}.'
        )
    checked = {}
    for position, (name, value) in enumerate(headers.items()):
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ParameterError(
                f"Names of headers are strings of letters, digits and hyphens; that of header "
                f"{position} (counted from 0) is not. It is not shown, because it may hold a "
                "secret."
            )
        if name.lower() in OWN_HEADERS:
            raise ParameterError(f"The header {name!r} follows from the rows. Leave it out.")
        if not isinstance(value, str) or not re.fullmatch(r"[\t\x20-\x7e\xa0-\xff]*", value):
            raise ParameterError(
                f"The value of the header {name!r} must be a string without line breaks, other "
                "control characters and characters beyond Latin-1. Strip a token that was read "
                "from a file. The value is not shown, because it may be secret."
            )
        checked[name] = value
    return checked


def _split(url: str, schemes: tuple[str, ...]) -> tuple[Any, str]:
    """The parts of an address; or None, and what is wrong with it."""
    if not re.fullmatch(r"[\x21-\x7e]*", url):
        return None, "holds spaces, control characters or characters beyond ASCII: encode them"
    try:
        parts = urlsplit(url)
        if parts.scheme not in schemes:
            return None, "begins with something else"
        if not parts.hostname or not parts.hostname.encode("idna"):
            return None, "names no host"
        if parts.port == 0:
            return None, "has port 0"
    except ValueError:  # brackets that do not match, a port that is none, a label that is too long
        return None, "has a host or port that cannot be read"
    return parts, ""
