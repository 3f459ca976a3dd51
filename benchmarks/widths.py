"""Fit and search by number of columns: CPU time, rows per person and memory.

Each table of :mod:`wide` is fitted and its people are explained in a process of their own, started
as ``python benchmarks/widths.py child WIDTH ROWS PEOPLE SEARCH CPU_SECONDS TABLE``. One that takes
more CPU seconds is ended and left out of the exponent, the slope of log CPU seconds of fit on log
number of columns.

Prints a Markdown table and writes it to ``out/bench/widths.md`` and ``widths.json`` after every
width. Usage: ``python benchmarks/widths.py [--widths 20 60] [--rows 20000] [--people 200] [--table
dense]``; in a dense table every column matters.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, McceWarning
from mcce_lab.experiments.case import Case
from measure import Table, cpu, exponent, log, machine, memory, write
from wide import dense_case, wide_case

WIDTHS = (20, 60, 120, 250, 500)
TABLES = {"wide": wide_case, "dense": dense_case}
SEARCHES = ("sparse", "balanced", "plausible", "near")
MEASURED = {"fit s": 2, "explain s": 2, "rows per person": 1, "answered": 3, "sparsity": 2}
# By search and number of columns; None if it took too long.
Measures = dict[str, dict[int, dict[str, float] | None]]


def main() -> None:
    """Measure the selected widths and searches."""
    options = _options()
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    found: Measures = {search: {} for search in options.searches}
    for width in options.widths:
        for search in options.searches:
            values = _in_a_process(width, search, options)
            log(f"{width} columns, {search}: {values}")
            found[search][width] = values
        write([table(found, options.seconds)], "widths", widths=found)
    print(table(found, options.seconds).markdown())


def measure(
    make_case: Callable[..., Case], width: int, n_train: int, n_factuals: int, search: Any
) -> dict[str, float]:
    """Costs and answers of a search on one table, in this process."""
    case = make_case(width, n_train, n_factuals, 0)
    explainer = MCCE(
        case.predictor,
        case.desired,
        immutable=case.immutable,
        search=search,
        n_jobs=1,
        random_state=0,
    )
    before = memory("VmRSS")
    fit, _ = cpu(partial(explainer.fit, case.train))
    explain, result = cpu(partial(explainer.explain, case.factuals))
    first = result.measures.index.get_level_values("rank") == 1
    return {
        "fit s": fit,
        "explain s": explain,
        "rows per person": result.n_evaluated / len(case.factuals),
        "answered": float((result.people["status"] == "answered").mean()),
        "sparsity": float(result.measures["sparsity"][first].mean()),
        "before MB": before,
        "peak MB": memory("VmHWM"),
    }


def table(found: Measures, seconds: int) -> Table:
    """One line per search and width, and the exponents of fit."""
    lines = []
    for search, by_width in found.items():
        for width, values in by_width.items():
            lines.append([search, str(width), *_cells(values)])
    exponents = [
        f"{search} {exponent_of_fit(by_width):.2f}"
        for search, by_width in found.items()
        if sum(values is not None for values in by_width.values()) > 1
    ]
    note = "CPU seconds of one thread. Before: memory with the data alone; peak: the most in all. "
    note += f"No figures: more than {seconds} CPU s. Exponent of fit in the number of columns: "
    headings = ["search", "columns", *MEASURED, "before MB", "peak MB"]
    return Table("Width", headings, lines, note + (", ".join(exponents) or "unknown") + ".")


def exponent_of_fit(by_width: Mapping[int, Mapping[str, float] | None]) -> float:
    """Slope of log CPU seconds of fit on log number of columns."""
    known = {width: values["fit s"] for width, values in by_width.items() if values is not None}
    return exponent(list(known), list(known.values()))


def _cells(values: Mapping[str, float] | None) -> list[str]:
    if values is None:
        return [""] * (len(MEASURED) + 2)
    cells = [f"{values[name]:.{digits}f}" for name, digits in MEASURED.items()]
    return [*cells, f"{values['before MB']:.0f}", f"{values['peak MB']:.0f}"]


def _in_a_process(width: int, search: str, options: argparse.Namespace) -> dict[str, float] | None:
    given = (width, options.rows, options.people, search, options.seconds, options.table)
    command = [sys.executable, __file__, "child", *map(str, given)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return None
    done.check_returncode()
    return dict(json.loads(done.stdout))


def _run_child(given: Sequence[str]) -> None:
    width, n_train, n_factuals = map(int, given[:3])
    resource.setrlimit(resource.RLIMIT_CPU, (int(given[4]), resource.RLIM_INFINITY))
    warnings.simplefilter("ignore", McceWarning)
    with threadpool_limits(1):
        print(json.dumps(measure(TABLES[given[5]], width, n_train, n_factuals, given[3])))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS)
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=("sparse", "balanced"))
    parser.add_argument("--rows", type=int, default=20_000, help="training rows (default: 20000)")
    parser.add_argument("--people", type=int, default=200, help="people (default: 200)")
    parser.add_argument("--table", choices=TABLES, default="wide")
    parser.add_argument(
        "--seconds", type=int, default=900, help="most CPU seconds of a search (default: 900)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _run_child(sys.argv[2:])
    else:
        main()
