"""Conditions that would run code, exhaust memory or write into cells are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from constrained import PEOPLE, TRAIN, explain
from mcce import MCCE, ConstraintError
from mcce import constraints as c
from mcce.constraints import expressions, formulas
from mcce.constraints.bounds import MAX_CONDITION, MAX_CONDITION_NESTING
from mcce.constraints.builders import build
from mcce.constraints.expressions import Expression
from mcce.saving.values import unpack

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

HOSTILE = {
    "repeats a string": ("city != 'a' * 500000000", "computes with .* no number"),
    "repeats a string from the right": ("city != 500000000 * 'a'", "no number"),
    "joins strings": ("city == 'a' + 'b'", "no number"),
    "formats a string": ("city == '%999999999d' % age", "no number"),
    "negates a string": ("city == -'a'", "no number"),
    "takes the least string": ("min(city, 'a') == 'a'", "no number"),
    "computes with None": ("age > None + 1", "no number"),
    "raises towers": ("age < 9**9**9", "not allowed"),
    "shifts": ("age < 1 << 99999", "not allowed"),
    "counts past all numbers": ("age < 1e999", "not a finite number"),
    "multiplies past all numbers": (f"age < 1e300{' * 1e300' * 9}", "not a finite number"),
    "divides by nothing": ("age < 1 / 0", "not a finite number"),
    "has a long integer": (f"age < {'9' * 5000}"[:3000], "not allowed"),
    "is too long": (f"age < 1{' ' * 12_000_000}", "4000 characters, got 12000007"),
    "has deep parentheses": (f"{'(' * 1900}age{')' * 1900} > 1", "nests more than"),
    "has deep functions": (f"{'abs(' * 600}age{')' * 600} > 1", "nests more than"),
    "has many signs": (f"{'-' * 3000}age > 1", "nests more than"),
    "has many nots": (f"{'not ' * 900}age > 1", "nests more than"),
    "has two strings in a row": ("city == 'a' 'b'", "not allowed"),
    "formats": ("f'{age:999999999}' == 'a'", "not allowed"),
    "has a star": ("min(*age) > 1", "not allowed"),
    "names a keyword": ("min(age, out=debt) > 1", "not allowed"),
    "assigns": ("(x := age) > 1", "not allowed"),
    "waits": ("await age", "not allowed"),
    "adds to a list": ("age in [1] + [2]", "not allowed"),
    "lists lists": ("age in [[1]]", "not allowed"),
    "has half a string": ("city == 'a", "not allowed"),
    "has half a name": ("`city == 'a'", "not allowed"),
    "has NUL": ("age > 1\0", "not allowed"),
    "has a comment": ("age > 1 # or so", "not allowed"),
    "ends early": ("age > (1", "ends where"),
    "is empty": ("", "ends where"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_condition_is_refused_before_it_is_computed(name):
    text, message = HOSTILE[name]

    with pytest.raises(ConstraintError, match=message) as caught:
        Expression(text)

    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


FRAME = pd.DataFrame(
    {
        "age": np.array([20, 40, 65], dtype=np.uint8),
        "big": np.array([2**62, -(2**62), 0]),
        "city": pd.Series(["Oslo", "Bergen", None], dtype=object),
        "numbers": pd.Series([1, 2.5, None], dtype=object),
        "level": pd.Categorical(["low", "high", "low"]),
        "paid": [True, False, True],
        "since": pd.to_datetime(["2020-01-01", "2024-06-01", None]),
        "until": pd.to_datetime(["2020-01-11", "2024-06-21", None]),
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "city * 500000000 == 'x'",
        "city + city == 'a'",
        "abs(city) > 1",
        "-level == 1",
        "city % 3 > 1",
    ],
)
def test_columns_of_strings_can_only_be_compared(text):
    with pytest.raises(ConstraintError, match="can only be compared") as caught:
        Expression(text)(FRAME)

    assert "Oslo" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("age * 1000 > 30000", [False, True, True]),
        ("-age < -30", [False, True, True]),
        ("age - 30 < 0", [True, False, False]),
        ("big * 4 > 0", [True, False, False]),
        ("big + big + big > 0", [True, False, False]),
        ("big == 4611686018427387904", [True, False, False]),
        ("numbers * 2 == 5", [False, True, False]),
        ("(age > 30) + (big > 0) + paid >= 2", [True, False, True]),
        ("not not age > 30", [False, True, True]),
        ("until - since <= '12 days'", [True, False, False]),
        ("max(until, since) > '2024-01-01'", [False, True, False]),
        ("age / 0 > 1", [True, True, True]),
        ("age % 0 == 1", [False, False, False]),
        ("city in ['Os\\x6co']", [True, False, False]),
        ("1 < 2 and age > 30", [False, True, True]),
        (" + ".join(["age"] * 500) + " > 15000", [False, True, True]),
        (" or ".join(["age > 30"] * 300), [False, True, True]),
    ],
)
def test_arithmetic_does_not_overflow_or_warn(text, holds):
    assert Expression(text)(FRAME).tolist() == holds


def test_conditions_up_to_the_bounds_are_computed():
    depth = MAX_CONDITION_NESTING
    nested = "(age < 30 or age + 1 * " * depth + "1" + " > 30)" * depth
    listed = f"age in [{'1, ' * 1300}20]"

    assert MAX_CONDITION - 100 < len(listed) < MAX_CONDITION
    assert Expression(nested)(FRAME).shape == (3,)
    assert Expression(listed)(FRAME).tolist() == [True, False, False]


@pytest.mark.parametrize("text", ["city > 3", "level > 'low'", "since > 'never'", "age > 'Oslo'"])
def test_what_cannot_be_computed_is_refused_without_cells(text):
    with pytest.raises(ConstraintError, match="cannot be computed") as caught:
        Expression(text)(FRAME)

    assert "Bergen" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


DTYPES = {
    "int64": [1, 2, 3],
    "uint8": [1, 2, 3],
    "float64": [1.5, None, 3],
    "float32": [1.5, None, 3],
    "bool": [True, False, True],
    "object": ["a", None, "c"],
    "category": ["a", None, "c"],
    "string": ["a", None, "c"],
    "Int64": [1, None, 3],
    "Float64": [1.5, None, 3],
    "boolean": [True, None, False],
    "datetime64[ns]": ["2024-01-01", None, "2024-01-03"],
    "datetime64[ns, UTC]": ["2024-01-01", None, "2024-01-03"],
    "timedelta64[ns]": [1, None, 3],
    "int64[pyarrow]": [1, None, 3],
    "double[pyarrow]": [1.5, None, 3],
    "string[pyarrow]": ["a", None, "c"],
}


def overwrite(values):
    """Write into whatever a function of a condition was given, as hard as possible."""
    for target in (values, getattr(values, "array", None), getattr(values, "iloc", None)):
        for other in (0, "z", None, True, pd.Timestamp("2000-01-01", tz="UTC"), pd.Timedelta(0)):
            try:
                target[0] = other
            except Exception:
                continue
    return values


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_function_of_a_condition_can_write_into_cells(dtype, monkeypatch):
    frame = pd.DataFrame({"x": pd.Series(DTYPES[dtype]).astype(dtype)})
    before = frame.copy(deep=True)
    monkeypatch.setitem(formulas.ON_NUMBERS, "abs", overwrite)
    monkeypatch.setitem(
        expressions._COMPARISONS, "==", lambda cells, other: pd.isna(overwrite(cells))
    )

    for text in ("x == 1", "abs(x) == 1"):
        try:
            Expression(text)(frame)
        except ConstraintError:
            continue

    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conditions_read_every_dtype_and_leave_it_as_it_is(dtype):
    frame = pd.DataFrame({"x": pd.Series(DTYPES[dtype]).astype(dtype)})
    before = frame.copy(deep=True)
    known = f"{DTYPES[dtype][2]!r}"

    for text in ("missing(x)", "not missing(x)", f"x == {known}", f"x in [{known}] or missing(x)"):
        assert Expression(text)(frame).dtype == bool

    pd.testing.assert_frame_equal(frame, before)


def zero(frame):
    """A rule that writes into the frame it is given."""
    holds = (frame["age"] > 0).to_numpy().copy()
    try:
        frame["age"].to_numpy()[:] = 0
    except ValueError:
        frame.loc[:, "age"] = 0
    frame["salary"] = -1.0
    frame.loc[:, "housing"] = "castle"
    return holds


@pytest.mark.parametrize(
    ("writing", "reading"),
    [
        (c.relation("x", zero), c.relation("x", lambda frame: frame["age"] > 0)),
        (c.frozen("years", where=zero), c.frozen("years", where=lambda frame: frame["age"] > 0)),
    ],
    ids=["relation", "frozen"],
)
def test_a_function_that_writes_changes_neither_answers_nor_people(writing, reading):
    people, before = PEOPLE.copy(deep=True), PEOPLE.copy(deep=True)

    written, read = explain([writing], people), explain([reading], people)

    pd.testing.assert_frame_equal(people, before)
    pd.testing.assert_frame_equal(written.frame, read.frame)
    pd.testing.assert_frame_equal(TRAIN, bank(400))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_saved_explainer_cannot_hold_a_hostile_condition(name):
    text, message = HOSTILE[name]
    given = {"name": "x", "holds": text}

    with pytest.raises(ConstraintError, match=message):
        build("relation", given)
    with pytest.raises(ConstraintError, match=message):
        unpack({"constraint": ["relation", {"dict": [[k, v] for k, v in given.items()]}]})


def test_a_condition_can_be_pickled_and_is_equal_by_its_text():
    condition = Expression("age - 1 in [1, -2] and not missing(debt)")

    again = pickle.loads(pickle.dumps(condition))

    assert again == condition
    assert again.names == ("age", "debt")


def test_a_failing_function_is_reported_without_its_message():
    def fails(frame):
        raise ValueError(f"cells: {frame['housing'].iloc[0]}")

    with pytest.raises(ConstraintError, match="raised a ValueError") as caught:
        MCCE(score, (0.8, 10), constraints=[c.relation("x", fails)]).fit(TRAIN).explain(PEOPLE)

    assert "cells" not in str(caught.value)
    assert "cells" in str(caught.value.original)
