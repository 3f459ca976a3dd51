"""P-values and k-nearest-neighbour distance, for real and for made-up rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, Schema
from mcce.plausibility.model import PlausibilityModel
from mcce.plausibility.neighbours import KnnDistance
from mcce.plausibility.support import Support


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


def learned(frame, accepted=None, immutable=("age",), n_jobs=1):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    accepted = np.ones(len(frame), dtype=bool) if accepted is None else accepted
    return rows.schema, PlausibilityModel().fit(rows, accepted, rows.schema.mutable, n_jobs)


def p_values(model, schema, frame):
    rows = schema.encode(frame)
    return model.assess(rows.descent, rows.all_numbers).p_value


@pytest.mark.parametrize("make", [jobs, bank])
@pytest.mark.parametrize("level", [0.05, 0.25])
def test_so_many_real_rows_have_a_small_p_value_as_it_says(make, level):
    shares = []
    for seed in range(5):
        schema, model = learned(make(3000, seed=seed))
        shares.append((p_values(model, schema, make(2000, seed=seed + 100)) <= level).mean())

    assert np.mean(shares) <= 1.2 * level


def test_rows_with_rare_levels_are_as_plausible():
    schema, model = learned(jobs(6000))
    fresh = jobs(4000, seed=1)
    rare = fresh["trade"] != "usual"

    assert rare.sum() > 50
    assert (p_values(model, schema, fresh[rare]) <= 0.05).mean() <= 0.08


@pytest.mark.parametrize("n_rows", [200, 600])
def test_few_rows_with_rare_levels_are_as_plausible(n_rows):
    found = []
    for seed in range(10):
        schema, model = learned(jobs(n_rows, seed=seed))
        fresh = jobs(1000, seed=seed + 100)
        found.append(p_values(model, schema, fresh[fresh["trade"] != "usual"]) <= 0.05)

    assert np.concatenate(found).size > 800
    assert np.concatenate(found).mean() <= 0.08


@pytest.mark.parametrize("n_rare", [3, 20, 400])
def test_a_rare_level_in_the_wrong_place_is_strange_once_enough_rows_have_it(n_rare):
    frame = jobs(4000)
    frame["trade"] = "usual"
    old = np.flatnonzero(frame["age"] > 66)
    frame.loc[old[:n_rare], "trade"] = "knitter"
    schema, model = learned(frame)
    young = frame[frame["age"] < 40].assign(trade="knitter")

    strange = (p_values(model, schema, young) < 0.01).mean()

    assert strange < 0.1 if n_rare == 3 else strange == 1


def test_the_share_of_a_level_is_that_of_the_rows_of_its_tree():
    frame = jobs(1000)
    rows = Schema.learn_rows(frame, immutable=["age"])
    places = np.arange(0, 1000, 3)
    support = Support().fit(rows, places, places, rows.schema.mutable)
    fresh = jobs(50).assign(trade="acrobat")
    seen, encoded = frame.iloc[places], rows.schema.encode(fresh)

    found = support.chains_[-1].share(encoded.descent)

    assert found[0] == pytest.approx(fresh["state"].map(seen["state"].value_counts(normalize=True)))
    assert not found[1].any()


def test_what_never_goes_together_is_implausible():
    schema, model = learned(jobs(3000))
    real = jobs(300, seed=1)
    workers = real[real["state"] == "work"]

    assert (p_values(model, schema, workers.assign(age=80)) < 0.01).all()
    assert (p_values(model, schema, workers.assign(state="pension", age=75)) < 0.01).all()
    odd = workers.assign(hours=0, state="student", age=50)
    assert (p_values(model, schema, odd) < 0.01).all()


def test_all_rows_know_a_contradiction_that_accepted_rows_are_too_few_to_know():
    frame = jobs(4000)
    accepted = np.array((frame["state"] == "work") & (frame.index % 2 == 0))
    accepted[np.flatnonzero(frame["state"] == "pension")[:15]] = True
    schema, model = learned(frame, accepted, immutable=())
    odd = frame[accepted & (frame["age"] > 70).to_numpy()].assign(state="work")

    assert (p_values(model, schema, odd) < 0.01).all()
    assert len(model.support_.chains_) == 2


def test_levels_that_training_never_held_are_nothing_against_a_row():
    frame = jobs(2000)
    schema, model = learned(frame)
    typical = frame[p_values(model, schema, frame) > 0.1].head(50)

    assert (p_values(model, schema, typical.assign(trade="acrobat")) > 0.05).mean() >= 0.9


def test_a_missing_number_is_plausible_only_where_some_are_missing():
    frame = jobs(3000)
    frame["hours"] = frame["hours"].where(frame["state"] != "student")
    schema, model = learned(frame.astype({"hours": float}))
    fresh = jobs(200, seed=1).astype({"hours": float})
    fresh["hours"] = fresh["hours"].where(fresh["state"] != "student")
    students = fresh[fresh["state"] == "student"]
    workers = fresh[fresh["state"] == "work"]

    assert (p_values(model, schema, students) > 0.05).mean() > 0.8
    assert (p_values(model, schema, workers.assign(hours=np.nan)) < 0.01).all()


def test_the_order_of_rows_and_threads_change_nothing():
    frame, fresh = bank(500), bank(100, seed=1)

    schema, one = learned(frame)
    other_schema, other = learned(frame.sample(frac=1.0, random_state=3), n_jobs=3)

    ours, theirs = schema.encode(fresh), other_schema.encode(fresh)
    expected = one.assess(ours.descent, ours.all_numbers)
    found = other.assess(theirs.descent, theirs.all_numbers)
    assert np.array_equal(expected.strangeness, found.strangeness)
    assert np.array_equal(expected.p_value, found.p_value)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 19])
def test_few_rows_rule_nothing_out(n_rows):
    schema, model = learned(bank(n_rows))

    assert (p_values(model, schema, bank(50, seed=1)) >= 1 / (n_rows + 1)).all()
    assert (p_values(model, schema, bank(n_rows)) >= 0.05).all()


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

    found = accepted.assess(answers.descent, answers.all_numbers)
    near = accepted.knn_distance_.quantile(accepted.knn_distance_(answers.points)[0])

    assert np.array_equal(result.measures["plausibility"], found.p_value)
    assert np.array_equal(result.measures["knn_distance_quantile"], near)


def test_as_many_levels_as_rows_are_no_deep_tree():
    frame = pd.DataFrame({"id": [f"person {i}" for i in range(20_000)], "x": np.arange(20_000) % 7})
    rows = Schema.learn_rows(frame)

    found, copies = KnnDistance().fit(rows)(rows.points[:50])

    assert copies.all()
    assert (found == 4 / 5).all()
