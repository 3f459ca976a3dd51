"""The training rows nearest to people, and the nearest unlike neighbour, by brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from mcce import Schema
from mcce.baselines import NearestUnlike, nearest
from mcce.baselines.nearest import nearest_rows
from row_methods import explain, l1, shares
from tables import cases

TRAIN = pd.DataFrame({"sex": list("ffmm"), "pay": [0, 6, 8, 10], "job": list("aaba")})


def pay(rows):
    return np.asarray(rows["pay"])


@given(case=cases())
def test_the_nearest_unlike_row_is_the_one_by_hand(case):
    method = NearestUnlike(case.score, (0.5, 1.0), immutable=case.immutable).fit(case.train)

    result = explain(method, case.people)

    accepted = case.train[case.score(case.train) >= 0.5]
    for label, person in case.people[case.score(case.people) < 0.5].iterrows():
        alike = [row for _, row in accepted.iterrows() if shares(row, person, case.immutable)]
        found = result.frame[result.frame.index.get_level_values(0) == label]
        assert len(found) == bool(alike)
        if alike:
            least = min(l1(row, person, case.train) for row in alike)
            assert l1(found.iloc[0], person, case.train) == pytest.approx(least)
            assert any(found.iloc[0].astype(object).equals(row.astype(object)) for row in alike)


@given(case=cases())
@settings(max_examples=20)
def test_blocks_of_distances_change_nothing(case):
    rows = Schema.learn_rows(case.train, immutable=case.immutable)
    people, among = rows.schema.encode(case.people), np.arange(len(case.train))

    for k, radius in ((1, np.inf), (3, np.inf), (None, 0.7), (2, 0.7)):
        with pytest.MonkeyPatch.context() as patch:
            whole = nearest_rows(people, rows, among, k=k, radius=radius)
            patch.setattr(nearest, "BLOCK", 1)
            cut = nearest_rows(people, rows, among, k=k, radius=radius)

        for name in ("owner", "row", "distance"):
            assert getattr(cut, name).tobytes() == getattr(whole, name).tobytes()
        assert (whole.distance <= radius).all()
        assert (np.diff(whole.owner) >= 0).all()


@given(case=cases())
@settings(max_examples=20)
def test_the_nearest_of_all_are_those_of_a_sorted_list(case):
    rows = Schema.learn_rows(case.train, immutable=case.immutable)
    people = rows.schema.encode(case.people)

    pairs = nearest_rows(people, rows, np.arange(len(case.train)), same=False, k=3)

    for at, (_, person) in enumerate(case.people.iterrows()):
        by_hand = sorted(l1(row, person, case.train) for _, row in case.train.iterrows())[:3]
        np.testing.assert_allclose(pairs.distance[pairs.owner == at], by_hand)
    assert pairs.rank.max() <= 2


def test_of_equally_near_rows_the_first_is_taken():
    train = pd.DataFrame({"x": [2, 0, 4, 0, 4]})

    result = NearestUnlike(lambda rows: rows["x"] != 2, (1, 1)).fit(train).explain(train.head(1))

    assert result.frame["x"].tolist() == [0]


def test_rows_with_other_immutable_values_are_no_answer():
    method = NearestUnlike(pay, (7, 20), immutable=["sex"]).fit(TRAIN)

    result = explain(method, TRAIN.head(2))

    reason = "no accepted training row has the same immutable values"
    assert result.frame.empty
    assert result.missing["reason"].tolist() == [reason, reason]


def test_any_row_lends_its_mutable_cells_to_the_person():
    method = NearestUnlike(pay, (7, 20), immutable=["sex"], rows="any").fit(TRAIN)

    result = method.explain(TRAIN.head(2))

    assert result.frame.to_numpy().tolist() == [["f", 10, "a"], ["f", 10, "a"]]


def test_any_row_that_is_declined_with_the_own_immutable_cells_is_no_answer():
    method = NearestUnlike(lambda rows: pay(rows) * (rows["sex"] == "m"), (7, 20), rows="any")
    method = method.set_params(immutable=["sex"]).fit(TRAIN)

    result = explain(method, TRAIN.head(2))

    reason = "the nearest accepted row is declined with the person's own immutable values"
    assert result.missing["reason"].tolist() == [reason, reason]


@pytest.mark.parametrize("outcome", [[False, False, False, True], [0, 3, 5, 8]])
def test_a_justified_row_has_the_desired_outcome_too(outcome):
    method = NearestUnlike(pay, (7, 20), justified=True).fit(TRAIN, outcome)

    assert method.usable_.tolist() == [3]
    assert method.explain(TRAIN.head(1)).frame["pay"].tolist() == [10]


def test_a_justified_row_may_be_known_by_its_label():
    class Labels:
        def predict(self, rows):
            return np.where(pay(rows) > 7, "yes", "no")

    method = NearestUnlike(Labels(), "yes", justified=True)

    assert method.fit(TRAIN, ["no", "yes", "no", "yes"]).usable_.tolist() == [3]


def test_without_a_justified_row_the_reason_says_so():
    method = NearestUnlike(pay, (7, 20), justified=True).fit(TRAIN, [True, True, False, False])

    result = explain(method, TRAIN.head(1))

    reason = "no accepted training row with the desired outcome can be used"
    assert result.missing["reason"].tolist() == [reason]


def test_missing_cells_and_dates_are_values_like_any_other():
    train = pd.DataFrame(
        {"since": pd.to_datetime(["2020-01-01", "2020-01-03", None]), "pay": [0.0, 9.0, np.nan]}
    )
    score = lambda rows: rows["pay"].fillna(8)

    result = NearestUnlike(score, (7.0, 20.0)).fit(train).explain(train.head(1))

    # Both rows are 2 away; the first is taken.
    assert result.frame.iloc[0].tolist() == [pd.Timestamp("2020-01-03"), 9.0]
