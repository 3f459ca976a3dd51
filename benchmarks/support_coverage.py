"""Share of unseen accepted rows that are inside the calibrated support.

``python benchmarks/support_coverage.py``: for each case and seed the support is fitted on the rows
that a search sees, among them half of the accepted ones, and tested on the other half: on all of
it, and on rows with a level of under 2 % of the accepted rows, if there are at least 50 of them.
"""

from __future__ import annotations

import numpy as np

from mcce.plausibility.support import N_RARE, RARE, Support
from mcce.tables.schema import Schema
from measure import Table
from requirements import CASES
from trials import Trial, load_trial

SHARES = (0.95, 0.75)
N_SEEDS = 5


def main() -> None:
    """Print the table."""
    lines = []
    for name in CASES:
        trials = [trial for seed in range(N_SEEDS) if (trial := load_trial(name, seed)) is not None]
        if trials:
            shares = np.array([inside_shares(trial) for trial in trials])
            spread = shares.std(axis=0, ddof=1)
            cells = [
                f"{m:.3f} ± {s:.3f}"
                for m, s in zip(np.nanmean(shares, axis=0), spread, strict=True)
            ]
            lines.append([name, *cells])
    headings = ["held-out rows", '"95"', '"75"', 'rare levels, "95"']
    print(Table("Support", headings, lines, f"Share inside, {N_SEEDS} splits.").markdown())


def inside_shares(trial: Trial) -> list[float]:
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
