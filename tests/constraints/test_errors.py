"""A wrong constraint is an error that says what is wrong and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import score
from constrained import TRAIN, explain
from mcce import MCCE, ConstraintError
from mcce import constraints as c

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


WRONG = {
    "names a column": (lambda: [c.only_up("salry")], "Did you mean 'salary'"),
    "names an immutable column": (lambda: [c.only_up("sex")], "immutable"),
    "has no order": (lambda: [c.only_up("housing")], "no order"),
    "leaves out levels": (lambda: [c.only_up("housing", order=["rent"])], "leaves out"),
    "orders numbers": (lambda: [c.only_up("age", order=[1, 2])], "needs no order"),
    "is about numbers": (lambda: [c.between("housing", 1, 2)], "categorical"),
    "is about levels": (lambda: [c.levels("salary", [1])], "numeric"),
    "names a level": (lambda: [c.levels("housing", ["castle"])], "castle"),
    "has its ends the wrong way round": (lambda: [c.between("salary", 3, 2)], "Swap"),
    "ends in a text": (lambda: [c.between("salary", "much", None)], "much"),
    "ends in a boolean": (lambda: [c.between("salary", True, None)], "needs a number"),
    "has no end": (lambda: [c.between("salary")], "low, high or both"),
    "changes by nothing": (lambda: [c.change("salary")], "at_least, at_most or both"),
    "is no percentage": (lambda: [c.change("salary", at_most="ten %")], "percentage"),
    "is the wrong way round": (lambda: [c.change("salary", at_least=2, at_most=1)], "above"),
    "maps nothing": (lambda: [c.transitions("housing", ["rent"])], "must map"),
    "lists a text": (lambda: [c.levels("housing", "rent")], "must be a list"),
    "freezes nothing": (lambda: [c.frozen()], "at least one feature"),
    "freezes whom": (lambda: [c.frozen("age", where=[True])], "one True or False for each"),
    "freezes by numbers": (lambda: [c.frozen("age", where=[1] * 60)], "one True or False for each"),
    "freezes by failing": (lambda: [c.frozen("age", where=lambda people: 1 / 0)], "ZeroDivision"),
    "has other labels": (
        lambda: [c.frozen("age", where=pd.Series([True] * 60, index=range(100, 160)))],
        "index",
    ),
    "is alone": (lambda: [c.together("age")], "two features"),
    "lets nothing change": (lambda: [c.max_changes(0)], "at least 1"),
    "counts in halves": (lambda: [c.max_changes(1.5)], "whole number"),
    "has no name": (lambda: [c.relation("", "age > 1")], "name must be a non-empty string"),
    "asks nothing": (lambda: [c.relation("x", 3)], "condition"),
    "is no condition": (lambda: [c.relation("x", "age >")], "not a condition"),
    "runs code": (lambda: [c.relation("x", "__import__('os')")], "calls"),
    "reaches inside": (lambda: [c.relation("x", "age.__class__ > 1")], "not allowed"),
    "names no column": (lambda: [c.relation("x", "1 < 2")], "names no column"),
    "names one that is not there": (lambda: [c.relation("x", "agee > 1")], "'agee'"),
    "gives a number": (lambda: [c.relation("x", "age + 1")], "true or false"),
    "compares texts with numbers": (lambda: [c.relation("x", "housing > 3")], "computed"),
    "fails": (lambda: [c.relation("x", lambda frame: frame["nothing"])], "KeyError"),
    "is twice there": (lambda: [c.relation("x", "age > 1"), c.relation("x", "age > 2")], "two"),
    "weighs less than nothing": (lambda: [c.weight("age", -1)], "at least 0"),
    "weighs more than a float": (lambda: [c.weight("age", 10**400)], "a finite number"),
    "steps on the spot": (lambda: [c.step("age", 0)], "above 0"),
    "steps over levels": (lambda: [c.step("housing", 1)], "categorical"),
    "is no constraint": (lambda: ["only_up"][0:1] and [3], "not a constraint"),
    "is no list": (lambda: 3, "list of constraints"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_constraint_is_an_error_that_names_what_is_wrong(name):
    make, message = WRONG[name]

    with pytest.raises(ConstraintError, match=message):
        explain(make())


def test_weights_need_the_gower_distance():
    class Far:
        name = "far"

        def fit(self, schema, rows, decision):
            return self

        def __call__(self, candidates):
            return np.zeros(candidates.shape)

    with pytest.raises(ConstraintError, match="Gower"):
        explain([c.weight("age", 2)], distance=Far())


def test_a_relation_that_changes_its_answer_is_an_error():
    outcomes = iter([True] * 1000)

    def moody(frame):
        return np.full(len(frame), next(outcomes, False) and len(frame) > 40)

    with pytest.raises(ConstraintError, match="each time"):
        explain([c.relation("moody", moody)])


def test_constraints_in_an_iterator_are_refused():
    with pytest.raises(ConstraintError, match="list of constraints"):
        explain(rule for rule in [c.frozen("age")])


@pytest.mark.parametrize(
    ("where", "message"), [("agee > 60", "Did you mean 'age'"), ("age >", "not a condition")]
)
def test_a_wrong_condition_is_an_error_at_fit_at_the_latest(where, message):
    with pytest.raises(ConstraintError, match=message):
        MCCE(score, (0.8, 10), constraints=[c.frozen("salary", where=where)]).fit(TRAIN)


@pytest.mark.parametrize(
    "rule",
    [
        lambda: c.change("since", at_most=30),
        lambda: c.change("since", at_most="10 %"),
        lambda: c.step("since", 30),
        lambda: c.between("since", 2011),
    ],
)
def test_numbers_and_percentages_do_not_limit_dates(rule):
    train = pd.DataFrame({"since": pd.date_range("2024", periods=50), "x": range(50)})

    with pytest.raises(ConstraintError, match="since"):
        MCCE(lambda rows: rows["x"], (1, 2), constraints=[rule()]).fit(train)
