"""Runs a task in forked processes with limits, and measures what each takes."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass

KILL_CPU_SECONDS = 20
KILL_BYTES = 4 << 30


@dataclass(frozen=True)
class Taken:
    """What became of a task, and what it took."""

    outcome: str
    cpu_seconds: float
    peak_mb: float


def run_limited(task: Callable[[], str]) -> Taken:
    """The outcome of a task in a process of its own, which is killed if it takes far too much."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (KILL_CPU_SECONDS, KILL_CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (KILL_BYTES, KILL_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A task that waits takes no CPU; the alarm ends it, whatever it waits for.
        signal.alarm(3 * KILL_CPU_SECONDS)
        os.write(writing, _outcome(task).encode("utf-8", "backslashreplace")[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode("utf-8")
    _, status, used = os.wait4(process, 0)
    died = f"killed: signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said
    return Taken(died, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _outcome(task: Callable[[], str]) -> str:
    try:
        return task()
    except BaseException as error:
        return f"raised {type(error).__name__}: {str(error)[:200]}"


def report(taken: list[tuple[str, Taken]], idle: Taken) -> int:
    """Print the largest figures and what went wrong as one JSON line; the exit status."""
    wrong = [(name, asdict(one)) for name, one in taken if not one.outcome.startswith("ok")]
    slowest = max(taken, key=lambda pair: pair[1].cpu_seconds)
    largest = max(taken, key=lambda pair: pair[1].peak_mb)
    summary = {
        "n": len(taken),
        "n_refused": sum(one.outcome.startswith("ok: refused") for _, one in taken),
        "cpu_seconds": round(slowest[1].cpu_seconds - idle.cpu_seconds, 3),
        "slowest": slowest[0],
        "mb_above_baseline": round(largest[1].peak_mb - idle.peak_mb, 1),
        "largest": largest[0],
        "longest_message": max((len(one.outcome) for _, one in taken), default=0),
        "wrong": wrong[:20],
        "n_wrong": len(wrong),
    }
    print(json.dumps(summary))
    return int(bool(wrong))
