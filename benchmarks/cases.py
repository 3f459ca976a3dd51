"""The benchmark cases: the paper's four data sets, more forms of three, and simulated rows.

Paper, section "Real data experiments" and Experiment 4. The data are in a folder ``shared`` next
to the checkout. A case without its files is skipped with a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from mcce.datasets import Dataset
from mcce_lab import datasets
from mcce_lab.datasets import ABOVE_ZERO, DatasetError
from mcce_lab.experiments.case import Case
from mcce_lab.experiments.predictors import NETWORK_SETTINGS, Predictor
from measure import log
from predictors import read_network, train_boosting, train_forest, train_network

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = SHARED / "data"
N_FACTUALS = 1000


def load(name: str) -> Case | None:
    """The case of a name, or None if its data are missing.

    Text columns become pandas categories, which the baseline passes to the predictor too.
    """
    try:
        case = LOADERS[name]()
        texts = case.train.select_dtypes(exclude="number").columns
        levels = {name: pd.CategoricalDtype(sorted(case.train[name].unique())) for name in texts}
        return replace(case, train=case.train.astype(levels), factuals=case.factuals.astype(levels))
    except (FileNotFoundError, DatasetError) as error:
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
    folder = SHARED / "reference" / name
    meta = json.loads((folder / "meta.json").read_text())
    train = pd.read_csv(folder / "train.csv.gz", index_col="row")
    factuals = pd.read_csv(folder / "factuals.csv.gz", index_col="row")
    return Case(
        name,
        train.drop(columns=meta["target"]),
        factuals.drop(columns=[meta["target"], "pred_prob"]),
        meta["immutables"],
        read_network(folder / "model.npz"),
        outcome=train[meta["target"]] == 1,
    )


def _trained(name: str, data: Dataset) -> Case:
    """A data set, a network with the paper's settings, and the first rows that it declines."""
    rows, outcome = data.features, data.target == data.desired
    settings = NETWORK_SETTINGS[data.card["name"]]
    network = train_network(name, rows, outcome.to_numpy(), settings)
    factuals = _first_declined(rows, network)
    return Case(name, rows, factuals, data.immutable, network, outcome=outcome)


def _boosted(name: str, data: Dataset) -> Case:
    """A data set, boosted trees with categorical splits, and the first rows that they decline."""
    rows, outcome = data.features, data.target == data.desired
    boosting = train_boosting(name, rows, outcome.to_numpy())
    factuals = _first_declined(rows, boosting)
    return Case(name, rows, factuals, data.immutable, boosting, outcome=outcome)


def _adult_forest() -> Case:
    """The authors' Adult with the random forest of the paper's appendix."""
    adult = _reference("adult")
    assert adult.outcome is not None
    forest = train_forest("adult-forest", adult.train, adult.outcome.to_numpy())
    factuals = _first_declined(adult.train, forest)
    return replace(adult, name="adult-forest", factuals=factuals, predictor=forest)


def _first_declined(rows: pd.DataFrame, predictor: Predictor) -> pd.DataFrame:
    """The first rows of the file with a score below one half."""
    return rows[predictor(rows) < 0.5].head(N_FACTUALS)


def _fico() -> Case:
    """HELOC without its empty assessments."""
    data = datasets.load("fico", form="paper", rows="known", folder=DATA)
    return _trained("fico", data)


def _gmc() -> Case:
    """Give Me Some Credit, complete rows."""
    data = datasets.load("gmc", form="paper", folder=DATA)
    return _trained("gmc", data)


def _adult_all_levels() -> Case:
    """Adult as published by UCI, with 14 features and up to 42 levels."""
    data = datasets.load("adult", folder=DATA)
    return _trained("adult-all-levels", data)


def _gmc_quarter() -> Case:
    """The quarter of Give Me Some Credit that published comparisons use; the network of all."""
    whole = _gmc()
    rows = whole.train.loc[
        datasets.load("gmc", form="paper", rows="quarter", folder=DATA).features.index
    ]
    factuals = _first_declined(rows, whole.predictor)
    return replace(whole, name="gmc-quarter", train=rows, factuals=factuals)


LOADERS: dict[str, Callable[[], Case]] = {
    "adult": lambda: _reference("adult"),
    "gmc": _gmc,
    "fico": _fico,
    "german": lambda: _reference("german"),
    "adult-all-levels": _adult_all_levels,
    "adult-forest": _adult_forest,
    "gmc-quarter": _gmc_quarter,
    "adult-boosting": lambda: _boosted("adult-boosting", datasets.load("adult", folder=DATA)),
    "german-boosting": lambda: _boosted("german-boosting", datasets.load("german")),
}
