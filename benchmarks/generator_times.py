"""CPU time of the generators on Adult: how long each one takes to fit and to draw.

``python benchmarks/generator_times.py --generators trees made``: a line for each
generator, with the CPU seconds and the elapsed seconds of the fit, and the CPU seconds of drawing
100 rows for each of 1,000 people. Held-out likelihoods are means over a fifth of the rows that are
left out of the fit, given their own decision. ``--epochs`` trains networks for fewer epochs.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd

from cases import load
from mcce.model.registry import GENERATORS
from mcce.protocols import DrawRequest, person_keys
from mcce.tables.schema import Schema

HEADINGS = (
    "generator | fit, CPU s | fit, elapsed s | 100,000 draws, CPU s | held-out log-likelihood"
)
N_PEOPLE, N_DRAWS = 1000, 100
NAMES = ("trees", "forest", "ctree", "copula", "made", "ctgan")


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generators", nargs="+", default=list(NAMES))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    case = load("adult")
    if case is None:
        return
    print(f"| {HEADINGS} |\n|{'---|' * (HEADINGS.count('|') + 1)}", flush=True)
    frame, decision = case.train, np.asarray(case.decide(case.train))
    kept = np.random.default_rng(0).random(len(frame)) < 0.8
    for name in options.generators:
        generator = GENERATORS.load(name)()
        if options.epochs is not None and "n_epochs" in generator.get_params():
            generator.set_params(n_epochs=options.epochs)
        if "device" in generator.get_params():
            generator.set_params(device=options.device)
        if "decisions" in generator.get_params():
            generator.set_params(decisions=(False, True))
        print(line(name, generator, frame, decision, kept, case.immutable), flush=True)


def line(
    name: str,
    generator: Any,
    frame: pd.DataFrame,
    is_desired: np.ndarray,
    kept: np.ndarray,
    immutable: list[str],
) -> str:
    """What one generator takes, as a row of the table."""
    rows = Schema.learn_rows(frame[kept], immutable=immutable)
    cpu, clock = time.process_time(), time.perf_counter()
    generator.fit(rows, is_desired[kept], seed=0, n_jobs=1, verbose=True)
    fit = time.process_time() - cpu, time.perf_counter() - clock
    given = rows.schema.encode(frame[~kept].head(N_PEOPLE)).tree_codes
    keys = person_keys(0, given[rows.schema.immutable].T)
    cpu = time.process_time()
    generator.sample(DrawRequest(given, keys, np.arange(N_DRAWS)))
    draw = time.process_time() - cpu
    likelihood = "none"
    if generator.capabilities.density:
        likelihood = held_out(generator, rows.schema, frame[~kept], is_desired[~kept])
    return f"| {name} | {fit[0]:.1f} | {fit[1]:.1f} | {draw:.1f} | {likelihood} |"


def held_out(generator: Any, schema: Schema, frame: pd.DataFrame, is_desired: np.ndarray) -> str:
    """Mean log-likelihood of rows that can be drawn, and the share that cannot."""
    values = np.concatenate(
        [
            generator.log_likelihood(schema.encode(frame[is_desired == one]), decision=bool(one))
            for one in (False, True)
        ]
    )
    possible = np.isfinite(values)
    return f"{values[possible].mean():.2f}, {1 - possible.mean():.1%} impossible"


if __name__ == "__main__":
    main()
