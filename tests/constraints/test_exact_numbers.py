"""Constraints hold to the last digit: integers beyond 2**53 and times of every unit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.constraints.limits import FactualLimits

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")
START = pd.Timestamp("2024-01-01")
# Five neighbours that are one number in float64.
NEIGHBOURS = np.tile(2**62 + np.arange(5), 20)


def answers(column, score, desired, constraint, people):
    train = pd.DataFrame({"x": column, "other": np.arange(len(column)) % 3})
    explainer = MCCE(score, desired, constraints=[constraint], n_samples=60, random_state=0)
    result = explainer.fit(train).explain(train.iloc[people])
    before = train["x"].iloc[people].iloc[result.owner].reset_index(drop=True)
    return before, result.frame["x"].reset_index(drop=True)


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        (c.only_down("x"), lambda old, new: new <= old),
        (c.not_up("x"), lambda old, new: new <= old),
        (c.only_up("x"), lambda old, new: new >= old),
        (c.between("x", 2**62 + 1, 2**62 + 3), lambda old, new: 1 <= new - 2**62 <= 3),
        (c.change("x", at_most=1), lambda old, new: new - old <= 1),
        (c.change("x", at_most=1.5), lambda old, new: new - old <= 1),
        (c.change("x", at_most="3e-17 %"), lambda old, new: new - old <= 1),
        (c.step("x", 2), lambda old, new: abs(new - old) >= 2),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint64", "datetime64[ns]"])
def test_integers_that_a_float_cannot_tell_apart_are_compared_exactly(constraint, holds, dtype):
    whole = lambda column: column.astype("int64").tolist()
    score = lambda frame: (np.array(whole(frame["x"])) % 5 + frame["other"]) / 6
    if dtype == "datetime64[ns]" and constraint.kind in ("between", "change", "step"):
        constraint = {
            "between": c.between("x", *pd.to_datetime([2**62 + 1, 2**62 + 3])),
            "change": c.change("x", at_most="1 ns"),
            "step": c.step("x", "2 ns"),
        }[constraint.kind]

    column = pd.Series(NEIGHBOURS).astype(dtype)
    before, after = answers(column, score, (0.6, 2.0), constraint, range(30))

    pairs = list(zip(whole(before), whole(after), strict=True))
    assert len(pairs) > 5
    assert all(holds(old, new) for old, new in pairs if old != new)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("days", ["100 days", pd.Timedelta("100D"), np.timedelta64(100, "D")])
def test_lengths_of_time_mean_the_same_in_every_unit(unit, days):
    moments = START + pd.to_timedelta(np.arange(300), unit="D")
    column = pd.Series(moments).astype(f"datetime64[{unit}]")
    score = lambda frame: (frame["x"] - START).dt.days / 300

    before, after = answers(column, score, (0.5, 1), c.change("x", at_most=days), range(100, 140))
    stepped, apart = answers(column, score, (0.5, 1), c.step("x", days), range(100, 140))

    assert len(before) == len(stepped) == 40
    assert (after - before).max() <= pd.Timedelta("100D")
    assert (apart - stepped).min() >= pd.Timedelta("100D")


@pytest.mark.parametrize("amount", [np.timedelta64(3, "D"), np.float64(3.5), np.array([True])])
def test_a_constraint_with_values_of_numpy_can_be_shown(amount):
    assert "x" in repr(c.frozen("x", where=amount) if np.ndim(amount) else c.step("x", amount))


@pytest.mark.parametrize("percent", [7, 14, 28, 29, 55, 57, 58])
def test_a_whole_percentage_includes_its_end(percent):
    column = np.tile(np.arange(1, 101), 5)
    constraint = c.change("x", at_least=f"-{percent} %")

    _before, after = answers(
        column, lambda frame: frame["x"] * 1.0, (0, 100 - percent), constraint, [99]
    )

    assert after.tolist() == [100 - percent]


def test_a_percentage_of_a_large_integer_is_exact():
    column = np.tile(2**53 + np.arange(40), 5)
    constraint = c.change("x", at_most="1e-13 %")

    before, after = answers(
        column, lambda frame: (frame["x"] - 2**53) / 40, (0.5, 1), constraint, range(11, 20)
    )

    assert len(after) > 5
    # 1e-15 of 2**53 is a little more than 9.
    assert (after - before).max() == 9


@pytest.mark.parametrize(
    "constraint",
    [
        c.change("x", at_most=2**60 + 1),
        c.change("x", at_most=float(2**53 - 1)),
        c.change("x", at_least="-0.7 %", at_most="0.7 %"),
        c.change("x", at_least=-1),
        c.step("x", 2**60 + 1),
        c.step("x", 3),
    ],
    ids=lambda constraint: str(constraint.builder_call()[1]),
)
def test_what_a_number_may_become_does_not_depend_on_the_others(constraint):
    numbers = [0, 1, 1000, 2**53 - 1, 2**53, 2**60, 2**60 + 1, 2**60 + 2, 2**62 + 1]
    column = np.array([number + step for number in numbers for step in (0, 1, 2, 7)])
    train = pd.DataFrame({"x": column, "other": np.arange(column.size) % 3})
    schema = MCCE(lambda frame: frame["other"] / 2, (0.8, 1)).fit(train).schema_
    limits = FactualLimits(Constraints.bind([constraint], schema), schema.encode(train))

    together = limits.limits(np.arange(column.size), schema.features)

    for person in range(column.size):
        alone = limits.limits(np.array([person]), schema.features)
        first, last = together.first[0, person], together.last[0, person]
        assert alone.runs.tolist() == together.runs[first:last].tolist()
        assert alone.near[0, 0].tolist() == together.near[0, person].tolist()
