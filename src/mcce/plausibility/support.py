"""The calibrated support: what real accepted rows look like.

Beyond the paper. Each value of a row descends a tree of its feature given the others. A node
rejects the value if no accepted training row in it has that level, or a number as small or as
large; a second chain of all training rows rejects levels that are far rarer in a node than their
overall share predicts. A value's nonconformity is the size of the largest node that rejects it.

A row is inside the support for some share if only nodes below a size reject its values. That size
is calibrated at fit, so that the share of held-out accepted rows is inside.

Always true: a row inside for some share is inside for every larger one; the order of the training
rows changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..execution.threads import map_ordered
from ..kernels import (
    BoolArray,
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
# Folds of the accepted rows, each held out once, and the most rows used for calibration.
N_SPLITS = 5
MAX_CALIBRATION = 20_000
# A level with a smaller share of the accepted rows is rare. Rows with a rare level must be inside
# as often as others, in that feature, if there are enough of them to calibrate on.
RARE, N_RARE = 0.02, 50


class Support:
    """The support of the accepted training rows, for any share of them.

    Attributes
    ----------
    chains_ : list of Chain
        Trees of the accepted rows, and of all rows for the categorical features, if any.
    calibration_scores_ : (n_held_out,)
        Nonconformity of held-out accepted rows, ascending: that of their strangest value.
    rare_calibration_scores_ : dict
        The same in single features, of rows with a rare level there, by place among the mutable.
    """

    def fit(
        self, rows: EncodedRows, accepted: BoolArray, order: IntArray, n_jobs: int | None = 1
    ) -> Support:
        """Grow the trees and calibrate them on held-out accepted rows.

        Parameters
        ----------
        rows, accepted
            The training rows, and which have the desired decision.
        order
            Positions of the mutable features in the visit order.
        n_jobs
            Threads, one tree each.

        Returns
        -------
        Support
            The fitted support.
        """
        alike = np.lexsort(rows.exact)
        yes, no = alike[accepted[alike]], alike[~accepted[alike]]
        rng = np.random.default_rng(0)
        mixed = yes[rng.permutation(yes.size)[:MAX_CALIBRATION]]
        others = no[rng.permutation(no.size)[:MAX_CALIBRATION]]
        fold = np.arange(mixed.size) % N_SPLITS
        scores = np.zeros((order.size, mixed.size), dtype=np.int32)
        for held_out in range(N_SPLITS if yes.size > 1 else 0):
            seen, unseen = mixed[fold != held_out], fold == held_out
            part = Support().grow(rows, seen, np.concatenate([seen, others]), order, n_jobs)
            scores[:, unseen] = part._nonconformity(rows.descent[:, mixed[unseen]])
        self._calibrate(rows, accepted, mixed, scores)
        return self.grow(rows, yes, alike, order, n_jobs)

    def grow(
        self,
        rows: EncodedRows,
        accepted: IntArray,
        everybody: IntArray,
        order: IntArray,
        n_jobs: int | None,
    ) -> Support:
        """Grow the trees on rows at these places."""
        self.chains_ = [Chain.grow(rows.take(accepted), order, order, n_jobs)]
        levels = [at for at in order if rows.schema.features[at].kind == "categorical"]
        if levels:
            responses = np.array(levels, dtype=np.int64)
            chain = Chain.grow(rows.take(everybody), order, responses, n_jobs, contradictions=True)
            self.chains_.append(chain)
        return self

    def _calibrate(
        self, rows: EncodedRows, accepted: BoolArray, held_out: IntArray, scores: Codes
    ) -> None:
        self.calibration_scores_: Codes = np.sort(scores.max(axis=0, initial=0))
        self.rare_calibration_scores_: dict[int, Codes] = {}
        for place, position in enumerate(rows.schema.mutable):
            feature, codes = rows.schema.features[position], rows.exact[position]
            if feature.kind == "numeric":
                continue
            share = np.bincount(codes[accepted], minlength=feature.n_codes) / max(accepted.sum(), 1)
            rare = (share < RARE)[codes[held_out]]
            if rare.sum() >= N_RARE:
                self.rare_calibration_scores_[place] = np.sort(scores[place, rare])

    def sizes(self, share: float) -> Codes:
        """Size from which nodes count, per mutable feature, for a share of accepted rows."""
        common = _quantile(self.calibration_scores_, share)
        sizes = np.full(self.chains_[0].schema.mutable.size, common, dtype=np.int32)
        for place, scores in self.rare_calibration_scores_.items():
            sizes[place] = max(common, _quantile(scores, share))
        return sizes

    def reached(self, share: float) -> float:
        """Share of held-out accepted rows that are inside, by the size common to all features."""
        inside = self.calibration_scores_ < _quantile(self.calibration_scores_, share)
        return float(inside.mean()) if inside.size else math.nan

    def n_outside(self, codes: Codes, sizes: Codes) -> IntArray:
        """How many features of each row are outside, given descent codes of all features."""
        return np.asarray((self._nonconformity(codes, sizes) > 0).sum(axis=0))

    def _nonconformity(self, codes: Codes, sizes: Codes | None = None) -> Codes:
        """Nonconformity per mutable feature, 0 where only nodes below its size reject."""
        mutable = self.chains_[0].schema.mutable
        worst = np.zeros((mutable.size, codes.shape[1]), dtype=np.int32)
        for chain in self.chains_:
            place = np.searchsorted(mutable, chain.responses)
            least = np.zeros(place.size, dtype=np.int32) if sizes is None else sizes[place]
            worst[place] = np.maximum(worst[place], chain.nonconformity(codes, least))
        return worst


def _quantile(scores: Codes, share: float) -> int:
    """The smallest size by which this share of the rows is inside."""
    if not scores.size:
        return MIN_SAMPLES_LEAF
    place = max(math.ceil(share * scores.size) - 1, 0)
    return max(int(scores[place]) + 1, MIN_SAMPLES_LEAF)


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

    def nonconformity(self, codes: Codes, least: Codes) -> Codes:
        """Per response, the largest node of at least ``least`` rows that rejects; 0 for none."""
        return nonconformity(self.held, codes, least)


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
