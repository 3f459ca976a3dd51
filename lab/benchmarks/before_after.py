"""Answers of two versions to the same people, by measures that no search optimises.

``PYTHONPATH=benchmarks python lab/benchmarks/before_after.py against CHECKOUT`` compares this
checkout with another one that has its own ``.venv``. In steps: ``answers NAME`` writes the answers
of the installed version to ``out/bench/answers/NAME``, run with the Python of either version;
``compare BEFORE AFTER`` scores both. Name a search with its own required plausibility as
``balanced@0.1``.

People, training rows and predictor are those of :mod:`trials`. Local outlier factor, isolation
forest and PCA residual (:mod:`implausibility`) are fitted on accepted rows that neither version has
seen, and so is the plausibility model that gives the p-values: one for both versions, and neither
searched with it, so an answer gains nothing from the chance errors of the model that selected it.
:mod:`paired` compares the measures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, McceWarning, Search
from measure import OUT, log, write
from paired import tables
from requirements import CASES
from rivals import ContenderResult
from trials import Trial, assess, load_trial

SEARCHES = ("sparse", "balanced", "plausible", "near")
N_FACTUALS, SEEDS = 100, (0, 1, 2)
FOLDER = OUT / "answers"


def main() -> None:
    """Write answers, or compare two versions."""
    options = _options()
    warnings.simplefilter("ignore", McceWarning)
    if options.task == "answers":
        with threadpool_limits(1):
            for trial in _trials(options):
                write_answers(trial, FOLDER / options.names[0], options.searches)
        return
    if options.task == "against":
        _answer_in_processes(Path(options.names[0]).resolve(), options)
        options.names = ["before", "after"]
    before, after = (FOLDER / name for name in options.names)
    with threadpool_limits(1):
        found = pd.concat(compare(_trials(options), before, after, options.searches))
    shown = list(tables(found))
    write(shown, "before_after")
    for table in shown:
        print(table.markdown())


def write_answers(trial: Trial, folder: Path, searches: list[str]) -> None:
    """Explain the factuals of a trial by each search, and write the best answers."""
    explainer = _fitted(trial, trial.train)
    for name in searches:
        explainer.search = _search(name)
        started = time.process_time()
        result = ContenderResult.of(explainer.explain(trial.factuals))
        seconds = time.process_time() - started
        log(f"{trial.case.name} {trial.seed} {name}: {len(result.owner)} in {seconds:.1f} CPU s")
        path = _path(folder, trial, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        each = result.n_scored / len(trial.factuals)
        result.frame.assign(owner=result.owner, rows_per_person=each).to_parquet(path)


def compare(
    trials: Iterator[Trial], before: Path, after: Path, searches: list[str]
) -> Iterator[pd.DataFrame]:
    """By trial and search one row per person: measures of both versions, side by side."""
    for trial in trials:
        unseen = trial.case.train.drop(index=trial.train.index)
        evaluator = _fitted(trial, unseen)
        for name in searches:
            old, _, _ = name.partition("@")
            first = _measured(trial, evaluator, _path(before, trial, old)).add_suffix(" before")
            second = _measured(trial, evaluator, _path(after, trial, name)).add_suffix(" after")
            joined = first.join(second, how="outer")
            named = joined.reindex(trial.factuals.index)
            yield named.assign(case=trial.case.name, search=name)


def _measured(trial: Trial, evaluator: MCCE, path: Path) -> pd.DataFrame:
    """Measures of written answers, by factual."""
    table = pd.read_parquet(path)
    owner, each = table.pop("owner").to_numpy(), table.pop("rows_per_person").to_numpy()
    frame = table.astype(trial.factuals.dtypes.to_dict())
    measured = assess(trial, ContenderResult(frame, owner)).rows
    broken = np.zeros(len(frame), dtype=bool)
    for found in evaluator.fitted_.relations or ():
        if found.relation.holds(trial.case.train).all():
            broken |= ~found.relation.holds(frame)
    return measured.assign(
        gower=measured["l1"] / frame.shape[1],
        plausibility=evaluator.plausibility(frame).to_numpy(),
        broken=broken,
        rows_per_person=each,
    )


def _fitted(trial: Trial, rows: pd.DataFrame) -> MCCE:
    case = trial.case
    settings: dict[str, Any] = {"immutable": case.immutable, "random_state": trial.seed}
    return MCCE(case.predictor, case.desired, search="balanced", n_jobs=1, **settings).fit(rows)


def _search(name: str) -> Any:
    """A named search, or one with another required plausibility."""
    base, _, share = name.partition("@")
    # A name alone means the same in every version.
    return Search(base, min_plausibility=float(share)) if share else name  # type: ignore[arg-type]


def _path(folder: Path, trial: Trial, search: str) -> Path:
    return folder / f"{trial.case.name}-{trial.seed}-{search}.parquet"


def _answer_in_processes(checkout: Path, options: argparse.Namespace) -> None:
    """Answers of the named searches of another checkout and of those given, each by its Python."""
    given = ["--cases", *options.cases, "--seeds", *map(str, options.seeds)]
    given += ["--people", str(options.people), "--searches"]
    named = list(dict.fromkeys(name.partition("@")[0] for name in options.searches))
    theirs, ours = str(checkout / ".venv/bin/python"), sys.executable
    for python, name, searches in (
        (theirs, "before", named),
        (ours, "after", options.searches),
    ):
        subprocess.run([python, __file__, "answers", name, *given, *searches], check=True)


def _trials(options: argparse.Namespace) -> Iterator[Trial]:
    for name in options.cases:
        for seed in options.seeds:
            trial = load_trial(name, seed, options.people)
            if trial is not None:
                yield trial


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["answers", "compare", "against"])
    parser.add_argument("names", nargs="+", help="versions by names of your choice, or a checkout")
    parser.add_argument("--cases", nargs="+", default=[*CASES])
    parser.add_argument("--searches", nargs="+", default=[*SEARCHES])
    parser.add_argument("--seeds", type=int, nargs="+", default=[*SEEDS])
    parser.add_argument("--people", type=int, default=N_FACTUALS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
