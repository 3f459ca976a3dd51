"""Whether rows look like training rows: near ones, the local outlier factor, an isolation forest.

Beyond the paper; none of these uses the trees of step 1, so they judge every method alike. Each
gives one number per row, less being more plausible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..kernels import FloatArray, IntArray, rows_as_bytes
from ..parameters import check_count
from ..tables.schema import EncodedRows
from .evaluator import Among, Evaluator, read_rows, scaled
from .neighbours import Scale, nearest


def knn_distance(
    rows: Any, training: Any, *, k: int = 5, scale: Scale = "range", among: Among = "all"
) -> pd.Series[Any]:
    """Mean distance to the k nearest training rows, in the unit of ``l1``.

    Parameters
    ----------
    rows
        A frame, or the result of ``explain``.
    training
        The training data: a frame, or a :class:`Evaluator`.
    k
        How many training rows.
    scale
        ``"range"``: numbers over their training range; ``"ranks"``: their ranks as shares, which
        long tails do not press together.
    among
        ``"all"`` training rows, or those with the ``"desired"`` decision by the judge's predictor.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 30, 60]})
    >>> knn_distance(pd.DataFrame({"age": [24]}), training, k=2).tolist()
    [0.125]
    """
    evaluator = Evaluator.of(training)
    answers, encoded = read_rows(rows, evaluator)
    places = evaluator.among(among)
    far, _ = nearest(evaluator, encoded, evaluator.rows, k, among=places, scale=scale)
    return answers.told(far.mean(axis=1), "knn_distance")


def outlier_factor(
    rows: Any, training: Any, *, k: int = 20, among: Among = "all"
) -> pd.Series[Any]:
    """Local outlier factor: how much thinner training rows lie around a row than around them.

    About 1 for a row like the others. Euclidean on range-scaled numbers and 0 or 1 for a
    category; of equal training rows one counts, since many would be infinitely dense. Arguments
    as for :func:`knn_distance`. The time is quadratic in the training rows.
    """
    from sklearn.neighbors import LocalOutlierFactor

    evaluator = Evaluator.of(training)
    answers, encoded = read_rows(rows, evaluator)
    places = distinct(evaluator, among)
    check_count("k", k)
    if k >= places.size:
        raise ParameterError(
            f"k must be less than the number of distinct training rows, {places.size}, got {k!r}."
        )
    model = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(
        matrix(evaluator, evaluator.rows)[places]
    )
    return answers.told(_apply(model, matrix(evaluator, encoded)), "outlier_factor")


def distinct(evaluator: Evaluator, among: Among) -> IntArray:
    """Positions of training rows, of equal ones the first."""
    places = evaluator.among(among)
    cells = rows_as_bytes(evaluator.rows.exact[:, places].T)
    return places[np.sort(np.unique(cells, return_index=True)[1])]


def isolation(
    rows: Any, training: Any, *, among: Among = "all", random_state: int = 0
) -> pd.Series[Any]:
    """Anomaly score of an isolation forest of 100 trees, between 0 and 1.

    The sooner random cuts part a row from the training rows the larger. Arguments as for
    :func:`knn_distance`; ``random_state`` seeds the forest.
    """
    from sklearn.ensemble import IsolationForest

    check_count("random_state", random_state, least=0)
    evaluator = Evaluator.of(training)
    answers, encoded = read_rows(rows, evaluator)
    model = IsolationForest(n_estimators=100, random_state=random_state)
    model.fit(matrix(evaluator, evaluator.rows)[evaluator.among(among)])
    return answers.told(_apply(model, matrix(evaluator, encoded)), "isolation")


def matrix(evaluator: Evaluator, rows: EncodedRows) -> FloatArray:
    """Rows as numbers without gaps, shape (n_rows, n_numbers).

    A number is scaled to [0, 1] in training and has a second column that says it is missing, in
    which case the first holds the training median. Of a category each level has a column, and one
    is for all that training never held: two unequal levels are at Euclidean distance 1.
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


def _apply(model: Any, numbers: FloatArray) -> FloatArray:
    """The score of each row, which scikit-learn gives with the other sign."""
    return -model.score_samples(numbers) if len(numbers) else np.empty(0)
