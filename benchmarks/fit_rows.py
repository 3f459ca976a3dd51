"""What a sample of the training rows changes in answers, against a fit on all of them.

``python benchmarks/fit_rows.py --rows 1000000 5000000 --samples 100000``: one simulated table of
ten columns, mixed, of which the first so many rows are training data. A line for each search and
sample size: CPU seconds of sampling and fitting, who is answered, who gets the same answer, and
paired differences: sample minus full fit, means over people with 95 % intervals, samples of several
seeds averaged for each person. Gower and plausibility are measured by the full fit for both.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mcce import MCCE
from mcce.files.training_sample import sample_training
from mcce.search.config import SearchName
from mcce_lab.experiments.case import Case
from wide import wide_case

IMMUTABLE = ["number_003", "level_005"]
BLOCK = 100_000
HEADINGS = (
    "rows, search, sample | fit s | valid | answered | same answer | sparsity | Gower x 1000 "
    "| plausibility"
)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--searches", nargs="+", default=["balanced", "paper"])
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    whole = wide_case(10, max(options.rows), options.people)
    print(f"| {HEADINGS} |\n|{'---|' * (HEADINGS.count('|') + 1)}", flush=True)
    for n_rows in options.rows:
        case = replace(whole, train=whole.train.head(n_rows), immutable=IMMUTABLE)
        judge: MCCE | None = None
        for search in options.searches:
            full, seconds = fitted(case, case.train, search)
            judge = judge or full
            before = answers(full, case, judge)
            show(f"{n_rows:,} {search}, all", seconds, [before], before)
            # The same fit with other draws: what is no larger than this says nothing of samples.
            full.fitted_ = replace(full.fitted_, seed=1)
            show(f"{n_rows:,} {search}, all, other draws", 0, [answers(full, case, judge)], before)
            del full
            for size in (size for size in options.samples if size < n_rows):
                runs = [sampled(case, size, search, seed, judge) for seed in range(options.seeds)]
                cost = float(np.mean([seconds for _, seconds in runs]))
                show(f"{n_rows:,} {search}, {size:,}", cost, [found for found, _ in runs], before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nLargest resident set of all this: {peak:.1f} GiB.")


def fitted(case: Case, rows: pd.DataFrame, search: SearchName) -> tuple[MCCE, float]:
    """A fitted explainer, and the CPU seconds of it."""
    began = time.process_time()
    explainer = MCCE(case.predictor, (0.5, 1.0), immutable=case.immutable, search=search)
    explainer.set_params(random_state=0).fit(rows)
    return explainer, time.process_time() - began


def sampled(
    case: Case, size: int, search: SearchName, seed: int, judge: MCCE
) -> tuple[pd.DataFrame, float]:
    """Answers of a fit on a sample, and the CPU seconds of sampling and fitting."""
    began = time.process_time()
    given: dict[str, Any] = {
        "predictor": case.predictor,
        "desired": (0.5, 1.0),
        "immutable": case.immutable,
    }
    sample = sample_training(blocks(case.train), size, random_state=seed, **given)
    seconds = time.process_time() - began
    explainer, more = fitted(case, sample.rows, search)
    return answers(explainer, case, judge), seconds + more


def blocks(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows, as they would stream by."""
    for at in range(0, len(rows), BLOCK):
        yield rows.iloc[at : at + BLOCK]


def answers(explainer: MCCE, case: Case, judge: MCCE) -> pd.DataFrame:
    """One row per person: the answer's measures, and its cells as one text; NaN without one."""
    found = explainer.explain(case.factuals).frame.droplevel("rank")
    own = case.factuals.loc[found.index]
    gaps = [
        (found[f.name] != own[f.name])
        if not f.spread
        else (found[f.name] - own[f.name]).abs() / f.spread
        for f in judge.schema_.features
    ]
    table = pd.DataFrame(
        {
            "valid": case.predictor(found) >= 0.5,
            "sparsity": sum(gap > 0 for gap in gaps),
            "gower": 1000 * sum(gaps) / len(gaps),
            "plausibility": judge.plausibility(found)["plausibility"],
            "cells": [repr(row) for row in found.itertuples(index=False)],
        },
        index=found.index,
    )
    return table.reindex(case.factuals.index)


def show(name: str, seconds: float, runs: list[pd.DataFrame], before: pd.DataFrame) -> None:
    """Print the line of a fit, compared with that on all rows."""
    there = before["cells"].notna()
    answered = np.mean([run["cells"].notna() for run in runs])
    valid = np.mean([run["valid"].dropna().astype(float).mean() for run in runs])
    same = np.mean([(run["cells"] == before["cells"])[there].mean() for run in runs])
    cells = []
    for measure in ("sparsity", "gower", "plausibility"):
        now = pd.concat([run[measure].astype(float) for run in runs], axis=1).mean(axis=1)
        if runs[0] is before:
            cells.append(f"{now.mean():.3f}")
            continue
        gap = (now - before[measure].astype(float)).dropna()
        cells.append(f"{gap.mean():+.3f} ± {1.96 * gap.std() / np.sqrt(len(gap)):.3f}")
    shares = f"{valid:.3f} | {answered:.3f} | {same:.2f}"
    print(f"| {name} | {seconds:.0f} | {shares} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
