"""Experiment 2: costs and times by the number of samples K; appendix: without the decision.

Paper, table of Experiment 2 and the appendix table "we do not condition on the decision": Adult,
the first 1,000 people whom the network declines, K from 10 to 25,000. Costs are those of the
explained people, so a small K that explains only easy cases looks cheaper than it is. Our times are
CPU seconds of one thread, the published ones wall-clock seconds of another machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcce import Schema, TreeChain
from mcce.protocols import person_keys

from . import published
from .case import (
    Case,
    authors_visit_order,
    average_over_seeds,
    describe_case,
    draw_rows,
    measure_result,
    prepare_case,
    run_mcce,
)
from .experiment import Experiment, Options, ProgressLine, Report, first_row, published_rows
from .report import OURS, PUBLISHED, legend_below, panels

K = (10, 50, 100, 1000, 5000, 10_000, 25_000)
QUICK_K = (10, 50, 100)
COLUMNS = [
    *("dataset", "source", "k", "l0", "l0_sd", "l0_exact", "l0_exact_sd", "l1", "l1_sd"),
    *("violation", "success", "n_ce", "coverage"),
    *("model", "generate", "postprocess", "total", "seconds", "l0_seeds", "l1_seeds"),
]


def run(options: Options, progress: ProgressLine) -> Report:
    """Run every K on every data set, next to the paper's table for Adult."""
    report = Report()
    table = run_by_samples(report, options, progress, published.SAMPLES)
    report.figures["samples"] = _draw(table)
    return report


def run_by_samples(
    report: Report,
    options: Options,
    progress: ProgressLine,
    printed: pd.DataFrame,
    **settings: Any,
) -> pd.DataFrame:
    """Measure MCCE for every K and add the results to the report, next to the published ones."""
    numbers = QUICK_K if options.quick else K
    progress.plan(len(options.datasets) * (1 + len(numbers) * options.seeds))
    rows: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        people.append(describe_case(case, options))
        if name == "adult":
            rows += [row | {"dataset": name} for row in published_rows(printed)]
        for k in numbers:
            runs = []
            for seed in range(options.seeds):
                progress.step(f"{name}: K = {k:,}, seed {seed}")
                runs.append(measure_result(case, run_mcce(case, seed, n_samples=k, **settings)))
            means = average_over_seeds(runs)
            rows.append({"dataset": name, "source": "ours", "k": k} | means)
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    report.tables |= {"samples": table, "people": pd.DataFrame(people)}
    _compare_with_published(report, table)
    return table


def _compare_with_published(report: Report, table: pd.DataFrame) -> None:
    """The paper's costs and numbers of counterfactuals next to ours, for each K."""
    for k in table.loc[table["source"] == "published", "k"]:
        theirs = first_row(table, source="published", k=k)
        ours = first_row(table, dataset="adult", source="ours", k=k)
        report.add_means(f"K = {k:,}:", theirs, ours)
        report.add_comparison(f"K = {k:,}: n_ce", theirs["n_ce"], ours["n_ce"])


def _draw(table: pd.DataFrame) -> Any:
    """Costs and times by K."""
    figure, axes = panels(1, 3, size=(3.2, 2.7))
    titles = {"l0": "changed features (L0)", "l1": "distance (L1)", "total": "CPU seconds"}
    for panel, (measure, title) in zip(axes[0], titles.items(), strict=True):
        # The published seconds are wall-clock seconds of another machine.
        draw_lines(
            panel, table[table["source"] == "ours"] if measure == "total" else table, measure
        )
        panel.set_ylabel(title)
        if measure == "total":
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
    legend_below(figure, axes)
    return figure


def draw_lines(panel: Any, table: pd.DataFrame, measure: str) -> None:
    """A measure by K, one line per data set and source; costs with bars over seeds."""
    for (name, source), rows in table.groupby(["dataset", "source"], sort=False):
        ours = source == "ours"
        seeds = f"{measure}_seeds"
        panel.errorbar(
            rows["k"],
            rows[measure],
            yerr=rows[seeds] if ours and seeds in rows else None,
            capsize=3,
            marker="o" if ours else "s",
            linestyle="-" if ours else "--",
            color=OURS if ours else PUBLISHED,
            label=f"{name}, {'ours' if ours else 'paper'}",
        )
    panel.set_xscale("log")
    panel.set_xlabel("samples K")


SAMPLES = Experiment(
    name="samples",
    title="Experiment 2: costs and times by the number of samples K",
    run=run,
    datasets=("adult",),
)


def share_of_valid_draws(
    case: Case, seed: int, *, n_samples: int, condition_on_decision: bool
) -> dict[str, float]:
    """Draws with the desired decision, and the distinct ones among them, in % of all draws.

    Means over people. Those with the same immutable values share their draws, so each set of draws
    is scored once and counts as often as there are people.
    """
    rows = Schema.learn_rows(case.train, immutable=case.immutable)
    chain = TreeChain(
        visit_order=authors_visit_order(case), condition_on_decision=condition_on_decision
    ).fit(rows, case.decide(case.train), n_jobs=1)
    group = case.factuals.groupby(case.immutable, observed=True, sort=False).ngroup()
    people = rows.schema.encode(case.factuals[~group.duplicated()])
    keys = person_keys(seed, np.ascontiguousarray(people.tree_codes[rows.schema.immutable].T))
    drawn = draw_rows(chain, people, keys, n_samples)
    valid = case.decide(drawn)
    owner = np.repeat(np.arange(len(people)), n_samples)
    repeated = drawn.reset_index(drop=True).assign(_owner=owner).duplicated().to_numpy()
    shares = {"valid_%": valid, "valid_and_unique_%": valid & ~repeated}
    weight = np.bincount(group, minlength=len(people)) / len(group)
    return {
        name: 100 * float(weight @ kept.reshape(len(people), n_samples).mean(axis=1))
        for name, kept in shares.items()
    }


N_SAMPLES, N_SAMPLES_QUICK = 1000, 100
CONDITIONED = {True: "with the decision", False: "without the decision"}


def run_unconditioned(options: Options, progress: ProgressLine) -> Report:
    """Run trees without the decision: coverage by K, next to the paper's table."""
    report = Report()
    printed = published.UNCONDITIONED
    table = run_by_samples(report, options, progress, printed, condition_on_decision=False)
    report.figures["coverage"] = _draw_coverage(table)
    report.tables["draws"] = draws = _draws(options)
    for model in published.DRAWS["model"] if "adult" in options.datasets else ():
        theirs = first_row(published.DRAWS, model=model)["valid_and_unique_%"]
        ours = first_row(draws, dataset="adult", model=model)["valid_and_unique_%"]
        what = f"adult, {model}: % of draws valid and unique"
        report.add_comparison(what, theirs, ours, rounding=0.5)
    return report


def _draws(options: Options) -> pd.DataFrame:
    """Shares of valid draws with and without the decision: means and deviations over seeds."""
    lines = []
    k = N_SAMPLES_QUICK if options.quick else N_SAMPLES
    for name in options.datasets:
        case = prepare_case(name, options)
        for flag, model in CONDITIONED.items():
            runs = pd.DataFrame(
                share_of_valid_draws(case, seed, n_samples=k, condition_on_decision=flag)
                for seed in range(options.seeds)
            )
            line: dict[str, Any] = {"dataset": name, "model": model, "k": k}
            for share in runs.columns:
                line |= {share: runs[share].mean(), f"{share}_sd": runs[share].std()}
            lines.append(line)
    return pd.DataFrame(lines)


def _draw_coverage(table: pd.DataFrame) -> Any:
    """People with a counterfactual and changes by K."""
    figure, axes = panels(1, 2, size=(3.6, 2.7))
    titles = {"n_ce": "people with a counterfactual", "l0": "changed features (L0)"}
    for panel, (measure, title) in zip(axes[0], titles.items(), strict=True):
        draw_lines(panel, table, measure)
        panel.set_ylabel(title)
        panel.set_ylim(bottom=0)
    legend_below(figure, axes)
    return figure


UNCONDITIONED = Experiment(
    name="unconditioned",
    title="Appendix: the decision left out of the model",
    run=run_unconditioned,
    datasets=("adult",),
)
