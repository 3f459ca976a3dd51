"""The search benchmark against NICE: ``make bench-search``.

Runs all our searches and their rivals on the same factuals and rows. :mod:`trials` draws these,
:mod:`implausibility` scores the counterfactuals, :mod:`rivals` has the contenders and
:mod:`requirements` the bounds to meet. Prints Markdown tables and writes them to
``out/bench/search.md`` and ``search.json`` after every case. Data are in a folder ``shared`` next
to the checkout; cases without data are skipped. The published package is run if it is installed
(``pip install NICEx``).
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from implausibility import SCORES
from mcce import McceWarning
from measure import Table, log, machine, write
from requirements import CASES, PAPER_CASES, RAW_CASES, Check, check_requirements
from rivals import CONTENDERS
from trials import (
    N_FACTUALS,
    Assessment,
    Trial,
    assess,
    assess_nice,
    evaluate,
    has_others,
    load_trial,
    paired_t,
    summary,
)

__all__ = ["assess", "evaluate", "load_trial"]

# Scores that no search optimises. Distances to neighbours are: our searches prefer rows with
# small ones, though to other rows than those that the scores know.
INDEPENDENT = ("lof", "forest", "pca")
# By contender one assessment per seed.
Assessments = dict[str, list[Assessment]]
Values = dict[str, dict[str, dict[str, float]]]


def main() -> None:
    """Run the selected cases and contenders."""
    options = _options()
    contenders = list(_present(options.contenders))
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    warnings.simplefilter("ignore", McceWarning)
    means: Values = {}
    spreads: Values = {}
    details: list[Table] = []
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        for name in options.cases:
            assessments = run(name, contenders, options.seeds, options.people)
            if assessments:
                means[name], spreads[name] = _summarise(assessments)
                details += [_costs(name, means, spreads), _scores(name, means, spreads)]
                write(_report(means, details, options), "search", mean=means, sd=spreads)
    for table in _report(means, details, options):
        print(table.markdown())


def run(name: str, contenders: Sequence[str], n_seeds: int, n_factuals: int) -> Assessments:
    """Assessments of each contender and of NICE; empty if the data are missing."""
    assessments: Assessments = {}
    for seed in range(n_seeds):
        trial = load_trial(name, seed, n_factuals)
        if trial is None:
            return {}
        for contender in dict.fromkeys(["nice", *contenders]):
            selected = contender in contenders
            assessment = _run(trial, contender) if selected else assess_nice(trial)
            assessments.setdefault(contender, []).append(assessment)
            values = summary(assessment, assessments["nice"][-1])
            log(
                f"{name}, seed {seed}, {len(trial.factuals)} people, {contender}: sparsity "
                f"{values['sparsity']:.2f}, l1 {values['l1']:.2f}, implausibility "
                f"{values['implausibility %']:+.1f} %, "
                f"coverage {values['coverage']:.2f}, {values['CPU ms']:.2f} ms each"
            )
    return assessments


def _run(trial: Trial, contender: str) -> Assessment:
    return assess(trial, CONTENDERS[contender](trial.case, trial.train, trial.factuals, trial.seed))


def _summarise(
    assessments: Assessments,
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Means and standard deviations over seeds of all measures, by contender."""
    means, spreads = {}, {}
    for contender, parts in assessments.items():
        pairs = zip(parts, assessments["nice"], strict=True)
        by_seed = pd.DataFrame([summary(part, rival) for part, rival in pairs])
        by_seed["independent %"] = by_seed[[f"{name} %" for name in INDEPENDENT]].mean(axis=1)
        means[contender] = {str(key): float(value) for key, value in by_seed.mean().items()}
        means[contender] |= {f"{j} t": paired_t(parts, assessments["nice"], j) for j in SCORES}
        spread = by_seed.std(ddof=1) if len(by_seed) > 1 else by_seed.iloc[0] * np.nan
        spreads[contender] = {str(key): float(value) for key, value in spread.items()}
    return means, spreads


def _report(means: Values, details: Sequence[Table], options: argparse.Namespace) -> list[Table]:
    tables = [_overview("Paper's form", PAPER_CASES, means, options)]
    tables += [_overview("Raw categories", RAW_CASES, means, options)]
    tables += [*details, *_requirement_tables(list(check_requirements(means)))]
    return [table for table in tables if table.rows]


def _overview(
    title: str, cases: Sequence[str], means: Values, options: argparse.Namespace
) -> Table:
    """One cell per contender and case."""
    ran = [name for name in cases if name in means]
    contenders = list(dict.fromkeys(who for name in ran for who in means[name]))
    lines = [[who, *(_cell(means[name].get(who)) for name in ran)] for who in contenders]
    few = [name for name in ran if not has_others(name, options.people)]
    note = (
        f"Means over {options.seeds} draws of {options.people} people. Implausibility: mean "
        "difference from NICE of the five scores on the people whom both explain, in parentheses "
        "of those that are nobody's objective; negative is more plausible. The searches were not "
        "tuned on these people, but min_plausibility was settled on others of the same rows"
        + (f", except for {', '.join(few)}, which decline too few others." if few else ".")
    )
    headings = ["sparsity / l1 / implausibility / contradictory pairs / coverage", *ran]
    return Table(f"{title}: counterfactuals", headings, lines, note)


def _cell(values: Mapping[str, float] | None) -> str:
    if values is None:
        return ""
    parts = [
        f"{values['sparsity']:.2f}",
        f"{values['l1']:.2f}",
        f"{values['implausibility %']:+.0f} % ({values['independent %']:+.0f} %)",
    ]
    return " / ".join([*parts, f"{values['pairs']:.3f}", f"{values['coverage']:.2f}"])


MEASURED = {
    "sparsity": 2,
    "sparsity over nice": 2,
    "l1": 2,
    "coverage": 2,
    "valid": 2,
    "violations": 2,
    "pairs": 3,
    "copies": 3,
    "copies of all": 3,
    "rows scored": 1,
    "CPU ms": 2,
    "fit s": 2,
}


def _costs(name: str, means: Values, spreads: Values) -> Table:
    """All measures of a case except implausibility."""
    lines = []
    for contender, values in means[name].items():
        cells = [_pm(values[k], spreads[name][contender][k], n) for k, n in MEASURED.items()]
        ratios = [_ratio(values, means[name].get(rival)) for rival in ("nice-package", "nice")]
        lines.append([contender, *cells, *ratios])
    headings = [name, *MEASURED, "CPU / package", "CPU / our NICE"]
    note = (
        "Mean ± standard deviation over seeds. Copies: of rows that the search saw, and of all. "
        "Scored rows and CPU milliseconds of one thread are per counterfactual, without fitting."
    )
    return Table(f"{name}: measures", headings, lines, note)


def _scores(name: str, means: Values, spreads: Values) -> Table:
    """Difference of each score from NICE on a case."""
    lines = []
    for contender, values in means[name].items():
        spread = spreads[name][contender]
        cells = [
            f"{_pm(values[f'{score} %'], spread[f'{score} %'], 1)} ({values[f'{score} t']:+.1f})"
            for score in SCORES
        ]
        means_of = ("implausibility %", "independent %")
        lines.append([contender, *cells, *(_pm(values[k], spread[k], 1) for k in means_of)])
    note = (
        "Difference from NICE in % of NICE's mean ± standard deviation over seeds (paired t over "
        "distinct people); negative is more plausible."
    )
    return Table(
        f"{name}: implausibility", [name, *SCORES, "mean", "of the last three"], lines, note
    )


def _requirement_tables(checks: Sequence[Check]) -> Iterator[Table]:
    """The requirements of each search, and whether they hold."""
    marks = {True: "yes", False: "**no**", None: "not measured"}
    for search in dict.fromkeys(check.search for check in checks):
        mine = [check for check in checks if check.search == search]
        lines = []
        for check in mine:
            value = "" if check.value is None else f"{check.value:.3f}"
            bound = f"{check.most:g}"
            lines.append([check.measure, check.case, value, bound, marks[check.holds]])
        n_met = sum(check.holds is True for check in mine)
        headings = ["measure", "case", "value", "at most", "holds"]
        yield Table(f"Requirements of {search}: {n_met} of {len(mine)} hold", headings, lines)


def _pm(mean: float, spread: float, digits: int) -> str:
    values = f"{mean:.{digits}f}"
    return values if np.isnan(spread) else f"{values} ± {spread:.{digits}f}"


def _ratio(values: Mapping[str, float], rival: Mapping[str, float] | None) -> str:
    return "" if rival is None else f"{values['CPU ms'] / rival['CPU ms']:.2f}"


def _present(contenders: Sequence[str]) -> Iterator[str]:
    """The contenders that can run; the others are skipped with a message."""
    for name in contenders:
        if name == "nice-package" and importlib.util.find_spec("nice") is None:
            log("nice-package is skipped: NICEx is not installed")
        else:
            yield name


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--contenders", nargs="+", choices=[*CONTENDERS], default=[*CONTENDERS])
    parser.add_argument("--seeds", type=int, default=5, help="number of random draws (default: 5)")
    parser.add_argument(
        "--people", type=int, default=N_FACTUALS, help="people per draw (default: 150)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
