"""Step 1 by conditional inference trees, the default of the authors' R package.

Hothorn, Hornik and Zeileis (2006). A node is split only if some feature depends on the one that the
tree predicts, by a test of independence that is adjusted for the number of tests; it is split on
the most significant one. So features with many values are not preferred, and trees are far
shallower than CART: leaves are large, their values more diverse but less conditional.

The test is the permutation test with a quadratic form, by its asymptotic chi-square distribution.
With every kind of column it has a closed form: n - 1 times the squared correlation of two numbers,
or the share of a number's variance between levels; (n - 1) / n times Pearson's chi-square of two
categorical columns. Levels that the node does not hold do not count. P-values of strong dependence
underflow from some 10,000 rows on; their logarithms do not, so the stronger of two can be told.

Of all divisions of the node by the chosen feature, the cut is the one whose indicator depends most
on the response, by the same statistic. Unordered levels are put in the order of the mean response,
one cut of which is the best of all divisions if the response is a number or has two classes (Fisher
1958). With more classes, up to ten levels are divided in every way; of more, the best is taken of
one level against the rest and of the cuts in the order of the share of the most frequent class.

Always true: the trees depend on the training rows as a set, not on their order or on threads.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    NodeRows,
    Split,
    SplitColumns,
    Trees,
    check_cancellation,
    grow_with,
    sort_rows,
    split_after,
    times_seen_before,
    with_decision,
)
from ..parameters import check_real
from ..tables.schema import EncodedRows
from .growing import GrowTask, at_most, check_at_least, check_growth, grow_chain
from .leaves import LeafChain, ListedLeaves

# The largest criterion: p-values are above 0.
BELOW_1 = math.nextafter(1, 0)
# Features that a node tries to split on, the most significant first.
MAX_TRIED_FEATURES = 2
# A table of two columns is stored densely if it has at most this many cells per row of the node.
CELLS_PER_ROW = 8
# Levels that are divided in every way.
MAX_EXHAUSTIVE_LEVELS = 10
# Beyond this, the complementary error function comes from its asymptotic series.
SERIES_START = 20.0
# With more degrees of freedom, only the terms around the largest one are summed. Two columns of
# 10,000 levels have a hundred million degrees of freedom, and half as many terms.
MANY_DEGREES = 2_000
# Terms this many standard deviations from the largest are below its rounding.
WIDTH = 10.0


class InferenceTreeChain(ListedLeaves, LeafChain, BaseEstimator):
    """A conditional inference tree for each mutable feature given those before it.

    Parameters
    ----------
    min_criterion
        A node is split if 1 minus the adjusted p-value of some feature is at least this
        (``mincriterion`` of the R packages).
    min_samples_split
        Smallest number of training rows in a node that is split (``minsplit``).
    min_samples_leaf
        Smallest number of training rows in a leaf (``minbucket``).
    max_depth, visit_order, condition_on_decision, decisions, max_inputs
        As for :class:`TreeChain`.

    Attributes
    ----------
    forest_ : Forest
        All that was learned; ``trees_``, ``visit_order_`` and ``n_levels_`` are parts of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> frame = pd.DataFrame({"age": [30, 40] * 20, "salary": range(40)})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> chain = InferenceTreeChain().fit(rows, frame["salary"].to_numpy() > 19)
    >>> chain.trees_.feature[0]  # the decision, which comes after all columns
    np.int32(2)
    """

    def __init__(
        self,
        *,
        min_criterion: float = 0.95,
        min_samples_split: int = 20,
        min_samples_leaf: int = 7,
        max_depth: int | None = None,
        visit_order: str | Sequence[Hashable] = "data",
        condition_on_decision: bool = True,
        decisions: tuple[bool, ...] = (True,),
        max_inputs: int | None = None,
    ) -> None:
        self.min_criterion = min_criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.visit_order = visit_order
        self.condition_on_decision = condition_on_decision
        self.decisions = decisions
        self.max_inputs = max_inputs

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Grow one tree per mutable feature.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Ignored, threads for one tree each, and whether to show a progress bar.

        Returns
        -------
        InferenceTreeChain
            Itself.
        """
        self._check()
        columns = _test_columns(rows, is_desired)
        # Sorted, so that sums do not depend on the order of the rows.
        in_order = sort_rows(columns.codes)

        def grow(task: GrowTask) -> list[Trees]:
            least = at_most(self.min_samples_leaf)
            task = replace(task, growth=replace(task.growth, min_samples_leaf=least))
            finder = _Splits(columns, task, float(self.min_criterion))
            codes = rows.tree_codes[task.column]
            return [grow_with(finder.find, in_order, codes, task.growth)]

        order, trees = grow_chain(self, rows, is_desired, grow, n_jobs=n_jobs, verbose=verbose)
        return self._keep(rows.schema, order, trees)

    def _check(self) -> None:
        check_at_least("min_samples_leaf", self.min_samples_leaf, 1)
        check_growth(self)
        check_real("min_criterion", self.min_criterion, "from 0 to below 1", most=BELOW_1)


class _Splits:
    """The splits of one tree."""

    def __init__(self, columns: TestColumns, task: GrowTask, min_criterion: float) -> None:
        self.test_columns, self.task = columns, task
        self.min_criterion = min_criterion

    def find(self, node: NodeRows) -> Split | None:
        """The split of a node, None where nothing is significant or can be cut."""
        check_cancellation()
        row_numbers, growth = node.row_numbers, self.task.growth
        too_deep = growth.max_depth is not None and node.depth >= growth.max_depth
        least = max(growth.min_samples_split, 2 * growth.min_samples_leaf)
        if row_numbers.size < least or too_deep:
            return None
        tests = dependences(self.test_columns, self.task.inputs, row_numbers, self.task.column)
        for test in tests[:MAX_TRIED_FEATURES]:
            if not is_significant(test.log_p, self.task.inputs.size, self.min_criterion):
                return None
            codes = self.test_columns.codes[test.column][row_numbers]
            cut = best_cut(
                codes,
                self._target(row_numbers),
                ordered=bool(self.task.columns.ordered[test.column]),
                min_samples_leaf=growth.min_samples_leaf,
            )
            if cut is not None:
                return _split_at(self.task.columns, test.column, codes, cut)
        return None

    def _target(self, row_numbers: IntArray) -> Target:
        column = self.task.column
        if self.test_columns.by_value[column]:
            return Target(values=self.test_columns.values[column][row_numbers])
        _, classes = np.unique(self.test_columns.codes[column][row_numbers], return_inverse=True)
        return Target(classes=classes.ravel())


def is_significant(log_p: float, n_tests: int, min_criterion: float) -> bool:
    """Whether (1 - p)^m, 1 minus the adjusted p-value of one of m tests, reaches the criterion."""
    if min_criterion <= 0.0:
        return True
    p = math.exp(log_p)
    return p < 1.0 and n_tests * math.log1p(-p) >= math.log(min_criterion)


def _split_at(columns: SplitColumns, column: int, codes: IntArray, cut: Cut) -> Split:
    goes_left = np.isin(codes, cut.levels[: cut.n_left])
    return split_after(columns, column, cut.statistic, cut.levels, cut.n_left - 1, goes_left)


def _test_columns(rows: EncodedRows, is_desired: BoolArray) -> TestColumns:
    """The columns, and after them the decision, as the tests take them."""
    features = rows.schema.features
    by_value = np.array([feature.ordered for feature in features] + [True])
    codes = with_decision(rows.codes, is_desired)
    values = np.zeros(codes.shape)
    for column in np.flatnonzero(by_value):
        numbers = rows.numbers(int(column)) if column < len(features) else None
        own = codes[column].astype(np.float64) if numbers is None else numbers
        values[column] = _from_0_to_1(own)
    n_codes = np.array([feature.n_codes for feature in features] + [2])
    return TestColumns(codes, values, by_value, n_codes)


def _from_0_to_1(values: FloatArray) -> FloatArray:
    """Values as shares of their range; missing ones as far above it as it is wide."""
    missing = np.isnan(values)
    if missing.all():
        return np.zeros(values.size)
    # Halves, as the range of numbers near the largest ones is beyond them.
    halves = values / 2
    low = np.nanmin(halves)
    spread = np.nanmax(halves) - low
    shares = (halves - low) / spread if spread > 0 else np.zeros(values.size)
    return np.where(missing, 2.0, shares)


@dataclass(frozen=True, eq=False)
class TestColumns:
    """Columns as the tests take them: by a value of each row, or by its level."""

    codes: Codes
    values: FloatArray
    by_value: BoolArray
    n_codes: IntArray


@dataclass(frozen=True, slots=True)
class Dependence:
    """Dependence of the response on a column: statistic and log p-value."""

    column: int
    statistic: float
    log_p: float

    @property
    def order(self) -> tuple[float, float, int]:
        """The smallest p-value comes first, then the largest statistic, then the lowest column."""
        return self.log_p, -self.statistic, self.column


def dependences(
    columns: TestColumns, inputs: IntArray, row_numbers: IntArray, response: int
) -> list[Dependence]:
    """The test of each input that varies in a node, the most significant first."""
    codes = columns.codes[np.append(inputs, response)[:, None], row_numbers]
    varies = (codes != codes[:, :1]).any(axis=1)
    varying = inputs[varies[:-1]]
    if not varying.size or not varies[-1]:
        return []
    by_value = columns.by_value[varying]
    tests = [
        *_test_values(columns, varying[by_value], row_numbers, response),
        *_test_levels(columns, varying[~by_value], row_numbers, response),
    ]
    return sorted(tests, key=lambda test: test.order)


def _test_values(
    columns: TestColumns, inputs: IntArray, row_numbers: IntArray, response: int
) -> list[Dependence]:
    """Inputs with values, against a number or levels."""
    if not inputs.size:
        return []
    centred = columns.values[inputs[:, None], row_numbers]
    centred -= centred.mean(axis=1, keepdims=True)
    squares = np.einsum("ij,ij->i", centred, centred)
    if columns.by_value[response]:
        own = columns.values[response][row_numbers]
        own = own - own.mean()
        products = np.einsum("ij,j->i", centred, own)
        shares, freedom = products * products / (squares * (own * own).sum()), 1
    else:
        groups, sizes = _groups(
            columns.codes[response][row_numbers], int(columns.n_codes[response])
        )
        sums = np.array([np.bincount(groups, weights=own, minlength=sizes.size) for own in centred])
        shares, freedom = (sums * sums / sizes).sum(axis=1) / squares, sizes.size - 1
    return [
        _dependence(int(column), (row_numbers.size - 1) * float(share), freedom)
        for column, share in zip(inputs, np.minimum(shares, 1.0), strict=True)
    ]


def _test_levels(
    columns: TestColumns, inputs: IntArray, row_numbers: IntArray, response: int
) -> list[Dependence]:
    """Categorical inputs, against a number or levels."""
    if not inputs.size:
        return []
    tests, n_rows = [], row_numbers.size
    levels = (
        (int(column), *_groups(columns.codes[column][row_numbers], int(columns.n_codes[column])))
        for column in inputs
    )
    if columns.by_value[response]:
        own = columns.values[response][row_numbers]
        own = own - own.mean()
        squares = float((own * own).sum())
        for column, groups, sizes in levels:
            sums = np.bincount(groups, weights=own, minlength=sizes.size)
            share = min(float((sums * sums / sizes).sum()) / squares, 1.0)
            tests.append(_dependence(column, (n_rows - 1) * share, sizes.size - 1))
        return tests
    classes, totals = _groups(columns.codes[response][row_numbers], int(columns.n_codes[response]))
    for column, groups, sizes in levels:
        phi_squared = max(_sum_of_shares(groups, sizes, classes, totals) - 1.0, 0.0)
        freedom = (sizes.size - 1) * (totals.size - 1)
        tests.append(_dependence(column, (n_rows - 1) * phi_squared, freedom))
    return tests


def _dependence(column: int, statistic: float, freedom: int) -> Dependence:
    return Dependence(column, statistic, log_survival(statistic, freedom))


def _groups(codes: Codes, n_codes: int) -> tuple[IntArray, IntArray]:
    """The levels of a node, numbered from 0, and how many rows have each."""
    if n_codes > CELLS_PER_ROW * codes.size:
        _, groups, sizes = np.unique(codes, return_inverse=True, return_counts=True)
        return groups.ravel(), sizes
    counts = np.bincount(codes, minlength=n_codes)
    present = counts > 0
    return (np.cumsum(present) - 1)[codes], counts[present]


def _sum_of_shares(groups: IntArray, sizes: IntArray, classes: IntArray, totals: IntArray) -> float:
    """Sum over the cells of a table of count^2 / (row total * column total)."""
    cell = groups * totals.size + classes
    if sizes.size * totals.size <= CELLS_PER_ROW * cell.size:
        counts = np.bincount(cell, minlength=sizes.size * totals.size)
        cells = np.flatnonzero(counts)
        counts = counts[cells]
    else:
        cells, counts = np.unique(cell, return_counts=True)
    expected = sizes[cells // totals.size].astype(np.float64) * totals[cells % totals.size]
    return float((counts.astype(np.float64) ** 2 / expected).sum())


@dataclass(frozen=True, eq=False)
class Cut:
    """A division of a node's rows: the levels of a feature, the first of which go left."""

    statistic: float
    levels: Codes
    n_left: int


@dataclass(frozen=True, eq=False)
class Target:
    """The response in a node: values of its rows, or their classes, numbered from 0."""

    values: FloatArray | None = None
    classes: IntArray | None = None

    def mean_by(self, groups: IntArray, sizes: IntArray) -> FloatArray:
        """Mean response of each group, or its share of the most frequent class."""
        values = self.values
        if values is None:
            assert self.classes is not None
            values = (self.classes == np.argmax(np.bincount(self.classes))).astype(np.float64)
        return np.bincount(groups, weights=values, minlength=sizes.size) / sizes

    def statistics(self, order: IntArray, n_left: IntArray) -> FloatArray:
        """Statistic of the division after each of some ranks in an order of the rows."""
        n_rows = order.size
        left, right = n_left.astype(np.float64), (n_rows - n_left).astype(np.float64)
        if self.values is not None:
            own = self.values - self.values.mean()
            sums = np.cumsum(own[order])[n_left - 1]
            between = sums * sums * (n_rows / (left * right))
            return (n_rows - 1) * between / (own * own).sum()
        scale = (n_rows - 1) * n_rows / (left * right)
        return scale * (self._shares(order)[n_left - 1] - left * left / n_rows)

    def _shares(self, order: IntArray) -> FloatArray:
        """Sum over classes of count^2 / total, of the rows up to each rank in an order."""
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
    if levels.size <= MAX_EXHAUSTIVE_LEVELS and not target.is_binary_or_number:
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
    rank_of = np.empty(levels.size, dtype=np.int64)
    rank_of[in_order] = np.arange(levels.size)
    ranks = rank_of[groups]
    order = np.argsort(ranks, kind="stable")
    ends = np.cumsum(np.bincount(ranks, minlength=levels.size))[:-1]
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
    cells, counts = np.unique(groups * totals.size + target.classes, return_counts=True)
    shares = counts.astype(np.float64) ** 2 / totals[cells % totals.size]
    sums = np.bincount(cells // totals.size, weights=shares, minlength=levels.size)
    statistics = _of_shares(sums.astype(np.float64), sizes, groups.size, least)
    best = int(np.argmax(statistics))
    if np.isneginf(statistics[best]):
        return None
    others = np.delete(levels, best)
    return Cut(float(statistics[best]), np.append(levels[best], others).astype(levels.dtype), 1)


def _of_tables(left: IntArray, totals: IntArray, least: int) -> FloatArray:
    """Statistics of divisions by the number of rows of each class on the left."""
    shares = (left.astype(np.float64) ** 2 / totals).sum(axis=1)
    return _of_shares(shares, left.sum(axis=1), int(totals.sum()), least)


def _of_shares(shares: FloatArray, n_left: IntArray, n_rows: int, least: int) -> FloatArray:
    """Statistics of divisions by their sums of count^2 / total on the left, and rows there.

    Minus infinity where too few rows go one way.
    """
    left, right = n_left.astype(np.float64), (n_rows - n_left).astype(np.float64)
    inside = (n_left >= max(least, 1)) & (n_rows - n_left >= max(least, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = (n_rows - 1) * n_rows / (left * right) * (shares - left * left / n_rows)
    return np.where(inside, statistics, -np.inf)


def log_survival(statistic: float, freedom: int) -> float:
    """Log-probability that a chi-square variable is at least as large as a statistic.

    Examples
    --------
    >>> round(math.exp(log_survival(3.841459, 1)), 6)
    0.05
    >>> log_survival(1e5, 3) < log_survival(9e4, 3) < -40_000
    True
    """
    if statistic <= 0.0:
        return 0.0
    half = statistic / 2
    if freedom <= 2:
        return -half if freedom == 2 else _log_erfc(math.sqrt(half))
    if freedom > MANY_DEGREES:
        terms = _largest_terms(half, freedom)
    else:
        terms = _log_factors(freedom) + _exponents(freedom) * math.log(half) - half
    tail = [] if freedom % 2 == 0 else [_log_erfc(math.sqrt(half))]
    return _log_sum(np.append(terms, tail))


def _log_sum(logs: FloatArray) -> float:
    """The logarithm of a probability that is a sum, from the logarithms of its terms."""
    highest = float(logs.max())
    # Rounding may leave the sum a little above 1.
    return min(highest + math.log(float(np.exp(logs - highest).sum())), 0.0)


def _largest_terms(half: float, freedom: int) -> FloatArray:
    """Logarithms of the terms that count: those with exponents near half the statistic.

    The exponents are whole numbers for even degrees of freedom, otherwise half of odd ones; the
    logarithm of the largest term is known, those of the others follow by their ratios.
    """
    lowest, last = (freedom % 2) / 2, freedom / 2 - 1
    peak = lowest + max(0.0, math.floor(min(half, last) - lowest))
    reach = math.ceil(WIDTH * math.sqrt(peak)) + 100.0
    below = np.arange(peak, max(peak - reach, lowest), -1.0)
    above = np.arange(peak + 1.0, min(peak + reach, last) + 0.5)
    log_half = math.log(half)
    at_peak = peak * log_half - half - math.lgamma(peak + 1.0)
    logs = (np.cumsum(np.log(below) - log_half), np.cumsum(log_half - np.log(above)))
    return at_peak + np.concatenate([[0.0], *logs])


@lru_cache(maxsize=256)
def _log_factors(freedom: int) -> FloatArray:
    """Minus the log-gamma of j + 1 (even freedom) or j + 1/2 (odd, from j = 1), for each term."""
    if freedom % 2 == 0:
        steps = np.arange(1.0, freedom // 2)
        return -np.append(0.0, np.cumsum(np.log(steps)))
    steps = np.arange(1.0, (freedom - 1) // 2 + 1) - 0.5
    return -(np.cumsum(np.log(steps)) + math.log(math.pi) / 2)


@lru_cache(maxsize=256)
def _exponents(freedom: int) -> FloatArray:
    if freedom % 2 == 0:
        return np.arange(freedom // 2, dtype=np.float64)
    halves: FloatArray = np.arange(1, (freedom - 1) // 2 + 1, dtype=np.float64) - 0.5
    return halves


def _log_erfc(z: float) -> float:
    """Log of the complementary error function of a positive number."""
    if z < SERIES_START:
        return math.log(math.erfc(z))
    # 1 - 1/(2z^2) + 3/(2z^2)^2 - 15/(2z^2)^3 + ...; at 20 the fifth term is below 1e-12.
    step, series, term = 1.0 / (2.0 * z * z), 1.0, 1.0
    for k in range(1, 9):
        term *= -(2 * k - 1) * step
        series += term
    return -z * z - math.log(z * math.sqrt(math.pi)) + math.log(series)
