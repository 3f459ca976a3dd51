"""What each value of each feature adds to a linear response.

Beyond the paper. Many predictors, such as logistic regressions, are linear in the values of numbers
and in indicators of levels. Trees would need very many splits to follow them.

Always true: effects are rounded, so that no order of additions shows in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..kernels import Codes, FloatArray, IntArray
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from .boosting import RARE_LEVEL_ROWS

# Levels of a feature with effects of their own, and terms of all features, at most.
MAX_LEVELS, MAX_TERMS = 64, 400
# Effects are shrunk as by this many rows without any.
RIDGE = 1.0
# Bits of an effect, beside the range of the response.
BITS = 30


def fit_effects(
    rows: EncodedRows, response: FloatArray, row_numbers: IntArray
) -> tuple[FloatArray, ...]:
    """For each feature the effect of each tree code; nothing if there are too many terms.

    ``row_numbers`` are in an order that depends on the rows alone.
    """
    features, codes = rows.schema.features, rows.tree_codes[:, row_numbers]
    tables = [_terms(*pair) for pair in zip(features, codes, strict=True)]
    n_terms = [table.shape[1] for table in tables]
    if not 0 < sum(n_terms) <= MAX_TERMS:
        return ()
    terms = np.concatenate([table[own] for table, own in zip(tables, codes, strict=True)], axis=1)
    terms -= terms.mean(axis=0)
    left_over = response[row_numbers] - response[row_numbers].mean()
    gram = terms.T @ terms + RIDGE * np.eye(sum(n_terms))
    slopes = np.split(np.linalg.solve(gram, terms.T @ left_over), np.cumsum(n_terms)[:-1])
    unit = 2.0 ** (math.frexp(np.ptp(left_over))[1] - BITS)
    return tuple(
        np.rint(table @ slope / unit) * unit for table, slope in zip(tables, slopes, strict=True)
    )


def add_effects(effects: Sequence[FloatArray], tree_codes: Codes) -> FloatArray:
    """The summed effects of rows, given tree codes of all features."""
    response = np.zeros(tree_codes.shape[1])
    for at, effect in enumerate(effects):
        response += effect[tree_codes[at]]
    return response


def _terms(feature: Feature, codes: Codes) -> FloatArray:
    """The terms of each tree code of a feature, shape (n_codes + 1, n_terms)."""
    counts = np.bincount(codes, minlength=feature.n_codes + 1)
    if feature.numbers is None:
        by_count = np.argsort(-counts, kind="stable")[:MAX_LEVELS]
        levels = np.sort(by_count[counts[by_count] >= RARE_LEVEL_ROWS])
        terms = np.zeros((counts.size, levels.size))
        terms[levels, np.arange(levels.size)] = 1.0
        return terms
    terms = np.zeros((counts.size, 1 + feature.has_missing))
    terms[: feature.n_codes, 0] = _standardized(feature.numbers, counts[: feature.n_codes])
    terms[feature.n_codes - feature.has_missing :, 1:] = 1.0
    return terms


def _standardized(numbers: FloatArray, counts: IntArray) -> FloatArray:
    """Numbers around 0, in standard deviations; all 0 where these have no value; 0 for missing."""
    known = ~np.isnan(numbers)
    n = max(int(counts[known].sum()), 1)
    with np.errstate(all="ignore"):
        centred = numbers - (numbers[known] @ counts[known]) / n
        scaled = centred / np.sqrt((centred[known] ** 2) @ counts[known] / n)
    finite = np.isfinite(scaled[known]).all()
    return np.where(known & finite, scaled, 0.0)
