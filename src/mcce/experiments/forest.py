"""Appendix: a predictor without gradients."""

from __future__ import annotations

from . import published
from .experiment import Experiment, Options, ProgressLine, Report
from .variants import Variant, run_variants

VARIANTS = (Variant("network"), Variant("forest", kind="forest"))


def run(options: Options, progress: ProgressLine) -> Report:
    """Run MCCE on a random forest and on the network, next to the paper's table."""
    return run_variants(EXPERIMENT.report(), options, progress, published.FOREST, VARIANTS)


EXPERIMENT = Experiment(
    name="forest",
    title="Appendix: a random forest as the predictor",
    about=(
        "The appendix table of a model without gradients: a random forest of 200 trees on Adult, "
        "the first 1,000 people whom it declines, K = 1,000, next to the network on the same rows. "
        "The two decline different people, so their costs are not directly comparable."
    ),
    run=run,
    datasets=("adult",),
)
