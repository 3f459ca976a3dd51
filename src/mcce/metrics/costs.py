"""What a counterfactual asks of its person, and how many people have one.

Paper, Experiment 1: the columns L0, L1, violation and N_CE of its tables. Takes people and their
answers; gives one number per row of the answers, NaN where there is none.

Always true: a change is an exact difference unless a tolerance is given; of two cells one missing
differs by 1, both by 0; a number differs by its distance over the training range, all else by 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..kernels import BoolArray, FloatArray
from ..parameters import check_real
from ..tables.comparing import changed_cells, gower_gaps
from .evaluator import Evaluator, Pairs, pair, read_people


def sparsity(
    factuals: Any, counterfactuals: Any, training: Any, *, tolerance: float = 0.0
) -> pd.Series[Any]:
    """Number of changed features, the paper's L0.

    Parameters
    ----------
    factuals
        The people.
    counterfactuals
        One row per person, all missing where there is no answer, or the result of ``explain``.
    training
        The training data: a frame, or a :class:`Evaluator`.
    tolerance
        Share of the training range up to which a number counts as unchanged. Only 1e-5, to
        reproduce the paper's tables, has a use: it hides real changes.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 60], "job": ["a", "b"]})
    >>> before, after = training.iloc[[0]], pd.DataFrame({"age": [30], "job": ["a"]})
    >>> sparsity(before, after, training).tolist(), gower(before, after, training).tolist()
    ([1.0], [0.125])
    """
    pairs = pair(factuals, counterfactuals, Evaluator.of(training))
    return pairs.answers.told(_moved(pairs, tolerance).sum(axis=0), "sparsity")


def l1(factuals: Any, counterfactuals: Any, training: Any) -> pd.Series[Any]:
    """Sum over all features of the range-scaled difference, the paper's L1."""
    pairs = pair(factuals, counterfactuals, Evaluator.of(training))
    return pairs.answers.told(gaps(pairs).sum(axis=0), "l1")


def gower(factuals: Any, counterfactuals: Any, training: Any) -> pd.Series[Any]:
    """Mean over all features of the range-scaled difference: ``l1`` over their number."""
    pairs = pair(factuals, counterfactuals, Evaluator.of(training))
    return pairs.answers.told(gaps(pairs).mean(axis=0), "gower")


def violation(
    factuals: Any, counterfactuals: Any, training: Any, *, tolerance: float = 0.0
) -> pd.Series[Any]:
    """Number of immutable features that are changed; arguments as for :func:`sparsity`."""
    evaluator = Evaluator.of(training)
    immutable = evaluator.schema.immutable
    if not immutable.size:
        raise ParameterError(
            "No feature is immutable, so that nothing could be violated. Pass "
            "metrics.Judge.fit(training, immutable=[...]) as training."
        )
    pairs = pair(factuals, counterfactuals, evaluator)
    return pairs.answers.told(_moved(pairs, tolerance)[immutable].sum(axis=0), "violation")


def coverage(factuals: Any, counterfactuals: Any) -> float:
    """Share of the people who have an answer.

    Those whom a result lists as already desired asked for nothing and are not counted; of a frame
    everybody is. NaN if nobody is left.
    """
    _, answers = read_people(factuals, counterfactuals)
    n_asked = int(answers.asked.sum())
    return np.unique(answers.owner).size / n_asked if n_asked else np.nan


def changed(pairs: Pairs) -> BoolArray:
    """Cells that are not the person's own, shape (n_features, n_answers)."""
    return changed_cells(pairs.before, pairs.after)


def gaps(pairs: Pairs) -> FloatArray:
    """How far each cell is from the person's own, shape (n_features, n_answers)."""
    return gower_gaps(pairs.before, pairs.after)


def _moved(pairs: Pairs, tolerance: float) -> BoolArray:
    """Cells that count as changed."""
    check_real("tolerance", tolerance, "a share of the training range from 0 to 1", most=1.0)
    return gaps(pairs) > tolerance if tolerance else changed(pairs)
