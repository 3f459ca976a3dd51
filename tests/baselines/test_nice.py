"""NICE: the walk by hand, its three forms and rewards, and what it never does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from brute_force import same
from mcce.baselines import NICE, NearestUnlike, baseline
from mcce.baselines.nice import _weigh
from row_methods import answers, explain, gap, l1, n_changes, shares
from tables import cases

TRAIN = pd.DataFrame({"a": [0, 4, 9], "b": [0, 4, 9], "c": [0, 4, 9]})
PERSON = TRAIN.head(1)


def walk(case, person, goal, reward):
    """The greedy walk from a person to a row, one cell at a time; None where it ends invalid."""
    mutable = [name for name in case.train if name not in case.immutable]
    now, left = person.copy(), [name for name in mutable if not same(person[name], goal[name])]
    before = _score(case, now)
    while left:
        tried = []
        for name in left:
            row = now.copy()
            row[name] = goal[name]
            gain = round(_score(case, row) - before, 10)
            if reward == "proximity":
                gain /= gap(goal[name], person[name], case.train[name]) + 1e-10
            tried.append((gain, name, row))
        gain, name, now = max(tried, key=lambda step: step[0])
        before = _score(case, now)
        left.remove(name)
        if before >= 0.5:
            return now
    return None


def _score(case, row):
    frame = row.to_frame().T.astype(object)
    return float(case.score(frame)[0])


@pytest.mark.parametrize("reward", ["sparsity", "proximity"])
@given(case=cases(max_rows=15))
@settings(max_examples=20)
def test_the_walk_is_the_one_by_hand(reward, case):
    method = NICE(case.score, (0.5, 1.0), immutable=case.immutable, reward=reward)
    goals = NearestUnlike(case.score, (0.5, 1.0), immutable=case.immutable).fit(case.train)

    result = explain(method.fit(case.train), case.people)

    goal_of = explain(goals, case.people).frame.reset_index(level=1, drop=True)
    found = result.frame.reset_index(level=1, drop=True)
    assert found.index.tolist() == goal_of.index.tolist()
    for label, row in found.iterrows():
        expected = walk(case, case.people.loc[label], goal_of.loc[label], reward)
        assert all(same(row[name], expected[name]) for name in case.train)


def test_one_coordinate_that_suffices_is_the_one_with_the_largest_gain():
    method = NICE(lambda rows: rows["a"] + 3 * rows["b"] + 2 * rows["c"], (8, 99)).fit(TRAIN)

    result = method.explain(PERSON)

    assert result.frame.to_numpy().tolist() == [[0, 4, 0]]
    assert result.measures["sparsity"].tolist() == [1]


def test_a_model_that_needs_two_coordinates_gets_two():
    both = lambda rows: ((rows["b"] >= 4) & (rows["c"] >= 4)).astype(float)

    result = NICE(both, (1, 1)).fit(TRAIN).explain(PERSON)

    # No single change gains anything: cells are copied in column order.
    assert result.frame.to_numpy().tolist() == [[4, 4, 4]]
    half = lambda rows: both(rows) + 0.1 * (rows["b"] >= 4) + 0.1 * (rows["c"] >= 4)
    assert NICE(half, (1, 9)).fit(TRAIN).explain(PERSON).frame.to_numpy().tolist() == [[0, 4, 4]]


def test_proximity_prefers_the_shorter_way_to_the_same_gain():
    train = pd.DataFrame({"a": [0.0, 1.0, 1.0], "b": [0.0, 0.5, 1.0]})
    score = lambda rows: rows["a"] * 1.5 + rows["b"] * 2

    by_gain = NICE(score, (1.0, 9.0)).fit(train).explain(train.head(1))
    by_way = NICE(score, (1.0, 9.0), reward="proximity").fit(train).explain(train.head(1))

    assert by_gain.frame.to_numpy().tolist() == [[1.0, 0.0]]
    assert by_way.frame.to_numpy().tolist() == [[0.0, 0.5]]


def test_plausibility_keeps_together_what_goes_together():
    chance = np.random.default_rng(0)
    x, free = chance.choice([-1.0, 1.0], (2, 400))
    noise = chance.normal(size=(2, 400)) / 20
    train = pd.DataFrame({"x": x + noise[0], "twin": x, "free": free + noise[1]})
    person = pd.DataFrame({"x": [-1.0], "twin": [-1.0], "free": [-1.0]})
    score = lambda rows: 1.1 * (rows["x"] > 0) + (rows["free"] > 0)

    def changed(reward):
        method = NICE(score, (1.0, 9.0), reward=reward, justified=True)
        result = method.fit(train, (x > 0) & (free > 0)).explain(person)
        return set(result.changes()["feature"])

    # Copying x alone gains most, and tears it from its twin.
    assert changed("sparsity") == {"x"}
    assert ("x" in changed("plausibility")) == ("twin" in changed("plausibility"))


def test_a_loss_in_both_factors_of_a_reward_is_no_gain():
    weighed = _weigh(np.array([-2.0, -2.0, 2.0, 2.0, np.inf]), np.array([-3.0, 3.0, -3.0, 3.0, 0]))

    assert weighed.tolist() == [-6.0, -6.0, -6.0, 6.0, 0.0]


@given(case=cases())
@settings(max_examples=20)
def test_every_cell_is_the_persons_or_that_of_the_nearest_unlike_row(case):
    fixed = {"immutable": case.immutable}
    nice = explain(NICE(case.score, (0.5, 1.0), **fixed).fit(case.train), case.people)
    near = explain(NearestUnlike(case.score, (0.5, 1.0), **fixed).fit(case.train), case.people)

    assert nice.owner.tolist() == near.owner.tolist()
    rows = zip(nice.owner, nice.frame.iterrows(), near.frame.iterrows(), strict=True)
    for owner, (_, row), (_, goal) in rows:
        person = case.people.iloc[owner]
        assert all(same(row[c], person[c]) or same(row[c], goal[c]) for c in case.train)
        assert n_changes(row, person) <= n_changes(goal, person)
        assert l1(row, person, case.train) <= l1(goal, person, case.train) + 1e-9


@given(case=cases(max_rows=15))
@settings(max_examples=20)
def test_more_starts_never_need_more_changes_and_answer_whoever_one_did(case):
    def costs(n_starts):
        method = NICE(
            case.score, (0.5, 1.0), immutable=case.immutable, starts="any", n_starts=n_starts
        )
        result = explain(method.fit(case.train), case.people)
        return dict(zip(result.owner.tolist(), result.measures["sparsity"], strict=True))

    one, three = costs(1), costs(3)

    assert one.keys() <= three.keys()
    assert all(three[owner] <= sparsity for owner, sparsity in one.items())


def test_any_start_never_copies_immutable_cells():
    train = pd.DataFrame({"sex": list("fm"), "pay": [0, 9], "job": list("ab")})
    score = lambda rows: rows["pay"] + 5 * (rows["sex"] == "m")

    found = NICE(score, (9, 99), immutable=["sex"], starts="any").fit(train).explain(train.head(1))

    assert found.frame.to_numpy().tolist() == [["f", 9, "a"]]


def test_any_start_has_no_answer_where_mutable_cells_do_not_suffice():
    train = pd.DataFrame({"sex": list("fm"), "pay": [0, 9]})
    score = lambda rows: rows["pay"] + 5 * (rows["sex"] == "m")

    method = NICE(score, (14, 99), immutable=["sex"], starts="any", n_starts=2)
    result = explain(method.fit(train), train.head(1))

    assert result.missing["reason"].tolist() == [
        "the predictor declines the person with every mutable value of the nearest accepted rows"
    ]


def test_people_who_share_no_immutable_values_with_an_accepted_row_have_no_answer():
    train = pd.DataFrame({"sex": list("fm"), "pay": [0, 9]})

    result = explain(NICE(lambda rows: rows["pay"], (9, 99), immutable=["sex"]).fit(train), train)

    reason = "no accepted training row has the same immutable values"
    assert result.missing["reason"].tolist() == [reason]


def test_justified_starts_are_used_alone():
    score = lambda rows: rows["a"]

    method = NICE(score, (4, 9), justified=True).fit(TRAIN, [False, False, True])

    assert method.explain(PERSON).frame["a"].tolist() == [9]


def test_a_score_beyond_the_desired_interval_is_no_progress():
    train = pd.DataFrame({"a": [0.0, 3.0], "b": [0.0, 9.0], "c": [0.0, -8.0]})
    score = lambda rows: rows.sum(axis=1)

    result = NICE(score, (3.0, 5.0)).fit(train).explain(train.head(1))

    # Copying b first would overshoot.
    assert result.frame.to_numpy().tolist() == [[3.0, 0.0, 0.0]]


def test_infinite_scores_are_allowed():
    score = lambda rows: np.where(rows["a"] + rows["b"] >= 8, np.inf, -np.inf)

    for reward in ("sparsity", "proximity", "plausibility"):
        result = NICE(score, (0, np.inf), reward=reward).fit(TRAIN).explain(PERSON)

        assert np.isposinf(score(result.frame)).all()


def test_by_labels_alone_a_cell_that_suffices_comes_before_the_order_of_columns():
    def found(columns):
        class Labels:
            def predict(self, rows):
                return np.where((rows[columns] >= 4).all(axis=1), "yes", "no")

        return NICE(Labels(), "yes").fit(TRAIN).explain(PERSON).frame.to_numpy().tolist()

    assert found(["b"]) == [[0, 4, 0]]
    assert found(["a", "b"]) == [[4, 4, 0]]
    assert found(["b", "c"]) == [[4, 4, 4]]


def test_no_predictor_call_sees_more_rows_than_a_block(monkeypatch):
    chance = np.random.default_rng(1)
    train = pd.DataFrame(chance.random((60, 4)), columns=list("abcd"))
    n_scored = []
    score = lambda rows: n_scored.append(len(rows)) or rows.sum(axis=1)
    method = NICE(score, (2.5, 9.0), n_starts=3).fit(train)
    whole = answers(method.explain(train))
    most, n_scored[:] = max(n_scored[1:]), []

    monkeypatch.setattr(baseline, "ROWS_PER_CALL", 40)
    cut = answers(method.explain(train))

    assert cut == whole
    # Everybody's own rows and the answers are scored at once.
    n_people = len(train)
    assert most > n_people >= max(n_scored)
    assert max(n for n in n_scored if n not in (n_people, len(whole))) <= 40


@given(case=cases(max_rows=15))
@settings(max_examples=10)
def test_the_form_with_shared_immutable_values_answers_whoever_has_such_a_row(case):
    method = NICE(case.score, (0.5, 1.0), immutable=case.immutable, n_starts=2).fit(case.train)

    result = explain(method, case.people)

    accepted = case.train[case.score(case.train) >= 0.5]
    for label in result.missing.index:
        person = case.people.loc[label]
        assert not any(shares(row, person, case.immutable) for _, row in accepted.iterrows())
