"""Whether generated rows keep the correlations of the real ones.

Paper, Experiment 3: the correlation matrices of real and generated data, and their difference.
Here the difference comes as three numbers, beside those that chance alone would give.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import ParameterError, SchemaError
from ..kernels import FloatArray, IntArray
from ..model.visit_order import Column, Levels, Numeric, association
from ..parameters import check_count
from ..tables.schema import EncodedRows
from .evaluator import Evaluator, read_some

Method = Literal["association", "pearson"]


def correlations(rows: Any, training: Any, *, method: Method = "association") -> pd.DataFrame:
    """Matrix of how strongly each two features of rows hang together.

    Parameters
    ----------
    rows
        A frame, of the training data themselves or of generated rows.
    training
        The training data: a frame, or a :class:`Evaluator`.
    method
        ``"association"``, from 0 to 1 for any kinds: absolute Pearson correlation, correlation
        ratio, or Cramér's V without bias. ``"pearson"``, from -1 to 1, for numbers and categories
        of two levels. A feature without variation has 0 with all others; rows in which one of two
        numbers is missing are left out.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1, 2, 3], "b": [3, 2, 1]})
    >>> float(correlations(frame, frame, method="pearson").loc["a", "b"])
    -1.0
    """
    evaluator = Evaluator.of(training)
    values = _columns(read_some(rows, evaluator, "rows"), method)
    return pd.DataFrame(
        _matrix(values, method), index=evaluator.schema.names, columns=evaluator.schema.names
    )


def correlation_difference(
    generated: Any,
    training: Any,
    *,
    method: Method = "association",
    n_bootstrap: int = 20,
    random_state: int = 0,
) -> pd.DataFrame:
    """How far the correlations of generated rows are from those of the training rows.

    Parameters
    ----------
    generated
        Generated rows.
    training
        The training data: a frame, or a :class:`Evaluator`.
    method
        As for :func:`correlations`.
    n_bootstrap
        How often as many rows as were generated are drawn from the training rows, with
        replacement, to see what chance does.
    random_state
        Seeds these draws.

    Returns
    -------
    DataFrame
        Rows ``generated``, ``noise`` (mean over the draws) and ``noise_q95`` (their 95 %
        quantile); columns ``max`` and ``mean`` of the absolute differences of two features, and
        ``frobenius``, the root of their mean square.
    """
    check_count("n_bootstrap", n_bootstrap)
    check_count("random_state", random_state, least=0)
    evaluator = Evaluator.of(training)
    if len(evaluator.schema.features) < 2:
        raise SchemaError("Correlations need at least two features, the training data have one.")
    new = read_some(generated, evaluator, "generated")
    trained = _columns(evaluator.rows, method)
    matrix, chance = _matrix(trained, method), np.random.default_rng(random_state)
    noise = []
    for _ in range(n_bootstrap):
        drawn = chance.integers(0, len(evaluator.rows), len(new))
        again = _matrix([_take(column, drawn) for column in trained], method)
        noise.append(_sizes(again - matrix))
    told = [
        _sizes(_matrix(_columns(new, method), method) - matrix),
        np.mean(noise, axis=0),
        np.quantile(noise, 0.95, axis=0),
    ]
    index = ["generated", "noise", "noise_q95"]
    return pd.DataFrame(told, index=index, columns=["max", "mean", "frobenius"])


def _columns(rows: EncodedRows, method: Method) -> list[Column]:
    """Each feature as the method takes it."""
    if method not in ("association", "pearson"):
        raise ParameterError(f'method must be "association" or "pearson", got {method!r}.')
    columns: list[Column] = []
    for position, feature in enumerate(rows.schema.features):
        numbers = rows.numbers(position)
        if numbers is not None:
            columns.append(Numeric(numbers))
        elif method == "association":
            columns.append(Levels(rows.descent[position].astype(np.int64)))
        elif len(feature.known) <= 2:
            exact = rows.exact[position]
            columns.append(Numeric(np.where(exact == 1, 1.0, np.where(exact == 0, 0.0, np.nan))))
        else:
            raise ParameterError(
                f"Pearson correlation needs numbers or two levels, but {feature.name!r} has "
                f'{len(feature.known)} levels. Use method="association".'
            )
    return columns


def _take(column: Column, places: IntArray) -> Column:
    if isinstance(column, Numeric):
        return Numeric(column.values[places])
    return Levels(column.codes[places])


def _matrix(columns: list[Column], method: Method) -> FloatArray:
    """The correlation of each two columns, 1 on the diagonal."""
    if method == "pearson":
        numbers = pd.DataFrame(
            {at: c.values for at, c in enumerate(columns) if isinstance(c, Numeric)}
        )
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
