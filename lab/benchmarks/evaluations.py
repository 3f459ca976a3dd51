"""How many rows the predictor scores per person, and the time that one person takes.

The people of a draw of :mod:`search` are explained together and then in a call each, by every
search. Rows are ``result.n_evaluated``: those of the search, without the people themselves and the
final confirmation. A last table gives the CPU time per person with the predictor as it is, and
slowed down to 20 microseconds and one millisecond of CPU per row.

Prints Markdown tables and writes them to ``out/bench/evaluations.md`` after every case. Usage:
``PYTHONPATH=benchmarks python lab/benchmarks/evaluations.py [--cases adult] [--people 100]``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cases import SEARCHED, load
from mcce import MCCE, McceWarning
from mcce_lab.experiments.cells import Draw, SearchName
from mcce_lab.experiments.predictors import Floats, Predictor
from measure import Table, cpu, log, write

SEARCHES: tuple[SearchName, ...] = ("sparse", "balanced", "plausible", "near")
# Least CPU seconds of the predictor per row, and the people who are then explained.
COSTS, N_COSTLY = (0.0, 20e-6, 1e-3), 30
HEADINGS = [
    *("case", "search", "people", "rows together", "rows alone", "median", "95 %", "most"),
    *("fit s", "together CPU ms", "alone CPU ms, median", "99 %"),
]
NOTE = (
    "Rows that the predictor scored during the search, per person. Together: all people in one "
    "call, which scores equal rows once; alone: a call each. One thread; all searches share a fit."
)


@dataclass
class CostlyPredictor:
    """A predictor that takes at least a number of CPU seconds per row."""

    predictor: Predictor
    seconds: float = 0.0

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """Scores of the rows."""
        until = time.process_time() + self.seconds * len(frame)
        scores = self.predictor(frame)
        while self.seconds and time.process_time() < until:
            pass
        return scores


def main() -> None:
    """Measure the selected cases and searches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=(*SEARCHED, "gmc"), default=SEARCHED)
    parser.add_argument("--people", type=int, default=200, help="people per case (default: 200)")
    options = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    lines: list[list[str]] = []
    costs: list[list[str]] = []
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        for name in options.cases:
            case = load(name)
            if case is None:
                continue
            predictor = CostlyPredictor(case.predictor)
            draw = Draw.of(replace(case, predictor=predictor), options.people, seed=0)
            explainer = draw.case.explainer(search="balanced")
            fit, _ = cpu(partial(explainer.fit, draw.train))
            lines += measure(name, draw.people, explainer, fit)
            costs += measure_costs(name, draw.people.head(N_COSTLY), explainer, predictor)
            found = [Table("Rows and times", HEADINGS, lines, NOTE)]
            headings = ["case", "microseconds per row", *SEARCHES]
            note = "CPU milliseconds per person, all in one call, predictor included."
            found.append(Table("Cost of the predictor", headings, costs, note))
            write(found, "evaluations")
    for table in found:
        print(table.markdown())


def measure(name: str, people: pd.DataFrame, explainer: MCCE, fit: float) -> Iterator[list[str]]:
    """Rows and times of each search, people together and one at a time."""
    for search in SEARCHES:
        explainer.search = search
        seconds, together = fastest(explainer, people)
        alone = [cpu(partial(explainer.explain, people.iloc[[at]])) for at in range(len(people))]
        rows = np.array([result.n_evaluated for _, result in alone])
        spent = np.array([1000 * one for one, _ in alone])
        log(f"{name}, {search}: {rows.mean():.1f} rows, {spent.mean():.1f} CPU ms")
        yield [
            *(name, search, str(len(people)), f"{together.n_evaluated / len(people):.1f}"),
            *(f"{rows.mean():.1f}", f"{np.median(rows):.0f}", f"{np.quantile(rows, 0.95):.0f}"),
            *(f"{rows.max()}", f"{fit:.2f}", f"{1000 * seconds / len(people):.2f}"),
            *(f"{np.median(spent):.1f}", f"{np.quantile(spent, 0.99):.1f}"),
        ]


def measure_costs(
    name: str, people: pd.DataFrame, explainer: MCCE, predictor: CostlyPredictor
) -> Iterator[list[str]]:
    """CPU milliseconds of each search, for predictors of different costs."""
    for seconds in COSTS:
        cells = []
        for search in SEARCHES:
            explainer.search, predictor.seconds = search, seconds
            spent, _ = fastest(explainer, people)
            cells.append(f"{1000 * spent / len(people):.2f}")
        predictor.seconds = 0.0
        yield [name, f"{1e6 * seconds:g}", *cells]


def fastest(explainer: MCCE, people: pd.DataFrame) -> tuple[float, Any]:
    """CPU seconds of the fastest of three calls, and a result."""
    runs = [cpu(partial(explainer.explain, people)) for _ in range(3)]
    return min(seconds for seconds, _ in runs), runs[0][1]


if __name__ == "__main__":
    main()
