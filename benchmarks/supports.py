"""How many real accepted rows the calibrated support lets pass that it has not seen.

``python benchmarks/supports.py``: for each case and draw the support is learned on the rows that a
search sees, half of the accepted ones among them, and asked about the other half: all of it, and
the rows with a level that under 2 % of the accepted rows have, where there are 50 or more of them.
"""

from __future__ import annotations

import numpy as np

from asked import CASES
from mcce.plausibility.support import N_RARE, RARE, Support
from mcce.tables.schema import Schema
from measure import Table
from trials import Trial, load_case

SHARES = (0.95, 0.75)
N_SEEDS = 5


def main() -> None:
    """Print the table."""
    lines = []
    for name in CASES:
        trials = [trial for seed in range(N_SEEDS) if (trial := load_case(name, seed)) is not None]
        if trials:
            told = np.array([passed(trial) for trial in trials])
            spread = told.std(axis=0, ddof=1)
            cells = [
                f"{m:.3f} ± {s:.3f}" for m, s in zip(np.nanmean(told, axis=0), spread, strict=True)
            ]
            lines.append([name, *cells])
    headings = ["rows held out", '"95"', '"75"', 'rare levels, "95"']
    print(Table("Support", headings, lines, f"Share inside, {N_SEEDS} splits.").markdown())


def passed(trial: Trial) -> list[float]:
    """Shares of held-out accepted rows that are inside, and of those with rare levels."""
    case = trial.case
    rows = Schema.learn_rows(trial.train, immutable=case.immutable)
    accepted = case.decide(trial.train)
    support = Support().fit(rows, accepted, rows.schema.mutable)
    held_out = case.train.drop(index=trial.train.index)
    descent = rows.schema.encode(held_out).descent
    inside = [support.n_outside(descent, support.sizes(share)) == 0 for share in SHARES]
    rare = np.zeros(len(held_out), dtype=bool)
    for name in held_out.select_dtypes(exclude="number").columns.difference(case.immutable):
        share = trial.train.loc[accepted, name].value_counts(normalize=True)
        rare |= (held_out[name].map(share).astype(float).fillna(0.0) < RARE).to_numpy()
    of_rare = float(inside[0][rare].mean()) if rare.sum() >= N_RARE else np.nan
    return [*(float(part.mean()) for part in inside), of_rare]


if __name__ == "__main__":
    main()
