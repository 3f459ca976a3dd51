"""Answers of two versions to the same people, by measures that are nobody's objective.

``python benchmarks/before_after.py answers NAME`` writes the answers of the installed version to
``out/bench/answers/NAME``; run it with the Python of either version, and of this checkout last.
``python benchmarks/before_after.py compare BEFORE AFTER`` scores both. People, training rows and
predictor are those of :mod:`trials`; local outlier factor, isolation forest and PCA residual
(:mod:`implausibility`) are fitted on accepted rows that neither version has seen. Differences are
after minus before on the people whom both explain, averaged per person, with 95 % intervals over
people. Name a search with its own required plausibility as ``balanced@0.1``. The column ``p <
0.01`` is by the plausibility of the installed version, which its own searches require.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, McceWarning, Search
from measure import OUT, Table, log
from rivals import ContenderResult
from trials import Trial, assess, load_trial

CASES = ("german-boosting", "fico", "gmc-quarter", "adult-boosting", "german", "adult")
SEARCHES = ("sparse", "balanced", "plausible", "near")
SCORES = ("lof", "forest", "pca")
N_FACTUALS, N_SEEDS = 100, 3
# An answer with a smaller plausibility is implausible.
IMPLAUSIBLE = 0.01
# Fewer people say nothing.
LEAST_PEOPLE = 10
FOLDER = OUT / "answers"


def main() -> None:
    """Write answers, or compare two versions."""
    options = _options()
    warnings.simplefilter("ignore", McceWarning)
    with threadpool_limits(1):
        if options.task == "answers":
            for trial in _trials(options):
                write_answers(trial, FOLDER / options.names[0], options.searches)
        else:
            before, after = (FOLDER / name for name in options.names)
            found = compare(list(_trials(options)), before, after, options.searches)
            for table in tables(found):
                print(table.markdown())


def write_answers(trial: Trial, folder: Path, searches: list[str]) -> None:
    """Explain the factuals of a trial by each search, and write the best answers."""
    explainer = _fitted(trial)
    for name in searches:
        explainer.search = _search(name)
        started = time.process_time()
        result = ContenderResult.of(explainer.explain(trial.factuals))
        seconds = time.process_time() - started
        log(f"{trial.case.name} {trial.seed} {name}: {len(result.owner)} in {seconds:.1f} CPU s")
        path = _path(folder, trial, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        result.frame.assign(owner=result.owner).to_parquet(path)


def compare(trials: list[Trial], before: Path, after: Path, searches: list[str]) -> pd.DataFrame:
    """One row per person, trial and search: measures of both versions, side by side."""
    parts = []
    for trial in trials:
        explainer = _fitted(trial)
        for name in searches:
            old, _, _ = name.partition("@")
            first = _measured(trial, explainer, _path(before, trial, old)).add_suffix(" before")
            second = _measured(trial, explainer, _path(after, trial, name)).add_suffix(" after")
            joined = first.join(second, how="outer")
            named = joined.reindex(trial.factuals.index)
            parts.append(named.assign(case=trial.case.name, search=name))
    return pd.concat(parts)


def tables(found: pd.DataFrame) -> Iterator[Table]:
    """Means of both versions, and differences of the scores."""
    names = found["case"] + " " + found["search"]
    groups = [(str(name), rows) for name, rows in found.groupby(names, sort=False)]
    headings = ["", "answered", "sparsity", "difference", f"p < {IMPLAUSIBLE:g} before", "after"]
    lines = [[name, *_overview(rows)] for name, rows in groups]
    yield Table("Sparsity and plausibility", headings, lines)
    note = "Difference in % of the mean before; negative is more plausible. 95 % intervals."
    for title, n_changes in (("", None), (", as many changes", 0), (", fewer changes", -1)):
        lines = [[name, *_scores(rows, n_changes)] for name, rows in groups]
        headings = ["", "people", *SCORES]
        yield Table(f"Scores that are nobody's objective{title}", headings, lines, note)


def _overview(rows: pd.DataFrame) -> list[str]:
    shares = [f"{rows[f'lof {when}'].notna().mean():.3f}" for when in ("before", "after")]
    both = rows.dropna(subset=["lof before", "lof after"])
    sparsity = [f"{both[f'sparsity {when}'].mean():.2f}" for when in ("before", "after")]
    mean, margin = _interval(both, "sparsity")
    odd = [
        f"{100 * (both[f'plausibility {when}'] < IMPLAUSIBLE).mean():.0f} %"
        for when in ("before", "after")
    ]
    return [" → ".join(shares), " → ".join(sparsity), f"{mean:+.2f} ± {margin:.2f}", *odd]


def _scores(rows: pd.DataFrame, n_changes: int | None) -> list[str]:
    """Differences of the scores, of all people or of those with as many or with fewer changes."""
    both = rows.dropna(subset=["lof before", "lof after"])
    units = both[[f"{score} before" for score in SCORES]].mean() / 100
    if n_changes is not None:
        both = both[np.sign(both["sparsity after"] - both["sparsity before"]) == n_changes]
    if len(both) < LEAST_PEOPLE:
        return [str(len(both)), *[""] * len(SCORES)]
    cells = [str(len(both))]
    for score, unit in zip(SCORES, units, strict=True):
        mean, margin = _interval(both, score)
        mark = " **worse**" if mean > margin else ""
        cells.append(f"{mean / unit:+.1f} ± {margin / unit:.1f}{mark}")
    return cells


def _interval(both: pd.DataFrame, name: str) -> tuple[float, float]:
    """Mean difference, after less before, and half the width of its 95 % interval."""
    gaps = (both[f"{name} after"] - both[f"{name} before"]).groupby(level=0).mean()
    margin = 1.96 * float(gaps.std()) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.inf
    return float(gaps.mean()), margin


def _measured(trial: Trial, explainer: MCCE, path: Path) -> pd.DataFrame:
    """Measures of written answers, by factual."""
    table = pd.read_parquet(path)
    owner = table.pop("owner").to_numpy()
    frame = table.astype(trial.factuals.dtypes.to_dict())
    measured = assess(trial, ContenderResult(frame, owner)).rows
    return measured.assign(plausibility=explainer.plausibility(frame).to_numpy())


def _fitted(trial: Trial) -> MCCE:
    case = trial.case
    settings: dict[str, Any] = {"immutable": case.immutable, "random_state": trial.seed}
    return MCCE(case.predictor, case.desired, search="balanced", n_jobs=1, **settings).fit(
        trial.train
    )


def _search(name: str) -> Any:
    """A named search, or one with another required plausibility."""
    base, _, share = name.partition("@")
    changes = {"min_plausibility": float(share)} if share else {}
    return Search.preset(base, **changes)  # type: ignore[arg-type]


def _path(folder: Path, trial: Trial, search: str) -> Path:
    return folder / f"{trial.case.name}-{trial.seed}-{search}.parquet"


def _trials(options: argparse.Namespace) -> Iterator[Trial]:
    for name in options.cases:
        for seed in range(options.seeds):
            trial = load_trial(name, seed, options.people)
            if trial is not None:
                yield trial


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["answers", "compare"])
    parser.add_argument("names", nargs="+", help="versions, by names of your choice")
    parser.add_argument("--cases", nargs="+", default=[*CASES])
    parser.add_argument("--searches", nargs="+", default=[*SEARCHES])
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--people", type=int, default=N_FACTUALS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
