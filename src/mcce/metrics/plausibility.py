"""How unlike the training data rows are: nearest rows, contradictory levels.

Beyond the paper. None of these uses the trees of step 1, so they treat every method alike. Each
gives one value per row; smaller is more plausible. The distance of two rows is that of ``l1``, the
sum over features of the range-scaled difference.

A pair of levels is contradictory if training has it in less than ``share`` of the rows expected
under independence, n_a * n_b / n, and expects at least ``least_expected``. Chance alone leaves out
a pair that is expected m times with probability exp(-m), so with 20 expected rows a false alarm is
rarer than one in 10^8 pairs.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import (
    MISSING,
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    build_neighbours,
    nearest_distances,
)
from ..parameters import check_choice, check_real
from ..tables.schema import EncodedRows
from .evaluator import Among, ResultLike, Training, read_rows
from .matching import check_k, shared_points

Scale = Literal["range", "ranks"]
# Share of the expected rows below which a pair is contradictory, and the least rows expected.
SHARE, MIN_EXPECTED = 0.01, 20.0


def knn_distance(
    rows: ResultLike,
    training: Training,
    *,
    k: int = 5,
    scale: Scale = "range",
    among: Among = "all",
) -> pd.Series[float]:
    """Mean distance of each row to its k nearest training rows; larger is farther.

    The result of ``explain`` has the measure ``knn_distance_quantile``: the share of real accepted
    rows with a smaller kNN distance.

    Parameters
    ----------
    rows : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data.
    k : int
        Number of training rows.
    scale : {"range", "ranks"}
        Numbers over their training range, or their ranks as shares. Long tails do not dominate
        ranks.
    among : {"all", "desired"}
        Whether all training rows count, or only those with the desired decision.

    Returns
    -------
    Series
        Distances in the unit of :func:`l1`.

    Raises
    ------
    ParameterError
        If ``k`` exceeds the number of training rows.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 30, 60]})
    >>> knn_distance(pd.DataFrame({"age": [24]}), training, k=2).tolist()
    [0.125]
    """
    measured = read_rows(rows, training)
    evaluator = measured.evaluator
    check_choice("scale", scale, ("range", "ranks"))
    is_level, places = evaluator.schema.is_level, evaluator.among(among)
    check_k(k, places.size)
    own, trained = shared_points([measured.after, evaluator.rows])
    if scale == "ranks":
        for at in np.flatnonzero(~is_level):
            known = np.sort(trained[trained[:, at] != MISSING, at])
            own[:, at], trained[:, at] = (_ranks(known, side[:, at]) for side in (own, trained))
    distances = nearest_distances(build_neighbours(trained[places], is_level), own, k)
    return measured.to_series(distances.mean(axis=1), "knn_distance")


def _ranks(known: FloatArray, values: FloatArray) -> FloatArray:
    """Share of the sorted training values below each value, equal ones counted half."""
    below = np.searchsorted(known, values, side="left")
    up_to = np.searchsorted(known, values, side="right")
    return np.where(values == MISSING, MISSING, (below + up_to) / (2 * known.size))


def contradictory_pairs(
    rows: ResultLike,
    training: Training,
    *,
    share: float = SHARE,
    least_expected: float = MIN_EXPECTED,
) -> pd.Series[float]:
    """Count the contradictory pairs of levels in each row.

    Parameters
    ----------
    rows : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data.
    share : float
        Share of the expected rows below which a pair is contradictory.
    least_expected : float
        Rows that independence must predict before a pair can be contradictory.

    Returns
    -------
    Series
        Number of pairs; 0 is right.

    Raises
    ------
    SchemaError
        If the training data have fewer than two categorical features.

    Examples
    --------
    >>> training = pd.DataFrame({"called": ["never", "once"] * 50, "sold": ["no", "yes"] * 50})
    >>> contradictory_pairs(pd.DataFrame({"called": ["never"], "sold": ["yes"]}), training)
    0    1.0
    Name: contradictory_pairs, dtype: float64
    """
    check_real("share", share, "a number from 0 to 1", most=1.0)
    check_real("least_expected", least_expected, "a number of rows > 0", zero=False)
    own = read_rows(rows, training)
    trained, counts = own.evaluator.rows, np.zeros(len(own.after), dtype=np.int64)
    frequent = {at: _frequent(trained.codes[at], least_expected) for at in _categories(trained)}
    for pair in combinations(frequent, 2):
        there, here = (
            [frequent[at][side.codes[at]] for at in pair] for side in (trained, own.after)
        )
        seen = np.zeros([frequent[at][-1] + 1 for at in pair], dtype=np.int64)
        np.add.at(seen, tuple(there), 1)
        counts += _contradictory(seen, share, least_expected)[tuple(here)]
    return own.to_series(counts, "contradictory_pairs")


def _categories(trained: EncodedRows) -> list[int]:
    """Positions of the categorical features, of which there must be two."""
    features = trained.schema.features
    categories = [at for at, feature in enumerate(features) if feature.kind == "categorical"]
    if len(categories) < 2:
        raise SchemaError(
            "contradictory_pairs needs at least two categorical features, the training data have "
            f"{len(categories)}. Declare numbers that are codes with kinds={{name: 'categorical'}}."
        )
    return categories


def _frequent(codes: Codes, least: float) -> IntArray:
    """Number of each code among levels of enough rows, one past the last for others and for -1.

    A pair with a level of fewer rows is expected in fewer: n_a * n_b / n is never more than n_a.
    """
    kept = np.append(np.bincount(codes) >= least, False)
    return np.where(kept, np.cumsum(kept) - 1, kept.sum())


def _contradictory(seen: IntArray, share: float, least: float) -> BoolArray:
    """Which pairs of levels are contradictory; the last row and column stand for rare levels."""
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    contradictory = (expected >= least) & (seen < share * expected)
    contradictory[-1], contradictory[:, -1] = False, False
    return contradictory
