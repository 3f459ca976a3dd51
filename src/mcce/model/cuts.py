"""The cut of a conditional inference tree, once the feature to split on is chosen.

Hothorn, Hornik and Zeileis (2006): of all divisions of a node in two by that feature, the one whose
indicator depends most on the response, by the statistic of the same test. For a number that is the
cut that CART would make.

Unordered levels are put in the order of the mean response, one cut of which is the best of all
divisions if the response is a number or has two classes (Fisher 1958). With more classes, up to ten
levels are divided in every way; of more, the best is taken of one level against the rest and of
the cuts in the order of the share of the most frequent class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import Codes, FloatArray, IntArray, times_seen_before

# Levels that are divided in every way.
EXHAUSTIVE = 10


@dataclass(frozen=True, eq=False)
class Cut:
    """A division of a node's rows: the levels of a feature, the first of which go left."""

    statistic: float
    levels: Codes
    n_left: int


@dataclass(frozen=True, eq=False)
class Target:
    """The response in a node: scores of its rows, or their classes, numbered from 0."""

    scores: FloatArray | None = None
    classes: IntArray | None = None

    def mean_by(self, groups: IntArray, sizes: IntArray) -> FloatArray:
        """Mean response of each group, or its share of the most frequent class."""
        values = self.scores
        if values is None:
            assert self.classes is not None
            values = (self.classes == np.argmax(np.bincount(self.classes))).astype(np.float64)
        return np.bincount(groups, weights=values, minlength=sizes.size) / sizes

    def statistics(self, order: IntArray, n_left: IntArray) -> FloatArray:
        """Statistic of the division after each of some places in an order of the rows."""
        n = order.size
        left, right = n_left.astype(np.float64), (n - n_left).astype(np.float64)
        if self.scores is not None:
            own = self.scores - self.scores.mean()
            sums = np.cumsum(own[order])[n_left - 1]
            between = sums * sums * (n / (left * right))
            return (n - 1) * between / (own * own).sum()
        return (n - 1) * n / (left * right) * (self._shares(order)[n_left - 1] - left * left / n)

    def _shares(self, order: IntArray) -> FloatArray:
        """Sum over classes of count^2 / total, of the rows up to each place in an order."""
        assert self.classes is not None
        classes = self.classes[order]
        # One more row of a class that was seen s times adds (2 s + 1) / total.
        steps = (2 * times_seen_before(classes) + 1) / np.bincount(classes)[classes]
        return np.cumsum(steps)

    @property
    def is_binary_or_number(self) -> bool:
        """Whether the order of means holds the best division of levels."""
        return self.classes is None or int(self.classes.max()) < 2


def best_cut(codes: Codes, target: Target, *, ordered: bool, min_samples_leaf: int) -> Cut | None:
    """The admissible cut with the largest statistic, the lowest of those; None without any."""
    levels, groups, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    groups = groups.ravel()
    if ordered:
        return _best_prefix(levels, groups, np.arange(levels.size), target, min_samples_leaf)
    if levels.size <= EXHAUSTIVE and not target.is_binary_or_number:
        return _best_subset(levels, groups, target, min_samples_leaf)
    by_mean = np.argsort(target.mean_by(groups, sizes), kind="stable")
    best = _best_prefix(levels, groups, by_mean, target, min_samples_leaf)
    if target.is_binary_or_number:
        return best
    single = _best_single(levels, groups, sizes, target, min_samples_leaf)
    return single if best is None or (single and single.statistic > best.statistic) else best


def _best_prefix(
    levels: Codes, groups: IntArray, in_order: IntArray, target: Target, least: int
) -> Cut | None:
    """The best cut of levels in an order."""
    place = np.empty(levels.size, dtype=np.int64)
    place[in_order] = np.arange(levels.size)
    places = place[groups]
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=levels.size))[:-1]
    admissible = np.flatnonzero((ends >= least) & (ends <= groups.size - least))
    if not admissible.size:
        return None
    statistics = target.statistics(order, ends[admissible])
    best = int(np.argmax(statistics))
    return Cut(float(statistics[best]), levels[in_order], int(admissible[best]) + 1)


def _best_subset(levels: Codes, groups: IntArray, target: Target, least: int) -> Cut | None:
    """The best of all divisions of a few levels; the last one always goes right."""
    assert target.classes is not None
    n_classes = int(target.classes.max()) + 1
    cells = np.bincount(groups * n_classes + target.classes, minlength=levels.size * n_classes)
    table = cells.reshape(levels.size, n_classes)
    numbers = np.arange(1, 2 ** (levels.size - 1))
    members = (numbers[:, None] >> np.arange(levels.size)) & 1
    statistics = _of_tables(members @ table, table.sum(axis=0), least)
    best = int(np.argmax(statistics)) if statistics.size else 0
    if not statistics.size or np.isneginf(statistics[best]):
        return None
    goes_left = members[best] == 1
    in_order = np.concatenate([levels[goes_left], levels[~goes_left]])
    return Cut(float(statistics[best]), in_order, int(goes_left.sum()))


def _best_single(
    levels: Codes, groups: IntArray, sizes: IntArray, target: Target, least: int
) -> Cut | None:
    """The best division of one level from the rest."""
    assert target.classes is not None
    totals = np.bincount(target.classes)
    at, counts = np.unique(groups * totals.size + target.classes, return_counts=True)
    shares = counts.astype(np.float64) ** 2 / totals[at % totals.size]
    sums = np.bincount(at // totals.size, weights=shares, minlength=levels.size)
    statistics = _of_shares(sums.astype(np.float64), sizes, groups.size, least)
    best = int(np.argmax(statistics))
    if np.isneginf(statistics[best]):
        return None
    others = np.delete(levels, best)
    return Cut(float(statistics[best]), np.append(levels[best], others).astype(levels.dtype), 1)


def _of_tables(left: IntArray, totals: IntArray, least: int) -> FloatArray:
    """Statistics of divisions with so many rows of each class on the left."""
    shares = (left.astype(np.float64) ** 2 / totals).sum(axis=1)
    return _of_shares(shares, left.sum(axis=1), int(totals.sum()), least)


def _of_shares(shares: FloatArray, n_left: IntArray, n: int, least: int) -> FloatArray:
    """The same from sums of count^2 / total; minus infinity where too few rows go one way."""
    left, right = n_left.astype(np.float64), (n - n_left).astype(np.float64)
    inside = (n_left >= max(least, 1)) & (n - n_left >= max(least, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = (n - 1) * n / (left * right) * (shares - left * left / n)
    return np.where(inside, statistics, -np.inf)
