"""Appendix: the model without the decision."""

from __future__ import annotations

from typing import Any

import pandas as pd

from . import published
from .experiment import Experiment, Options, ProgressLine, Report
from .report.figures import legend_below, panels
from .samples import draw_lines, run_by_samples


def run(options: Options, progress: ProgressLine) -> Report:
    """Run trees without the decision: coverage by K, next to the paper's table."""
    report = EXPERIMENT.report()
    printed = published.UNCONDITIONED
    table = run_by_samples(report, options, progress, printed, condition_on_decision=False)
    report.figures["coverage"] = _draw(table)
    report.remarks.append(
        "Without the decision, a draw is valid as often as the predictor accepts similar people, "
        "so n_ce at small K depends on the network: five networks trained from different seeds "
        "accept 17 to 22 % of Adult's rows. As in the paper, everybody has a counterfactual from "
        "K = 5,000 on."
    )
    return report


def _draw(table: pd.DataFrame) -> Any:
    """People with a counterfactual and changes by K."""
    figure, axes = panels(1, 2, size=(3.6, 2.7))
    titles = {"n_ce": "people with a counterfactual", "l0": "changes (L0)"}
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
        "whom the network declines, K from 10 to 25,000, with trees that do not use the decision. "
        "Compare it with the experiment samples. Costs are those of the explained people, so a "
        "small K that explains only easy cases looks cheaper than it is."
    ),
    run=run,
    datasets=("adult",),
)
