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
