"""Appendix: a predictor without gradients."""

from __future__ import annotations

from . import published
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
    Tables,
    first_row,
)
from .variants import Variant, run_variants

VARIANTS = (
    Variant("network"),
    Variant("forest", kind="forest"),
    Variant("forest, without copies", kind="forest", copies="never"),
)


def run(options: Options, progress: ProgressLine) -> Report:
    """Run MCCE on a random forest and on the network, next to the paper's table."""
    return run_variants(EXPERIMENT.report(), options, progress, published.FOREST, VARIANTS)


def remarks(tables: Tables) -> list[str]:
    """Copies of training rows, and the cost of excluding them."""
    lines = []
    ours = tables["results"].query("source == 'ours'")
    printed = published.COPIES.table
    most = (100 * printed["copies"] / printed["n_ce"]).max()
    for name, rows in ours.groupby("dataset", sort=False):
        network, drawn, without = (first_row(rows, variant=variant.name) for variant in VARIANTS)
        lines.append(
            f"{name}: {drawn['copies_%']:.1f} % of the counterfactuals for the forest are copies "
            f"of training rows, for the network {network['copies_%']:.1f} %; the paper reports at "
            f"most {most:.1f} %, for networks only. Excluding copies, l0 goes from "
            f"{drawn['l0']:.3f} to {without['l0']:.3f} and l1 from {drawn['l1']:.3f} to "
            f"{without['l1']:.3f}."
        )
    return lines


EXPERIMENT = Experiment(
    name="forest",
    title="Appendix: a random forest as the predictor",
    about=(
        "The appendix table of a model without gradients: a random forest of 200 trees on Adult, "
        "the first 1,000 people whom it declines, K = 1,000, next to the network on the same rows. "
        "The two decline different people, so their costs are not directly comparable. The last "
        "variant excludes copies of training rows."
    ),
    run=run,
    datasets=("adult",),
    remarks=remarks,
)
