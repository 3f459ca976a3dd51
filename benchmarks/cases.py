"""The benchmark cases: the paper's four data sets, more forms of three, and simulated rows.

Paper, section "Real data experiments" and Experiment 4. The data are in a folder ``shared`` next
to the checkout. A case without its files is skipped with a message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import sklearn

from mcce.errors import ParameterError
from mcce_lab import datasets
from mcce_lab.datasets import ABOVE_ZERO, DatasetError
from mcce_lab.experiments.authors import read_reference
from mcce_lab.experiments.case import Case
from mcce_lab.experiments.predictors import BlackBoxKind, black_box, train_black_box
from measure import OUT, log

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = SHARED / "data"
N_FACTUALS = 1000


def load(name: str) -> Case | None:
    """The case of a name, or None if its data are missing."""
    try:
        return LOADERS[name]()
    except (FileNotFoundError, DatasetError, ParameterError) as error:
        log(f"{name} is skipped: {error} (data are expected in ../shared)")
        return None


def declined(case: Case, n_factuals: int, seed: int = 0) -> pd.DataFrame:
    """Declined training rows, drawn with replacement."""
    rows = case.train[~case.decide(case.train)]
    chosen = np.random.default_rng(seed).integers(len(rows), size=n_factuals)
    return rows.iloc[chosen].reset_index(drop=True)


def with_distinct_ages(case: Case, factuals: pd.DataFrame) -> Case:
    """The case with these factuals at distinct ages, so that nobody shares candidates."""
    later = np.arange(len(factuals)) * 1e-6
    return replace(
        case,
        train=case.train.assign(age=case.train["age"].astype(float)),
        factuals=factuals.assign(age=factuals["age"] + later),
    )


def gaussian(p: int, n_train: int, n_factuals: int, n_samples: int) -> Case:
    """The paper's simulated rows, all mutable."""
    train = datasets.simulate(n_train, p, seed=0)
    rows = datasets.simulate(10 * n_factuals + 100, p, seed=1)
    factuals = rows.features[rows.target <= 0].head(n_factuals)
    name = f"p {p}, n_train {n_train}, n_test {n_factuals}, K {n_samples}"
    return Case(name, train.features, factuals, [], datasets.total, ABOVE_ZERO, n_samples)


def _reference(name: str) -> Case:
    """Adult or German Credit with the authors' rows, factuals and predictor."""
    return read_reference(SHARED / "reference" / name).case


def _trained(name: str, of: Any, kind: BlackBoxKind, **selection: Any) -> Case:
    """A data set, a predictor with the paper's settings, and the first rows that it declines."""
    data = datasets.load(of, folder=DATA, **selection)
    predict = _cached(f"{name}-{kind}", lambda: black_box(data, kind).predict)
    rows, outcome = data.features, data.target == data.desired
    factuals = _first_declined(rows, predict)
    return Case(name, rows, factuals, data.immutable, predict, outcome=outcome)


def _cached(name: str, make: Callable[[], Any]) -> Any:
    """The object cached under this name for this scikit-learn, made on first use."""
    path = OUT / f"{name}-{sklearn.__version__}.joblib"
    if not path.exists():
        log(f"making {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(make(), path, compress=3)
    return joblib.load(path)


def _adult_forest() -> Case:
    """The authors' Adult with the random forest of the paper's appendix."""
    adult = _reference("adult")
    assert adult.outcome is not None
    train = partial(train_black_box, adult.train, adult.outcome, None, "forest")
    forest = _cached("adult-forest", lambda: train().predict)
    factuals = _first_declined(adult.train, forest)
    return replace(adult, name="adult-forest", factuals=factuals, predictor=forest)


def _first_declined(rows: pd.DataFrame, predict: Callable[[pd.DataFrame], Any]) -> pd.DataFrame:
    """The first rows of the file with a score below one half."""
    return rows[predict(rows) < 0.5].head(N_FACTUALS)


def _gmc_quarter() -> Case:
    """A quarter of Give Me Some Credit without outliers, with the network of all rows."""
    whole = LOADERS["gmc"]()
    near = datasets.load("gmc", form="paper", rows="filtered", folder=DATA).features.index
    rows = whole.train.loc[near].sample(frac=0.25, random_state=0)
    factuals = _first_declined(rows, whole.predictor)
    return replace(whole, name="gmc-quarter", train=rows, factuals=factuals)


LOADERS: dict[str, Callable[[], Case]] = {
    "adult": partial(_reference, "adult"),
    "gmc": partial(_trained, "gmc", "gmc", "perceptron", form="paper"),
    "fico": partial(_trained, "fico", "fico", "perceptron", form="paper", rows="known"),
    "german": partial(_reference, "german"),
    "adult-all-levels": partial(_trained, "adult-all-levels", "adult", "perceptron"),
    "adult-forest": _adult_forest,
    "gmc-quarter": _gmc_quarter,
    "adult-boosting": partial(_trained, "adult-boosting", "adult", "boosting"),
    "german-boosting": partial(_trained, "german-boosting", "german", "boosting"),
}
# Those of the comparison of searches.
SEARCHED = (
    *("adult", "german", "fico", "gmc-quarter", "adult-forest"),
    *("adult-boosting", "adult-all-levels", "german-boosting"),
)
