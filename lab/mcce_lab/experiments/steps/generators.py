"""Which generator to use: the trees of the paper against the others.

Paper, section "Modeling": step 1 may be any model of the mutable features given the immutable ones
and the decision.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mcce.model import GENERATORS

from ...generators import CTGAN
from ...networks import usual_device
from ..case import Case
from ..experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
    Tables,
)
from .cells import saved_runs
from .figures import draw_dots
from .measuring import SECONDS, measure_generator, tables_of
from .parts import Parts, draw_all
from .private import private_trees

BASE = "trees"
EPSILON = 1.0


def run(options: Options, progress: ProgressLine) -> Report:
    """Measure every generator on every data set with every seed."""
    report = EXPERIMENT.report()
    names = GENERATORS.names()
    progress.plan(len(options.datasets) * (1 + options.seeds * len(names)))
    runs: list[dict[str, Any]] = []
    for case, seed, parts in draw_all(options, progress):
        for name in names:
            progress.step(f"{case.name}: {name}, seed {seed}")
            labels = {"dataset": case.name, "generator": name, "seed": seed}
            made = partial(measure, name, case, parts, seed, options)
            runs += saved_runs(EXPERIMENT.name, options, labels, made)
    report.tables = tables_of(pd.DataFrame(runs), "generator", BASE)
    report.figures["generators"] = draw_dots(report.tables, "generator")
    report.captions["generators"] = "Means over seeds with 95 % intervals."
    return report


def measure(
    name: str, case: Case, parts: Parts, seed: int, options: Options
) -> list[dict[str, Any]]:
    """The runs of a generator by its name: one for each search."""
    if name == "private":
        generator: Any = private_trees(case, parts, EPSILON, seed)
    elif name == "ctgan":
        generator = CTGAN(device=usual_device())
    else:
        generator = GENERATORS.load(name)()
    runs = measure_generator(generator, case, parts, seed, options)
    on_gpu = getattr(generator, "device", "cpu") != "cpu"
    return [run | dict.fromkeys(SECONDS, np.nan) for run in runs] if on_gpu else runs


def remarks(tables: Tables) -> list[str]:
    """What each generator gains and loses against the trees."""
    differences = tables["differences"]
    n_sets = differences["dataset"].nunique()
    lines = []
    for name, rows in differences.groupby("generator", sort=False):
        parts = []
        for word in ("better", "worse"):
            found = rows[rows["verdict"] == word].groupby("measure", sort=False)["dataset"]
            counts = [f"{measure} ({len(some)})" for measure, some in found]
            parts.append(f"{word} by {', '.join(counts)}" if counts else f"{word} by nothing")
        lines.append(f"{name!s}, against the trees on {n_sets} data sets: {'; '.join(parts)}.")
    return [*lines, *REMARKS]


REMARKS = [
    "Every seed draws three parts of the rows: generators are fitted on the first, the declined "
    "people of the second are explained and its rows are what generated ones are compared with, "
    "the third is what judges and attackers know. A part has 4,000 rows, 3,290 of FICO and 333 of "
    "German Credit; at most 100 people are explained. All generators get the same parts. Seeds "
    "draw from one file, so that their parts share rows (on German Credit all of them), and the "
    "predictor, which was trained on three quarters of the file, is the same: intervals are about "
    "other parts and draws, not about other populations or predictors.",
    "Accuracy and auc: of a random forest of 100 trees that tells generated rows from held-out "
    "ones, trained on half of both and tested on the rest; 50 % and 0.5 mean that it cannot. It "
    "splits along columns, as trees that generate do; logistic_auc, of a logistic regression, sees "
    "little beyond single columns.",
    "Log-likelihood: nats per held-out row given its immutable values and its decision, on deciles "
    "of the numbers; leaves of trees, private ones too, count one more row, spread as in all of "
    "training. Leaves of the trees often have five rows, so that with more such rows they would "
    "gain nats, and larger leaves hardly any: that a generator beats the trees here says that "
    "these need smoothing, not that its rows are better. Empty where a generator has no "
    "likelihood, or gives a held-out row of some seed none, as the copula does on FICO.",
    "Verdicts: on how many data sets a generator is better (+) and worse (-) than the trees.",
    "knn_distance: mean distance of an answer to the five nearest accepted rows of the reference, "
    "numbers as ranks; outlier_factor: median of the local outlier factor among the same rows. "
    "Private trees cannot serve the search 'balanced', which reads accepted rows.",
    "Seconds are CPU seconds of one thread; empty for CTGAN where it was trained on a GPU, on "
    "another machine. Its 300 epochs are those published, but of fewer rows: 3,000 training steps "
    "with 4,000 rows.",
    "Privacy: rows made for people of the reference, and attacks on the training rows; 0.5 is "
    "chance for every auc and for holdout_share, 0.01 for tpr_1% (0.013 with the few rows of "
    "German Credit). Copies of rows and values occur by chance too. The attack by rare values "
    "looks for equal ones: whoever draws values in between passes it, whatever else is given away.",
    "A verdict counts only if the 95 % interval of the difference over the same seeds does not "
    "hold 0; with many cells, about one in twenty of those without a difference will seem to have "
    "one.",
]

EXPERIMENT = Experiment(
    name="generators",
    title="Which generator: realism, answers, privacy and time of each",
    about=(
        "Every generator in place of the trees of step 1, with its defaults, on the same rows and "
        f"people; `private` with epsilon = {EPSILON:g}."
    ),
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
    remarks=remarks,
    in_paper=False,
)
