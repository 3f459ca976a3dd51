"""How the computation time of the three steps grows.

Paper, section "Experiment 4": its table over all combinations of four quantities, and its figures
of one quantity at a time. Gaussian rows, f their sum, desired above 0, no immutable features.
Appendix "Simulations mimicking real data experiments": simulated rows with the sizes of the real
data sets, and these themselves. Ours are CPU seconds of one thread, the paper's wall-clock seconds
on 16 cores of another machine: their ratio says nothing about the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from ..datasets import ABOVE_ZERO, DatasetName, simulate, simulate_like, total
from .case import (
    AT_LEAST_HALF,
    N_FACTUALS,
    N_FACTUALS_OF,
    N_FACTUALS_QUICK,
    STEPS,
    growth,
    prepare_case,
    time_steps,
)
from .experiment import Experiment, Options, ProgressLine, Report
from .report import COLOURS, legend_below, panels


class Setting(NamedTuple):
    """Sizes of one measurement; ``n_immutable`` of the ``p`` features are immutable."""

    n_test: int = 1
    n_train: int = 1000
    p: int = 10
    n_samples: int = 10_000
    n_immutable: int = 0


SIZES = ["n_test", "n_train", "p", "n_samples"]
# Model, generation and post-processing in seconds; combinations in the order of `product`.
PUBLISHED = [
    (0.04, 0.11, 0.09),
    (0.04, 0.75, 0.12),
    (1.25, 0.83, 0.09),
    (1.25, 5.10, 0.15),
    (0.48, 0.07, 0.09),
    (0.48, 0.46, 0.12),
    (12.05, 0.95, 0.10),
    (12.05, 5.39, 0.15),
    (0.05, 3.70, 0.99),
    (0.04, 38.26, 3.36),
    (1.24, 24.89, 1.03),
    (1.24, 264.63, 6.21),
    (0.48, 2.07, 0.70),
    (0.49, 25.16, 3.01),
    (12.06, 24.87, 1.04),
    (12.00, 268.76, 6.03),
]
COMBINATIONS = [
    Setting(*sizes) for sizes in product((1, 50), (1000, 10_000), (5, 30), (10_000, 100_000))
]
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


def run(options: Options, progress: ProgressLine) -> Report:
    """Time the combinations of the table, then one quantity at a time."""
    report = Report()
    swept = _sweeps(options.quick)
    combinations = COMBINATIONS[:1] if options.quick else COMBINATIONS
    progress.plan(options.seeds * (len(combinations) + len(swept)))
    _time(Setting(n_samples=100), 0)  # the first call loads modules for all others
    table = _time_all(combinations, options.seeds, progress)
    report.tables["combinations"] = table.drop(columns="n_immutable").assign(
        published_total=_published()["total"]
    )
    sweeps = _time_all([setting for _, setting in swept], options.seeds, progress)
    sweeps.insert(0, "varied", [varied for varied, _ in swept])
    report.tables["one_at_a_time"] = sweeps
    report.tables["growth"] = _exponents(sweeps)
    report.figures["runtimes"] = _draw(sweeps)
    return report


def _sweeps(quick: bool) -> list[tuple[str, Setting]]:
    """Each quantity at each of its sizes, and factuals that cannot share draws."""
    swept = []
    for varied, sizes in SWEEPS.items():
        for size in sizes[:N_FITTED] if quick else sizes:
            setting = Setting()._replace(**{varied: size})
            swept.append((varied, setting))
            if varied == "n_test":
                swept.append(("n_test, one immutable", setting._replace(n_immutable=1)))
    return swept


def _time_all(settings: Sequence[Setting], seeds: int, progress: ProgressLine) -> pd.DataFrame:
    """One row per setting: mean CPU seconds of each step."""
    lines = []
    for setting in settings:
        runs = []
        for seed in range(seeds):
            progress.step(", ".join(f"{k} {v:,}" for k, v in setting._asdict().items()))
            runs.append(_time(setting, seed))
        means = pd.DataFrame(runs).mean().to_dict()
        lines.append(setting._asdict() | {"runs": seeds} | means)
    return pd.DataFrame(lines)


def _time(setting: Setting, seed: int) -> dict[str, float]:
    n_immutable = setting.n_immutable
    train = simulate(setting.n_train, setting.p, n_immutable=n_immutable, seed=2 * seed)
    drawn = simulate(4 * setting.n_test + 20, setting.p, seed=2 * seed + 1)
    people = drawn.features[drawn.target <= 0].head(setting.n_test)
    return time_steps(
        total,
        train.features,
        people,
        immutable=train.immutable,
        desired=ABOVE_ZERO,
        n_samples=setting.n_samples,
        seed=seed,
    )


def _published() -> pd.DataFrame:
    steps = pd.DataFrame(PUBLISHED, columns=list(STEPS[:-1]))
    sizes = pd.DataFrame(COMBINATIONS).drop(columns="n_immutable")
    return sizes.join(steps.assign(total=steps.sum(axis=1).round(2)))


def _exponents(sweeps: pd.DataFrame) -> pd.DataFrame:
    """Fitted exponents of each step next to the theoretical ones."""
    lines = []
    for varied, rows in sweeps.groupby("varied", sort=False):
        quantity = str(varied).split(",")[0]
        for step in STEPS[:-1]:
            if (quantity, step) not in THEORY:
                continue
            last = rows.tail(N_FITTED)
            fitted = growth(last[quantity].to_list(), last[step].to_list())
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
        alone = sweeps[sweeps["varied"] == f"{quantity}, one immutable"]
        if len(alone):
            label = "generate, one immutable feature"
            axis.loglog(alone[quantity], alone["generate"], "s--", color=COLOURS[1], label=label)
        sizes = rows[quantity].to_list()
        axis.set_xticks(sizes, [_brief(size) for size in sizes])
        axis.set_xticks([], minor=True)
        axis.set(xlabel=head, ylabel="CPU seconds")
    legend_below(figure, axes)
    return figure


def _brief(size: int) -> str:
    """A size in few characters: 300k, 1M."""
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if size >= unit:
            return f"{size // unit}{letter}"
    return str(size)


SCALING = Experiment(
    name="scaling",
    title="Experiment 4: computation time by people, rows, features and samples",
    run=run,
    datasets=(),
)


# Model, generation, post-processing and total in wall-clock seconds of simulated rows.
MIMIC_PUBLISHED: dict[DatasetName, tuple[float, ...]] = {
    "adult": (10.28, 9.60, 7.30, 27.18),
    "gmc": (34.28, 8.05, 7.19, 49.52),
    "german": (0.56, 5.38, 1.46, 7.40),
    "fico": (7.60, 33.42, 7.53, 48.55),
}
# Total of the real data sets in the table of Experiment 1; the appendix states 25, 32, 6 and 34.
REAL_PUBLISHED: dict[DatasetName, float] = {
    "adult": 15.00,
    "gmc": 19.58,
    "german": 3.71,
    "fico": 15.47,
}
N_SAMPLES = 1000
# From a data set, the most people and a seed to their number and seconds by step.
Timer: TypeAlias = Callable[[DatasetName, int, int], dict[str, float]]


def run_mimic(options: Options, progress: ProgressLine) -> Report:
    """Time simulated rows of the size of each data set, and the data set itself."""
    report = Report()
    progress.plan(len(options.datasets) * (1 + options.seeds))
    lines: list[dict[Any, Any]] = []
    for name in options.datasets:
        n_test = N_FACTUALS_QUICK if options.quick else N_FACTUALS_OF.get(name, N_FACTUALS)
        real = _timer_of(name, options)
        for rows, timer in (("simulated", _time_simulated), ("real", real)):
            runs = []
            for seed in range(options.seeds if rows == "simulated" else 1):
                progress.step(f"{name}, {rows}, run {seed}")
                runs.append(timer(name, n_test, seed))
            means: dict[Any, float] = pd.DataFrame(runs).mean().to_dict()
            labels = {"dataset": name, "rows": rows, "source": "ours"}
            lines.append(labels | {"runs": len(runs)} | means)
        lines += _published_times(name)
    columns = ["dataset", "rows", "source", "runs", "n_test", *STEPS]
    report.tables["seconds"] = pd.DataFrame(lines)[columns].astype(
        {"runs": "Int64", "n_test": "Int64"}
    )
    return report


def _published_times(name: DatasetName) -> list[dict[str, Any]]:
    """Wall-clock seconds of another machine, of which those of real rows have no parts."""
    labels = {"dataset": name, "source": "published"}
    simulated = dict(zip(STEPS, MIMIC_PUBLISHED[name], strict=True))
    return [
        labels | {"rows": "simulated"} | simulated,
        labels | {"rows": "real", "total": REAL_PUBLISHED[name]},
    ]


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


MIMIC = Experiment(
    name="mimic",
    title="Computation time of simulated rows with the sizes of the real data sets",
    run=run_mimic,
    datasets=("adult", "gmc", "german", "fico"),
)
