"""Step 1 by random forests: several trees for each mutable feature instead of one.

Beyond the paper, which allows any model of p(X^m | X^f, Y'). Each tree is grown on a bootstrap
sample of the training rows, and each of its nodes checks some features only, drawn at random
(Breiman 2001). Leaves keep the values of all training rows that come to them, whether the sample
held them or not. A value is drawn from the leaf of one tree, so it costs as much as with one tree.

Always true: the forest depends on the seed and on the training rows as a set; neither their order
nor threads change a bit.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels import (
    BoolArray,
    Classes,
    Growth,
    IntArray,
    Trees,
    draw_keys,
    grow_tree,
    pick,
    sort_rows,
    with_decision,
)
from ..parameters import check_choice, check_flag, check_whole
from ..tables.schema import EncodedRows
from .growing import (
    AUTO,
    GrowTask,
    at_most,
    check_at_least,
    check_growth,
    features_to_check,
    grow_chain,
    tree_key,
    tree_response,
)
from .leaves import LeafChain

# More would only take time; a file that names more is refused before memory is allocated.
MAX_TREES = 10_000
TREE_FIRST, POOL = "tree_first", "pool"
# In the keys that rows are drawn with, instead of a feature.
NO_FEATURE = -1
# Smallest leaf of trees that predict levels and of those that predict numbers.
LEAF_OF_LEVELS, LEAF_OF_NUMBERS = 1, 5


class ForestChain(LeafChain, BaseEstimator):
    """A random forest for each mutable feature given those before it.

    Parameters
    ----------
    n_trees
        Trees of each feature.
    max_features
        Number of features that a node checks, drawn at random from those that can split it: a
        whole number, a share of the inputs of the tree, ``"sqrt"`` or ``"third"`` of them, or None
        for all. ``"auto"`` is ``"sqrt"`` for trees of levels, ``"third"`` for trees of numbers.
    min_samples_leaf
        Smallest number of drawn rows in a leaf; ``"auto"`` is 1 for trees of levels, 5 for trees of
        numbers.
    bootstrap
        Whether each tree is grown on as many rows as there are, drawn with replacement. Otherwise
        on all rows.
    sampling
        Where values are drawn from: ``"tree_first"`` draws a tree, then a value in its leaf, so all
        trees count alike; ``"pool"`` draws one of all values in the leaves of all trees, so
        trees with large leaves count more. A draw from the pool visits every tree.
    min_samples_split, max_depth, visit_order, condition_on_decision, decisions, max_inputs
        As for :class:`TreeChain`.

    Attributes
    ----------
    forest_ : Forest
        All that was learned; ``trees_``, ``visit_order_`` and ``n_levels_`` are parts of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> frame = pd.DataFrame({"age": [30, 40] * 10, "salary": range(20)})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> chain = ForestChain(n_trees=3).fit(rows, frame["salary"].to_numpy() > 9)
    >>> chain.trees_.roots.size
    3
    """

    def __init__(
        self,
        *,
        n_trees: int = 10,
        max_features: int | float | str | None = AUTO,
        min_samples_leaf: int | Literal["auto"] = "auto",
        bootstrap: bool = True,
        sampling: Literal["tree_first", "pool"] = "tree_first",
        min_samples_split: int = 2,
        max_depth: int | None = None,
        visit_order: str | Sequence[Hashable] = "data",
        condition_on_decision: bool = True,
        decisions: tuple[bool, ...] = (True,),
        max_inputs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.bootstrap = bootstrap
        self.sampling = sampling
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.visit_order = visit_order
        self.condition_on_decision = condition_on_decision
        self.decisions = decisions
        self.max_inputs = max_inputs

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Grow the trees of every mutable feature.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Seed of the samples and of the features that nodes check, threads for one feature each,
            and whether to show a progress bar.

        Returns
        -------
        ForestChain
            Itself.
        """
        self._check()
        samples = self._draw_samples(rows, is_desired, seed)

        def grow(task: GrowTask) -> list[Trees]:
            response = tree_response(rows, task.column)
            codes, inputs = rows.tree_codes[task.column], task.inputs
            base = self._growth(task, isinstance(response, Classes))
            trees = []
            for tree, drawn in enumerate(samples):
                growth = replace(base, key=tree_key(seed, task.column, tree))
                trees.append(grow_tree(task.columns, inputs, response, codes, growth, drawn))
            return trees

        order, trees = grow_chain(self, rows, is_desired, grow, n_jobs=n_jobs, verbose=verbose)
        return self._keep(rows.schema, order, trees)

    def _draw_samples(
        self, rows: EncodedRows, is_desired: BoolArray, seed: int
    ) -> list[IntArray | None]:
        """The rows that each tree is grown on, None for all; the same ones for every feature."""
        if not self.bootstrap:
            return [None] * self.n_trees
        # Drawn by rank in this order, rows do not depend on the one in which they came.
        in_order = sort_rows(with_decision(rows.codes, is_desired))
        return [
            _draw_rows(in_order, tree_key(seed, NO_FEATURE, tree)) for tree in range(self.n_trees)
        ]

    def _growth(self, task: GrowTask, of_levels: bool) -> Growth:
        """When the trees of one feature stop, and how many features their nodes check."""
        least = LEAF_OF_LEVELS if of_levels else LEAF_OF_NUMBERS
        if not isinstance(self.min_samples_leaf, str):
            least = at_most(self.min_samples_leaf)
        auto = "sqrt" if of_levels else "third"
        n_checked = features_to_check(self.max_features, task.inputs.size, auto=auto)
        return replace(task.growth, min_samples_leaf=least, max_features=n_checked)

    def _check(self) -> None:
        check_at_least("min_samples_leaf", self.min_samples_leaf, 1, or_auto=True)
        check_whole("n_trees", self.n_trees, 1, MAX_TREES)
        check_growth(self)
        check_flag("bootstrap", self.bootstrap)
        features_to_check(self.max_features, 1, auto="sqrt")
        check_choice("sampling", self.sampling, (TREE_FIRST, POOL))

    @property
    def _n_trees(self) -> int:
        return self.n_trees

    @property
    def _pooled(self) -> bool:
        return self.sampling == POOL


def _draw_rows(in_order: IntArray, key: int) -> IntArray:
    """As many rows as there are, drawn with replacement by their rank in an order, ascending."""
    n_rows = in_order.size
    words = draw_keys(np.array([key], dtype=np.uint64), np.arange(n_rows))[0]
    ranks = pick(words, 0, np.full(n_rows, n_rows))
    return np.repeat(np.arange(n_rows), np.bincount(in_order[ranks], minlength=n_rows))
