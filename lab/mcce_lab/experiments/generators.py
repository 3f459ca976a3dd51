"""Which generator to use, and what privacy costs: other generators against the paper's trees.

Paper, section "Modeling": step 1 may be any model of the mutable features given the immutable ones
and the decision. Section "Privacy" names differential privacy as a further step: private trees with
several epsilons, whose domains count as public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mcce import Domain, ForestChain, InferenceTreeChain, PrivateTrees, TreeChain
from mcce.privacy import audit_rows

from ..generators import CTGAN, MADE, GaussianCopula
from ..networks import usual_device
from .case import Case
from .experiment import Experiment, Options, ProgressLine, Report
from .report import COLOURS, GREY, legend_below, panels
from .steps import (
    SECONDS,
    Parts,
    draw_all,
    measure_generator,
    rows_for_desired,
    saved_runs,
    tables_of,
)

KINDS = {
    "trees": TreeChain,
    "forest": ForestChain,
    "ctree": InferenceTreeChain,
    "copula": GaussianCopula,
    "made": MADE,
}
NAMES = (*KINDS, "ctgan", "private")
BASE = "trees"
EPSILONS, EPSILONS_QUICK = (0.5, 1.0, 2.0, 5.0, 10.0), (1.0, 10.0)
N_BINS = 20
# A number that so large a share of the reference has is counted on its own.
ATOM = 0.05


def run_private(options: Options, progress: ProgressLine) -> Report:
    """Measure private trees with every epsilon on every data set with every seed."""
    report = Report()
    epsilons = EPSILONS_QUICK if options.quick else EPSILONS
    progress.plan(len(options.datasets) * (1 + options.seeds * (1 + len(epsilons))))
    runs: list[dict[str, Any]] = []
    for case, seed, parts in draw_all(options, progress):
        for epsilon in (None, *epsilons):
            name = BASE if epsilon is None else f"epsilon {epsilon:g}"
            progress.step(f"{case.name}: {name}, seed {seed}")
            labels = {"dataset": case.name, "trees": name, "seed": seed}
            made = partial(_measure, case, parts, epsilon, seed, options)
            runs += saved_runs(PRIVATE.name, options, labels, made)
    table = pd.DataFrame(runs)
    report.tables = tables_of(table, "trees", BASE)
    report.tables["bound"] = _bound(table, epsilons)
    report.figures["epsilons"] = draw_epsilons(report.tables, BASE)
    return report


def _measure(
    case: Case, parts: Parts, epsilon: float | None, seed: int, options: Options
) -> list[dict[str, Any]]:
    """The runs of trees with an epsilon, or without one."""
    trees: Any = TreeChain() if epsilon is None else private_trees(case, parts, epsilon)
    runs = measure_generator(trees, case, parts, seed, options)
    released = rows_for_desired(trees, case, parts, seed)
    found = audit_rows(
        released,
        parts.training,
        parts.holdout,
        parts.reference,
        immutable=case.immutable,
        random_state=seed,
    )
    broken = {
        _violations(tried): float(not found.dp_bound(tried).holds)
        for tried in (EPSILONS if epsilon is None else (epsilon,))
    }
    return [run | broken for run in runs]


def _violations(epsilon: float) -> str:
    """The column that says whether the bound of an epsilon is broken."""
    return f"violations_{epsilon:g}"


def _bound(runs: pd.DataFrame, epsilons: Sequence[float]) -> pd.DataFrame:
    """Shares of seeds that break the bound of each epsilon, with noise and without."""
    lines = []
    for dataset, rows in runs[runs["search"] == "paper"].groupby("dataset", sort=False):
        for epsilon in epsilons:
            column, name = _violations(epsilon), f"epsilon {epsilon:g}"
            lines.append(
                {
                    "dataset": dataset,
                    "trees": name,
                    "violations": rows.loc[rows["trees"] == name, column].mean(),
                    "violations_without_noise": rows.loc[rows["trees"] == BASE, column].mean(),
                }
            )
    return pd.DataFrame(lines)


def private_trees(case: Case, parts: Parts, epsilon: float) -> PrivateTrees:
    """Private trees whose public domains are those of the reference."""
    public = {name: _domain(case.train[name], parts.reference[name]) for name in case.train}
    return PrivateTrees(domains=public, epsilon=epsilon)


def _domain(declared: pd.Series[Any], reference: pd.Series[Any]) -> Domain:
    """Levels as declared by the dtype; range, bins and atoms of a number from the reference."""
    if isinstance(declared.dtype, pd.CategoricalDtype):
        return Domain(levels=list(declared.cat.categories))
    whole = bool((declared == declared.round()).all())
    shares = reference.value_counts(normalize=True)
    atoms = sorted(float(value) for value in shares.index[shares >= ATOM])
    quantiles = reference.quantile(np.linspace(0, 1, N_BINS + 1)).to_numpy(dtype=np.float64)
    # The range is that of the whole file, as a codebook would give it.
    edges = np.unique([declared.min(), *quantiles, declared.max()])
    return Domain(
        low=float(edges[0]),
        high=float(edges[-1]),
        edges=edges.tolist(),
        atoms=atoms,
        step=1.0 if whole else None,
    )


PRIVATE = Experiment(
    name="private",
    title="What differential privacy costs: realism, answers and privacy by epsilon",
    run=run_private,
    datasets=("adult", "gmc", "fico", "german"),
    in_paper=False,
)


EPSILON = 1.0


def run_generators(options: Options, progress: ProgressLine) -> Report:
    """Measure every generator on every data set with every seed."""
    report = Report()
    progress.plan(len(options.datasets) * (1 + options.seeds * len(NAMES)))
    runs: list[dict[str, Any]] = []
    for case, seed, parts in draw_all(options, progress):
        for name in NAMES:
            progress.step(f"{case.name}: {name}, seed {seed}")
            labels = {"dataset": case.name, "generator": name, "seed": seed}
            made = partial(measure, name, case, parts, seed, options)
            runs += saved_runs(GENERATORS.name, options, labels, made)
    report.tables = tables_of(pd.DataFrame(runs), "generator", BASE)
    report.figures["generators"] = draw_dots(report.tables, "generator")
    return report


def measure(
    name: str, case: Case, parts: Parts, seed: int, options: Options
) -> list[dict[str, Any]]:
    """The runs of a generator by its name: one for each search."""
    generator: Any
    if name == "private":
        generator = private_trees(case, parts, EPSILON)
    elif name == "ctgan":
        generator = CTGAN(device=usual_device())
    else:
        generator = KINDS[name]()
    runs = measure_generator(generator, case, parts, seed, options)
    on_gpu = getattr(generator, "device", "cpu") != "cpu"
    return [run | dict.fromkeys(SECONDS, np.nan) for run in runs] if on_gpu else runs


GENERATORS = Experiment(
    name="generators",
    title="Which generator: realism, answers, privacy and time of each",
    run=run_generators,
    datasets=("adult", "gmc", "fico", "german"),
    in_paper=False,
)


PANELS = {
    ("realism", "accuracy_%"): "accuracy of a forest, %",
    ("answers", "l1"): "L1 of answers",
    ("answers", "knn_distance"): "distance to accepted rows",
    ("privacy", "calibrated_auc"): "AUC of membership",
}


def draw_dots(tables: Mapping[str, pd.DataFrame], what: str) -> Any:
    """One panel per data set and measure, a dot with its interval for each of what was run."""
    names = list(dict.fromkeys(tables["realism"]["dataset"]))
    figure, axes = panels(len(names), len(PANELS), size=(2.7, 2.2))
    for line, name in zip(axes, names, strict=True):
        for axis, (place, title) in zip(line, PANELS.items(), strict=True):
            rows = _rows(tables, place[0], name)
            for number, (_, row) in enumerate(rows.iterrows()):
                value, reach = _interval(row, place[1])
                colour = COLOURS[number % len(COLOURS)]
                axis.errorbar(value, number, xerr=reach, fmt="o", color=colour)
            axis.set_yticks(range(len(rows)), rows[what])
            axis.invert_yaxis()
            axis.grid(axis="y", visible=False)
            axis.locator_params(axis="x", nbins=5)
            axis.set(title=name, xlabel=title)
    return figure


def draw_epsilons(tables: Mapping[str, pd.DataFrame], base: str) -> Any:
    """One panel per data set and measure, by epsilon, with a line for the trees without noise."""
    names = list(dict.fromkeys(tables["realism"]["dataset"]))
    figure, axes = panels(len(names), len(PANELS), size=(2.7, 2.2))
    for line, name in zip(axes, names, strict=True):
        for axis, (place, title) in zip(line, PANELS.items(), strict=True):
            rows = _rows(tables, place[0], name)
            private = rows[rows["trees"] != base]
            epsilon = private["trees"].str.removeprefix("epsilon ").astype(float)
            points = [_interval(row, place[1]) for _, row in private.iterrows()]
            values, reaches = zip(*points, strict=True)
            axis.errorbar(
                epsilon, values, yerr=reaches, fmt="o-", color=COLOURS[0], label="private trees"
            )
            without = rows.loc[rows["trees"] == base, place[1]].iloc[0]
            axis.axhline(without, color=GREY, label="trees without noise")
            axis.set_xscale("log")
            axis.set_xticks(list(epsilon), [f"{one:g}" for one in epsilon])
            axis.minorticks_off()
            axis.set(title=f"{name}: {title}", xlabel="epsilon")
            axis.title.set_fontsize(8)
    legend_below(figure, axes)
    return figure


def _rows(tables: Mapping[str, pd.DataFrame], table: str, dataset: str) -> Any:
    """The rows of a data set; of answers those of the paper's search."""
    rows = tables[table]
    rows = rows[rows["dataset"] == dataset]
    return rows[rows["search"] == "paper"] if "search" in rows else rows


def _interval(row: Any, measure: str) -> tuple[float, float]:
    """A value, and half of its interval."""
    reach = row[f"{measure}_high"] - row[measure]
    return row[measure], reach if reach == reach else 0.0
