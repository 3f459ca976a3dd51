"""What the costs of Experiment 1 depend on, and which features change.

Paper, section "Experiment 1" and its paragraph on which features the methods change. Other seeds of
the network and held-out people show how far costs move without any change of method.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from mcce.counterfactuals import Counterfactuals
from mcce.errors import PredictorError

from ..datasets import DatasetName
from .case import (
    Case,
    Method,
    average_over_seeds,
    measure_result,
    prepare_case,
)
from .experiment import Options, ProgressLine

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
