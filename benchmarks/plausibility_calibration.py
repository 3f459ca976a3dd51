"""Whether p-values of unseen accepted rows are what they say.

``python benchmarks/plausibility_calibration.py``: for each table and split, the plausibility model
is fitted on a random half of the rows with the desired label and on the others, and the other half
gets p-values. Pooled over the splits, the share with a p-value up to a level should lie within the
interval that holds for 99 % of calibrated models: rows are drawn beta-binomially, since both the
held-out rows of a fit and the unseen ones are random. The last column counts unseen rows with a
level of under 2 % of the accepted rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cases import DATA
from mcce import DatasetError, datasets
from mcce.plausibility.model import RARE, PlausibilityModel
from mcce.tables.schema import Schema
from measure import Table, log

LEVELS = (0.05, 0.01)
N_SPLITS, N_RARE = 20, 50
# Accepted and declined rows of a table, at most: calibration needs no more to be seen.
MOST = 4_000


@dataclass(frozen=True, eq=False)
class Rows:
    """A table, which of its rows are accepted, and which columns are immutable."""

    frame: pd.DataFrame
    accepted: NDArray[np.bool_]
    immutable: list[str]


def main(names: list[str]) -> None:
    """Print the table."""
    lines = [[name, *_measured(rows)] for name, rows in tables() if not names or name in names]
    headings = ["unseen rows of", "held out", "p <= .05", "99 %", "p <= .01", "99 %", "rare, .05"]
    note = f"Shares of unseen accepted rows, pooled over {N_SPLITS} splits."
    print(Table("Plausibility", headings, lines, note).markdown())


def tables() -> Iterator[tuple[str, Rows]]:
    """The data sets that are there, and made-up tables."""
    for name in datasets.NAMES:
        try:
            data = datasets.load(name, folder=DATA)
        except (FileNotFoundError, DatasetError) as error:
            log(f"{name} is skipped: {error} (data are expected in ../shared)")
            continue
        yield name, Rows(data.features, (data.target == data.desired).to_numpy(), data.immutable)
    for make in MADE_UP:
        frame = make(np.random.default_rng(1), 3_000)
        yield make.__name__, Rows(frame, np.ones(len(frame), dtype=bool), [])


def _measured(rows: Rows) -> list[str]:
    p_values, rare, n_held_out = [], [], 0
    for seed in range(N_SPLITS):
        found, has_rare, n_held_out = unseen_p_values(rows, seed)
        p_values.append(found)
        rare.append(has_rare)
    pooled, is_rare = np.concatenate(p_values), np.concatenate(rare)
    cells = [str(n_held_out)]
    for level in LEVELS:
        low, high = interval(n_held_out, pooled.size // N_SPLITS, level)
        cells += [f"{(pooled <= level).mean():.4f}", f"{low:.4f} to {high:.4f}"]
    share = f"{(pooled[is_rare] <= LEVELS[0]).mean():.3f}" if is_rare.sum() >= N_RARE else ""
    return [*cells, share]


def unseen_p_values(rows: Rows, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_], int]:
    """P-values of unseen accepted rows, which of them have a rare level, and the rows held out."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(rows.accepted))[:MOST]
    declined = rng.permutation(np.flatnonzero(~rows.accepted))[:MOST]
    seen, unseen = order[: order.size // 2], order[order.size // 2 :]
    train = rows.frame.iloc[np.concatenate([seen, declined])]
    encoded = Schema.learn_rows(train, immutable=rows.immutable)
    accepted = np.arange(len(train)) < seen.size
    model = PlausibilityModel().fit(encoded, accepted, encoded.schema.mutable, n_jobs=2)
    fresh = encoded.schema.encode(rows.frame.iloc[unseen])
    found = model.assess(fresh.descent, fresh.all_numbers).p_value
    rare = np.zeros(unseen.size, dtype=bool)
    for name in train.select_dtypes(exclude="number").columns.difference(rows.immutable):
        share = rows.frame[name].iloc[seen].value_counts(normalize=True)
        there = rows.frame[name].iloc[unseen].map(share).astype(float).fillna(0.0)
        rare |= (there < RARE).to_numpy()
    return found, rare, model.calibration_.n_held_out


def interval(n_held_out: int, n_unseen: int, level: float) -> tuple[float, float]:
    """Where the pooled share lies for 99 % of calibrated models."""
    place = int(np.floor(level * (n_held_out + 1)))
    if place == 0:
        return 0.0, 0.0
    mean, of_all = place / (n_held_out + 1), n_held_out + 1
    variance = mean * (1 - mean) * (of_all + n_unseen) / ((of_all + 1) * n_unseen)
    margin = 2.576 * np.sqrt(variance / N_SPLITS)
    return max(mean - margin, 0.0), mean + margin


def product(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """A total that is a product, to one percent."""
    months, price = rng.integers(1, 72, n_rows), rng.integers(15, 120, n_rows)
    total = months * price * (1 + 0.01 * rng.standard_normal(n_rows))
    plan = np.where(price > 80, "large", np.where(price > 40, "usual", "small"))
    return pd.DataFrame({"months": months, "price": price, "total": total, "plan": plan})


def noise(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Numbers and levels that have nothing to do with each other, many levels rare."""
    numbers = {f"x{i}": rng.standard_normal(n_rows).round(2) for i in range(4)}
    city = np.array([f"city {i}" for i in range(40)])[np.minimum(rng.geometric(0.1, n_rows), 39)]
    return pd.DataFrame({**numbers, "city": city, "group": rng.choice(["a", "b"], n_rows)})


def holes(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Numbers with missing cells and heavy tails, one of them mostly zero."""
    size = np.exp(rng.standard_normal(n_rows))
    debt = np.where(rng.random(n_rows) < 0.7, 0.0, size * np.exp(rng.standard_normal(n_rows)))
    share = np.where(rng.random(n_rows) < 0.2, np.nan, debt / size)
    return pd.DataFrame({"size": size, "debt": debt, "share": share, "owns": share > 0.5})


MADE_UP: list[Callable[[np.random.Generator, int], pd.DataFrame]] = [product, noise, holes]


if __name__ == "__main__":
    main(sys.argv[1:])
