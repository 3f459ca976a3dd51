"""The chain of trees with differential privacy.

As :mod:`mcce.model.trees`, one tree for each mutable feature given the immutable ones and those
before it, but grown from declared domains and noisy counts: what is fitted, drawn and saved tells
next to nothing of any single training row. The predictor is taken as public.

Always true: rows are read through their bins alone, and only with noise; the noise does not come
from the seed of the explainer; a draw is a declared level or atom, or a value of a declared bin.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from ..errors import SavedFileError
from ..kernels import BoolArray, FloatArray, IntArray, Trees, with_decision
from ..model.arrays import ChainRules
from ..model.leaves import LeafChain, ListedLeaves
from ..tables.schema import EncodedRows, Schema
from .private_accounting import Ledger, Plan, check_settings, private_order
from .private_domains import (
    Domain,
    bin_rows,
    check_public,
    encode_public,
    plain_domains,
    read_domains,
)
from .private_growing import Coding, grow_private_chain, log_likelihood
from .private_noise import RandomWords


class PrivateTrees(ListedLeaves, LeafChain, BaseEstimator):
    """Trees that are learned with differential privacy; by name ``"private"``.

    Every training row is first moved into the declared domains and replaced by its bins. Splits
    are random; every leaf holds a noisy histogram. Declared levels and atoms are drawn, and values
    spread evenly over bins, never training values.

    Parameters
    ----------
    domains
        The public domain of every column: a mapping from names to :class:`Domain`, or the path of
        a JSON file. There is no default: domains that are read from rows would give them away.
    epsilon
        The budget of a fit, for tables that differ by one row more or less. Smaller is more
        private; infinity adds no noise and is not private.
    depth
        Depth of the trees. None is for each tree the depth at which the noise of a leaf is worth a
        tenth of its rows.
    n_rows
        About how many training rows have the desired decision, for that depth, if this is public.
        None spends 1 % of the budget on a noisy count of them.
    visit_order
        ``"data"`` (column order), or a list that names every mutable column once. An order that
        depends on the rows would have to be paid for.
    decisions
        Decisions that rows can be drawn for. Only rows with one of them are read.
    seed
        Seed of the noise, for tests alone: whoever knows it can remove the noise. None takes it
        from the operating system. An explainer with a seed cannot be saved.

    Attributes
    ----------
    ledger_ : Ledger
        What the fit has spent, by part.
    n_desired_ : int
        A noisy count of the rows with the desired decision, at least 1.
    forest_ : Forest
        All that was learned; ``trees_``, ``visit_order_`` and ``n_levels_`` are parts of it.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40] * 500, "salary": range(1000)})
    >>> domains = {"age": Domain(levels=[30, 40]), "salary": Domain(low=0, high=2000, step=1)}
    >>> private = PrivateTrees(domains=domains, epsilon=2.0, depth=1)
    >>> rows = private.encode_training(frame, immutable=["age"])
    >>> private.fit(rows, np.ones(1000, dtype=bool)).ledger_
    <Ledger: epsilon 2 in 1 entries>
    """

    # The explainer keeps nothing else of the training rows.
    is_private = True

    def __init__(
        self,
        *,
        domains: Any = None,
        epsilon: float = 1.0,
        depth: int | None = None,
        n_rows: int | None = None,
        visit_order: str | Sequence[Hashable] = "data",
        decisions: tuple[bool, ...] = (True,),
        seed: int | None = None,
    ) -> None:
        self.domains = domains
        self.epsilon = epsilon
        self.depth = depth
        self.n_rows = n_rows
        self.visit_order = visit_order
        self.decisions = decisions
        self.seed = seed

    def encode_training(self, data: Any, **names: Any) -> EncodedRows:
        """Training rows, moved into the domains and encoded with their schema.

        Parameters
        ----------
        data
            The training rows.
        **names
            As for :meth:`Schema.learn_rows`.

        Returns
        -------
        EncodedRows
            The rows that :meth:`fit` takes.
        """
        self._check()
        return encode_public(self.domains, data, **names)

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Grow one private tree per mutable feature; each call spends the budget again.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`, in the schema of :meth:`encode_training`.
            Rows with a cell that is not declared are left out.
        seed, n_jobs
            Ignored: the noise must not come from a seed that others may know.
        verbose
            Whether to show a progress bar.

        Returns
        -------
        PrivateTrees
            Itself.
        """
        self._check()
        domains = check_public(rows.schema, self.domains)
        order = private_order(self.visit_order, rows.schema)
        bins = with_decision(bin_rows(rows, domains), is_desired)
        # A cell that is not declared has no bin; such rows are left out, as by encode_training.
        used = np.isin(is_desired, self.decisions) & (bins >= 0).all(axis=0)
        self.n_desired_: int
        trees, self.n_desired_ = grow_private_chain(
            bins[:, used],
            Coding.of(rows.schema, domains),
            rows.schema.immutable,
            order,
            self._plan(rows.schema, order),
            RandomWords(self.seed),
            both=False in self.decisions,
            verbose=verbose,
        )
        return self._keep(rows.schema, order, trees)

    def _check(self) -> None:
        check_settings(self)

    def _plan(self, schema: Schema, order: IntArray) -> Plan:
        names = tuple(schema.names[at] for at in order)
        return Plan(float(self.epsilon), names, self.depth, self.n_rows)

    def _keep(self, schema: Schema, order: IntArray, trees: Trees) -> Self:
        self.domains_: dict[Any, Domain] = check_public(schema, self.domains)
        self.ledger_: Ledger = self._plan(schema, order).ledger()
        return super()._keep(schema, order, trees)

    def saved_params(self) -> dict[str, Any]:
        """Parameters as plain values: the domains themselves, not a file that they come from.

        Returns
        -------
        dict
            Parameters by name.

        Raises
        ------
        SavedFileError
            If a file would tell of training rows: the noise has a seed, or there is none.
        """
        if self.seed is not None or math.isinf(self.epsilon):
            raise SavedFileError(
                "Cannot save private trees whose noise has a seed or is none: the file would tell "
                "of training rows. Fit with seed=None and a finite epsilon. Nothing was written."
            )
        return self.get_params() | {"domains": plain_domains(read_domains(self.domains))}

    def _tree_rules(self, schema: Schema, order: IntArray) -> ChainRules:
        """What trees in a file may hold, whose order must not depend on rows."""
        check_public(schema, self.domains)
        private_order(self.visit_order, schema)
        return ChainRules(schema, order, order, splits_on_decision=False in self.decisions)

    def log_likelihood(self, rows: EncodedRows, *, decision: bool = True) -> FloatArray:
        """Log-probability of each row's mutable values, which are uniform inside a bin.

        Parameters
        ----------
        rows
            The rows.
        decision
            The decision that they are given.

        Returns
        -------
        (n_rows,)
            Log-probabilities; minus infinity where a bin cannot be drawn.
        """
        self._check_grown_for(decision)
        return log_likelihood(self.forest_, rows, self.domains_, decision)
