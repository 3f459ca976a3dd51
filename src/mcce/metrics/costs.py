"""What a counterfactual costs the person it is for, and whether it is valid.

Paper, Experiment 1: the columns L0, L1, violation, success and N_CE. Takes factuals and their
counterfactuals; gives one value per counterfactual, NaN where there is none. Measures of validity
need an evaluator with a predictor, which is called anew, in chunks.

Always true: any difference is a change unless a tolerance is given; a missing cell differs from a
value by 1 and from another missing cell by 0.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..kernels import BoolArray, FloatArray, IntArray
from ..parameters import check_real
from ..predictors.decision import ROWS_PER_CALL
from ..tables.columns import assemble, changed_cells
from ..tables.dtypes import align_dtype
from ..tables.schema import gower_gaps
from .evaluator import FrameLike, Pairs, ResultLike, Training, pair, read_pairs, read_rows
from .matching import find_nearest, shared_points


def sparsity(
    factuals: FrameLike, counterfactuals: ResultLike, training: Training, *, tolerance: float = 0.0
) -> pd.Series[float]:
    """Count the changed features of each counterfactual, the paper's L0.

    Parameters
    ----------
    factuals : frame
        The rows to explain.
    counterfactuals : frame or Counterfactuals
        The result of ``explain``, or one row per factual with all cells missing where there is no
        counterfactual.
    training : frame or Evaluator
        The training data.
    tolerance : float
        Share of the training range up to which a number counts as unchanged. It hides real
        changes; use 1e-5 only to reproduce the paper's tables.

    Returns
    -------
    Series
        Number of changes, NaN where there is no counterfactual.

    Raises
    ------
    ParameterError
        If the tolerance is not a share from 0 to 1.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 60], "job": ["a", "b"]})
    >>> before, after = training.iloc[[0]], pd.DataFrame({"age": [30], "job": ["a"]})
    >>> sparsity(before, after, training).tolist()
    [1.0]
    """
    pairs = pair(factuals, counterfactuals, training)
    return pairs.to_series(_changed_by(pairs, tolerance).sum(axis=0), "sparsity")


def l1(factuals: FrameLike, counterfactuals: ResultLike, training: Training) -> pd.Series[float]:
    """Sum the range-scaled differences of all features, the paper's L1.

    Parameters
    ----------
    factuals, counterfactuals, training
        As for :func:`sparsity`.

    Returns
    -------
    Series
        Distances from 0 to the number of features for values inside the training range.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 60], "job": ["a", "b"]})
    >>> before, after = training.iloc[[0]], pd.DataFrame({"age": [30], "job": ["b"]})
    >>> l1(before, after, training).tolist()
    [1.25]
    """
    pairs = pair(factuals, counterfactuals, training)
    return pairs.to_series(gaps(pairs).sum(axis=0), "l1")


def gower(factuals: FrameLike, counterfactuals: ResultLike, training: Training) -> pd.Series[float]:
    """Average the range-scaled differences of all features: :func:`l1` over their number.

    Parameters
    ----------
    factuals, counterfactuals, training
        As for :func:`sparsity`.

    Returns
    -------
    Series
        Distances from 0 to 1 for values inside the training range.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 60], "job": ["a", "b"]})
    >>> before, after = training.iloc[[0]], pd.DataFrame({"age": [30], "job": ["a"]})
    >>> gower(before, after, training).tolist()
    [0.125]
    """
    pairs = pair(factuals, counterfactuals, training)
    return pairs.to_series(gaps(pairs).mean(axis=0), "gower")


def violation(
    factuals: FrameLike, counterfactuals: ResultLike, training: Training, *, tolerance: float = 0.0
) -> pd.Series[float]:
    """Count the immutable features that each counterfactual changes.

    Parameters
    ----------
    factuals, counterfactuals
        As for :func:`sparsity`.
    training : Evaluator
        An evaluator with immutable features.
    tolerance
        As for :func:`sparsity`.

    Returns
    -------
    Series
        Number of violations; 0 is right.

    Raises
    ------
    ParameterError
        If no feature is immutable.

    Examples
    --------
    >>> from mcce.metrics import Evaluator
    >>> training = pd.DataFrame({"age": [20, 60], "job": ["a", "b"]})
    >>> evaluator = Evaluator.fit(training, immutable=["age"])
    >>> violation(training.iloc[[0]], training.iloc[[1]], evaluator).tolist()
    [1.0]
    """
    pairs = pair(factuals, counterfactuals, training)
    immutable = pairs.evaluator.schema.immutable
    if not immutable.size:
        raise ParameterError(
            "violation needs immutable features, but there are none. Pass "
            "metrics.Evaluator.fit(training, immutable=[...]) as training."
        )
    n_changed = _changed_by(pairs, tolerance)[immutable].sum(axis=0)
    return pairs.to_series(n_changed, "violation")


def coverage(factuals: FrameLike, counterfactuals: ResultLike) -> float:
    """Share of the factuals that have a counterfactual.

    Factuals that a result lists as already desired need none and are not counted. In a frame,
    every row counts.

    Parameters
    ----------
    factuals, counterfactuals
        As for :func:`sparsity`.

    Returns
    -------
    float
        From 0 to 1; NaN if no factual needs a counterfactual.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [20, 60]})
    >>> coverage(people, pd.DataFrame({"age": [30, None]}))
    0.5
    """
    _, explained = read_pairs(factuals, counterfactuals)
    n_to_explain = int(explained.to_explain.sum())
    return np.unique(explained.owner).size / n_to_explain if n_to_explain else np.nan


def success(rows: ResultLike, training: Training) -> pd.Series[float]:
    """Whether a new call of the predictor gives each row the desired decision.

    Parameters
    ----------
    rows : frame or Counterfactuals
        The counterfactuals.
    training : Evaluator
        An evaluator with a predictor.

    Returns
    -------
    Series
        1 for the desired decision, 0 for any other, NaN where there is no counterfactual.

    Raises
    ------
    ParameterError
        If the evaluator has no predictor.

    Examples
    --------
    >>> from mcce.metrics import Evaluator
    >>> training = pd.DataFrame({"salary": [10, 20, 30]})
    >>> evaluator = Evaluator.fit(
    ...     training, predictor=lambda frame: frame["salary"], desired=(20, 99)
    ... )
    >>> success(pd.DataFrame({"salary": [15, 25, None]}), evaluator).tolist()
    [0.0, 1.0, nan]
    """
    own = read_rows(rows, training)
    return own.to_series(own.evaluator.decides(own.after.frame), "success")


def redundancy(
    factuals: FrameLike, counterfactuals: ResultLike, training: Training
) -> pd.Series[float]:
    """Count the changes that could be reverted, one at a time, with the row staying valid.

    Parameters
    ----------
    factuals : frame
        The rows to explain.
    counterfactuals : frame or Counterfactuals
        The result of ``explain``, or one row per factual.
    training : Evaluator
        An evaluator with a predictor.

    Returns
    -------
    Series
        Number of redundant changes; of two changes of which either suffices, both count.

    Raises
    ------
    ParameterError
        If the evaluator has no predictor.

    Examples
    --------
    >>> from mcce.metrics import Evaluator
    >>> training = pd.DataFrame({"salary": [10, 20, 30], "debt": [1, 2, 3]})
    >>> evaluator = Evaluator.fit(
    ...     training, predictor=lambda frame: frame["salary"], desired=(20, 99)
    ... )
    >>> redundancy(training.iloc[[0]], training.iloc[[1]], evaluator).tolist()
    [1.0]
    """
    pairs = pair(factuals, counterfactuals, training)
    row, feature = np.nonzero(changed(pairs).T)
    redundant = np.empty(row.size, dtype=bool)
    for start in range(0, row.size, ROWS_PER_CALL):
        part = slice(start, start + ROWS_PER_CALL)
        redundant[part] = pairs.evaluator.decides(_revert(pairs, row[part], feature[part]))
    counts = np.bincount(row[redundant], minlength=len(pairs.after))
    return pairs.to_series(counts, "redundancy")


def ynn(rows: ResultLike, training: Training, *, k: int = 5) -> pd.Series[float]:
    """Share of the k nearest training rows that have the desired decision.

    Nearest by Euclidean distance of range-scaled numbers, with 0 or 1 for a category.

    Parameters
    ----------
    rows : frame or Counterfactuals
        The counterfactuals.
    training : Evaluator
        An evaluator with a predictor.
    k : int
        Number of training rows.

    Returns
    -------
    Series
        Shares from 0 to 1.

    Raises
    ------
    ParameterError
        If the evaluator has no predictor, or ``k`` exceeds the number of training rows.

    Examples
    --------
    >>> from mcce.metrics import Evaluator
    >>> training = pd.DataFrame({"salary": [10, 20, 30]})
    >>> evaluator = Evaluator.fit(
    ...     training, predictor=lambda frame: frame["salary"], desired=(20, 99)
    ... )
    >>> ynn(pd.DataFrame({"salary": [14, 26]}), evaluator, k=2).tolist()
    [0.5, 1.0]
    """
    own = read_rows(rows, training)
    evaluator = own.evaluator
    points, trained = shared_points([own.after, evaluator.rows])
    _, places = find_nearest(points, trained, evaluator.schema.is_level, k, squared=True)
    return own.to_series(evaluator.desired[places].mean(axis=1), "ynn")


def changed(pairs: Pairs) -> BoolArray:
    """Cells that differ from the factual's, shape (n_features, n_counterfactuals)."""
    return changed_cells(pairs.before.frame, pairs.after.frame)


def gaps(pairs: Pairs) -> FloatArray:
    """Scaled difference of each cell, shape (n_features, n_counterfactuals)."""
    return gower_gaps(pairs.before, pairs.after)


def _changed_by(pairs: Pairs, tolerance: float) -> BoolArray:
    """Cells that differ by more than the tolerance."""
    check_real("tolerance", tolerance, "a share of the training range from 0 to 1", most=1.0)
    return gaps(pairs) > tolerance if tolerance else changed(pairs)


def _revert(pairs: Pairs, row: IntArray, feature: IntArray) -> pd.DataFrame:
    """Counterfactuals, each with one feature set back to the factual's value."""
    n_rows, cells = len(pairs.after), []
    for position, known in enumerate(pairs.after.schema.features):
        sides = [side.frame.iloc[:, position] for side in (pairs.after, pairs.before)]
        both = align_dtype(pd.concat(sides, ignore_index=True), known.table, known.kind)
        cells.append(both.take(np.where(feature == position, n_rows + row, row)))
    return assemble([c.reset_index(drop=True) for c in cells], pairs.after.frame.columns)
