"""The searches against NICE and the nearest unlike neighbour: ``make bench-search``.

Eight cases of :mod:`cases`, several draws of people each, on whom no search was tuned. All measures
are those of the comparison (:mod:`mcce_lab.experiments.compare`), fitted on accepted rows that no
method has seen; differences are from NICE on the people whom both answer. Prints Markdown tables
and writes them to ``out/bench/search.md`` after every case. The published package of NICE is run if
it is installed (``pip install NICEx``).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cases import SEARCHED, load
from mcce import McceWarning
from mcce_lab.experiments.cells import METHODS, Cell, Draw
from mcce_lab.experiments.compare import compare_methods
from mcce_lab.experiments.summary import by_method, paired
from measure import Table, log, write

BASE = "NICE"
CONTENDERS = (
    *("MCCE paper", "MCCE sparse", "MCCE balanced", "MCCE plausible", "MCCE near"),
    *("nearest unlike", "NICE", "NICE, package", "NICE, 12 starts", "NICE, plausibility"),
)
# Scores that no search optimises, unlike distances to neighbours.
SCORES = ("outlier_factor", "isolation", "pca_residual")


def main() -> None:
    """Run the selected cases and contenders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=SEARCHED, default=SEARCHED)
    parser.add_argument("--seeds", type=int, default=5, help="number of random draws (default: 5)")
    parser.add_argument("--people", type=int, default=150, help="people per draw (default: 150)")
    options = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    found: list[tuple[pd.DataFrame, pd.DataFrame]] = []
    with threadpool_limits(1):
        for name in options.cases:
            found += run(name, options.seeds, options.people)
            if found:
                write(list(tables(found)), "search")
    for table in tables(found):
        print(table.markdown())


def run(
    name: str, n_seeds: int, n_people: int, contenders: Sequence[str] = CONTENDERS
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Measures of a case, by person and by method, for each draw of people."""
    case = load(name)
    for seed in range(n_seeds if case is not None else 0):
        assert case is not None
        cell, draw = Cell(name, "network", 0, seed), Draw.of(case, n_people, seed)
        methods = [method for method in METHODS if method.name in contenders]
        usable = [method for method in methods if method.can_run(cell)]
        yield compare_methods(cell, draw, usable, log)


def tables(found: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> Iterator[Table]:
    """Answers and their costs, a line per method and a column per case."""
    people, methods = (pd.concat(parts) for parts in zip(*found, strict=True))
    beside, costs = paired(people, BASE), by_method(people, methods)
    note = f"On the people whom both answer; in brackets the difference from {BASE}. "
    note += "Implausibility: mean difference of outlier factor, isolation forest and PCA residual "
    note += f"from those of {BASE}, in %; negative is more plausible."
    cells = beside.apply(_told, axis=1)
    yield _table("changes / l1 / implausibility", beside.assign(cell=cells), note)
    cells = costs.apply(_cost, axis=1)
    note = "Share answered / rows that the predictor scores per person / contradictory pairs per "
    note += "answer / share of copies / CPU ms per person, without fit."
    yield _table("Costs", costs.assign(cell=cells), note)


def _told(row: Any) -> str:
    gaps = [row[f"{score}_difference"] / row[f"{score}_base"] for score in SCORES]
    changes = f"{row['sparsity']:.2f} ({row['sparsity_difference']:+.2f})"
    return f"{changes} / {row['l1']:.2f} / {100 * sum(gaps) / len(gaps):+.0f} %"


def _cost(row: Any) -> str:
    shares = f"{row['coverage']:.2f} / {row['rows_per_person']:.1f} / {row['contradictions']:.3f}"
    seconds = row["search_cpu"] / (row["people"] / row["cells"])
    return f"{shares} / {row['copy']:.3f} / {1000 * seconds:.1f}"


def _table(title: str, rows: pd.DataFrame, note: str) -> Table:
    wide = rows.pivot_table("cell", "method", "dataset", aggfunc="first", sort=False).fillna("")
    lines = [[str(name), *map(str, cells)] for name, cells in wide.T.items()]
    return Table(title, ["", *map(str, wide.columns)], lines, note)


if __name__ == "__main__":
    main()
