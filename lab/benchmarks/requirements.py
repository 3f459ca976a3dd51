"""What the project requires of its searches, as data, and whether it holds.

Each requirement is an upper bound of a measure of a search on a case. Differences from NICE are
taken over the people whom both explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from implausibility import SCORES

PAPER_CASES = ("adult", "german", "fico", "gmc-quarter", "adult-forest")
RAW_CASES = ("adult-boosting", "adult-all-levels", "german-boosting")
CASES = (*PAPER_CASES, *RAW_CASES)

Values: TypeAlias = Mapping[str, float]
# From the values of a case by contender and the name of a search; KeyError if not measured.
Measure: TypeAlias = Callable[[Mapping[str, Values], str], float]


def _at_most(paper: float | None, raw: float | None, **others: float) -> dict[str, float]:
    """Bounds of the paper's and the raw cases, and others for some (``_`` for ``-``)."""
    bounds = dict.fromkeys(PAPER_CASES, paper) | dict.fromkeys(RAW_CASES, raw)
    bounds |= {name.replace("_", "-"): bound for name, bound in others.items()}
    return {name: bound for name, bound in bounds.items() if bound is not None}


MEASURES: dict[str, Measure] = {
    "sparsity above NICE": lambda by, who: by[who]["sparsity over nice"],
    "mean implausibility, % above NICE": lambda by, who: by[who]["implausibility %"],
    "worst implausibility, % above NICE": lambda by, who: max(
        by[who][f"{name} %"] for name in SCORES
    ),
    "worst implausibility, t": lambda by, who: max(by[who][f"{name} t"] for name in SCORES),
    "sparsity above NICE-plausibility": lambda by, who: (
        by[who]["sparsity over nice"] - by["nice-plausible"]["sparsity over nice"]
    ),
    "sparsity as share of NICE-plausibility's": lambda by, who: (
        (by[who]["sparsity over nice"] + by["nice"]["sparsity"]) / by["nice-plausible"]["sparsity"]
    ),
    "mean implausibility, points above NICE-plausibility": lambda by, who: (
        by[who]["implausibility %"] - by["nice-plausible"]["implausibility %"]
    ),
    "share not valid": lambda by, who: 1 - by[who]["valid"],
    "immutable features changed": lambda by, who: by[who]["violations"],
    "share without counterfactual": lambda by, who: 1 - by[who]["coverage"],
    "copies of training rows": lambda by, who: by[who]["copies of all"],
    "contradictory pairs": lambda by, who: by[who]["pairs"],
    "contradictory pairs above NICE": lambda by, who: by[who]["pairs"] - by["nice"]["pairs"],
    "predictor rows": lambda by, who: by[who]["rows scored"],
    "CPU as share of the package's": lambda by, who: (
        by[who]["CPU ms"] / by["nice-package"]["CPU ms"]
    ),
}

_ALL = {
    "share not valid": _at_most(0, 0),
    "immutable features changed": _at_most(0, 0),
    "share without counterfactual": _at_most(0, 0),
    "copies of training rows": _at_most(0.02, 0.02, adult_forest=0.10),
    "contradictory pairs": _at_most(0.02, 0.02),
    "contradictory pairs above NICE": _at_most(0, 0),
    "CPU as share of the package's": _at_most(0.25, 0.25, german=1, fico=1),
}
_LED = _ALL | {"predictor rows": _at_most(6, 8, german=8, fico=20, adult_forest=8)}

REQUIREMENTS: dict[str, dict[str, dict[str, float]]] = {
    "sparse": _LED
    | {
        "sparsity above NICE": _at_most(0, None, adult=-0.10, fico=-0.8, adult_forest=-0.4)
        | {"adult-boosting": -0.08, "adult-all-levels": -0.15, "german-boosting": -0.05},
        "mean implausibility, % above NICE": _at_most(0, None, fico=5, adult_forest=5)
        | {"adult-boosting": 5, "adult-all-levels": 12, "german-boosting": 0},
    },
    "balanced": _LED
    | {
        "sparsity above NICE": _at_most(0.10, 0.05, fico=-0.5, adult_forest=-0.25),
        "mean implausibility, % above NICE": _at_most(
            0, 0, fico=2, adult_forest=4, adult_boosting=-2
        ),
        "worst implausibility, t": _at_most(None, 2.5),
    },
    "plausible": _ALL
    | {
        "predictor rows": _at_most(100, 100),
        "worst implausibility, % above NICE": _at_most(0, None),
        "sparsity above NICE-plausibility": _at_most(0, None),
        "sparsity as share of NICE-plausibility's": _at_most(None, 0.6),
        "mean implausibility, points above NICE-plausibility": _at_most(None, 0, german_boosting=2),
    },
    "near": _ALL | {"predictor rows": _at_most(20, 20)},
}


@dataclass(frozen=True)
class Check:
    """One requirement of a search on a case, and its measured value or None."""

    search: str
    measure: str
    case: str
    most: float
    value: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the value is within its bound; None if it was not measured."""
        return None if self.value is None else bool(self.value <= self.most + 1e-9)


def check_requirements(values: Mapping[str, Mapping[str, Values]]) -> Iterator[Check]:
    """Check every requirement of the searches that ran; ``values`` is by case and contender."""
    for search, requirements in REQUIREMENTS.items():
        for measure, bounds in requirements.items():
            for case, most in bounds.items():
                if search in values.get(case, {}):
                    value = _value(measure, values[case], search)
                    yield Check(search, measure, case, most, value)


def _value(measure: str, by: Mapping[str, Values], search: str) -> float | None:
    try:
        return MEASURES[measure](by, search)
    except KeyError:
        return None
