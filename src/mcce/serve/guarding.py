"""What stands before every request: who may ask, how much may be sent, and headers of answers.

Always true: without the token nothing but the page's own files is shown, not even whether an
address exists; a body is counted while it is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import RefusalError
from .settings import ServiceSettings

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
            body = LimitedBody(receive, most, self.limits.body_seconds)
            body.check_declared(headers)
        except RefusalError as refusal:
            await refusal.response()(scope, receive, send)
            return
        await self.app(scope, body.receive, send)

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        # Whoever looks whether the process lives often knows its address alone.
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

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive, self.most = receive, most
        self.seconds, self.ends = seconds, time.monotonic() + seconds
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
            late = f"the body did not arrive within {self.seconds:g} s"
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
            # Files may be kept if the server is asked whether they are the same; answers may not.
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
