"""One table of MCCE alone, for another black box or another form of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .. import metrics
from .case import Answers, Case, explained, measured, over_seeds, prepare, size_remark
from .experiment import Options, Progress, Published, Report, at_most, row_of
from .predictors import Kind
from .report.figures import COLOURS, GREY, legend_below, panels

COLUMNS = [
    *("dataset", "source", "way", "l0", "l0_sd", "l0_exact", "l0_exact_sd", "l1", "l1_sd"),
    *("violation", "success", "n_ce", "coverage", "seconds", "auc", "l0_seeds", "l1_seeds"),
]


@dataclass(frozen=True)
class Way:
    """A form of the data and a black box; ``most`` as for :func:`mcce.bench.case.prepare`."""

    name: str
    form: str = "paper"
    kind: Kind = "network"
    most: int | None = None


def variant(
    report: Report,
    options: Options,
    progress: Progress,
    printed: Published,
    ways: Sequence[Way],
) -> Report:
    """MCCE in each way; the first is the usual one, the others stand beside what is printed."""
    report.published["results"] = printed
    progress.plan(len(options.datasets) * len(ways) * (1 + options.seeds))
    rows: list[dict[str, Any]] = []
    figure, axes = panels(1, len(options.datasets), size=(4.8, 2.8))
    for name, panel in zip(options.datasets, axes[0], strict=True):
        rows += printed.rows(dataset=name)
        changes = {}
        for way in ways:
            progress.step(f"{name}: {way.name}, rows and black box")
            case = prepare(name, options, form=way.form, kind=way.kind, most=way.most)
            runs = []
            for seed in range(options.seeds):
                progress.step(f"{name}: {way.name}, seed {seed}")
                answers = explained(case, seed)
                runs.append(measured(case, answers))
            said = {"dataset": name, "source": "ours", "way": way.name, "auc": case.box.auc}
            rows.append(said | over_seeds(runs))
            changes[way.name] = _changes(case, answers)
            report.remarks.append(f"{way.name}: {size_remark(case, options)}")
        _draw(panel, pd.DataFrame(changes).fillna(0.0), name)
    legend_below(figure, axes)
    report.figures["changes"] = figure
    report.tables["results"] = pd.DataFrame(rows).reindex(columns=COLUMNS)
    _hold(report, [way.name for way in ways[1:]])
    return report


def _hold(report: Report, ways: Sequence[str]) -> None:
    """What is printed beside ours."""
    table = report.tables["results"]
    for name in table.loc[table["source"] == "published", "dataset"]:
        theirs = row_of(table, dataset=name, source="published")
        for way in ways:
            ours = row_of(table, dataset=name, way=way)
            for measure in ("l0", "l1"):
                both = theirs[measure], ours[measure]
                report.hold(f"{name}, {way}: {measure}", *both, at_most(*both[::-1]))
            for measure in ("violation", "success", "n_ce"):
                report.hold(f"{name}, {way}: {measure}", theirs[measure], ours[measure])
            report.hold(
                f"{name}, {way}: seconds", theirs["seconds"], ours["seconds"], "other machines"
            )


def _changes(case: Case, answers: Answers) -> pd.Series[Any]:
    """Percent of the answers by their number of changes."""
    changes = metrics.sparsity(case.people, answers.counterfactuals, case.evaluator)
    return 100 * changes.value_counts(normalize=True)


def _draw(panel: Any, shares: pd.DataFrame, title: str) -> None:
    """How many answers have how many changes, a bar per way."""
    width = 0.8 / len(shares.columns)
    for place, (way, heights) in enumerate(shares.items()):
        at = heights.index + width * (place - (len(shares.columns) - 1) / 2)
        colour = COLOURS[place - 1] if place else GREY
        panel.bar(at, heights, width=0.95 * width, color=colour, label=way)
    panel.grid(axis="x", visible=False)
    panel.set_xlabel("changed features")
    panel.set_ylabel("% of answers")
    panel.set_title(title)
