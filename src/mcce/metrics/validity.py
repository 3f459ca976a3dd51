"""Measures that call the predictor: success, redundancy, and decisions of nearby training rows.

Paper, Experiment 1: the column success. The evaluator must have a predictor; it is called anew,
on frames in the kind and dtypes of training, in chunks.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..kernels import IntArray
from ..postprocess.validation import ROWS_PER_CALL
from ..tables.columns import assemble
from ..tables.dtypes import align_dtype
from .costs import changed
from .evaluator import Evaluator, FrameLike, Pairs, ResultLike, as_evaluator, pair, read_rows
from .neighbours import nearest


def success(rows: ResultLike, training: Evaluator) -> pd.Series[float]:
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
    >>> training = pd.DataFrame({"salary": [10, 20, 30]})
    >>> evaluator = Evaluator.fit(
    ...     training, predictor=lambda frame: frame["salary"], desired=(20, 99)
    ... )
    >>> success(pd.DataFrame({"salary": [15, 25, None]}), evaluator).tolist()
    [0.0, 1.0, nan]
    """
    evaluator = as_evaluator(training)
    explained, encoded = read_rows(rows, evaluator)
    return explained.to_series(evaluator.decides(encoded.frame), "success")


def redundancy(
    factuals: FrameLike, counterfactuals: ResultLike, training: Evaluator
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
    >>> training = pd.DataFrame({"salary": [10, 20, 30], "debt": [1, 2, 3]})
    >>> evaluator = Evaluator.fit(
    ...     training, predictor=lambda frame: frame["salary"], desired=(20, 99)
    ... )
    >>> redundancy(training.iloc[[0]], training.iloc[[1]], evaluator).tolist()
    [1.0]
    """
    evaluator = as_evaluator(training)
    pairs = pair(factuals, counterfactuals, evaluator)
    row, feature = np.nonzero(changed(pairs).T)
    redundant = np.empty(row.size, dtype=bool)
    for start in range(0, row.size, ROWS_PER_CALL):
        part = slice(start, start + ROWS_PER_CALL)
        redundant[part] = evaluator.decides(_revert(pairs, row[part], feature[part]))
    counts = np.bincount(row[redundant], minlength=len(pairs.after))
    return pairs.explained.to_series(counts, "redundancy")


def ynn(rows: ResultLike, training: Evaluator, *, k: int = 5) -> pd.Series[float]:
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
    >>> training = pd.DataFrame({"salary": [10, 20, 30]})
    >>> evaluator = Evaluator.fit(
    ...     training, predictor=lambda frame: frame["salary"], desired=(20, 99)
    ... )
    >>> ynn(pd.DataFrame({"salary": [14, 26]}), evaluator, k=2).tolist()
    [0.5, 1.0]
    """
    evaluator = as_evaluator(training)
    explained, encoded = read_rows(rows, evaluator)
    _, places = nearest(evaluator, encoded, evaluator.rows, k, squared=True)
    return explained.to_series(evaluator.desired[places].mean(axis=1), "ynn")


def _revert(pairs: Pairs, row: IntArray, feature: IntArray) -> pd.DataFrame:
    """Counterfactuals, each with one feature set back to the factual's value."""
    n_rows, cells = len(pairs.after), []
    for position, known in enumerate(pairs.after.schema.features):
        sides = [side.frame.iloc[:, position] for side in (pairs.after, pairs.before)]
        both = align_dtype(pd.concat(sides, ignore_index=True), known.table, known.kind)
        cells.append(both.take(np.where(feature == position, n_rows + row, row)))
    return assemble([c.reset_index(drop=True) for c in cells], pairs.after.frame.columns)
