"""What chains of trees share once they are grown: values in leaves, drawn and saved.

Paper, Algorithm 1: each tree in turn sends a row to a leaf and draws one of the values there. How
trees were grown does not matter here, nor whether a feature has one tree or several. The values are
those of training rows; private trees have declared ones instead.

Always true: every row that can be drawn from leaves has a finite log-likelihood.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import ParameterError
from ..kernels import (
    Codes,
    Enumerated,
    FloatArray,
    Forest,
    IntArray,
    Person,
    Trees,
    descend,
    enumerate_rows,
    leaf_frequency,
    sample,
    with_decision,
)
from ..protocols import Capabilities, DrawRequest, Draws
from ..tables.schema import EncodedRows, Schema
from .arrays import ChainRules, pack_trees, unpack_order, unpack_trees


class LeafChain:
    """A chain of trees with values in leaves; a mixin, whose ``fit`` ends with ``_keep``.

    Attributes
    ----------
    forest_ : Forest
        All that was learned; ``trees_``, ``visit_order_`` and ``n_levels_`` are parts of it.
    """

    array_names: ClassVar[tuple[str, ...]] = ("visit_order", "trees")
    capabilities = Capabilities(
        limits=True, back_off=True, density=True, visit_order=True, saving=True
    )
    visit_order: str | Sequence[Hashable]
    condition_on_decision: bool
    decisions: tuple[bool, ...]

    @property
    def _n_trees(self) -> int:
        """Trees of each feature."""
        return 1

    @property
    def _pooled(self) -> bool:
        """Whether values are drawn from the pooled leaves of all trees.

        Large leaves then count more.
        """
        return False

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
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.

        Returns
        -------
        LeafChain
            Itself, as if fitted.
        """
        self._check()
        order = unpack_order(arrays["visit_order"], self.visit_order, schema)
        return self._keep(
            schema, order, unpack_trees(arrays["trees"], self._tree_rules(schema, order))
        )

    def _tree_rules(self, schema: Schema, order: IntArray) -> ChainRules:
        """What trees in a file may hold."""
        responses, undesired = np.repeat(order, self._n_trees), False in self.decisions
        return ChainRules(schema, responses, order, self.condition_on_decision, undesired)

    def _check(self) -> None:
        """Raise for the first parameter that cannot work; once, before trees are grown or read."""
        raise NotImplementedError

    def _keep(self, schema: Schema, order: IntArray, trees: Trees) -> Self:
        """Take trees that were grown on rows of this schema, in the visit order of features."""
        responses = np.repeat(order, self._n_trees)
        self.schema_: Schema = schema
        self.forest_: Forest = Forest(trees, responses, np.append(schema.n_levels, 0), self._pooled)
        return self

    @property
    def trees_(self) -> Trees:
        """All trees, flat."""
        return self.forest_.trees

    @property
    def visit_order_(self) -> IntArray:
        """Positions of the mutable features in the order they are drawn, shape (n_mutable,)."""
        return self.forest_.responses[:: self._n_trees]

    @property
    def n_levels_(self) -> IntArray:
        """Number of levels of each categorical column, 0 for numeric ones and the decision."""
        return self.forest_.n_levels

    def sample(self, request: DrawRequest) -> Draws:
        """Draws from the leaves, or from the smallest nodes that hold enough allowed values.

        Parameters
        ----------
        request
            For whom to draw, and within which limits.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        if request.is_desired is not None and not request.is_desired.all():
            self._check_grown_for(False)
        return Draws(
            sample(
                self.forest_,
                request.inputs,
                request.keys,
                request.draws,
                request.limits,
                request.least,
            )
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
        codes = with_decision(rows.tree_codes, np.full(len(rows), decision))
        total = np.zeros(len(rows))
        for step, column in enumerate(self.visit_order_):
            likely = self._likelihood(step, codes, rows.codes[column])
            with np.errstate(divide="ignore"):
                total += np.log(likely)
        return total

    def _likelihood(self, step: int, codes: Codes, values: Codes) -> FloatArray:
        """Probability that the trees of the feature drawn in a step give these values."""
        trees, n_trees = self.trees_, self._n_trees
        hits, sizes = np.zeros((2, n_trees, values.size), dtype=np.int64)
        for tree in range(n_trees):
            leaf = descend(trees, step * n_trees + tree, codes, self.n_levels_ > 0)
            hits[tree], sizes[tree] = leaf_frequency(trees, leaf, values)
        if self._pooled:
            hits, sizes = hits.sum(axis=0, keepdims=True), sizes.sum(axis=0, keepdims=True)
        shares: FloatArray = hits / np.maximum(sizes, 1)
        return shares[0] if len(shares) == 1 else shares.mean(axis=0)

    def _check_grown_for(self, decision: bool) -> None:
        if decision not in self.decisions:
            raise ParameterError(
                f"The chain was not grown for decision={decision!r}; fit it with "
                "decisions=(False, True)."
            )


class ListedLeaves:
    """One tree for each feature, whose leaves can be listed; a mixin before :class:`LeafChain`."""

    capabilities = replace(LeafChain.capabilities, enumeration=True)
    forest_: Forest

    def enumerate_rows(
        self,
        person: Person,
        *,
        n_changes: int,
        n_best: int,
        max_nodes: int,
        after: tuple[float, Codes] | None = None,
    ) -> Enumerated:
        """The nearest rows with a number of changes that could be drawn for a person.

        Parameters
        ----------
        person
            The person, without the decision, and what each change costs.
        n_changes
            Number of changes of the rows.
        n_best
            How many rows to list, nearest first.
        max_nodes
            Leaves visited at most.
        after
            Distance and codes of the last row listed before; None begins with the nearest.

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
