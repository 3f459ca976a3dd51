"""Clocks, tables and machine description for all benchmarks."""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

import mcce

OUT = Path(__file__).resolve().parents[1] / "out" / "bench"
# Short measurements are repeated more often, up to these limits.
MAX_REPEATS = 10
SECONDS_FOR_MORE = 3.0

Seconds: TypeAlias = dict[str, float]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Table:
    """One table of the report."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """The table as Markdown; first column left, numbers right."""
        lines = [f"## {self.title}", "", _line(self.headings)]
        lines.append(_line([":--", *["--:"] * (len(self.headings) - 1)]))
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, *(["", self.note] if self.note else []), ""])


def log(text: str) -> None:
    """Write a progress line."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def cpu(work: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds of a call, and its result."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def wall(work: Callable[[], Result]) -> tuple[float, Result]:
    """Wall-clock seconds of a call, and its result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def memory(what: str) -> float:
    """Megabytes of this process: ``VmRSS`` now, ``VmHWM`` the peak; NaN where not on Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    # Not ru_maxrss: after fork and exec it starts from the memory of the parent process.
    lines = status.read_text().splitlines()
    (found,) = (line for line in lines if line.startswith(f"{what}:"))
    return int(found.split()[1]) * 1024 / 1e6


def interleave(
    title: str, contenders: Mapping[str, Callable[[], Seconds]], repeats: int
) -> dict[str, Seconds]:
    """The fastest run of each contender, by step; contenders alternate."""
    runs: dict[str, list[Seconds]] = {name: [] for name in contenders}
    started = time.perf_counter()
    for turn in range(max(repeats, MAX_REPEATS)):
        spent = time.perf_counter() - started
        if turn >= repeats and (repeats == 1 or spent > SECONDS_FOR_MORE):
            break
        for name, work in contenders.items():
            gc.collect()
            runs[name].append(work())
    best = {name: min(taken, key=lambda run: sum(run.values())) for name, taken in runs.items()}
    summary = ", ".join(f"{name} {sum(run.values()):.3f} s" for name, run in best.items())
    log(f"{title}: {summary} (of {len(next(iter(runs.values())))})")
    return best


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Slope of log seconds on log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def times(slow: float, fast: float) -> str:
    """How many times as long."""
    ratio = slow / fast
    return f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"


def machine() -> dict[str, str]:
    """Machine, library versions and date of the measurement."""
    return {
        "cpu": _cpu_name(),
        "architecture": platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "mcce": mcce.__version__,
        **{name: version(name) for name in ("numpy", "pandas", "scikit-learn")},
        "date": time.strftime("%Y-%m-%d"),
    }


def write(tables: Sequence[Table], name: str = "speed", **numbers: Any) -> None:
    """Write all tables as Markdown and, with further numbers, as JSON."""
    OUT.mkdir(parents=True, exist_ok=True)
    where = machine()
    line = ", ".join(f"{name} {value}" for name, value in where.items())
    text = "\n".join(
        [f"# {name.capitalize()}\n\n{line}\n", *(table.markdown() for table in tables)]
    )
    (OUT / f"{name}.md").write_text(text, encoding="utf-8")
    report = {"machine": where, "tables": [asdict(table) for table in tables], **numbers}
    (OUT / f"{name}.json").write_text(json.dumps(report, indent=1, ensure_ascii=False))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cpu_name() -> str:
    """The name of the processor by lscpu."""
    try:
        output = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in output.splitlines() if "Model name" in line]
    return names[0] if names else "unknown"
