"""How unlike the training data rows are: nearest rows, outlier factor, contradictory levels.

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
from typing import Literal, Protocol

import numpy as np
import pandas as pd

from ..errors import ParameterError, SchemaError, shorten
from ..kernels import (
    MISSING,
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    build_neighbours,
    nearest_distances,
    rows_as_bytes,
)
from ..parameters import check_choice, check_count, check_real
from ..tables.schema import EncodedRows
from .evaluator import Among, Evaluator, FrameLike, ResultLike, as_evaluator, read_rows
from .matching import check_k, shared_points

Scale = Literal["range", "ranks"]
# Share of the expected rows below which a pair is contradictory, and the least rows expected.
SHARE, MIN_EXPECTED = 0.01, 20.0


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
    check_choice("scale", scale, ("range", "ranks"))
    is_level, places = evaluator.schema.is_level, evaluator.among(among)
    check_k(k, places.size)
    own, trained = shared_points([encoded, evaluator.rows])
    if scale == "ranks":
        for at in np.flatnonzero(~is_level):
            known = np.sort(trained[trained[:, at] != MISSING, at])
            own[:, at], trained[:, at] = (_ranks(known, side[:, at]) for side in (own, trained))
    distances = nearest_distances(build_neighbours(trained[places], is_level), own, k)
    return explained.to_series(distances.mean(axis=1), "knn_distance")


def _ranks(known: FloatArray, values: FloatArray) -> FloatArray:
    """Share of the sorted training values below each value, equal ones counted half."""
    below = np.searchsorted(known, values, side="left")
    up_to = np.searchsorted(known, values, side="right")
    return np.where(values == MISSING, MISSING, (below + up_to) / (2 * known.size))


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
    detector = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(
        evaluator.matrix(evaluator.rows)[places]
    )
    return explained.to_series(_anomaly(detector, evaluator.matrix(encoded)), "outlier_factor")


def distinct(evaluator: Evaluator, among: Among) -> IntArray:
    """Positions of training rows, of equal ones the first."""
    places = evaluator.among(among)
    cells = rows_as_bytes(evaluator.rows.codes[:, places].T)
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
    detector = IsolationForest(n_estimators=100, random_state=random_state)
    detector.fit(evaluator.matrix(evaluator.rows)[evaluator.among(among)])
    return explained.to_series(_anomaly(detector, evaluator.matrix(encoded)), "isolation")


class _Scorer(Protocol):
    def score_samples(self, X: FloatArray) -> FloatArray: ...


def _anomaly(detector: _Scorer, points: FloatArray) -> FloatArray:
    """Score of each row; scikit-learn gives it with the opposite sign."""
    return -detector.score_samples(points) if len(points) else np.empty(0)


def contradictory_pairs(
    rows: ResultLike,
    training: FrameLike | Evaluator,
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
    evaluator = as_evaluator(training)
    explained, encoded = read_rows(rows, evaluator)
    categories = _categories(evaluator)
    counts = np.zeros(len(encoded), dtype=np.int64)
    for features in combinations(categories, 2):
        kept = [_frequent(evaluator.rows.codes[at], least_expected) for at in features]
        trained = _places_of(evaluator.rows, features, kept)
        seen = np.zeros((kept[0].size + 1, kept[1].size + 1), dtype=np.int64)
        np.add.at(seen, trained, 1)
        contradictory = _contradictory(seen, share, least_expected)
        counts += contradictory[_places_of(encoded, features, kept)]
    return explained.to_series(counts, "contradictory_pairs")


def _categories(evaluator: Evaluator) -> list[int]:
    """Positions of the categorical features, of which there must be two."""
    features = evaluator.schema.features
    categories = [at for at, feature in enumerate(features) if feature.kind == "categorical"]
    if len(categories) < 2:
        raise SchemaError(
            "contradictory_pairs needs at least two categorical features, the training data have "
            f"{len(categories)}. Declare numbers that are codes with kinds={{name: 'categorical'}}."
        )
    return categories


def _frequent(codes: Codes, least: float) -> IntArray:
    """Levels in at least ``least`` rows: n_a * n_b / n is never more than n_a."""
    return np.flatnonzero(np.bincount(codes) >= least)


def _places_of(
    rows: EncodedRows, features: tuple[int, ...], kept: list[IntArray]
) -> tuple[IntArray, ...]:
    """Place of each row's level among the kept ones, feature by feature."""
    return tuple(_places(rows.codes[at], levels) for at, levels in zip(features, kept, strict=True))


def _places(codes: Codes, kept: IntArray) -> IntArray:
    """Place of each code among the kept ones, one past the last for all others."""
    place = np.full(codes.max(initial=-1) + 2, kept.size)
    inside = kept[kept < place.size - 1]
    place[inside] = np.arange(inside.size)
    return place[codes]  # -1, a level not in training, indexes the last entry


def _contradictory(seen: IntArray, share: float, least: float) -> BoolArray:
    """Which pairs of levels are contradictory; the last row and column stand for rare levels."""
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    contradictory = (expected >= least) & (seen < share * expected)
    contradictory[-1], contradictory[:, -1] = False, False
    return contradictory
