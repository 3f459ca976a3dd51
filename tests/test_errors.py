"""What errors quote is short, quick to make and free of cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mcce.errors import shorten


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


@pytest.mark.parametrize("limit", [20, 80, 300])
@pytest.mark.parametrize(
    "value",
    [
        "a" * 10**7,
        "\ud800" * 10**6,
        b"\x00" * 10**6,
        10**10_000,
        -(10**10_000),
        [10**10_000] * 10**6,
        {"a" * 10**6: "b" * 10**6},
        set(range(10**6)),
        nested(100_000),
        doubled(60),
        recursive(),
        Failing(),
        [Failing()],
        ValueError("line\n" * 10**6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_quoted_fits_on_a_line(value, limit):
    text = shorten(value, limit)

    assert 0 < len(text) <= limit
    assert text.isprintable()


@pytest.mark.parametrize(
    "value", [None, True, 3, -2.5, "it's", b"x", [], (1,), (1, "b"), {"a": [1, {}]}, {1}, set()]
)
def test_what_is_short_is_its_repr(value):
    assert shorten(value) == repr(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (pd.DataFrame({"name": ["Ada"]}), "a DataFrame of shape (1, 1)"),
        (pd.Series(["Ada"]), "a Series of shape (1,)"),
        ([np.array(["Ada"])], "[a ndarray of shape (1,)]"),
        (pa.chunked_array([["Ada"]]), "a ChunkedArray"),
        (pl.Series(["Ada"]), "a Series of shape (1,)"),
        (np.float64(2.5), "np.float64(2.5)"),
        (KeyError("age"), "'age'"),
    ],
)
def test_cells_are_never_quoted(value, text):
    assert shorten(value) == text
