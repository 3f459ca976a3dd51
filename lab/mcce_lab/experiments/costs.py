"""Experiment 1: what counterfactuals cost, method by method, and what the costs depend on.

Paper, tables of Experiment 1 and of the predictive models, and the paragraph on which features
change. One counterfactual each for the first 1,000 people (German Credit: 200) of the file whom the
predictor declines, K = 1,000. Other seeds of the network and held-out people show how far costs
move without any change of method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from mcce import Counterfactuals
from mcce.errors import PredictorError

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
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
    first_row,
    published_rows,
    with_cells,
)
from .report import GREY, OTHER, OURS, PUBLISHED, legend_below, panels

# Add a method here to compare it.
METHODS: dict[str, Method] = {
    "MCCE": run_mcce,
    "MCCE balanced": partial(run_mcce, search="balanced"),
}
# Limits the seeds of slow methods.
MAX_SEEDS = {"MCCE balanced": 2}
# Other rows that the published figures may be based on.
OTHER_ROWS = {"gmc": "filtered", "fico": "all"}
# Of these the main rows are not those of the published figures, but the other ones are.
LIKE_FOR_LIKE = {"gmc": "filtered"}
COLUMNS = [
    *("dataset", "rows", "method", "source", "l0", "l0_sd", "l0_exact", "l0_exact_sd"),
    *("l1", "l1_sd", "violation", "violation_sd", "success", "n_ce", "coverage", "seconds"),
    *("seeds", "l0_seeds", "l1_seeds"),
]


def run(options: Options, progress: ProgressLine) -> Report:
    """Run every method on every data set, next to the paper's table."""
    report = Report()
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
    report.tables = {"results": table} | {k: pd.DataFrame(lines) for k, lines in tables.items()}
    _compare_with_published(report, options.datasets)
    report.figures["costs"] = _draw(table, options.datasets)
    return report


def _changes(case: Case) -> list[dict[str, Any]]:
    """Which features MCCE changes, with the first seed."""
    result = METHODS["MCCE"](case, 0).counterfactuals
    assert isinstance(result, Counterfactuals)
    return count_changes(case, result)


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
    return range(min(options.seeds, MAX_SEEDS.get(method, options.seeds)))


def _published_rows(name: str) -> list[dict[str, Any]]:
    """The rows of the paper's table for a data set."""
    rows = published_rows(published.RESULTS, dataset=name)
    n_factuals = max(row["n_ce"] for row in rows)
    return [row | {"rows": "paper", "coverage": row["n_ce"] / n_factuals} for row in rows]


def _compare_with_published(report: Report, names: Sequence[DatasetName]) -> None:
    """The paper's MCCE next to ours, on the rows that its figures seem to be based on."""
    table, boxes = report.tables["results"], report.tables["black_boxes"]
    for name in names:
        theirs = first_row(table, dataset=name, source="published", method="MCCE")
        ours = first_row(table, dataset=name, source="ours", method="MCCE")
        box = first_row(boxes, dataset=name, rows="paper")
        report.add_comparison(f"{name} test AUC", box["published_auc"], box["auc"])
        if name in LIKE_FOR_LIKE:
            like = with_cells(table, dataset=name, rows=LIKE_FOR_LIKE[name])
            if len(like):
                report.add_means(f"{name}, rows {LIKE_FOR_LIKE[name]},", theirs, like.iloc[0])
        else:
            report.add_means(name, theirs, ours)
            unseen = first_row(report.tables["heldout"], dataset=name)
            report.add_means(f"{name}, held-out people,", theirs, unseen)
        for share in ("violation", "success", "coverage"):
            report.add_comparison(f"{name} {share}", theirs[share], ours[share])


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
    run=run,
    datasets=("adult", "gmc", "german", "fico"),
)


N_NETWORKS = 5
_SHOWN = ("l0", "l0_sd", "l1", "l1_sd", "n_ce", "coverage", "copies_%")


def n_networks(options: Options) -> int:
    """Number of networks of each data set."""
    return 1 if options.quick else N_NETWORKS


def vary_network(
    name: DatasetName, rows: str | None, method: Method, options: Options, progress: ProgressLine
) -> list[dict[str, Any]]:
    """Costs of a method with networks that were trained from different seeds.

    A network that declines nobody has no costs.
    """
    lines = []
    for box_seed in range(n_networks(options)):
        progress.step(f"{name}: network {box_seed}")
        line: dict[str, Any] = {"dataset": name, "rows": rows or "paper", "network": box_seed}
        try:
            case = prepare_case(name, options, rows=rows, box_seed=box_seed)
        except PredictorError:
            lines.append(line | {"n_declined": 0})
            continue
        values = measure_result(case, method(case, 0))
        line |= {"auc": case.auc, "n_declined": int((~case.decide(case.train)).sum())}
        lines.append(line | {column: values[column] for column in _SHOWN})
    return lines


def explain_heldout(
    name: DatasetName, method: Method, options: Options, progress: ProgressLine
) -> dict[str, Any]:
    """Costs of a method for people on whom the network was not trained, averaged over seeds."""
    case = prepare_case(name, replace(options, factuals="heldout"))
    runs = []
    for seed in range(options.seeds):
        progress.step(f"{name}: held-out people, seed {seed}")
        runs.append(measure_result(case, method(case, seed)))
    means = average_over_seeds(runs)
    columns = (*_SHOWN, "l0_seeds", "l1_seeds")
    return {"dataset": name, **{column: means[column] for column in columns}}


def count_changes(case: Case, result: Counterfactuals[pd.DataFrame]) -> list[dict[str, Any]]:
    """How often each mutable feature changes, in % of the counterfactuals, and in which direction.

    Numbers go up or down; for levels ``to`` is the most frequent new one, with its share of the
    changes.
    """
    changes = result.changes()
    lines = []
    for name in case.mutable:
        cells = changes[changes["feature"] == name]
        line: dict[str, Any] = {"dataset": case.name, "feature": name}
        line["changed_%"] = _percent(len(cells), len(result.frame))
        if isinstance(case.train[name].dtype, pd.CategoricalDtype):
            levels = cells["after"].astype(str).value_counts()
            if len(levels):
                line |= {"to": levels.index[0], "to_%": _percent(levels.iloc[0], len(cells))}
        elif len(cells):
            n_up = int((cells["after"].astype(float) > cells["before"].astype(float)).sum())
            line |= {"up_%": _percent(n_up, len(cells))}
            line |= {"down_%": _percent(len(cells) - n_up, len(cells))}
        lines.append(line)
    return lines


def _percent(part: int, whole: int) -> float:
    return 100.0 * int(part) / whole
