"""How good, against NICE: ``make bench-search``.

Every search of ours and its rivals on the same people and rows; :mod:`trials` tells how these are
drawn, :mod:`judges` who says what is plausible, :mod:`rivals` who takes part and :mod:`asked` what
the project asks of itself. Prints Markdown tables and writes them to ``out/bench/search.md`` and
``search.json`` after every case. Data lie in a folder ``shared`` beside the checkout; what is not
there is left out. The published package takes part if it is installed (``pip install NICEx``).
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from asked import CASES, PAPERS_FORM, RAW, Verdict, verdicts
from judges import JUDGES
from mcce import McceWarning
from measure import Table, machine, say, write
from rivals import CONTENDERS, HAS_PRESETS, PRESETS
from trials import (
    N_PEOPLE,
    Record,
    Trial,
    assess,
    evaluate,
    has_others,
    load_case,
    nice_record,
    paired_t,
    summary,
)

__all__ = ["assess", "evaluate", "load_case"]

# By contender one record per seed.
Records = dict[str, list[Record]]
Told = dict[str, dict[str, dict[str, float]]]


def main() -> None:
    """Run the cases and contenders asked for."""
    options = _options()
    contenders = list(_present(options.contenders))
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    warnings.simplefilter("ignore", McceWarning)
    means: Told = {}
    spreads: Told = {}
    details: list[Table] = []
    # Threads of BLAS spin while they wait, which would be counted as work.
    with threadpool_limits(1):
        for name in options.cases:
            records = run(name, contenders, options.seeds, options.people)
            if records:
                means[name], spreads[name] = _told(records)
                details += [_costs(name, means, spreads), _judged(name, means, spreads)]
                write(_report(means, details, options), "search", mean=means, sd=spreads)
    for table in _report(means, details, options):
        print(table.markdown())


def run(name: str, contenders: Sequence[str], n_seeds: int, n_people: int) -> Records:
    """Records of each contender, and of NICE in any case; empty where the data are absent."""
    records: Records = {}
    for seed in range(n_seeds):
        trial = load_case(name, seed, n_people)
        if trial is None:
            return {}
        for contender in dict.fromkeys(["nice", *contenders]):
            asked = contender in contenders
            record = _run(trial, contender) if asked else nice_record(trial)
            records.setdefault(contender, []).append(record)
            told = summary(record, records["nice"][-1])
            say(
                f"{name}, seed {seed}, {len(trial.people)} people, {contender}: sparsity "
                f"{told['sparsity']:.2f}, l1 {told['l1']:.2f}, judges {told['judges %']:+.1f} %, "
                f"coverage {told['coverage']:.2f}, {told['CPU ms']:.2f} ms an answer"
            )
    return records


def _run(trial: Trial, contender: str) -> Record:
    return assess(trial, CONTENDERS[contender](trial.case, trial.train, trial.people, trial.seed))


def _told(records: Records) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Means and standard deviations over seeds of all measures, by contender."""
    means, spreads = {}, {}
    for contender, parts in records.items():
        pairs = zip(parts, records["nice"], strict=True)
        by_seed = pd.DataFrame([summary(part, rival) for part, rival in pairs])
        means[contender] = {str(key): float(value) for key, value in by_seed.mean().items()}
        means[contender] |= {f"{j} t": paired_t(parts, records["nice"], j) for j in JUDGES}
        spread = by_seed.std(ddof=1) if len(by_seed) > 1 else by_seed.iloc[0] * np.nan
        spreads[contender] = {str(key): float(value) for key, value in spread.items()}
    return means, spreads


def _report(means: Told, details: Sequence[Table], options: argparse.Namespace) -> list[Table]:
    tables = [_overview("Paper's form", PAPERS_FORM, means, options)]
    tables += [_overview("Raw categories", RAW, means, options)]
    tables += [*details, *_verdict_tables(list(verdicts(means)))]
    return [table for table in tables if table.rows]


def _overview(title: str, cases: Sequence[str], means: Told, options: argparse.Namespace) -> Table:
    """One cell per contender and case."""
    ran = [name for name in cases if name in means]
    contenders = list(dict.fromkeys(who for name in ran for who in means[name]))
    lines = [[who, *(_cell(means[name].get(who)) for name in ran)] for who in contenders]
    few = [name for name in ran if not has_others(name, options.people)]
    note = (
        f"Means over {options.seeds} draws of {options.people} people. Judges: mean difference "
        "from NICE of the five judges on the people whom both answer, negative is more plausible. "
        "People are none of those on whom the searches were tuned"
        + (f", but for {', '.join(few)}, where too few others are declined." if few else ".")
    )
    headings = ["sparsity / l1 / judges / contradictory pairs / coverage", *ran]
    return Table(f"{title}: the answers", headings, lines, note)


def _cell(told: Mapping[str, float] | None) -> str:
    if told is None:
        return ""
    parts = [f"{told['sparsity']:.2f}", f"{told['l1']:.2f}", f"{told['judges %']:+.0f} %"]
    return " / ".join([*parts, f"{told['pairs']:.3f}", f"{told['coverage']:.2f}"])


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
    "rows asked": 1,
    "CPU ms": 2,
    "fit s": 2,
}


def _costs(name: str, means: Told, spreads: Told) -> Table:
    """Everything measured on a case but the judges."""
    lines = []
    for contender, told in means[name].items():
        cells = [_pm(told[k], spreads[name][contender][k], n) for k, n in MEASURED.items()]
        ratios = [_ratio(told, means[name].get(rival)) for rival in ("nice-package", "nice")]
        lines.append([contender, *cells, *ratios])
    headings = [name, *MEASURED, "CPU / package", "CPU / our NICE"]
    note = (
        "Mean ± standard deviation over seeds. Copies: of rows that the search saw, and of all. "
        "Rows asked and CPU milliseconds are per answer, of one thread, fit apart."
    )
    return Table(f"{name}: measures", headings, lines, note)


def _judged(name: str, means: Told, spreads: Told) -> Table:
    """Each judge's difference from NICE on a case."""
    lines = []
    for contender, told in means[name].items():
        cells = [
            f"{_pm(told[f'{j} %'], spreads[name][contender][f'{j} %'], 1)} ({told[f'{j} t']:+.1f})"
            for j in JUDGES
        ]
        mean = _pm(told["judges %"], spreads[name][contender]["judges %"], 1)
        lines.append([contender, *cells, mean])
    note = (
        "Difference from NICE in % of NICE's mean ± standard deviation over seeds (paired t over "
        "distinct people); negative is more plausible."
    )
    return Table(f"{name}: judges", [name, *JUDGES, "mean of five"], lines, note)


def _verdict_tables(found: Sequence[Verdict]) -> Iterator[Table]:
    """What is asked of each search, and whether it holds."""
    marks = {True: "yes", False: "**no**", None: "not measured"}
    for search in dict.fromkeys(verdict.search for verdict in found):
        mine = [verdict for verdict in found if verdict.search == search]
        lines = []
        for verdict in mine:
            value = "" if verdict.value is None else f"{verdict.value:.3f}"
            told = [verdict.measure, verdict.case, value, f"{verdict.most:g}"]
            lines.append([*told, marks[verdict.holds]])
        n_held = sum(verdict.holds is True for verdict in mine)
        headings = ["measure", "case", "value", "at most", "holds"]
        yield Table(f"Asked of {search}: {n_held} of {len(mine)} hold", headings, lines)


def _pm(mean: float, spread: float, digits: int) -> str:
    told = f"{mean:.{digits}f}"
    return told if np.isnan(spread) else f"{told} ± {spread:.{digits}f}"


def _ratio(told: Mapping[str, float], rival: Mapping[str, float] | None) -> str:
    return "" if rival is None else f"{told['CPU ms'] / rival['CPU ms']:.2f}"


def _present(contenders: Sequence[str]) -> Iterator[str]:
    """Those that can take part; of the others it is said why not."""
    for name in contenders:
        if name == "nice-package" and importlib.util.find_spec("nice") is None:
            say("nice-package is left out: NICEx is not installed")
        elif name in PRESETS[1:] and not HAS_PRESETS:
            say(f"{name} is left out: MCCE takes no parameter search")
        else:
            if name == "real-rows" and not HAS_PRESETS:
                say("real-rows is searched as in the paper: MCCE takes no parameter search")
            yield name


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--contenders", nargs="+", choices=[*CONTENDERS], default=[*CONTENDERS])
    parser.add_argument("--seeds", type=int, default=5, help="draws of people and halves")
    parser.add_argument("--people", type=int, default=N_PEOPLE, help="people of each draw")
    return parser.parse_args()


if __name__ == "__main__":
    main()
