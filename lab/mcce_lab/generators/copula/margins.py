"""Columns as normal numbers that were cut into intervals: the margins of a Gaussian copula.

Every value of a column is an interval of a latent normal number, as wide as the value is frequent:
for a number with many values a narrow one, for a level a wide one. Numbers and ordered categories
keep their order. Other levels get the order by which they go best with the other columns. Whether
a number is missing is a latent number of its own; that of the number is then unknown.

Always true: margins depend on the training rows as a set; shares and sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mcce.kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
)
from mcce.tables.features import Feature
from mcce.tables.schema import EncodedRows

from .normal import cdf, pdf, ppf

# Instead of the interval of a code: the latent number may be anything.
ANYWHERE = -1
# Scores are multiples of this, so that sums of products are exact in float64.
SCORE_UNIT = 2.0**-13
RIDGE, DECIMALS = 1e-3, 9
# Where a value of the schema has no row, the cut would be infinite.
FARTHEST_CUT = 9.0


@dataclass(frozen=True, eq=False)
class Margin:
    """One latent number: the intervals that the codes of a column stand for.

    Parameters
    ----------
    position
        Position of the feature; that after the last one is the decision.
    is_flag
        Whether it says that a number is missing, rather than which value there is.
    place : (n_codes + 1,)
        The interval of each code, ``ANYWHERE`` if the code says nothing; last for unseen levels.
    cuts : (n_intervals + 1,)
        The ends of the intervals, ascending from minus infinity to infinity.
    """

    position: int
    is_flag: bool
    place: IntArray
    cuts: FloatArray

    @property
    def n_intervals(self) -> int:
        """Number of intervals."""
        return self.cuts.size - 1

    @property
    def codes(self) -> Codes:
        """The code of each interval; of a flag, 0 for present and 1 for missing."""
        if self.is_flag:
            return np.arange(2, dtype=np.int32)
        known = np.flatnonzero(self.place[:-1] != ANYWHERE)
        return known[np.argsort(self.place[known])].astype(np.int32)

    @property
    def shares(self) -> FloatArray:
        """Share of training rows in each interval."""
        return np.diff(cdf(self.cuts))

    def bounds(self, codes: Codes) -> tuple[FloatArray, FloatArray]:
        """The ends of the interval of each code."""
        at = self.place[codes]
        known = at != ANYWHERE
        low = np.where(known, self.cuts[at], -np.inf)
        return low, np.where(known, self.cuts[at + 1], np.inf)

    def scores(self) -> FloatArray:
        """The mean of the latent number in each interval, a multiple of the unit."""
        density, share = pdf(self.cuts), self.shares
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(share > 0, -np.diff(density) / share, 0.0)
        return np.rint(mean / SCORE_UNIT) * SCORE_UNIT


def learn_margins(rows: EncodedRows, decision: BoolArray) -> list[Margin]:
    """The margins of all columns in order, a flag before its number; the decision comes last.

    Parameters
    ----------
    rows
        The training rows.
    decision : (n_train,)
        True where the predictor decides as desired.
    """
    margins: list[Margin] = []
    features = rows.schema.features
    for position, feature in enumerate(features):
        counts = np.bincount(rows.descent[position], minlength=feature.n_codes)
        margins += _column_margins(position, feature, counts)
    margins.append(_cut(len(features), np.bincount(decision, minlength=2), np.arange(2)))
    codes = [*rows.descent, decision.astype(np.int32)]
    unordered = [
        at
        for at, margin in enumerate(margins)
        if margin.position < len(features) and not features[margin.position].ordered
    ]
    for known in (False, True):
        scores = score_rows(margins, codes)
        for at in unordered:
            others = [j for j in range(len(margins)) if j != at and (known or j not in unordered)]
            margins[at] = _reorder(margins[at], codes[margins[at].position], scores[others])
    return margins


def score_rows(margins: list[Margin], codes: list[Codes]) -> FloatArray:
    """The score of each latent number in each row, 0 where it is unknown: (n_margins, n_rows)."""
    scores = np.empty((len(margins), codes[0].size))
    for at, margin in enumerate(margins):
        by_code = np.append(margin.scores(), 0.0)[margin.place]
        scores[at] = by_code[codes[margin.position]]
    return scores


def _column_margins(position: int, feature: Feature, counts: IntArray) -> list[Margin]:
    """The margin of a column, and a flag before it if some of its numbers are missing."""
    order = np.arange(feature.n_codes)
    flagged = feature.kind == "numeric" and feature.has_missing and feature.n_codes > 1
    if not flagged:
        return [_cut(position, counts, order)]
    both = np.array([counts[:-1].sum(), counts[-1]])
    flag = _cut(position, both, np.arange(2))
    place = np.append(np.where(order == feature.n_codes - 1, 1, 0), ANYWHERE)
    number = _cut(position, counts[:-1], order[:-1])
    unknown = np.append(number.place[:-1], [ANYWHERE, ANYWHERE])
    return [replace(flag, is_flag=True, place=place), replace(number, place=unknown)]


def _cut(position: int, counts: IntArray, order: IntArray) -> Margin:
    """The margin of values by how often each occurs, in an order of their codes."""
    below = np.cumsum(counts[order])[:-1] / counts.sum()
    place = np.empty(counts.size + 1, dtype=np.int64)
    place[order] = np.arange(counts.size)
    place[-1] = ANYWHERE
    cuts = np.clip(ppf(below), -FARTHEST_CUT, FARTHEST_CUT)
    return Margin(position, False, place, np.concatenate([[-np.inf], cuts, [np.inf]]))


def _reorder(margin: Margin, codes: Codes, others: FloatArray) -> Margin:
    """The margin with its levels in the order by which they go best with other columns.

    That is the first canonical variate of the levels with the scores of the others.
    """
    n_levels = margin.n_intervals
    if n_levels < 3 or not len(others):
        return margin
    counts = np.bincount(codes, minlength=n_levels)
    sums = np.array([np.bincount(codes, weights=row, minlength=n_levels) for row in others])
    means = sums / np.maximum(counts, 1)
    values, vectors = np.linalg.eigh(others @ others.T / codes.size + RIDGE * np.eye(len(others)))
    spread = (vectors / np.sqrt(values)).T @ means
    weighted = spread * np.sqrt(counts / codes.size)
    direction = np.linalg.eigh(weighted @ weighted.T)[1][:, -1]
    score = np.round(direction @ spread, DECIMALS)
    # Of the two directions the one in which the first level that differs comes first.
    score = score if score[np.flatnonzero(score != 0)[:1]].sum() <= 0 else -score
    return _cut(margin.position, counts, np.argsort(score, kind="stable"))
