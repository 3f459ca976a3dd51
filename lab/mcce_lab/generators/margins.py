"""Columns as normal numbers that were cut into intervals, and the correlations of these numbers.

Every value of a column is an interval of a latent normal number, as wide as the value is frequent:
for a number with many values a narrow one, for a level a wide one. Numbers and ordered categories
keep their order. Other levels get the order by which they go best with the other columns. Whether
a number is missing is a latent number of its own; that of the number is then unknown.

Scores of intervals are less correlated than the numbers behind them. By Mehler's formula the
covariance of two functions of normal numbers with correlation r is a power series in r, with the
products of their Hermite coefficients; for steps these have a closed form. So the correlation whose
scores are as correlated as those of the training rows is found by bisection. For two numbers with
many values it is that of their normal scores, for two levels the tetrachoric correlation.

Always true: both depend on ranks alone, and on the training rows as a set; the matrix of
correlations is positive definite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

from mcce.protocols import BoolArray, Codes, EncodedRows, Feature, FloatArray, IntArray

# Instead of the interval of a code: the latent number may be anything.
ANYWHERE = -1
# Scores are multiples of this, so that sums of products are exact in float64.
SCORE_UNIT = 2.0**-13
RIDGE, DECIMALS = 1e-3, 9
# Where a value of the schema has no row, the cut would be infinite.
FARTHEST_CUT = 9.0
# Terms of the series, steps of the bisection, and bounds of correlations and eigenvalues.
N_TERMS, N_HALVINGS = 60, 50
MAX_CORRELATION, MIN_EIGENVALUE = 0.995, 1e-3


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
        return np.diff(ndtr(self.cuts))

    def bounds(self, codes: Codes) -> tuple[FloatArray, FloatArray]:
        """The ends of the interval of each code."""
        at = self.place[codes]
        known = at != ANYWHERE
        low = np.where(known, self.cuts[at], -np.inf)
        return low, np.where(known, self.cuts[at + 1], np.inf)

    def scores(self) -> FloatArray:
        """The mean of the latent number in each interval, a multiple of the unit."""
        density, share = _density(self.cuts), self.shares
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(share > 0, -np.diff(density) / share, 0.0)
        return np.rint(mean / SCORE_UNIT) * SCORE_UNIT


def learn_margins(rows: EncodedRows, is_desired: BoolArray) -> list[Margin]:
    """The margins of all columns in order, a flag before its number; the decision comes last."""
    margins: list[Margin] = []
    features = rows.schema.features
    for position, feature in enumerate(features):
        counts = np.bincount(rows.tree_codes[position], minlength=feature.n_codes)
        margins += _column_margins(position, feature, counts)
    margins.append(_cut(len(features), np.bincount(is_desired, minlength=2), np.arange(2)))
    codes = [*rows.tree_codes, is_desired.astype(np.int32)]
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
    cuts = np.clip(ndtri(below), -FARTHEST_CUT, FARTHEST_CUT)
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


def latent_correlations(margins: list[Margin], codes: list[Codes]) -> FloatArray:
    """Correlations of the latent numbers, shape (n_margins, n_margins)."""
    scores = score_rows(margins, codes)
    known = np.array([m.place[codes[m.position]] != ANYWHERE for m in margins], dtype=np.float64)
    # Rows in which both are known count; exact, since scores are multiples of their unit.
    counts = known @ known.T
    sums = scores @ known.T
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = scores @ scores.T / counts - (sums / counts) * (sums.T / counts)
    covariance = np.nan_to_num(covariance, posinf=0.0, neginf=0.0)
    series = np.array([hermite(margin) for margin in margins])
    pairs = zip(series, covariance, strict=True)
    return nearest_correlation(np.array([_solve(one * series, wanted) for one, wanted in pairs]))


def hermite(margin: Margin) -> FloatArray:
    """Coefficients 1, 2, ... of a margin's scores in the normalised Hermite polynomials."""
    cuts, rise = margin.cuts[1:-1], np.diff(margin.scores())
    before, polynomial = np.zeros_like(cuts), np.ones_like(cuts)
    weight, found = _density(cuts) * rise, np.empty(N_TERMS)
    for n in range(N_TERMS):
        found[n] = (weight * polynomial).sum() / np.sqrt(n + 1.0)
        following = (cuts * polynomial - np.sqrt(float(n)) * before) / np.sqrt(n + 1.0)
        before, polynomial = polynomial, following
    return found


def nearest_correlation(correlations: FloatArray) -> FloatArray:
    """A correlation matrix whose eigenvalues are not too small."""
    symmetric = (correlations + correlations.T) / 2
    np.fill_diagonal(symmetric, 1.0)
    values, vectors = np.linalg.eigh(symmetric)
    if values[0] >= MIN_EIGENVALUE:
        return symmetric
    raised = (vectors * np.maximum(values, MIN_EIGENVALUE)) @ vectors.T
    scale = 1.0 / np.sqrt(np.diag(raised))
    repaired = raised * scale * scale[:, None]
    np.fill_diagonal(repaired, 1.0)
    return (repaired + repaired.T) / 2


def _solve(products: FloatArray, covariance: FloatArray) -> FloatArray:
    """The r at which each power series reaches its covariance, within the largest allowed."""
    low, high = (
        np.full(covariance.shape, -MAX_CORRELATION),
        np.full(covariance.shape, MAX_CORRELATION),
    )
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        value = np.zeros_like(middle)
        for term in range(N_TERMS - 1, -1, -1):
            value = (value + products[..., term]) * middle
        below = value < covariance
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found = (low + high) / 2
    # A constant column says nothing of any correlation.
    return np.where(products[..., 0] > 0, found, 0.0)


def is_correlation(matrix: FloatArray) -> bool:
    """Whether a matrix is a symmetric, positive definite one with ones on its diagonal."""
    if not np.isfinite(matrix).all() or not np.array_equal(matrix, matrix.T):
        return False
    return bool((np.diag(matrix) == 1).all() and np.linalg.eigvalsh(matrix)[0] > 0)


def _density(x: FloatArray) -> FloatArray:
    """Density of the standard normal distribution; 0 at infinity."""
    return np.exp(-0.5 * np.square(x)) / np.sqrt(2.0 * np.pi)
