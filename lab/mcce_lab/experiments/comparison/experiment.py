"""Beyond Experiment 1: all methods, measured alike, with intervals, judges and fronts."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ...datasets import DatasetError
from ..experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
    Tables,
)
from .cases import UNTUNED, Cell
from .cells import (
    BY_METHOD,
    PEOPLE,
    cell_path,
    run_cell,
)
from .figures import draw_fronts
from .methods import METHODS
from .summary import by_method, dominance, on_common_people

N_NETWORKS = 3
# Data sets that are also explained on raw categories.
RAW = ("adult", "german")


def run(options: Options, progress: ProgressLine) -> Report:
    """Run all cells that are not there yet, and sum them up."""
    report = EXPERIMENT.report()
    cells = list(plan(options))
    progress.plan(len(cells) * len(METHODS))
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
    return summarise(report, done, options)


def plan(options: Options) -> Iterator[Cell]:
    """The cells of a run."""
    n_networks = 1 if options.quick else N_NETWORKS
    for network in range(n_networks):
        for seed in range(options.seeds):
            for name in options.datasets:
                yield Cell(name, "network", network, seed)
                if name in RAW and not options.quick:
                    yield Cell(name, "boosting", network, seed)
            if not options.quick:
                yield Cell(UNTUNED, "network", network, seed)
                yield Cell(UNTUNED, "boosting", network, seed)


def summarise(report: Report, cells: list[Cell], options: Options) -> Report:
    """A report of cells that were run."""
    people, methods = (
        pd.concat([pd.read_csv(cell_path(options.out, cell, kind)) for cell in cells])
        for kind in (PEOPLE, BY_METHOD)
    )
    ours = [method.name for method in METHODS if method.is_ours]
    rivals = [method.name for method in METHODS if not method.is_ours]
    report.tables = {
        "measures": by_method(people, methods),
        "common": on_common_people(people),
        "dominance": dominance(people, ours, rivals),
    }
    report.figures["fronts"] = draw_fronts(report.tables["measures"])
    people.to_csv(options.out / "compare-people.csv.xz", index=False, float_format="%.4g")
    return report


def remarks(tables: Tables) -> list[str]:
    """What the tables say of promises and of who wins."""
    table, verdicts = tables["measures"], tables["dominance"]
    broken = table[(table["valid"] < 1) | (table["violation"] > 0)]
    said = [
        f"Of {len(table)} combinations of data set, predictor and method, {len(broken)} returned a "
        "row that is not valid or changes an immutable feature."
    ]
    for judge, part in verdicts.groupby("judge", sort=False):
        # In a file, what is empty is missing.
        won, lost = (
            (part[name].notna() & (part[name] != "")).sum()
            for name in ("dominated_by", "dominates")
        )
        said.append(
            f"By sparsity and {judge}: of {len(part)} points of rivals, {won} are dominated by a "
            f"setting of ours, and {lost} dominate one."
        )
    return said


EXPERIMENT = Experiment(
    name="compare",
    title="All methods on the same people, predictors, training rows and judges",
    about=(
        "Every cell draws declined people, a half of the accepted rows for the methods and the "
        "other half for the judges; all methods explain the same people with the same predictor. "
        "Networks as in the paper's table, and boosted trees on raw categories. Sparsity counts "
        "every difference, however small. No method optimises outlier factor, isolation, PCA "
        "residual, density or detectability; plausibility is that of our own model, fitted on "
        "declined rows and on accepted ones that no method has seen. Intervals are 95 % over "
        "networks, seeds and people. CPU seconds are those of one thread: of fitting, and of "
        "explaining all people of a cell. Rows per person are those that the predictor scored in "
        "the search."
    ),
    run=run,
    datasets=("adult", "gmc", "german", "fico"),
    remarks=remarks,
    in_paper=False,
)
