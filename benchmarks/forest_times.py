"""What other generators on our trees cost, against the chain of single trees.

``python benchmarks/forest_times.py --data ../shared/data``: CPU seconds of fitting Adult and of
drawing for people, the least of several repeats, and their ratios to ``TreeChain``. One thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from mcce import ForestChain, InferenceTreeChain, Schema, TreeChain
from mcce.protocols import DrawRequest, person_keys
from mcce_lab.datasets import load
from measure import cpu

GENERATORS: dict[str, Callable[[], Any]] = {
    "trees": TreeChain,
    "trees, sqrt of the features": lambda: TreeChain(max_features="sqrt"),
    "forest": ForestChain,
    "forest, pool": lambda: ForestChain(sampling="pool"),
    "forest, no bootstrap": lambda: ForestChain(bootstrap=False),
    "ctree": InferenceTreeChain,
}
HEADINGS = "generator | fit s | ratio | draw s | ratio | nodes"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None, help="folder with adult.csv.gz")
    parser.add_argument("--form", default="paper", choices=["paper", "levels"])
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=list(GENERATORS))
    options = parser.parse_args()
    data = load("adult", form=options.form, folder=options.data)
    rows = Schema.learn_rows(data.features, immutable=data.immutable)
    decision = (data.target == data.desired).to_numpy()
    people = np.flatnonzero(~decision)[: options.people]
    given = rows.tree_codes[:, people]
    keys = person_keys(0, given[rows.schema.immutable].T)
    request = DrawRequest(given, keys, np.arange(options.draws))
    print(f"| {HEADINGS} |\n|{'---|' * (HEADINGS.count('|') + 1)}", flush=True)
    first: tuple[float, float] | None = None
    for name in options.only:
        make = GENERATORS[name]
        repeats = 1 if name == "ctree" else options.repeats
        fits = [cpu(lambda m=make: m().fit(rows, decision)) for _ in range(repeats)]  # type: ignore[misc]
        chain = fits[-1][1]
        chain.sample(request.part(slice(1), slice(None)))
        drawn = [
            cpu(lambda c=chain: c.sample(request))[0]  # type: ignore[misc]
            for _ in range(options.repeats)
        ]
        times = min(seconds for seconds, _ in fits), min(drawn)
        first = first or times
        fit, draw = (f"{a:.2f} | {a / b:.1f}" for a, b in zip(times, first, strict=True))
        print(f"| {name} | {fit} | {draw} | {chain.trees_.feature.size:,} |", flush=True)


if __name__ == "__main__":
    main()
