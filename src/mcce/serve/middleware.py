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
from collections.abc import Mapping
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
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import RefusalError
from .settings import ServiceSettings
from .task_queue import ClientGoneError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# The page and its words hold nothing about the model or anybody; the page asks for the token.
HEALTH = "/health"
PUBLIC, PUBLIC_FOLDERS = ("/", HEALTH), ("/static/", "/messages/")
UPLOADS = "/jobs"
READING = ("GET", "HEAD", "OPTIONS")
LOGGER = logging.getLogger("mcce.serve")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PACKAGE = Path(__file__).parents[1]
# How long a body may take to arrive.
BODY_SECONDS = 20.0
# The client closed the connection: a status for logs and metrics alone.
GONE = 499


class Guard:
    """Middleware that lets requests in, or not."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.limits = app, settings.limits
        self.token = None if settings.token is None else _digest(settings.token)
        self.hosts = None if settings.hosts is None else {h.lower() for h in settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(scope, send)
        headers = Headers(scope=scope)
        try:
            self._check_host(scope, headers)
            self._check_origin(scope, headers)
            self._check_token(scope, headers)
            most = self.limits.upload_bytes if scope["path"] == UPLOADS else self.limits.bytes
            body = LimitedBody(receive, most)
            body.check_declared(headers)
        except RefusalError as refusal:
            await refusal.response()(scope, receive, send)
            return
        await self.app(scope, body.receive, send)

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        # Health checks often know the address only.
        if scope["path"] == HEALTH:
            return
        if self.hosts is not None and _name(headers) not in self.hosts:
            raise RefusalError.of(
                421, "this host name is not allowed; see --allowed-host", "host", "header"
            )

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """A page of another origin may not make a browser send something here."""
        if scope["method"] in READING:
            return
        site = headers.get("sec-fetch-site")
        if site is None:
            # Browsers say it over HTTPS and on this machine alone; older ones never do.
            own = "origin" not in headers or _page(headers["origin"]) == _name(headers)
        else:
            own = site in ("same-origin", "none")
        if not own:
            raise RefusalError.of(
                403, "requests from pages of other origins are refused", "origin", "header"
            )

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        path: str = scope["path"]
        if self.token is None or path in PUBLIC or path.startswith(PUBLIC_FOLDERS):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        # Digests have the same length, whatever was sent, and are compared whole.
        same = hmac.compare_digest(_digest(given.strip()), self.token)
        if not (same and kind.lower() == "bearer"):
            refusal = RefusalError.of(401, "a token is needed", "token", "header", "Authorization")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            raise refusal


class LimitedBody:
    """The body of a request, of bounded size and time."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self.most, self.ends = receive, most, time.monotonic() + BODY_SECONDS
        self.n_bytes, self.is_whole = 0, False

    def check_declared(self, headers: Headers) -> None:
        """Raise if the request says that its body is too large."""
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared[:20]) > self.most:
            raise self._too_large()

    async def receive(self) -> Message:
        """The next part of the body, or that the client has gone."""
        if self.is_whole:
            return await self._receive()
        try:
            left = self.ends - time.monotonic()
            message = await asyncio.wait_for(self._receive(), max(0.0, left))
        except TimeoutError:
            late = f"the body did not arrive within {BODY_SECONDS:g} s"
            raise RefusalError.of(408, late, "slow", "body") from None
        self.n_bytes += len(message.get("body", b""))
        self.is_whole = not message.get("more_body", False)
        if self.n_bytes > self.most:
            raise self._too_large()
        return message

    def _too_large(self) -> RefusalError:
        message = f"expected at most {self.most:,} bytes"
        return RefusalError.of(413, message, "too_large", "body")


def _with_headers(scope: Scope, send: Send) -> Send:
    """Add the headers that every answer has."""
    is_file = scope["path"] == "/" or scope["path"].startswith("/static/")

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            # Browsers may keep files if they check for newer ones; answers they may not.
            headers["Cache-Control"] = "no-cache" if is_file else "no-store"
        await send(message)

    return send_with_headers


def _name(headers: Headers) -> str:
    """The name under which the service was called, without the port."""
    return _without_port(headers.get("host", ""))


def _page(origin: str) -> str:
    """The name in an origin, which is a scheme, a name and perhaps a port."""
    return _without_port(origin.partition("://")[2])


def _without_port(host: str) -> str:
    host = host.lower()
    return host if host.endswith("]") else host.rpartition(":")[0] or host


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
        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            _drop_dead(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _drop_dead(folder: Path) -> None:
    """Forget the gauges of workers that were killed; their counters stay."""
    pids = {int(path.stem.rsplit("_", 1)[1]) for path in folder.glob("gauge_live*_*.db")}
    for pid in sorted(pids):
        if not _is_alive(pid):
            # Another worker may do the same at this moment.
            with suppress(FileNotFoundError):
                multiprocess.mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def _is_alive(pid: int) -> bool:
    # Elsewhere there is no signal 0, which does nothing.
    if os.name != "posix":
        return True
    try:
        with suppress(PermissionError):
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Observer:
    """Middleware that logs and counts requests, and answers unexpected errors."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, seen = time.perf_counter(), _Seen(_request_id(scope), send)
        scope.setdefault("state", {})["n_people"] = None
        try:
            await self.app(scope, receive, seen.send)
        except (ClientGoneError, ClientDisconnect):
            seen.status = GONE
        except Exception as error:
            log(logging.ERROR, request=seen.request_id, error=type(error).__name__, at=_at(error))
            if seen.status is None:
                await _bug()(scope, receive, seen.send)
        finally:
            self._note(scope, seen, time.perf_counter() - began)

    def _note(self, scope: Scope, seen: _Seen, seconds: float) -> None:
        route, method, status = _template(scope), _method(scope), seen.status or GONE
        n_people = scope["state"]["n_people"]
        self.metrics.requests.labels(method, route, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if n_people:
            self.metrics.people.labels(route).inc(n_people)
        log(
            logging.INFO,
            request=seen.request_id,
            method=method,
            route=route,
            status=status,
            ms=round(1000 * seconds, 1),
            n_people=n_people,
        )


class _Seen:
    """The response to the client."""

    def __init__(self, request_id: str, send: Send) -> None:
        self.request_id, self._send = request_id, send
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-ID"] = self.request_id
        await self._send(message)


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


def log(level: int, **fields: Any) -> None:
    """Write a line; what is in it is in ``record.fields`` too."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, json.dumps(fields), extra={"fields": fields})


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid4().hex


def _method(scope: Scope) -> str:
    """The HTTP method; unknown ones are grouped so that metrics stay bounded."""
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"


def _template(scope: Scope) -> str:
    """The path of the route, with names in place of its parameters."""
    return getattr(scope.get("route"), "path", None) or "other"


def _at(error: Exception) -> str:
    """The last place in our code that an error went through, or where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
    if not frames:
        return "unknown"
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _bug() -> Response:
    refusal = RefusalError.of(500, "unexpected error: the log has its request id", "bug")
    return refusal.response()
