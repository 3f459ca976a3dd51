"""How many rows the predictor scores per person, and the time that one person takes.

The factuals of :mod:`trials` are explained together and then in a call each, by every search. Rows
are ``result.n_evaluated``: those of the search, without the factuals themselves and the final
confirmation. A last table gives the CPU time per person with the predictor as it is, and slowed
down to 20 microseconds and one millisecond of CPU per row.

Prints Markdown tables and writes them to ``out/bench/evaluations.md`` and ``evaluations.json``
after every case. Usage: ``PYTHONPATH=benchmarks python lab/benchmarks/evaluations.py [--cases
adult] [--people 100]``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, McceWarning
from mcce_lab.experiments.predictors import Floats, Predictor
from measure import Table, cpu, log, machine, write
from requirements import CASES
from rivals import SearchName, time_fastest
from trials import Trial, load_trial

SEARCHES: tuple[SearchName, ...] = ("sparse", "balanced", "plausible", "near")
ALL_CASES = (*CASES, "gmc")
# Least CPU seconds of the predictor per row, and the people of some cases.
COSTS = (0.0, 20e-6, 1e-3)
N_COSTLY = 30
COSTLY_CASES = ("adult", "german", "gmc-quarter", "fico")


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


@dataclass(frozen=True)
class Evaluations:
    """Rows scored and milliseconds of one search on one case."""

    case: str
    search: str
    n_factuals: int
    fit_seconds: float
    rows_together: float
    cpu_together: float
    rows: list[int]
    cpu_ms: list[float]
    wall_ms: list[float]


@dataclass(frozen=True)
class Cost:
    """CPU milliseconds per person by search, for a predictor that costs so much per row."""

    case: str
    seconds: float
    n_factuals: int
    cpu_ms: dict[str, float]


def main() -> None:
    """Measure the selected cases and searches."""
    options = _options()
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    warnings.simplefilter("ignore", McceWarning)
    found: list[Evaluations] = []
    costs: list[Cost] = []
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        for name in options.cases:
            trial = load_trial(name, 0, options.people)
            if trial is None:
                continue
            fit_seconds, explainer = cpu(partial(fitted, trial))
            found += measure(trial, explainer, options.searches, fit_seconds)
            if name in COSTLY_CASES:
                costs += measure_costs(trial, explainer, options.searches)
            measured = {"evaluations": [*map(asdict, found)], "costs": [*map(asdict, costs)]}
            write(list(tables(found, costs)), "evaluations", **measured)
    for table in tables(found, costs):
        print(table.markdown())


def fitted(trial: Trial) -> MCCE:
    """An explainer of the rows of a trial, for all searches."""
    return MCCE(
        CostlyPredictor(trial.case.predictor),
        trial.case.desired,
        immutable=trial.case.immutable,
        search="balanced",
        n_jobs=1,
        random_state=trial.seed,
    ).fit(trial.train)


def measure(
    trial: Trial, explainer: MCCE, searches: Sequence[SearchName], fit_seconds: float
) -> Iterator[Evaluations]:
    """Rows and times of each search, people together and one at a time."""
    for search in searches:
        explainer.search = search
        seconds, together = time_fastest(partial(explainer.explain, trial.factuals))
        n_factuals = len(trial.factuals)
        rows, cpu_ms, wall_ms = [], [], []
        for at in range(n_factuals):
            started, started_cpu = time.perf_counter(), time.process_time()
            result = explainer.explain(trial.factuals.iloc[[at]])
            cpu_ms.append(1000 * (time.process_time() - started_cpu))
            wall_ms.append(1000 * (time.perf_counter() - started))
            rows.append(int(result.n_evaluated))
        log(f"{trial.case.name}, {search}: {np.mean(rows):.1f} rows, {np.mean(cpu_ms):.1f} CPU ms")
        spent = together.n_evaluated / n_factuals, 1000 * seconds / n_factuals
        yield Evaluations(
            trial.case.name, search, n_factuals, fit_seconds, *spent, rows, cpu_ms, wall_ms
        )


def measure_costs(trial: Trial, explainer: MCCE, searches: Sequence[SearchName]) -> Iterator[Cost]:
    """CPU time of each search, for predictors of different costs."""
    predictor = explainer.predictor
    assert isinstance(predictor, CostlyPredictor)
    people = trial.factuals.head(N_COSTLY)
    for seconds in COSTS:
        cpu_ms: dict[str, float] = {}
        for search in searches:
            explainer.search = search
            predictor.seconds = seconds
            spent, _ = time_fastest(partial(explainer.explain, people))
            predictor.seconds = 0.0
            cpu_ms[search] = 1000 * spent / len(people)
        log(f"{trial.case.name}, {1e6 * seconds:g} microseconds a row: {cpu_ms}")
        yield Cost(trial.case.name, seconds, len(people), cpu_ms)


def tables(found: Sequence[Evaluations], costs: Sequence[Cost]) -> Iterator[Table]:
    """Rows per person, times of one person, and times by cost of the predictor."""
    lines = [
        [
            *(one.case, one.search, str(one.n_factuals), f"{one.rows_together:.1f}"),
            *(f"{np.mean(one.rows):.1f}", f"{np.median(one.rows):.0f}"),
            *(f"{quantile(one.rows, 0.95):.0f}", str(max(one.rows))),
        ]
        for one in found
    ]
    headings = ["case", "search", "people", "together", "alone", "median", "95 %", "most"]
    note = "Rows that the predictor scored during the search, per person. Together: all people in "
    note += "one call, which scores equal rows once. The others are of one call per person."
    yield Table("Rows per person", headings, lines, note)
    headings = ["case", "search", "fit s", "together ms"]
    for clock in ("CPU", "wall"):
        headings += [f"{clock} ms, median", f"{clock} ms, 99 %"]
    lines = []
    for one in found:
        cells = [one.case, one.search, f"{one.fit_seconds:.2f}", f"{one.cpu_together:.2f}"]
        for spent in (one.cpu_ms, one.wall_ms):
            cells += [f"{quantile(spent, share):.1f}" for share in (0.5, 0.99)]
        lines.append(cells)
    note = "Milliseconds of a call for one person, one thread. Together: CPU per person of one "
    note += "call for all. Fit CPU seconds are those of balanced; all searches share it."
    yield Table("One person at a time", headings, lines, note)
    if costs:
        searches = list(dict.fromkeys(search for cost in costs for search in cost.cpu_ms))
        lines = []
        for cost in costs:
            cells = [f"{cost.cpu_ms[search]:.2f}" for search in searches if search in cost.cpu_ms]
            lines.append([cost.case, f"{1e6 * cost.seconds:g}", str(cost.n_factuals), *cells])
        headings = ["case", "microseconds per row", "people", *searches]
        note = "CPU milliseconds per person, all people in one call, predictor included. The "
        note += "predictor of the case is slowed down to so many microseconds; 0 is as it is."
        yield Table("Cost of the predictor", headings, lines, note)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed."""
    return float(np.quantile(np.asarray(values), share, method="inverted_cdf"))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=ALL_CASES, default=ALL_CASES)
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=SEARCHES)
    parser.add_argument("--people", type=int, default=200, help="people per case (default: 200)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
