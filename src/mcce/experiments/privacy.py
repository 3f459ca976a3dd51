"""Section on privacy: copies of training rows, and what it costs to leave them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from . import published
from .case import explained, measured, over_seeds, prepare, size_remark
from .experiment import Experiment, Options, Progress, Report, row_of
from .report.figures import OTHER, OURS, PUBLISHED, legend_below, panels

WAYS = {"as drawn": False, "without copies": True}
COLUMNS = [
    *("dataset", "source", "way", "n_ce", "copies", "copies_%", "l0", "l0_sd", "l1", "l1_sd"),
    *("coverage", "seconds", "l0_seeds", "l1_seeds"),
]


def run(options: Options, progress: Progress) -> Report:
    """Copies with and without ``exclude_training_rows``, beside the paper's table."""
    report = EXPERIMENT.report()
    report.published["copies"] = published.COPIES
    progress.plan(len(options.datasets) * (1 + len(WAYS) * options.seeds))
    rows: list[dict[str, Any]] = []
    for name in options.datasets:
        progress.step(f"{name}: rows and black box")
        case = prepare(name, options)
        rows += [row | {"way": "as drawn"} for row in published.COPIES.rows(dataset=name)]
        for way, excluded in WAYS.items():
            runs = []
            for seed in range(options.seeds):
                progress.step(f"{name}: {way}, seed {seed}")
                runs.append(measured(case, explained(case, seed, exclude_training_rows=excluded)))
            rows.append({"dataset": name, "source": "ours", "way": way} | over_seeds(runs))
        report.remarks.append(size_remark(case, options))
    table = pd.DataFrame(rows)
    table["copies_%"] = 100 * table["copies"] / table["n_ce"]
    report.tables["copies"] = table.reindex(columns=COLUMNS)
    _hold(report, options.datasets)
    report.remarks.append(
        "So few copies are a matter of chance and of the network: over three networks trained from "
        "different seeds 15 to 27 of 1,000 answers are copies on Adult; on Give Me Some Credit it "
        "is 13, and 1 to 8 with the rows without outliers that the published figures seem to rest "
        "on; over five networks none to two of 200 on German Credit."
    )
    report.figures["copies"] = _drawn(report.tables["copies"], options.datasets)
    return report


def _hold(report: Report, names: Sequence[str]) -> None:
    """Shares of copies beside the paper's, and what their removal costs."""
    table = report.tables["copies"]
    for name in names:
        theirs = row_of(table, dataset=name, source="published")
        ours, without = (row_of(table, dataset=name, source="ours", way=way) for way in WAYS)
        report.hold(f"{name}: % copies", theirs["copies_%"], ours["copies_%"])
        report.remarks.append(
            f"{name}: leaving copies out takes {ours['copies_%']:.2f} % of the answers to "
            f"{without['copies_%']:.2f} %, l0 from {ours['l0']:.3f} to {without['l0']:.3f}, l1 "
            f"from {ours['l1']:.3f} to {without['l1']:.3f}, coverage from "
            f"{ours['coverage']:.3f} to {without['coverage']:.3f}."
        )


def _drawn(table: pd.DataFrame, names: Sequence[str]) -> Any:
    """Shares of copies, a group of bars per data set."""
    figure, axes = panels(1, 1, size=(5.0, 2.8))
    panel = axes[0, 0]
    looks = {
        ("published", "as drawn"): (PUBLISHED, "paper"),
        ("ours", "as drawn"): (OURS, "ours"),
        ("ours", "without copies"): (OTHER, "ours, copies left out"),
    }
    for place, ((source, way), (colour, label)) in enumerate(looks.items()):
        rows = table[(table["source"] == source) & (table["way"] == way)]
        shares = rows.set_index("dataset")["copies_%"].reindex(list(names))
        at = [number + 0.27 * (place - 1) for number in range(len(names))]
        bars = panel.bar(at, shares, width=0.25, color=colour, label=label)
        panel.bar_label(bars, fmt="%.1f", padding=2, fontsize=8)
    panel.set_xticks(range(len(names)), names)
    panel.margins(y=0.12)
    panel.grid(axis="x", visible=False)
    panel.set_ylabel("% of answers that are copies")
    legend_below(figure, axes)
    return figure


EXPERIMENT = Experiment(
    name="privacy",
    title="Privacy: answers that copy a training row, and what their removal costs",
    about=(
        "The table of copies in the section on privacy: how many of the answers of Experiment 1 "
        "are equal to a training row in every cell, as they are drawn and with "
        "exclude_training_rows=True, and what that costs. No copy is no proof of privacy: every "
        "value in an answer is some training person's."
    ),
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
)
