"""Which distance to use: Gower against the others.

Paper, section "Post-processing": step 3 may use any distance for mixed data, such as HVDM or IVDM.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE
from mcce.metrics import Evaluator

from .case import Case, cpu_seconds
from .experiment import Experiment, Options, ProgressLine, Report
from .steps import (
    ANSWERS,
    Parts,
    against,
    answers_of,
    draw_all,
    saved_runs,
    summarise,
    verdicts,
)

BASE = "gower"
NAMES = (BASE, "heom", "hvdm", "ivdm", "l1")
SEARCHES = ("paper", "balanced", "near")
OTHERS = ["other_answers_%", "explain_seconds", "times_gower"]


def run(options: Options, progress: ProgressLine) -> Report:
    """Explain with every distance on every data set with every seed."""
    report = Report()
    progress.plan(len(options.datasets) * (1 + options.seeds * len(SEARCHES) * len(NAMES)))
    runs: list[dict[str, Any]] = []
    for case, seed, parts in draw_all(options, progress):
        for search in SEARCHES:
            labels = {"dataset": case.name, "search": search, "seed": seed}
            made = partial(_measure_all, case, parts, seed, search, progress)
            runs += saved_runs(EXPERIMENT.name, options, labels, made)
    report.tables = _tables(pd.DataFrame(runs))
    return report


def _measure_all(
    case: Case, parts: Parts, seed: int, search: str, progress: ProgressLine
) -> list[dict[str, Any]]:
    """Every distance for one search and seed, Gower first."""
    judge = Evaluator.fit(
        parts.reference, immutable=case.immutable, predictor=case.predictor, desired=case.desired
    )
    runs: list[dict[str, Any]] = []
    results: dict[str, Any] = {}
    for name in NAMES:
        progress.step(f"{case.name}: {search}, {name}, seed {seed}")
        seconds, result = _explain(case, parts, seed, search, name)
        results[name] = result
        base = runs[0]["explain_seconds"] if runs else seconds
        runs.append(
            {
                "distance": name,
                **answers_of(result, case, parts, judge),
                "other_answers_%": 100 * _share_of_others(results[BASE], result),
                "explain_seconds": seconds,
                "times_gower": seconds / base,
            }
        )
    return runs


def _explain(case: Case, parts: Parts, seed: int, search: str, distance: str) -> tuple[float, Any]:
    """CPU seconds of explaining, and the result."""
    explainer = MCCE(
        case.predictor, case.desired, immutable=case.immutable, n_jobs=1, random_state=seed
    ).set_params(distance=distance, search=search)
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        explainer.fit(parts.training)
        return cpu_seconds(lambda: explainer.explain(parts.factuals))


def _share_of_others(base: Any, result: Any) -> float:
    """Share of the people answered by both who get another answer."""
    both = base.frame.index.intersection(result.frame.index)
    if not len(both):
        return np.nan
    one, other = (some.frame.loc[both].astype(object) for some in (base, result))
    return float((one.to_numpy() != other.to_numpy()).any(axis=1).mean())


def _tables(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    found = []
    for search, rows in runs.groupby("search", sort=False):
        found.append(against(rows, "distance", BASE, ANSWERS).assign(search=search))
    differences = pd.concat(found, ignore_index=True)
    labelled = differences.assign(measure=differences["search"] + ": " + differences["measure"])
    return {
        "verdicts": verdicts(labelled, "distance"),
        "answers": summarise(runs, ["search", "dataset", "distance"], [*ANSWERS, *OTHERS]),
        "differences": differences,
    }


EXPERIMENT = Experiment(
    name="distances",
    title="Which distance: answers and time of each",
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
    in_paper=False,
)
