"""Step 1: the chain of decision trees.

Paper, section "Model", equation for p(X^m | X^f, Y'): one tree for each of the q mutable features
given the immutable ones, the decision and the mutable features visited before. A leaf keeps the
training values that fell into it, with multiplicity. Rules for very many levels: ``Growth``.

Always true: the trees depend on the training rows as a set (not on their order, on threads or on
the machine); every row that can be drawn from leaves has a finite log-likelihood.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from ..candidates import Draws
from ..errors import ParameterError
from ..kernels import (
    BoolArray,
    Codes,
    Enumerated,
    FloatArray,
    Forest,
    Guide,
    IntArray,
    Limits,
    Person,
    Trees,
    WordArray,
    descend,
    enumerate_rows,
    grow_tree,
    join,
    leaf_frequency,
    sample,
)
from ..protocols import Capabilities
from ..runtime.progress import ProgressBar
from ..runtime.threads import map_ordered
from ..tables.schema import EncodedRows, Schema
from .arrays import ChainRules, pack_trees, unpack_order, unpack_trees
from .associations import Associations
from .growing import growth_of
from .responses import split_columns, tree_response, with_decision
from .visit_order import visit_order


class TreeChain(BaseEstimator):
    """The paper's generator: CART for each mutable feature given those before it.

    Parameters
    ----------
    min_samples_leaf
        Smallest number of training rows in a leaf.
    min_samples_split
        Smallest number of training rows in a node that is split.
    max_depth
        Greatest depth of a tree; None for no limit.
    visit_order
        ``"data"`` (column order), ``"correlation"`` (most associated with what is already visited
        first), or a list that names every mutable column once.
    condition_on_decision
        Whether the decision is an input of every tree. False is the paper's ablation.
    decisions
        Decisions that rows can be drawn for. Branches that only an undesired decision reaches are
        grown if False is among them.
    max_inputs
        Largest number of features that a tree considers: those most associated with its own, and
        the decision. None is all of them, as in the paper; see :class:`Associations` for what
        the screen misses. ``generator="trees"`` sets 16 for tables of more than 32 columns,
        except for the paper's search.

    Attributes
    ----------
    forest_ : Forest
        All that was learned; ``trees_``, ``visit_order_`` and ``n_levels_`` are parts of it.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40] * 10, "salary": range(20)})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> chain = TreeChain(min_samples_leaf=3).fit(rows, frame["salary"].to_numpy() > 9)
    >>> chain.trees_.roots.size
    1
    """

    array_names = ("visit_order", "trees")
    capabilities = Capabilities(
        limits=True,
        guidance=True,
        back_off=True,
        enumeration=True,
        density=True,
        visit_order=True,
        saving=True,
    )

    def __init__(
        self,
        *,
        min_samples_leaf: int = 5,
        min_samples_split: int = 2,
        max_depth: int | None = None,
        visit_order: str | Sequence[Hashable] = "data",
        condition_on_decision: bool = True,
        decisions: tuple[bool, ...] = (True,),
        max_inputs: int | None = None,
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.visit_order = visit_order
        self.condition_on_decision = condition_on_decision
        self.decisions = decisions
        self.max_inputs = max_inputs

    def fit(
        self,
        rows: EncodedRows,
        decision: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Grow one tree per mutable feature.

        Parameters
        ----------
        rows, decision
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Ignored, threads for one tree each, and whether to show a progress bar.

        Returns
        -------
        TreeChain
            Itself.
        """
        schema = rows.schema
        growth = growth_of(self, len(schema.features))
        order = visit_order(
            self.visit_order, rows, decision if self.condition_on_decision else None
        )
        columns = split_columns(schema, [*rows.descent, decision.astype(np.int32)])
        last = [len(schema.features)] * self.condition_on_decision
        most = self.max_inputs
        screen = None if most is None else Associations.of(rows)

        def grow(place: int) -> Trees:
            position = int(order[place])
            known = np.sort(np.concatenate([schema.immutable, order[:place]]))
            if screen is not None and most is not None:
                known = screen.inputs(position, known, most)
            inputs = np.concatenate([known, last]).astype(np.int64)
            response = tree_response(rows, position)
            return grow_tree(columns, inputs, response, rows.descent[position], growth)

        bar = ProgressBar(order.size, "model", verbose)
        trees: list[Trees] = []
        # The last tree has the most inputs; begun first, it does not leave a thread alone.
        for tree in map_ordered(grow, range(order.size)[::-1], n_jobs):
            trees.append(tree)
            bar.show(len(trees))
        bar.close()
        return self._keep(schema, order, join(trees[::-1], columns.by_set))

    def to_arrays(self) -> dict[str, Any]:
        """What ``fit`` learned.

        Returns
        -------
        dict
            The visit order and the arrays of all trees.
        """
        return {"visit_order": self.visit_order_, "trees": pack_trees(self.trees_)}

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, checked; raises SavedFileError for anything else.

        Parameters
        ----------
        arrays, schema
            As for :meth:`mcce.protocols.SavableGenerator.from_arrays`.

        Returns
        -------
        TreeChain
            Itself, as if fitted.
        """
        growth_of(self, len(schema.features))
        order = unpack_order(arrays["visit_order"], self.visit_order, schema)
        rules = ChainRules(
            schema, order, order, self.condition_on_decision, False in self.decisions
        )
        return self._keep(schema, order, unpack_trees(arrays["trees"], rules))

    def _keep(self, schema: Schema, order: IntArray, trees: Trees) -> Self:
        """Take trees that were grown on rows of this schema, one per feature in this order."""
        levels = [f.n_codes if f.kind == "categorical" else 0 for f in schema.features]
        self.schema_: Schema = schema
        self.forest_: Forest = Forest(trees, order, np.array([*levels, 0]))
        return self

    @property
    def trees_(self) -> Trees:
        """All trees, flat."""
        return self.forest_.trees

    @property
    def visit_order_(self) -> IntArray:
        """Position of the feature that each tree predicts, shape (n_mutable,)."""
        return self.forest_.responses

    @property
    def n_levels_(self) -> IntArray:
        """Number of levels of each categorical column, 0 for numeric ones and the decision."""
        return self.forest_.n_levels

    def sample(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        *,
        decision: BoolArray | None = None,
    ) -> Draws:
        """Draws for each group of immutable codes.

        Parameters
        ----------
        given, keys, draws
            As for :meth:`mcce.protocols.Generator.sample`.
        decision : (n_groups,), optional
            The decision of each group; None is the desired one.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        if decision is not None and not decision.all():
            self._check_grown_for(False)
        return self.sample_within(given, keys, draws, None, decision=decision)

    def sample_within(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        limits: Limits | None,
        *,
        decision: BoolArray | None = None,
    ) -> Draws:
        """Draws within the limits of each group.

        Parameters
        ----------
        given, keys, draws, limits, decision
            As for :meth:`sample_guided`.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        return self.sample_guided(given, keys, draws, limits, None, decision=decision)

    def sample_guided(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        limits: Limits | None,
        guide: Guide | None,
        *,
        decision: BoolArray | None = None,
    ) -> Draws:
        """Draws within limits that keep a group's own values where a leaf holds them.

        Parameters
        ----------
        given, keys, draws, limits, guide
            As for :meth:`mcce.protocols.GuidedGenerator.sample_guided`.
        decision
            As for :meth:`sample`.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        return self.sample_backed_off(given, keys, draws, limits, guide, None, decision=decision)

    def sample_backed_off(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        limits: Limits | None,
        guide: Guide | None,
        least: IntArray | None,
        *,
        decision: BoolArray | None = None,
    ) -> Draws:
        """The same from the smallest nodes that hold enough values that a group may have.

        Parameters
        ----------
        given, keys, draws, limits, guide, least
            As for :meth:`mcce.protocols.BackingOffGenerator.sample_backed_off`.
        decision
            As for :meth:`sample`.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        is_desired = np.ones(given.shape[1], dtype=bool) if decision is None else decision
        inputs = with_decision(given, is_desired)
        return Draws(sample(self.forest_, inputs, keys, draws, limits, guide, least))

    def enumerate_rows(
        self,
        person: Person,
        *,
        n_changes: int,
        n_best: int,
        max_nodes: int,
        after: tuple[float, Codes] | None = None,
    ) -> Enumerated:
        """The nearest rows with so many changes that could be drawn for a person.

        Parameters
        ----------
        person, n_changes, n_best, max_nodes, after
            As for :meth:`mcce.protocols.EnumeratingGenerator.enumerate_rows`.
            The person comes without the decision.

        Returns
        -------
        Enumerated
            The rows, and whether the visit ended within its budget.
        """
        return enumerate_rows(
            self.forest_,
            replace(person, given=np.append(person.given, np.int32(True))),
            n_changes=n_changes,
            n_best=n_best,
            max_nodes=max_nodes,
            after=after,
        )

    def log_likelihood(self, rows: EncodedRows, *, decision: bool = True) -> FloatArray:
        """Log-probability of each row's mutable values given its immutable ones and a decision.

        Parameters
        ----------
        rows
            The rows.
        decision
            The decision that they are given.

        Returns
        -------
        (n_rows,)
            Log-probabilities; minus infinity where the chain could not have drawn the row.
        """
        self._check_grown_for(decision)
        codes = with_decision(rows.descent, np.full(len(rows), decision))
        total = np.zeros(len(rows))
        for tree, position in enumerate(self.visit_order_):
            leaf = descend(self.trees_, tree, codes, self.n_levels_ > 0)
            hits, size = leaf_frequency(self.trees_, leaf, rows.exact[position])
            with np.errstate(divide="ignore", invalid="ignore"):
                total += np.where(hits > 0, np.log(hits / size), -np.inf)
        return total

    def _check_grown_for(self, decision: bool) -> None:
        if decision not in self.decisions:
            raise ParameterError(
                f"The chain was not grown for decision={decision!r}; fit it with "
                "decisions=(False, True)."
            )
