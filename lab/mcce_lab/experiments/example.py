"""Counterfactuals for one person, method by method.

Paper, table of the counterfactuals generated for the same random factual of Adult: those
published, ours by the paper's search and three others, and those of the other methods as built
here. All scores are those of our network; the authors' had other weights, so a published
counterfactual may be declined here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..datasets import DatasetError
from .case import Case, prepare_case, run_mcce
from .cells import METHODS, Cell, Method
from .experiment import Experiment, Options, ProgressLine, Report, published

# Methods are those of the comparison that can explain the network.
NETWORK = Cell("adult", "network", 0, 0)
SEARCHES = ("paper", "balanced", "sparse", "plausible")


def run(options: Options, progress: ProgressLine) -> Report:
    """Explain the paper's person, or the first declined one elsewhere, by every method."""
    report = Report(seeds=1)
    rivals = [] if options.quick else [m for m in METHODS if not m.is_ours and m.can_run(NETWORK)]
    progress.plan(len(options.datasets) * (1 + len(SEARCHES) + len(rivals)))
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        person = find_paper_person(case.train) if name == "adult" else case.factuals.head(1)
        case = replace(case, factuals=person)
        parts = [_labelled(case, "person", "", person)]
        if name == "adult":
            parts.append(_published(case))
        for search in SEARCHES:
            progress.step(f"{name}: {search}")
            answers = run_mcce(case, search=search).counterfactuals
            parts.append(_labelled(case, f"MCCE {search}", "ours", answers.frame))
        for method in rivals:
            progress.step(f"{name}: {method.name}")
            parts.append(_explain_by(method, case))
        report.tables[name] = _mark_changes(pd.concat(parts, ignore_index=True))
    return report


def find_paper_person(rows: pd.DataFrame) -> pd.DataFrame:
    """The row of Adult that the paper explains."""
    wanted = published("example").iloc[0].drop("method")
    same = pd.concat([rows[name].astype(object) == wanted[name] for name in wanted.index], axis=1)
    matching = rows[same.all(axis=1)]
    if matching.empty:
        raise DatasetError(
            "Adult must contain the person of the paper's example, aged 20 with fnlwgt 266015, but "
            "does not. The file may be truncated: copy it again."
        )
    return matching.head(1)


def _labelled(case: Case, method: Any, source: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with their method and score before the features."""
    score = np.asarray(case.predictor(rows)).round(2)
    labelled = rows.astype(object).assign(method=method, source=source, score=score)
    return labelled[["method", "source", "score", *rows.columns]]


def _published(case: Case) -> pd.DataFrame:
    """The published counterfactuals with their scores by our network."""
    rows = published("example").iloc[1:]
    frame = rows[case.train.columns].astype(case.train.dtypes.to_dict())
    return _labelled(case, rows["method"], "published", frame)


def _explain_by(method: Method, case: Case) -> pd.DataFrame:
    """The counterfactual of another method, as built here."""
    found = method.fit(case, case.train, 0).explain(case.factuals).frame.head(1)
    if len(found):
        return _labelled(case, method.name, "here", found)
    nothing = _labelled(case, method.name, "here: none", case.factuals)
    return nothing.assign(score=np.nan)


def _mark_changes(table: pd.DataFrame) -> pd.DataFrame:
    """The table with unchanged cells as dots, and the number of changes."""
    features = table.drop(columns=["method", "source", "score"])
    same = features == features.iloc[0]
    changes = (~same).sum(axis=1)
    same.iloc[0] = False
    head = table[["method", "source", "score"]].assign(changes=changes)
    marked = head.join(features.astype(object).mask(same, "·")).astype(object)
    return marked.where(marked.notna(), "")


EXPERIMENT = Experiment(
    name="example",
    title="Experiment 1: the counterfactuals of each method for one person of Adult",
    run=run,
    datasets=("adult",),
)
