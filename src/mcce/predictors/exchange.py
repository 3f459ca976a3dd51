"""One HTTP exchange over httpcore, within limits of time and size.

Always true: connecting, the handshake, sending and reading end at one deadline, however slowly
bytes drip; no response larger than the limit is kept; every request has a connection of its own,
so threads cannot meet there. What is returned or raised quotes no secret.

httpx is no help here: it limits each wait but not their sum, and logs addresses with their query.
httpcore, on which it is built, takes connections with limits of their own, and neither follows
redirects, unpacks bodies nor reads environment variables.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeVar

import httpcore

from ..kernels import ExpiredError, check_cancellation
from .transport import POLL_SECONDS, Address

# Status line, headers and the lengths between chunks of a body come on top of its bytes.
FRAMING, FRAMING_PER_BYTE = 2**20, 10
# Operating systems cannot wait much longer for a single byte.
LONGEST_WAIT = 1e6
FAILURES = (OSError, ValueError, httpcore.ProtocolError, httpcore.ProxyError)
Result = TypeVar("Result")
_quiet: ContextVar[bool] = ContextVar("mcce_quiet", default=False)


class TooLargeError(Exception):
    """A response has more bytes than allowed."""


@dataclass(frozen=True)
class Response:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def post(
    address: Address,
    body: bytes,
    headers: Mapping[str, str],
    *,
    seconds: float,
    max_bytes: int,
    proxy: Address | None = None,
) -> Response | str | None:
    """The response to a POST request, whatever its status; or why there is none.

    None if it is too large.
    """
    given = [(name.encode(), value.strip().encode("latin-1")) for name, value in headers.items()]
    if "authorization" not in {name.lower() for name in headers}:
        given += _credentials("Authorization", address)
    given.append((b"Connection", b"close"))
    through = None
    if proxy is not None:
        through = httpcore.Proxy(_url(proxy), headers=_credentials("Proxy-Authorization", proxy))
    pool = httpcore.ConnectionPool(
        _trusted(threading.get_ident()) if address.scheme == "https" else None,
        through,
        network_backend=_Connection(seconds, max_bytes),
    )
    try:
        with (
            _without_log(),
            pool,
            pool.stream("POST", _url(address), headers=given, content=body) as response,
        ):
            return _read(response, max_bytes)
    except TooLargeError:
        return None
    except ExpiredError:  # the time limit of the work, an OSError itself
        raise
    except FAILURES as error:
        return _reason(error, seconds)


def _url(address: Address) -> httpcore.URL:
    return httpcore.URL(
        scheme=address.scheme, host=address.host, port=address.port, target=address.target
    )


def _credentials(header: str, address: Address) -> list[tuple[bytes, bytes]]:
    if address.credentials is None:
        return []
    return [(header.encode(), f"Basic {address.credentials}".encode())]


def _read(response: httpcore.Response, max_bytes: int) -> Response:
    """What came back; the body, all of it, only if the request succeeded."""
    pairs = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in response.headers]
    headers, body = {name.lower(): text for name, text in pairs}, bytearray()
    if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        if int(headers.get("content-length", 0)) > max_bytes:
            raise TooLargeError
        for piece in response.iter_stream():
            body += piece
            if len(body) > max_bytes:
                raise TooLargeError
    return Response(response.status, headers, bytes(body))


def _reason(error: Exception, seconds: float) -> str:
    """What went wrong, in words of ours or of the operating system; others may hold a secret."""
    name, message = type(error).__name__, ""
    if isinstance(error, TimeoutError):
        return f"TimeoutError: no complete response within {seconds} seconds"
    if isinstance(error, OSError):
        message = str(error.strerror or "").partition(" (_ssl.c")[0]
    elif isinstance(error, httpcore.ProxyError):
        message = "the proxy refused the connection"
    elif isinstance(error, httpcore.RemoteProtocolError):
        message = "no complete HTTP response"
    return f"{name}: {message}" if message else name


@lru_cache(maxsize=64)
def _trusted(_thread: int) -> ssl.SSLContext:
    """The certificates that the system trusts; httpcore sets options of it for each connection."""
    return ssl.create_default_context()


@contextmanager
def _without_log() -> Iterator[None]:
    """Keep httpcore from logging headers and addresses, which may hold secrets."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


for _name in ("connection", "http11", "proxy"):
    logging.getLogger(f"httpcore.{_name}").addFilter(lambda _: not _quiet.get())


class _Connection(httpcore.NetworkBackend, httpcore.NetworkStream):
    """The connection of one exchange: every wait ends at one deadline, and few bytes come in."""

    def __init__(self, seconds: float, max_bytes: int) -> None:
        self._deadline = time.monotonic() + seconds
        self._n_left = FRAMING + FRAMING_PER_BYTE * max_bytes
        self._socket: socket.socket

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        """Connect to the first of a host's addresses that takes a connection."""
        failure = OSError("The host has no address")
        for *_kind, where in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM):
            try:
                self._socket = socket.create_connection((str(where[0]), port), self._left())
            except OSError as error:
                failure = error
            else:
                # Headers go out before the body, without waiting for an answer to them.
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return self
        raise failure

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, *_: Any, **__: Any
    ) -> httpcore.NetworkStream:
        """Encrypt what follows."""
        self._socket.settimeout(self._left())
        name = (server_hostname or "").strip("[]")
        self._socket = ssl_context.wrap_socket(self._socket, server_hostname=name)
        return self

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes, none at the end."""
        content = self._wait(lambda: self._socket.recv(max_bytes))
        self._n_left -= len(content)
        if self._n_left < 0:
            raise TooLargeError
        return content

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send everything."""
        rest = memoryview(buffer)
        while rest:
            rest = rest[self._wait(lambda: self._socket.send(rest)) :]  # noqa: B023

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _wait(self, action: Callable[[], Result]) -> Result:
        """Do something with the socket as soon as it can be done."""
        while True:
            self._socket.settimeout(min(self._left(), POLL_SECONDS))
            try:
                return action()
            except TimeoutError:
                check_cancellation()

    def _left(self) -> float:
        """Seconds until the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return min(left, LONGEST_WAIT)
