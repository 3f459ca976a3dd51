"""Appendix: the model without the decision."""

from __future__ import annotations

from typing import Any

import pandas as pd

from . import published
from .case import prepare_case
from .draws import share_of_valid_draws
from .experiment import (
    NOT_COMPARABLE,
    Experiment,
    Options,
    ProgressLine,
    Report,
    Tables,
    first_row,
)
from .report.figures import legend_below, panels
from .samples import SEED_BARS, draw_lines, run_by_samples

N_SAMPLES, N_SAMPLES_QUICK = 1000, 100
WITHOUT_K = f"{NOT_COMPARABLE}: printed as a rounded share, without its K"
CONDITIONED = {True: "with the decision", False: "without the decision"}


def run(options: Options, progress: ProgressLine) -> Report:
    """Run trees without the decision: coverage by K, next to the paper's table."""
    report = EXPERIMENT.report()
    printed = published.UNCONDITIONED
    table = run_by_samples(report, options, progress, printed, condition_on_decision=False)
    report.figures["coverage"] = _draw(table)
    report.captions["coverage"] = SEED_BARS
    report.tables["draws"] = draws = _draws(options)
    report.published["draws"] = published.DRAWS
    for model in published.DRAWS.table["model"] if "adult" in options.datasets else ():
        theirs = first_row(published.DRAWS.table, model=model)["valid_and_unique_%"]
        ours = first_row(draws, dataset="adult", model=model)["valid_and_unique_%"]
        what = f"adult, {model}: % of draws valid and unique"
        report.add_comparison(what, theirs, ours, WITHOUT_K)
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


def remarks(tables: Tables) -> list[str]:
    """How many draws are valid, and from which K on everybody has a counterfactual."""
    lines = []
    table = tables["draws"]
    for name in dict.fromkeys(table["dataset"]):
        given, left_out = (first_row(table, dataset=name, model=m) for m in CONDITIONED.values())
        lines.append(
            f"{name}: with the decision {given['valid_%']:.1f} % of the draws are valid and "
            f"{given['valid_and_unique_%']:.1f} % valid and unique, without it "
            f"{left_out['valid_%']:.1f} % and {left_out['valid_and_unique_%']:.1f} % "
            f"(K = {given['k']:,}, means over people)."
        )
    samples = tables["samples"]
    ours = samples[samples["source"] == "ours"]
    for name, rows in ours.groupby("dataset", sort=False):
        lacking = rows.loc[rows["coverage"] < 1, "k"].max()
        covered = rows.loc[~(rows["k"] <= lacking), "k"]
        since = f"from K = {covered.min():,} on" if len(covered) else "not even at the largest K"
        lines.append(f"{name!s}: without the decision everybody has a counterfactual {since}.")
    return lines


def _draw(table: pd.DataFrame) -> Any:
    """People with a counterfactual and changes by K."""
    figure, axes = panels(1, 2, size=(3.6, 2.7))
    titles = {"n_ce": "people with a counterfactual", "l0": "changed features (L0)"}
    for panel, (measure, title) in zip(axes[0], titles.items(), strict=True):
        draw_lines(panel, table, measure)
        panel.set_ylabel(title)
        panel.set_ylim(bottom=0)
    legend_below(figure, axes)
    return figure


EXPERIMENT = Experiment(
    name="unconditioned",
    title="Appendix: the decision left out of the model",
    about=(
        'The appendix table "we do not condition on the decision": Adult, the first 1,000 people '
        "whom the network declines, K from 10 to 25,000, with trees that do not use the decision. "
        "Compare it with the experiment samples. Costs are those of the explained people, so a "
        "small K that explains only easy cases looks cheaper than it is. Draws: the share of draws "
        "that are valid, and valid and unique, with and without the decision, in % with standard "
        "deviations over seeds. Our times are CPU seconds of one thread, the published ones "
        "wall-clock seconds of another machine."
    ),
    run=run,
    datasets=("adult",),
    remarks=remarks,
)
