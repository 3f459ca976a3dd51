"""Plausibility: p-values of real and made-up rows, and distances to the nearest accepted ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mcce
from bank import bank, score
from mcce import MCCE, NotFittedError
from searches import bounded, explain


def jobs(n_rows, seed=0):
    """Pensioners do not work, students are young, and a tenth of all is in a rare trade."""
    chance = np.random.default_rng(seed)
    age = chance.integers(18, 90, n_rows)
    state = np.where(age > 66, "pension", np.where(age < 25, "student", "work"))
    trades = [f"trade {i}" for i in chance.integers(0, 12, n_rows)]
    return pd.DataFrame(
        {
            "age": age,
            "state": state,
            "hours": np.where(state == "work", chance.integers(10, 60, n_rows), 0).astype(float),
            "trade": np.where(chance.random(n_rows) < 0.1, trades, "usual"),
            "noise": chance.normal(size=n_rows),
        }
    )


def bills(n_rows, seed=0):
    """The total is the product of months and price, to one percent."""
    chance = np.random.default_rng(seed)
    months, price = chance.integers(6, 72, n_rows), chance.integers(20, 120, n_rows)
    return pd.DataFrame(
        {
            "months": months,
            "price": price.astype(float),
            "total": (months * price * (1 + 0.01 * chance.standard_normal(n_rows))).round(2),
            "plan": np.where(price > 80, "large", np.where(price > 40, "usual", "small")),
        }
    )


def learned(frame, accepts=lambda frame: np.ones(len(frame)), immutable=(), **more):
    """An explainer that knows which rows are plausible: those like the accepted ones."""
    settings = {"immutable": list(immutable), "search": "balanced", "random_state": 0}
    return MCCE(accepts, (0.5, 1.5), **settings | more).fit(frame)


def p_values(explainer, frame):
    return explainer.plausibility(frame)["plausibility"].to_numpy()


# ---------------------------------------------------------------------------------------------
# P-values are what they say.


@pytest.mark.parametrize("make", [jobs, bank, bills])
def test_shares_of_small_p_values_are_what_they_say(make):
    found = [
        p_values(learned(make(1500, seed=seed)), make(1000, seed=seed + 100)) for seed in range(10)
    ]

    # Both the 500 rows held out and the 1000 unseen ones are random, in each of ten fits.
    for level in (0.01, 0.05, 0.25):
        margin = 3 * np.sqrt(level * (1 / 500 + 1 / 1000) / 10)
        share = (np.concatenate(found) <= level).mean()
        assert share < level + margin
        assert share > level - margin or make is not bills


@pytest.mark.parametrize(("n_rows", "n_held_out"), [(150, 75), (450, 200), (900, 300)])
def test_the_strangest_row_has_the_smallest_p_value_that_held_out_rows_allow(n_rows, n_held_out):
    explainer = learned(jobs(n_rows).drop(columns="trade"))
    strange = jobs(3).drop(columns="trade").assign(age=80, state="work", hours=1e6, noise=1e9)

    found = p_values(explainer, strange)

    assert found.min() == pytest.approx(1 / (n_held_out + 1))


@pytest.mark.parametrize("n_rows", [1, 2, 5, 19])
def test_few_rows_rule_nothing_out(n_rows):
    explainer = learned(bank(n_rows))

    assert (p_values(explainer, bank(50, seed=1)) >= 1 / (n_rows + 1)).all()
    assert (p_values(explainer, bank(n_rows)) >= 0.05).all()


@pytest.mark.parametrize(("n_rows", "n_fits"), [(200, 10), (600, 10), (4000, 2)])
def test_rows_with_rare_levels_are_as_plausible(n_rows, n_fits):
    found = []
    for seed in range(n_fits):
        fresh = jobs(2000, seed=seed + 100)
        rare = fresh[fresh["trade"] != "usual"]
        found.append(p_values(learned(jobs(n_rows, seed=seed), immutable=["age"]), rare) <= 0.05)

    assert np.concatenate(found).size > 300
    assert np.concatenate(found).mean() <= 0.08


@pytest.mark.parametrize(("n_rows", "share", "n_fits"), [(150, 0.02, 30), (900, 0.06, 20)])
def test_a_few_odd_rows_with_rare_levels_are_not_called_implausible(n_rows, share, n_fits):
    def people(n_rows, seed):
        chance = np.random.default_rng(seed)
        rare = chance.random(n_rows) < share
        level = np.where(
            rare, chance.choice(list("pqrstu"), n_rows), chance.choice(["a", "b"], n_rows)
        )
        x = chance.standard_normal(n_rows)
        y = np.where(rare, -4 * x, x + 0.3 * chance.standard_normal(n_rows))
        return pd.DataFrame({"x": x.round(3), "y": y.round(3), "level": level})

    shares, absurd = [], []
    for seed in range(n_fits):
        training, fresh = people(n_rows, seed), people(2_000, seed + 100)
        known = training.loc[training["level"].isin(list("pqrstu")), "level"]
        rare = fresh[fresh["level"].isin(known)]
        if len(rare):
            explainer = learned(training)
            shares.append((p_values(explainer, rare) <= 0.05).mean())
            absurd.append(p_values(explainer, rare.head(5).assign(y=1e9)).max())

    assert len(shares) >= 0.6 * n_fits
    error = max(np.std(shares), 0.05) / np.sqrt(len(shares))
    assert np.mean(shares) <= 0.05 + 2 * error
    assert max(absurd) < 0.02


@pytest.mark.parametrize("n_rare", [3, 20, 400])
def test_a_rare_level_in_the_wrong_place_is_strange_once_enough_rows_have_it(n_rare):
    frame = jobs(4000).assign(trade="usual")
    frame.loc[np.flatnonzero(frame["age"] > 66)[:n_rare], "trade"] = "knitter"
    young = frame[frame["age"] < 40].assign(trade="knitter")

    strange = (p_values(learned(frame), young) < 0.02).mean()

    assert strange < 0.1 if n_rare == 3 else strange == 1


def test_levels_that_training_never_held_are_nothing_against_a_row():
    frame = jobs(2000)
    explainer = learned(frame)
    typical = frame[p_values(explainer, frame) > 0.1].head(50)

    assert (p_values(explainer, typical.assign(trade="acrobat")) > 0.05).mean() >= 0.9


# ---------------------------------------------------------------------------------------------
# What is strange.


def test_what_never_goes_together_is_implausible():
    explainer = learned(jobs(3000), immutable=["age"])
    real = jobs(300, seed=1)
    workers = real[real["state"] == "work"]

    for odd in (
        workers.assign(age=80),
        workers.assign(state="pension", age=75),
        workers.assign(hours=0, state="student", age=50),
    ):
        assert (p_values(explainer, odd) < 0.01).all()


def test_all_rows_know_a_contradiction_that_accepted_rows_are_too_few_to_know():
    frame = jobs(4000)
    accepted = (frame["state"] == "work") & (frame.index % 2 == 0)
    accepted[np.flatnonzero(frame["state"] == "pension")[:15]] = True
    frame["mark"] = accepted.astype(float)
    odd = frame[accepted & (frame["age"] > 70)].assign(state="work")

    explainer = learned(frame, lambda rows: rows["mark"].to_numpy(), immutable=["mark"])

    assert (p_values(explainer, odd) < 0.01).all()


@pytest.mark.parametrize("immutable", [(), ("months", "price")])
def test_rows_that_break_a_planted_product_are_implausible_and_others_are_not(immutable):
    explainer = learned(bills(6000), immutable=immutable)
    fresh = bills(1000, seed=1)
    middle = fresh[fresh["months"].between(20, 40)]

    for broken in (
        fresh.assign(total=0.7 * fresh["total"]),
        fresh.assign(total=1.3 * fresh["total"]),
        middle.assign(months=middle["months"] + 30),
    ):
        assert (p_values(explainer, broken) < 0.01).mean() > 0.9
    assert (p_values(explainer, fresh) < 0.01).mean() < 0.025


def test_a_missing_number_is_judged_by_whether_it_should_be_missing():
    frame, fresh = bills(4000), bills(400, seed=1)
    for table in (frame, fresh):
        table["total"] = table["total"].where(table["plan"] != "small")
    explainer = learned(frame)
    large, small = fresh[fresh["plan"] == "large"], fresh[fresh["plan"] == "small"]

    assert (p_values(explainer, fresh) < 0.05).mean() < 0.1
    assert (p_values(explainer, large.assign(total=np.nan)) < 0.01).mean() > 0.9
    assert (p_values(explainer, small.assign(total=2000.0)) < 0.01).mean() > 0.9


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_numbers_of_any_size_are_judged(scale):
    frame = bills(300)
    frame["total"] *= scale

    found = p_values(learned(frame), frame.assign(total=frame["total"].to_numpy()[::-1]))

    assert np.isfinite(found).all()
    assert found.min() < 0.05


# ---------------------------------------------------------------------------------------------
# What p-values depend on.


def test_neither_order_nor_threads_nor_other_rows_change_a_bit():
    for make in (bills, bank):
        frame, fresh = make(900), make(40, seed=1)

        expected = p_values(learned(frame), fresh)

        other = learned(frame.sample(frac=1.0, random_state=3), n_jobs=2)
        one_by_one = [p_values(other, fresh.iloc[[at]]) for at in range(len(fresh))]
        assert np.array_equal(np.concatenate(one_by_one), expected)


def test_plausibility_keeps_the_index_the_kind_of_frame_and_what_is_saved(tmp_path):
    people = bank(40, seed=1).set_index(pd.Index(range(100, 140), name="person"))
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search="balanced", random_state=0)
    explainer.fit(bank(600)).save(tmp_path / "saved.mcce")

    found = explainer.plausibility(people)
    plain = people.reset_index(drop=True).astype({"education": str})
    in_polars = explainer.plausibility(pl.from_pandas(plain))

    assert list(found.columns) == ["plausibility"]
    pd.testing.assert_index_equal(found.index, people.index)
    assert found["plausibility"].between(0, 1, inclusive="right").all()
    assert isinstance(in_polars, pl.DataFrame)
    assert in_polars["plausibility"].to_list() == found["plausibility"].tolist()
    loaded = mcce.load(tmp_path / "saved.mcce", score)
    pd.testing.assert_frame_equal(loaded.plausibility(people), found)


def test_the_search_of_the_paper_learns_no_plausibility():
    paper = MCCE(score, (0.8, 10), search="paper", random_state=0).fit(bank(100))

    with pytest.raises(NotFittedError, match="Fit again"):
        paper.plausibility(bank(3))


# ---------------------------------------------------------------------------------------------
# Measures of answers.


def nearest_five(train, frame, rows, first=0):
    """Mean of the five smallest sums of range-scaled differences, by hand."""
    total = np.zeros((len(rows), len(frame)))
    for name in frame:
        ours, theirs = rows[name].to_numpy()[:, None], frame[name].to_numpy()[None]
        if frame[name].dtype.kind in "if":
            gap = np.abs(ours - theirs) / (train[name].max() - train[name].min())
            gap = np.where(np.isnan(ours) & np.isnan(theirs), 0.0, gap)
            total += np.where(np.isnan(gap), 1.0, gap)
        else:
            total += ours != theirs
    return np.sort(total, axis=1)[:, first : first + 5].mean(axis=1)


def test_measures_of_a_result_are_those_of_its_rows_and_their_nearest_accepted_ones():
    train = bank(400).drop(columns="housing").astype({"education": object})
    people = bank(80, seed=1).drop(columns="housing").astype({"education": object})

    def accepts(frame):
        return frame["salary"].fillna(30).to_numpy() / 100 + frame["years"].to_numpy() / 100

    explainer = learned(train, accepts, immutable=["sex"])
    accepted = train[accepts(train) >= 0.5].reset_index(drop=True)

    result = explain(explainer, people)

    answers = result.frame.reset_index(drop=True)
    assert np.array_equal(result.measures["plausibility"], p_values(explainer, answers))
    near = nearest_five(train, accepted, answers)
    usual = nearest_five(train, accepted, accepted, first=1)
    assert len(answers) > 15
    quantile = result.measures["knn_distance_quantile"].to_numpy()
    assert np.allclose(quantile, [(usual < one - 1e-9).mean() for one in near], atol=1e-9)


@pytest.mark.parametrize("least", [0.05, 0.25, 0.6])
def test_answers_are_as_plausible_as_required(least):
    train, people = bank(400), bank(30, seed=1)
    search = bounded("balanced", min_plausibility=least)
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search=search, random_state=0).fit(train)

    result = explain(explainer, people)

    # Somebody's own row may be stranger than that; then an answer may be as strange.
    own = p_values(explainer, people)[result.owner]
    assert len(result.frame) > 3
    assert (result.measures["plausibility"] >= np.minimum(own, least)).all()
