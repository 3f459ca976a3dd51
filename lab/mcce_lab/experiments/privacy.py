"""Section on privacy: copies of training rows, and the cost of excluding them.

Paper, table of copies: how many of the counterfactuals of Experiment 1 equal a training row in
every cell, as drawn and with ``copies="never"``. Value copies are changed numbers that exactly one
training row has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd

from mcce import Search

from . import published
from .case import Case, average_over_seeds, describe_case, measure_result, prepare_case, run_mcce
from .costs import LIKE_FOR_LIKE
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
    first_row,
    published_rows,
)
from .report import (
    OTHER,
    OURS,
    PUBLISHED,
    legend_below,
    panels,
)

VARIANTS: dict[str, Literal["allow", "never"]] = {"as drawn": "allow", "without copies": "never"}
COLUMNS = [
    *("dataset", "source", "variant", "n_ce", "copies", "copies_%", "value_copies_%"),
    *("l0", "l0_sd", "l1", "l1_sd", "coverage", "seconds", "l0_seeds", "l1_seeds"),
]


def run(options: Options, progress: ProgressLine) -> Report:
    """Copies allowed and excluded, next to the paper's table."""
    report = Report()
    progress.plan(len(options.datasets) * (1 + len(VARIANTS) * options.seeds))
    rows: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        people.append(describe_case(case, options))
        rows += [
            row | {"variant": "as drawn"} for row in published_rows(published.COPIES, dataset=name)
        ]
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
    search = Search("paper", copies=VARIANTS[variant])
    runs = []
    for seed in range(options.seeds):
        progress.step(f"{case.name}: {variant}, seed {seed}")
        runs.append(measure_result(case, run_mcce(case, seed, search=search)))
    return average_over_seeds(runs)


def _compare_with_published(report: Report, names: Sequence[str]) -> None:
    """Shares of copies next to the paper's, in %, where its rows are ours."""
    table = report.tables["copies"]
    for name in (name for name in names if name not in LIKE_FOR_LIKE):
        rows = [
            first_row(table, dataset=name, source=source, variant="as drawn")
            for source in ("published", "ours")
        ]
        variances = [row["copies_%"] * (100 - row["copies_%"]) / row["n_ce"] for row in rows]
        both = [row["copies_%"] for row in rows]
        report.add_comparison(f"{name}: % copies", *both, error=sum(variances) ** 0.5)


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
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
)
