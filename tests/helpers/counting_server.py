"""A scorer behind HTTP that counts: when rows came, and how many requests it had at a time."""

from __future__ import annotations

import json
import select
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOLD = "hold"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        status = self.server.admit(rows)
        if status == HOLD:
            status = self.hold()
        body = json.dumps({"predictions": self.server.score(rows)}).encode()
        self.server.leave()
        if status is None:
            return
        self.send_response(status)
        if status != 200:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hold(self):
        """Keep the client waiting until it hangs up, or until the server releases it."""
        while not self.server.released.is_set():
            if select.select([self.connection], [], [], 0.02)[0]:
                self.server.hung_up.release()
                return None
        return 200

    def log_message(self, *_):
        pass


class CountingServer(ThreadingHTTPServer):
    """Scores rows with a function.

    ``before`` gets the number of a request, from 0, and gives its status: None hangs up, and
    ``HOLD`` waits until the client hangs up (``hung_up`` counts them) or ``released`` is set.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, score, before=lambda _: 200):
        super().__init__(("127.0.0.1", 0), Handler)
        self.score, self.before = score, before
        self.url = f"http://127.0.0.1:{self.server_address[1]}/score"
        self.rows, self.arrivals, self.at_a_time = [], [], []
        self.lock, self.n_running = threading.Lock(), 0
        self.released, self.hung_up = threading.Event(), threading.Semaphore(0)

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, args=[0.01])
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def admit(self, rows):
        with self.lock:
            self.n_running += 1
            self.rows.append(rows)
            self.arrivals.append((time.monotonic(), len(rows)))
            self.at_a_time.append(self.n_running)
            number = len(self.arrivals) - 1
        return self.before(number)

    def leave(self):
        with self.lock:
            self.n_running -= 1

    def handle_error(self, request, client_address):
        """A client that went away is what the tests are about."""
