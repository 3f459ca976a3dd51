"""What must hold between methods, person by person."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from bank import bank, score
from mcce.baselines import FACE, NICE, NearestUnlike
from row_methods import explain
from tables import cases

# Distances are summed in another order.
ROUNDING = 1e-9


def measured(method, train, people):
    """Changes and distance of everybody's answer, by label."""
    result = explain(method.fit(train), people)
    return result.measures[["sparsity", "l1"]].reset_index(level=1, drop=True)


def assert_bounds(train, people, predictor, desired, immutable):
    """The nearest unlike row bounds FACE from below and NICE from above."""
    given = {"predictor": predictor, "desired": desired, "immutable": immutable}
    near = measured(NearestUnlike(**given), train, people)
    free = measured(NearestUnlike(predictor, desired), train, people)
    face = measured(FACE(**given, n_neighbors=3), train, people)
    all_joined = measured(FACE(**given, n_neighbors=len(train)), train, people)

    assert set(face.index) <= set(near.index) <= set(free.index)
    assert (face["l1"] >= near["l1"].loc[face.index] - ROUNDING).all()
    assert (near["l1"] >= free["l1"].loc[near.index] - ROUNDING).all()
    assert all_joined.index.equals(near.index)
    np.testing.assert_allclose(all_joined["l1"], near["l1"], atol=ROUNDING)
    for settings_of_nice in ({}, {"reward": "proximity"}, {"n_starts": 4}):
        nice = measured(NICE(**given, **settings_of_nice), train, people)
        assert nice.index.equals(near.index)
        assert (nice["sparsity"] <= near["sparsity"]).all()
        assert settings_of_nice or (nice["l1"] <= near["l1"] + ROUNDING).all()


@given(case=cases(max_rows=25))
@settings(max_examples=15)
def test_methods_bound_each_other_on_random_tables(case):
    # A number far outside of the range can be nearer by way of a missing one.
    train, people = case.train, case.people
    numbers = train.select_dtypes("number").columns
    if train[numbers].isna().any(axis=None):
        return
    inside = (people[numbers] >= train[numbers].min()) & (people[numbers] <= train[numbers].max())
    assert_bounds(train, people[inside.all(axis=1)], case.score, (0.5, 1.0), case.immutable)


def test_methods_bound_each_other_on_applicants_with_missing_cells():
    train, people = bank(250), bank(60, seed=1)
    for frame in (train, people):
        frame["age"] = frame["age"] // 20 * 20
    people["salary"] = people["salary"].clip(train["salary"].min(), train["salary"].max())
    people["years"] = people["years"].clip(train["years"].min(), train["years"].max())

    assert_bounds(train, people, score, (0.8, 10.0), ["age", "sex"])


def test_a_larger_group_of_rows_to_choose_from_never_gives_a_farther_one():
    train, people = bank(120), bank(40, seed=1)

    free, fixed = (
        measured(NearestUnlike(score, (0.8, 10.0), immutable=names), train, people)
        for names in ([], ["sex"])
    )

    assert (free["l1"].loc[fixed.index] <= fixed["l1"] + ROUNDING).all()


@pytest.mark.parametrize("n_neighbors", [1, 3, 10])
def test_more_neighbours_never_make_a_path_dearer(n_neighbors):
    train = bank(120, missing=False)

    few, more = (
        FACE(score, (0.8, 10.0), immutable=["sex"], n_neighbors=k).fit(train).cost_
        for k in (n_neighbors, 2 * n_neighbors)
    )

    assert (more <= few + ROUNDING).all()
    assert pd.Series(more).notna().all()
