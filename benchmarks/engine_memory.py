"""Memory of a worker over many partitions, on each engine.

``python benchmarks/engine_memory.py local dask ray spark --partitions 200``. Every worker says how
large its resident set is after each partition; printed is the mean over workers that had as many.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import engine_people
from mcce.errors import WorkerError
from mcce.execution.pools import ENGINES, find_engine

WORKERS = 2
MARKS = (20, 100, 200, 400, 800)


def main() -> None:
    """Print a line for each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=list(ENGINES), metavar="engine")
    parser.add_argument("--partitions", type=int, default=200, help="per worker")
    parser.add_argument("--people", type=int, default=200, help="per partition")
    options = parser.parse_args()
    rows = engine_people.people(options.people)
    task = Measured(engine_people.plan(engine_people.fit(), rows))
    # A fifth more than two workers need: they do not get the same number each.
    n_partitions = int(1.2 * WORKERS * options.partitions)
    for engine in options.engines:
        began = time.monotonic()
        sizes = measure(engine, task, [rows] * n_partitions)
        marks = [mark for mark in MARKS if mark <= options.partitions]
        said = ", ".join(f"{np.mean(sizes[mark]):.0f} MB after {mark}" for mark in marks)
        print(f"{engine}: {said}; {time.monotonic() - began:.0f} s", flush=True)


def measure(engine: str, task: Any, items: list[pd.DataFrame]) -> dict[int, list[float]]:
    """Megabytes of workers after their first, second, … partition."""
    sizes = defaultdict(list)
    with find_engine(engine, WORKERS)(task, WORKERS) as pool:
        for _, measured in pool.run(items):
            if isinstance(measured, WorkerError):
                raise measured
            _, number, size = measured
            sizes[number].append(size)
    return sizes


@dataclass(frozen=True)
class Measured:
    """A task that says how large its process is, instead of its answers."""

    task: Any

    def __call__(self, rows: pd.DataFrame) -> tuple[int, int, float]:
        """The process, how many partitions it had, and its megabytes."""
        self.task.frame(rows)
        number = int(os.environ.get("MCCE_PARTITIONS", "0")) + 1
        os.environ["MCCE_PARTITIONS"] = str(number)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return os.getpid(), number, pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
