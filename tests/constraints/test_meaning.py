"""What each constraint allows and forbids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import score
from constrained import PEOPLE, TRAIN, before_and_after, changed, explain
from mcce import MCCE
from mcce import constraints as c
from searches import bounded

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


ALLOWED = {
    "only_up salary": (
        lambda: c.only_up("salary"),
        lambda b, a: a["salary"] >= b["salary"],
    ),
    "only_down years": (lambda: c.only_down("years"), lambda b, a: a["years"] <= b["years"]),
    "not_down salary": (
        lambda: c.not_down("salary"),
        lambda b, a: ~(a["salary"] < b["salary"]),
    ),
    "not_up years": (lambda: c.not_up("years"), lambda b, a: ~(a["years"] > b["years"])),
    "only_up education": (
        lambda: c.only_up("education"),
        lambda b, a: a["education"].cat.codes >= b["education"].cat.codes,
    ),
    "only_up housing": (
        lambda: c.only_up("housing", order=["boat", "rent", "free", "own"]),
        lambda b, a: (
            a["housing"].map(["boat", "rent", "free", "own"].index, na_action="ignore")
            >= b["housing"].map(["boat", "rent", "free", "own"].index, na_action="ignore")
        ),
    ),
    "between salary": (
        lambda: c.between("salary", 20, 60),
        lambda b, a: a["salary"].between(20, 60),
    ),
    "change salary": (
        lambda: c.change("salary", at_least=-3, at_most=12),
        lambda b, a: (a["salary"] - b["salary"]).between(-3, 12),
    ),
    "change years": (
        lambda: c.change("years", at_most="20 %"),
        lambda b, a: a["years"] <= b["years"] + 0.2 * b["years"],
    ),
    "levels housing": (
        lambda: c.levels("housing", ["rent", "own"]),
        lambda b, a: a["housing"].isin(["rent", "own"]),
    ),
    "transitions housing": (
        lambda: c.transitions("housing", {"rent": ["own", None], None: ["rent"]}),
        lambda b, a: (
            ((b["housing"] == "rent") & (a["housing"].isin(["own"]) | a["housing"].isna()))
            | (b["housing"].isna() & (a["housing"] == "rent"))
        ),
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_feature_changes_only_as_its_constraint_says(name):
    make, holds = ALLOWED[name]
    feature = name.split()[1]

    before, after = before_and_after(explain([make()], n_samples=300, n_counterfactuals=9))

    moved = changed(before, after)[feature].to_numpy()
    assert moved.any()
    assert holds(before, after).to_numpy(dtype=bool)[moved].all()


def test_a_frozen_feature_stays_for_these_people_only():
    old = PEOPLE["age"] > 50
    listed = [
        c.frozen("salary", "education", where="age > 50"),
        c.frozen("salary", "education", where=lambda people: people["age"] > 50),
        c.frozen("salary", "education", where=old),
        c.frozen("salary", "education", where=old.to_numpy()),
    ]

    results = [explain([constraint]) for constraint in listed]

    for result in results:
        moved = changed(*before_and_after(result))[["salary", "education"]]
        is_old = old.to_numpy()[result.owner]
        assert not moved[is_old].to_numpy().any()
        assert moved[~is_old].to_numpy().any()
        pd.testing.assert_frame_equal(result.frame, results[0].frame)


def test_rows_obey_the_number_of_changes_what_goes_together_and_relations():
    result = explain(
        [
            c.max_changes(4),
            c.max_changes(1, ["salary", "years"]),
            c.together("education", "age"),
            c.relation("works from 16 on", "years <= age - 16"),
        ],
        n_samples=1000,
    )

    before, after = before_and_after(result)
    moved = changed(before, after)

    assert len(after) > 10
    assert (moved.sum(axis=1) <= 4).all()
    assert (moved[["salary", "years"]].sum(axis=1) <= 1).all()
    assert (moved["education"] == moved["age"]).all()
    assert (after["years"] <= after["age"] - 16).all()


def test_differences_below_a_step_are_no_change():
    result = explain([c.step("salary", 10), c.step("years", 4)])

    before, after = before_and_after(result)
    gaps = (after[["salary", "years"]] - before[["salary", "years"]]).abs()

    assert (gaps["salary"].fillna(0).isin([0]) | (gaps["salary"].fillna(99) >= 10)).all()
    assert (gaps["years"].isin([0]) | (gaps["years"] >= 4)).all()


def test_a_weight_makes_changes_of_a_feature_cost_more_but_gower_is_reported_unweighted():
    by_distance = bounded(rank_by=["distance"])
    plain = explain([], search=by_distance)
    dear = explain([c.weight("salary", 1000.0)], search=by_distance)

    moved = [changed(*before_and_after(result))["salary"].sum() for result in (plain, dear)]

    assert moved[1] < moved[0]
    assert dear.measures["gower"].max() <= 1
    assert dear.measures["gower"].mean() >= plain.measures["gower"].mean()


def test_dates_are_limited_in_their_own_unit():
    chance = np.random.default_rng(0)
    day = pd.Timestamp("2024-01-01", tz="UTC")
    dates = day + pd.to_timedelta(chance.integers(0, 400, 200), unit="D")
    train = pd.DataFrame({"since": dates, "salary": chance.integers(0, 100, 200)})
    late = lambda frame: ((frame["since"] - day).dt.days / 400 + frame["salary"] / 100).to_numpy()
    constraints = [
        c.change("since", at_least="-30 days", at_most="60 days"),
        c.between("since", "2024-02-01", None),
        c.step("since", "5 days"),
    ]
    explainer = MCCE(late, (1.3, 9), constraints=constraints, n_samples=200, random_state=0)

    result = explainer.fit(train).explain(train.head(30))

    before, after = before_and_after(result)
    gap = (after["since"] - before["since"]).dt.days
    moved = (gap != 0).to_numpy()
    assert moved.any()
    assert gap[moved].between(-30, 60).all()
    assert (gap[moved].abs() >= 5).all()
    assert (after["since"][moved] >= pd.Timestamp("2024-02-01", tz="UTC")).all()


def test_a_value_that_training_never_held_is_kept_where_it_may_not_change():
    people = PEOPLE.head(8).assign(age=200, salary=[5.5] * 8, housing="tent")

    result = explain(
        [c.frozen("age"), c.only_down("salary"), c.levels("housing", ["boat"])],
        people,
        desired=(0.5, 10),
    )

    _, after = before_and_after(result)
    assert len(after)
    assert (after["age"] == 200).all()
    assert (after["salary"] == 5.5).all()
    assert after["housing"].isin(["tent", "boat"]).all()


def test_a_value_that_a_constraint_forbids_may_stay_as_it_is():
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"loans": chance.integers(0, 4, 400), "paid": chance.integers(0, 2, 400)})
    levels = train.assign(loans=train["loans"].astype(str))
    for frame, constraint in (
        (train, c.between("loans", 0, 2)),
        (train, c.change("loans", at_most=-1)),
        (levels, c.levels("loans", ["0", "1"])),
        (levels, c.transitions("loans", {"3": ["0"]})),
    ):
        explainer = MCCE(lambda rows: rows["paid"], (0.5, 1), random_state=0).fit(frame)
        person = frame[(frame["loans"].astype(int) == 3) & (frame["paid"] == 0)].head(1)

        result = explainer.explain(person, constraints=[constraint])

        assert result.measures["sparsity"].tolist() == [1]


@pytest.mark.parametrize("dtype", ["uint8", "UInt8", "Int64", "int16[pyarrow]"])
def test_limits_need_not_fit_the_dtype_of_the_column(dtype):
    people = TRAIN.astype({"years": dtype})
    rules = [c.change("years", at_least=-5.5), c.between("years", -1, 1000.5), c.step("years", 1.5)]

    result = MCCE(score, (0.8, 10), constraints=rules, n_samples=40, random_state=0).fit(people)

    assert len(result.explain(people.head(30)).people) == 30
