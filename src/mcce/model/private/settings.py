"""The parameters of private trees, checked, and how they split the budget."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from ...errors import ParameterError, shorten
from ...kernels import IntArray
from ...parameters import check_choice, check_count, check_real, check_whole
from ...tables.schema import Schema
from ..associations import named_order
from .ledger import (
    COUNT_SHARE,
    Budget,
    Ledger,
    Neighbours,
    Noise,
    Structure,
    TreeBudget,
    allocate,
    depth_for,
    rho_of,
)

MOST_DEPTH = 12


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
