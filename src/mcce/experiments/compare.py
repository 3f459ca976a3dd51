"""Experiment 1: what counterfactuals cost, method by method."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from . import published
from .case import DESIRED, Case, Method, explained, measured, over_seeds, prepare, size_remark
from .experiment import ROUNDING, Experiment, Options, Progress, Report, at_most, row_of
from .report.figures import GREY, OTHER, OURS, PUBLISHED, legend_below, panels

# A method joins by its name here.
METHODS: dict[str, Method] = {
    "MCCE": explained,
    "MCCE balanced": partial(explained, search="balanced"),
}
# One that is slow is tried with so many seeds at most.
SEEDS_AT_MOST = {"MCCE balanced": 2}
# Other rows that the published figures may rest on.
OTHER_ROWS = {"gmc": "filtered", "fico": "all"}
COLUMNS = [
    *("dataset", "rows", "method", "source", "l0", "l0_sd", "l0_exact", "l0_exact_sd"),
    *("l1", "l1_sd", "violation", "violation_sd", "success", "n_ce", "coverage", "seconds"),
    *("seeds", "l0_seeds", "l1_seeds"),
]
# Test AUCs as near as this agree.
NEAR_AUC = 0.02


def run(options: Options, progress: Progress) -> Report:
    """Every method on every data set, beside the paper's table."""
    report = EXPERIMENT.report()
    report.published["results"] = published.RESULTS
    n_runs = sum(len(_seeds(method, options)) for method in METHODS)
    others = {} if options.quick else OTHER_ROWS
    n_others = sum(name in others for name in options.datasets)
    progress.plan(len(options.datasets) * (1 + n_runs) + n_others)
    rows: list[dict[str, Any]] = []
    boxes: list[dict[str, Any]] = []
    for name in options.datasets:
        progress.step(f"{name}: rows and black box")
        case = prepare(name, options)
        boxes.append(_box(case, "paper"))
        rows += _published_rows(name)
        rows += [_row(case, method, options, progress) for method in METHODS]
        report.remarks.append(size_remark(case, options))
        if name in others:
            progress.step(f"{name}: rows {others[name]}")
            case = prepare(name, options, rows=others[name])
            boxes.append(_box(case, others[name]))
            told = over_seeds([measured(case, METHODS["MCCE"](case, 0))])
            rows.append({"rows": others[name], **_said(case, "MCCE", 1), **told})
    table = pd.DataFrame(rows).reindex(columns=COLUMNS).astype({"n_ce": int, "seeds": "Int64"})
    report.tables = {"results": table, "black_boxes": pd.DataFrame(boxes)}
    _hold(report, table)
    report.figures["costs"] = _drawn(table[table["rows"] == "paper"], options.datasets)
    return report


def _row(case: Case, method: str, options: Options, progress: Progress) -> dict[str, Any]:
    """Measures of a method over its seeds."""
    runs = []
    for seed in _seeds(method, options):
        progress.step(f"{case.name}: {method}, seed {seed}")
        runs.append(measured(case, METHODS[method](case, seed)))
    return {"rows": "paper", **_said(case, method, len(runs)), **over_seeds(runs)}


def _said(case: Case, method: str, n_seeds: int) -> dict[str, Any]:
    return {"dataset": case.name, "method": method, "source": "ours", "seeds": n_seeds}


def _box(case: Case, rows: str) -> dict[str, Any]:
    """A line of the table of black boxes."""
    n_declined = int((case.box.predict(case.data.features) < DESIRED[0]).sum())
    return {
        "dataset": case.name,
        "rows": rows,
        "n_rows": len(case.data.features),
        "n_declined": n_declined,
        "auc": case.box.auc,
        "published_auc": case.box.published_auc,
    }


def _seeds(method: str, options: Options) -> range:
    return range(min(options.seeds, SEEDS_AT_MOST.get(method, options.seeds)))


def _published_rows(name: str) -> list[dict[str, Any]]:
    """The rows of the paper's table for a data set."""
    rows = published.RESULTS.rows(dataset=name)
    n_people = max(row["n_ce"] for row in rows)
    return [row | {"rows": "paper", "coverage": row["n_ce"] / n_people} for row in rows]


def _hold(report: Report, table: pd.DataFrame) -> None:
    """The paper's MCCE beside ours, and sentences where they differ."""
    boxes = report.tables["black_boxes"]
    for name in dict.fromkeys(table["dataset"]):
        theirs = row_of(table, dataset=name, source="published", method="MCCE")
        ours = row_of(table, dataset=name, source="ours", method="MCCE")
        box = row_of(boxes, dataset=name, rows="paper")
        report.hold(f"{name} test AUC", box["published_auc"], box["auc"], _near(box))
        for measure in ("l0", "l1"):
            report.hold(
                f"{name} {measure}",
                theirs[measure],
                ours[measure],
                at_most(ours[measure], theirs[measure]),
            )
        for measure in ("violation", "success", "coverage"):
            report.hold(f"{name} {measure}", theirs[measure], ours[measure])
    report.remarks += [REMARKS[name] for name in dict.fromkeys(table["dataset"])]
    report.remarks.append(
        "The rows of the other methods stand as they are printed; those methods were not run here."
    )


def _near(box: pd.Series[Any]) -> str:
    near = abs(box["auc"] - box["published_auc"]) <= NEAR_AUC + ROUNDING
    return "" if near else f"further than {NEAR_AUC} apart: see the remarks"


REMARKS = {
    "adult": (
        "Adult: features are visited as the authors' code visits them, numbers first. Over three "
        "networks trained from different seeds l0 is 2.70 to 2.74 and l1 .53 to .56, about what is "
        "printed; visited in the order of UCI's file they are 2.71 to 2.74 and .58. The authors' "
        "own code on another network of the same shape has 2.65 and .48."
    ),
    "gmc": (
        "Give Me Some Credit: complete rows, as the paper's text has them, include a utilization "
        "of 50,708 and the like. Ranges are then so wide that most changes are a small share of "
        "them (l1) or below the tolerance (l0). The rows called filtered, which the authors' "
        "script seems to read, have nearly the printed costs and AUC: these are what was printed."
    ),
    "german": (
        "German Credit: with 750 rows to learn from, the network's AUC is .70 to .74 over five "
        "seeds and the whole file has 177 to 403 people whom it declines, so that there may be "
        "fewer than the paper's 200. A logistic regression on the same features has .76 on "
        "average over 20 splits (standard deviation .03, highest .82): the printed .80 is one "
        "split, which is not known. Over those five networks l0 differs by .16 and l1 by .26; "
        "the authors' own code on another network of the same shape has 3.19 and 1.50."
    ),
    "fico": (
        "FICO: the 588 records without any value are left out. With them (rows all) the AUC is "
        "nearer to the printed one, and 421 of the first 1,000 people are such records: their "
        "immutable value -9 is that of no accepted row, so none of them gets an answer, and all "
        "others do. The authors' own code on another network of the same shape has 12.32 and 1.66."
    ),
}


def _drawn(table: pd.DataFrame, names: Sequence[str]) -> Any:
    """Both costs of every method, a row of panels per data set."""
    figure, axes = panels(len(names), 2, size=(4.2, 2.6))
    for line, name in zip(axes, names, strict=True):
        rows = table[table["dataset"] == name].iloc[::-1]
        labels = rows["method"].where(rows["source"] == "ours", rows["method"] + " (paper)")
        for panel, cost, title in zip(line, ("l0", "l1"), ("L0", "L1"), strict=True):
            for place, (_, row) in enumerate(rows.iterrows()):
                colour, said = _look(row)
                panel.errorbar(
                    row[cost], place, xerr=row[f"{cost}_sd"], fmt="o", color=colour, label=said
                )
            panel.set_yticks(range(len(rows)), labels)
            panel.set_xlim(left=0)
            panel.set_xlabel(f"{title}: mean and standard deviation over people")
            panel.set_title(name)
    legend_below(figure, axes)
    return figure


def _look(row: pd.Series[Any]) -> tuple[str, str]:
    """Colour of a row, and what it stands for."""
    if row["source"] == "ours":
        return (OURS, "ours") if row["method"] == "MCCE" else (OTHER, "ours, other search")
    return (PUBLISHED, "paper, MCCE") if row["method"] == "MCCE" else (GREY, "paper, others")


EXPERIMENT = Experiment(
    name="compare",
    title="Experiment 1: what counterfactuals cost, beside the paper's table of methods",
    about=(
        "The table of Experiment 1, and that of the predictive models. One counterfactual each for "
        "the first 1,000 people (German Credit: 200) of the file whom the black box declines, "
        "K = 1,000. The black boxes are networks with the settings of the paper's table. l0 counts "
        "differences above 1e-5 of the range, as the paper's tables do, l0_exact all; brackets "
        "hold standard deviations over people; l0_seeds and l1_seeds are those of the means over "
        "seeds; seconds are CPU seconds of one thread for learning and searching together."
    ),
    run=run,
    datasets=("adult", "gmc", "german", "fico"),
)
