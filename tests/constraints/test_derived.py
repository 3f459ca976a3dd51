"""Columns that are computed from others: what a formula may be, and what it means for a row."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ConstraintError, Schema
from mcce import constraints as c
from mcce.constraints.bounds import MAX_CONDITION
from mcce.constraints.collection import Constraints
from mcce.constraints.formulas import Formula

TRAIN = pd.DataFrame(
    {
        "months": [1, 2, 3, 4] * 5,
        "price": [2.5, 5.0, 7.5, 10.21] * 5,
        "fee": [1.0, 2.0] * 10,
        "member": [True, False] * 10,
        "plan": ["a", "b"] * 10,
        "since": pd.date_range("2024-01-01", periods=20),
    }
).assign(total=lambda frame: frame["months"] * frame["price"])


def kept(before, after, constraint, train=TRAIN):
    """Whether one row obeys a constraint, given the row it comes from."""
    rows = Schema.learn(train).encode(pd.DataFrame([before]).astype(train.dtypes))
    bound = Constraints.bind([constraint], rows.schema)
    frame = pd.DataFrame([before | after]).astype(train.dtypes)
    return not bound.broken(rows, np.array([0]), frame)[constraint.name][0]


PERSON = TRAIN.iloc[1].to_dict()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a * b", [6.0, 20.0]),
        ("a + b - 1", [4.0, 8.0]),
        ("-(a - b) / 2", [0.5, 0.5]),
        ("min(a, b, 3) + max(a, 4)", [6.0, 7.0]),
        ("abs(a - b) * 2 // 1 % 2", [0.0, 0.0]),
        ("`the first` + flag", [2.0, 3.0]),
        ("a", [2.0, 4.0]),
    ],
)
def test_a_formula_computes_numbers(text, expected):
    frame = pd.DataFrame({"a": [2, 4], "b": [3.0, 5.0], "the first": [1, 3], "flag": [True, False]})

    assert Formula(text)(frame).tolist() == expected


@pytest.mark.parametrize("dtype", ["float32", "Int64", "Float64", "float64", "int8"])
def test_a_formula_computes_in_double_precision_whatever_the_dtype(dtype):
    frame = pd.DataFrame({"a": pd.Series([100, 101], dtype=dtype)})

    computed = Formula("a * 1000003 + 0.5")(frame)

    assert computed.dtype == np.float64
    assert computed.tolist() == [100000300.5, 101000303.5]


def test_a_formula_is_undefined_where_a_cell_is_missing_or_it_is_not_finite():
    frame = pd.DataFrame(
        {"a": pd.Series([1, None, 3], dtype="Int64"), "b": [0.0, 1.0, np.nan], "c": [1.0, 2.0, 3.0]}
    )

    assert np.isnan(Formula("a / b")(frame)).all()
    assert Formula("c / c")(frame).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: c.derived("total", "months >= 1"), "not allowed there. A formula may"),
        (lambda: c.derived("total", "(months > 1) * price"), "not allowed there. A formula may"),
        (lambda: c.derived("total", "months and price"), "not allowed there"),
        (lambda: c.derived("total", "not months"), "not allowed there"),
        (lambda: c.derived("total", "months in [1, 2]"), "not allowed there"),
        (lambda: c.derived("total", "missing(months)"), "functions are abs, min, max"),
        (lambda: c.derived("total", "__import__('os')"), "calls"),
        (lambda: c.derived("total", "months ** 2"), "not allowed there"),
        (lambda: c.derived("total", "months + 'a'"), "no number"),
        (lambda: c.derived("total", "months +"), "is not a formula: it ends"),
        (lambda: c.derived("total", ""), "is not a formula: it ends"),
        (lambda: c.derived("total", "3 * 4"), "names no column"),
        (lambda: c.derived("total", "-" * 30 + "months"), "nests more than"),
        (lambda: c.derived("total", "months + " * MAX_CONDITION), "A formula may have"),
        (lambda: c.derived("total", 3), "must be a string such as"),
        (lambda: c.derived("total", "total + months"), "reads the column that it computes"),
        (lambda: c.derived("total", "months", tolerance=-1), "tolerance must be a finite number"),
        (lambda: c.derived("total", "months", tolerance="1"), "tolerance must be a finite number"),
        (
            lambda: c.derived("total", "months", tolerance=np.complex64(1)),
            "tolerance must be a fin",
        ),
        (lambda: c.derived("total", "months", tolerance=np.float32("inf")), "tolerance must be a"),
        (lambda: c.derived("total", "month * price"), "no column 'month'. Did you mean 'months'"),
        (lambda: c.derived("totals", "months * price"), "no column 'totals'"),
        (lambda: c.derived("plan", "months * price"), "'plan' is categorical"),
        (lambda: c.derived("total", "months * plan"), "'plan' is categorical"),
        (lambda: c.derived("since", "months * 30"), "'since' is numeric and has dtype datetime"),
        (lambda: c.derived("total", "since - 1"), "'since' is numeric and has dtype datetime"),
        (lambda: c.derived("member", "months"), "'member' is categorical"),
    ],
)
def test_a_wrong_formula_is_an_error_that_names_what_is_wrong(make, message):
    with pytest.raises(ConstraintError, match=message.replace("(", r"\(")):
        Constraints.bind([make()], Schema.learn(TRAIN))


def test_columns_derived_from_each_other_are_an_error():
    circle = [
        c.derived("total", "months * price"),
        c.derived("price", "fee * 2"),
        c.derived("fee", "total / 10"),
    ]

    with pytest.raises(ConstraintError, match="computed from each other"):
        Constraints.bind(circle, Schema.learn(TRAIN))


def test_a_column_is_derived_once():
    twice = [c.derived("total", "months * price"), c.derived("total", "price * months")]

    with pytest.raises(ConstraintError, match="two constraints 'derived total'"):
        Constraints.bind(twice, Schema.learn(TRAIN))


@pytest.mark.parametrize("tolerance", [np.float16(0.5), np.float32(0.5), np.float64(0.5)])
def test_a_tolerance_may_be_a_float_of_any_precision(tolerance):
    constraint = c.derived("total", "months * price", tolerance=tolerance)

    assert constraint == c.derived("total", "months * price", tolerance=0.5)


def test_a_tolerance_beside_the_largest_floats_is_infinite():
    train = pd.DataFrame({"total": [1.0, 8e307], "months": [1.0, 2.0]})
    (total, _) = Schema.learn(train).features

    assert c.derived("total", "months", tolerance=1.7e308).allowed_deviation(total) == math.inf


def test_two_that_say_the_same_are_equal_and_show_what_made_them():
    constraint = c.derived("total", "months * price", tolerance=1)

    assert constraint == c.derived("total", "months * price", tolerance=1.0)
    assert constraint != c.derived("total", "months + price", tolerance=1)
    assert repr(constraint) == "derived('total', formula='months * price', tolerance=1.0)"
    assert constraint.name == "derived total"


def test_a_row_obeys_the_formula_or_deviates_as_the_person_does():
    rule = c.derived("total", "months * price")
    odd = PERSON | {"total": 10.75}

    assert kept(PERSON, {"months": 4, "total": 20.0}, rule)
    assert not kept(PERSON, {"months": 4, "total": 20.01}, rule)
    assert not kept(PERSON, {"months": 4}, rule)
    assert kept(odd, {"months": 4, "total": 20.75}, rule)
    assert kept(odd, {"months": 4, "total": 20.0}, rule)
    assert not kept(odd, {"months": 4, "total": 20.5}, rule)
    assert kept(odd, {"fee": 1.0}, rule)


def test_the_tolerance_is_half_of_the_last_decimal_place_unless_given():
    cents = TRAIN.assign(total=TRAIN["total"].round(2))

    assert kept(PERSON, {"months": 4, "total": 20.004}, c.derived("total", "months * price"), cents)
    assert not kept(PERSON, {"total": 10.5}, c.derived("total", "months * price"), cents)
    assert kept(PERSON, {"total": 10.5}, c.derived("total", "months * price", tolerance=0.5))
    assert not kept(PERSON, {"total": 10.51}, c.derived("total", "months * price", tolerance=0.5))
    assert kept(PERSON, {"total": 10.0}, c.derived("total", "months * price", tolerance=0))


def test_a_column_may_be_missing_where_its_formula_is_undefined():
    rule = c.derived("total", "months * price")
    unknown = PERSON | {"price": np.nan, "total": np.nan}

    assert kept(unknown, {"price": 5.0, "total": 10.0}, rule)
    assert kept(PERSON, {"price": np.nan, "total": np.nan}, rule)
    assert not kept(PERSON, {"total": np.nan}, rule)
    assert not kept(PERSON, {"price": np.nan}, rule)
    assert kept(PERSON | {"total": np.nan}, {"months": 3}, rule)


def test_draws_that_break_a_formula_are_excluded_with_its_name_as_the_reason():
    def score(frame):
        return frame["months"].to_numpy(dtype=float)

    explainer = MCCE(
        score, (3, 10), constraints=[c.derived("total", "months * price + 100")], random_state=0
    )
    with pytest.warns(match="holds in 0 of"):
        explainer.fit(TRAIN)

    with pytest.warns(match="no counterfactual"):
        result = explainer.explain(TRAIN.iloc[[0]].assign(total=102.5))

    assert "excluded by derived total" in result.missing["reason"].iloc[0]
