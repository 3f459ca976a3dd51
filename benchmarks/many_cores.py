"""People per second on all cores: the joblib pool beside a bare loop of processes.

``python benchmarks/many_cores.py --workers 16``. Both get the same blocks of people and give back
the same tables; rates are by slope between two numbers of people, so that starting processes does
not count. Beside them the rate of one process times the number of workers, which no machine keeps
up when all its cores are busy.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from mcce import MCCE
from mcce.datasets import load_german_credit
from mcce.execution.frames import plan
from mcce.execution.joblib import open_pool
from mcce.execution.workers import Task
from mcce.search.config import SearchName

IMMUTABLE = ["Age", "Sex"]
SIZES = {"paper": (200_000, 600_000), "balanced": (8_000, 24_000)}
# What is done with each block in a worker process of the bare loop.
_task: Task | None = None


def score(frame: pd.DataFrame) -> np.ndarray:
    """A cheap scoring function that holds Python's lock."""
    points = 1.2 - 0.045 * frame["Duration"] - 0.00012 * frame["CreditAmount"]
    points = points + 0.02 * frame["Age"] + 0.5 * frame["Savings"].ne("<100 DM")
    points = points + 0.8 * frame["CheckingStatus"].eq("no checking account")
    return np.asarray(1 / (1 + np.exp(-points.to_numpy(dtype=float))))


def load_predictor() -> Callable[[pd.DataFrame], np.ndarray]:
    """The predictor, as a worker loads it."""
    return score


def people(n_people: int) -> pd.DataFrame:
    """People whose cells are drawn from the columns of German Credit."""
    chance, train = np.random.default_rng(1), load_german_credit().features
    rows = {n: c.array[chance.integers(len(c), size=n_people)] for n, c in train.items()}
    return pd.DataFrame(rows).assign(customer=np.arange(n_people))


def begin(task: Task) -> None:
    """Open the explainer in a process of the bare loop."""
    global _task
    _task = task
    with task.packed.opened():
        pass


def answer(block: pd.DataFrame) -> pd.DataFrame:
    """One block in a process of the bare loop."""
    assert _task is not None
    return _task.frame(block)


def bare(task: Task, blocks: Sequence[pd.DataFrame], workers: int) -> float:
    """Seconds of a bare loop of processes, after they have started."""
    with multiprocessing.get_context("spawn").Pool(workers, begin, (task,)) as pool:
        pool.map(answer, blocks[:workers], chunksize=1)
        began = time.perf_counter()
        for _ in pool.imap_unordered(answer, blocks):
            pass
        return time.perf_counter() - began


def by_joblib(task: Task, blocks: Sequence[pd.DataFrame], workers: int) -> float:
    """Seconds of the pool, after its processes have started."""
    with open_pool(task.frame, workers) as pool:
        for _ in pool.run(blocks[:workers]):
            pass
        began = time.perf_counter()
        for _ in pool.run(blocks):
            pass
        return time.perf_counter() - began


def alone(task: Task, blocks: Sequence[pd.DataFrame], workers: int) -> float:
    """Seconds that as many processes would take that never get in each other's way."""
    few = blocks[: max(len(blocks) // workers, 1)]
    began = time.perf_counter()
    for block in few:
        task.frame(block)
    return (time.perf_counter() - began) * len(blocks) / (len(few) * workers)


def main() -> None:
    """Print people per second and the ratio of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="Times the numbers of people.")
    options = parser.parse_args()
    train = load_german_credit().features
    for search, sizes in SIZES.items():
        explainer = MCCE(
            score,
            (0.7, 1.0),
            immutable=IMMUTABLE,
            search=cast("SearchName", search),
            random_state=0,
        ).fit(train)
        rates = measure(explainer, [int(n * options.scale) for n in sizes], options)
        ratio = rates["by_joblib"] / rates["bare"]
        shown = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
        print(f"{search}: people per second: {shown}; joblib / bare loop: {ratio:.2f}", flush=True)


def measure(explainer: MCCE, sizes: Sequence[int], options: argparse.Namespace) -> dict[str, Any]:
    """People per second of each way, by slope between two sizes, minimum of repeats."""
    rows = people(max(sizes))
    _, task = plan(explainer, rows, "customer", load_predictor)
    block_rows = max(min(sizes) // (4 * options.workers), 1)
    rates = {}
    for way in (alone, bare, by_joblib):
        seconds = []
        for size in sizes:
            blocks = [rows.iloc[at : at + block_rows] for at in range(0, size, block_rows)]
            seconds.append(min(way(task, blocks, options.workers) for _ in range(options.repeats)))
        rates[way.__name__] = (sizes[1] - sizes[0]) / (seconds[1] - seconds[0])
    return rates


if __name__ == "__main__":
    main()
