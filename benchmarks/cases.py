"""What is measured: the paper's four data sets, more forms of three, and its simulated rows.

Paper, section "Real data experiments" and Experiment 4. The data lie in a folder
``shared`` beside the checkout. A case whose files are not there is left out, and that is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mcce import MCCE, DatasetError, Interval, TreeChain, datasets
from mcce.datasets import Dataset
from measure import say
from predictors import (
    Predictor,
    Recipe,
    read_network,
    train_boosting,
    train_forest,
    train_network,
)

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = SHARED / "data"
N_PEOPLE = 1000
AT_LEAST_HALF = Interval(0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Case:
    """Training rows, a black box and the people it declined.

    Parameters
    ----------
    name
        How the case is called on the command line.
    train, people
        Training rows and factuals, with the same columns.
    immutable
        Columns that must not change.
    predictor, desired
        The black box, and the scores that people want.
    n_samples
        Candidates per person, the K of the paper.
    good
        What happened: whether each training row has the desired outcome, by label. None: unknown.
    """

    name: str
    train: pd.DataFrame
    people: pd.DataFrame
    immutable: list[str]
    predictor: Predictor
    desired: Interval = AT_LEAST_HALF
    n_samples: int = 1000
    good: pd.Series[bool] | None = None

    @property
    def mutable(self) -> list[str]:
        """Columns that may change."""
        return [name for name in self.train.columns if name not in self.immutable]

    def decide(self, rows: pd.DataFrame) -> NDArray[np.bool_]:
        """Which rows have the desired decision."""
        return self.desired.contains(self.predictor(rows))

    def explainer(self, *, n_jobs: int = 1, decisions: tuple[bool, ...] = (True,)) -> MCCE:
        """Our explainer with the settings of the case, not yet fitted."""
        return MCCE(
            self.predictor,
            self.desired,
            immutable=self.immutable,
            generator=TreeChain(decisions=decisions),
            n_samples=self.n_samples,
            n_jobs=n_jobs,
            random_state=0,
        )


def load(name: str) -> Case | None:
    """The case of a name, or None where its data are absent.

    Texts are pandas categories: what the baseline, too, hands to the black box.
    """
    try:
        case = LOADERS[name]()
        texts = case.train.select_dtypes(exclude="number").columns
        levels = {name: pd.CategoricalDtype(sorted(case.train[name].unique())) for name in texts}
        return replace(case, train=case.train.astype(levels), people=case.people.astype(levels))
    except (FileNotFoundError, DatasetError) as error:
        say(f"{name} is left out: {error} (data lie in ../shared)")
        return None


def declined(case: Case, n_people: int, seed: int = 0) -> pd.DataFrame:
    """So many declined training rows, drawn with replacement."""
    rows = case.train[~case.decide(case.train)]
    chosen = np.random.default_rng(seed).integers(len(rows), size=n_people)
    return rows.iloc[chosen].reset_index(drop=True)


def with_distinct_ages(case: Case, people: pd.DataFrame) -> Case:
    """The case with these people, no two of whom are of an age: nobody shares candidates."""
    later = np.arange(len(people)) * 1e-6
    return replace(
        case,
        train=case.train.assign(age=case.train["age"].astype(float)),
        people=people.assign(age=people["age"] + later),
    )


def gaussian(p: int, n_train: int, n_people: int, n_samples: int) -> Case:
    """The paper's simulated rows, all mutable."""
    train = datasets.simulate(n_train, p, seed=0)
    rows = datasets.simulate(10 * n_people + 100, p, seed=1)
    people = rows.features[rows.target <= 0].head(n_people)
    name = f"p {p}, n_train {n_train}, n_test {n_people}, K {n_samples}"
    return Case(name, train.features, people, [], datasets.total, train.desired, n_samples)


def _reference(name: str) -> Case:
    """Adult or German with the authors' rows, people and black box."""
    folder = SHARED / "reference" / name
    meta = json.loads((folder / "meta.json").read_text())
    train = pd.read_csv(folder / "train.csv.gz", index_col="row")
    people = pd.read_csv(folder / "factuals.csv.gz", index_col="row")
    return Case(
        name,
        train.drop(columns=meta["target"]),
        people.drop(columns=[meta["target"], "pred_prob"]),
        meta["immutables"],
        read_network(folder / "model.npz"),
        good=train[meta["target"]] == 1,
    )


def _trained(name: str, data: Dataset, recipe: Recipe) -> Case:
    """A data set, a network for it, and the first people that it declines."""
    rows, good = data.features, data.target == data.desired
    network = train_network(name, rows, good.to_numpy(), recipe)
    people = _first_declined(rows, network)
    return Case(name, rows, people, data.immutable, network, good=good)


def _boosted(name: str, data: Dataset) -> Case:
    """A data set, boosted trees that split by sets of levels, and whom they decline first."""
    rows, good = data.features, data.target == data.desired
    boosting = train_boosting(name, rows, good.to_numpy())
    people = _first_declined(rows, boosting)
    return Case(name, rows, people, data.immutable, boosting, good=good)


def _adult_forest() -> Case:
    """The authors' Adult with the paper's black box that has no gradients."""
    adult = _reference("adult")
    assert adult.good is not None
    forest = train_forest("adult-forest", adult.train, adult.good.to_numpy())
    people = _first_declined(adult.train, forest)
    return replace(adult, name="adult-forest", people=people, predictor=forest)


def _first_declined(rows: pd.DataFrame, predictor: Predictor) -> pd.DataFrame:
    """The first people of the file that are predicted as class 0."""
    return rows[predictor(rows) < 0.5].head(N_PEOPLE)


def _fico() -> Case:
    """HELOC without its empty records."""
    data = datasets.load("fico", form="paper", rows="known", folder=DATA)
    return _trained("fico", data, Recipe((81, 27, 3), 8, 0.0005))


def _gmc() -> Case:
    """Give Me Some Credit, complete rows."""
    data = datasets.load("gmc", form="paper", folder=DATA)
    return _trained("gmc", data, Recipe((18, 9, 3), 2048, 0.002))


def _adult_all_levels() -> Case:
    """Adult as UCI has it, with 14 features and up to 42 levels."""
    data = datasets.load("adult", folder=DATA)
    return _trained("adult-all-levels", data, Recipe((18, 9, 3), 1024, 0.002))


def _gmc_quarter() -> Case:
    """The quarter of Give Me Some Credit that published comparisons use; the network of all."""
    whole = _gmc()
    rows = whole.train.loc[
        datasets.load("gmc", form="paper", rows="quarter", folder=DATA).features.index
    ]
    people = _first_declined(rows, whole.predictor)
    return replace(whole, name="gmc-quarter", train=rows, people=people)


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
