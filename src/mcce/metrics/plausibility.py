"""How unlike the training data rows are: nearest rows, outlier factor, isolation forest.

Beyond the paper. None of these uses the trees of step 1, so they treat every method alike. Each
gives one value per row; smaller is more plausible.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import FloatArray, IntArray, rows_as_bytes
from ..parameters import check_count
from ..tables.schema import EncodedRows
from .evaluator import Among, Evaluator, FrameLike, ResultLike, as_evaluator, read_rows, scaled
from .neighbours import Scale, nearest


def knn_distance(
    rows: ResultLike,
    training: FrameLike | Evaluator,
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
    evaluator = as_evaluator(training)
    explained, encoded = read_rows(rows, evaluator)
    places = evaluator.among(among)
    distances, _ = nearest(evaluator, encoded, evaluator.rows, k, among=places, scale=scale)
    return explained.to_series(distances.mean(axis=1), "knn_distance")


def outlier_factor(
    rows: ResultLike,
    training: FrameLike | Evaluator,
    *,
    k: int = 20,
    among: Among = "all",
) -> pd.Series[float]:
    """Local outlier factor of each row: about 1 for a typical row, larger for an outlier.

    Euclidean on range-scaled numbers, with 0 or 1 for a category. Of equal training rows only one
    counts, since many would be infinitely dense. Takes time quadratic in the training rows.

    Parameters
    ----------
    rows, training
        As for :func:`knn_distance`.
    k : int
        Number of neighbours.
    among
        As for :func:`knn_distance`.

    Returns
    -------
    Series
        Outlier factors.

    Raises
    ------
    ParameterError
        If there are not more than ``k`` distinct training rows.

    Examples
    --------
    >>> training = pd.DataFrame({"age": range(20, 60)})
    >>> outlier_factor(pd.DataFrame({"age": [40, 200]}), training, k=5).round(1).tolist()
    [1.0, 40.3]
    """
    from sklearn.neighbors import LocalOutlierFactor

    evaluator = as_evaluator(training)
    explained, encoded = read_rows(rows, evaluator)
    places = distinct(evaluator, among)
    check_count("k", k)
    if k >= places.size:
        raise ParameterError(
            f"k must be less than the number of distinct training rows, {places.size}, got "
            f"{shorten(k)}."
        )
    model = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(
        matrix(evaluator, evaluator.rows)[places]
    )
    return explained.to_series(_anomaly(model, matrix(evaluator, encoded)), "outlier_factor")


def distinct(evaluator: Evaluator, among: Among) -> IntArray:
    """Positions of training rows, of equal ones the first."""
    places = evaluator.among(among)
    cells = rows_as_bytes(evaluator.rows.exact[:, places].T)
    return places[np.sort(np.unique(cells, return_index=True)[1])]


def isolation(
    rows: ResultLike,
    training: FrameLike | Evaluator,
    *,
    among: Among = "all",
    random_state: int = 0,
) -> pd.Series[float]:
    """Anomaly score of an isolation forest of 100 trees; larger is easier to isolate.

    Parameters
    ----------
    rows, training, among
        As for :func:`knn_distance`.
    random_state : int
        Seed of the forest.

    Returns
    -------
    Series
        Scores between 0 and 1.

    Examples
    --------
    >>> training = pd.DataFrame({"age": range(20, 60)})
    >>> usual, unusual = isolation(pd.DataFrame({"age": [40, 90]}), training)
    >>> usual < unusual
    True
    """
    from sklearn.ensemble import IsolationForest

    check_count("random_state", random_state, least=0)
    evaluator = as_evaluator(training)
    explained, encoded = read_rows(rows, evaluator)
    model = IsolationForest(n_estimators=100, random_state=random_state)
    model.fit(matrix(evaluator, evaluator.rows)[evaluator.among(among)])
    return explained.to_series(_anomaly(model, matrix(evaluator, encoded)), "isolation")


def matrix(evaluator: Evaluator, rows: EncodedRows) -> FloatArray:
    """Rows as a matrix without gaps, shape (n_rows, n_columns).

    A number is scaled to [0, 1] in training. A second column marks it as missing, in which case
    the first holds the training median. A category has a column per level and one for levels not
    in training; two different levels are at Euclidean distance 1.
    """
    parts = []
    for position, feature in enumerate(evaluator.schema.features):
        own, trained = scaled(rows, position), scaled(evaluator.rows, position)
        if own is None or trained is None:
            exact = rows.exact[position]
            codes = np.where(exact < 0, feature.n_codes, exact)
            parts.append((codes[:, None] == np.arange(feature.n_codes + 1)) / np.sqrt(2.0))
            continue
        missing = np.isnan(own)
        parts.append(np.column_stack([np.where(missing, np.nanmedian(trained), own), missing]))
    return np.concatenate(parts, axis=1)


class _Scorer(Protocol):
    def score_samples(self, X: FloatArray) -> FloatArray: ...


def _anomaly(model: _Scorer, points: FloatArray) -> FloatArray:
    """Score of each row; scikit-learn gives it with the opposite sign."""
    return -model.score_samples(points) if len(points) else np.empty(0)
