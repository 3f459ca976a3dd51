"""Growing Spheres: how far points go, what is put back, and what stays as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import same
from mcce import Schema
from mcce.baselines import GrowingSpheres, baseline
from mcce.baselines.baseline import Declined
from mcce.baselines.growing_spheres import _Search
from mcce.baselines.space import Space
from mcce.baselines.sparsity import undo_needless
from mcce.predictors import make_decision
from row_methods import Spheres, answers, explain
from tables import cases

SQUARE = pd.DataFrame({"x": [0.0, 1.0, 0.123456789], "y": [0.0, 1.0, 0.987654321]})


def test_a_half_space_is_found_just_behind_its_boundary():
    method = GrowingSpheres(lambda rows: rows["x"], (0.3, 1.0)).fit(SQUARE)

    result = method.explain(SQUARE.head(1))

    assert 0.3 <= result.frame["x"].iloc[0] < 0.5
    assert result.frame["y"].tolist() == [0.0]
    assert result.measures["sparsity"].tolist() == [1]


def test_a_ball_with_accepted_points_is_halved_until_it_has_none():
    method = GrowingSpheres(lambda rows: rows["x"], (0.01, 1.0), radius=0.9).fit(SQUARE)

    result = method.explain(SQUARE.head(1))

    # One shell, no wider than a ball without accepted points: at most twice as far, nearly.
    assert 0.01 <= result.frame["x"].iloc[0] < 0.03


@pytest.mark.parametrize(
    "changed", [{"n_samples": 7}, {"radius": 0.9}, {"max_shells": 1}, {"random_state": 5}]
)
def test_parameters_may_be_changed_after_fit_and_act_as_before_it(changed):
    early = GrowingSpheres(lambda rows: rows["x"], (0.3, 1.0), **changed).fit(SQUARE)
    late = GrowingSpheres(lambda rows: rows["x"], (0.3, 1.0)).fit(SQUARE).set_params(**changed)

    assert answers(explain(late, SQUARE)) == answers(explain(early, SQUARE))


def test_points_lie_in_their_shell_and_leave_immutable_features_alone():
    train = SQUARE.assign(age=[1, 2, 3], job=list("abc"))
    rows = Schema.learn_rows(train, immutable=["age"])
    decision = make_decision(lambda frame: frame["x"], (0.3, 1.0), adapter=rows.adapter)
    declined = Declined(rows, decision.score(rows.frame), decision)
    search = _Search(Space.learn(rows), declined, 500, 0)

    points = search._around(0, 0.4, 0.2)

    moved = points - search.own[0]
    numbers = search.numbers
    radius = np.sqrt((moved[:, numbers] ** 2).sum(axis=1))
    assert numbers.size == 2
    assert (radius >= 0.4 - 1e-12).all()
    assert (radius < 0.6 + 1e-12).all()
    assert (moved[:, search.space.feature == 2] == 0).all()
    # A fifth of the levels changes, each to another one.
    levels = points[:, search.levels[0]]
    assert (levels.sum(axis=1) == 1).all()
    assert 0.1 < (levels[:, 0] == 0).mean() < 0.3
    assert (search._around(0, 0.0, 0.2)[:, search.levels[0]] == [1, 0, 0]).all()


def test_levels_alone_can_be_the_answer():
    train = pd.DataFrame({"job": list("abc") * 4, "town": list("xy") * 6})
    method = Spheres(lambda rows: rows["job"] == "c", (1, 1)).fit(train)

    result = method.explain(train.head(2))

    assert result.frame["job"].tolist() == ["c", "c"]
    assert result.frame["town"].tolist() == ["x", "y"]


@given(case=cases(max_rows=20))
@settings(max_examples=20)
def test_changed_numbers_lie_towards_the_training_range_and_levels_are_known(case):
    numbers = [c for c in case.train if pd.api.types.is_numeric_dtype(case.train[c])]
    numbers = [c for c in numbers if not pd.api.types.is_bool_dtype(case.train[c])]
    if case.train[numbers].isna().all().any():
        return

    method = Spheres(case.score, (0.5, 1.0), immutable=case.immutable).fit(case.train)
    result = explain(method, case.people)

    own = case.people.iloc[result.owner]
    for name in case.train:
        pairs = zip(result.frame[name], own[name], strict=True)
        for cell, before in (pair for pair in pairs if not same(*pair)):
            known = case.train[name]
            if name in numbers:
                least, most = min(known.min(), before), max(known.max(), before)
                assert least - 1e-12 <= cell <= most + 1e-12
            else:
                assert any(same(cell, level) for level in known)


@given(seed=st.integers(0, 2**32 - 1))
def test_changes_are_put_back_one_by_one_from_the_smallest_on(seed):
    chance = np.random.default_rng(seed)
    train = pd.DataFrame(chance.random((9, 4)), columns=list("abcd"))
    train.iloc[:2] = [[0.0] * 4, [1.0] * 4]
    weights = chance.normal(size=4)
    score = lambda rows: np.asarray(rows, dtype=float) @ weights
    point = chance.random(4)
    least = chance.uniform(-1, 1) * abs(score(point))
    if score(point) < least:
        return
    rows = Schema.learn_rows(train, immutable=[])
    decision = make_decision(score, (least, np.inf), adapter=rows.adapter)
    declined = Declined(rows, decision.score(rows.frame), decision).take(np.array([0]))

    shorter = undo_needless(Space.learn(rows), declined, np.array([0]), point[None])

    expected = point.copy()
    for at in np.argsort(point, kind="stable"):
        tried = np.where(np.arange(4) == at, 0.0, expected)
        if tried.any() and score(tried) >= least:
            expected = tried
    assert shorter[0].tolist() == expected.tolist()


def test_numbers_are_written_as_those_of_their_column():
    train = pd.DataFrame({"whole": [0, 40, 100], "cents": [0.0, 0.25, 1.0]})
    method = GrowingSpheres(lambda rows: rows["whole"] / 100 + rows["cents"], (1.1, 2.0))

    result = method.fit(train).explain(train.head(2))

    assert result.frame["whole"].dtype == train["whole"].dtype
    assert (result.frame["cents"].round(2) == result.frame["cents"]).all()


def test_a_number_without_a_range_does_not_move():
    train = pd.DataFrame({"x": [0.0, 0.5, 1.0], "fee": [3.0, 3.0, 3.0]})
    method = Spheres(lambda rows: rows["x"] + (rows["fee"] > 3), (0.9, 3.0)).fit(train)

    result = method.explain(pd.DataFrame({"x": [0.0, 0.1], "fee": [3.0, 2.0]}))

    assert result.frame["fee"].tolist() == [3.0, 2.0]
    assert (result.frame["x"] >= 0.9).all()


def test_people_outside_of_the_training_range_can_come_back():
    train = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.0, 1.0]})
    method = Spheres(lambda rows: rows["x"], (2.0, 3.0)).fit(train)

    result = method.explain(pd.DataFrame({"x": [-9.0, 15.0], "y": [7.0, 0.0]}))

    assert result.frame["x"].between(2.0, 3.0).all()
    assert len(result.frame) == 2


def test_people_with_missing_numbers_get_a_reason_and_the_others_their_answer():
    people = pd.DataFrame({"x": [np.nan, 0.0], "y": [0.0, 0.0]})
    method = Spheres(lambda rows: rows["x"].fillna(0.0), (0.3, 1.0)).fit(SQUARE)

    result = explain(method, people)

    assert result.missing["reason"].tolist() == [
        "a number is missing, and random points need complete numbers"
    ]
    assert result.owner.tolist() == [1]


def test_a_missing_level_is_a_level():
    train = pd.DataFrame({"x": [0.0, 0.5, 1.0, 0.7], "job": ["a", None, "b", None]})
    method = Spheres(lambda rows: rows["x"] + rows["job"].isna(), (1.0, 3.0)).fit(train)

    result = method.explain(train.head(1))

    assert result.people["status"].tolist() == ["answered"]


def test_an_accepted_row_that_no_random_point_meets_is_no_answer():
    train = pd.DataFrame({"x": [0.0, 0.5, 1.0], "y": [0.0, 0.123456789, 1.0]})
    method = Spheres(lambda rows: rows["y"] == 0.123456789, (1, 1)).fit(train)

    result = explain(method, train.head(1))

    assert result.missing["reason"].tolist() == [
        "no random point was accepted up to the largest shell"
    ]


def test_no_predictor_call_sees_more_rows_than_a_block(monkeypatch):
    chance = np.random.default_rng(1)
    train = pd.DataFrame(chance.random((30, 3)), columns=list("abc"))
    n_scored = []
    score = lambda rows: n_scored.append(len(rows)) or rows.sum(axis=1)
    method = Spheres(score, (1.8, 9.0)).fit(train)
    whole = answers(method.explain(train))
    n_scored.clear()

    monkeypatch.setattr(baseline, "ROWS_PER_CALL", 130)

    assert answers(method.explain(train)) == whole
    assert max(n_scored) <= 130


@pytest.mark.parametrize("column", ["since", "gone"])
def test_columns_without_a_place_in_space_are_refused_with_a_way_out(column):
    odd = {"since": pd.date_range("2024-01-01", periods=3), "gone": [np.nan] * 3}
    train = SQUARE.assign(**{column: odd[column]})
    says = {"since": "cannot move the date or duration 'since'. Declare it immutable"}

    with pytest.raises(ValueError, match=says.get(column, "'gone' is missing in all rows. Leave")):
        Spheres(lambda rows: rows["x"], (0.3, 1.0)).fit(train)


def test_a_date_may_be_immutable():
    train = SQUARE.assign(since=pd.date_range("2024-01-01", periods=3))
    method = Spheres(lambda rows: rows["x"], (0.3, 1.0), immutable=["since"]).fit(train)

    assert method.explain(train.head(1)).frame["since"].tolist() == [pd.Timestamp("2024-01-01")]
