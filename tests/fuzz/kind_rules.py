"""Hostile rule files and conditions: read or refused in few words, little time and little memory.

A case is one file and one condition, each in a process of its own that is measured.
"""

from __future__ import annotations

import os
import resource
from functools import cache, lru_cache, partial
from typing import Any

import limited
from fuzz_report import Report
from hostile_conditions import CONDITION_RECIPES, hostile_conditions
from hostile_rules import FILE_RECIPES, HostileFile, hostile_files
from limited import Taken, run_limited
from read_hostile_rules import MAX_CPU_SECONDS, MAX_MB, try_condition, try_file

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
# The address sanitizer surrounds and keeps every allocation, and checks every access.
FACTOR = 4.0 if SANITIZED else 1.0
if SANITIZED:
    limited.KILL_BYTES = resource.RLIM_INFINITY


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """Read one file and one condition."""
    made = _files(seed // len(FILE_RECIPES))[seed % len(FILE_RECIPES)]
    text = _conditions(seed // len(CONDITION_RECIPES))[seed % len(CONDITION_RECIPES)]
    for name, task in (
        (f"file {made.name}", partial(try_file, made)),
        (f"condition {text[:60]!r}", partial(try_condition, text)),
    ):
        taken, idle = run_limited(task), _idle()
        seconds, mb = taken.cpu_seconds - idle.cpu_seconds, taken.peak_mb - idle.peak_mb
        report.peak(f"CPU seconds of a {name.split()[0]}", seconds)
        report.peak(f"MB above the baseline of a {name.split()[0]}", mb)
        report.counts[f"{name.split()[0]}s"] += 1
        report.counts["refused"] += taken.outcome.startswith("ok: refused")
        report.check(taken.outcome.startswith("ok"), f"{name}: {taken.outcome}")
        report.check(seconds <= FACTOR * MAX_CPU_SECONDS, f"{name} took {seconds:.1f} s of CPU")
        report.check(mb <= FACTOR * MAX_MB, f"{name} took {mb:.0f} MB")


@lru_cache(maxsize=1)
def _files(seed: int) -> list[HostileFile]:
    return list(hostile_files(seed, len(FILE_RECIPES)))


@lru_cache(maxsize=1)
def _conditions(seed: int) -> list[str]:
    return list(hostile_conditions(seed, len(CONDITION_RECIPES)))


@cache
def _idle() -> Taken:
    """What a process takes that does nothing, after everything that reading needs is imported."""
    plain = '[[rules]]\nrelation = {name = "x", holds = "age > 1"}\n'
    for name in ("warm.toml", "warm.yaml"):
        try_file(HostileFile(name, plain.encode()))
    return run_limited(lambda: "ok")
