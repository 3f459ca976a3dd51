"""Conditions as strings: what they may contain and what they mean."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from constrained import explain
from mcce import ConstraintError
from mcce import constraints as c
from mcce.constraints.expressions import Expression


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("x != 1", [True, False, False]),
        ("x == 1", [False, True, False]),
        ("x not in [1]", [True, False, False]),
        ("x > 0 and x < 2", [False, True, False]),
        ("missing(x) or x > 1", [True, False, True]),
        ("not missing(x)", [True, True, False]),
        ("0 < x < 2", [False, True, False]),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "Int64", "object", "double[pyarrow]"])
def test_a_comparison_with_a_missing_value_is_false_in_every_dtype(text, holds, dtype):
    frame = pd.DataFrame({"x": pd.Series([2, 1, None], dtype=dtype)})

    assert Expression(text)(frame).tolist() == holds


@pytest.mark.parametrize(
    "text", ["age > 20 and years", "age and years > 1", "not age", "age > 1 or 3"]
)
def test_and_or_and_not_need_conditions(text):
    with pytest.raises(ConstraintError, match="not true or false"):
        explain([c.frozen("salary", where=text)])


FRAME = pd.DataFrame(
    {
        "age": [20, 40, 65],
        "debt": [0.0, 500.0, np.nan],
        "city": ["Oslo", "Bergen", None],
        "is owner": [True, False, True],
        "level": pd.Categorical(["low", "high", "low"], ["low", "high"], ordered=True),
        "since": pd.to_datetime(["2020-01-01", "2024-06-01", None]),
    }
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("age * 2 + 10 >= 90", [False, True, True]),
        ("age // 10 == 2 or age % 5 == 0 and debt / 100 > 4", [True, True, False]),
        ("age > +30", [False, True, True]),
        ("-age < -30", [False, True, True]),
        ("age in [-20, 40]", [False, True, False]),
        ("abs(age - 40) <= 20", [True, True, False]),
        ("min(age, 30) == 30", [False, True, True]),
        ("max(debt, 100) > 100", [False, True, False]),
        ("missing(city)", [False, False, True]),
        ('city in ["Oslo", "Bergen"]', [True, True, False]),
        ('city not in ("Oslo",)', [False, True, False]),
        ('city == "Oslo"', [True, False, False]),
        ("`is owner`", [True, False, True]),
        ("not `is owner`", [False, True, False]),
        ("`is owner` == True and age < 30", [True, False, False]),
        ('level >= "high"', [False, True, False]),
        ('since > "2023-12-31"', [False, True, False]),
        ('since in ["2020-01-01", "never"]', [True, False, False]),
        ('since not in ["2020-01-01"]', [False, True, False]),
        ("not (debt > 100)", [True, False, True]),
        ("30 < age <= 65", [False, True, True]),
    ],
)
def test_a_condition_holds_for_the_rows_that_meet_it(text, holds):
    assert Expression(text)(FRAME).tolist() == holds


@pytest.mark.parametrize(
    "text",
    [
        "age ** 2 > 3",
        "age if age > 3 else 4",
        "age[0] > 3",
        "age.real > 3",
        "age is None",
        "(lambda: age)() > 3",
        "[x for x in age] > 3",
        "min(age, key=3) > 3",
        "min(*age) > 3",
        "age & 1 == 1",
        "~age > 3",
        'f"{age}" == "3"',
        "(x := age) > 3",
        "{age} == 3",
    ],
)
def test_what_is_not_listed_is_not_allowed(text):
    with pytest.raises(ConstraintError, match="not allowed"):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abs(age, debt) > 3", "abs takes one argument, got 2"),
        ("missing()", "missing takes one argument, got 0"),
        ("min(age) > 3", "min takes two or more arguments, got 1"),
        ("age in debt", "list values such as .*not columns, got 'debt'"),
        ("age in [debt, 3]", "not columns"),
        ("age == [20, 40, 65]", r"contains '\[20, 40, 65\]', which is not allowed"),
        ("age == 3j", "contains '3j', which is not allowed"),
    ],
)
def test_a_condition_that_would_be_misread_is_an_error(text, message):
    with pytest.raises(ConstraintError, match=message):
        Expression(text)


def test_columns_are_named_once_and_in_order():
    condition = Expression("`is owner` or debt < age and missing(debt)")

    assert condition.names == ("is owner", "debt", "age")


def test_nan_in_a_nullable_float_is_missing():
    numbers = pd.arrays.FloatingArray(np.array([1.0, np.nan, 3.0]), np.array([False, False, True]))
    frame = pd.DataFrame({"x": pd.Series(numbers)})

    assert Expression("missing(x)")(frame).tolist() == [False, True, True]
    assert Expression("not missing(x)")(frame).tolist() == [True, False, False]
    assert Expression("x != 2")(frame).tolist() == [True, False, False]
