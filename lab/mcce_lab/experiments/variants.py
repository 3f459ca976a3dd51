"""Appendix: MCCE with another predictor (a random forest) and with categories not binarized.

Paper, appendix tables of a model without gradients and of features that are not binarized: Adult,
the first 1,000 people whom the predictor declines, K = 1,000. Predictors decline different people,
so costs of variants are not directly comparable. The published script keeps the three most frequent
levels of each category and one for the rest, as does the variant with four levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pandas as pd

from mcce import Search, metrics

from ..datasets import Form
from . import published
from .case import (
    Case,
    MethodResult,
    average_over_seeds,
    describe_case,
    measure_result,
    prepare_case,
    run_mcce,
)
from .experiment import Experiment, Options, ProgressLine, Report, first_row, published_rows
from .predictors import BlackBoxKind
from .report import COLOURS, GREY, legend_below, panels

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
    copies: Literal["allow", "never"] = "allow"


FORESTS = (
    Variant("network"),
    Variant("forest", kind="forest"),
    Variant("forest, without copies", kind="forest", copies="never"),
)
FORMS = (
    Variant("two levels"),
    Variant("four levels", form="levels", n_levels=3),
    Variant("all levels", form="levels"),
)


def run(
    options: Options, progress: ProgressLine, *, printed: pd.DataFrame, variants: Sequence[Variant]
) -> Report:
    """Run MCCE in each variant; all but the first are compared with the published table.

    Variants without copies are not: the paper's search has copies.
    """
    report = Report()
    progress.plan(len(options.datasets) * len(variants) * (1 + options.seeds))
    rows: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    figure, axes = panels(1, len(options.datasets), size=(4.8, 2.8))
    for name, panel in zip(options.datasets, axes[0], strict=True):
        rows += published_rows(printed, dataset=name)
        changes = {}
        for variant in variants:
            progress.step(f"{name}: {variant.name}, rows and predictor")
            case = prepare_case(
                name, options, form=variant.form, kind=variant.kind, n_levels=variant.n_levels
            )
            people.append(describe_case(case, options, variant=variant.name))
            search = Search("paper", copies=variant.copies)
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
                report.add_comparison(f"{what} {measure}", theirs[measure], ours[measure])


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


LEVELS = Experiment(
    name="levels",
    title="Appendix: categories that are not binarized",
    run=partial(run, printed=published.LEVELS, variants=FORMS),
    datasets=("adult",),
)
FOREST = Experiment(
    name="forest",
    title="Appendix: a random forest as the predictor",
    run=partial(run, printed=published.FOREST, variants=FORESTS),
    datasets=("adult",),
)
