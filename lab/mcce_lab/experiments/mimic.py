"""Computation times for simulated rows with the sizes of the real data sets.

Paper, appendix "Simulations mimicking real data experiments": does the time that simulated rows
take predict that of real ones? The real data set with its predictor is timed too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pandas as pd

from ..datasets import ABOVE_ZERO, DatasetName, simulate_like, total
from .case import (
    AT_LEAST_HALF,
    N_FACTUALS,
    N_FACTUALS_OF,
    N_FACTUALS_QUICK,
    prepare_case,
)
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    PublishedTable,
    Report,
    Tables,
    first_row,
)
from .timing import CPU_AND_WALL_CLOCK, STEPS, time_steps

# Model, generation, post-processing and total in seconds.
PUBLISHED: dict[DatasetName, tuple[float, ...]] = {
    "adult": (10.28, 9.60, 7.30, 27.18),
    "gmc": (34.28, 8.05, 7.19, 49.52),
    "german": (0.56, 5.38, 1.46, 7.40),
    "fico": (7.60, 33.42, 7.53, 48.55),
}
# Seconds for the real data sets: those of the appendix, and of the table of Experiment 1.
PUBLISHED_REAL: dict[DatasetName, tuple[float, float]] = {
    "adult": (25, 15.00),
    "gmc": (32, 19.58),
    "german": (6, 3.71),
    "fico": (34, 15.47),
}
N_SAMPLES = 1000
# From a data set, the most people and a seed to their number and seconds by step.
Timer: TypeAlias = Callable[[DatasetName, int, int], dict[str, float]]


def run(options: Options, progress: ProgressLine) -> Report:
    """Time simulated rows of the size of each data set, and the data set itself."""
    report = EXPERIMENT.report()
    progress.plan(len(options.datasets) * (1 + options.seeds))
    lines = []
    for name in options.datasets:
        n_test = N_FACTUALS_QUICK if options.quick else N_FACTUALS_OF.get(name, N_FACTUALS)
        real = _timer_of(name, options)
        for rows, timer in (("simulated", _time_simulated), ("real", real)):
            runs = []
            for seed in range(options.seeds if rows == "simulated" else 1):
                progress.step(f"{name}, {rows}, run {seed}")
                runs.append(timer(name, n_test, seed))
            means = pd.DataFrame(runs).mean().to_dict()
            lines.append({"dataset": name, "rows": rows, "runs": len(runs)} | means)
    table = pd.DataFrame(lines).astype({"n_test": int})
    report.tables["seconds"] = table
    printed = pd.DataFrame.from_dict(PUBLISHED, orient="index", columns=list(STEPS))
    report.published["seconds"] = PublishedTable(
        printed.rename_axis("dataset").reset_index(),
        'appendix "Simulations mimicking real data experiments"',
    )
    _compare_with_published(report, table)
    return report


def _time_simulated(name: DatasetName, n_test: int, seed: int) -> dict[str, float]:
    train, drawn = simulate_like(name, seed=2 * seed), simulate_like(name, seed=2 * seed + 1)
    people = drawn.features[drawn.target <= 0].head(n_test)
    return {"n_test": len(people)} | time_steps(
        total,
        train.features,
        people,
        immutable=train.immutable,
        desired=ABOVE_ZERO,
        n_samples=N_SAMPLES,
        seed=seed,
    )


def _timer_of(name: DatasetName, options: Options) -> Timer:
    """Times people of the real data set whom its predictor declines."""
    case = prepare_case(name, options)

    def timer(_: DatasetName, n_test: int, seed: int) -> dict[str, float]:
        people = case.factuals.head(n_test)
        return {"n_test": len(people)} | time_steps(
            case.predictor,
            case.train,
            people,
            immutable=case.immutable,
            desired=AT_LEAST_HALF,
            n_samples=N_SAMPLES,
            seed=seed,
        )

    return timer


def _compare_with_published(report: Report, table: pd.DataFrame) -> None:
    """Total seconds next to the published ones."""
    for name in (name for name in PUBLISHED if name in set(table["dataset"])):
        total_of = table[table["dataset"] == name].set_index("rows")["total"]
        theirs = PUBLISHED[name][-1]
        report.add_comparison(
            f"{name}, simulated, total seconds",
            theirs,
            total_of["simulated"],
            CPU_AND_WALL_CLOCK,
        )
        text, table_1 = PUBLISHED_REAL[name]
        report.add_comparison(
            f"{name}, real, total seconds",
            table_1,
            total_of["real"],
            f"{CPU_AND_WALL_CLOCK}; that of Experiment 1, the appendix states {text}",
        )


def remarks(tables: Tables) -> list[str]:
    """Whether simulated rows predict the time of real ones."""
    lines = []
    for name in dict.fromkeys(tables["seconds"]["dataset"]):
        simulated, real = (
            first_row(tables["seconds"], dataset=name, rows=rows)["total"]
            for rows in ("simulated", "real")
        )
        lines.append(
            f"{name}: {simulated:.2f} CPU seconds for simulated rows, {real:.2f} for the data set "
            f"itself, a ratio of {simulated / real:.1f}."
        )
    return [
        *lines,
        "Gaussian immutable features differ between all people, so nobody shares draws; real "
        "people often do.",
        "For the real data sets the appendix and the table of Experiment 1 state different seconds "
        "for the same work; both are shown.",
    ]


EXPERIMENT = Experiment(
    name="mimic",
    title="Computation time of simulated rows with the sizes of the real data sets",
    about=(
        'Appendix "Simulations mimicking real data experiments": as many Gaussian rows as each '
        "data set has, with as many features and immutable features, K = 1000; next to them the "
        "data set itself with its network; n_test is the number of people explained. Ours are "
        "CPU seconds of one thread, the paper's wall-clock seconds on 16 cores of another "
        "machine: their ratio says nothing about the code. For that see the experiment authors."
    ),
    run=run,
    datasets=("adult", "gmc", "german", "fico"),
    remarks=remarks,
)
