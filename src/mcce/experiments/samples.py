"""Experiment 2: how answers and times change with the number of samples K."""

from __future__ import annotations

from typing import Any

import pandas as pd

from . import published
from .case import explained, measured, over_seeds, prepare, size_remark
from .experiment import Experiment, Options, Progress, Published, Report, at_most, row_of
from .report.figures import OURS, PUBLISHED, legend_below, panels

K = (10, 50, 100, 1000, 5000, 10_000, 25_000)
QUICK_K = (10, 50, 100)
COLUMNS = [
    *("dataset", "source", "k", "l0", "l0_sd", "l0_exact", "l0_exact_sd", "l1", "l1_sd"),
    *("violation", "success", "n_ce", "coverage"),
    *("model", "generate", "postprocess", "total", "seconds", "l0_seeds", "l1_seeds"),
]


def run(options: Options, progress: Progress) -> Report:
    """Every K on every data set, beside the paper's table for Adult."""
    report = EXPERIMENT.report()
    table = by_samples(report, options, progress, published.SAMPLES)
    report.figures["samples"] = _drawn(table)
    report.remarks.append(
        "Times are seconds by the clock in one thread; postprocess includes the calls of the black "
        "box, of which a few per person are enough here, while the paper's code asks about all K."
    )
    return report


def by_samples(
    report: Report, options: Options, progress: Progress, printed: Published, **settings: Any
) -> pd.DataFrame:
    """Measures by K with these settings of MCCE, put into the report beside what is printed."""
    report.published["samples"] = printed
    numbers = QUICK_K if options.quick else K
    progress.plan(len(options.datasets) * (1 + len(numbers) * options.seeds))
    rows: list[dict[str, Any]] = []
    for name in options.datasets:
        progress.step(f"{name}: rows and black box")
        case = prepare(name, options)
        if name == "adult":
            rows += [row | {"dataset": name} for row in printed.rows()]
        for k in numbers:
            runs = []
            for seed in range(options.seeds):
                progress.step(f"{name}: K = {k:,}, seed {seed}")
                runs.append(measured(case, explained(case, seed, n_samples=k, **settings)))
            told = over_seeds(runs)
            total = told["model"] + told["generate"] + told["postprocess"]
            rows.append({"dataset": name, "source": "ours", "k": k, "total": total} | told)
        report.remarks.append(size_remark(case, options))
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    report.tables["samples"] = table
    _hold(report, table)
    return table


def _hold(report: Report, table: pd.DataFrame) -> None:
    """The paper's costs and numbers of answers beside ours, K by K."""
    for k in table.loc[table["source"] == "published", "k"]:
        theirs = row_of(table, source="published", k=k)
        ours = row_of(table, dataset="adult", source="ours", k=k)
        for measure in ("l0", "l1"):
            both = theirs[measure], ours[measure]
            report.hold(f"K = {k:,}: {measure}", *both, at_most(*both[::-1]))
        report.hold(f"K = {k:,}: n_ce", theirs["n_ce"], ours["n_ce"])


def _drawn(table: pd.DataFrame) -> Any:
    """Costs and times by K."""
    figure, axes = panels(1, 3, size=(3.2, 2.7))
    titles = {"l0": "changes (L0)", "l1": "L1", "total": "seconds in all"}
    for panel, (measure, title) in zip(axes[0], titles.items(), strict=True):
        draw_lines(panel, table, measure)
        panel.set_title(title)
        if measure == "total":
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
    legend_below(figure, axes)
    return figure


def draw_lines(panel: Any, table: pd.DataFrame, measure: str) -> None:
    """A measure by K, a line per data set and source."""
    for (name, source), rows in table.groupby(["dataset", "source"], sort=False):
        ours = source == "ours"
        panel.plot(
            rows["k"],
            rows[measure],
            marker="o" if ours else "s",
            linestyle="-" if ours else "--",
            color=OURS if ours else PUBLISHED,
            label=f"{name}, {'ours' if ours else 'paper'}",
        )
    panel.set_xscale("log")
    panel.set_xlabel("samples K")


EXPERIMENT = Experiment(
    name="samples",
    title="Experiment 2: answers and times by the number of samples K",
    about=(
        "The table of Experiment 2: Adult, the first 1,000 people whom the network declines, K "
        "from 10 to 25,000. l0 counts differences above 1e-5 of the range, l0_exact all; brackets "
        "hold standard deviations over people; model, generate, postprocess and total are seconds "
        "by the clock in one thread, seconds are CPU seconds."
    ),
    run=run,
    datasets=("adult",),
)
