"""MCCE alone, with another predictor or another form of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mcce import metrics
from mcce.search.config import Copies, Search

from ..datasets import Form
from .case import (
    Case,
    MethodResult,
    average_over_seeds,
    describe_case,
    measure_result,
    prepare_case,
    run_mcce,
)
from .experiment import (
    Options,
    ProgressLine,
    PublishedTable,
    Report,
    first_row,
)
from .predictors import BlackBoxKind
from .report.figures import (
    COLOURS,
    GREY,
    legend_below,
    panels,
)
from .timing import CPU_AND_WALL_CLOCK

COLUMNS = [
    *("dataset", "source", "variant", "l0", "l0_sd", "l0_exact", "l0_exact_sd", "l1", "l1_sd"),
    *("violation", "success", "n_ce", "coverage", "copies_%", "value_copies_%", "seconds"),
    *("l0_seeds", "l1_seeds"),
]


@dataclass(frozen=True)
class Variant:
    """A form of the data, a predictor and a search; ``n_levels`` is that of ``prepare_case``."""

    name: str
    form: Form = "paper"
    kind: BlackBoxKind = "network"
    n_levels: int | None = None
    copies: Copies = "allow"


def run_variants(
    report: Report,
    options: Options,
    progress: ProgressLine,
    printed: PublishedTable,
    variants: Sequence[Variant],
) -> Report:
    """Run MCCE in each variant; all but the first are compared with the published table.

    Variants without copies are not: the paper's search has copies.
    """
    report.published["results"] = printed
    progress.plan(len(options.datasets) * len(variants) * (1 + options.seeds))
    rows: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    figure, axes = panels(1, len(options.datasets), size=(4.8, 2.8))
    for name, panel in zip(options.datasets, axes[0], strict=True):
        rows += printed.rows(dataset=name)
        changes = {}
        for variant in variants:
            progress.step(f"{name}: {variant.name}, rows and predictor")
            case = prepare_case(
                name, options, form=variant.form, kind=variant.kind, n_levels=variant.n_levels
            )
            people.append(describe_case(case, options, variant=variant.name))
            search = Search.preset("paper", copies=variant.copies)
            runs = []
            for seed in range(options.seeds):
                progress.step(f"{name}: {variant.name}, seed {seed}")
                result = run_mcce(case, seed, search=search)
                runs.append(measure_result(case, result))
            labels = {"dataset": name, "source": "ours", "variant": variant.name}
            rows.append(labels | average_over_seeds(runs))
            changes[variant.name] = _changes(case, result)
        _draw(panel, pd.DataFrame(changes).fillna(0.0), name)
    legend_below(figure, axes)
    report.figures["changes"] = figure
    report.captions["changes"] = "With the last seed."
    report.tables["results"] = pd.DataFrame(rows).reindex(columns=COLUMNS)
    report.tables["people"] = pd.DataFrame(people)
    compared = [variant.name for variant in variants[1:] if variant.copies == "allow"]
    _compare_with_published(report, compared)
    return report


def _compare_with_published(report: Report, variants: Sequence[str]) -> None:
    """The published figures next to ours."""
    table = report.tables["results"]
    for name in table.loc[table["source"] == "published", "dataset"]:
        theirs = first_row(table, dataset=name, source="published")
        for variant in variants:
            ours, what = first_row(table, dataset=name, variant=variant), f"{name}, {variant}:"
            report.add_means(what, theirs, ours)
            for measure in ("violation", "success", "n_ce"):
                both = theirs[measure], ours[measure]
                report.add_comparison(f"{what} {measure}", *both)
            seconds = theirs["seconds"], ours["seconds"]
            report.add_comparison(f"{what} seconds", *seconds, CPU_AND_WALL_CLOCK)


def _changes(case: Case, result: MethodResult) -> pd.Series[float]:
    """Percent of the counterfactuals by their number of changes."""
    changes = metrics.sparsity(case.factuals, result.counterfactuals, case.evaluator)
    return 100 * changes.value_counts(normalize=True)


def _draw(panel: Any, shares: pd.DataFrame, title: str) -> None:
    """Share of counterfactuals by number of changes, one bar per variant."""
    width = 0.8 / len(shares.columns)
    for place, (variant, heights) in enumerate(shares.items()):
        at = heights.index + width * (place - (len(shares.columns) - 1) / 2)
        colour = COLOURS[place - 1] if place else GREY
        panel.bar(at, heights, width=0.95 * width, color=colour, label=variant)
    panel.grid(axis="x", visible=False)
    panel.set_xlabel("changed features")
    panel.set_ylabel("% of counterfactuals")
    panel.set_title(title)
