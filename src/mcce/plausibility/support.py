"""The support: which levels of a row the trees of its features accept.

Beyond the paper. Each mutable level of a row descends a tree of its feature given the immutable
features and those before it. A node rejects a level that no accepted training row in it has; a
second chain of all training rows rejects levels that are far rarer in a node than their overall
share predicts. A level's nonconformity is the number of rows with it that the largest node that
rejects it would hold by that share: the same evidence against a level, whether it is rare or not.

Always true: the order of the training rows changes nothing; nothing is held against a level that
training never held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..caching import cached_property
from ..kernels import (
    Codes,
    FloatArray,
    Forest,
    Growth,
    Holdings,
    Int32Array,
    IntArray,
    Trees,
    gather_holdings,
    grow_tree,
    join_trees,
    largest_rejecting_nodes,
)
from ..model.associations import MAX_INPUTS, Associations
from ..model.growing import split_columns, tree_response
from ..runtime.threads import map_ordered
from ..tables.schema import EncodedRows, Schema

# Rows in the smallest node that may reject a level.
MIN_SAMPLES_LEAF = 20
# If fewer rows are expected, a level may be lacking by chance: of 3 expected ones, in 5 % of nodes.
MIN_EXPECTED_ROWS = 3


class Support:
    """The support of levels among the accepted training rows."""

    def fit(
        self,
        rows: EncodedRows,
        accepted_rows: IntArray,
        all_rows: IntArray,
        order: IntArray,
        n_jobs: int | None = 1,
        associations: Associations | None = None,
    ) -> Support:
        """Grow the trees on the accepted rows and on all rows with these numbers."""
        responses = order[np.isin(order, level_columns(rows.schema))]
        self.chains_ = [
            LevelChain.grow(
                rows.take(chosen), order, responses, n_jobs, associations, contradictions=number > 0
            )
            for number, chosen in enumerate((accepted_rows, all_rows) if responses.size else ())
        ]
        return self

    def nonconformity(self, tree_codes: Codes) -> FloatArray:
        """The largest nonconformity of the mutable levels of rows, given all tree codes.

        Of shape (1, n_rows), or (0, n_rows) without mutable levels.
        """
        if not self.chains_:
            return np.empty((0, tree_codes.shape[1]))
        size = np.max([chain.rejecting_sizes(tree_codes) for chain in self.chains_], axis=0)
        expected = size * self.chains_[-1].share(tree_codes)
        return np.where(expected < MIN_EXPECTED_ROWS, 0.0, expected).max(axis=0, keepdims=True)


def level_columns(schema: Schema) -> IntArray:
    """The mutable categorical columns."""
    kinds = [schema.features[column].kind for column in schema.mutable]
    return schema.mutable[np.array([kind == "categorical" for kind in kinds], dtype=bool)]


@dataclass(frozen=True, eq=False)
class LevelChain:
    """Trees of some features given those before them, and what their nodes hold."""

    held: Holdings

    @property
    def trees(self) -> Trees:
        """The trees."""
        return self.held.forest.trees

    @property
    def responses(self) -> IntArray:
        """The columns that the trees predict."""
        return self.held.forest.responses

    @classmethod
    def grow(
        cls,
        rows: EncodedRows,
        order: IntArray,
        responses: IntArray,
        n_jobs: int | None,
        associations: Associations | None,
        *,
        contradictions: bool = False,
    ) -> LevelChain:
        """A tree for each response, given the immutable features and those before it in order."""
        schema = rows.schema
        columns = split_columns(schema, rows.tree_codes)
        growth = Growth(min_samples_leaf=MIN_SAMPLES_LEAF)

        def tree(column: int) -> Trees:
            before = order[: int(np.flatnonzero(order == column)[0])]
            inputs = np.sort(np.concatenate([schema.immutable, before]))
            if associations is not None:
                inputs = associations.inputs(column, inputs, MAX_INPUTS)
            response = tree_response(rows, column)
            return grow_tree(columns, inputs, response, rows.tree_codes[column], growth)

        trees = join_trees(list(map_ordered(tree, responses.tolist(), n_jobs)), columns.by_set)
        return cls.of(schema, responses, trees, contradictions=contradictions)

    @classmethod
    def of(
        cls, schema: Schema, responses: IntArray, trees: Trees, *, contradictions: bool
    ) -> LevelChain:
        """Trees that were grown before; see :func:`gather_holdings`."""
        forest = Forest(trees, responses, schema.n_levels)
        return cls(gather_holdings(forest, contradictions=contradictions))

    def rejecting_sizes(self, codes: Codes) -> Int32Array:
        """Per response, the size of the largest node that rejects the level; 0 for none."""
        return largest_rejecting_nodes(self.held, codes)

    def share(self, codes: Codes) -> FloatArray:
        """Per response, the share of all rows of the tree that have the level."""
        pairs = zip(self._shares, self.responses, strict=True)
        return np.array([shares[codes[column]] for shares, column in pairs])

    @cached_property
    def _shares(self) -> list[FloatArray]:
        """Shares of the levels of each response, 0 for the last: those that training never held."""
        trees, n_levels = self.trees, self.held.forest.n_levels[self.responses]
        # The values of a tree are adjacent, as its leaves are.
        ends = np.cumsum(trees.count)[np.append(trees.roots[1:], trees.feature.size) - 1]
        values = np.split(trees.values, ends[:-1])
        pairs = zip(values, n_levels.tolist(), strict=True)
        return [np.bincount(codes, minlength=n + 1) / max(codes.size, 1) for codes, n in pairs]
