"""Predictors that fail in every way: an error of ours comes out, or a result that loses nobody.

Afterwards the predictor works again, and the explainer must give its old answers.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from bank import bank, score
from cell_bits import bits_of
from fuzz_report import Report
from mcce import MCCE, McceError
from odd_predictors import HARMLESS, WAYS, Failing

TRAIN, PEOPLE = bank(90), bank(20, seed=1)
SEARCHES = ["paper", "balanced", "sparse", "near", "fast", "plausible", "exact"]
CELLS = [bits_of(TRAIN).tobytes(), bits_of(PEOPLE).tobytes()]


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """One predictor that fails, in fit or in explain."""
    chance = np.random.default_rng([6, seed])
    name = list(WAYS)[seed % len(WAYS)]
    in_fit = chance.random() < 0.3
    failing = Failing(score, WAYS[name], 0 if in_fit else int(chance.integers(1, 6)))
    explainer = MCCE(
        failing,
        (0.8, 10),
        immutable=["sex"],
        search=SEARCHES[int(chance.integers(len(SEARCHES)))],  # type: ignore[arg-type]
        n_samples=40,
        random_state=0,
        n_counterfactuals=int(chance.integers(1, 3)),
        n_jobs=int(chance.integers(1, 3)),
    )
    title = f"{name}, search {explainer.search}"
    if in_fit:
        report.counts["errors"] += attempt(lambda: explainer.fit(TRAIN), title, report) is None
        return
    failing.broken = False
    expected = answers(explainer.fit(TRAIN).explain(PEOPLE))
    failing.broken, failing.n_calls = True, 0
    failing.back = callbacks(explainer, chance)
    result = attempt(lambda: explainer.explain(PEOPLE), title, report)
    report.counts["errors"] += result is None
    if result is not None:
        check_nobody_is_lost(result, title, report)
        if name in HARMLESS:
            report.check(answers(result) == expected, f"{title}: other answers")
    failing.broken = False
    again = answers(explainer.explain(PEOPLE))
    report.check(again == expected, f"{title}: other answers afterwards")
    now = [bits_of(TRAIN).tobytes(), bits_of(PEOPLE).tobytes()]
    report.check(now == CELLS, f"{title}: the input was changed")


def attempt(call: Any, title: str, report: Report) -> Any:
    """The result of a call; None if it ends in an error of ours or an interrupt."""
    try:
        return call()
    except McceError as error:
        report.check(15 < len(str(error)) < 4000, f"{title}: a message of {len(str(error))}")
    except KeyboardInterrupt:
        report.check("KeyboardInterrupt" in title, f"{title}: KeyboardInterrupt")
    except Exception as error:
        report.check(False, f"{title}: {type(error).__name__}: {str(error)[:300]}")
    return None


def answers(result: Any) -> tuple[bytes, bytes, list[str]]:
    return (
        bits_of(result.frame).tobytes(),
        result.owner.tobytes(),
        result.people["status"].tolist(),
    )


def check_nobody_is_lost(result: Any, title: str, report: Report) -> None:
    people = result.people
    report.check(len(people) == len(PEOPLE), f"{title}: people are lost")
    n_answers = np.bincount(result.owner, minlength=len(people))
    unanswered = (people["status"] == "no answer").to_numpy()
    report.check(bool((people["reason"][unanswered] != "").all()), f"{title}: no reason")
    answered = (people["status"] == "answered").to_numpy()
    report.check(np.array_equal(answered, n_answers > 0), f"{title}: answered without answers")
    sex = PEOPLE["sex"].to_numpy()[result.owner]
    report.check(bool((result.frame["sex"].to_numpy() == sex).all()), f"{title}: immutable")


def callbacks(explainer: MCCE, chance: np.random.Generator) -> Any:
    """What a predictor may do with the explainer that calls it."""
    ways = [
        lambda: explainer.explain(PEOPLE.head(3)),
        lambda: explainer.fit(TRAIN),
        lambda: pickle.dumps(explainer.fitted_.generator),
        lambda: copy.deepcopy(explainer),
        lambda: explainer.set_params(n_jobs=1),
    ]
    return ways[int(chance.integers(len(ways)))]
