"""How many files and functions of mcce one person passes through from ``explain`` to the result.

One call of ``explain`` is profiled; every Python function under ``src/mcce`` that it enters counts
once. The data are simulated, so nothing but the package is needed. Both counts are figures to look
at: they say how much a reader has to hold in mind, and nothing about speed.

Prints the two counts for each search; ``--files`` also lists the functions by file. Usage:
``python benchmarks/path_of_a_row.py [--searches paper balanced] [--files]``.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections import defaultdict
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import mcce

ROOT = Path(mcce.__file__).parent
# By file: name and first line of each function that was entered.
Entered = dict[str, set[tuple[str, int]]]


def main() -> None:
    """Print the counts of the selected searches."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--searches", nargs="+", default=["paper", "balanced"])
    parser.add_argument("--files", action="store_true", help="list the functions by file")
    options = parser.parse_args()
    for search in options.searches:
        entered = path_of_a_row(search)
        n_functions = sum(map(len, entered.values()))
        print(f"{search}: {len(entered)} files, {n_functions} functions")
        for name in sorted(entered) if options.files else ():
            functions = sorted(entered[name], key=itemgetter(1))
            print(f"  {name}: {', '.join(function for function, _ in functions)}")


def path_of_a_row(search: Any) -> Entered:
    """Functions that one person passes through in ``explain``, by file."""
    rows = training_rows()
    explainer = mcce.MCCE(accept, (0.5, 1.0), immutable=["age"], search=search, n_jobs=1)
    explainer.fit(rows)
    declined = rows[accept(rows) < 0.5]
    warnings.simplefilter("ignore", mcce.McceWarning)
    # Modules that are imported on first use are not on the way of the second person.
    explainer.explain(declined.iloc[[1]])
    entered: Entered = defaultdict(set)

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            entered[str(Path(code.co_filename).relative_to(ROOT))].add(
                (code.co_name, code.co_firstlineno)
            )

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        explainer.explain(declined.iloc[[0]])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return entered


def training_rows(n_rows: int = 500) -> pd.DataFrame:
    """Simulated applicants with numbers and a category."""
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 80, n_rows),
            "income": draw.normal(30, 10, n_rows).round(1),
            "debt": draw.gamma(2, 5, n_rows).round(1),
            "job": draw.choice(["none", "worker", "clerk"], n_rows),
        }
    )


def accept(rows: pd.DataFrame) -> np.ndarray:
    """The predictor: whether the income exceeds the debt by enough."""
    return (rows["income"] - rows["debt"] > 25).to_numpy(dtype=float)


if __name__ == "__main__":
    main()
