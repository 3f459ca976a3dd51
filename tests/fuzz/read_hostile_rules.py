"""Reads hostile rule files and conditions, each in a process of its own with limits.

Prints one JSON line with the largest figures. Fails if a case raises anything but
``ConstraintError``, is killed, or takes more time, memory or words than promised:

    python tests/fuzz/read_hostile_rules.py --files 2000 --conditions 2000 --seed 0
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from hostile_conditions import hostile_conditions
from hostile_rules import HostileFile, hostile_files
from limited import Taken, report, run_limited
from mcce import ConstraintError, Schema
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.constraints.rows import Frozen, Relation

MAX_CPU_SECONDS, MAX_MB, MAX_MESSAGE = 2.0, 200.0, 600


def people(n_rows: int) -> pd.DataFrame:
    """Rows with the columns that the hostile rules name."""
    chance = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": chance.integers(18, 70, n_rows),
            "years": chance.integers(0, 40, n_rows),
            "salary": chance.integers(10, 90, n_rows).astype(float),
            "housing": chance.choice(["rent", "own", "boat"], n_rows),
        }
    )


FRAME = people(1000)
SCHEMA = Schema.learn(FRAME)


def try_constraints(given: object) -> None:
    """Bind constraints and compute their conditions."""
    rows = SCHEMA.encode(FRAME)
    for constraint in Constraints.bind(given, SCHEMA).listed:
        if isinstance(constraint, Relation):
            constraint.holds(FRAME, SCHEMA.adapter)
        if isinstance(constraint, Frozen):
            constraint.holds_for(FRAME, FRAME.index, rows.adapter)


def try_file(made: HostileFile) -> str:
    """Read a file."""
    with tempfile.TemporaryDirectory() as folder:
        return judged(partial(try_constraints, made.write(Path(folder))))


def try_condition(text: str) -> str:
    """Compute a condition."""
    return judged(lambda: try_constraints([c.relation("x", text)]))


def judged(work: Callable[[], None]) -> str:
    """``ok`` if it works, or is refused in a few printable words."""
    try:
        work()
    except ConstraintError as error:
        message = str(error)
        if len(message) > MAX_MESSAGE or not message.isprintable():
            return f"wrong: {len(message)} characters: {message[:200]!r}"
        return f"ok: refused: {message}"
    return "ok: accepted"


def within(taken: Taken, idle: Taken) -> Taken:
    """The same, but not ok if it took too much."""
    seconds, mb = taken.cpu_seconds - idle.cpu_seconds, taken.peak_mb - idle.peak_mb
    if taken.outcome.startswith("ok") and (seconds > MAX_CPU_SECONDS or mb > MAX_MB):
        return Taken(f"too much: {taken.outcome[:80]}", taken.cpu_seconds, taken.peak_mb)
    return taken


def cases(n_files: int, n_conditions: int, seed: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """All tasks with their names."""
    for number, made in enumerate(hostile_files(seed, n_files)):
        yield f"file {number} {made.name}", partial(try_file, made)
    for number, text in enumerate(hostile_conditions(seed, n_conditions)):
        yield f"condition {number}", partial(try_condition, text)


def main() -> int:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--conditions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    plain = '[[rules]]\nrelation = {name = "x", holds = "age > 1"}\n'
    for name in ("warm.toml", "warm.yaml"):
        try_file(HostileFile(name, plain.encode()))  # imports what reading needs
    idle = run_limited(lambda: "ok")
    taken = [
        (name, within(run_limited(task), idle))
        for name, task in cases(given.files, given.conditions, given.seed)
    ]
    return report(taken, idle)


if __name__ == "__main__":
    sys.exit(main())
