"""Experiment 1: what counterfactuals cost, method by method."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from mcce.counterfactuals import Counterfactuals

from ..datasets import DatasetName
from . import published
from .case import (
    Case,
    Method,
    average_over_seeds,
    describe_case,
    measure_result,
    prepare_case,
    run_mcce,
)
from .circumstances import (
    count_changes,
    explain_heldout,
    n_networks,
    vary_network,
)
from .costs_remarks import remarks
from .experiment import (
    NOT_COMPARABLE,
    ROUNDING,
    Estimate,
    Experiment,
    Options,
    ProgressLine,
    Report,
    agreement,
    first_row,
)
from .report.figures import (
    GREY,
    OTHER,
    OURS,
    PUBLISHED,
    legend_below,
    panels,
)

# Add a method here to compare it.
METHODS: dict[str, Method] = {
    "MCCE": run_mcce,
    "MCCE balanced": partial(run_mcce, search="balanced"),
}
# Limits the seeds of slow methods.
MOST_SEEDS = {"MCCE balanced": 2}
# Other rows that the published figures may be based on.
OTHER_ROWS = {"gmc": "filtered", "fico": "all"}
# Of these the main rows are not those of the published figures, but the other ones are.
LIKE_FOR_LIKE = {"gmc": "filtered"}
OTHERS_PUBLISHED = f"{NOT_COMPARABLE}: other rows than the published figures seem to be based on"
COLUMNS = [
    *("dataset", "rows", "method", "source", "l0", "l0_sd", "l0_exact", "l0_exact_sd"),
    *("l1", "l1_sd", "violation", "violation_sd", "success", "n_ce", "coverage", "seconds"),
    *("seeds", "l0_seeds", "l1_seeds", "verdict"),
]
# Test AUCs that differ by at most this agree.
NEAR_AUC = 0.02


def run(options: Options, progress: ProgressLine) -> Report:
    """Run every method on every data set, next to the paper's table."""
    report = EXPERIMENT.report()
    report.published["results"] = published.RESULTS
    others = {} if options.quick else OTHER_ROWS
    n_runs = sum(len(_seeds(method, options)) for method in METHODS)
    n_others = sum(name in others for name in options.datasets)
    n_more = n_networks(options) + options.seeds
    progress.plan(len(options.datasets) * (1 + n_runs + n_more) + n_others)
    rows: list[dict[str, Any]] = []
    tables: dict[str, list[dict[str, Any]]] = {"black_boxes": [], "networks": []}
    tables |= {"heldout": [], "changes": []}
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        tables["black_boxes"].append(_black_box_row(case, "paper", options))
        rows += _published_rows(name)
        rows += [_method_row(case, method, options, progress) for method in METHODS]
        tables["changes"] += _changes(case)
        if name in others:
            progress.step(f"{name}: rows {others[name]}")
            case = prepare_case(name, options, rows=others[name])
            tables["black_boxes"].append(_black_box_row(case, others[name], options))
            means = average_over_seeds([measure_result(case, METHODS["MCCE"](case, 0))])
            rows.append(_labels(case, "MCCE", others[name], 1) | means)
        like = None if options.quick else LIKE_FOR_LIKE.get(name)
        tables["networks"] += vary_network(name, like, METHODS["MCCE"], options, progress)
        tables["heldout"].append(explain_heldout(name, METHODS["MCCE"], options, progress))
    table = pd.DataFrame(rows).reindex(columns=COLUMNS).astype({"n_ce": int, "seeds": "Int64"})
    table["verdict"] = _verdicts(table)
    report.tables = {"results": table} | {k: pd.DataFrame(lines) for k, lines in tables.items()}
    _compare_with_published(report, options.datasets)
    report.figures["costs"] = _draw(table, options.datasets)
    report.captions["costs"] = (
        "Bars are standard deviations over people. The published costs of Give Me Some Credit seem "
        "to be those of the rows called filtered."
    )
    return report


def _changes(case: Case) -> list[dict[str, Any]]:
    """Which features MCCE changes, with the first seed."""
    result = METHODS["MCCE"](case, 0).counterfactuals
    assert isinstance(result, Counterfactuals)
    return count_changes(case, result)


def _verdicts(table: pd.DataFrame) -> list[str]:
    """Whether each of our rows of MCCE reproduces the published costs."""
    lines = []
    for _, row in table.iterrows():
        if row["source"] == "published" or row["method"] != "MCCE":
            lines.append("")
            continue
        theirs = first_row(table, dataset=row["dataset"], source="published", method="MCCE")
        if row["rows"] != LIKE_FOR_LIKE.get(row["dataset"], "paper"):
            lines.append(NOT_COMPARABLE)
            continue
        words = [
            f"{cost} {agreement(Estimate.of(theirs, cost), Estimate.of(row, cost)).split(':')[0]}"
            for cost in ("l0", "l1")
        ]
        lines.append(", ".join(words))
    return lines


def _method_row(
    case: Case, method: str, options: Options, progress: ProgressLine
) -> dict[str, Any]:
    """Measures of a method, averaged over its seeds."""
    runs = []
    for seed in _seeds(method, options):
        progress.step(f"{case.name}: {method}, seed {seed}")
        runs.append(measure_result(case, METHODS[method](case, seed)))
    return _labels(case, method, "paper", len(runs)) | average_over_seeds(runs)


def _labels(case: Case, method: str, rows: str, n_seeds: int) -> dict[str, Any]:
    labels = {"dataset": case.name, "rows": rows, "method": method}
    return labels | {"source": "ours", "seeds": n_seeds}


def _black_box_row(case: Case, rows: str, options: Options) -> dict[str, Any]:
    """A line of the table of predictors."""
    return describe_case(case, options, rows=rows) | {"published_auc": case.published_auc}


def _seeds(method: str, options: Options) -> range:
    return range(min(options.seeds, MOST_SEEDS.get(method, options.seeds)))


def _published_rows(name: str) -> list[dict[str, Any]]:
    """The rows of the paper's table for a data set."""
    rows = published.RESULTS.rows(dataset=name)
    n_factuals = max(row["n_ce"] for row in rows)
    return [row | {"rows": "paper", "coverage": row["n_ce"] / n_factuals} for row in rows]


def _compare_with_published(report: Report, names: Sequence[DatasetName]) -> None:
    """The paper's MCCE next to ours."""
    table, boxes = report.tables["results"], report.tables["black_boxes"]
    for name in names:
        theirs = first_row(table, dataset=name, source="published", method="MCCE")
        ours = first_row(table, dataset=name, source="ours", method="MCCE")
        box = first_row(boxes, dataset=name, rows="paper")
        report.add_comparison(
            f"{name} test AUC", box["published_auc"], box["auc"], _auc_remark(box)
        )
        if name in LIKE_FOR_LIKE:
            rows = LIKE_FOR_LIKE[name]
            like = table[(table["dataset"] == name) & (table["rows"] == rows)]
            if len(like):
                report.add_means(f"{name}, rows {rows},", theirs, like.iloc[0])
            for cost in ("l0", "l1"):
                what = f"{name}, complete rows, {cost}"
                report.add_comparison(what, theirs[cost], ours[cost], OTHERS_PUBLISHED)
        else:
            report.add_means(name, theirs, ours)
            unseen = first_row(report.tables["heldout"], dataset=name)
            report.add_means(f"{name}, held-out people,", theirs, unseen)
        for share in ("violation", "success", "coverage"):
            report.add_comparison(f"{name} {share}", theirs[share], ours[share])


def _auc_remark(box: pd.Series[Any]) -> str:
    near = abs(box["auc"] - box["published_auc"]) <= NEAR_AUC + ROUNDING
    return "" if near else f"differs by more than {NEAR_AUC}"


def _draw(table: pd.DataFrame, names: Sequence[str]) -> Any:
    """Both costs of every method, a row of panels per data set."""
    figure, axes = panels(len(names), 2, size=(4.2, 2.6))
    for line, name in zip(axes, names, strict=True):
        shown = table["rows"].isin(["paper", LIKE_FOR_LIKE.get(name)])
        rows = table[shown & (table["dataset"] == name)].iloc[::-1]
        labels = [_label(row) for _, row in rows.iterrows()]
        for panel, cost, title in zip(line, ("l0", "l1"), ("L0", "L1"), strict=True):
            for place, (_, row) in enumerate(rows.iterrows()):
                colour, label = _style(row)
                panel.errorbar(
                    row[cost], place, xerr=row[f"{cost}_sd"], fmt="o", color=colour, label=label
                )
            panel.set_yticks(range(len(rows)), labels)
            panel.set_xlim(left=0)
            panel.set_xlabel(f"{title}: mean and standard deviation over people")
            panel.set_title(name)
    legend_below(figure, axes)
    return figure


def _label(row: pd.Series[Any]) -> str:
    if row["source"] == "published":
        return f"{row['method']} (paper)"
    return str(row["method"]) if row["rows"] == "paper" else f"{row['method']}, {row['rows']}"


def _style(row: pd.Series[Any]) -> tuple[str, str]:
    """Colour and label of a row."""
    if row["source"] == "ours":
        return (OURS, "ours") if row["method"] == "MCCE" else (OTHER, "ours, other search")
    return (PUBLISHED, "paper, MCCE") if row["method"] == "MCCE" else (GREY, "paper, others")


EXPERIMENT = Experiment(
    name="costs",
    title="Experiment 1: costs of counterfactuals, next to the paper's table of methods",
    about=(
        "The table of Experiment 1, and that of the predictive models. One counterfactual each "
        "for the first 1,000 people (German Credit: 200, or all if there are fewer) of the file "
        "whom the predictor declines, K = 1,000. The predictors are networks with the settings "
        "of the paper's table. l0 counts differences above 1e-5 of the range, as the paper's "
        "tables do, l0_exact counts all. Brackets hold standard deviations over people; l0_seeds "
        "and l1_seeds are those of the means over seeds. Our seconds are CPU seconds of one "
        "thread for fitting and explaining, the published ones wall-clock seconds of another "
        "machine. Networks: the same with networks trained from different seeds. Heldout: people "
        "on whom the network was not trained. Changes: which features MCCE changes, in % of the "
        "people, and where to, in % of the changes."
    ),
    run=run,
    datasets=("adult", "gmc", "german", "fico"),
    remarks=remarks,
)
