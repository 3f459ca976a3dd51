"""Random tables, black boxes, constraints and searches: every answer keeps every promise.

``fit`` may refuse a table with an error of ours; so may a constraint or a search. Whatever is
answered is checked by other code, and a part is explained again in other company.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mcce
from cell_bits import bits_of
from check_answers import check_result
from fuzz_report import Report
from mcce import McceError
from random_cases import Case, random_case
from random_predictors import as_pandas


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """Check one random table."""
    case = random_case(seed)
    inputs = bits_of(case.train), bits_of(case.people)
    everybody = np.arange(len(case.people))
    report.counts["schemas"] += 1
    try:
        explainer = case.explainer().fit(case.given_train)
        result = explain(case, explainer, everybody)
    except McceError as error:
        report.counts[f"refused ({type(error).__name__})"] += 1
        report.check(15 < len(str(error)) < 4000, f"an error of {len(str(error))} characters")
        return
    check_result(case, result, report)
    chance = np.random.default_rng([5, seed])
    check_company(case, explainer, result, chance, report)
    if chance.random() < 0.15:
        check_refit(case, result, chance, report)
    if chance.random() < 0.1:
        check_saved(case, explainer, result, report)
    same = [
        np.array_equal(now, then)
        for now, then in zip((bits_of(case.train), bits_of(case.people)), inputs, strict=True)
    ]
    report.check(all(same), "the input was changed")


def explain(case: Case, explainer: Any, people: np.ndarray) -> Any:
    rows = take(case.given_people, people)
    return explainer.explain(rows, constraints=case.call_constraints(people))


def take(frame: Any, places: np.ndarray) -> Any:
    """Some rows of any kind of frame."""
    if isinstance(frame, pd.DataFrame):
        return frame.iloc[places]
    return frame.take(places) if hasattr(frame, "take") else frame[places]


def answers_of(result: Any, places: np.ndarray) -> list[tuple[Any, ...]]:
    """What became of the people at these positions, to the bit."""
    people, cells = as_pandas(result.people), bits_of(as_pandas(result.frame))
    # Tables without an index have the position of the person in a column.
    measures = as_pandas(result.measures).drop(columns="factual", errors="ignore").to_numpy(object)
    fates = list(zip(people["status"], people["reason"], people["score"], strict=True))
    ends = np.searchsorted(result.owner, np.arange(len(people) + 1))
    answers = []
    for place in places:
        mine = slice(ends[place], ends[place + 1])
        answers.append((fates[place], cells[mine].tobytes(), repr(measures[mine].tolist())))
    return answers


def check_company(
    case: Case, explainer: Any, result: Any, chance: np.random.Generator, report: Report
) -> None:
    """The same answers in another order, alone, in small blocks and with threads."""
    n_people = len(case.people)
    shuffled = chance.permutation(n_people)[: min(100, max(1, n_people // 3))]
    again = explain(case, explainer, shuffled)
    same = answers_of(again, np.arange(shuffled.size)) == answers_of(result, shuffled)
    report.check(same, "other answers in another order")
    place = int(chance.integers(n_people))
    one = explain(case, explainer, np.array([place]))
    same = answers_of(one, np.array([0])) == answers_of(result, np.array([place]))
    report.check(same, f"person {place} alone gets another answer")
    if chance.random() < 0.7:
        return
    few = np.arange(min(n_people, 30))
    explainer.set_params(n_jobs=2, memory=0.01)
    parted = explain(case, explainer, few)
    explainer.set_params(n_jobs=None, memory=256.0)
    same = answers_of(parted, few) == answers_of(result, few)
    report.check(same, "other answers in small blocks with threads")


def check_refit(case: Case, result: Any, chance: np.random.Generator, report: Report) -> None:
    """The same answers after fitting on the same rows in another order."""
    order = chance.permutation(len(case.train))
    explainer = case.explainer(n_jobs=2).fit(take(case.given_train, order))
    few = np.arange(min(len(case.people), 40))
    again = explain(case, explainer, few)
    same = answers_of(again, few) == answers_of(result, few)
    report.check(same, "other answers after fitting on shuffled rows")


def check_saved(case: Case, explainer: Any, result: Any, report: Report) -> None:
    """The same answers after saving and loading, where it can be saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explainer.mcce"
        try:
            explainer.save(path)
        except McceError:
            report.counts["not saved"] += 1
            return
        loaded = mcce.load(path, case.box.predictor)
    few = np.arange(min(len(case.people), 40))
    again = explain(case, loaded, few)
    same = answers_of(again, few) == answers_of(result, few)
    report.check(same, "other answers after loading")
