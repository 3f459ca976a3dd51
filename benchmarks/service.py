"""How fast the service answers, what sharing a search brings, and whether its memory grows.

``python benchmarks/service.py page`` measures in Chromium the time from a click on a person to
plans on the screen, and from a typed value to its score, for German Credit and, with the data
beside the checkout, for Adult with boosted trees. ``latency`` measures requests alone. ``load``
sends plain requests over 1, 8 and 64 connections, with and without sharing. ``soak --minutes 30``
mixes all kinds of requests, broken ones too, and watches the memory of the server.

The server is a process of its own, and client and server share the machine: figures are of both.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from typing import IO, Any

import httpx
import joblib
import numpy as np

from cases import load
from mcce import MCCE

ADDRESS, PORT = "127.0.0.1", 8765
N_PEOPLE = 200
# From a click on a person in the list to plans, or to why there are none.
CLICK = """(name) => new Promise((done) => {
  const began = performance.now();
  const look = new MutationObserver(() => {
    if (!document.querySelector(".plan, .calm, .nothing")) return;
    look.disconnect();
    requestAnimationFrame(() => done((performance.now() - began) / 1000));
  });
  look.observe(document.body, { childList: true, subtree: true });
  const named = (one) => one.firstElementChild.textContent === name;
  [...document.querySelectorAll(".person")].find(named).click();
})"""
# From a typed number to its score: the first change shows the value, the second the score.
TYPE = """(value) => new Promise((done) => {
  const began = performance.now();
  let changes = 0;
  const look = new MutationObserver(() => {
    if (++changes < 2) return;
    look.disconnect();
    requestAnimationFrame(() => done((performance.now() - began) / 1000));
  });
  look.observe(document.querySelector(".own-card .now"), { childList: true, subtree: true });
  const field = document.querySelector(".own-card input.box");
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("page", "latency", "load", "soak"))
    parser.add_argument("--cases", nargs="*", default=["german", "adult"], choices=list(CASES))
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for case in options.cases:
            arguments = CASES[case](Path(name))
            if options.what == "load":
                print_load(case, arguments, options.requests)
                continue
            with serving(*arguments) as server:
                if options.what == "soak":
                    soak(server, list(read_people().values()), options.minutes)
                else:
                    measure = print_page if options.what == "page" else print_latency
                    measure(case, options.requests)


def german(folder: Path) -> list[str]:
    """The bundled data and a logistic regression behind a pipeline."""
    return ["--demo"]


def adult(folder: Path) -> list[str]:
    """Fit and save an explainer of boosted trees, and people whom they decline."""
    data = load("adult-boosting")
    if data is None:
        raise SystemExit("Adult is not beside the checkout: use --cases german.")
    explainer = MCCE(data.predictor, data.desired, immutable=data.immutable, search="balanced")
    explainer.set_params(n_counterfactuals=3, diversity=0.8, random_state=0).fit(data.train)
    joblib.dump(data.predictor, folder / "model.joblib")
    explainer.save(folder / "adult.mcce")
    data.factuals.head(N_PEOPLE).to_csv(folder / "people.csv", index=False)
    predictor = ["--predictor", str(folder / "model.joblib"), "--trust"]
    return [str(folder / "adult.mcce"), *predictor, "--people", str(folder / "people.csv")]


CASES = {"german": german, "adult": adult}


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process of its own, once it is ready."""
    command = [sys.executable, "-m", "mcce", "serve", *arguments, "--port", str(PORT)]
    # The predictor of Adult is a class of these benchmarks.
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            wait_until_ready(server, log)
            yield server
        finally:
            server.terminate()
            server.wait(60)


def wait_until_ready(server: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    """Wait for the server, up to two minutes."""
    with httpx.Client(base_url=f"http://{ADDRESS}:{PORT}") as client:
        for _ in range(240):
            if server.poll() is not None:
                break
            # Until it listens, there is no connection.
            with suppress(httpx.TransportError):
                if client.get("/ready").status_code == 200:
                    return
            time.sleep(0.5)
    log.seek(0)
    raise SystemExit(f"The server does not get ready:\n{log.read().decode()}")


def read_people() -> dict[str, dict[str, Any]]:
    """Declined people of the server's list by name, as requests have them."""
    with httpx.Client(base_url=f"http://{ADDRESS}:{PORT}", timeout=60) as client:
        listed = client.get("/people", params={"limit": N_PEOPLE}).json()["people"]
        rows = [person["row"] for person in listed if not person["desired"]]
        found = [client.get(f"/people/{row}").json() for row in rows]
    return {person["name"]: person["person"] for person in found}


def print_page(case: str, n_requests: int) -> None:
    """Time from a click to plans, and from a typed value to its score, as a user sees it."""
    from playwright.sync_api import sync_playwright

    plans, scores = [], []
    with sync_playwright() as started:
        path = shutil.which("chromium")
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"http://{ADDRESS}:{PORT}/")
        for name in islice(cycle(read_people()), n_requests):
            page.fill("#search", name)
            page.locator(".person", has=page.get_by_text(name, exact=True)).wait_for()
            plans.append(page.evaluate(CLICK, name))
            page.locator(".plan:not(.own-card), .calm, .nothing").first.wait_for()
            own = page.locator(".own-card")
            if not own.evaluate("card => card.open"):
                own.locator("summary").first.click()
            while not own.locator("input.box").count():
                own.locator(".adder").select_option(index=1)
            value = own.locator("input.box").first.input_value()
            for step in range(1, 6):
                scores.append(page.evaluate(TYPE, str(int(float(value)) + step)))
            page.click("text=Another person")
        browser.close()
    for name, seconds in (("click to plans", plans), ("value to score", scores)):
        print(f"{case} {name}: {percentiles(seconds)} over {len(seconds)}")


def print_latency(case: str, n_requests: int) -> None:
    """Time that requests take: plans, plans with details, a score."""
    people = list(read_people().values())
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "plans": ("/explain", {}),
        "plans with details": ("/explain", {"details": True}),
        "score": ("/score", {}),
    }
    with httpx.Client(base_url=f"http://{ADDRESS}:{PORT}", timeout=60) as client:
        for name, (path, more) in kinds.items():
            bodies = [{"people": [people[at % len(people)]]} | more for at in range(n_requests)]
            seconds = [timed(client, path, body) for body in bodies]
            print(f"{case} {name}: {percentiles(seconds)} over {n_requests} requests")


def timed(client: httpx.Client, path: str, body: dict[str, Any]) -> float:
    """Seconds that a request takes; whoever is told to come back does."""
    began = time.perf_counter()
    answer = client.post(path, json=body)
    while answer.status_code == 429:
        time.sleep(float(answer.headers["Retry-After"]))
        answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - began


def percentiles(seconds: Sequence[float]) -> str:
    """Median and 99th percentile, in milliseconds."""
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms"


def print_load(case: str, arguments: Sequence[str], n_requests: int) -> None:
    """Throughput over connections, with and without sharing a search."""
    for name, options in (("shared", ()), ("alone", ("--batch", "1"))):
        with serving(*arguments, *options):
            people = list(read_people().values())
            for n_connections in (1, 8, 64):
                seconds, wall = spread(people, n_connections, n_requests)
                figures = f"{len(seconds) / wall:.1f}/s, {percentiles(seconds)}"
                print(f"{case} {name}, {n_connections} connections: {figures}", flush=True)


def spread(
    people: Sequence[dict[str, Any]], n_connections: int, n_requests: int
) -> tuple[list[float], float]:
    """Send requests over several connections; seconds of each, and of all."""
    seconds: list[float] = []
    waiting = list(range(n_requests))

    def work() -> None:
        with httpx.Client(base_url=f"http://{ADDRESS}:{PORT}", timeout=120) as client:
            while waiting:
                body = {"people": [people[waiting.pop() % len(people)]]}
                seconds.append(timed(client, "/explain", body))

    began = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(n_connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seconds, time.perf_counter() - began


def soak(server: subprocess.Popen[bytes], people: Sequence[dict[str, Any]], minutes: float) -> None:
    """Mix all kinds of requests, and print the memory of the server every minute."""
    chance, statuses = random.Random(0), Counter[tuple[str, int]]()
    ends = time.monotonic() + 60 * minutes
    printed = 0.0

    with httpx.Client(base_url=f"http://{ADDRESS}:{PORT}", timeout=120) as client:
        while time.monotonic() < ends:
            path, body = request(chance, people)
            statuses[path, client.post(path, content=body, headers=JSON).status_code] += 1
            if time.monotonic() - printed > 60:
                printed = time.monotonic()
                print(
                    f"{sum(statuses.values())} requests, {resident(server.pid):.0f} MB", flush=True
                )
    for (path, status), count in sorted(statuses.items()):
        print(f"{path} {status}: {count}")


JSON = {"Content-Type": "application/json"}


def request(chance: random.Random, people: Sequence[dict[str, Any]]) -> tuple[str, bytes]:
    """A request of some kind, some of them broken."""
    person = chance.choice(people)
    bodies: list[tuple[str, Any]] = [
        ("/explain", {"people": [person], "details": True}),
        ("/explain", {"people": chance.sample(list(people), 5), "search": "sparse"}),
        ("/explain", {"people": [person], "rules": [{"max_changes": 1}], "seconds": 0.05}),
        ("/relax", {"person": person, "rules": [{"max_changes": 1}]}),
        ("/score", {"people": [person]}),
        ("/ranges", {"person": person, "answers": [person]}),
        ("/score", {"people": [{**person, "unknown": 1}]}),
        ("/explain", {"people": [dict.fromkeys(person)]}),
    ]
    path, body = chance.choice(bodies)
    content = json.dumps(body).encode()
    return path, content[: len(content) // 2] if chance.random() < 0.05 else content


def resident(process: int) -> float:
    """Megabytes of memory of a process."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
