"""What it costs in realism that trees of wide tables consider some columns only.

``PYTHONPATH=benchmarks python lab/benchmarks/screen.py [--widths 60 120] [--rows 3000] [--people
200] [--seeds 3]``: half of a table of :mod:`wide` is seen by the generator, with all columns or
with the most associated ones alone. Classifiers tell generated rows from the other half, which also
judges the plausibility of the answers of ``balanced``. Prints a Markdown table, also to
``out/bench/screen.md``.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, McceWarning, TreeChain
from mcce_lab.experiments.case import Case
from mcce_lab.experiments.manifold import generate_like
from mcce_lab.metrics import discriminator
from measure import Table, log, write
from wide import wide_case

# Columns that trees of wide tables consider.
MAX_INPUTS = 16
N_TREES = 200
MEASURED = ("forest %", "logistic %", "plausibility", "sparsity")


def main() -> None:
    """Measure the selected widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("rows", 3000), ("people", 200), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--widths", type=int, nargs="+", default=[60, 120])
    options = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    lines = []
    for width in options.widths:
        found: dict[int | None, list[tuple[float, ...]]] = {None: [], MAX_INPUTS: []}
        for seed in range(options.seeds):
            case = wide_case(width, 2 * options.rows, options.people, seed)
            for most, values in found.items():
                with threadpool_limits(1):
                    values.append(measure(case, most, seed))
                log(f"{width} columns, seed {seed}, {most or 'all'} inputs: {values[-1]}")
        for most, values in found.items():
            cells = [f"{np.mean(v):.3f} ± {np.std(v):.3f}" for v in zip(*values, strict=True)]
            lines.append([str(width), str(most or "all"), *cells])
    note = "Mean ± standard deviation over tables; 50 % cannot be told apart."
    write([Table("Screen", ["columns", "inputs of a tree", *MEASURED], lines, note)], "screen")


def measure(case: Case, most: int | None, seed: int) -> tuple[float, ...]:
    """Accuracies of classifiers in %, mean plausibility and changes of answers."""
    half = len(case.train) // 2
    seen, unseen = case.train.iloc[:half], case.train.iloc[half:]
    made = generate_like(seen, case.decide(seen), case.immutable, seed=seed, max_inputs=most)
    told = discriminator(made, seen, holdout=unseen, n_repeats=2, n_trees=N_TREES)["accuracy"]
    judge = _fitted(case, unseen, None)
    result = _fitted(case, seen, most).explain(case.factuals)
    return (
        100 * float(told["forest", "generated"]),
        100 * float(told["logistic", "generated"]),
        float(judge.plausibility(result.frame)["plausibility"].mean()),
        float(result.measures["sparsity"].mean()),
    )


def _fitted(case: Case, rows: Any, most: int | None) -> MCCE:
    chain = TreeChain(max_inputs=most)
    given: dict[str, Any] = {"immutable": case.immutable, "generator": chain, "random_state": 0}
    return MCCE(case.predictor, case.desired, search="balanced", n_jobs=1, **given).fit(rows)


if __name__ == "__main__":
    main()
