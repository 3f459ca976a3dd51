"""How the computation time of the three steps grows.

Paper, section "Experiment 4": its table over all combinations of four quantities, and its figures
of one quantity at a time. Gaussian rows, f their sum, desired above 0, no immutable features.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..datasets import ABOVE_ZERO, simulate, total
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    PublishedTable,
    Report,
)
from .report.figures import COLOURS, legend_below, panels
from .timing import (
    CPU_AND_WALL_CLOCK,
    STEPS,
    growth,
    time_steps,
)


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
# What the paper's section on theoretical complexity states for large sizes.
THEORY = {
    ("p", "model"): (2.0, "quadratic in q"),
    ("p", "generate"): (1.0, "linear in q"),
    ("p", "postprocess"): (1.0, "linear in u + q; in the paper's figure it does not grow"),
    ("n_samples", "generate"): (1.0, "linear in K"),
    ("n_samples", "postprocess"): (1.0, "linear in K"),
    ("n_train", "model"): (1.0, "n log n, an exponent slightly above 1"),
    ("n_train", "generate"): (0.0, "log n, an exponent slightly above 0"),
    ("n_test", "generate"): (
        1.0,
        "linear in n_test; without immutable features all people share one set of draws here, "
        "see the line with one immutable feature",
    ),
    ("n_test", "postprocess"): (1.0, "linear in n_test"),
}
N_FITTED = 3  # the largest sizes; small ones are dominated by the fixed cost of a call


def run(options: Options, progress: ProgressLine) -> Report:
    """Time the combinations of the table, then one quantity at a time."""
    report = EXPERIMENT.report()
    swept = _sweeps(options.quick)
    combinations = COMBINATIONS[:1] if options.quick else COMBINATIONS
    progress.plan(options.seeds * (len(combinations) + len(swept)))
    _time(Setting(n_samples=100), 0)  # the first call loads modules for all others
    table = _time_all(combinations, options.seeds, progress)
    report.tables["combinations"] = table.drop(columns="n_immutable")
    report.published["combinations"] = PublishedTable(
        _published(), 'table "Overview" of Experiment 4'
    )
    _compare_with_published(report, table)
    sweeps = _time_all([setting for _, setting in swept], options.seeds, progress)
    sweeps.insert(0, "varied", [varied for varied, _ in swept])
    report.tables["one_at_a_time"] = sweeps
    report.tables["growth"] = _exponents(sweeps)
    report.figures["runtimes"] = _draw(sweeps)
    report.captions["runtimes"] = (
        "CPU seconds of one thread, means over runs with new rows; one quantity varies, the others "
        f"stay at {', '.join(f'{k} {v:,}' for k, v in Setting()._asdict().items())}."
    )
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


def _compare_with_published(report: Report, ours: pd.DataFrame) -> None:
    """Total seconds of each combination next to the published ones."""
    for (_, theirs), (_, own) in zip(_published().iterrows(), ours.iterrows(), strict=False):
        sizes = ", ".join(f"{name} {int(theirs[name]):,}" for name in SIZES)
        both = theirs["total"], own["total"]
        report.add_comparison(f"total seconds, {sizes}", *both, CPU_AND_WALL_CLOCK)


def _exponents(sweeps: pd.DataFrame) -> pd.DataFrame:
    """Fitted exponents of each step next to the theoretical ones."""
    lines = []
    for varied, rows in sweeps.groupby("varied", sort=False):
        quantity = str(varied).split(",")[0]
        for step in STEPS[:-1]:
            theory, remark = THEORY.get((quantity, step), (np.nan, ""))
            if not remark:
                continue
            last = rows.tail(N_FITTED)
            fitted = growth(last[quantity].to_list(), last[step].to_list())
            lines.append(
                {"varied": varied, "step": step, "paper": theory, "ours": fitted, "remark": remark}
            )
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


EXPERIMENT = Experiment(
    name="scaling",
    title="Experiment 4: computation time by people, rows, features and samples",
    about=(
        'Experiment 4, its table "Overview of the computational times" and its four figures of '
        "run time by p, K, n_train and n_test. Equally correlated Gaussian rows; f is the sum of "
        "the features, a sum above 0 is desired, nothing is immutable."
    ),
    run=run,
    datasets=(),
    remarks=lambda tables: [
        "Ours are CPU seconds of one thread, the paper's are wall-clock seconds on 16 cores of "
        "another machine, means over 10 runs: their ratio says nothing about the code. For that "
        "see the experiment authors.",
        f"Exponents are fitted to the {N_FITTED} largest sizes. The paper's figures are pictures "
        "without numbers, so its theoretical exponents are shown next to ours.",
        "Post-processing includes the fixed cost of a call. The predictor scores only the best "
        "candidates until one is valid, not all K.",
        "The paper's text counts q - 1 trees; there are q conditionals, and q trees are timed.",
    ],
)
