"""The authors' code and ours on the same rows, network and people.

Not in the paper. Both searches draw at random, so single answers differ; means over people are
compared, pair by pair, and CPU seconds of one thread, though of two machines. Costs of the authors'
answers are those that their code states. Takes a folder per data set with training rows, people,
the weights of a network and the authors' answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce import metrics
from mcce.errors import ParameterError

from .case import STEPS, TOLERANCE, Case, average_over_seeds, measure_result, run_mcce
from .experiment import Experiment, Options, ProgressLine, Report
from .predictors import Design, Network

TABLES = ("train", "factuals", "reference_cfs")
COSTS = ("l0", "l1")
MAX_ERROR = 1e-6  # of a score, stated and computed
COLUMNS = [
    *("dataset", "code", "l0", "l0_sd", "l1", "l1_sd", "n_ce", "copies_%", "seeds"),
    *("l0_seeds", "l1_seeds", *STEPS),
]


@dataclass(frozen=True, eq=False)
class Reference:
    """A case, the answers of the authors' code, and what is recorded about them."""

    case: Case
    answers: pd.DataFrame
    meta: dict[str, Any]


def read_reference(folder: Path) -> Reference:
    """Read the case of a folder."""
    paths = [folder / f"{name}.csv.gz" for name in TABLES]
    wanted = (*paths, folder / "meta.json", folder / "model.npz")
    missing = [path.name for path in wanted if not path.is_file()]
    if missing:
        raise ParameterError(
            f"The answers of the authors' code need {', '.join(missing)} in {str(folder)!r}. "
            "Use --reference to name the folder that holds a folder for each data set."
        )
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    train, people, answers = (pd.read_csv(path, index_col="row") for path in paths)
    rows = train.drop(columns=meta["target"])
    texts = rows.select_dtypes(exclude="number").columns
    levels = {name: pd.CategoricalDtype(sorted(rows[name].unique())) for name in texts}
    factuals = people.drop(columns=[meta["target"], "pred_prob"])
    case = Case(
        folder.name,
        rows.astype(levels),
        factuals.astype(levels),
        meta["immutables"],
        _read_network(folder / "model.npz", levels, list(rows)),
        n_samples=meta["K"],
        outcome=train[meta["target"]] == 1,
        auc=meta["auc"],
    )
    error = float(np.abs(case.predictor(case.factuals) - people["pred_prob"]).max())
    if error > MAX_ERROR:
        raise ParameterError(
            f"The network in {str(folder)!r} must score the people as stated in factuals.csv.gz, "
            f"but differs by up to {error:.2g}. The files may be of different runs: copy them "
            "again, or use --reference to name another folder."
        )
    return Reference(case, answers, meta)


def _read_network(
    path: Path, levels: Mapping[str, pd.CategoricalDtype], columns: Sequence[str]
) -> Network:
    """The network in a file: standardised columns and indicators, such as ``sex_Male``."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    inputs: list[tuple[str, Any]] = []
    for name in map(str, arrays["input_names"]):
        column = max((c for c in columns if f"{name}_".startswith(f"{c}_")), key=len)
        inputs.append((column, None if name == column else name[len(column) + 1 :]))
    known = {name: dtype.categories for name, dtype in levels.items()}
    design = Design(inputs, known, arrays["natural_mean"], arrays["natural_sd"])
    n_layers = sum(name.startswith("coef_") for name in arrays)
    layers = [(arrays[f"coef_{i}"], arrays[f"intercept_{i}"]) for i in range(n_layers)]
    return Network.with_one_output(design, layers)


def run(options: Options, progress: ProgressLine) -> Report:
    """Run our code on the authors' cases, next to their answers."""
    if options.reference is None:
        raise ParameterError(
            "The experiment 'authors' needs the answers of the authors' code. Use --reference to "
            "name the folder that holds a folder for each data set."
        )
    report = Report()
    progress.plan(len(options.datasets) * options.seeds)
    rows: list[dict[str, Any]] = []
    for name in options.datasets:
        work = read_reference(options.reference / name)
        theirs = _theirs(work)
        ours, by_person = _ours(work, options, progress)
        rows += [theirs, ours]
        for cost in COSTS:
            gaps = by_person[cost] - work.answers[cost.upper()]
            error = float(gaps.std() / gaps.count() ** 0.5)
            labels = {"dataset": name, "measure": cost}
            report.compare(labels, theirs[cost], ours[cost], error=error, rounding=0.0)
    report.tables["results"] = pd.DataFrame(rows).reindex(columns=COLUMNS)
    return report


def _ours(
    work: Reference, options: Options, progress: ProgressLine
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Means over seeds, and the mean costs of each person."""
    case, runs, costs = work.case, [], []
    for seed in range(options.seeds):
        progress.step(f"{case.name}: seed {seed}")
        result = run_mcce(case, seed)
        runs.append(measure_result(case, result))
        pairs = case.factuals, result.counterfactuals, case.evaluator
        by_row = {"l0": metrics.sparsity(*pairs, tolerance=TOLERANCE), "l1": metrics.l1(*pairs)}
        costs.append(pd.DataFrame({name: by.to_numpy() for name, by in by_row.items()}))
    by_person = sum(costs[1:], costs[0]) / len(costs)
    line = {"dataset": case.name, "code": "ours"} | average_over_seeds(runs)
    return line, by_person.set_axis(case.factuals.index)


def _theirs(work: Reference) -> dict[str, Any]:
    """The costs that the authors' code states, and the CPU seconds that it took."""
    answers, case, taken = work.answers, work.case, work.meta["reference"]
    line: dict[str, Any] = {"dataset": case.name, "code": "authors'", "seeds": 1}
    for cost in COSTS:
        column = answers[cost.upper()]
        line |= {cost: float(column.mean()), f"{cost}_sd": float(column.std())}
    line["n_ce"] = float(len(answers))
    copied = metrics.copies(answers[list(case.train.columns)], case.evaluator)
    line["copies_%"] = 100 * float(copied.mean())
    seconds = taken["fit_cpu"], taken["gen_cpu"], taken["post_cpu"]
    return line | dict(zip(STEPS, (*seconds, sum(seconds)), strict=True))


EXPERIMENT = Experiment(
    name="authors",
    title="The authors' code and ours on the same rows, network and people",
    run=run,
    datasets=("adult", "german"),
    needs_reference=True,
)
