"""The methods that are compared, with tuned or default settings.

A method is a function of training rows, their outcomes, a case and a seed that gives a fitted
explainer. Searches of MCCE share one fit where they learn the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import pandas as pd

from ... import baselines
from ...explainer import MCCE
from ...protocols import Explainer
from ...search.config import Search, SearchName
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
    gradients
        Whether it needs a predictor that offers gradients.
    """

    name: str
    family: Family
    fit: Callable[[Case, pd.DataFrame, int], Explainer]
    needs: str = ""
    gradients: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether it is a search of MCCE."""
        return self.family in ("MCCE", "MCCE settings")

    def can_run(self, cell: Cell) -> bool:
        """Whether its library is installed, and the predictor of a cell offers what it needs."""
        is_there = not self.needs or find_spec(self.needs) is not None
        return is_there and (cell.box == "network" or not self.gradients)


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
    name: str, family: Family, kind: type, *, seeded: bool = False, needs: str = "", **settings: Any
) -> Method:
    fit = partial(_baseline, kind=kind, seeded=seeded, settings=settings)
    return Method(name, family, fit, needs, family == "gradients")


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
    *(Method(f"MCCE {name}", "MCCE", partial(_mcce, search=name)) for name in SEARCHES),
    *(
        Method(
            f"MCCE {name}",
            "MCCE settings",
            partial(_mcce, search=Search.preset(search, min_plausibility=share)),
        )
        for name, (search, share) in SETTINGS.items()
    ),
    _method("nearest unlike", "real rows", baselines.NearestUnlike),
    _method("NICE", "NICE", baselines.NICE, seeded=True, justified=True),
    _method("NICE, any start", "NICE", baselines.NICE, seeded=True, starts="any"),
    _method("NICE, 12 starts", "NICE", baselines.NICE, seeded=True, starts="any", n_starts=12),
    _method(
        "NICE, proximity", "NICE", baselines.NICE, seeded=True, starts="any", reward="proximity"
    ),
    _method(
        "NICE, plausibility",
        "NICE",
        baselines.NICE,
        seeded=True,
        starts="any",
        reward="plausibility",
    ),
    _method(
        "NICE, plausibility, 12 starts",
        "NICE",
        baselines.NICE,
        seeded=True,
        starts="any",
        n_starts=12,
        reward="plausibility",
    ),
    _method("FACE", "real rows", baselines.FACE),
    _method("FACE, density", "real rows", baselines.FACE, cost="density"),
    _method("Growing Spheres", "sampling", baselines.GrowingSpheres, seeded=True),
    _method("C-CHVAE", "sampling", baselines.CCHVAE, seeded=True, needs="torch"),
    _method("Wachter", "gradients", baselines.Wachter, needs="torch"),
    _method("REViSE", "gradients", baselines.REViSE, seeded=True, needs="torch"),
    _method("CLUE", "gradients", baselines.CLUE, seeded=True, needs="torch"),
    _method(
        "CLUE, with decision",
        "gradients",
        baselines.CLUE,
        seeded=True,
        needs="torch",
        desired_weight=1.0,
    ),
    _method("CRUDS", "gradients", baselines.CRUDS, seeded=True, needs="torch"),
    _method("CEM", "gradients", baselines.CEM, seeded=True, needs="torch"),
    _method("DiCE, random", "packages", DiCEPackage, seeded=True, needs="dice_ml", method="random"),
    _method(
        "DiCE, genetic", "packages", DiCEPackage, seeded=True, needs="dice_ml", method="genetic"
    ),
)
