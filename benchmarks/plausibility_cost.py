"""What plausibility costs: ``python benchmarks/plausibility_cost.py``.

CPU seconds of one thread, the least of several runs that alternate in one process: fit of the
paper's search and of "balanced", explain of "sparse" and "balanced" with the plausibility that they
require and without, and ``relax`` where the features that matter most may not change. Data are in a
folder ``shared`` next to the checkout; cases without data are skipped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cases import declined, load
from mcce import McceWarning
from mcce import constraints as c
from mcce.search.config import find_search
from mcce_lab.experiments.case import Case
from measure import Seconds, Table, cpu, interleave, times, write

CASES = ("adult", "german", "gmc", "fico", "adult-boosting", "german-boosting")
N_PEOPLE, N_RELAXED, N_FROZEN, REPEATS = 150, 30, 8, 3


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", McceWarning)
    cases = [case for case in map(load, CASES) if case is not None]
    with threadpool_limits(1):
        lines = [[case.name, *_fit(case), *_explain(case), *_relax(case)] for case in cases]
    headings = ["case", "fit paper / balanced, s", "ratio"]
    headings += ["sparse without / with, s", "ratio", "balanced without / with, s", "ratio"]
    table = Table("Cost of plausibility", [*headings, f"relax, {N_RELAXED} people, s"], lines)
    print(table.markdown())
    write([table], "plausibility_cost")


def _fit(case: Case) -> list[str]:
    def fit(search: str) -> Seconds:
        explainer = case.explainer().set_params(search=search, n_samples=None)
        return {"fit": cpu(partial(explainer.fit, case.train))[0]}

    runs = {search: partial(fit, search) for search in ("paper", "balanced")}
    return _compare(f"fit of {case.name}", runs)


def _explain(case: Case) -> list[str]:
    people, cells = declined(case, N_PEOPLE), list[str]()
    for name in ("sparse", "balanced"):
        given: Any = find_search(name, private=False)
        explainer = case.explainer().set_params(search=given, n_samples=None).fit(case.train)

        def explain(least: float, explainer: Any = explainer, given: Any = given) -> Seconds:
            explainer.set_params(search=replace(given, min_plausibility=least))
            return {"explain": cpu(partial(explainer.explain, people))[0]}

        runs = {str(least): partial(explain, least) for least in (0.0, given.min_plausibility)}
        cells += _compare(f"{name} on {case.name}", runs)
    return cells


def _compare(title: str, runs: Mapping[str, Callable[[], Seconds]]) -> list[str]:
    without, with_it = (sum(run.values()) for run in interleave(title, runs, REPEATS).values())
    return [f"{without:.3f} / {with_it:.3f}", times(with_it, without)]


def _relax(case: Case) -> list[str]:
    """Seconds of ``relax`` for those who are furthest from the desired decision."""
    people = declined(case, 10 * N_RELAXED).drop_duplicates()
    furthest = np.argsort(np.asarray(case.predictor(people)), kind="stable")[:N_RELAXED]
    explainer = case.explainer().set_params(search="balanced", n_samples=None).fit(case.train)
    changed = explainer.explain(people).changes()["feature"].value_counts(sort=True)
    rules = [*(c.frozen(name) for name in changed.index[:N_FROZEN]), c.max_changes(2)]
    relax = partial(explainer.relax, people.iloc[furthest], constraints=rules)
    return [f"{cpu(relax)[0]:.2f}"]


if __name__ == "__main__":
    main()
