"""Services for tests: a small bank, a black box whose scores of a row depend on that row alone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import numpy as np
import pandas as pd

from mcce import MCCE

NEEDED = 60_000


def customers(n_rows: int = 400) -> pd.DataFrame:
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


def approval(rows: pd.DataFrame) -> Any:
    """Row by row, so that no bit of a score depends on who else is scored."""
    home = rows["owns <b>home</b>"].to_numpy(dtype=bool)
    return np.clip(rows["salary"].to_numpy() / (2 * NEEDED) + 0.1 * home, 0, 1)


def fitted(predictor: Any = approval, **changes: Any) -> MCCE:
    given: dict[str, Any] = {"search": "balanced", "random_state": 0, "n_counterfactuals": 2}
    explainer = MCCE(predictor, (0.5, 1.0), immutable=["age", "sex"], **(given | changes))
    return explainer.fit(customers())


def person(**changes: Any) -> dict[str, Any]:
    cells = {
        "age": 30,
        "sex": "female",
        "salary": 40_000,
        "savings": None,
        "owns <b>home</b>": False,
    }
    return cells | changes


@contextmanager
def running(app: Any, grace: int = 5) -> Iterator[httpx.Client]:
    """The service on a port of this machine, and a client of it; it ends with the block."""
    import uvicorn

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=grace)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=address, timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(10)
