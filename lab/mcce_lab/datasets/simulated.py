"""Simulated rows of the scalability study.

Paper, section "Experiment 4" and the appendix "Simulations mimicking real data experiments":
Gaussian features with mean 0, variance 1 and equal correlations, f their sum, desired above 0.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mcce import Interval
from mcce.datasets import Dataset
from mcce.protocols import check_count, check_real, check_whole

from .cards import DatasetName, card

ABOVE_ZERO = Interval(0.0, math.inf, closed="neither")


def simulate(
    n_rows: int,
    n_features: int,
    *,
    n_immutable: int = 0,
    correlation: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Simulate Gaussian rows whose target is their sum, desired above 0.

    Parameters
    ----------
    n_rows, n_features : int
        Size of the table; columns are named x0, x1 and so on.
    n_immutable : int
        Number of immutable features, counted from the first.
    correlation : float
        Correlation of any two features, from 0 to 1.
    seed : int
        Rows of different seeds are independent: use one for training, another for factuals.

    Returns
    -------
    Dataset

    Raises
    ------
    ParameterError
        If a size or the correlation is out of range.

    Examples
    --------
    >>> rows = simulate(1000, 5, seed=1)
    >>> rows.features.shape, rows.desired
    ((1000, 5), Interval (0.0, inf))
    >>> people = rows.features[rows.target <= 0]
    """
    check_count("n_rows", n_rows)
    check_count("n_features", n_features)
    check_whole("n_immutable", n_immutable, 0, n_features)
    check_count("seed", seed, least=0)
    check_real("correlation", correlation, "a number from 0 to 1", most=1.0)
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_rows, 1))
    own = rng.standard_normal((n_rows, n_features))
    names = [f"x{position}" for position in range(n_features)]
    cells = math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * own
    features = pd.DataFrame(cells, columns=names)
    summary = f"{n_features} Gaussian features with correlation {correlation:g}, seed {seed}"
    return Dataset(
        features=features,
        target=pd.Series(total(features), name="total"),
        desired=ABOVE_ZERO,
        immutable=names[:n_immutable],
        card={"name": "Simulated rows", "rows": n_rows, "summary": summary},
    )


def simulate_like(name: DatasetName, *, seed: int = 0) -> Dataset:
    """Simulate Gaussian rows with the size and immutable features of a data set.

    Parameters
    ----------
    name : {"german", "adult", "gmc", "fico"}
        The data set, in the paper's form.
    seed : int
        As for :func:`simulate`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> rows = simulate_like("german")
    >>> rows.features.shape, rows.immutable
    ((1000, 20), ['x0', 'x1', 'x2'])
    """
    of = card(name)
    form = of["forms"]["paper"]
    n_rows = of["selections"][form["rows"]]["rows"]
    return simulate(n_rows, form["features"], n_immutable=len(form["immutable"]), seed=seed)


def total(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Sum the features of each row: the predictor of the simulated rows.

    Parameters
    ----------
    frame : DataFrame
        Numeric features.

    Returns
    -------
    (n_rows,)

    Examples
    --------
    >>> total(pd.DataFrame({"x0": [1.0], "x1": [2.0]}))
    array([3.])
    """
    return frame.to_numpy(dtype=np.float64).sum(axis=1)
