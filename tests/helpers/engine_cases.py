"""People, rules and a predictor that every engine must answer alike."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE
from mcce.constraints import between, not_down, only_up, relation
from mcce.datasets import load_german_credit
from mcce.errors import McceWarning, ParameterError, SchemaError

IMMUTABLE = ["Age", "Sex", "ForeignWorker"]
# New levels of a category, in another order than their people have.
NEW_HOUSING = ["a tent", "a ship"]
POISON = "expected a finite number that fits float64"


def training() -> pd.DataFrame:
    """German Credit with missing values: whole numbers, decimals, texts, categories and truths."""
    rows = load_german_credit().features
    rows = rows.astype(dict.fromkeys(("Purpose", "Savings", "Job"), object))
    chance = np.random.default_rng(7)
    for name in ("Duration", "Savings", "Telephone"):
        rows[name] = rows[name].mask(chance.random(len(rows)) < 0.05)
    return rows.assign(
        CreditAmount=rows["CreditAmount"] / 4,
        ForeignWorker=rows["ForeignWorker"].eq("yes"),
    )


def people(n_people: int) -> pd.DataFrame:
    """People who were never seen, with missing cells and new levels, and a number each."""
    rows = training()
    chance = np.random.default_rng(11)
    drawn = pd.DataFrame(
        {
            name: column.iloc[chance.integers(len(rows), size=n_people)].array
            for name, column in rows.items()
        }
    )
    drawn["Purpose"] = drawn["Purpose"].mask(chance.random(n_people) < 0.02, "a boat")
    housing = drawn["Housing"].cat.add_categories(NEW_HOUSING)
    for new in NEW_HOUSING:
        housing = housing.mask(chance.random(n_people) < 0.04, new)
    drawn["Housing"] = housing
    drawn["Age"] = drawn["Age"].mask(chance.random(n_people) < 0.02)
    number = chance.permutation(n_people) + 1_000_000
    return drawn.assign(customer=number)


def poisoned(n_people: int) -> pd.DataFrame:
    """People, one of whom has a cell that fits no column of the explainer."""
    rows = people(n_people)
    return rows.assign(CreditAmount=rows["CreditAmount"].where(rows.index != 0, np.inf))


def load_predictor():
    """A scoring function that any process can make; nested, so that it is sent whole."""

    def score(frame):
        points = 1.0 - 0.05 * frame["Duration"].astype(float).fillna(20.0)
        points = points - 0.0004 * frame["CreditAmount"].astype(float)
        points = points + 0.02 * frame["Age"].astype(float).fillna(40.0)
        points = points + 0.8 * frame["CheckingStatus"].eq("no checking account")
        points = points + 0.6 * frame["Housing"].astype(object).eq("own")
        points = points + 0.5 * frame["Savings"].notna()
        return 1 / (1 + np.exp(-points.to_numpy(dtype=float)))

    return score


def load_deadly(folder: Path, n_deaths: int = 2) -> Callable[[], Any]:
    """Loads that function for workers, the first of which it kills when they are at work."""
    leader = os.getpid()

    def load():
        score = load_predictor()

        def kill_or_score(frame):
            # Probes of the explainer have no new levels.
            at_work = os.getpid() != leader and frame["Housing"].isin(NEW_HOUSING).any()
            for number in range(n_deaths if at_work else 0):
                try:
                    (folder / f"death {number}").touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
            return score(frame)

        return kill_or_score

    return load


@cache
def explainer(search: str = "paper") -> MCCE:
    """An explainer with rules of its own."""
    rules = [only_up("Duration"), between("InstallmentRate", 1, 4), not_down("ExistingCredits")]
    made = MCCE(
        load_predictor(),
        (0.85, 1.0),
        immutable=IMMUTABLE,
        search=search,
        n_samples=200,
        constraints=rules,
        n_counterfactuals=2,
        random_state=3,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return made.fit(training())


def constraints() -> list:
    """Further rules for these people."""
    return [relation("a small loan", "CreditAmount <= 4000")]


def one_call(search: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What every engine must give: one call of ``explain`` in this process, as a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer(search).explain(rows.drop(columns="customer"), constraints=constraints())
    people, frame = result.people, result.frame.reset_index(drop=True)
    without = np.flatnonzero(people["n_counterfactuals"] == 0)
    whose = np.concatenate([result.owner, without])
    table = pd.DataFrame(
        {
            "customer": rows["customer"].to_numpy()[whose],
            "rank": [*result.frame.index.get_level_values("rank"), *[None] * without.size],
            "status": people["status"].to_numpy()[whose],
            "reason": people["reason"].to_numpy()[whose],
            "reason_kind": people["reason_kind"].to_numpy()[whose],
            "score_before": people["score"].to_numpy()[whose],
        }
    )
    for name, column in [*result.measures.items(), *frame.items()]:
        table[name] = pd.Series([*_plain(column), *[None] * without.size], dtype=object)
    return table


def assert_same_answers(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Raise unless two tables hold the same cells, to the last bit, in any order of people."""
    assert set(expected) <= set(found)
    assert len(found) == len(expected)
    for name in expected:
        assert _cells(found, name) == _cells(expected, name), name


def _plain(column: pd.Series) -> list:
    return [
        None if gone else cell for cell, gone in zip(column.tolist(), column.isna(), strict=True)
    ]


def _cells(table: pd.DataFrame, name: str) -> list:
    order = np.lexsort(
        [table["rank"].fillna(0).to_numpy(dtype=int), table["customer"].to_numpy(dtype=int)]
    )
    cells = _plain(table[name].astype(object))
    return [_exact(cells[at]) for at in order]


def _exact(cell):
    """A cell such that two are equal only if all bits are; whole numbers have one form."""
    if isinstance(cell, (bool, np.bool_)):
        return "bool", bool(cell)
    if isinstance(cell, (int, np.integer)):
        return "number", int(cell)
    if isinstance(cell, (float, np.floating)):
        whole = cell.is_integer() and not (cell == 0 and np.signbit(cell))
        return "number", int(cell) if whole else float(cell).hex()
    return type(cell).__name__, cell


def assert_mistakes_are_named(explain: Callable, frame_of: Callable) -> None:
    """Raise unless an engine refuses, before anything runs, what every engine must refuse."""
    rows, limited = people(8), copy(explainer()).set_params(max_seconds=1.0)
    lacking = rows.drop(columns="Purpose")
    mistakes: list[tuple[str, type[Exception], MCCE, pd.DataFrame, dict]] = [
        ("lacks the columns .*number", SchemaError, explainer(), rows, {"key": "number"}),
        ("lacks the columns .*Purpose", SchemaError, explainer(), lacking, {}),
        ("key must name", ParameterError, explainer(), rows, {"key": []}),
        ("features already", ParameterError, explainer(), rows, {"key": "Age"}),
        ("depend on partitions", ParameterError, limited, rows, {}),
        ("must be a function", ParameterError, explainer(), rows, {"load_predictor": 1}),
        (
            "cannot be sent to workers .*lock.*load_predictor",
            ParameterError,
            explainer(),
            rows,
            {"load_predictor": Lock().locked},
        ),
    ]
    for words, error, model, given, options in mistakes:
        with pytest.raises(error, match=words):
            explain(model, frame_of(given), **{"key": "customer", **options})
    with pytest.raises(ParameterError, match=r"people must be a .*, got (builtins\.)?list"):
        explain(explainer(), [1, 2], key="customer")
