"""Rows as points of a cube: there and back, projections, and what is put back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import Schema, SchemaError
from mcce.baselines.space import Space
from row_methods import l1, n_changes
from tables import cases

TRAIN = pd.DataFrame(
    {"age": [20, 30, 60], "job": ["a", "b", "c"], "pay": [1.5, 2.25, 4.0], "sex": ["f", "m", "f"]}
)


def learned(train=TRAIN, immutable=("age",)):
    rows = Schema.learn_rows(train, immutable=list(immutable))
    return rows, Space.learn(rows)


def test_numbers_are_shares_of_the_range_and_levels_indicators():
    rows, space = learned()

    points = space.encode(rows)

    assert space.n_axes == 1 + 3 + 1 + 2
    assert points[1].tolist() == [0.25, 0, 1, 0, 0.3, 0, 1]
    assert space.is_mutable.tolist() == [False] + [True] * 6
    assert [axes.tolist() for axes in space.groups] == [[1, 2, 3], [5, 6]]


@given(case=cases(), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_projected_points_are_rows_and_projecting_twice_changes_nothing(case, seed):
    complete = case.train.select_dtypes("number").dropna(axis=1)
    train = case.train.drop(columns=case.train.select_dtypes("number").columns).join(complete)
    if not len(train.columns) or set(train) <= set(case.immutable):
        return
    rows, space = learned(train, [c for c in case.immutable if c in train])
    own = space.encode(rows)
    chance = np.random.default_rng(seed)

    points = space.project(own + chance.normal(size=own.shape), own)

    np.testing.assert_allclose(space.project(points, own), points, atol=1e-12)
    assert (points[:, ~space.is_mutable] == own[:, ~space.is_mutable]).all()
    assert ((points >= -1e-12) & (points <= 1 + 1e-12)).all()
    for axes in space.groups:
        assert (points[:, axes].sum(axis=1) == 1).all()
    frame = space.compose(rows, np.arange(len(rows)), points)
    pd.testing.assert_series_equal(frame.dtypes, rows.frame.dtypes)
    pairs = zip(frame.iterrows(), rows.frame.iterrows(), strict=True)
    for at, ((_, row), (_, person)) in enumerate(pairs):
        assert space.n_changes(points, own)[at] == n_changes(row, person)
        assert space.l1(points, own)[at] == pytest.approx(l1(row, person, train), abs=1e-6)


def test_what_does_not_move_keeps_its_bits():
    train = pd.DataFrame({"x": [-0.0, 0.1 + 0.2, 1.0], "k": ["a", None, "b"]})
    rows, space = learned(train, ())
    own = space.encode(rows)

    frame = space.compose(rows, np.arange(3), space.project(own + 1e-12, own))

    assert frame["x"].to_numpy().tobytes() == train["x"].to_numpy().tobytes()
    assert frame["k"].tolist()[::2] == ["a", "b"]


def test_a_number_outside_of_the_range_may_stay_and_moves_only_towards_it():
    rows, space = learned()
    people = rows.schema.encode(TRAIN.head(1).assign(pay=9.0))
    own = space.encode(people)

    further, back = own.copy(), own.copy()
    further[:, 4] += 1.0
    back[:, 4] = -1.0

    assert space.project(own, own).tobytes() == own.tobytes()
    assert space.project(further, own)[0, 4] == own[0, 4]
    assert space.project(back, own)[0, 4] == 0.0


def test_put_back_features_are_the_persons():
    rows, space = learned()
    own = space.encode(rows)
    points = own[[2, 2, 2]]

    undone = space.revert(points, own, np.array([[False, True, False, True]] * 3))

    assert space.changed(undone, own)[0].tolist() == [True, False, True, False]


def test_missing_numbers_have_no_place():
    rows, space = learned()
    people = rows.schema.encode(TRAIN.assign(pay=[1.5, np.nan, 2.0]))

    assert space.is_complete(people).tolist() == [True, False, True]
    with pytest.raises(SchemaError, match=r"'pay' is missing in 1 of 3 rows\. Fill it in"):
        space.encode(people)


def test_a_number_without_a_range_does_not_move():
    rows, space = learned(TRAIN.assign(pay=2.0))
    own = space.encode(rows)

    assert space.is_mutable[4] == np.False_
    assert space.project(own + 0.7, own)[:, 4].tolist() == [0.0, 0.0, 0.0]
