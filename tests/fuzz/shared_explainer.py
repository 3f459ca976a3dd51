"""An explainer of two training sets, and the answers that it gives after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bank import bank, score
from cell_bits import bits_of
from mcce import MCCE, Search
from mcce import constraints as c

SEARCHES: list[dict[str, Any]] = [
    {"search": "paper"},
    {"search": "balanced"},
    {"search": "exact"},
    {"search": "fast", "constraints": [c.only_up("salary"), c.max_changes(2)]},
    {"search": Search.preset("near", copies="never"), "n_counterfactuals": 3},
]


@dataclass(frozen=True)
class TwoFits:
    """Two sets of training rows, people, and the answers after fitting on either."""

    trains: tuple[Any, Any]
    people: Any
    settings: dict[str, Any]
    answers: tuple[Any, Any]

    def explainer(self) -> MCCE:
        """A fresh explainer, fitted on the first set."""
        return make(self.settings).fit(self.trains[0])


def two_fits(chance: np.random.Generator, n_train: int = 150) -> TwoFits:
    settings = SEARCHES[int(chance.integers(len(SEARCHES)))] | {"n_samples": 40}
    trains = bank(n_train, seed=10), bank(n_train, seed=11)
    people = bank(15, seed=12)
    answers = [answers_of(make(settings).fit(train).explain(people)) for train in trains]
    return TwoFits(trains, people, settings, (answers[0], answers[1]))


def make(settings: dict[str, Any]) -> MCCE:
    return MCCE(score, (0.8, 10), immutable=["sex"], random_state=0, **settings)


def answers_of(result: Any) -> tuple[Any, ...]:
    """Everything that was answered, to the bit."""
    people = result.people
    return (
        bits_of(result.frame).tobytes(),
        result.owner.tobytes(),
        repr(result.measures.to_numpy().tolist()),
        tuple(people["status"]),
        tuple(people["reason"]),
        result.n_evaluated,
    )
