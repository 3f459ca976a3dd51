"""Simulated wide tables: many columns that few hidden factors explain, as a bank has them.

About one hidden factor for ten columns. A column depends on one to three factors, or on another
column, plus noise: numbers are skewed, rounded, counts, or mostly zero, some rise and fall with
their factor; three columns in ten are categories of 2 to 12 levels, half of them without any order.
The predictor is a logistic score of 15 columns with interactions, about a microsecond a row.
:func:`dense_case` is the opposite: every column matters, and a little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mcce_lab.experiments.case import Case
from mcce_lab.experiments.predictors import Floats

N_SCORED, N_INTERACTIONS = 15, 6
# Share of rows that the predictor accepts.
ACCEPTED = 0.4


def wide_case(p: int, n_train: int, n_factuals: int, seed: int = 0) -> Case:
    """A table of p columns, a predictor, and people whom it declines.

    Parameters
    ----------
    p : int
        Number of columns, at least 3.
    n_train, n_factuals : int
        Number of training rows, and of people to explain, who are not among them.
    seed : int
        Seed of everything.

    Returns
    -------
    Case
        One column in twenty is immutable, at least two.
    """
    rng = np.random.default_rng(seed)
    rows = simulate_wide(p, n_train + 3 * n_factuals + 100, rng)
    train, others = rows.head(n_train), rows.iloc[n_train:]
    scorer = Scorecard.draw(train, rng)
    declined = others[scorer(others) < 0.5].head(n_factuals).reset_index(drop=True)
    fixed = np.sort(rng.choice(p, max(2, p // 20), replace=False))
    immutable = [str(train.columns[at]) for at in fixed]
    return Case(f"wide-{p}", train, declined, immutable, scorer)


def dense_case(p: int, n_train: int, n_factuals: int, seed: int = 0) -> Case:
    """A table all of whose columns matter: five in six are correlated numbers, the others levels.

    The predictor is the logistic of a linear score of all numbers and levels.
    """
    rng = np.random.default_rng(seed)
    n_rows = n_train + 3 * n_factuals + 100
    n_levels = p // 6
    n_numbers = p - n_levels
    common = rng.normal(size=(n_rows, 1))
    numbers = np.round(0.5 * common + rng.normal(size=(n_rows, n_numbers)), 2)
    levels = rng.integers(0, 6, size=(n_rows, n_levels))
    rows = pd.DataFrame(numbers, columns=[f"number_{at:03d}" for at in range(n_numbers)])
    for at in range(n_levels):
        names = pd.Index([f"v{level}" for level in range(6)])
        rows[f"level_{at:03d}"] = pd.Categorical.from_codes(levels[:, at], names)
    scorer = LinearScore(rng.normal(size=n_numbers), rng.normal(size=(n_levels, 6)))
    shift = float(np.quantile(scorer.total(rows), 1 - ACCEPTED))
    scorer = replace(scorer, shift=shift, scale=float(np.std(scorer.total(rows))))
    train, others = rows.head(n_train), rows.iloc[n_train:]
    declined = others[scorer(others) < 0.5].head(n_factuals).reset_index(drop=True)
    return Case(f"dense-{p}", train, declined, [], scorer)


@dataclass(frozen=True, eq=False)
class LinearScore:
    """The logistic of a weighted sum of numbers and points of levels."""

    weights: Floats
    points: Floats
    shift: float = 0.0
    scale: float = 1.0

    def total(self, frame: pd.DataFrame) -> Floats:
        """The weighted sum."""
        found = frame.filter(like="number_").to_numpy(dtype=np.float64) @ self.weights
        for points, name in zip(self.points, frame.filter(like="level_").columns, strict=True):
            found = found + points[frame[name].cat.codes.to_numpy()]
        return np.asarray(found)

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """Scores between 0 and 1."""
        return np.asarray(1 / (1 + np.exp(-2 * (self.total(frame) - self.shift) / self.scale)))


def simulate_wide(p: int, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of p columns that depend on about p / 10 hidden factors."""
    common = rng.normal(size=n_rows)
    n_factors = max(3, p // 10)
    factors = 0.3 * common + rng.normal(size=(n_factors, n_rows))
    columns: dict[str, NDArray[np.generic] | pd.Categorical[str]] = {}
    parents: list[Floats] = []
    for at in range(p):
        hidden = _hidden(factors, parents, rng)
        parents.append(hidden)
        if at % 10 in (2, 5, 9):
            columns[f"level_{at:03d}"] = _levels(hidden, rng)
        else:
            columns[f"number_{at:03d}"] = NUMBERS[at % len(NUMBERS)](hidden, rng)
    return pd.DataFrame(columns)


def _hidden(factors: Floats, parents: list[Floats], rng: np.random.Generator) -> Floats:
    """What a column shows: some factors or another column, plus noise, about standardised."""
    noise = rng.uniform(0.3, 0.9) * rng.normal(size=factors.shape[1])
    if parents and rng.random() < 0.25:
        parent = parents[rng.integers(len(parents))]
        return (rng.choice([-1.0, 1.0]) * parent + noise) / np.sqrt(1.5)
    chosen = rng.choice(len(factors), rng.integers(1, 4), replace=False)
    weights = rng.uniform(0.4, 1.0, size=chosen.size) * rng.choice([-1.0, 1.0], size=chosen.size)
    mixed = (weights @ factors[chosen] + noise) / np.sqrt((weights**2).sum() + 0.4)
    # One in eight is high at both ends of its factors.
    return np.abs(mixed) * 1.6 - 1.3 if rng.random() < 0.125 else mixed


def _levels(hidden: Floats, rng: np.random.Generator) -> pd.Categorical[str]:
    """Two to twelve levels of uneven size; half of the columns have them in no order."""
    n_levels = int(rng.integers(2, 13))
    edges = np.quantile(hidden, np.cumsum(rng.dirichlet(np.full(n_levels, 4.0)))[:-1])
    codes = np.searchsorted(edges, hidden)
    if rng.random() < 0.5:
        codes = rng.permutation(n_levels)[codes]
    return pd.Categorical.from_codes(
        codes, pd.Index([f"v{level:02d}" for level in range(n_levels)])
    )


NUMBERS: list[Callable[[Floats, np.random.Generator], NDArray[np.generic]]] = [
    lambda hidden, rng: np.round(hidden, 2),
    lambda hidden, rng: np.round(np.exp(10 + 0.8 * hidden), -2).astype(np.int64),
    lambda hidden, rng: rng.poisson(np.exp(0.6 + 0.7 * np.minimum(hidden, 3.0))),
    lambda hidden, rng: np.round(40 + 12 * hidden).clip(18, 90).astype(np.int64),
    lambda hidden, rng: np.round(np.exp(7 + hidden) * (hidden > 0.4), 1),
    lambda hidden, rng: np.round(1 / (1 + np.exp(-1.5 * hidden)), 3),
    lambda hidden, rng: np.exp(2 + 0.5 * hidden),
]


@dataclass(frozen=True, eq=False)
class Scorecard:
    """A logistic score of some columns, each on its own scale, and of products of two.

    Parameters
    ----------
    knots
        Nine quantiles of each number it uses, by name.
    points
        Points at these quantiles, or of each level, by name.
    pairs
        Names of two columns, and the weight of the product of their points.
    shift
        Added to the sum of points.
    """

    knots: dict[str, Floats]
    points: dict[str, Floats]
    pairs: list[tuple[str, str, float]]
    shift: float

    @classmethod
    def draw(cls, rows: pd.DataFrame, rng: np.random.Generator) -> Scorecard:
        """A random scorecard that accepts two rows in five."""
        n_scored = min(N_SCORED, rows.shape[1])
        chosen = np.sort(rng.choice(rows.shape[1], n_scored, replace=False))
        knots, points = {}, {}
        for name in (str(rows.columns[at]) for at in chosen):
            column = rows[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                points[name] = rng.normal(0.0, 0.7, len(column.dtype.categories))
                continue
            knots[name] = np.unique(np.quantile(column, np.linspace(0.02, 0.98, 9)))
            steps = rng.choice([-1.0, 1.0]) * rng.exponential(0.3, knots[name].size)
            points[name] = np.cumsum(steps) - steps.sum() / 2
        names = list(points)
        couples = [rng.choice(len(names), 2, replace=False) for _ in range(N_INTERACTIONS)]
        pairs = [(names[a], names[b], float(rng.normal(0.0, 0.5))) for a, b in couples]
        raw = cls(knots, points, pairs, 0.0)
        return cls(knots, points, pairs, -float(np.quantile(raw.total(rows), 1 - ACCEPTED)))

    def total(self, rows: pd.DataFrame) -> Floats:
        """The sum of points of each row."""
        own: dict[str, Floats] = {}
        for name, points in self.points.items():
            if name in self.knots:
                own[name] = np.interp(rows[name].to_numpy(np.float64), self.knots[name], points)
            else:
                own[name] = points[rows[name].cat.codes.to_numpy()]
        total = np.full(len(rows), self.shift)
        for part in own.values():
            total += part
        for first, second, weight in self.pairs:
            total += weight * own[first] * own[second]
        return total

    def __call__(self, rows: pd.DataFrame) -> Floats:
        """The score of each row, between 0 and 1."""
        score: Floats = 1 / (1 + np.exp(-self.total(rows)))
        return score
