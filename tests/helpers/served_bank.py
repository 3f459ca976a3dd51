"""Services for tests: a small bank, black boxes that can be held, and a server for each."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress

import httpx
import numpy as np
import pandas as pd

from mcce import MCCE

NEEDED = 60_000
TOKEN = "a token of thirty-two characters"
# Ages of people whom a Gate holds, and of those whom it fails for.
HELD, FAILING = 33, 34


def customers(n_rows=400):
    """Training data; the first are accepted."""
    chance = np.random.default_rng(7)
    age = chance.integers(20, 70, n_rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": chance.choice(["female", "male"], n_rows),
            "salary": 4000 * (7 + age // 8 + chance.integers(0, 12, n_rows)),
            "savings": chance.choice([0.5, 1.25, np.nan], n_rows),
            "owns <b>home</b>": chance.random(n_rows) < 0.5,
        }
    )


def declined(n_rows):
    """People to upload, none of whom is accepted."""
    home = {"owns <b>home</b>": False}
    return customers(n_rows).assign(salary=[40_000 + 500 * at for at in range(n_rows)], **home)


def approval(rows):
    """Row by row, so that no bit of a score depends on who else is scored."""
    home = rows["owns <b>home</b>"].to_numpy(dtype=bool)
    return np.clip(rows["salary"].to_numpy() / (2 * NEEDED) + 0.1 * home, 0, 1)


def fitted(predictor=approval, **changes):
    """An explainer of the bank."""
    given = {"search": "balanced", "random_state": 0, "n_counterfactuals": 2, **changes}
    return MCCE(predictor, (0.5, 1.0), immutable=["age", "sex"], **given).fit(customers())


def person(**changes):
    """Somebody who is declined, as JSON has it."""
    cells = {
        "age": 30,
        "sex": "female",
        "salary": 40_000,
        "savings": None,
        "owns <b>home</b>": False,
    }
    return cells | changes


def frame_of(*people):
    """The same people as a frame."""
    return pd.DataFrame(list(people)).astype({"savings": "float64"})


class Gate:
    """A black box that waits inside a call for people of one age while it is closed.

    Attributes
    ----------
    entered
        Set once it waits.
    opened
        Set to let it go on.
    broken
        What it does to people of another age; None scores them.
    ages
        The ages of each call since it was closed.
    """

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()
        self.opened.set()
        self.broken = None
        self.ages = []

    def close(self):
        self.entered.clear()
        self.opened.clear()
        self.ages.clear()

    def __call__(self, rows):
        ages = set(rows["age"])
        self.ages.append(ages)
        if HELD in ages and not self.opened.is_set():
            self.entered.set()
            assert self.opened.wait(120)
        if FAILING in ages and self.broken is not None:
            return self.broken(rows)
        return approval(rows)

    def n_calls(self, age):
        """In how many calls since it was closed there were people of an age."""
        return sum(age in ages for ages in self.ages)


def until(condition, seconds=120):
    """Wait for something that must come true, and return it."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, "what must come did not come"
        time.sleep(0.01)
    return found


@contextmanager
def running(app, grace=5):
    """The service on a port of this machine, and a client of it; it ends with the block."""
    import uvicorn

    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=grace)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # It listens already: who connects before the server has started waits.
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=120) as client:
                client.get("/health")
                yield client
        finally:
            server.should_exit = True
            thread.join(60)


@contextmanager
def half_sent(client, path, content, n_bytes=None):
    """A connection on which a request was sent; without an end if it declares more bytes."""
    declared = len(content) if n_bytes is None else n_bytes
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    url = client.base_url
    with socket.create_connection((url.host, url.port), timeout=120) as sent:
        sent.sendall(f"{head}Content-Length: {declared}\r\n\r\n".encode() + content)
        yield sent


def metric(client, name):
    """A number of the service's metrics; 0 if there is none yet."""
    lines = client.get("/metrics").text.splitlines()
    with suppress(StopIteration):
        return float(next(line for line in lines if line.startswith(f"{name} ")).rsplit(" ")[-1])
    return 0.0


def body(**cells):
    """The bytes of a request about somebody."""
    return json.dumps({"people": [person(**cells)]}).encode()
