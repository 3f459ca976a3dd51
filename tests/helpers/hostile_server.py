"""A server that does anything but what a client hopes for."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress

from mcce.predictors import Remote

ANSWER = b'{"predictions": [1, 2]}'


def reply(body=ANSWER, status="200 OK", headers=()):
    """A response; a body that is not bytes is written as JSON."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Hostile:
    """Listens on a port of its own; ``script`` says what happens to a connection.

    It is bytes that are sent, a function of the connection, or a list of them for one connection
    after the other, of which the last stays.
    """

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/score"
        self.script = reply()
        self.requests, self.bodies = [], []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        # Closing alone does not wake the thread that waits for connections.
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(60)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=[connection], daemon=True).start()

    def answer(self, connection):
        with connection:
            try:
                head, body = read_request(connection)
                self.requests.append(head)
                self.bodies.append(body)
                script = self.script
                if isinstance(script, list):
                    script = script.pop(0) if len(script) > 1 else script[0]
                if isinstance(script, bytes):
                    connection.sendall(script)
                else:
                    script(connection)
            except OSError:
                pass  # the client went away, as it should

    def drip(self, start):
        """A script that sends a beginning and then a byte now and then, for ever."""

        def script(connection):
            connection.sendall(start)
            while not self.over.wait(0.02):
                connection.sendall(b" ")

        return script

    def flood(self, start, more=b" " * 2**16):
        """A script that sends a beginning and then as much as it can, for ever."""

        def script(connection):
            connection.sendall(start)
            while not self.over.is_set():
                connection.sendall(more)

        return script

    def hang(self, connection):
        self.over.wait(120)


def remote(server, **settings):
    """A predictor at the server, which is called once."""
    return Remote(**{"url": server.url, "timeout": 60, "retries": 0, "backoff": 0} | settings)


def read_request(connection):
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(2**16) or b"\r\n\r\n"
    head, _, body = request.partition(b"\r\n\r\n")
    length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    while length and len(body) < int(length[0].split(b":")[1]):
        body += connection.recv(2**16)
    return head.decode("latin-1"), body
