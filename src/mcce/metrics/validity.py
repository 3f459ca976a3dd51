"""Measures that ask the predictor: success, redundancy, and the decisions of near training rows.

Paper, Experiment 1: the column success. The judge must hold a predictor; it is called afresh, on
frames in the kind and dtypes of training, in chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..kernels import IntArray
from ..postprocess.validation import ROWS_PER_CALL
from ..tables.columns import assemble
from ..tables.dtypes import align_dtype
from .costs import changed
from .evaluator import Evaluator, Pairs, pair, read_rows
from .neighbours import nearest


def success(rows: Any, training: Any) -> pd.Series[Any]:
    """1 for each row that a fresh call of the predictor decides as desired, else 0.

    Parameters
    ----------
    rows
        Counterfactuals: a frame, or the result of ``explain``.
    training
        A :class:`Evaluator` with a predictor.

    Examples
    --------
    >>> training = pd.DataFrame({"salary": [10, 20, 30]})
    >>> evaluator = Evaluator.fit(
    ...     training, predictor=lambda frame: frame["salary"], desired=(20, 99)
    ... )
    >>> success(pd.DataFrame({"salary": [15, 25, None]}), evaluator).tolist()
    [0.0, 1.0, nan]
    """
    evaluator = Evaluator.of(training)
    answers, encoded = read_rows(rows, evaluator)
    return answers.told(evaluator.decides(encoded.frame), "success")


def redundancy(factuals: Any, counterfactuals: Any, training: Any) -> pd.Series[Any]:
    """Number of changes without which the row would still be decided as desired, each by itself.

    Parameters
    ----------
    factuals, counterfactuals
        The people, and a frame or the result of ``explain``.
    training
        A :class:`Evaluator` with a predictor.
    """
    evaluator = Evaluator.of(training)
    pairs = pair(factuals, counterfactuals, evaluator)
    answer, feature = np.nonzero(changed(pairs).T)
    needless = np.empty(answer.size, dtype=bool)
    for start in range(0, answer.size, ROWS_PER_CALL):
        some = slice(start, start + ROWS_PER_CALL)
        needless[some] = evaluator.decides(_put_back(pairs, answer[some], feature[some]))
    counts = np.bincount(answer[needless], minlength=len(pairs.after))
    return pairs.answers.told(counts, "redundancy")


def ynn(rows: Any, training: Any, *, k: int = 5) -> pd.Series[Any]:
    """Share of the k nearest training rows that the predictor decides as desired.

    Nearest by Euclidean distance of range-scaled numbers, 0 or 1 for a category.

    Parameters
    ----------
    rows
        Counterfactuals: a frame, or the result of ``explain``.
    training
        A :class:`Evaluator` with a predictor.
    k
        How many training rows are looked at.
    """
    evaluator = Evaluator.of(training)
    answers, encoded = read_rows(rows, evaluator)
    _, near = nearest(evaluator, encoded, evaluator.rows, k, squared=True)
    return answers.told(evaluator.desired[near].mean(axis=1), "ynn")


def _put_back(pairs: Pairs, answer: IntArray, feature: IntArray) -> pd.DataFrame:
    """Answers, each with the person's own cell in one feature."""
    n_answers, cells = len(pairs.after), []
    for position, known in enumerate(pairs.after.schema.features):
        sides = [side.frame.iloc[:, position] for side in (pairs.after, pairs.before)]
        both = align_dtype(pd.concat(sides, ignore_index=True), known.table, known.kind)
        cells.append(both.take(np.where(feature == position, n_answers + answer, answer)))
    return assemble([c.reset_index(drop=True) for c in cells], pairs.after.frame.columns)
