"""Whether a scorer that takes 200 rows a second is ever sent more, and what keeping to it costs.

``python benchmarks/remote_rate.py`` serves a scorecard of German Credit over HTTP from a process of
its own, which refuses (429) what would be more than 200 rows in any second, and explains people
drawn column by column with it. It prints the most rows that came in a second, the refusals, and the
time of the run over what the rate allows; and writes ``out/bench/remote_rate.md``. The answers must
be those of the scorecard itself. ``--rate``, ``--latency``, ``--people`` and ``--searches`` set
others. Use a quiet machine: where processes wait for a core, requests come late and together.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.request import urlopen

import numpy as np
import pandas as pd

from mcce import MCCE, McceWarning
from mcce.datasets import load_german_credit
from mcce.predictors import Remote
from measure import Table, wall, write

Points: TypeAlias = dict[str, dict[Any, float]]
# A rounding of the clock is not a refusal.
SECOND = 1 - 1e-6


class Scorer(BaseHTTPRequestHandler):
    """Scores rows, unless too many came within the last second; GET gives what came when."""

    server: Any

    def do_POST(self) -> None:
        """Score."""
        at = time.monotonic()
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        with self.server.lock:
            recent = [
                n for when, n, _ in self.server.arrivals[-self.server.rate :] if at - when < SECOND
            ]
            admitted = sum(recent) + len(rows) <= self.server.rate
            self.server.arrivals.append((at, len(rows), admitted))
        if not admitted:
            self.send_error(429)
            return
        time.sleep(self.server.latency)
        self._send({"predictions": _score(rows, self.server.points)})

    def do_GET(self) -> None:
        """Report, and forget."""
        with self.server.lock:
            arrivals, self.server.arrivals = self.server.arrivals, []
        self._send(arrivals)

    def _send(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds for each request")
    parser.add_argument("--people", type=int, default=2500)
    parser.add_argument("--searches", nargs="+", default=["paper", "balanced"])
    given = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(theirs, given.rate, given.latency), daemon=True
    )
    process.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/"
        rows = [_measure(search, url, given) for search in given.searches]
    finally:
        process.terminate()
    headings = list(rows[0])
    note = f"Rate {given.rate} rows a second; the server takes {given.latency} s for a request."
    table = Table("A scorer with a rate", headings, [list(row.values()) for row in rows], note)
    print(table.markdown())
    write([table], "remote_rate")


def _serve(pipe: Any, rate: int, latency: float) -> None:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Scorer)
    server.points, server.rate, server.latency = _scorecard(), rate, latency
    server.arrivals, server.lock = [], threading.Lock()
    pipe.send(server.server_port)
    server.serve_forever()


def _scorecard() -> Points:
    """Points of every value: how much better those who have it did than everybody."""
    data = load_german_credit()
    good = (data.target == data.desired).astype(float)
    points = {}
    for name, column in data.features.items():
        groups = good.sub(good.mean()).groupby(column, observed=True)
        points[str(name)] = (groups.sum() / (groups.size() + 10)).to_dict()
    return points


def _score(rows: list[dict[Any, Any]], points: Points) -> list[float]:
    return [sum(points[name][cell] for name, cell in row.items()) for row in rows]


def _measure(search: Any, url: str, given: argparse.Namespace) -> dict[str, str]:
    data, points = load_german_credit(), _scorecard()
    X = data.features

    def score(frame: pd.DataFrame) -> Any:
        return np.array(_score(frame.to_dict("records"), points))

    least = float(np.quantile(score(X), 0.4))
    settings = {"immutable": data.immutable, "search": search, "random_state": 0, "n_jobs": 4}
    chance = np.random.default_rng(0)
    columns = {
        name: column.sample(4 * given.people, replace=True, random_state=chance).array
        for name, column in X.items()
    }
    drawn = pd.DataFrame(columns)
    people = drawn[score(drawn) < least].head(given.people)
    expected = MCCE(score, (least, np.inf), **settings).fit(X).explain(people)
    explainer = MCCE(Remote(url, rows_per_second=given.rate), (least, np.inf), **settings).fit(X)
    fitted = _arrivals(url)
    seconds, result = wall(lambda: explainer.explain(people))
    pd.testing.assert_frame_equal(result.frame, expected.frame)
    arrivals = _arrivals(url)
    n_rows = sum(n for _, n, _ in arrivals)
    return {
        "search": search,
        "people": str(len(people)),
        "rows": str(n_rows),
        "requests": str(len(arrivals)),
        "most rows in 1 s": str(_most_rows(arrivals, 1.0)),
        "in 10 s": str(_most_rows(arrivals, 10.0)),
        "429": str(sum(not admitted for _, _, admitted in [*fitted, *arrivals])),
        "seconds": f"{seconds:.1f}",
        "over rows / rate": f"{seconds * given.rate / n_rows:.3f}",
    }


def _arrivals(url: str) -> list[tuple[float, int, bool]]:
    with urlopen(url) as response:
        arrivals: list[tuple[float, int, bool]] = json.load(response)
    return arrivals


def _most_rows(arrivals: list[tuple[float, int, bool]], seconds: float) -> int:
    return max(
        sum(n for at, n, _ in arrivals if start <= at < start + seconds) for start, _, _ in arrivals
    )


if __name__ == "__main__":
    main()
