"""Experiment 2: costs and times by the number of samples K."""

from __future__ import annotations

from typing import Any

import pandas as pd

from . import published
from .case import (
    average_over_seeds,
    describe_case,
    measure_result,
    prepare_case,
    run_mcce,
)
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    PublishedTable,
    Report,
    first_row,
)
from .report.figures import (
    OURS,
    PUBLISHED,
    legend_below,
    panels,
)

K = (10, 50, 100, 1000, 5000, 10_000, 25_000)
QUICK_K = (10, 50, 100)
SEED_BARS = (
    "Bars are standard deviations of the means over seeds; most are smaller than the dots. The "
    "paper has one run."
)
COLUMNS = [
    *("dataset", "source", "k", "l0", "l0_sd", "l0_exact", "l0_exact_sd", "l1", "l1_sd"),
    *("violation", "success", "n_ce", "coverage"),
    *("model", "generate", "postprocess", "total", "seconds", "l0_seeds", "l1_seeds"),
]


def run(options: Options, progress: ProgressLine) -> Report:
    """Run every K on every data set, next to the paper's table for Adult."""
    report = EXPERIMENT.report()
    table = run_by_samples(report, options, progress, published.SAMPLES)
    report.figures["samples"] = _draw(table)
    report.captions["samples"] = f"{SEED_BARS} Its wall-clock seconds are in the table only."
    return report


def run_by_samples(
    report: Report,
    options: Options,
    progress: ProgressLine,
    printed: PublishedTable,
    **settings: Any,
) -> pd.DataFrame:
    """Measure MCCE for every K and add the results to the report, next to the published ones."""
    report.published["samples"] = printed
    numbers = QUICK_K if options.quick else K
    progress.plan(len(options.datasets) * (1 + len(numbers) * options.seeds))
    rows: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        people.append(describe_case(case, options))
        if name == "adult":
            rows += [row | {"dataset": name} for row in printed.rows()]
        for k in numbers:
            runs = []
            for seed in range(options.seeds):
                progress.step(f"{name}: K = {k:,}, seed {seed}")
                runs.append(measure_result(case, run_mcce(case, seed, n_samples=k, **settings)))
            means = average_over_seeds(runs)
            rows.append({"dataset": name, "source": "ours", "k": k} | means)
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    report.tables |= {"samples": table, "people": pd.DataFrame(people)}
    _compare_with_published(report, table)
    return table


def _compare_with_published(report: Report, table: pd.DataFrame) -> None:
    """The paper's costs and numbers of counterfactuals next to ours, for each K."""
    for k in table.loc[table["source"] == "published", "k"]:
        theirs = first_row(table, source="published", k=k)
        ours = first_row(table, dataset="adult", source="ours", k=k)
        report.add_means(f"K = {k:,}:", theirs, ours)
        report.add_comparison(f"K = {k:,}: n_ce", theirs["n_ce"], ours["n_ce"])


def _draw(table: pd.DataFrame) -> Any:
    """Costs and times by K."""
    figure, axes = panels(1, 3, size=(3.2, 2.7))
    titles = {"l0": "changed features (L0)", "l1": "distance (L1)", "total": "CPU seconds"}
    for panel, (measure, title) in zip(axes[0], titles.items(), strict=True):
        # The published seconds are wall-clock seconds of another machine.
        draw_lines(
            panel, table[table["source"] == "ours"] if measure == "total" else table, measure
        )
        panel.set_ylabel(title)
        if measure == "total":
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
    legend_below(figure, axes)
    return figure


def draw_lines(panel: Any, table: pd.DataFrame, measure: str) -> None:
    """A measure by K, one line per data set and source; costs with bars over seeds."""
    for (name, source), rows in table.groupby(["dataset", "source"], sort=False):
        ours = source == "ours"
        seeds = f"{measure}_seeds"
        panel.errorbar(
            rows["k"],
            rows[measure],
            yerr=rows[seeds] if ours and seeds in rows else None,
            capsize=3,
            marker="o" if ours else "s",
            linestyle="-" if ours else "--",
            color=OURS if ours else PUBLISHED,
            label=f"{name}, {'ours' if ours else 'paper'}",
        )
    panel.set_xscale("log")
    panel.set_xlabel("samples K")


EXPERIMENT = Experiment(
    name="samples",
    title="Experiment 2: costs and times by the number of samples K",
    about=(
        "The table of Experiment 2: Adult, the first 1,000 people whom the network declines, K "
        "from 10 to 25,000. l0 counts differences above 1e-5 of the range, l0_exact counts all. "
        "Brackets hold standard deviations over people. Our times are CPU seconds of one thread: "
        "those of the three steps, their total, and seconds, which adds the predictor's "
        "decisions on the training rows. The published ones are wall-clock seconds of another "
        "machine."
    ),
    run=run,
    datasets=("adult",),
    remarks=lambda tables: [
        "Postprocess includes the predictor calls: a few rows per person suffice here, while the "
        "paper's code scores all K."
    ],
)
