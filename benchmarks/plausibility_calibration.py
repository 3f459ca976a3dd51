"""Whether p-values of unseen accepted rows are what they say.

``python benchmarks/plausibility_calibration.py``: for each table and split, the plausibility model
is fitted on a random half of the rows with the desired label and on the others, and the other half
gets p-values. Pooled over the splits, the share with a p-value up to a level should lie within the
interval that holds for 99 % of calibrated models: rows are drawn beta-binomially, since both the
held-out rows of a fit and the unseen ones are random. The last columns are of unseen rows with a
level of under 2 % of the accepted rows: how many there are, of how many people, and their shares.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cases import DATA
from mcce.plausibility.conformal import Calibration
from mcce.plausibility.model import RARE_LEVEL_SHARE, PlausibilityModel
from mcce.tables.schema import Schema
from mcce_lab import datasets
from mcce_lab.datasets import DatasetError
from measure import Table, log

LEVELS = (0.05, 0.01)
N_SPLITS, N_RARE = 20, 50
# Accepted and declined rows of a table, at most: calibration needs no more to be seen.
MAX_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class Rows:
    """A table, which of its rows are accepted, and which columns are immutable."""

    frame: pd.DataFrame
    accepted: NDArray[np.bool_]
    immutable: list[str]


def main(names: list[str]) -> None:
    """Print the table."""
    lines = [[name, *_measured(rows)] for name, rows in tables() if not names or name in names]
    headings = ["unseen rows of", "held out", "p <= .05", "99 %", "p <= .01", "99 %"]
    headings += ["rare, held out", "unseen (people)", "p <= .05", "p <= .01"]
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
    for make, n_rows in MADE_UP:
        frame = make(np.random.default_rng(1), n_rows)
        yield f"{make.__name__}, {n_rows}", Rows(frame, np.ones(n_rows, dtype=bool), [])


def _measured(rows: Rows) -> list[str]:
    splits = [unseen_p_values(rows, seed) for seed in range(N_SPLITS)]
    pooled, is_rare = (np.concatenate([split[at] for split in splits]) for at in (1, 2))
    calibrations = [calibration for *_, calibration in splits]
    cells = [str(calibrations[0].n_held_out)]
    for level in LEVELS:
        low, high = interval(calibrations, pooled.size // N_SPLITS, level)
        cells += [f"{(pooled <= level).mean():.4f}", f"{low:.4f} to {high:.4f}"]
    n_rare = int(is_rare.sum())
    if n_rare < N_RARE:
        return [*cells, *[""] * (2 + len(LEVELS))]
    people = np.concatenate([who[rare] for who, _, rare, _ in splits])
    compared = [0 if one.rare is None else one.rare.values.size for one in calibrations]
    cells += [f"{np.mean(compared):.0f}", f"{n_rare} ({np.unique(people).size})"]
    return [*cells, *(f"{(pooled[is_rare] <= level).mean():.4f}" for level in LEVELS)]


def unseen_p_values(
    rows: Rows, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], Calibration]:
    """Unseen accepted rows, their p-values, whether they have a rare level, and the calibration."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(rows.accepted))[:MAX_ROWS]
    declined = rng.permutation(np.flatnonzero(~rows.accepted))[:MAX_ROWS]
    seen, unseen = order[: order.size // 2], order[order.size // 2 :]
    train = rows.frame.iloc[np.concatenate([seen, declined])]
    encoded = Schema.learn_rows(train, immutable=rows.immutable)
    accepted = np.arange(len(train)) < seen.size
    model = PlausibilityModel().fit(encoded, accepted, encoded.schema.mutable, n_jobs=2)
    fresh = encoded.schema.encode(rows.frame.iloc[unseen])
    found = model.assess(fresh.tree_codes, fresh.all_numbers).p_value
    rare = np.zeros(unseen.size, dtype=bool)
    for name in train.select_dtypes(exclude="number").columns.difference(rows.immutable):
        share = rows.frame[name].iloc[seen].value_counts(normalize=True)
        there = rows.frame[name].iloc[unseen].map(share).astype(float).fillna(0.0)
        rare |= (there < RARE_LEVEL_SHARE).to_numpy()
    return unseen, found, rare, model.calibration_


def interval(calibrations: list[Calibration], n_unseen: int, level: float) -> tuple[float, float]:
    """Where the pooled share lies for 99 % of calibrated models.

    A kind of rows with n held out can only have p-values of 1/(n + 1), 2/(n + 1) and so on. Rows
    stranger than all of a small kind may also have smaller ones.
    """
    low, high, variance = [], [], []
    for one in calibrations:
        sizes = [one.usual.values.size] + ([] if one.rare is None else [one.rare.values.size])
        shares = np.array(sizes) / sum(sizes)
        means = np.array([int(level * (n + 1)) / (n + 1) for n in sizes])
        most = np.maximum(means, [0, *(1 / (n + 1) for n in sizes[1:])])
        of_all, unseen = np.array(sizes) + 1, shares * n_unseen
        spread = most * (1 - most) * (of_all + unseen) / ((of_all + 1) * unseen)
        low.append(shares @ means)
        high.append(shares @ most)
        variance.append(shares**2 @ spread)
    margin = 2.576 * np.sqrt(np.mean(variance) / len(calibrations))
    return max(float(np.mean(low) - margin), 0.0), float(np.mean(high) + margin)


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


def trades(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Numbers and levels that follow from age, and a tenth in one of many rare trades."""
    age = rng.integers(18, 90, n_rows)
    state = np.where(age > 66, "pension", np.where(age < 25, "student", "work"))
    hours = np.where(state == "work", rng.integers(10, 60, n_rows), 0)
    rare = np.array([f"trade {i}" for i in range(12)])[rng.integers(0, 12, n_rows)]
    trade = np.where(rng.random(n_rows) < 0.1, rare, "usual")
    return pd.DataFrame({"age": age, "state": state, "hours": hours, "trade": trade})


def towns(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Rare towns, each in one region, with incomes of their own."""
    region = rng.choice(["north", "south", "east", "west"], n_rows, p=[0.4, 0.3, 0.2, 0.1])
    number = np.minimum(rng.geometric(0.15, n_rows), 30)
    town = np.char.add(region, np.arange(31).astype(str)[number])
    income = (20 + 3 * number + rng.gamma(2, 4, n_rows)).round()
    rent = (income * rng.uniform(0.2, 0.5, n_rows)).round(1)
    return pd.DataFrame({"region": region, "town": town, "income": income, "rent": rent})


def answers(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Ten questions, each with rare answers, some of which depend on a number."""
    hidden = rng.standard_normal(n_rows)
    columns = {}
    for i in range(10):
        given = rng.choice(7, n_rows, p=[0.5, 0.3, 0.16, 0.02, 0.01, 0.007, 0.003])
        given = np.where((hidden > 0.5) & (i % 2 == 0) & (given == 0), 1, given)
        columns[f"question {i}"] = np.array(list("abcdefg"))[given]
    number = (hidden + rng.standard_normal(n_rows)).round(2)
    return pd.DataFrame({**columns, "number": number})


MADE_UP: list[tuple[Callable[[np.random.Generator, int], pd.DataFrame], int]] = [
    *((make, 3_000) for make in (product, noise, holes, trades, towns, answers)),
    *((make, 700) for make in (trades, towns, answers)),
]


if __name__ == "__main__":
    main(sys.argv[1:])
