"""Services as processes of their own, once they answer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx

from served_bank import until


@contextmanager
def reserved_port():
    """A port that nobody else is given; servers may listen on it, as this socket does not."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def process(command, port, folder):
    """A server as a process, once it answers, and the lines of its log so far."""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        log = []
        reader = threading.Thread(target=lambda: log.extend(server.stderr), daemon=True)
        reader.start()

        def answers():
            assert server.poll() is None, "".join(log)
            try:
                return httpx.get(f"http://127.0.0.1:{port}/health", timeout=120)
            except httpx.TransportError:
                return None

        try:
            until(answers, 300)
            yield server, log
        finally:
            server.kill()
            server.wait(120)
            reader.join(120)


@contextmanager
def served(folder, *words):
    """``mcce serve`` in a folder: its address, the process, and its log."""
    with reserved_port() as port:
        command = [sys.executable, "-m", "mcce", "serve", *words, "--port", str(port)]
        with process(command, port, folder) as (server, log):
            yield f"http://127.0.0.1:{port}", server, log


def children(pid):
    """Processes that a process started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
