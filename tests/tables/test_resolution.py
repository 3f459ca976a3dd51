"""Decimal places of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.tables.features import Feature
from mcce.tables.resolution import decimals, resolution

CHANCE = np.random.default_rng(0)
CENTS = CHANCE.integers(1, 10**6, 500) / 100


def feature(numbers, dtype=None):
    return Feature.learn(pd.Series(numbers, dtype=dtype, name="x"), kind=None, immutable=False)


@pytest.mark.parametrize(
    ("numbers", "dtype", "expected"),
    [
        ([1, 20, 300], "int64", 0),
        ([1.0, 20.0], "float64", 0),
        ([0.5, 2.25], "float64", 2),
        (CENTS, "float64", 2),
        (CENTS.round(1), "float32", 1),
        (CENTS * 3, "float64", 2),
        ([0.1 + 0.2, 0.3], "float64", 1),
        ([1, None], "Int64", 0),
        ([1e-7, 3e-7], "float64", 7),
        (CHANCE.normal(size=200), "float64", None),
        (CHANCE.normal(size=200), "float32", None),
    ],
)
def test_the_fewest_places_that_write_every_value(numbers, dtype, expected):
    assert decimals(feature(numbers, dtype)) == expected


def test_the_resolution_is_the_unit_of_the_last_place():
    assert resolution(feature([0.25, 1.0])) == 0.01
    assert resolution(feature([3, 4])) == 1
    assert resolution(feature(CHANCE.normal(size=200))) == 0
