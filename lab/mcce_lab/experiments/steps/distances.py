"""Which distance to use: Gower against the others.

Paper, section "Post-processing": step 3 may use any distance for mixed data, such as HVDM or IVDM.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce.distances import DISTANCES
from mcce.explainer import MCCE
from mcce.metrics import Evaluator

from ..case import Case
from ..experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
    Tables,
)
from ..timing import cpu_seconds
from .cells import saved_runs
from .measuring import (
    ANSWERS,
    against,
    answers_of,
    summarise,
    verdicts,
)
from .parts import Parts, draw_all

BASE = "gower"
SEARCHES = ("paper", "balanced", "near")
OTHERS = ["other_answers_%", "explain_seconds", "times_gower"]


def run(options: Options, progress: ProgressLine) -> Report:
    """Explain with every distance on every data set with every seed."""
    report = EXPERIMENT.report()
    progress.plan(
        len(options.datasets) * (1 + options.seeds * len(SEARCHES) * len(DISTANCES.names()))
    )
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
    for name in (BASE, *(name for name in DISTANCES.names() if name != BASE)):
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


def remarks(tables: Tables) -> list[str]:
    """What each distance changes."""
    lines, answers = [], tables["answers"]
    for name, rows in answers.groupby("distance", sort=False):
        if name == BASE:
            continue
        by_search = rows.groupby("search", sort=False)[["other_answers_%", "times_gower"]].mean()
        parts = [
            f"{line['other_answers_%']:.0f} % with {search} (in {line['times_gower']:.2f} times "
            "the CPU time)"
            for search, line in by_search.iterrows()
        ]
        lines.append(
            f"People whom {name!s} answers otherwise than Gower, on average over data sets: "
            f"{', '.join(parts)}."
        )
    return [*lines, *REMARKS]


REMARKS = [
    "The number of changes comes before the distance in every ranking, so that l0 hardly depends "
    "on it.",
    "l1 is what Gower itself keeps small among rows with as many changes: that the others lose by "
    "it is no fault of theirs. They can win by it, since searches do not try every row, and ranges "
    "are here those of the whole file. knn_distance (mean distance to the five nearest accepted "
    "rows, numbers as ranks) and outlier_factor (median) are judged on rows that no distance has "
    "learned from.",
    "Every seed draws other training rows and other people; all distances get the same.",
]

EXPERIMENT = Experiment(
    name="distances",
    title="Which distance: answers and time of each",
    about=(
        "Every distance in place of Gower, with its defaults, in the paper's search and in two of "
        "ours, for the same people and training rows."
    ),
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
    remarks=remarks,
    in_paper=False,
)
