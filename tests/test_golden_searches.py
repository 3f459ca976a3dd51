"""Answers of every search on German Credit, in many situations, to the bit on every machine.

Black boxes count points in whole numbers, so that their scores have the same bits everywhere.
``tests/golden/searches`` holds a file for each situation, with a block for each search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce import Interval, TreeChain
from mcce import constraints as c
from mcce.datasets import load_german_credit
from pins import (
    SEARCHES,
    assert_pinned,
    build,
    describe_relaxed,
    describe_result,
    describe_robustness,
    explain,
    pinned,
    plain,
    written,
)

FOLDER = Path(__file__).parent / "golden" / "searches"
IMMUTABLE = ["Purpose", "Age", "Sex"]
FEW = ("paper", "balanced", "fast", "exact")


@cache
def german() -> pd.DataFrame:
    return load_german_credit().features


def scorecard(frame: pd.DataFrame) -> np.ndarray:
    points = 20 * (frame["Duration"] <= 18) + 15 * (frame["CreditAmount"] <= 2500)
    points += 25 * (frame["CheckingStatus"] == "no checking account")
    points += 15 * frame["Savings"].isin([">=1000 DM", "500-1000 DM"])
    points += 10 * (frame["Housing"] == "own") + 10 * (frame["Age"] >= 30)
    points += 5 * (frame["OtherInstallmentPlans"] == "none")
    return points.to_numpy(dtype=np.int64)


def labels(frame: pd.DataFrame) -> np.ndarray:
    return np.where(scorecard(frame) >= 60, "good", "bad")


def grades(frame: pd.DataFrame) -> np.ndarray:
    return np.array(["poor", "fair", "good", "best"])[np.digitize(scorecard(frame), [40, 60, 80])]


class Classifier:
    """Probabilities in 128ths, which floats hold exactly."""

    classes_ = np.array(["bad", "good"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        good = scorecard(frame) / 128
        return np.stack([1 - good, good], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[(self.predict_proba(frame)[:, 1] >= 0.5).astype(int)]


class ThreeClasses(Classifier):
    classes_ = np.array(["bad", "fair", "good"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        good, own = scorecard(frame), 16 * (frame["Housing"] == "own").to_numpy(dtype=int)
        return np.stack([128 - good - own, own, good], axis=1) / 128

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


class Margin:
    """A classifier without probabilities."""

    _estimator_type = "classifier"
    classes_ = np.array([False, True])

    def decision_function(self, frame: pd.DataFrame) -> np.ndarray:
        return (scorecard(frame) - 60) / 8

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.decision_function(frame) > 0


class Regressor:
    _estimator_type = "regressor"

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
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


@dataclass(frozen=True)
class Situation:
    """The explainer of a case and the people it explains."""

    predictor: Any = scorecard
    desired: Any = (60, 100)
    settings: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)
    searches: tuple[str, ...] = SEARCHES
    n_people: int = 10
    change: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame
    training: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame

    def fitted(self, search: str, **more: Any):
        settings = {"immutable": IMMUTABLE} | self.settings | more
        explainer = build(self.predictor, self.desired, search, **settings)
        return explainer.fit(self.training(german()))

    def people(self) -> pd.DataFrame:
        """Some are decided as desired already."""
        changed = self.change(german())
        points = scorecard(changed)
        return pd.concat([changed[points < 60].head(self.n_people), changed[points >= 60].head(2)])


NOT_EXACT = SEARCHES[:-1]
BACKWARDS = [name for name in reversed(german().columns) if name not in IMMUTABLE]
CHAIN = TreeChain(min_samples_leaf=10, visit_order=BACKWARDS)
SITUATIONS = {
    "plain": Situation(n_people=40),
    "constraints": Situation(n_people=40, settings={"constraints": list(RULES)}),
    "missing": Situation(n_people=40, change=holed, training=holed),
    "missing constraints": Situation(
        searches=FEW,
        change=holed,
        training=holed,
        settings={"constraints": list(RULES), "most_draws": 1000},
    ),
    "three": Situation(settings={"n_answers": 3}),
    "three diverse": Situation(settings={"n_answers": 3, "diversity": 0.5}, searches=NOT_EXACT),
    "three with constraints": Situation(
        settings={"n_answers": 3, "constraints": list(RULES)}, searches=FEW
    ),
    "labels": Situation(labels, ["good"]),
    "grades": Situation(grades, ["fair", "best"], n_people=8, searches=FEW),
    "classifier": Situation(Classifier(), (0.5, 1.0)),
    "classifier by default": Situation(Classifier(), None, searches=FEW),
    "classifier by label": Situation(Classifier(), "good", searches=FEW),
    "three classes": Situation(ThreeClasses(), ["fair", "good"], searches=FEW),
    "score of a class": Situation(
        ThreeClasses(),
        Interval(0.0, 0.25, "left"),
        {"score_class": "bad"},
        n_people=8,
        searches=FEW,
    ),
    "decision function": Situation(Margin(), None, searches=FEW),
    "regressor": Situation(Regressor(), Interval(15, np.inf, "left"), searches=FEW),
    "no copies": Situation(settings={"no_copies": True}),
    "own chain": Situation(settings={"generator": CHAIN}, searches=FEW),
    "order by correlation": Situation(
        settings={"generator": TreeChain(visit_order="correlation")}, searches=FEW
    ),
    "few draws": Situation(
        desired=(90, 100), settings={"draws": 15, "most_draws": 30}, change=aged
    ),
    "bounds": Situation(
        settings={"fewest": 1, "nearest": 0.04, "most_draws": 1000, "constraints": list(RULES)}
    ),
    "near": Situation(settings={"nearest": 0.05, "most_draws": 1000}, n_people=8, searches=FEW),
    "tolerance": Situation(settings={"tolerance": 0.03}, searches=NOT_EXACT),
    "by distance": Situation(settings={"rank_by": ["distance"]}, searches=("paper", "fast")),
    "distance first": Situation(
        settings={"rank_by": ["distance", "sparsity"], "n_answers": 2}, searches=("paper", "fast")
    ),
    "nobody accepted": Situation(desired=(200, 300), n_people=2, searches=FEW),
    "rules in a file": Situation(
        settings={"most_draws": 1000},
        call={"constraints": FOLDER / "rules.toml"},
        n_people=8,
        searches=FEW,
    ),
    "nothing immutable": Situation(settings={"immutable": None}, searches=FEW),
}
CASES = [(name, search) for name, what in SITUATIONS.items() for search in what.searches]


def file_of(name: str) -> Path:
    return FOLDER / f"{name.replace(' ', '_')}.jsonl"


def golden_lines(name: str, search: str, **more: Any) -> list[Any]:
    what = SITUATIONS[name]
    return describe_result(explain(what.fitted(search, **more), what.people(), **what.call))


def robustness_lines(search: str) -> list[Any]:
    lines: list[Any] = []
    for name in ("three", "missing", "classifier by label"):
        what = SITUATIONS[name]
        explainer = what.fitted(search)
        result = explain(explainer, what.people().head(4))
        measured = explainer.robustness(result, n_perturbations=30, scale=0.1)
        lines += [{"situation": name}, *describe_robustness(measured)]
    return lines


def relaxed_lines(search: str) -> list[Any]:
    what = SITUATIONS["bounds"]
    explainer = what.fitted(search, no_copies=True, draws=100, most_draws=200)
    training = german() if search in ("paper", "fast") else None
    return describe_relaxed(explainer.relax(what.people().head(3), training))


def likelihood_lines(name: str) -> list[Any]:
    what = SITUATIONS[name]
    return [plain(number) for number in what.fitted("paper").log_likelihood(what.people())]


FURTHER = {"robustness": robustness_lines, "relaxed": relaxed_lines}
DENSITIES = ("plain", "missing", "own chain")


def golden_blocks() -> Iterator[tuple[str, str, list[Any]]]:
    """Every file, block and what belongs into it."""
    for name, search in CASES:
        yield name, search, golden_lines(name, search)
    for name, lines_of in FURTHER.items():
        for search in FEW:
            yield name, search, lines_of(search)
    for name in DENSITIES:
        yield "log likelihood", name, likelihood_lines(name)


def write() -> None:
    """Write the golden files anew."""
    texts: dict[str, str] = {}
    for name, block, lines in golden_blocks():
        texts[name] = texts.get(name, "") + written([block, *lines])
    for name, text in texts.items():
        file_of(name).write_text(text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "search"), CASES)
def test_answers_of_every_search_are_those_of_the_golden_file(name, search):
    assert_pinned(golden_lines(name, search), file_of(name), search)


@pytest.mark.parametrize("search", FEW)
def test_answers_with_several_threads_and_little_memory_are_the_same(search):
    lines = golden_lines("constraints", search, n_jobs=2, memory=0.5)

    assert_pinned(lines, file_of("constraints"), search)


@pytest.mark.parametrize("search", FEW)
@pytest.mark.parametrize("name", FURTHER)
def test_robustness_and_relaxations_are_those_of_the_golden_file(name, search):
    assert_pinned(FURTHER[name](search), file_of(name), search)


@pytest.mark.parametrize("name", DENSITIES)
def test_log_likelihoods_are_those_of_the_golden_file(name):
    expected = pinned(file_of("log likelihood"), name)

    # A logarithm may differ in the last bit from machine to machine.
    assert likelihood_lines(name) == pytest.approx(expected, rel=1e-12)


def test_the_golden_files_show_every_status_reason_and_search():
    statuses, reasons, met = set(), set(), set()
    for name, search in CASES:
        for person in pinned(file_of(name), search)[1:]:
            statuses.add(person["status"])
            reasons.add(person.get("reason", [""])[0])
            met |= {search} if "answers" in person else set()

    assert statuses == {"answered", "desired", "none"}
    assert reasons >= {"", "no desired row", "proven", "excluded", "none valid"}
    assert met == set(SEARCHES)
