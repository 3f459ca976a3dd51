"""Appendix: a black box without gradients."""

from __future__ import annotations

from . import published
from .experiment import Experiment, Options, Progress, Report
from .variants import Way, variant

WAYS = (Way("network"), Way("forest", kind="forest"))


def run(options: Options, progress: Progress) -> Report:
    """MCCE on a random forest, beside the paper's table and the network."""
    return variant(EXPERIMENT.report(), options, progress, published.FOREST, WAYS)


EXPERIMENT = Experiment(
    name="forest",
    title="Appendix: a random forest as the black box",
    about=(
        "The appendix table of a model without gradients: a random forest of 200 trees on Adult, "
        "the first 1,000 people whom it declines, K = 1,000; the network on the same rows beside "
        "it. The two decline different people, so their costs are not directly comparable."
    ),
    run=run,
    datasets=("adult",),
)
