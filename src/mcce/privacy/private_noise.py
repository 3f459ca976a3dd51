"""Counts with noise, and the ledger of what they cost: differential privacy by OpenDP.

A private fit reads training rows through counts alone: how many rows fall into each cell of a
partition. OpenDP counts them, adds discrete Laplace noise, drawn exactly from random bits of the
operating system, and says what epsilon this costs for one row more or less. Here is how a budget is
split over the counts of a fit.

Always true: the ledger depends on the budget alone, never on the rows; the noise has no seed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, missing_extra
from ..kernels import IntArray

# Share of the budget that a noisy count of the rows gets, if there is one.
COUNT_SHARE = 0.01
# With less, noise would no longer fit into whole numbers of 64 bits.
MIN_EPSILON = 1e-7


@dataclass(frozen=True)
class Budget:
    """An epsilon, split equally over trees, after a count of the rows if depths need one.

    Trees read the same rows, so that what they cost adds up.
    """

    epsilon: float
    n_trees: int
    counts_rows: bool

    @property
    def of_tree(self) -> float:
        """Share of the budget that each tree gets."""
        return (1 - COUNT_SHARE * self.counts_rows) / self.n_trees

    def scale(self, share: float) -> float:
        """Scale of the noise of counts that get a share of the budget; 0 without noise."""
        return 0.0 if math.isinf(self.epsilon) else _scale(self) / share

    def count(self, share: float, cells: IntArray, n_cells: int) -> IntArray:
        """How many rows are in each cell, with the noise that a share of the budget buys."""
        if math.isinf(self.epsilon):
            return np.bincount(cells, minlength=n_cells)
        counted = _noisy(_counting(n_cells), self.scale(share))(cells.astype(np.int32))
        return np.array(counted, dtype=np.int64)

    def ledger(self, names: Sequence[Hashable]) -> pd.DataFrame:
        """What every count costs for the trees of some columns, by the maps of OpenDP."""
        shares = {"number of rows": COUNT_SHARE} if self.counts_rows else {}
        parts = [*shares.items(), *((f"{name}, leaves", self.of_tree) for name in names)]
        rows = [("geometric", scope, *self._cost(share)) for scope, share in parts]
        return pd.DataFrame(rows, columns=["mechanism", "scope", "sensitivity", "epsilon"])

    def _cost(self, share: float) -> tuple[float, float]:
        """Sensitivity and epsilon of a count, for one row more or less."""
        if math.isinf(self.epsilon):
            return 1.0, math.inf
        counting = _counting(1)
        return float(counting.map(1)), _noisy(counting, self.scale(share)).map(1)


@lru_cache(maxsize=32)
def _scale(budget: Budget) -> float:
    """Scale of the noise of a count that gets all of a budget; the share of others divides it."""
    of_part = budget.epsilon * min(budget.of_tree, COUNT_SHARE if budget.counts_rows else 1)
    if of_part < MIN_EPSILON:
        raise ParameterError(
            f"epsilon={budget.epsilon!r} leaves {of_part:.3g} for one part of the fit, which is "
            f"less than {MIN_EPSILON}. Pass another epsilon."
        )
    counting, about = _counting(1), 1 / budget.epsilon

    def together(scale: float) -> Any:
        of_tree = _noisy(counting, scale / budget.of_tree)
        of_count = [_noisy(counting, scale / COUNT_SHARE)] * budget.counts_rows
        return _opendp().c.make_composition([*of_count, *[of_tree] * budget.n_trees])

    # Larger than 1 / epsilon by rounding errors alone.
    bounds = about / 2, about * 2
    scale: float = _opendp().binary_search_param(together, 1, budget.epsilon, bounds=bounds)
    return scale


def _opendp() -> Any:
    """OpenDP, with functions whose proofs its developers have not all vetted yet, as "contrib"."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise missing_extra("OpenDP", "privacy", "A private fit") from error
    dp.enable_features("contrib")
    return dp


def _counting(n_cells: int) -> Any:
    """From the cell of each row to the number of rows in each cell."""
    dp = _opendp()
    rows = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    cells = list(range(n_cells))
    return dp.t.make_count_by_categories(*rows, cells, null_category=False, TOA="i64")


def _noisy(counting: Any, scale: float) -> Any:
    """The same with discrete Laplace noise in every number."""
    noise = _opendp().m.make_geometric(counting.output_domain, counting.output_metric, scale)
    return counting >> noise
