"""All methods on the same people, predictors, training rows and judges, measured alike.

Beyond Experiment 1. A cell is a data set, a trained predictor and a draw of people. It gives two
tables, one row per person and method and one per method, which are saved, so that a run that was
interrupted goes on where it stopped. Sparsity counts every difference, however small; CPU seconds
are those of one thread.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, Counterfactuals, metrics
from mcce.metrics import Evaluator

from ..datasets import DatasetError
from ..metrics import JUDGES, Judges, detectability
from .case import cpu_seconds
from .cells import METHODS, UNTUNED, Cell, Draw, Method, draw_cell
from .experiment import Experiment, Options, ProgressLine, Report
from .summary import by_method, dominance, draw_fronts, paired

PEOPLE, BY_METHOD = "people", "methods"
KEYS = ["dataset", "box", "network", "seed", "method"]
COLUMNS = (
    *("sparsity", "l1", "violation", "valid", "copy", "redundancy"),
    *("contradictions", "plausibility"),
)
# Significant digits of measures in files.
DIGITS = 4


def run_cell(cell: Cell, options: Options, step: Callable[[str], None]) -> None:
    """Run the methods of a cell that were not run before, and save its two tables."""
    saved = [_read(cell_path(options.out, cell, kind)) for kind in (PEOPLE, BY_METHOD)]
    done = set(saved[1]["method"])
    wanted = options.chosen(method.name for method in METHODS)
    todo = [m for m in METHODS if m.can_run(cell) and m.name in wanted and m.name not in done]
    if not todo:
        return
    with threadpool_limits(1):
        new = compare_methods(cell, draw_cell(cell, options), todo, step)
    order = {method.name: at for at, method in enumerate(METHODS)}
    for kind, before, found in zip((PEOPLE, BY_METHOD), saved, new, strict=True):
        # Joined to an empty table, row numbers would become floats, which are rounded.
        kept = before[before["method"].isin(done)]
        table = found if kept.empty else pd.concat([kept, found], ignore_index=True)
        table = table.sort_values("method", key=lambda names: names.map(order), kind="stable")
        _write(cell_path(options.out, cell, kind), table)


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=KEYS)


def _write(path: Path, table: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    table.to_csv(unfinished, index=False, float_format=f"%.{DIGITS}g", compression=None)
    unfinished.replace(path)


def cell_path(out: Path, cell: Cell, kind: str) -> Path:
    """Where a table of a cell is saved."""
    return out / "cells" / f"{cell.name}-{kind}.csv"


def compare_methods(
    cell: Cell, draw: Draw, methods: Sequence[Method], step: Callable[[str], None]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Methods on the people of a cell: measures by person and method, and by method."""
    measures = Measures.of(draw)
    keys = {name: getattr(cell, name) for name in KEYS[:-1]}
    people, by_method = [], []
    for method, fit_seconds, explainer in _fitted(draw, methods):
        step(f"{cell.name}: {method.name}")
        seconds, result = cpu_seconds(partial(explainer.explain, draw.people))
        named = {**keys, "method": method.name}
        people.append(measures.by_person(result).assign(**named))
        by_method.append(
            {
                **named,
                "n_people": len(draw.people),
                "n_answered": int((result.people["status"] == "answered").sum()),
                "fit_cpu": fit_seconds,
                "search_cpu": seconds,
                "rows_per_person": result.n_evaluated / max(len(draw.people), 1),
                "detectability": measures.detectability(result),
            }
        )
    found = pd.concat(people, ignore_index=True)
    return found[[*KEYS, *found.columns.difference(KEYS, sort=False)]], pd.DataFrame(by_method)


def _fitted(draw: Draw, methods: Sequence[Method]) -> Iterator[tuple[Method, float, Any]]:
    """Each method with its CPU seconds of fitting, fitted."""
    fits: dict[str, tuple[float, Any]] = {}
    for method in methods:
        key = method.shares or method.name
        if key not in fits:
            fits[key] = cpu_seconds(partial(method.fit, draw.case, draw.train, draw.seed))
        seconds, explainer = fits[key]
        yield method, seconds, copy.copy(explainer).set_params(**method.settings)


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of the answers in a cell: the same for every method."""

    draw: Draw
    evaluator: Evaluator
    judges: Judges
    plausibility: MCCE

    @classmethod
    def of(cls, draw: Draw) -> Measures:
        """The measures of answers to the people of a draw."""
        case, seed = draw.case, draw.seed
        evaluator = case.evaluator_of(draw.train)
        # Its plausibility model sees accepted rows that no method does.
        declined = draw.train[~case.decide(draw.train)]
        model = case.explainer(search="balanced", random_state=seed)
        model.fit(pd.concat([declined, draw.unseen]))
        return cls(draw, evaluator, Judges.fit(draw.unseen, evaluator, random_state=seed), model)

    def by_person(self, result: Counterfactuals[pd.DataFrame]) -> pd.DataFrame:
        """The measures of each person's answer, missing where there is none."""
        first = result.measures.index.get_level_values("rank") == 1
        owner, frame = result.owner[first], result.frame[first].reset_index(drop=True)
        return self.by_row(owner, frame)

    def by_row(self, owner: Any, frame: pd.DataFrame) -> pd.DataFrame:
        """The same for one answer each of some of the people."""
        people = pd.DataFrame({"person": self.draw.people.index})
        if frame.empty:
            return people.assign(**dict.fromkeys([*COLUMNS, *JUDGES], np.nan))
        before = self.draw.people.iloc[owner].reset_index(drop=True)
        pairs = before, frame, self.evaluator
        measured = (
            metrics.sparsity(*pairs),
            metrics.l1(*pairs),
            metrics.violation(*pairs),
            metrics.success(frame, self.evaluator),
            metrics.copies(frame, self.evaluator),
            metrics.redundancy(*pairs),
            self._contradictions(frame),
            self.plausibility.plausibility(frame)["plausibility"],
        )
        table = pd.DataFrame(dict(zip(COLUMNS, map(np.asarray, measured), strict=True)))
        judged = self.judges(frame).reset_index(drop=True)
        table = pd.concat([table, judged], axis=1).set_axis(owner, axis=0)
        return people.join(table.astype(float), how="left")

    def detectability(self, result: Counterfactuals[pd.DataFrame]) -> float:
        """How well a classifier tells the answers from accepted rows that no method has seen."""
        first = result.measures.index.get_level_values("rank") == 1
        if not first.any():
            return float("nan")
        return detectability(
            result.frame[first], self.draw.unseen, self.evaluator, random_state=self.draw.seed
        )

    def _contradictions(self, frame: pd.DataFrame) -> np.ndarray:
        levels = [f for f in self.evaluator.schema.features if f.kind == "categorical"]
        if len(levels) < 2:
            return np.zeros(len(frame))
        return metrics.contradictory_pairs(frame, self.evaluator).to_numpy()


N_NETWORKS = 3
# Data sets that are also explained on raw categories.
RAW = ("adult", "german")
# What all methods are compared with, person by person.
BASE = "MCCE balanced"


def run(options: Options, progress: ProgressLine) -> Report:
    """Run all cells that are not there yet, and sum them up."""
    cells = list(plan(options))
    progress.plan(len(cells) * len(options.chosen(method.name for method in METHODS)))
    done, left_out = [], {}
    for cell in cells:
        try:
            run_cell(cell, options, progress.step)
        except DatasetError as error:
            progress.step(f"{cell.name} is left out: {error}")
            left_out[cell.dataset] = str(error)
            continue
        done.append(cell)
    if not done:
        reasons = " ".join(f"{name}: {why}" for name, why in left_out.items())
        raise DatasetError(f"No cell could be run. {reasons}")
    people, methods = (
        pd.concat([pd.read_csv(cell_path(options.out, cell, kind)) for cell in done])
        for kind in (PEOPLE, BY_METHOD)
    )
    people.to_csv(options.out / "compare-people.csv.xz", index=False, float_format="%.4g")
    return summarise(people, methods)


def plan(options: Options) -> Iterator[Cell]:
    """The cells of a run."""
    for network in range(1 if options.quick else N_NETWORKS):
        for seed in range(options.seeds):
            for name in options.datasets:
                yield Cell(name, "network", network, seed)
                if name in RAW and not options.quick:
                    yield Cell(name, "boosting", network, seed)
            if not options.quick:
                yield Cell(UNTUNED, "network", network, seed)
                yield Cell(UNTUNED, "boosting", network, seed)


def summarise(people: pd.DataFrame, methods: pd.DataFrame) -> Report:
    """A report of cells that were run, from their tables."""
    ours = [method.name for method in METHODS if method.is_ours]
    rivals = [method.name for method in METHODS if not method.is_ours]
    report = Report()
    report.tables = {
        "measures": by_method(people, methods),
        "paired": paired(people, BASE),
        "dominance": dominance(people, ours, rivals),
    }
    report.figures["fronts"] = draw_fronts(report.tables["measures"])
    return report


EXPERIMENT = Experiment(
    name="compare",
    title="All methods on the same people, predictors, training rows and judges",
    run=run,
    datasets=("adult", "gmc", "german", "fico"),
    in_paper=False,
    has_variants=True,
)
