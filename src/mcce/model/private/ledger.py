"""What each part of a private fit spends, and what it comes to.

Parts that read the same rows add up; parts that read disjoint rows, like the nodes of one level of
a tree, cost what the dearest of them costs. :func:`allocate` splits a budget over the trees.

Always true: the ledger depends on parameters and on what is released, never on the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from ...errors import ParameterError, shorten

Neighbours = Literal["add_remove", "replace"]
Structure = Literal["random", "expmech"]
Noise = Literal["geometric", "gaussian"]
# Share of a tree's budget that its splits get if rows choose them, and of all for a row count.
STRUCTURE_SHARE, COUNT_SHARE = 0.3, 0.01


@dataclass(frozen=True)
class Entry:
    """One release, and what it costs: epsilon, or rho of zero-concentrated privacy.

    Examples
    --------
    >>> Entry("geometric", "salary, leaves", epsilon=0.5).rho is None
    True
    """

    mechanism: str
    scope: str
    part: str = ""
    sensitivity: float = 1.0
    epsilon: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        costs = [cost for cost in (self.epsilon, self.rho) if cost is not None]
        if len(costs) != 1 or not costs[0] >= 0:
            raise ParameterError(
                "An entry of a ledger costs epsilon or rho, one number >= 0, got "
                f"epsilon={shorten(self.epsilon)} and rho={shorten(self.rho)}."
            )


@dataclass(frozen=True)
class Ledger:
    """All that a private fit spends.

    Parameters
    ----------
    entries
        What was released.
    neighbours
        Which data sets are neighbours: those that differ by one more row, or by another one.
    delta
        The probability that the bound by epsilon does not hold; 0 for pure privacy.

    Examples
    --------
    Two trees of three levels, each with a histogram:

    >>> levels = [Entry("exponential", f"{tree}, level {at}", epsilon=0.1)
    ...           for tree in "ab" for at in range(3)]
    >>> leaves = [Entry("geometric", f"{tree}, leaves", epsilon=0.5) for tree in "ab"]
    >>> round(Ledger((*levels, *leaves)).epsilon, 9)
    1.6
    """

    entries: tuple[Entry, ...]
    neighbours: Neighbours = "add_remove"
    delta: float = 0.0

    @property
    def rho(self) -> float:
        """What it comes to in zero-concentrated privacy; pure epsilon is at most epsilon**2 / 2."""
        return self._composed([e.epsilon**2 / 2 if e.rho is None else e.rho for e in self.entries])  # type: ignore[operator]

    @property
    def epsilon(self) -> float:
        """What it comes to: pure epsilon, or the epsilon of ``delta``."""
        pure = [entry.epsilon for entry in self.entries if entry.epsilon is not None]
        if len(pure) == len(self.entries):
            return self._composed(pure)
        return epsilon_of(self.rho, self.delta)

    def _composed(self, costs: Sequence[float]) -> float:
        """The sum over scopes of the dearest part of each."""
        dearest: dict[str, float] = {}
        parts: dict[tuple[str, str], float] = {}
        for entry, cost in zip(self.entries, costs, strict=True):
            # Two releases of one part read the same rows.
            spent = parts.get((entry.scope, entry.part), 0.0) + cost
            parts[entry.scope, entry.part] = spent
            dearest[entry.scope] = max(dearest.get(entry.scope, 0.0), spent)
        return math.fsum(dearest.values())

    def table(self) -> pd.DataFrame:
        """One row for each entry.

        Returns
        -------
        pandas.DataFrame
            Its mechanism, scope, part, sensitivity, and epsilon or rho.
        """
        names = ["mechanism", "scope", "part", "sensitivity", "epsilon", "rho"]
        rows = [[getattr(entry, name) for name in names] for entry in self.entries]
        costs = {"sensitivity": float, "epsilon": float, "rho": float}
        return pd.DataFrame(rows, columns=names).astype(costs)

    def __repr__(self) -> str:
        total = f"epsilon {self.epsilon:.4g}"
        if self.delta:
            total += f" at delta {self.delta:g} (rho {self.rho:.4g})"
        return f"<Ledger: {total} in {len(self.entries)} entries, neighbours {self.neighbours!r}>"


def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon of zero-concentrated privacy at some delta.

    Examples
    --------
    >>> round(epsilon_of(0.055, 1e-5), 2)
    1.65
    """
    if delta <= 0:
        return math.inf if rho else 0.0
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def rho_of(epsilon: float, delta: float) -> float:
    """The rho whose epsilon at some delta this is.

    Examples
    --------
    >>> round(rho_of(epsilon_of(0.055, 1e-5), 1e-5), 9)
    0.055
    """
    if math.isinf(epsilon):
        return math.inf
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


@dataclass(frozen=True)
class Budget:
    """What one part may spend, and how that becomes noise."""

    cost: float
    noise: Noise
    neighbours: Neighbours

    @property
    def n_changed(self) -> int:
        """How many counts of a histogram one person can change, by one each."""
        return 2 if self.neighbours == "replace" else 1

    @property
    def scale(self) -> float:
        """Spread of the noise of a count: 1 / rate of the geometric, sigma of the Gaussian."""
        if math.isinf(self.cost):
            return 0.0
        if self.noise == "gaussian":
            return math.sqrt(self.n_changed / (2 * self.cost))
        return self.n_changed / self.cost

    @property
    def choice_rate(self) -> float:
        """Rate of the exponential mechanism that costs this much, for counts that only grow.

        One more row raises each utility by 0 or 1, so that a choice with this rate costs it; a
        replaced row is one less and one more. The log-ratios of one choice lie in an interval as
        long as epsilon, which costs epsilon**2 / 8 in concentrated privacy.
        """
        epsilon = math.sqrt(8 * self.cost) if self.noise == "gaussian" else self.cost
        return epsilon / self.n_changed

    def share(self, part: float) -> Budget:
        """Some part of it."""
        return Budget(self.cost * part, self.noise, self.neighbours)

    def entry(self, scope: str, part: str = "", *, choice: bool = False) -> Entry:
        """What spending all of it is in a ledger."""
        changed: float = self.n_changed
        if self.noise == "gaussian":
            mechanism = "exponential" if choice else "discrete Gaussian"
            sensitivity = changed if choice else math.sqrt(changed)
            return Entry(mechanism, scope, part, sensitivity, rho=self.cost)
        mechanism = "exponential" if choice else "geometric"
        return Entry(mechanism, scope, part, changed, epsilon=self.cost)


@dataclass(frozen=True)
class TreeBudget:
    """What one tree spends: on each level of its structure, and on its leaves."""

    depth: int
    level: Budget | None
    leaves: Budget

    def entries(self, name: str) -> list[Entry]:
        """The lines of the ledger."""
        levels = [] if self.level is None else [self.level] * self.depth
        chosen = [
            level.entry(f"{name}, level {at + 1}", "each node", choice=True)
            for at, level in enumerate(levels)
        ]
        return [*chosen, self.leaves.entry(f"{name}, leaves", "each leaf")]


def allocate(budget: Budget, structure: Structure, depth: int) -> TreeBudget:
    """The budget of one tree, for its levels and its leaves."""
    if structure == "random" or not depth:
        return TreeBudget(depth, None, budget)
    if math.isinf(budget.cost):
        return TreeBudget(depth, budget, budget)
    level = budget.share(STRUCTURE_SHARE / depth)
    return TreeBudget(depth, level, budget.share(1 - STRUCTURE_SHARE))


def depth_for(budget: Budget, n_rows: float, n_bins: int, structure: Structure, most: int) -> int:
    """Depth at which the noise of a leaf is a tenth of its rows, or 0."""
    if math.isinf(budget.cost):
        return most
    share = 1 - STRUCTURE_SHARE if structure == "expmech" else 1.0
    ratio = n_rows / (10 * n_bins * budget.share(share).scale)
    return min(max(int(math.log2(ratio)), 0), most) if ratio > 1 else 0
