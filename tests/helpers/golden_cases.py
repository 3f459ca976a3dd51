"""Situations on German Credit whose answers are pinned, in words that outlive renames.

Black boxes count points in whole numbers, so no library's rounding can move an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce import Interval, TreeChain
from mcce import constraints as c
from mcce.datasets import load_german_credit
from pins import build, describe_result
from searches import explain

FOLDER = Path(__file__).parents[1] / "golden"
IMMUTABLE = ["Purpose", "Age", "Sex"]


@cache
def german() -> pd.DataFrame:
    """The applicants."""
    return load_german_credit().features


def scorecard(frame: pd.DataFrame) -> np.ndarray:
    """Points of an applicant."""
    points = 20 * (frame["Duration"] <= 18) + 15 * (frame["CreditAmount"] <= 2500)
    points += 25 * (frame["CheckingStatus"] == "no checking account")
    points += 15 * frame["Savings"].isin([">=1000 DM", "500-1000 DM"])
    points += 10 * (frame["Housing"] == "own") + 10 * (frame["Age"] >= 30)
    points += 5 * (frame["OtherInstallmentPlans"] == "none")
    return points.to_numpy(dtype=np.int64)


def labels(frame: pd.DataFrame) -> np.ndarray:
    """Two labels."""
    return np.where(scorecard(frame) >= 60, "good", "bad")


def grades(frame: pd.DataFrame) -> np.ndarray:
    """Four labels."""
    return np.array(["poor", "fair", "good", "best"])[np.digitize(scorecard(frame), [40, 60, 80])]


class Classifier:
    """Probabilities in 128ths, which floats hold exactly."""

    classes_ = np.array(["bad", "good"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Probabilities of both labels."""
        good = scorecard(frame) / 128
        return np.stack([1 - good, good], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """The most probable label."""
        return self.classes_[(self.predict_proba(frame)[:, 1] >= 0.5).astype(int)]


class ThreeClasses(Classifier):
    """One more label, the probability of which depends on housing."""

    classes_ = np.array(["bad", "fair", "good"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Probabilities of all three labels."""
        good, own = scorecard(frame), 16 * (frame["Housing"] == "own").to_numpy(dtype=int)
        return np.stack([128 - good - own, own, good], axis=1) / 128

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """The most probable label."""
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


class Margin:
    """A classifier without probabilities."""

    _estimator_type = "classifier"
    classes_ = np.array([False, True])

    def decision_function(self, frame: pd.DataFrame) -> np.ndarray:
        """Positive where the applicant is accepted."""
        return (scorecard(frame) - 60) / 8

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Whether the applicant is accepted."""
        return self.decision_function(frame) > 0


class Regressor:
    """Points as a number that is predicted."""

    _estimator_type = "regressor"

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """A quarter of the points."""
        return scorecard(frame) / 4


RULES = (
    c.only_down("Duration"),
    c.change("CreditAmount", at_least="-50 %", at_most=0),
    c.frozen("Housing", where="Age > 50"),
    c.relation("worth its months", "CreditAmount >= 50 * Duration"),
    c.max_changes(4),
    c.together("Property", "Job"),
    c.weight("CheckingStatus", 3.0),
    c.step("CreditAmount", 50),
    c.transitions("Housing", {"rent": ["own"], "for free": ["rent", "own"]}),
    c.levels("Savings", ["<100 DM", "100-500 DM", "500-1000 DM", "unknown/no savings account"]),
)


def holed(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with missing numbers and levels, mutable and immutable."""
    frame = frame.astype({"ExistingCredits": "Int64"})
    columns = ("Duration", "CreditAmount", "CheckingStatus", "Savings", "Age", "Purpose")
    for place, name in enumerate((*columns, "ExistingCredits")):
        holes = (np.arange(len(frame)) * 7 + place * 13) % 11 == 0
        frame[name] = frame[name].mask(holes)
    return frame


def aged(frame: pd.DataFrame) -> pd.DataFrame:
    """The same people at an age that nobody in training had."""
    return frame.assign(Age=frame["Age"].where(np.arange(len(frame)) % 4 > 0, 91))


def unchanged(frame: pd.DataFrame) -> pd.DataFrame:
    """The same."""
    return frame


@dataclass(frozen=True)
class Situation:
    """The explainer of a case and the people it explains."""

    predictor: Any = scorecard
    desired: Any = (60, 100)
    settings: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)
    n_people: int = 10
    change: Callable[[pd.DataFrame], pd.DataFrame] = unchanged
    training: Callable[[pd.DataFrame], pd.DataFrame] = unchanged

    def fitted(self, search: str, **more: Any) -> Any:
        """The explainer with a search."""
        settings = {"immutable": IMMUTABLE} | self.settings | more
        explainer = build(self.predictor, self.desired, search, **settings)
        return explainer.fit(self.training(german()))

    def people(self, most: int = 40) -> pd.DataFrame:
        """So many at most to be answered; two are decided as desired already."""
        changed, n_people = self.change(german()), min(self.n_people, most)
        points = scorecard(changed)
        return pd.concat([changed[points < 60].head(n_people), changed[points >= 60].head(2)])

    def lines(self, search: str, most: int = 40, **more: Any) -> list[Any]:
        """What is pinned of the answers."""
        return describe_result(explain(self.fitted(search, **more), self.people(most), **self.call))


THREE = {"n_answers": 3}
BACKWARDS = (
    *("ForeignWorker", "Telephone", "PeopleLiable", "Job", "ExistingCredits", "Housing"),
    *("OtherInstallmentPlans", "Property", "ResidenceSince", "OtherDebtors", "InstallmentRate"),
    *("EmploymentSince", "Savings", "CreditAmount", "CreditHistory", "Duration", "CheckingStatus"),
)
SITUATIONS = {
    "plain": Situation(n_people=40),
    "constraints": Situation(n_people=40, settings={"constraints": list(RULES)}),
    "missing": Situation(n_people=40, change=holed, training=holed),
    "missing constraints": Situation(
        change=holed,
        training=holed,
        settings={"constraints": list(RULES), "most_draws": 1000},
    ),
    "three": Situation(settings=THREE),
    "three diverse": Situation(settings=THREE | {"diversity": 0.5}),
    "three with constraints": Situation(settings=THREE | {"constraints": list(RULES)}),
    "labels": Situation(labels, ["good"]),
    "grades": Situation(grades, ["fair", "best"], n_people=8),
    "classifier": Situation(Classifier(), (0.5, 1.0)),
    "classifier by label": Situation(Classifier(), "good"),
    "three classes": Situation(ThreeClasses(), ["fair", "good"]),
    "score of a class": Situation(
        ThreeClasses(), Interval(0.0, 0.25, "left"), {"score_class": "bad"}, n_people=8
    ),
    "decision function": Situation(Margin(), None),
    "regressor": Situation(Regressor(), Interval(15, np.inf, "left")),
    "no copies": Situation(settings={"no_copies": True}),
    "own chain": Situation(
        settings={"generator": TreeChain(min_samples_leaf=10, visit_order=list(BACKWARDS))}
    ),
    "order by correlation": Situation(settings={"generator": TreeChain(visit_order="correlation")}),
    "few draws": Situation(
        desired=(90, 100), settings={"draws": 15, "most_draws": 30}, change=aged
    ),
    "bounds": Situation(
        settings={"fewest": 1, "nearest": 0.04, "most_draws": 1000, "constraints": list(RULES)}
    ),
    "near": Situation(settings={"nearest": 0.05, "most_draws": 1000}, n_people=8),
    "tolerance": Situation(settings={"tolerance": 0.03}),
    "by distance": Situation(settings={"rank_by": ["distance"]}),
    "distance first": Situation(settings={"rank_by": ["distance", "sparsity"], "n_answers": 2}),
    "nobody accepted": Situation(desired=(200, 300), n_people=2),
    "rules in a file": Situation(
        settings={"most_draws": 1000}, call={"constraints": FOLDER / "rules.toml"}, n_people=8
    ),
    "nothing immutable": Situation(settings={"immutable": None}),
}
