"""The auto-encoder of NICE: usual rows are reconstructed well, on small tables too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import Schema
from mcce.baselines.reconstruction import Reconstruction


def twins(n_rows):
    chance = np.random.default_rng(0)
    x = chance.choice([-1.0, 1.0], n_rows)
    noise = chance.normal(size=n_rows) / 20
    return pd.DataFrame({"x": x + noise, "twin": x, "level": np.where(x > 0, "up", "down")})


@pytest.mark.parametrize("n_rows", [30, 400])
def test_a_torn_row_is_reconstructed_worse_than_usual_ones(n_rows):
    rows = Schema.learn_rows(twins(n_rows))
    coder = Reconstruction.learn(rows, 0)
    torn = pd.DataFrame({"x": [1.0, -1.0], "twin": [-1.0, -1.0], "level": ["down", "up"]})

    usual = coder.error(coder.points(rows))

    assert (coder.error(coder.points(rows.schema.encode(torn))) > 3 * usual.max()).all()
    assert usual.mean() < 0.1


def test_a_seed_decides_about_the_weights():
    rows = Schema.learn_rows(twins(60))
    first = Reconstruction.learn(rows, 0)
    points = first.points(rows)

    again, other = (Reconstruction.learn(rows, seed).error(points) for seed in (0, 1))

    assert again.tobytes() == first.error(points).tobytes() != other.tobytes()


def test_missing_numbers_are_marked_and_unseen_levels_indicate_nothing():
    train = pd.DataFrame({"x": [1.0, 3.0, np.nan], "k": ["a", "b", None], "y": [1.0, 2.0, 3.0]})
    rows = Schema.learn_rows(train)
    coder = Reconstruction.learn(rows, 0)
    people = pd.DataFrame({"x": [np.nan, 5.0], "k": ["z", None], "y": [np.nan, 2.0]})

    points = coder.points(rows.schema.encode(people))

    assert coder.feature.tolist() == [0, 0, 1, 1, 1, 2]
    assert points.tolist() == [[0, 1, 0, 0, 0, 0], [3, 0, 0, 0, 1, 0]]
    assert coder.error(points[:0]).shape == (0,)


def test_one_column_and_one_row_are_enough():
    rows = Schema.learn_rows(pd.DataFrame({"x": [2.0]}))

    coder = Reconstruction.learn(rows, 0)

    assert coder.error(coder.points(rows)).shape == (1,)
