"""How a private fit splits its budget, and the ledger of what it spends.

Releases that read the same rows add up; those that read disjoint rows, like the leaves of one tree,
cost what one of them costs. One training row changes one count of a histogram, by one.

Always true: the ledger depends on parameters alone, never on the rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import astuple, dataclass, fields
from typing import Any

import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import IntArray
from ..model.associations import named_order
from ..model.growing import check_decisions
from ..parameters import check_count, check_real, check_whole
from ..tables.schema import Schema

# Share of the budget that a noisy count of the rows gets, if there is one.
COUNT_SHARE = 0.01
# The deepest trees, and the deepest that are chosen by the number of rows.
MAX_PRIVATE_DEPTH, MAX_CHOSEN_DEPTH = 12, 10


@dataclass(frozen=True)
class LedgerEntry:
    """One release, and the epsilon that it costs."""

    mechanism: str
    scope: str
    sensitivity: float
    epsilon: float


@dataclass(frozen=True)
class Ledger:
    """All that a private fit spends, for tables that differ by one row more or less.

    Parameters
    ----------
    entries
        What was released.

    Examples
    --------
    >>> Ledger((LedgerEntry("geometric", "salary, leaves", 1.0, 0.5),))
    <Ledger: epsilon 0.5 in 1 entries>
    """

    entries: tuple[LedgerEntry, ...]

    @property
    def epsilon(self) -> float:
        """What all entries cost together."""
        return math.fsum(entry.epsilon for entry in self.entries)

    def table(self) -> pd.DataFrame:
        """One row for each entry.

        Returns
        -------
        pandas.DataFrame
            Its mechanism, scope, sensitivity and epsilon.
        """
        names = [field.name for field in fields(LedgerEntry)]
        costs = {"sensitivity": float, "epsilon": float}
        return pd.DataFrame([astuple(e) for e in self.entries], columns=names).astype(costs)

    def __repr__(self) -> str:
        return f"<Ledger: epsilon {self.epsilon:.4g} in {len(self.entries)} entries>"


@dataclass(frozen=True)
class Plan:
    """How a fit splits its budget: equally over the trees, after a count of the rows if needed."""

    epsilon: float
    names: tuple[Hashable, ...]
    depth: int | None
    n_rows: int | None

    @property
    def counts_rows(self) -> bool:
        """Whether depths need a noisy count of the rows."""
        return self.depth is None and self.n_rows is None and not math.isinf(self.epsilon)

    @property
    def of_count(self) -> float:
        """The epsilon of that count."""
        return self.epsilon * COUNT_SHARE

    @property
    def of_tree(self) -> float:
        """The epsilon of each tree."""
        return self.epsilon * ((1 - COUNT_SHARE * self.counts_rows) / len(self.names))

    def depth_of(self, n_bins: int, n_rows: int) -> int:
        """Depth of a tree; by default that at which the noise of a leaf is a tenth of its rows."""
        if self.depth is not None:
            return int(self.depth)
        if math.isinf(self.epsilon):
            return MAX_CHOSEN_DEPTH
        ratio = n_rows * self.of_tree / (10 * n_bins)
        return min(int(math.log2(ratio)), MAX_CHOSEN_DEPTH) if ratio > 1 else 0

    def ledger(self) -> Ledger:
        """Everything that is spent."""
        spent = {"number of rows": self.of_count} if self.counts_rows else {}
        entries = [*spent.items(), *((f"{name}, leaves", self.of_tree) for name in self.names)]
        return Ledger(tuple(LedgerEntry("geometric", scope, 1.0, cost) for scope, cost in entries))


def check_settings(private: Any) -> None:
    """Raise for the first parameter of private trees that cannot work."""
    check_real("epsilon", private.epsilon, "a number above 0", zero=False, infinite=True)
    if private.depth is not None:
        check_whole("depth", private.depth, 0, MAX_PRIVATE_DEPTH)
    if private.n_rows is not None:
        check_count("n_rows", private.n_rows)
    if private.seed is not None:
        check_whole("seed", private.seed, 0, 2**64 - 1)
    check_decisions(private.decisions)


def private_order(order: Any, schema: Schema) -> IntArray:
    """Positions of the mutable features in a public order."""
    if isinstance(order, str) and order == "data":
        return schema.mutable
    if isinstance(order, str):
        raise ParameterError(
            'visit_order of private trees must be "data" or a list of names: any other order is '
            f"read from the rows. Got {shorten(order)}."
        )
    return named_order(order, schema)
