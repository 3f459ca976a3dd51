"""Counterfactuals for one person, method by method.

Paper, table of the counterfactuals generated for the same random factual of Adult: those
published, ours by the paper's search and three others, and those of the other methods as built
here. All scores are those of our network; the authors' had other weights, so a published
counterfactual may be declined here.
"""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd

from mcce import Counterfactuals

from ..datasets import DatasetError
from .case import Case, prepare_case, run_mcce
from .compare_cases import METHODS, ComparisonCell, Method
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
)

# Methods are those of the comparison that can explain the network.
NETWORK = ComparisonCell("adult", "network", 0, 0)
SEARCHES = ("paper", "balanced", "sparse", "plausible")
# As published, the factual first.
PUBLISHED = """
method   age fnlwgt education-num capital-gain capital-loss hours-per-week marital-status
         native-country occupation race relationship sex workclass
Original 20 266015 10     0     0 44 NM US O  NW NH M P
C-CHVAE  20 247240 10   652  1679 42 M  US O  NW H  M P
CEM-VAE  23 190709 12 10296     0 52 NM US O  W  NH M NP
CLUE     11 398962 10 10725   -62 49 NM US O  W  NH M P
CRUDS    20 138021 21  4833   210 79 M  US MS W  H  M P
FACE     46 220979 10 13550     0 40 NM US O  NW NH M P
REViSE   20  76456 14    10   379 68 M  US O  W  H  M P
MCCE     20 348148 10 34095     0 48 NM US O  NW NH M P
"""
# Levels of Adult in the paper's form, by their letters in its table.
LETTERS = {
    "marital-status": {"NM": "Non-Married", "M": "Married"},
    "native-country": {"US": "US", "N": "Non-US"},
    "occupation": {"O": "Other", "MS": "Managerial-Specialist"},
    "race": {"NW": "Non-White", "W": "White"},
    "relationship": {"NH": "Non-Husband", "H": "Husband"},
    "sex": {"M": "Male", "F": "Female"},
    "workclass": {"P": "Private", "NP": "Non-Private"},
}


def published_table() -> pd.DataFrame:
    """The published table with full names of levels."""
    heading, wrapped, *rows = PUBLISHED.strip().splitlines()
    table = pd.read_csv(StringIO("\n".join([f"{heading} {wrapped.strip()}", *rows])), sep=r"\s+")
    for name, letters in LETTERS.items():
        table[name] = table[name].map(letters)
    return table


def run(options: Options, progress: ProgressLine) -> Report:
    """Explain the paper's person, or the first declined one elsewhere, by every method."""
    report = Report()
    report.seeds = 1
    rivals = [] if options.quick else [m for m in METHODS if not m.is_ours and m.can_run(NETWORK)]
    progress.plan(len(options.datasets) * (1 + len(SEARCHES) + len(rivals)))
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        person = find_paper_person(case.train) if name == "adult" else case.factuals.head(1)
        score = case.predictor(person).round(2)
        parts = [_label("person", "", person, score=score)]
        if name == "adult":
            parts.append(_published(case))
        for search in SEARCHES:
            progress.step(f"{name}: {search}")
            parts.append(_explain(case, person, search))
        for method in rivals:
            progress.step(f"{name}: {method.name}")
            parts.append(_explain_by(method, case, person))
        report.tables[name] = _mark_changes(pd.concat(parts, ignore_index=True))
    return report


def find_paper_person(rows: pd.DataFrame) -> pd.DataFrame:
    """The row of Adult that the paper explains."""
    wanted = published_table().iloc[0].drop("method")
    same = pd.concat([rows[name].astype(object) == wanted[name] for name in wanted.index], axis=1)
    matching = rows[same.all(axis=1)]
    if matching.empty:
        raise DatasetError(
            "Adult must contain the person of the paper's example, aged 20 with fnlwgt 266015, but "
            "does not. The file may be truncated: copy it again."
        )
    return matching.head(1)


def _label(method: str, source: str, rows: pd.DataFrame, **measures: Any) -> pd.DataFrame:
    """Rows with their method and measures before the features."""
    labelled = rows.astype(object).assign(method=method, source=source, **measures)
    return labelled[["method", "source", *measures, *rows.columns]]


def _published(case: Case) -> pd.DataFrame:
    """The published counterfactuals with their scores by our network."""
    rows = published_table().iloc[1:]
    frame = rows[case.train.columns]
    for name, column in case.train.items():
        frame = frame.astype({name: column.dtype})
    labelled = _label("", "published", frame, score=case.predictor(frame).round(2))
    return labelled.assign(method=rows["method"])


def _explain(case: Case, person: pd.DataFrame, search: str) -> pd.DataFrame:
    """Our counterfactual and its score."""
    result = run_mcce(replace(case, factuals=person), seed=0, search=search).counterfactuals
    assert isinstance(result, Counterfactuals)
    score = result.measures["score"].to_numpy().round(2)
    return _label(f"MCCE {search}", "ours", result.frame, score=score)


def _explain_by(method: Method, case: Case, person: pd.DataFrame) -> pd.DataFrame:
    """The counterfactual of another method, as built here, and its score."""
    result = method.fit(case, case.train, 0).explain(person)
    frame = result.frame.head(1)
    score = result.measures["score"].to_numpy()[:1].round(2)
    if frame.empty:
        frame, score = person, np.array([np.nan])
    source = "here" if len(result.frame) else "here: none"
    return _label(method.name, source, frame, score=score)


def _mark_changes(table: pd.DataFrame) -> pd.DataFrame:
    """The table with unchanged cells as dots, and the number of changes."""
    features = table.drop(columns=["method", "source", "score"])
    same = features == features.iloc[0]
    same.iloc[0] = False
    changes = (~same).sum(axis=1)
    changes.iloc[0] = 0
    head = table[["method", "source", "score"]].assign(changes=changes)
    marked = head.join(features.astype(object).mask(same, "·")).astype(object)
    return marked.where(marked.notna(), "")


EXPERIMENT = Experiment(
    name="example",
    title="Experiment 1: the counterfactuals of each method for one person of Adult",
    run=run,
    datasets=("adult",),
)
