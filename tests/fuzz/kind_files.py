"""Saved files with random changes and matching checksums: refused, or loaded and explained thrice.

The worker writes a few small explainers once and changes a copy of one for every case.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_report import Report
from mutate_files import run_file, write_mutated
from saved_explainers import Saved, write_saved


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """Load and explain one changed file."""
    folder, saved = _saved()
    names = sorted(saved)
    one = saved[names[seed % len(names)]]
    target = Path(folder.name) / "mutated.mcce"
    done = write_mutated(one.path, target, seed)
    outcome = run_file(target, one.predictor, one.people)
    report.counts[outcome.partition(":")[0]] += 1
    report.check(not outcome.startswith("broken"), f"{one.path.stem}: {done}: {outcome}")


@cache
def _saved() -> tuple[tempfile.TemporaryDirectory[str], dict[str, Saved]]:
    folder = tempfile.TemporaryDirectory()
    return folder, write_saved(Path(folder.name))
