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


def score(frame):
    return (frame["salary"] > frame["salary"].median()).to_numpy(dtype=float)


@pytest.mark.parametrize("immutable", [[], ["name"]])
def test_a_column_with_a_level_per_row_is_named_without_its_levels(immutable):
    explainer = MCCE(score, desired=(0.5, 1.0), immutable=immutable)

    with pytest.warns(
        McceWarning, match=r"Almost every row has its own level in \['name'\]"
    ) as said:
        explainer.fit(people(200, 190))

    assert "person" not in str(said[0].message)
    assert said[0].filename == __file__


@pytest.mark.parametrize(
    "frame",
    [
        people(200, 150),
        people(50, 50),
        people(
            200, 200, pd.CategoricalDtype([f"person {row}" for row in range(200)], ordered=True)
        ),
        people(200, 200)[["salary"]],
    ],
    ids=["shared levels", "few rows", "ordered levels", "numbers"],
)
def test_other_columns_are_no_identifiers(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MCCE(score, desired=(0.5, 1.0)).fit(frame)


def numbered(values, **more):
    return pd.DataFrame({"row": values, "salary": np.linspace(0, 1, len(values)) ** 2, **more})


SHUFFLED = np.random.default_rng(0).permutation(300)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(200),
        SHUFFLED[:200],
        np.arange(200)[::-1] * 1000,
        pd.array(np.arange(200), dtype="Int64"),
        np.repeat(np.arange(200), np.where(np.arange(200) == 7, 2, 1)),
    ],
    ids=["consecutive", "shuffled part", "descending", "nullable", "one twice"],
)
def test_mutable_row_numbers_are_noticed(values):
    with pytest.warns(McceWarning, match=r"\['row'\] look like row numbers.*make them immutable"):
        MCCE(score, desired=(0.5, 1.0)).fit(numbered(values))


def test_mutable_constants_are_noticed_together_with_row_numbers():
    frame = numbered(np.arange(200), country="NO", unit=1.0)

    with pytest.warns(McceWarning, match="row numbers") as said:
        MCCE(score, desired=(0.5, 1.0)).fit(frame)

    assert len(said) == 1
    assert "['country', 'unit'] have one value in all rows" in str(said[0].message)
    assert "NO'" not in str(said[0].message)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=200),
        np.arange(200) / 7,
        np.random.default_rng(0).integers(18, 90, 200),
        np.random.default_rng(0).integers(500, 90_000, 200),
        pd.date_range("2024-01-01", periods=200),
    ],
    ids=["measured", "sorted floats", "ages", "amounts", "dates"],
)
def test_measured_columns_are_no_row_numbers(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MCCE(score, desired=(0.5, 1.0)).fit(numbered(values))


def test_immutable_row_numbers_and_constants_are_left_in_peace():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = MCCE(score, desired=(0.5, 1.0), immutable=["row", "country"])
        explainer.fit(numbered(np.arange(200), country="NO"))
