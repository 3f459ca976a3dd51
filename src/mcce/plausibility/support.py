"""The support: which values of a row the trees of its features accept.

Beyond the paper. Each value of a row descends a tree of its feature given the others. A node
rejects the value if no accepted training row in it has that level, or a number as small or as
large; a second chain of all training rows rejects levels that are far rarer in a node than their
overall share predicts. A value's nonconformity is the size of the largest node that rejects it.

Always true: the order of the training rows changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..execution.threads import map_ordered
from ..kernels import (
    Codes,
    Forest,
    Growth,
    Holdings,
    IntArray,
    Trees,
    gather_holdings,
    grow_tree,
    join,
    nonconformity,
)
from ..model.trees import split_columns, tree_response
from ..tables.schema import EncodedRows, Schema

# Rows in the smallest node that may reject a value.
MIN_SAMPLES_LEAF = 20


class Support:
    """The support of the accepted training rows.

    Attributes
    ----------
    chains_ : list of Chain
        Trees of the accepted rows, and of all rows for the categorical features, if any.
    """

    def fit(
        self,
        rows: EncodedRows,
        accepted: IntArray,
        everybody: IntArray,
        order: IntArray,
        n_jobs: int | None = 1,
    ) -> Support:
        """Grow the trees on rows at these places.

        Parameters
        ----------
        rows
            Training rows.
        accepted, everybody
            Places of rows with the desired decision, and of those together with others.
        order
            Positions of the mutable features in the visit order.
        n_jobs
            Threads, one tree each.

        Returns
        -------
        Support
            The fitted support.
        """
        self.chains_ = [Chain.grow(rows.take(accepted), order, order, n_jobs)]
        levels = [at for at in order if rows.schema.features[at].kind == "categorical"]
        if levels:
            responses = np.array(levels, dtype=np.int64)
            chain = Chain.grow(rows.take(everybody), order, responses, n_jobs, contradictions=True)
            self.chains_.append(chain)
        return self

    def nonconformity(self, descent: Codes) -> Codes:
        """Nonconformity of each mutable value of rows, given descent codes of all features."""
        mutable = self.chains_[0].schema.mutable
        worst = np.zeros((mutable.size, descent.shape[1]), dtype=np.int32)
        for chain in self.chains_:
            place = np.searchsorted(mutable, chain.responses)
            worst[place] = np.maximum(worst[place], chain.nonconformity(descent))
        return worst


@dataclass(frozen=True, eq=False)
class Chain:
    """Trees of some features given those before them, and what their nodes hold."""

    schema: Schema
    held: Holdings

    @property
    def trees(self) -> Trees:
        """The trees."""
        return self.held.forest.trees

    @property
    def responses(self) -> IntArray:
        """Positions of the features that the trees predict."""
        return self.held.forest.responses

    @classmethod
    def grow(
        cls,
        rows: EncodedRows,
        order: IntArray,
        responses: IntArray,
        n_jobs: int | None,
        *,
        contradictions: bool = False,
    ) -> Chain:
        """A tree for each response, given the immutable features and those before it in order."""
        schema = rows.schema
        columns = split_columns(schema, rows.descent)
        growth = Growth(min_samples_leaf=MIN_SAMPLES_LEAF)

        def tree(position: int) -> Trees:
            before = order[: int(np.flatnonzero(order == position)[0])]
            inputs = np.sort(np.concatenate([schema.immutable, before]))
            response = tree_response(rows, position)
            return grow_tree(columns, inputs, response, rows.descent[position], growth)

        trees = join(list(map_ordered(tree, responses.tolist(), n_jobs)), columns.by_set)
        return cls.of(schema, responses, trees, contradictions=contradictions)

    @classmethod
    def of(
        cls, schema: Schema, responses: IntArray, trees: Trees, *, contradictions: bool
    ) -> Chain:
        """Trees that were grown before; see :func:`gather_holdings`."""
        n_levels, n_codes, missing = _codes_of(schema, responses)
        forest = Forest(trees, responses, n_levels)
        held = gather_holdings(forest, n_codes, missing, contradictions=contradictions)
        return cls(schema, held)

    def nonconformity(self, codes: Codes) -> Codes:
        """Per response, the size of the largest node that rejects the value; 0 for none."""
        return nonconformity(self.held, codes, np.zeros(self.responses.size, dtype=np.int32))


def _codes_of(schema: Schema, responses: IntArray) -> tuple[IntArray, Codes, Codes]:
    """Levels and codes of all columns, and the code of missing in each response, -1 if none."""
    features = schema.features
    levels = [f.n_codes if f.kind == "categorical" else 0 for f in features]
    missing = [
        features[at].n_codes - 1 if features[at].has_missing and not levels[at] else -1
        for at in responses
    ]
    n_codes = np.array([f.n_codes for f in features], dtype=np.int32)
    return np.array(levels), n_codes, np.array(missing, dtype=np.int32)
