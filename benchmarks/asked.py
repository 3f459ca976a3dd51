"""What the project asks of its searches, as data, and whether it holds.

Every line is a measure of a search on a case and the most it may be. Measures against NICE are
taken over the people whom both answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from judges import JUDGES

PAPERS_FORM = ("adult", "german", "fico", "gmc-quarter", "adult-forest")
RAW = ("adult-boosting", "adult-all-levels", "german-boosting")
CASES = (*PAPERS_FORM, *RAW)

Told: TypeAlias = Mapping[str, float]
# The measures of a case by contender, and the name of a search, to a number; KeyError: unknown.
Measure: TypeAlias = Callable[[Mapping[str, Told], str], float]


def _most(papers_form: float | None, raw: float | None, **others: float) -> dict[str, float]:
    """One bound for every case, and other ones for some (``_`` in place of ``-``)."""
    bounds = dict.fromkeys(PAPERS_FORM, papers_form) | dict.fromkeys(RAW, raw)
    bounds |= {name.replace("_", "-"): bound for name, bound in others.items()}
    return {name: bound for name, bound in bounds.items() if bound is not None}


MEASURES: dict[str, Measure] = {
    "sparsity above NICE": lambda by, who: by[who]["sparsity over nice"],
    "judges' mean, % above NICE": lambda by, who: by[who]["judges %"],
    "worst judge, % above NICE": lambda by, who: max(by[who][f"{name} %"] for name in JUDGES),
    "worst judge's t": lambda by, who: max(by[who][f"{name} t"] for name in JUDGES),
    "sparsity above NICE-plausibility": lambda by, who: (
        by[who]["sparsity over nice"] - by["nice-plausible"]["sparsity over nice"]
    ),
    "sparsity as share of NICE-plausibility's": lambda by, who: (
        (by[who]["sparsity over nice"] + by["nice"]["sparsity"]) / by["nice-plausible"]["sparsity"]
    ),
    "judges' mean, points above NICE-plausibility": lambda by, who: (
        by[who]["judges %"] - by["nice-plausible"]["judges %"]
    ),
    "share not valid": lambda by, who: 1 - by[who]["valid"],
    "immutable features changed": lambda by, who: by[who]["violations"],
    "share without answer": lambda by, who: 1 - by[who]["coverage"],
    "copies of training rows": lambda by, who: by[who]["copies of all"],
    "contradictory pairs": lambda by, who: by[who]["pairs"],
    "contradictory pairs above NICE": lambda by, who: by[who]["pairs"] - by["nice"]["pairs"],
    "predictor rows": lambda by, who: by[who]["rows asked"],
    "CPU as share of the package's": lambda by, who: (
        by[who]["CPU ms"] / by["nice-package"]["CPU ms"]
    ),
}

_ALL = {
    "share not valid": _most(0, 0),
    "immutable features changed": _most(0, 0),
    "share without answer": _most(0, 0),
    "copies of training rows": _most(0.02, 0.02, adult_forest=0.10),
    "contradictory pairs": _most(0.02, 0.02),
    "contradictory pairs above NICE": _most(0, 0),
    "CPU as share of the package's": _most(0.25, 0.25, german=1, fico=1),
}
_WALK = _ALL | {"predictor rows": _most(90, 120, fico=520)}

ASKED: dict[str, dict[str, dict[str, float]]] = {
    "sparse": _WALK
    | {
        "sparsity above NICE": _most(0, None, adult=-0.10, fico=-0.8, adult_forest=-0.4)
        | {"adult-boosting": -0.08, "adult-all-levels": -0.15, "german-boosting": -0.05},
        "judges' mean, % above NICE": _most(0, None, fico=5, adult_forest=5)
        | {"adult-boosting": 5, "adult-all-levels": 12, "german-boosting": 0},
    },
    "balanced": _WALK
    | {
        "sparsity above NICE": _most(0.10, 0.05, fico=-0.5, adult_forest=-0.25),
        "judges' mean, % above NICE": _most(0, 0, fico=2, adult_forest=4, adult_boosting=-2),
        "worst judge's t": _most(None, 2.5),
    },
    "plausible": _WALK
    | {
        "worst judge, % above NICE": _most(0, None),
        "sparsity above NICE-plausibility": _most(0, None),
        "sparsity as share of NICE-plausibility's": _most(None, 0.6),
        "judges' mean, points above NICE-plausibility": _most(None, 0, german_boosting=2),
    },
    "near": _WALK,
    "fast": _ALL | {"predictor rows": _most(20, 20)},
}


@dataclass(frozen=True)
class Verdict:
    """Whether one thing asked of a search holds on a case; None: it could not be measured."""

    search: str
    measure: str
    case: str
    most: float
    value: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the value is at most what it may be."""
        return None if self.value is None else bool(self.value <= self.most + 1e-9)


def verdicts(told: Mapping[str, Mapping[str, Told]]) -> Iterator[Verdict]:
    """One verdict for everything asked of searches that ran; ``told`` is by case and contender."""
    for search, wanted in ASKED.items():
        for measure, bounds in wanted.items():
            for case, most in bounds.items():
                if search in told.get(case, {}):
                    yield Verdict(search, measure, case, most, _value(measure, told[case], search))


def _value(measure: str, by: Mapping[str, Told], search: str) -> float | None:
    try:
        return MEASURES[measure](by, search)
    except KeyError:
        return None
