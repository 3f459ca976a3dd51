"""What is known of requests afterwards: one line of a log each, and numbers for Prometheus.

Always true: a log holds no cell and no query; what nobody foresaw is logged by its type and place,
never with its message, which may quote people's data.
"""

from __future__ import annotations

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
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import RefusalError
from .waiting import ClientGoneError

LOGGER = logging.getLogger("mcce.serve")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PACKAGE = Path(__file__).parents[1]
# Nobody reads the answer.
GONE = 499


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
    # Elsewhere there is no signal 0, which asks and does nothing.
    if os.name != "posix":
        return True
    try:
        with suppress(PermissionError):
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Observer:
    """Middleware that logs and counts requests, and answers for what nobody foresaw."""

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
    """What goes back to the client."""

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
    """The method; anybody may invent one, and a counter keeps each."""
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"


def _template(scope: Scope) -> str:
    """The route as it is written, without what stands for its parameters."""
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
