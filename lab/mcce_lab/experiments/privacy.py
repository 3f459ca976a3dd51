"""Section on privacy: copies of training rows, and the cost of excluding them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from mcce.search.config import Copies, Search

from . import published
from .case import (
    Case,
    average_over_seeds,
    describe_case,
    measure_result,
    prepare_case,
    run_mcce,
)
from .costs import LIKE_FOR_LIKE, OTHERS_PUBLISHED
from .experiment import (
    Estimate,
    Experiment,
    Options,
    ProgressLine,
    Report,
    Tables,
    agreement,
    first_row,
)
from .report.figures import (
    OTHER,
    OURS,
    PUBLISHED,
    legend_below,
    panels,
)

VARIANTS: dict[str, Copies] = {"as drawn": "allow", "without copies": "never"}
COLUMNS = [
    *("dataset", "source", "variant", "n_ce", "copies", "copies_%", "value_copies_%"),
    *("l0", "l0_sd", "l1", "l1_sd", "coverage", "seconds", "l0_seeds", "l1_seeds"),
]


def run(options: Options, progress: ProgressLine) -> Report:
    """Copies allowed and excluded, next to the paper's table."""
    report = EXPERIMENT.report()
    report.published["copies"] = published.COPIES
    progress.plan(len(options.datasets) * (1 + len(VARIANTS) * options.seeds))
    rows: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        people.append(describe_case(case, options))
        rows += [row | {"variant": "as drawn"} for row in published.COPIES.rows(dataset=name)]
        for variant in VARIANTS:
            labels = {"dataset": name, "source": "ours", "variant": variant}
            rows.append(labels | _measure(case, variant, options, progress))
    table = pd.DataFrame(rows)
    table["copies_%"] = 100 * table["copies"] / table["n_ce"]
    report.tables = {"copies": table.reindex(columns=COLUMNS), "people": pd.DataFrame(people)}
    _compare_with_published(report, options.datasets)
    report.figures["copies"] = _draw(report.tables["copies"], options.datasets)
    return report


def _measure(
    case: Case, variant: str, options: Options, progress: ProgressLine
) -> dict[str, float]:
    """Measures of the paper's search with or without copies, averaged over seeds."""
    search = Search.preset("paper", copies=VARIANTS[variant])
    runs = []
    for seed in range(options.seeds):
        progress.step(f"{case.name}: {variant}, seed {seed}")
        runs.append(measure_result(case, run_mcce(case, seed, search=search)))
    return average_over_seeds(runs)


def _compare_with_published(report: Report, names: Sequence[str]) -> None:
    """Shares of copies next to the paper's."""
    table = report.tables["copies"]
    for name in names:
        theirs, ours = (
            _share(first_row(table, dataset=name, source=source, variant="as drawn"))
            for source in ("published", "ours")
        )
        remark = OTHERS_PUBLISHED if name in LIKE_FOR_LIKE else agreement(theirs, ours)
        report.add_comparison(f"{name}: % copies", theirs.mean, ours.mean, remark)


def _share(row: pd.Series[Any]) -> Estimate:
    """The share of copies in %, with the standard deviation of copy or not."""
    share = row["copies"] / row["n_ce"]
    return Estimate(100 * share, 100 * (share * (1 - share)) ** 0.5, row["n_ce"])


def remarks(tables: Tables) -> list[str]:
    """What excluding copies costs, and how many values point to one person."""
    table, lines = tables["copies"], []
    ours = table[table["source"] == "ours"]
    for name, rows in ours.groupby("dataset", sort=False):
        drawn, without = (first_row(rows, variant=variant) for variant in VARIANTS)
        lines.append(
            f"{name!s}: excluding copies reduces them from "
            f"{drawn['copies_%']:.2f} % to {without['copies_%']:.2f} %; l0 goes from "
            f"{drawn['l0']:.3f} to {without['l0']:.3f}, l1 from {drawn['l1']:.3f} to "
            f"{without['l1']:.3f}, coverage from {drawn['coverage']:.3f} to "
            f"{without['coverage']:.3f}. Of the changed numbers, {drawn['value_copies_%']:.1f} % "
            "are values of exactly one training row, without copies "
            f"{without['value_copies_%']:.1f} %."
        )
    lines.append(
        "Small counts depend on chance and on the network: see the table of networks of the "
        "experiment costs. For a random forest see the experiment forest."
    )
    return lines


def _draw(table: pd.DataFrame, names: Sequence[str]) -> Any:
    """Shares of copies, a group of bars per data set."""
    figure, axes = panels(1, 1, size=(5.4, 3.2))
    panel = axes[0, 0]
    styles = {
        ("published", "as drawn"): (PUBLISHED, "paper"),
        ("ours", "as drawn"): (OURS, "ours"),
        ("ours", "without copies"): (OTHER, "ours, without copies"),
    }
    for place, ((source, variant), (colour, label)) in enumerate(styles.items()):
        rows = table[(table["source"] == source) & (table["variant"] == variant)]
        shares = rows.set_index("dataset")["copies_%"].reindex(list(names))
        at = [number + 0.27 * (place - 1) for number in range(len(names))]
        bars = panel.bar(at, shares, width=0.25, color=colour, label=label)
        panel.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    panel.set_xticks(range(len(names)), names)
    panel.margins(y=0.12)
    panel.grid(axis="x", visible=False)
    panel.set_ylabel("% of answers that are copies")
    panel.set_xlabel("data set")
    legend_below(figure, axes)
    return figure


EXPERIMENT = Experiment(
    name="privacy",
    title="Privacy: counterfactuals that copy a training row, and the cost of excluding them",
    about=(
        "The table of copies in the section on privacy: how many of the counterfactuals of "
        "Experiment 1 equal a training row in every cell, as drawn and with copies='never', and "
        "what excluding them costs. "
        "Value copies are changed numbers that exactly one training row has. The absence of "
        "copies does not prove privacy: every value in a counterfactual comes from some training "
        "row."
    ),
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
    remarks=remarks,
)
