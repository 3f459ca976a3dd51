"""Step 1: the chain of decision trees.

Paper, section "Model", equation for p(X^m | X^f, Y'): one tree for each of the q mutable features
given the immutable ones, the decision and the mutable features visited before. A leaf keeps the
training values that fell into it, with multiplicity. Rules for very many levels: ``Growth``.

Always true: the trees depend on the training rows as a set (not on their order or on
threads); every row that can be drawn from leaves has a finite log-likelihood.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Self

from sklearn.base import BaseEstimator

from ..kernels import BoolArray, Trees, grow_tree
from ..tables.schema import EncodedRows
from .growing import (
    GrowTask,
    at_most,
    check_at_least,
    check_growth,
    features_to_check,
    grow_chain,
    tree_key,
    tree_response,
)
from .leaves import LeafChain, ListedLeaves


class TreeChain(ListedLeaves, LeafChain, BaseEstimator):
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
    max_features
        Number of features that a node checks, drawn at random from those that can split it: a
        whole number, a share of the inputs of the tree, ``"sqrt"`` or ``"third"`` of them, or None
        for all.

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
    >>> chain = TreeChain(min_samples_leaf=3).fit(rows, frame["salary"].to_numpy() > 9)
    >>> chain.trees_.roots.size
    1
    """

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
        max_features: int | float | str | None = None,
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.visit_order = visit_order
        self.condition_on_decision = condition_on_decision
        self.decisions = decisions
        self.max_inputs = max_inputs
        self.max_features = max_features

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Grow one tree per mutable feature.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Seed of the features that nodes check, threads for one tree each, and whether to show a
            progress bar.

        Returns
        -------
        TreeChain
            Itself.
        """
        self._check()

        def grow(task: GrowTask) -> list[Trees]:
            growth = replace(
                task.growth,
                min_samples_leaf=at_most(self.min_samples_leaf),
                max_features=features_to_check(self.max_features, task.inputs.size),
                key=tree_key(seed, task.column),
            )
            response = tree_response(rows, task.column)
            codes = rows.tree_codes[task.column]
            return [grow_tree(task.columns, task.inputs, response, codes, growth)]

        order, trees = grow_chain(self, rows, is_desired, grow, n_jobs=n_jobs, verbose=verbose)
        return self._keep(rows.schema, order, trees)

    def _check(self) -> None:
        check_at_least("min_samples_leaf", self.min_samples_leaf, 1)
        check_growth(self)
        features_to_check(self.max_features, 1)
