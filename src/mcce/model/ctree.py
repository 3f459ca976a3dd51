"""Step 1 by conditional inference trees, the default of the authors' R package.

Hothorn, Hornik and Zeileis (2006). A node is split only if a test of independence finds that some
feature has to do with the one that the tree predicts, adjusted for how many are tested; it is split
on the most significant one. So features with many values are not preferred, and trees are far
shallower than CART: leaves are large, their values more diverse but less conditional.

Always true: the trees depend on the training rows as a set, not on their order or on threads.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from ..errors import ParameterError, shorten
from ..kernels import (
    BoolArray,
    Columns,
    FloatArray,
    IntArray,
    Node,
    Split,
    Trees,
    check_cancellation,
    grow_with,
    sort_rows,
    split_after,
)
from ..protocols import Capabilities
from ..tables.schema import EncodedRows, Schema
from .cuts import Cut, Target, best_cut
from .growing import Task, grow_chain
from .independence import Scored, dependences
from .leaves import LeafChain, ListedLeaves
from .responses import with_decision

# Features that a node tries to split on, the most significant first.
TRIES = 2


class InferenceTreeChain(LeafChain, ListedLeaves, BaseEstimator):
    """A conditional inference tree for each mutable feature given those before it.

    Parameters
    ----------
    min_criterion
        A node is split if 1 minus the adjusted p-value of some feature is at least this
        (``mincriterion`` of the R packages).
    min_samples_split
        Smallest number of training rows in a node that is split (``minsplit``).
    min_samples_leaf
        Smallest number of training rows in a leaf (``minbucket``).
    max_depth, visit_order, condition_on_decision, decisions, max_inputs
        As for :class:`TreeChain`.

    Attributes
    ----------
    forest_ : Forest
        All that was learned; ``trees_``, ``visit_order_`` and ``n_levels_`` are parts of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> frame = pd.DataFrame({"age": [30, 40] * 20, "salary": range(40)})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> chain = InferenceTreeChain().fit(rows, frame["salary"].to_numpy() > 19)
    >>> chain.trees_.feature[0]  # the decision, which comes after all columns
    np.int32(2)
    """

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
        min_criterion: float = 0.95,
        min_samples_split: int = 20,
        min_samples_leaf: int = 7,
        max_depth: int | None = None,
        visit_order: str | Sequence[Hashable] = "data",
        condition_on_decision: bool = True,
        decisions: tuple[bool, ...] = (True,),
        max_inputs: int | None = None,
    ) -> None:
        self.min_criterion = min_criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
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
        InferenceTreeChain
            Itself.
        """
        _check_criterion(self.min_criterion)
        scored = _score(rows, decision)
        # In this order, sums do not depend on the one in which the rows came.
        in_order = sort_rows(scored.codes)

        def grow(task: Task) -> list[Trees]:
            finder = _Splits(scored, task, float(self.min_criterion))
            codes = rows.descent[task.position]
            return [grow_with(finder.find, in_order, codes, task.growth)]

        order, trees = grow_chain(self, rows, decision, grow, n_jobs=n_jobs, verbose=verbose)
        return self._keep(rows.schema, order, trees)

    def _keep(self, schema: Schema, order: IntArray, trees: Trees) -> Self:
        _check_criterion(self.min_criterion)
        return super()._keep(schema, order, trees)


class _Splits:
    """The splits of one tree."""

    def __init__(self, scored: Scored, task: Task, min_criterion: float) -> None:
        self.scored, self.task = scored, task
        self.min_criterion = min_criterion

    def find(self, node: Node) -> Split | None:
        """The split of a node, None where nothing is significant or can be cut."""
        check_cancellation()
        rows, growth = node.rows, self.task.growth
        too_deep = growth.max_depth is not None and node.depth >= growth.max_depth
        if rows.size < max(growth.min_samples_split, 2 * growth.min_samples_leaf) or too_deep:
            return None
        tests = dependences(self.scored, self.task.inputs, rows, self.task.position)
        for test in tests[:TRIES]:
            if not is_significant(test.log_p, self.task.inputs.size, self.min_criterion):
                return None
            codes = self.scored.codes[test.column][rows]
            cut = best_cut(
                codes,
                self._target(rows),
                ordered=bool(self.task.columns.ordered[test.column]),
                min_samples_leaf=growth.min_samples_leaf,
            )
            if cut is not None:
                return _split_at(self.task.columns, test.column, codes, cut)
        return None

    def _target(self, rows: IntArray) -> Target:
        position = self.task.position
        if self.scored.by_score[position]:
            return Target(scores=self.scored.scores[position][rows])
        _, classes = np.unique(self.scored.codes[position][rows], return_inverse=True)
        return Target(classes=classes.ravel())


def is_significant(log_p: float, n_tests: int, min_criterion: float) -> bool:
    """Whether (1 - p)^m, 1 minus the adjusted p-value of one of m tests, reaches the criterion."""
    if min_criterion <= 0.0:
        return True
    p = math.exp(log_p)
    return p < 1.0 and n_tests * math.log1p(-p) >= math.log(min_criterion)


def _split_at(columns: Columns, column: int, codes: IntArray, cut: Cut) -> Split:
    goes_left = np.isin(codes, cut.levels[: cut.n_left])
    return split_after(columns, column, cut.statistic, cut.levels, cut.n_left - 1, goes_left)


def _score(rows: EncodedRows, decision: BoolArray) -> Scored:
    """The columns, and the decision after them, as tests see them."""
    features = rows.schema.features
    by_score = np.array([feature.ordered for feature in features] + [True])
    codes = with_decision(rows.exact, decision)
    scores = np.zeros(codes.shape)
    for position in np.flatnonzero(by_score):
        numbers = rows.numbers(int(position)) if position < len(features) else None
        values = codes[position].astype(np.float64) if numbers is None else numbers
        scores[position] = _from_0_to_1(values)
    n_codes = np.array([feature.n_codes for feature in features] + [2])
    return Scored(codes, scores, by_score, n_codes)


def _from_0_to_1(values: FloatArray) -> FloatArray:
    """Values as shares of their range; missing ones as far above it as it is wide."""
    missing = np.isnan(values)
    if missing.all():
        return np.zeros(values.size)
    # Halves, as the range of numbers near the largest ones is beyond them.
    halves = values / 2
    low = np.nanmin(halves)
    spread = np.nanmax(halves) - low
    shares = (halves - low) / spread if spread > 0 else np.zeros(values.size)
    return np.where(missing, 2.0, shares)


def _check_criterion(given: object) -> None:
    number = isinstance(given, Real) and not isinstance(given, bool)
    if not number or not 0 <= given < 1:  # type: ignore[operator]
        raise ParameterError(f"min_criterion must be from 0 to below 1, got {shorten(given)}.")
