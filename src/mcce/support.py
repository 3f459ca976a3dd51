"""What real accepted rows look like: the calibrated support.

Beyond the paper. "The value occurs in its leaf" is no test of realism: hardly a held-out row passes
it in all its features. Here a chain of trees is grown on the accepted training rows; a row is
inside if, for each mutable feature, the smallest node of at least so many rows on its way holds its
value: between the least and the greatest number, or among the levels. How many rows is found at
fit, on rows that the trees have not seen, so that a stated share of them is inside.

Always true: a row inside for some share is inside for every larger one; nothing here depends on the
order of the training rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .kernels import (
    Codes,
    Holdings,
    IntArray,
    Trees,
    gather_holdings,
    strain,
)
from .model import TreeChain
from .schema import Rows, Schema

# Rows in the smallest node that is ever looked at.
MIN_SAMPLES_LEAF = 20
# How often a fifth of the rows is held out, and how many rows are used for that at most.
N_SPLITS = 5
MAX_CALIBRATION = 20_000
# A level that a smaller share of the accepted rows has is rare. Rows with one must be inside as
# often as others, in that feature, if there are enough of them to tell.
RARE, N_RARE = 0.02, 50


class Support:
    """The support of the accepted training rows, for any share of them.

    Attributes
    ----------
    strains_ : (n_held_out,)
        Ascending: for rows that were held out, the size of the largest node that lacks one of
        their values. A row is inside if nodes up to that size are not looked at.
    rare_strains_ : dict
        The same for single features, of rows with a rare level in it.
    """

    strains_: Codes
    rare_strains_: dict[int, Codes]

    def fit(self, rows: Rows, visit_order: Any = "data", n_jobs: int | None = 1) -> Support:
        """Grow the trees on the accepted rows and calibrate them on parts held out."""
        rows = rows.take(np.lexsort(rows.exact))
        mixed = np.random.default_rng(0).permutation(len(rows))[:MAX_CALIBRATION]
        fold = np.arange(mixed.size) % N_SPLITS
        parts = []
        for held_out in range(N_SPLITS):
            seen, unseen = mixed[fold != held_out], mixed[fold == held_out]
            if seen.size and unseen.size:
                part = _Chain.grow(rows.take(seen), visit_order, n_jobs)
                parts.append((unseen, part.strain(rows.descent[:, unseen])))
        self.chain_ = _Chain.grow(rows, visit_order, n_jobs)
        self._calibrate(rows, parts)
        return self

    def _calibrate(self, rows: Rows, parts: list[tuple[IntArray, Codes]]) -> None:
        mutable = rows.schema.mutable
        held_out = np.concatenate([np.empty(0, np.int64), *(unseen for unseen, _ in parts)])
        found = np.concatenate([np.empty((mutable.size, 0), np.int32), *(s for _, s in parts)], 1)
        self.strains_ = np.sort(found.max(axis=0, initial=0))
        self.rare_strains_ = {}
        for place, position in enumerate(mutable):
            feature = rows.schema.features[position]
            if feature.kind == "numeric":
                continue
            codes = rows.exact[position]
            share = np.bincount(codes, minlength=feature.n_codes) / max(len(rows), 1)
            rare = (share < RARE)[codes[held_out]]
            if rare.sum() >= N_RARE:
                self.rare_strains_[place] = np.sort(found[place, rare])

    def sizes(self, share: float) -> Codes:
        """Least number of rows of the nodes that are looked at, one per mutable feature."""
        common = _quantile(self.strains_, share)
        sizes = np.full(self.chain_.schema.mutable.size, common, dtype=np.int32)
        for place, strains in self.rare_strains_.items():
            sizes[place] = max(common, _quantile(strains, share))
        return sizes

    def reached(self, share: float) -> float:
        """Share of the rows held out that the common size for a share lets pass."""
        if not self.strains_.size:
            return math.nan
        return float((self.strains_ < _quantile(self.strains_, share)).mean())

    def n_outside(self, codes: Codes, sizes: Codes) -> IntArray:
        """How many features of each row are outside; codes as descent codes of all features."""
        return (self.chain_.strain(codes, sizes) > 0).sum(axis=0)


def _quantile(strains: Codes, share: float) -> int:
    """The least size that so many of the rows pass."""
    if not strains.size:
        return MIN_SAMPLES_LEAF
    place = max(math.ceil(share * strains.size) - 1, 0)
    return max(int(strains[place]) + 1, MIN_SAMPLES_LEAF)


@dataclass(frozen=True, eq=False)
class _Chain:
    """Trees of the accepted rows and what their nodes hold, one tree per mutable feature."""

    schema: Schema
    visit_order: IntArray
    trees: Trees
    held: Holdings
    n_levels: IntArray
    missing: Codes

    @classmethod
    def grow(cls, rows: Rows, visit_order: Any, n_jobs: int | None) -> _Chain:
        chain = TreeChain(
            min_samples_leaf=MIN_SAMPLES_LEAF,
            visit_order=visit_order,
            condition_on_decision=False,
        ).fit(rows, np.ones(len(rows), dtype=bool), n_jobs=n_jobs)
        return cls.of(rows.schema, chain.visit_order_, chain.trees_, chain.n_levels_)

    @classmethod
    def of(cls, schema: Schema, visit_order: IntArray, trees: Trees, n_levels: IntArray) -> _Chain:
        features = [schema.features[position] for position in visit_order]
        missing = [f.n_codes - 1 if f.kind == "numeric" and f.has_missing else -1 for f in features]
        codes = np.array(missing, dtype=np.int32)
        held = gather_holdings(trees, n_levels, visit_order, codes)
        return cls(schema, visit_order, trees, held, n_levels, codes)

    def strain(self, codes: Codes, sizes: Codes | None = None) -> Codes:
        """Per mutable feature, the largest node of at least so many rows that lacks the value."""
        n_codes = np.array([f.n_codes for f in self.schema.features], dtype=np.int32)
        place = np.searchsorted(self.schema.mutable, self.visit_order)
        least = np.zeros(place.size, np.int32) if sizes is None else sizes[place]
        found = strain(
            self.trees,
            self.n_levels,
            self.visit_order,
            self.missing,
            self.held,
            n_codes,
            codes,
            least,
        )
        return found[np.argsort(place)]
