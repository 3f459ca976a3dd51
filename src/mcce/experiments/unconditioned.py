"""Appendix: what the decision in the model is worth."""

from __future__ import annotations

from typing import Any

import pandas as pd

from . import published
from .experiment import Experiment, Options, Progress, Report
from .report.figures import legend_below, panels
from .samples import by_samples, draw_lines


def run(options: Options, progress: Progress) -> Report:
    """Trees that do not know the decision: coverage by K, beside the paper's table."""
    report = EXPERIMENT.report()
    printed = published.UNCONDITIONED
    table = by_samples(report, options, progress, printed, condition_on_decision=False)
    report.figures["coverage"] = _drawn(table)
    report.remarks.append(
        "Without the decision a draw is valid as often as the black box accepts people like that, "
        "so n_ce at small K hangs on the network: five of them, trained from different seeds, "
        "accept 17 to 22 % of Adult's rows. How many they need is as printed: 5,000."
    )
    return report


def _drawn(table: pd.DataFrame) -> Any:
    """People with an answer and changes by K."""
    figure, axes = panels(1, 2, size=(3.6, 2.7))
    titles = {"n_ce": "people with an answer", "l0": "changes (L0)"}
    for panel, (measure, title) in zip(axes[0], titles.items(), strict=True):
        draw_lines(panel, table, measure)
        panel.set_title(title)
        panel.set_ylim(bottom=0)
    legend_below(figure, axes)
    return figure


EXPERIMENT = Experiment(
    name="unconditioned",
    title="Appendix: the decision left out of the model",
    about=(
        'The appendix table "we do not condition on the decision": Adult, the first 1,000 people '
        "whom the network declines, K from 10 to 25,000, with trees that do not know the decision. "
        "Hold it against the report of samples. Costs are those of the people with an answer, so a "
        "small K that answers easy people only looks cheaper than it is."
    ),
    run=run,
    datasets=("adult",),
)
