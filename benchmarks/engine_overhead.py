"""What an engine costs beyond the work: CPU seconds per person of ``mcce explain --engine``.

``python benchmarks/engine_overhead.py`` explains 1 and 3 million people in Parquet files of 50,000,
with each engine and 2 workers, and prints the slope between both: what a further person costs, in
CPU seconds of all processes of the run. Start-up is in neither. Its ratios are to one process, and
to as many processes without an engine: two hyperthreads of a core slow each other down.
``--quick`` is 50,000 and 150,000 people: the ratios are then rough.

Every process of a run is found by a mark in its environment, so that those that an engine detaches
count too. Linux only.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from mcce.execution.pools import ENGINE_PACKAGES, ENGINES
from people_files import PREDICTOR, write_files, write_lake

MARK = "MCCE_BENCHMARK_RUN"
TICKS = os.sysconf("SC_CLK_TCK")
INTERVAL = 0.1


def main() -> None:
    """Run the engines and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--people", type=int, nargs=2, default=[1_000_000, 3_000_000])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--engines", nargs="+", default=[*ENGINES])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--search", default="paper")
    options = parser.parse_args()
    sizes = [50_000, 150_000] if options.quick else options.people
    runs = {"local, 1 process": ("local", 1)}
    runs |= {
        f"{engine}, {options.workers} workers": (engine, options.workers)
        for engine in dict.fromkeys(["local", *options.engines])
        if engine not in ENGINE_PACKAGES or importlib.util.find_spec(ENGINE_PACKAGES[engine])
    }
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        write_files(Path(name), 100, options.search)
        for size in sizes:
            write_lake(Path(f"people-{size}"), size)
        slopes: dict[str, list[float]] = {label: [] for label in runs}
        # One after the other, so that what else the machine does meets all alike.
        for _ in range(options.repeats):
            for label, (engine, workers) in runs.items():
                slopes[label].append(slope(label, engine, workers, sizes))
    middles = {label: statistics.median(found) for label, found in slopes.items()}
    alone, together = list(middles.values())[:2]
    for label, middle in middles.items():
        ratios = f"{middle / alone:.2f} of one process, {middle / together:.2f} of local workers"
        print(f"{label}: {1e6 * middle:.1f} µs of CPU per person, {ratios}")


def slope(label: str, engine: str, workers: int, sizes: list[int]) -> float:
    """CPU seconds that a further person costs."""
    used = []
    for size in sizes:
        began = time.monotonic()
        used.append(cpu_seconds(command(engine, workers, size)))
        took = time.monotonic() - began
        print(f"  {label}: {size:,} people, CPU {used[-1]:.1f} s in {took:.1f} s", flush=True)
    return (used[1] - used[0]) / (sizes[1] - sizes[0])


def command(engine: str, workers: int, size: int) -> list[str]:
    """The command that explains people in files."""
    files = ["explain", "bank.mcce", f"people-{size}", "--predictor", PREDICTOR]
    output = ["--key", "customer", "-o", f"answers-{engine}/", "--overwrite", "--quiet"]
    shared = ["--engine", engine, "--workers", str(workers)]
    return [sys.executable, "-m", "mcce", *files, *output, *shared]


def cpu_seconds(words: list[str]) -> float:
    """CPU seconds of a command and of all processes that it starts, whoever adopts them."""
    mark = uuid4().hex
    log = Path("log.txt")
    with log.open("wb") as stream:
        process = subprocess.Popen(words, env={**os.environ, MARK: mark}, stderr=stream)
    used: dict[int, float] = {}
    strangers: set[int] = set()
    while process.poll() is None or any(_is_there(pid) for pid in used if pid != process.pid):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and int(entry.name) not in strangers:
                _sample(int(entry.name), mark, used, strangers)
        time.sleep(INTERVAL)
    if process.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{log.read_text(errors='replace')}")
    return sum(used.values())


def _sample(pid: int, mark: str, used: dict[int, float], strangers: set[int]) -> None:
    """Note the CPU seconds of a process so far, if it is one of the run."""
    try:
        if (
            pid not in used
            and f"{MARK}={mark}".encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        ):
            strangers.add(pid)
            return
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return
    used[pid] = (int(fields[11]) + int(fields[12])) / TICKS


def _is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


if __name__ == "__main__":
    main()
