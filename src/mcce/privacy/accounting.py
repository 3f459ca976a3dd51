"""What each part of a private fit may spend, and what it comes to.

Parts that read the same rows add up; parts that read disjoint rows, like the nodes of one level of
a tree, cost what the dearest of them costs. :class:`Plan` splits a budget over the trees by their
parameters, which are checked here.

Always true: the ledger depends on parameters and on what is released, never on the rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import IntArray
from ..model.associations import named_order
from ..parameters import check_choice, check_count, check_real, check_whole
from ..tables.schema import Schema

Neighbours = Literal["add_remove", "replace"]
Structure = Literal["random", "expmech"]
Noise = Literal["geometric", "gaussian"]
# Share of a tree's budget that its splits get if rows choose them, and of all for a row count.
STRUCTURE_SHARE, COUNT_SHARE = 0.3, 0.01
MOST_DEPTH = 12


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


def check_settings(private: Any) -> None:
    """Raise for the first parameter of private trees that cannot work."""
    check_real("epsilon", private.epsilon, "a number above 0", zero=False, infinite=True)
    check_choice("neighbours", private.neighbours, get_args(Neighbours))
    check_choice("structure", private.structure, get_args(Structure))
    check_choice("noise", private.noise, get_args(Noise))
    if private.noise == "gaussian":
        good = isinstance(private.delta, float) and 0 < private.delta < 1
        if not good:
            raise ParameterError(
                'noise="gaussian" needs delta, a number between 0 and 1 that is much less than 1 / '
                f"rows, got {shorten(private.delta)}. Write e.g. delta=1e-6."
            )
    elif private.delta is not None:
        raise ParameterError(
            'delta is for noise="gaussian"; geometric noise is private without it. Leave it out, '
            f"got {shorten(private.delta)}."
        )
    if private.depth is not None:
        check_whole("depth", private.depth, 0, MOST_DEPTH)
    if private.n_rows is not None:
        check_count("n_rows", private.n_rows)
    if private.seed is not None:
        check_whole("seed", private.seed, 0, 2**64 - 1)
    if private.decisions not in ((True,), (False, True), (True, False)):
        raise ParameterError(
            f"decisions must be (True,) or (False, True), got {shorten(private.decisions)}."
        )


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


@dataclass(frozen=True)
class Plan:
    """How a fit splits its budget."""

    total: Budget
    delta: float
    structure: Structure
    names: tuple[Hashable, ...]
    depths: tuple[int, ...]
    counts_rows: bool
    n_bins: tuple[int, ...]

    @classmethod
    def of(
        cls,
        private: Any,
        names: tuple[Hashable, ...],
        n_bins: tuple[int, ...],
        depths: Sequence[int] | None = None,
    ) -> Plan:
        """The plan of private trees; ``depths`` if they are known."""
        gaussian = private.noise == "gaussian"
        epsilon = float(private.epsilon)
        cost = rho_of(epsilon, private.delta) if gaussian else epsilon
        counts_rows = private.depth is None and private.n_rows is None and not math.isinf(cost)
        plan = cls(
            total=Budget(cost, private.noise, private.neighbours),
            delta=float(private.delta or 0.0),
            structure=private.structure,
            names=names,
            depths=(0,) * len(names),
            counts_rows=counts_rows,
            n_bins=n_bins,
        )
        if depths is not None:
            return replace(plan, depths=tuple(depths))
        if private.depth is not None:
            return replace(plan, depths=(int(private.depth),) * len(names))
        return plan.with_rows(private.n_rows or 0)

    def with_rows(self, n_rows: int) -> Plan:
        """The same with depths for so many rows."""
        most = min(MOST_DEPTH, 10)
        return replace(
            self,
            depths=tuple(
                depth_for(self.each, n_rows, n_bins, self.structure, most) for n_bins in self.n_bins
            ),
        )

    @property
    def count(self) -> Budget:
        """What the count of rows may spend."""
        return self.total.share(COUNT_SHARE if self.counts_rows else 0.0)

    @property
    def each(self) -> Budget:
        """What each tree may spend."""
        return self.total.share((1 - COUNT_SHARE * self.counts_rows) / len(self.names))

    def tree(self, place: int) -> TreeBudget:
        """How one tree spends that."""
        return allocate(self.each, self.structure, self.depths[place])

    def ledger(self) -> Ledger:
        """Everything that is spent."""
        counted = [self.count.entry("number of rows")] if self.counts_rows else []
        entries = [
            entry
            for place, name in enumerate(self.names)
            for entry in self.tree(place).entries(str(name))
        ]
        return Ledger((*counted, *entries), self.total.neighbours, self.delta)
