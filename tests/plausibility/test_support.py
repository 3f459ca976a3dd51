"""Calibrated support and k-nearest-neighbour distance, for real and for made-up rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, Schema
from mcce.plausibility.model import PlausibilityModel
from mcce.plausibility.neighbours import KnnDistance
from mcce.plausibility.support import MIN_SAMPLES_LEAF, Support


def jobs(n_rows, seed=0):
    """Pensioners do not work, students are young, and a tenth of all is in a rare trade."""
    chance = np.random.default_rng(seed)
    age = chance.integers(18, 90, n_rows)
    state = np.where(age > 66, "pension", np.where(age < 25, "student", "work"))
    hours = np.where(state == "work", chance.integers(10, 60, n_rows), 0)
    trade = np.where(
        chance.random(n_rows) < 0.1, [f"trade {i}" for i in chance.integers(0, 12, n_rows)], "usual"
    )
    return pd.DataFrame(
        {
            "age": age,
            "state": state,
            "hours": hours,
            "trade": trade,
            "noise": chance.normal(size=n_rows),
        }
    )


def learned(frame, accepted=None, immutable=("age",)):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    accepted = np.ones(len(frame), dtype=bool) if accepted is None else accepted
    return rows.schema, Support().fit(rows, accepted, rows.schema.mutable)


def inside(support, schema, frame, share=0.95):
    return support.n_outside(schema.encode(frame).descent, support.sizes(share)) == 0


@pytest.mark.parametrize("make", [jobs, bank])
@pytest.mark.parametrize("share", [0.95, 0.75])
def test_the_requested_share_of_real_rows_is_inside(make, share):
    reached = []
    for seed in range(5):
        schema, support = learned(make(3000, seed=seed))
        reached.append(inside(support, schema, make(2000, seed=seed + 100), share).mean())

    assert share - 0.02 <= np.mean(reached)
    assert np.mean(reached) <= 0.99 or share < 0.95


def test_rows_with_rare_levels_are_inside_as_well():
    schema, support = learned(jobs(6000))
    fresh = jobs(4000, seed=1)
    rare = fresh["trade"] != "usual"

    assert rare.sum() > 50
    assert inside(support, schema, fresh[rare]).mean() >= 0.85
    assert support.sizes(0.95)[2] > support.sizes(0.95)[3]


def test_what_never_goes_together_is_outside():
    schema, support = learned(jobs(3000))
    real = jobs(300, seed=1)
    workers = real[real["state"] == "work"]

    assert not inside(support, schema, workers.assign(age=80)).any()
    assert not inside(support, schema, workers.assign(state="pension", age=75)).any()
    assert not inside(support, schema, workers.assign(hours=0, state="student", age=50)).any()


def test_all_rows_know_a_contradiction_that_accepted_rows_are_too_few_to_know():
    frame = jobs(4000)
    accepted = np.array((frame["state"] == "work") & (frame.index % 2 == 0))
    accepted[np.flatnonzero(frame["state"] == "pension")[:15]] = True
    schema, support = learned(frame, accepted, immutable=())
    _, alone = learned(frame[accepted], immutable=())

    odd = frame[accepted & (frame["age"] > 70).to_numpy()].assign(state="work")

    assert not inside(support, schema, odd).any()
    assert len(support.chains_) == len(alone.chains_) == 2


def test_a_row_inside_for_a_share_is_inside_for_every_larger_one():
    schema, support = learned(bank(800))
    fresh = bank(400, seed=5)
    before = np.zeros(len(fresh), dtype=bool)

    for share in (0.3, 0.5, 0.75, 0.9, 0.95, 0.99):
        now = inside(support, schema, fresh, share)
        assert (now >= before).all()
        before = now
    assert before.mean() > 0.9


def test_values_that_training_never_held_are_nothing_against_a_row():
    frame = jobs(2000)
    schema, support = learned(frame)
    typical = frame[inside(support, schema, frame)].head(50)

    assert inside(support, schema, typical.assign(trade="acrobat")).all()


def test_a_missing_number_is_inside_only_where_some_are_missing():
    frame = jobs(3000)
    frame["hours"] = frame["hours"].where(frame["state"] != "student")
    schema, support = learned(frame.astype({"hours": float}))
    fresh = jobs(200, seed=1).astype({"hours": float})
    fresh["hours"] = fresh["hours"].where(fresh["state"] != "student")
    students = fresh[fresh["state"] == "student"]
    workers = fresh[fresh["state"] == "work"]

    assert inside(support, schema, students).mean() > 0.8
    assert not inside(support, schema, workers.assign(hours=np.nan)).any()


def test_the_order_of_rows_and_threads_change_nothing():
    frame = bank(500)
    mixed = frame.sample(frac=1.0, random_state=3)
    one = learned(frame)[1]
    rows = Schema.learn_rows(mixed, immutable=["age"])
    other = Support().fit(rows, np.ones(500, dtype=bool), rows.schema.mutable, n_jobs=3)

    assert np.array_equal(one.calibration_scores_, other.calibration_scores_)
    for ours, theirs in zip(one.chains_, other.chains_, strict=True):
        assert np.array_equal(ours.trees.values, theirs.trees.values)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 30])
def test_few_rows_rule_nothing_out(n_rows):
    schema, support = learned(bank(n_rows))

    assert (support.sizes(0.95) >= MIN_SAMPLES_LEAF).all()
    assert inside(support, schema, bank(n_rows)).all()


# ---------------------------------------------------------------------------------------------
# Distance to the nearest neighbours.


def distances(frame, rows):
    """Sum over the columns of range-scaled differences, by hand."""
    total = np.zeros((len(rows), len(frame)))
    for name in frame:
        ours, theirs = rows[name].to_numpy()[:, None], frame[name].to_numpy()[None]
        if frame[name].dtype.kind in "if":
            gap = np.abs(ours - theirs) / (frame[name].max() - frame[name].min())
            gap = np.where(np.isnan(ours) & np.isnan(theirs), 0.0, gap)
            total += np.where(np.isnan(gap), 1.0, gap)
        else:
            total += ours != theirs
    return total


def test_knn_distance_is_the_mean_distance_to_the_five_nearest():
    frame = jobs(400).astype({"hours": float})
    frame.loc[::7, "hours"] = np.nan
    fresh = jobs(100, seed=1).astype({"hours": float})
    fresh.loc[::5, "hours"] = np.nan
    rows = Schema.learn_rows(frame)

    found, copies = KnnDistance().fit(rows)(rows.schema.encode(fresh).points)

    expected = np.sort(distances(frame, fresh), axis=1)[:, :5].mean(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not copies.any()


def test_a_copy_is_recognised_and_a_quantile_says_how_usual_a_row_is():
    frame = jobs(400)
    rows = Schema.learn_rows(frame)
    knn_distance = KnnDistance().fit(rows)
    copied, copies = knn_distance(rows.points[:30])
    far, _ = knn_distance(rows.schema.encode(frame.head(3).assign(hours=500, noise=50.0)).points)

    assert copies.all()
    assert (knn_distance.quantile(copied) < 1).all()
    assert (knn_distance.quantile(far) == 1).all()
    assert (knn_distance.quantile(np.zeros(1)) == 0).all()
    others = np.sort(distances(frame, frame), axis=1)[:, 1:6].mean(axis=1)
    np.testing.assert_allclose(knn_distance.typical_, np.sort(others), rtol=1e-12)


def test_fewer_than_five_rows_are_all_neighbours():
    rows = Schema.learn_rows(pd.DataFrame({"x": [0.0, 1.0]}))

    found, _ = KnnDistance().fit(rows)(rows.points)

    assert found.tolist() == [0.5, 0.5]


def test_measures_of_a_result_are_those_of_its_rows():
    train, people = bank(500), bank(40, seed=1)
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search="balanced", random_state=0)
    result = explainer.fit(train).explain(people)
    answers = explainer.schema_.encode(result.frame.reset_index(drop=True))
    accepted: PlausibilityModel = explainer.plausibility_

    outside = accepted.support_.n_outside(answers.descent, accepted.support_.sizes(0.95))
    near = accepted.knn_distance_.quantile(accepted.knn_distance_(answers.points)[0])

    assert np.array_equal(result.measures["in_support"], outside == 0)
    assert np.array_equal(result.measures["knn_distance_quantile"], near)


def test_as_many_levels_as_rows_are_no_deep_tree():
    frame = pd.DataFrame({"id": [f"person {i}" for i in range(20_000)], "x": np.arange(20_000) % 7})
    rows = Schema.learn_rows(frame)

    found, copies = KnnDistance().fit(rows)(rows.points[:50])

    assert copies.all()
    assert (found == 4 / 5).all()
