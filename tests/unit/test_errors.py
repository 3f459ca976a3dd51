"""What errors quote is short, quick to make and free of cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.dummy import DummyClassifier

from mcce import MCCE, McceError, ParameterError
from mcce.errors import did_you_mean

LONGEST = 300


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def doubled(times):
    value = ["ha"]
    for _ in range(times):
        value = [value, value]
    return value


def recursive():
    value = {"a": 1}
    value["b"] = [value]
    return value


class Failing:
    def __repr__(self):
        raise RuntimeError("no repr")


def told_about(value):
    """What the error says if a number of samples is some value."""
    with pytest.raises(ParameterError, match="n_samples must be") as caught:
        MCCE(len, (0.5, 1.0), n_samples=value).fit(pd.DataFrame({"age": [1, 2]}))
    return str(caught.value)


def test_whatever_is_quoted_is_short_and_printable():
    for value in [
        "a" * 10**7,
        "\ud800" * 10**6,
        b"\x00" * 10**6,
        10**10_000,
        [10**10_000] * 10**6,
        {"a" * 10**6: "b" * 10**6},
        set(range(10**6)),
        nested(100_000),
        doubled(60),
        recursive(),
        Failing(),
        [Failing()],
        ValueError("line\n" * 10**6),
    ]:
        text = told_about(value)

        assert len(text) <= LONGEST
        assert text.isprintable()


def test_what_is_short_is_its_repr_and_cells_are_never_quoted():
    for value in (True, -2.5, "it's", b"x", [], (1,), (1, "b"), {"a": [1, {}]}, {1}, set()):
        assert f"got {value!r}" in told_about(value)
    for value, text in [
        (pd.DataFrame({"name": ["Ada"]}), "a DataFrame of shape (1, 1)"),
        (pd.Series(["Ada"]), "a Series of shape (1,)"),
        ([np.array(["Ada"])], "[a ndarray of shape (1,)]"),
        (pa.chunked_array([["Ada"]]), "a ChunkedArray"),
        (pl.Series(["Ada"]), "a Series of shape (1,)"),
        (np.float64(2.5), "np.float64(2.5)"),
    ]:
        assert f"got {text}" in told_about(value)


def test_our_errors_are_the_builtin_ones_too():
    with pytest.raises(ValueError, match="n_samples") as caught:
        MCCE(len, (0.5, 1.0), n_samples=0).fit(pd.DataFrame({"age": [1, 2]}))

    assert isinstance(caught.value, McceError)


def test_what_a_predictor_raised_is_kept_for_whoever_may_see_it():
    def failing(frame):
        raise KeyError("Ada")

    with pytest.raises(McceError) as caught:
        MCCE(failing, (0.5, 1.0)).fit(pd.DataFrame({"age": [1, 2]}))

    assert "Ada" not in str(caught.value)
    assert isinstance(caught.value.original, KeyError)


def test_a_misspelt_name_is_answered_with_the_nearest_one():
    frame = pd.DataFrame({"salary": [1, 2, 3], "housing": ["own", "rent", "rent"]})
    for wrong, nearest in (
        ({"immutable": ["salry"]}, "salary"),
        ({"roles": {"Salary": "ours"}}, "salary"),
        ({"search": "balancd"}, "balanced"),
        ({"generator": "tree"}, "trees"),
        ({"distance": "gowr"}, "gower"),
        ({"desired": ["yess"]}, "yes"),
    ):
        model = DummyClassifier(strategy="prior").fit(frame, ["no", "yes", "yes"])
        with pytest.raises(McceError, match=rf"Did you mean '{nearest}'\?"):
            MCCE(**{"predictor": model, "desired": ["yes"]} | wrong).fit(frame)
    assert did_you_mean("zebra", ["age"]) == did_you_mean("a" * 1000, ["a"]) == ""
    assert did_you_mean(7, ["7"]) == ""
