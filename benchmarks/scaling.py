"""Growth of memory and time, and speed-up by threads.

Peak memory is measured in a separate process for each number of factuals, started as
``python benchmarks/scaling.py N``.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cases import declined, gaussian, load, with_distinct_ages
from mcce import MCCE
from mcce_lab.experiments.case import Case
from measure import Table, cpu, exponent, interleave, log, memory, times, wall

MEMORY_AT_MOST = 100.0
THREADS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Scope:
    """What is measured: data sets (None: all), small sizes only, repeats of each."""

    only: Sequence[str] | None
    quick: bool
    repeats: int
    million: bool = False

    def wants(self, name: str) -> bool:
        """Whether a data set is selected."""
        return self.only is None or name in self.only


def memory_block(scope: Scope) -> Iterator[Table]:
    """Peak memory by number of people."""
    if not Path("/proc/self/clear_refs").exists():
        log("memory is skipped: it is read from /proc, which only Linux has")
        return
    if not scope.wants("adult") or load("adult") is None:
        return
    sizes = [1_000, 10_000 if scope.quick else 100_000, *([1_000_000] if scope.million else [])]
    lines = []
    peak: dict[int, float] = {}
    for size in sizes:
        usage = _in_a_process(size)
        peak[size] = usage["peak"]
        growth = f"{usage['peak'] - peak[sizes[0]]:.0f}"
        log(f"memory of {size} people: {usage['peak']:.0f} MB in {usage['explain']:.1f} CPU s")
        given = [f"{usage[name]:.0f}" for name in ("fit", "before", "peak", "people", "result")]
        bound = f"{MEMORY_AT_MOST:g}" if size == 100_000 else ""
        lines.append([str(size), *given, growth, bound, f"{usage['explain']:.2f}"])
    headings = ["people", "peak of fit MB", "before explain MB", "peak of explain MB"]
    headings += ["people MB", "result MB", "growth MB", "at most", "explain CPU s"]
    note = "Adult, K = 1000, declined rows drawn with replacement; one process each. People and "
    note += "result are the input and output frames; growth is that of the peak of explain and "
    note += "includes both."
    yield Table("Memory", headings, lines, note)


def growth_block(scope: Scope) -> Iterator[Table]:
    """Growth exponents: the slope of log time on log size."""
    lines = []
    for title, sizes, work in _ladders(scope):
        contenders = {str(size): partial(_seconds, partial(work, size)) for size in sizes}
        best = interleave(title, contenders, scope.repeats)
        seconds = [run["cpu"] for run in best.values()]
        measured = " / ".join(f"{spent:.3f}" for spent in seconds)
        linear_log = exponent(sizes, [size * np.log(size) for size in sizes])
        shown = " / ".join(map(str, sizes))
        lines.append(
            [title, shown, measured, f"{exponent(sizes, seconds):.2f}", f"{linear_log:.2f}"]
        )
    headings = ["growth", "sizes", "CPU s", "exponent", "exponent of n log n"]
    yield Table("Growth", headings, lines, "1 is linear. Fixed costs lower it.")


def threads_block(scope: Scope) -> Iterator[Table]:
    """Wall-clock seconds by number of threads."""
    n_factuals = 10_000 if scope.quick else 100_000
    counts = [n_jobs for n_jobs in THREADS if n_jobs <= (os.cpu_count() or 1)]
    lines = []
    for name in ("gmc", "adult"):
        case = load(name) if scope.wants(name) else None
        if case is None:
            continue
        people = case.factuals if name == "gmc" else declined(case, n_factuals)
        title = f"threads on {name}"
        case = replace(case, factuals=people)
        contenders = {str(n_jobs): partial(_wall, case, n_jobs) for n_jobs in counts}
        best = interleave(title, contenders, scope.repeats)
        one = best["1"]
        for n_jobs, run in best.items():
            speedups = [times(one[step], run[step]) for step in run]
            seconds = [f"{run[step]:.3f}" for step in run]
            lines.append([f"{name}, {len(people)} people", n_jobs, *seconds, *speedups])
    headings = ["wall-clock", "n_jobs", "fit s", "explain s", "fit", "explain"]
    yield Table("Threads", headings, lines)


def explain_many(n_factuals: int) -> dict[str, float]:
    """Megabytes and CPU seconds of explaining some people in this process."""
    case = load("adult")
    assert case is not None
    explainer = case.explainer().fit(case.train)
    people = declined(case, n_factuals)
    fitted = memory("VmHWM")
    gc.collect()
    _reset_peak()
    before = memory("VmRSS")
    seconds, result = cpu(partial(explainer.explain, people))
    peak = memory("VmHWM")
    frames = (result.frame, result.measures, result.people)
    size = sum(frame.memory_usage(deep=True).sum() for frame in frames) / 1e6
    return {
        "peak": peak,
        "before": before,
        "fit": fitted,
        "people": float(people.memory_usage(deep=True).sum()) / 1e6,
        "result": float(size),
        "explain": seconds,
    }


def _ladders(scope: Scope) -> Iterator[tuple[str, list[int], Callable[[int], object]]]:
    """What grows, its sizes, and the work at each size."""
    n_steps = 3 if scope.quick else 5
    adult = load("adult") if scope.wants("adult") else None
    if adult is not None:
        case = with_distinct_ages(adult, declined(adult, 500 * 2 ** (n_steps - 1)))
        explainer = case.explainer().fit(case.train)
        together = declined(adult, 2_000 * 2 ** (n_steps - 1))
        together = together.assign(age=together["age"].astype(float))
        sizes = [500 * 2**step for step in range(n_steps)]
        larger = [4 * size for size in sizes]
        yield "people, no two alike", sizes, lambda n: explainer.explain(case.factuals.head(n))
        yield "people, sharing", larger, lambda n: explainer.explain(together.head(n))
        yield "K, no two alike", sizes, partial(_explain_with, explainer, case)
    sizes = [8_000 * 2**step for step in range(n_steps)]
    rows = {size: gaussian(10, size, 1, 1_000) for size in sizes}
    yield "n_train, 10 Gaussians", sizes, lambda n: rows[n].explainer().fit(rows[n].train)


def _explain_with(explainer: MCCE, case: Case, n_samples: int) -> object:
    return explainer.set_params(n_samples=n_samples).explain(case.factuals.head(500))


def _seconds(work: Callable[[], object]) -> dict[str, float]:
    return {"cpu": cpu(work)[0]}


def _wall(case: Case, n_jobs: int) -> dict[str, float]:
    explainer = case.explainer(n_jobs=n_jobs)
    fit, _ = wall(partial(explainer.fit, case.train))
    return {"fit": fit, "explain": wall(partial(explainer.explain, case.factuals))[0]}


def _in_a_process(n_factuals: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, str(n_factuals)], stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def _reset_peak() -> None:
    """Reset ``VmHWM``, so that the peak of fitting does not hide that of explaining."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(explain_many(int(sys.argv[1]))))
