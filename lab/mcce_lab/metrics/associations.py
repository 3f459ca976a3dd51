"""Whether generated rows keep the correlations of the training rows.

Paper, Experiment 3: the correlation matrices of real and generated data, and their difference.
Here the difference is three numbers, next to those of bootstrap samples of the training rows.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce.errors import ParameterError, SchemaError, shorten
from mcce.metrics import Evaluator, association
from mcce.protocols import EncodedRows, FloatArray, check_count

Method = Literal["association", "pearson"]
# Floats with NaN for missing, or whole numbers that stand for levels, missing being one of them.
Column = np.ndarray


def correlations(rows: Any, training: Any, *, method: Method = "association") -> pd.DataFrame:
    """Correlation of each pair of features.

    Rows in which either of two numbers is missing are left out. A feature without variation has
    correlation 0 with all others.

    Parameters
    ----------
    rows : frame
        The training rows themselves, or generated rows.
    training : frame or Evaluator
        The training data.
    method : {"association", "pearson"}
        ``"association"``, from 0 to 1, for features of any kind: absolute Pearson correlation,
        correlation ratio, or bias-corrected Cramér's V. ``"pearson"``, from -1 to 1, for numbers
        and categories of two levels.

    Returns
    -------
    DataFrame
        Symmetric matrix with 1 on the diagonal.

    Raises
    ------
    ParameterError
        If ``method="pearson"`` and a category has more than two levels.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1, 2, 3], "b": [3, 2, 1]})
    >>> float(correlations(frame, frame, method="pearson").loc["a", "b"])
    -1.0
    """
    evaluator = training if isinstance(training, Evaluator) else Evaluator.fit(training)
    columns = _columns(evaluator.read(rows), method)
    names = evaluator.schema.names
    return pd.DataFrame(_matrix(columns, method), index=names, columns=names)


def correlation_difference(
    generated: Any,
    training: Any,
    *,
    method: Method = "association",
    n_bootstrap: int = 20,
    random_state: int = 0,
) -> pd.DataFrame:
    """Difference of the correlations of generated and training rows, and that of chance.

    Parameters
    ----------
    generated : frame
        Generated rows.
    training : frame or Evaluator
        The training data.
    method : {"association", "pearson"}
        As for :func:`correlations`.
    n_bootstrap : int
        Number of bootstrap samples of the training rows, each as large as the generated sample,
        that show what chance alone does.
    random_state : int
        Seed of the bootstrap.

    Returns
    -------
    DataFrame
        Rows ``generated``, ``noise`` (mean over the bootstrap samples) and ``noise_q95`` (their
        95 % quantile). Columns ``max`` and ``mean`` of the absolute differences, and
        ``frobenius``, the root of their mean square.

    Raises
    ------
    SchemaError
        If the training data have fewer than two features.

    Examples
    --------
    >>> training = pd.DataFrame({"a": range(100), "b": range(100)})
    >>> reversed_b = training.assign(b=training["b"][::-1].to_numpy())
    >>> correlation_difference(reversed_b, training, method="pearson").loc["generated", "max"]
    np.float64(2.0)
    """
    check_count("n_bootstrap", n_bootstrap)
    check_count("random_state", random_state, least=0)
    evaluator = training if isinstance(training, Evaluator) else Evaluator.fit(training)
    if len(evaluator.schema.features) < 2:
        raise SchemaError("Correlations need at least two features, the training data have one.")
    new = evaluator.read(generated, "generated")
    trained = _columns(evaluator.rows, method)
    matrix, rng = _matrix(trained, method), np.random.default_rng(random_state)
    noise = []
    for _ in range(n_bootstrap):
        drawn = rng.integers(0, len(evaluator.rows), len(new))
        resampled = _matrix([column[drawn] for column in trained], method)
        noise.append(_sizes(resampled - matrix))
    sizes = [
        _sizes(_matrix(_columns(new, method), method) - matrix),
        np.mean(noise, axis=0),
        np.quantile(noise, 0.95, axis=0),
    ]
    index = ["generated", "noise", "noise_q95"]
    return pd.DataFrame(sizes, index=index, columns=["max", "mean", "frobenius"])


def _columns(rows: EncodedRows, method: Method) -> list[Column]:
    """Each feature in the form that the method needs."""
    if method not in ("association", "pearson"):
        raise ParameterError(f'method must be "association" or "pearson", got {shorten(method)}.')
    columns: list[Column] = []
    for position, feature in enumerate(rows.schema.features):
        numbers = rows.numbers(position)
        if numbers is not None:
            columns.append(numbers)
        elif method == "association":
            columns.append(rows.tree_codes[position].astype(np.int64))
        elif len(feature.known) <= 2:
            exact = rows.codes[position]
            columns.append(np.where(exact == 1, 1.0, np.where(exact == 0, 0.0, np.nan)))
        else:
            raise ParameterError(
                f"Pearson correlation needs numbers or two levels, but {feature.name!r} has "
                f'{len(feature.known)} levels. Use method="association".'
            )
    return columns


def _matrix(columns: list[Column], method: Method) -> FloatArray:
    """Correlation of each pair of columns, 1 on the diagonal."""
    if method == "pearson":
        numbers = pd.DataFrame(dict(enumerate(columns)))
        matrix = numbers.corr().fillna(0.0).to_numpy(copy=True)
        np.fill_diagonal(matrix, 1.0)
        return matrix
    matrix = np.eye(len(columns))
    for i, first in enumerate(columns):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = association(first, columns[j])
    return matrix


def _sizes(difference: FloatArray) -> list[float]:
    """Largest, mean and root mean square entry off the diagonal."""
    off = np.abs(difference[~np.eye(len(difference), dtype=bool)])
    return [float(off.max()), float(off.mean()), float(np.sqrt((off**2).mean()))]
