"""How the computation time of the three steps grows.

Paper, section "Experiment 4": its table over all combinations of four quantities, and its figures
of one quantity at a time. Gaussian rows, f their sum, desired above 0, no immutable features.
Appendix "Simulations mimicking real data experiments": simulated rows with the sizes of the real
data sets, and these themselves. Ours are CPU seconds of one thread, the paper's wall-clock seconds
on 16 cores of another machine: their ratio says nothing about the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.datasets import Dataset

from ..datasets import ABOVE_ZERO, DatasetName, simulate, simulate_like, total
from .case import (
    N_FACTUALS,
    N_FACTUALS_OF,
    N_FACTUALS_QUICK,
    STEPS,
    Case,
    prepare_case,
    run_mcce,
)
from .experiment import Experiment, Options, ProgressLine, Report, published, records
from .report import COLOURS, legend_below, panels


class Sizes(NamedTuple):
    """Sizes of one measurement; ``n_immutable`` of the ``p`` features are immutable."""

    n_test: int = 1
    n_train: int = 1000
    p: int = 10
    n_samples: int = 10_000
    n_immutable: int = 0


SWEEPS: dict[str, Sequence[int]] = {
    "p": (5, 10, 20, 50, 100),
    "n_samples": (1000, 10_000, 100_000, 300_000, 1_000_000),
    "n_train": (1000, 3000, 10_000, 30_000, 100_000),
    "n_test": (1, 10, 100, 300, 1000),
}
# Exponents that the paper's section on theoretical complexity states for large sizes. Those of
# n_train come with a logarithm, so a little more is expected; without immutable features all
# people share one set of draws here, so for n_test see the line with one immutable feature.
THEORY = {
    ("p", "model"): 2.0,
    ("p", "generate"): 1.0,
    ("p", "postprocess"): 1.0,
    ("n_samples", "generate"): 1.0,
    ("n_samples", "postprocess"): 1.0,
    ("n_train", "model"): 1.0,
    ("n_train", "generate"): 0.0,
    ("n_test", "generate"): 1.0,
    ("n_test", "postprocess"): 1.0,
}
N_FITTED = 3  # the largest sizes; small ones are dominated by the fixed cost of a call
ALONE = "one immutable"


def run(options: Options, progress: ProgressLine) -> Report:
    """Time the combinations of the table, then one quantity at a time."""
    report = Report()
    printed = published("scaling").head(1 if options.quick else 100)
    combinations = [Sizes(*sizes) for sizes in printed[[*Sizes._fields[:4]]].to_numpy().tolist()]
    swept = _sweeps(options.quick)
    progress.plan(options.seeds * (len(combinations) + len(swept)))
    _time(Sizes(n_samples=100), 0)  # the first call loads modules for all others
    table = _time_all(combinations, options.seeds, progress).drop(columns="n_immutable")
    report.tables["combinations"] = table.assign(published_total=printed["total"].to_numpy())
    sweeps = _time_all([sizes for _, sizes in swept], options.seeds, progress)
    sweeps.insert(0, "varied", [varied for varied, _ in swept])
    report.tables |= {"one_at_a_time": sweeps, "growth": _exponents(sweeps)}
    report.figures["runtimes"] = _draw(sweeps)
    return report


def _sweeps(quick: bool) -> list[tuple[str, Sizes]]:
    """Each quantity at each of its sizes, and factuals that cannot share draws."""
    swept = []
    for varied, values in SWEEPS.items():
        for value in values[:N_FITTED] if quick else values:
            sizes = Sizes()._replace(**{varied: value})
            swept.append((varied, sizes))
            if varied == "n_test":
                swept.append((f"n_test, {ALONE}", sizes._replace(n_immutable=1)))
    return swept


def _time_all(settings: Sequence[Sizes], seeds: int, progress: ProgressLine) -> pd.DataFrame:
    """One row per setting: mean CPU seconds of each step."""
    lines = []
    for sizes in settings:
        runs = []
        for seed in range(seeds):
            progress.step(", ".join(f"{k} {v:,}" for k, v in sizes._asdict().items()))
            runs.append(_time(sizes, seed))
        lines.append(sizes._asdict() | {"runs": seeds} | pd.DataFrame(runs).mean().to_dict())
    return pd.DataFrame(lines)


def _time(sizes: Sizes, seed: int) -> dict[str, float]:
    train = simulate(sizes.n_train, sizes.p, n_immutable=sizes.n_immutable, seed=2 * seed)
    people = simulate(4 * sizes.n_test + 20, sizes.p, seed=2 * seed + 1)
    return dict(_run_simulated(train, people, sizes.n_test, sizes.n_samples, seed).steps)


def _run_simulated(train: Dataset, people: Dataset, n_test: int, n_samples: int, seed: int) -> Any:
    """MCCE on simulated rows."""
    declined = people.features[people.target <= 0].head(n_test)
    rows = train.features, declined, train.immutable
    return run_mcce(Case("simulated", *rows, total, ABOVE_ZERO, n_samples), seed)


def _exponents(sweeps: pd.DataFrame) -> pd.DataFrame:
    """The b of seconds = a * size ** b for each step, next to the theoretical one."""
    lines = []
    for varied, rows in sweeps.groupby("varied", sort=False):
        quantity, last = str(varied).split(",")[0], rows.tail(N_FITTED)
        for step in STEPS[:-1]:
            if (quantity, step) in THEORY:
                fitted = np.polyfit(np.log(last[quantity]), np.log(last[step]), 1)[0]
                paper = THEORY[quantity, step]
                lines.append({"varied": varied, "step": step, "paper": paper, "ours": fitted})
    return pd.DataFrame(lines)


def _draw(sweeps: pd.DataFrame) -> Any:
    """One panel per quantity; the paper has a figure for each."""
    figure, axes = panels(2, 2, size=(3.6, 2.7))
    heads = {"p": "features p", "n_samples": "samples K"}
    heads |= {"n_train": "training rows", "n_test": "people to explain"}
    for axis, (quantity, head) in zip(axes.ravel(), heads.items(), strict=True):
        rows = sweeps[sweeps["varied"] == quantity]
        for step, colour in zip(STEPS[:-1], COLOURS, strict=False):
            axis.loglog(rows[quantity], rows[step], "o-", color=colour, label=step)
        alone = sweeps[sweeps["varied"] == f"{quantity}, {ALONE}"]
        if len(alone):
            label = "generate, one immutable feature"
            axis.loglog(alone[quantity], alone["generate"], "s--", color=COLOURS[1], label=label)
        axis.set(xlabel=head, ylabel="CPU seconds")
    legend_below(figure, axes)
    return figure


SCALING = Experiment(
    name="scaling",
    title="Experiment 4: computation time by people, rows, features and samples",
    run=run,
    datasets=(),
)


def run_mimic(options: Options, progress: ProgressLine) -> Report:
    """Time simulated rows of the size of each data set, and the data set itself."""
    report = Report()
    progress.plan(len(options.datasets) * (1 + options.seeds))
    lines = []
    for name in options.datasets:
        progress.step(f"{name}, real")
        real = prepare_case(name, options)
        lines.append(_line(name, "real", [_timed(run_mcce(real), len(real.factuals))]))
        runs = []
        for seed in range(options.seeds):
            progress.step(f"{name}, simulated, run {seed}")
            runs.append(_mimic(name, options, seed))
        lines.append(_line(name, "simulated", runs))
        printed = published("mimic", dataset=name).assign(source="published")
        lines += records(printed)
    columns = ["dataset", "rows", "source", "runs", "n_test", *STEPS]
    report.tables["seconds"] = pd.DataFrame(lines)[columns]
    return report


def _mimic(name: DatasetName, options: Options, seed: int) -> dict[str, float]:
    n_test = N_FACTUALS_QUICK if options.quick else N_FACTUALS_OF.get(name, N_FACTUALS)
    train, people = simulate_like(name, seed=2 * seed), simulate_like(name, seed=2 * seed + 1)
    return _timed(_run_simulated(train, people, n_test, 1000, seed), n_test)


def _timed(result: Any, n_test: int) -> dict[str, float]:
    return {"n_test": n_test, **result.steps}


def _line(name: DatasetName, rows: str, runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    (means,) = records(pd.DataFrame(runs).mean().to_frame().T)
    return {"dataset": name, "rows": rows, "source": "ours", "runs": len(runs)} | means


MIMIC = Experiment(
    name="mimic",
    title="Computation time of simulated rows with the sizes of the real data sets",
    run=run_mimic,
    datasets=("adult", "gmc", "german", "fico"),
)
