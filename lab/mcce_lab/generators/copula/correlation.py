"""The correlations of latent normal numbers, from columns that show only intervals of them.

Scores of intervals are less correlated than the numbers behind them. By Mehler's formula the
covariance of two functions of normal numbers with correlation r is a power series in r, with the
products of their Hermite coefficients; for steps these have a closed form. So the correlation whose
scores are as correlated as those of the training rows is found by bisection. For two numbers with
many values it is that of their normal scores, for two levels the tetrachoric correlation.

Always true: it depends on ranks alone, and on the training rows as a set; the matrix is positive
definite.
"""

from __future__ import annotations

import numpy as np

from mcce.kernels import Codes, FloatArray

from .margins import ANYWHERE, Margin, score_rows
from .normal import pdf

N_TERMS, N_HALVINGS = 60, 50
LARGEST, SMALLEST_EIGENVALUE = 0.995, 1e-3


def latent_correlations(margins: list[Margin], codes: list[Codes]) -> FloatArray:
    """Correlations of the latent numbers, shape (n_margins, n_margins).

    Parameters
    ----------
    margins
        The margins.
    codes
        The codes of each column and the decision, shape (n_train,) each.
    """
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
    weight, found = pdf(cuts) * rise, np.empty(N_TERMS)
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
    if values[0] >= SMALLEST_EIGENVALUE:
        return symmetric
    raised = (vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T
    scale = 1.0 / np.sqrt(np.diag(raised))
    repaired = raised * scale * scale[:, None]
    np.fill_diagonal(repaired, 1.0)
    return (repaired + repaired.T) / 2


def _solve(products: FloatArray, covariance: FloatArray) -> FloatArray:
    """The r at which each power series reaches its covariance, within the largest allowed."""
    low, high = np.full(covariance.shape, -LARGEST), np.full(covariance.shape, LARGEST)
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
