"""What distances cost beside Gower's: ``python benchmarks/distances.py``.

CPU seconds of ``explain`` by each distance over those by Gower's, one thread, the least of several
runs that alternate in one process. Answers differ, so searches that go on from answers do more or
less work; the paper's search does the same work for all. Then what the answers are: by each
distance, how many changes they make, and the mean of each distance over the people whom all of them
explain. Data are in a folder ``shared`` next to the checkout; cases without data are skipped.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cases import declined, load
from mcce import MCCE, Counterfactuals, McceWarning
from mcce.candidates import pair_rows
from mcce.distances import DISTANCES
from mcce_lab.experiments.case import Case
from measure import Seconds, Table, cpu, interleave, write

CASES = ("adult", "german", "gmc", "fico", "adult-all-levels")
SEARCHES = ("paper", "near", "balanced")
N_PEOPLE, REPEATS = 300, 5


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--searches", nargs="+", default=SEARCHES)
    parser.add_argument("--people", type=int, default=N_PEOPLE)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    costs: list[list[str]] = []
    answers: list[list[str]] = []
    with threadpool_limits(1):
        for case in filter(None, map(load, options.cases)):
            for search in options.searches:
                cost, means = compare(case, search, options.people, options.repeats)
                costs.append([case.name, search, *cost])
                answers += [[case.name, search, *line] for line in means]
    tables = list(_tables(costs, answers))
    for table in tables:
        print(table.markdown())
    write(tables, "distances")


def compare(
    case: Case, search: str, n_people: int, repeats: int
) -> tuple[list[str], list[list[str]]]:
    """Ratios of CPU time to Gower's, and what the answers by each distance are."""
    people = declined(case, n_people)
    explainers = {name: _fitted(case, search, name) for name in DISTANCES.names()}
    results: dict[str, Counterfactuals[pd.DataFrame]] = {}

    def explain(name: str) -> Seconds:
        seconds, results[name] = cpu(partial(explainers[name].explain, people))
        return {"explain": seconds}

    runs = {name: partial(explain, name) for name in DISTANCES.names()}
    spent = interleave(f"{search} on {case.name}", runs, repeats)
    gower = sum(spent["gower"].values())
    ratios = [sum(spent[name].values()) / gower for name in DISTANCES.names() if name != "gower"]
    return [f"{gower:.3f}", *(f"{ratio:.2f}" for ratio in ratios)], list(
        _means(explainers, results)
    )


def _fitted(case: Case, search: str, name: str) -> MCCE:
    explainer = case.explainer().set_params(search=search, n_samples=None, distance=name)
    return explainer.fit(case.train)


def _means(
    explainers: dict[str, MCCE], results: dict[str, Counterfactuals[pd.DataFrame]]
) -> Iterator[list[str]]:
    """Of the people whom all explain: changes, and the answers measured by every distance."""
    answered = [
        set(result.measures.index.get_level_values("factual")) for result in results.values()
    ]
    people = sorted(set.intersection(*answered))
    for name, result in results.items():
        best = result.measures.xs(1, level="rank").loc[people]
        schema = explainers[name].schema_
        answers = schema.encode(result.frame.xs(1, level="rank").loc[people]).frame
        owners = schema.encode(result.factuals.loc[people])
        pairs = pair_rows(owners, np.arange(len(people)), answers, 1)
        found = [f"{explainers[of].distance_(pairs).mean():.3f}" for of in DISTANCES.names()]
        yield [f"by {name}", str(len(people)), f"{best['sparsity'].mean():.3f}", *found]


def _tables(costs: list[list[str]], answers: list[list[str]]) -> Iterator[Table]:
    others = [name for name in DISTANCES.names() if name != "gower"]
    note = "Ratios of CPU time to that by Gower's distance."
    yield Table("Cost of distances", ["case", "search", "gower, s", *others], costs, note)
    headings = ["case", "search", "answers", "people", "sparsity", *DISTANCES.names()]
    yield Table("Answers by distance", headings, answers, "Means over the people whom all explain.")


if __name__ == "__main__":
    main()
