"""The warning of columns that name their row instead of describing it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, McceWarning


def people(n_rows, n_levels, dtype=object):
    names = pd.Series([f"person {row % n_levels}" for row in range(n_rows)], dtype=dtype)
    return pd.DataFrame({"name": names, "salary": np.arange(n_rows, dtype=float)})


def numbered(values, **more):
    return pd.DataFrame({"row": values, "salary": np.linspace(0, 1, len(values)) ** 2, **more})


def score(frame):
    return (frame["salary"] > frame["salary"].median()).to_numpy(dtype=float)


def fit(frame, **more):
    return MCCE(score, desired=(0.5, 1.0), **more).fit(frame)


@pytest.mark.parametrize("immutable", [[], ["name"]])
def test_a_column_with_a_level_per_row_is_named_without_its_levels(immutable):
    with pytest.warns(
        McceWarning, match=r"Almost every row has its own level in \['name'\]"
    ) as said:
        MCCE(score, desired=(0.5, 1.0), immutable=immutable).fit(people(200, 190))

    assert "person" not in str(said[0].message)
    assert said[0].filename == __file__


def test_mutable_row_numbers_are_noticed():
    for values in (
        np.arange(200),
        np.random.default_rng(0).permutation(300)[:200],
        np.arange(200)[::-1] * 1000,
        pd.array(np.arange(200), dtype="Int64"),
        np.repeat(np.arange(200), np.where(np.arange(200) == 7, 2, 1)),
    ):
        with pytest.warns(
            McceWarning, match=r"\['row'\] look like row numbers.*make them immutable"
        ):
            fit(numbered(values))


def test_mutable_constants_are_noticed_together_with_row_numbers():
    with pytest.warns(McceWarning, match="row numbers") as said:
        fit(numbered(np.arange(200), country="NO", unit=1.0))

    assert len(said) == 1
    assert "['country', 'unit'] have one value in all rows" in str(said[0].message)
    assert "NO'" not in str(said[0].message)


def test_other_columns_and_immutable_ones_are_left_in_peace():
    chance = np.random.default_rng(0)
    ordered = pd.CategoricalDtype([f"person {row}" for row in range(200)], ordered=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for frame in (
            people(200, 150),
            people(50, 50),
            people(200, 200, ordered),
            numbered(chance.normal(size=200)),
            numbered(np.arange(200) / 7),
            numbered(chance.integers(18, 90, 200)),
            numbered(chance.integers(500, 90_000, 200)),
            numbered(pd.date_range("2024-01-01", periods=200)),
        ):
            fit(frame)
        fit(numbered(np.arange(200), country="NO"), immutable=["row", "country"])
