"""What surrounds every request: access, limits and headers before it, logs and metrics after it.

Always true: without the token only the page's own files are shown, not even whether an address
exists; a body is counted while it is read; a log holds no cell and no query; unexpected errors are
logged by type and place, never with their message, which may quote people's data.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import os
import re
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .pool import GONE
from .refusals import RefusalError
from .settings import ServiceSettings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# The page and its words hold nothing about the model or anybody; the page asks for the token.
PUBLIC = re.compile(r"/|/health|/static/.*|/messages/.*", re.DOTALL)
# Browsers may keep files if they check for newer ones; answers they may not.
FILES = re.compile(r"/|/static/.*", re.DOTALL)
HEALTH, UPLOADS = "/health", "/jobs"
JSON, MULTIPART = "application/json", "multipart/form-data"
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
READING = METHODS[:3]
LOGGER = logging.getLogger("mcce.serve")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PACKAGE = Path(__file__).parents[1]
# How long a body may take to arrive.
BODY_SECONDS = 20.0


class Guard:
    """Middleware that lets requests in, or not."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.limits = app, settings.limits
        self.token = None if settings.token is None else _digest(settings.token)
        self.hosts = None if settings.hosts is None else {h.lower() for h in settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "http":
            try:
                self._check(scope, Headers(scope=scope))
                receive = self._limited(receive, scope)
            except RefusalError as refusal:
                await refusal.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Raise unless the request may come in."""
        path, host = scope["path"], headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        # Health checks often know the address only.
        if self.hosts is not None and name not in self.hosts and path != HEALTH:
            raise RefusalError.of(
                421, "this host name is not allowed; see --allowed-host", "host", "header"
            )
        reads = scope["method"] in READING
        if not (reads or _is_own(headers, f"{scope['scheme']}://{host}")):
            raise RefusalError.of(
                403, "requests from pages of other origins are refused", "origin", "header"
            )
        if not (self.token is None or PUBLIC.fullmatch(path) or self._has_token(headers)):
            refusal = RefusalError.of(401, "a token is needed", "token", "header", "Authorization")
            refusal.headers = {"WWW-Authenticate": "Bearer"}
            raise refusal
        expected = MULTIPART if path == UPLOADS else JSON
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and media != expected:
            raise RefusalError.of(415, f"expected {expected}", "media", "header", "Content-Type")

    def _has_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        # Digests have the same length, whatever was sent, and are compared whole.
        same = hmac.compare_digest(_digest(given.strip()), self.token or b"")
        return same and kind.lower() == "bearer"

    def _limited(self, receive: Receive, scope: Scope) -> Receive:
        """Receives a body of bounded size and time."""
        most = self.limits.upload_bytes if scope["path"] == UPLOADS else self.limits.bytes
        ends, n_bytes, is_whole = time.monotonic() + BODY_SECONDS, 0, False
        declared = Headers(scope=scope).get("content-length", "0")

        def check(n_bytes: int) -> None:
            if n_bytes > most:
                raise RefusalError.of(413, f"expected at most {most:,} bytes", "too_large", "body")

        async def limited() -> Message:
            nonlocal n_bytes, is_whole
            if is_whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, ends - time.monotonic()))
            except TimeoutError:
                late = f"the body did not arrive within {BODY_SECONDS:g} s"
                raise RefusalError.of(408, late, "slow", "body") from None
            if message["type"] == "http.disconnect":
                raise RefusalError.of(GONE, "the client has gone", "gone")
            n_bytes += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            check(n_bytes)
            return message

        check(int(declared[:20]) if declared.isdecimal() else 0)
        return limited


def _is_own(headers: Headers, origin: str) -> bool:
    """Whether no page of another origin made a browser send a request."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    # Browsers say it over HTTPS and on this machine alone; older ones never do.
    return headers.get("origin", origin).lower() == origin


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


class Metrics:
    """Numbers for Prometheus, of this process; with several workers, of all of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        place: dict[str, Any] = {"registry": self.registry}
        labels = ["method", "route", "status"]
        self.requests = Counter("mcce_requests", "Requests answered.", labels, **place)
        self.seconds = Histogram(
            "mcce_request_seconds", "Seconds of a request.", ["route"], buckets=BUCKETS, **place
        )
        self.people = Counter("mcce_people", "People of requests.", ["route"], **place)
        self.batches = Histogram(
            "mcce_batch_requests", "Requests that shared a search.", buckets=SIZES, **place
        )
        self.stopped = Counter("mcce_stopped", "Searches that time ended.", **place)
        gauge: dict[str, Any] = {"multiprocess_mode": "livesum", **place}
        self.waiting = Gauge("mcce_waiting", "Requests in the queue.", ["engine"], **gauge)
        self.stuck = Gauge("mcce_stuck_workers", "Workers stuck in a predictor.", **gauge)

    def text(self) -> bytes:
        """The numbers in the format of Prometheus."""
        folder, registry = os.environ.get("PROMETHEUS_MULTIPROC_DIR"), self.registry
        if folder is not None:
            # Forget the gauges of workers that were killed; their counters stay.
            pids = {int(path.stem.rpartition("_")[2]) for path in Path(folder).glob("gauge_live*")}
            for pid in filter(is_dead, pids):
                # Another worker may do the same at this moment.
                with suppress(FileNotFoundError):
                    multiprocess.mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def is_dead(pid: int) -> bool:
    """Whether a process has ended, where that can be told."""
    # Elsewhere there is no signal 0, which does nothing.
    if os.name == "posix":
        try:
            with suppress(PermissionError):
                os.kill(pid, 0)
        except ProcessLookupError:
            return True
    return False


class Observer:
    """Middleware that logs and counts requests, and answers unexpected errors."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, given = time.perf_counter(), GONE, Headers(scope=scope).get("x-request-id")
        request_id = given if REQUEST_ID.fullmatch(given or "") else uuid4().hex
        scope.setdefault("state", {})["n_people"] = None

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                kept = "no-cache" if FILES.fullmatch(scope["path"]) else "no-store"
                more = HEADERS | {"Cache-Control": kept, "X-Request-ID": str(request_id)}
                MutableHeaders(scope=message).update(more)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as error:
            log(logging.ERROR, request=request_id, error=type(error).__name__, at=_place(error))
            if status == GONE:
                bug = RefusalError.of(500, "unexpected error: the log has its request id", "bug")
                await bug.response()(scope, receive, send_with_headers)
        finally:
            self._note(scope, status, time.perf_counter() - began, request_id)

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str | None) -> None:
        # The path as it is written in the route, without names; unknown methods are one.
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        n_people = scope["state"]["n_people"]
        self.metrics.requests.labels(method, route, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if n_people:
            self.metrics.people.labels(route).inc(n_people)
        log(
            logging.INFO,
            request=request_id,
            method=method,
            route=route,
            status=status,
            ms=round(1000 * seconds, 1),
            n_people=n_people,
        )


def _place(error: Exception) -> str:
    """The last place in our code that an error went through, or where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def log(level: int, **fields: Any) -> None:
    """Write a line; what is in it is in ``record.fields`` too."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, json.dumps(fields), extra={"fields": fields})


class JsonFormatter(logging.Formatter):
    """One JSON object per line; of an exception its type alone."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        fields = getattr(record, "fields", None) or {"message": record.getMessage()[:500]}
        if record.exc_info and record.exc_info[0] is not None:
            fields = {**fields, "error": record.exc_info[0].__name__}
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        about = {"time": f"{when}.{record.msecs:03.0f}Z", "level": record.levelname.lower()}
        return json.dumps({**about, "logger": record.name, **fields})
