"""The methods that are compared, with tuned or default settings.

A method is a function of training rows, their outcomes, a case and a seed that gives a fitted
explainer. Settings that fit does not use share one fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import pandas as pd

from mcce.explainer import MCCE
from mcce.protocols import Explainer
from mcce.search.config import Search, SearchName

from ... import baselines
from ..case import Case
from ..packages import DiCEPackage
from .cases import Cell

Family = Literal["MCCE", "MCCE settings", "real rows", "NICE", "sampling", "gradients", "packages"]


@dataclass(frozen=True, eq=False)
class Method:
    """A method of the comparison.

    Parameters
    ----------
    name
        Its name in tables.
    family
        Which kind of method it is.
    fit
        From case, training rows and seed to a fitted explainer.
    needs
        Library without which it cannot run, or "".
    shares
        Name of the fit that it shares with other methods, or "".
    settings
        Parameters that are set after the fit.
    """

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
        return is_there and (cell.box == "network" or self.family != "gradients")


def _mcce(case: Case, train: pd.DataFrame, seed: int, *, search: Any) -> MCCE:
    settings: dict[str, Any] = {"n_samples": case.n_samples} if search == "paper" else {}
    return MCCE(
        case.predictor,
        case.desired,
        immutable=case.immutable,
        search=search,
        n_jobs=1,
        random_state=seed,
        **settings,
    ).fit(train)


def _led(name: str, family: Family, search: Search) -> Method:
    """A search of MCCE that differs from others after the fit alone."""
    fit = partial(_mcce, search="balanced")
    return Method(f"MCCE {name}", family, fit, shares="MCCE", settings={"search": search})


def _baseline(
    case: Case,
    train: pd.DataFrame,
    seed: int,
    *,
    kind: type,
    seeded: bool,
    settings: Mapping[str, Any],
) -> Explainer:
    given = {**settings, **({"random_state": seed} if seeded else {})}
    explainer = kind(case.predictor, case.desired, immutable=case.immutable, **given)
    outcome = None if case.outcome is None else case.outcome.loc[train.index].to_numpy()
    return explainer.fit(train, outcome)


def _method(
    name: str, family: Family, kind: type, *, seeded: bool = True, needs: str = "", **settings: Any
) -> Method:
    fit = partial(_baseline, kind=kind, seeded=seeded, settings=settings)
    return Method(name, family, fit, needs)


def _descent(name: str, kind: type, *, seeded: bool = True, **settings: Any) -> Method:
    """A method with gradients, whose settings share one fit."""
    fit = partial(_baseline, kind=kind, seeded=seeded, settings={})
    return Method(name, "gradients", fit, "torch", kind.__name__, settings)


SEARCHES: tuple[SearchName, ...] = ("paper", "fast", "sparse", "balanced", "plausible", "near")
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

METHODS: tuple[Method, ...] = (
    *(Method(f"MCCE {name}", "MCCE", partial(_mcce, search=name)) for name in ("paper", "fast")),
    *(_led(name, "MCCE", Search.preset(name)) for name in SEARCHES[2:]),
    *(
        _led(name, "MCCE settings", Search.preset(search, min_plausibility=share))
        for name, (search, share) in SETTINGS.items()
    ),
    _method("nearest unlike", "real rows", baselines.NearestUnlike, seeded=False),
    _method("NICE", "NICE", baselines.NICE, justified=True),
    _method("NICE, any start", "NICE", baselines.NICE, starts="any"),
    _method("NICE, 12 starts", "NICE", baselines.NICE, starts="any", n_starts=12),
    _method("NICE, proximity", "NICE", baselines.NICE, starts="any", reward="proximity"),
    _method(
        "NICE, plausibility",
        "NICE",
        baselines.NICE,
        starts="any",
        reward="plausibility",
    ),
    _method(
        "NICE, plausibility, 12 starts",
        "NICE",
        baselines.NICE,
        starts="any",
        n_starts=12,
        reward="plausibility",
    ),
    _method("FACE", "real rows", baselines.FACE, seeded=False),
    _method("FACE, density", "real rows", baselines.FACE, seeded=False, cost="density"),
    _method("Growing Spheres", "sampling", baselines.GrowingSpheres, seeded=True),
    _method("C-CHVAE", "sampling", baselines.CCHVAE, needs="torch"),
    _descent("Wachter", baselines.Wachter, seeded=False),
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
    _method("DiCE, random", "packages", DiCEPackage, needs="dice_ml", method="random"),
    _method("DiCE, genetic", "packages", DiCEPackage, needs="dice_ml", method="genetic"),
)
