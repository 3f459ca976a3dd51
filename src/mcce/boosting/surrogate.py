"""The surrogate: a cheap model of the predictor's scores.

Beyond the paper. At fit the predictor has scored every training row. Boosted trees learn these
scores from the codes of the rows: probabilities by their logit, labels without a threshold as 0
and 1. Many predictors, such as logistic regressions, are linear in the values of numbers and in
indicators of levels, which trees need very many splits to follow. Where such a linear model
predicts held-out scores better than trees, the trees learn what it leaves over. A search may look
at thousands of rows through the surrogate, and have the predictor score only those that it would
return.

Always true: the surrogate never decides whether a row is valid; the order of the training
rows changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from ..kernels import Boosting, Codes, FloatArray, IntArray
from ..predictors.decision import Decision, Interval, ScoredRows
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from .trees import RARE_LEVEL_ROWS, BinnedColumns, BoostedTrees, predict_each, screen

Link = Literal["logit", "identity", "label"]
# It learns from at most this many training rows, and holds out one in ``HELD_OUT`` of them.
MAX_ROWS, HELD_OUT = 20_000, 6
# The most inputs of the trees.
MAX_INPUTS = 64
# If the errors of the linear model are at most this share of the response, in standard deviations,
# trees alone are not tried.
SMALL_ERROR = 0.1
# The standard deviation of normal errors, divided by the median of their absolute values.
DEVIATION_PER_MEDIAN = 1.4826
# Small trees first: they capture main effects, which extrapolate.
SMALL_TREES = Boosting(n_trees=100, max_leaves=4, shrinkage=4)
LARGE_TREES = Boosting(n_trees=100, max_leaves=32)
# The most levels of a feature with effects of their own, and the most terms of all features.
MAX_LEVELS, MAX_TERMS = 64, 400
# Effects are shrunk as if this many rows without any effect were added.
RIDGE = 1.0
# Effects keep this many bits relative to the range of the response.
EFFECT_BITS = 30
# Probabilities are clipped to this and to 1 minus this.
MIN_PROBABILITY = 2.0**-14
# Values of each feature at which the range of responses is measured.
N_RANGE_VALUES = 5
# Scores are clipped to this size.
MAX_SCORE = 2.0**1000


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A model of the predictor's scores, and how good it is; see ``explainer.surrogate_``."""

    trees: tuple[BoostedTrees, ...]
    # By feature the effect of each tree code, which is added to the trees; empty if trees alone
    # predict better.
    effects: tuple[FloatArray, ...]
    link: Link
    threshold: float
    r2: float
    rank_agreement: float
    error: float
    n_rows: int
    n_held_out: int

    @classmethod
    def fit(cls, rows: EncodedRows, scored: ScoredRows, decision: Decision) -> Surrogate | None:
        """Learn from training rows and the predictor's scores of them."""
        link, threshold = _link(scored, decision)
        if link == "label" and isinstance(decision.desired, Interval):
            # Nothing can be learned from infinite scores.
            return None
        response = _response(scored, link)
        table = BinnedColumns.of(rows)
        order = np.lexsort((response, table.rank))
        chosen = order[:: max(-(-order.size // MAX_ROWS), 1)]
        if chosen.size < 2 * HELD_OUT or np.ptp(response[chosen]) == 0:
            return None
        held_out = chosen[HELD_OUT // 2 :: HELD_OUT]
        others, known = chosen[~np.isin(chosen, held_out)], response[held_out]
        inputs = screen(
            table, response, np.arange(len(table.tables)), row_numbers=chosen, most=MAX_INPUTS
        )

        def predict(effects: tuple[FloatArray, ...]) -> FloatArray:
            trees = _boost(table, response - _add_effects(effects, table.codes), inputs, others)
            return _predict(trees, effects, table.codes[:, held_out])

        effects = _fit_effects(rows, response, others)
        left_over = _standard_deviation(known - _add_effects(effects, table.codes[:, held_out]))
        if not effects or left_over > SMALL_ERROR * _standard_deviation(known):
            predicted = predict(())
            if left_over >= _standard_deviation(known - predicted):
                effects = ()
        if effects:
            # With more rows there may be too many terms.
            predicted, effects = predict(effects), _fit_effects(rows, response, chosen) or effects
        trees = _boost(table, response - _add_effects(effects, table.codes), inputs, chosen)
        quality = _quality(predicted, known)
        return cls(trees, effects, link, threshold, *quality, chosen.size, held_out.size)

    @classmethod
    def uninformed(cls) -> Surrogate:
        """A surrogate that knows nothing: every row is valid with probability 1/2."""
        return cls((), (), "label", math.nan, 0.0, 0.0, 0.5, 0, 0)

    def __repr__(self) -> str:
        return (
            f"<Surrogate: r2 {self.r2:.2f} and rank agreement {self.rank_agreement:.2f} on "
            f"{self.n_held_out} of {self.n_rows} training rows>"
        )

    def inputs(self, most: int, among: IntArray) -> IntArray:
        """Positions of the features that matter most, at most ``most`` of those in ``among``.

        Features matter if they have large effects, or if the trees often split on them.
        """
        weight = np.zeros(int(among.max(initial=-1)) + 1)
        for trees in self.trees:
            feature = trees.ensemble.nodes.feature
            used = trees.ensemble.inputs[feature[feature >= 0]]
            weight += np.bincount(used, minlength=weight.size)[: weight.size]
        weight /= weight.max(initial=0.0) or 1.0
        if self.effects:
            sizes = np.array([np.ptp(effect) for effect in self.effects])[: weight.size]
            weight += sizes / (sizes.max(initial=0.0) or 1.0)
        order = among[np.argsort(-weight[among], kind="stable")]
        return order[weight[order] > 0][:most]

    def predict(self, tree_codes: Codes) -> FloatArray:
        """The response to rows, given tree codes of all features."""
        if not self.trees:
            return np.full(tree_codes.shape[1], 0.5)
        return _predict(self.trees, self.effects, tree_codes)

    def response(self, scored: ScoredRows) -> FloatArray:
        """The predictor's scores of rows, on the scale of the surrogate."""
        return _response(scored, self.link)

    def response_range(self, n_codes: IntArray) -> float:
        """The ranges of the responses if one feature at a time varies, summed over the features."""
        codes = np.tile((n_codes // 2)[:, None, None], (1, n_codes.size, N_RANGE_VALUES))
        levels = np.rint(np.linspace(0, n_codes - 1, N_RANGE_VALUES, axis=1))
        codes[np.arange(n_codes.size), np.arange(n_codes.size)] = levels
        response = self.predict(codes.reshape(n_codes.size, -1).astype(np.int32))
        return float(np.ptp(response.reshape(-1, N_RANGE_VALUES), axis=1).sum())

    def desired(self, decision: Decision) -> Interval:
        """The desired responses."""
        if self.link == "label":
            return Interval(0.5, math.inf)
        low, high, margin = self.threshold, math.inf, decision.min_margin
        if isinstance(decision.desired, Interval):
            # No probability is below 0 or above 1, so such ends bound nothing.
            low, high = decision.desired.low, decision.desired.high
            low = -math.inf if decision.columns and low <= 0 else low + margin
            high = math.inf if decision.columns and high >= 1 else high - margin
        elif margin:
            low = max(low, (1 + margin) / 2)
        if self.link == "logit":
            low = -math.inf if low <= 0 else float(logit(np.array([low]))[0])
            high = math.inf if high >= 1 else float(logit(np.array([high]))[0])
        return Interval(low, max(low, high))


def _predict(
    trees: tuple[BoostedTrees, ...], effects: tuple[FloatArray, ...], tree_codes: Codes
) -> FloatArray:
    return predict_each(trees, tree_codes).sum(axis=0) + _add_effects(effects, tree_codes)


def _boost(
    table: BinnedColumns, response: FloatArray, inputs: IntArray, row_numbers: IntArray
) -> tuple[BoostedTrees, ...]:
    """Small trees, then large ones that predict the errors of the small ones."""
    row_numbers = np.sort(row_numbers)
    small = BoostedTrees.fit(table, response, SMALL_TREES, inputs=inputs, row_numbers=row_numbers)
    left_over = np.zeros_like(response)
    left_over[row_numbers] = response[row_numbers] - small.predict(table.codes[:, row_numbers])
    return small, BoostedTrees.fit(
        table, left_over, LARGE_TREES, inputs=inputs, row_numbers=row_numbers
    )


def _fit_effects(
    rows: EncodedRows, response: FloatArray, row_numbers: IntArray
) -> tuple[FloatArray, ...]:
    """For each feature the effect of each tree code; nothing if there are too many terms.

    Effects are rounded, so that no order of additions shows in them. ``row_numbers`` are in an
    order that depends on the rows alone.
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
    unit = 2.0 ** (math.frexp(np.ptp(left_over))[1] - EFFECT_BITS)
    return tuple(
        np.rint(table @ slope / unit) * unit for table, slope in zip(tables, slopes, strict=True)
    )


def _add_effects(effects: Sequence[FloatArray], tree_codes: Codes) -> FloatArray:
    """The summed effects of rows, given tree codes of all features."""
    response = np.zeros(tree_codes.shape[1])
    # No effects at all if trees alone predict better.
    for effect, codes in zip(effects, tree_codes, strict=False):
        response += effect[codes]
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
    """Numbers minus their mean, in standard deviations; 0 for missing.

    All are 0 if the standard deviation is 0 or not finite.
    """
    known = ~np.isnan(numbers)
    n = max(int(counts[known].sum()), 1)
    with np.errstate(all="ignore"):
        centred = numbers - (numbers[known] @ counts[known]) / n
        scaled = centred / np.sqrt((centred[known] ** 2) @ counts[known] / n)
    finite = np.isfinite(scaled[known]).all()
    return np.where(known & finite, scaled, 0.0)


def _link(scored: ScoredRows, decision: Decision) -> tuple[Link, float]:
    """The scale on which to model scores, and for labels the threshold of the scores."""
    threshold = math.nan
    if not np.isfinite(scored.score).all():
        return "label", threshold
    if not isinstance(decision.desired, Interval):
        accepted, refused = scored.score[scored.valid], scored.score[~scored.valid]
        if not decision.columns or not accepted.size or not refused.size:
            return "label", threshold
        if accepted.min() < refused.max():
            return "label", threshold
        threshold = float(accepted.min() / 2 + refused.max() / 2)
    inside = (scored.score >= 0).all() and (scored.score <= 1).all()
    return ("logit" if inside else "identity"), threshold


def _response(scored: ScoredRows, link: Link) -> FloatArray:
    if link == "label":
        return scored.valid.astype(np.float64)
    if link == "logit":
        return logit(scored.score)
    return np.minimum(np.maximum(scored.score, -MAX_SCORE), MAX_SCORE)


def logit(shares: FloatArray) -> FloatArray:
    """Logit of shares, clipped."""
    clipped = np.minimum(np.maximum(shares, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
    return np.log(clipped / (1 - clipped))


def _quality(predicted: FloatArray, response: FloatArray) -> tuple[float, float, float]:
    """Share of variance explained, rank correlation, and typical error."""
    # The median, since a few huge errors say little of the others.
    typical = DEVIATION_PER_MEDIAN * float(np.median(np.abs(response - predicted)))
    # Divided by the largest, so that no square overflows or becomes 0.
    largest = max(np.abs(predicted).max(), np.abs(response).max()) or 1.0
    error, variance = np.mean(((response - predicted) / largest) ** 2), np.var(response / largest)
    # Bounded, since a tiny variance would make it infinite.
    r2 = max(1 - error / variance, -1e9) if variance else 0.0
    ranks = [pd.Series(values).rank().to_numpy() for values in (predicted, response)]
    ranks = [rank - (rank.size + 1) / 2 for rank in ranks]
    size = np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1])
    agreement = ranks[0] @ ranks[1] / size if size else 0.0
    return float(r2), min(max(float(agreement), -1.0), 1.0), typical


def _standard_deviation(values: FloatArray) -> float:
    """Standard deviation of values whose squares may overflow."""
    largest = np.abs(values).max() or 1.0
    return float(largest * np.std(values / largest))
