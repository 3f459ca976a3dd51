"""Columns that follow by relations that were found at fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bills import bills, deviation, value
from mcce import MCCE, Search
from mcce import constraints as c
from planted_relations import deviations, services

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TRAIN, PEOPLE = bills(500), bills(30, seed=1)
PRICES = {"basic": 20.0, "plus": 35.0, "pro": 50.0}


def fit(train=TRAIN, score=value, low=2.0, **settings):
    settings = {"search": "near", "random_state": 0} | settings
    return MCCE(score, (low, 100), **settings).fit(train)


@pytest.mark.parametrize("search", ["sparse", "balanced", "near", "plausible", "fast"])
def test_a_product_that_was_found_is_recomputed(search):
    explainer = fit(search=search)

    result = explainer.explain(PEOPLE)

    changes = result.changes()
    assert explainer.relations_["relation"].tolist() == ["total = months * price"]
    assert (np.abs(deviation(result.frame)) <= 0.005 + 1e-9).all()
    assert set(changes.loc[changes["feature"] == "total", "kind"]) == {"consequence"}
    assert not result.frame["total"].isin(TRAIN["total"]).all()


def test_a_relative_deviation_stays_the_same_share():
    chance = np.random.default_rng(2)

    def noisy(frame):
        share = chance.uniform(-0.01, 0.01, len(frame))
        return frame.assign(total=(frame["total"] * (1 + share)).round(2))

    train, people = noisy(TRAIN), noisy(PEOPLE)

    result = fit(train).explain(people)

    old, new = people.loc[result.frame.index.get_level_values("factual")], result.frame
    shares = [deviation(frame) / (frame["months"] * frame["price"]) for frame in (old, new)]
    assert len(new) > 10
    np.testing.assert_allclose(*(share.to_numpy() for share in shares), atol=2e-4)


def test_a_price_list_follows_the_plan():
    def listed(frame):
        return frame.assign(price=frame["plan"].map(PRICES) + frame["age"] % 3)

    def cheap(frame):
        return -frame["price"].to_numpy(float) - 0.1 * frame["months"].to_numpy(float)

    train = listed(TRAIN).assign(extra=TRAIN["age"] % 3).drop(columns=["total", "age"])
    people = listed(PEOPLE).assign(extra=PEOPLE["age"] % 3).drop(columns=["total", "age"])
    explainer = MCCE(cheap, (-26, 100), search="near", random_state=0).fit(train)

    result = explainer.explain(people)

    frame, changes = result.frame, result.changes()
    assert "price" in explainer.relations_["target"].tolist()
    assert (changes["feature"] == "plan").any()
    assert set(changes.loc[changes["feature"] == "price", "kind"]) == {"consequence"}
    assert (frame["price"] == frame["plan"].map(PRICES) + frame["extra"]).all()


def test_a_declared_formula_replaces_what_was_found():
    rule = c.derived("total", "months * price", tolerance=50)

    result = fit(constraints=[rule]).explain(PEOPLE.assign(total=PEOPLE["total"] + 40))

    np.testing.assert_allclose(deviation(result.frame), 40, atol=0.005 + 1e-9)


def test_ignored_relations_are_neither_kept_nor_recomputed():
    explainer = fit(ignore_relations=["total = months * price"])

    result = explainer.explain(PEOPLE)

    assert set(result.changes()["kind"]) == {"action"}
    assert (np.abs(deviation(result.frame)) > 1).any()


def test_without_consequences_nothing_is_looked_for():
    explainer = fit(search=Search.preset("near", consequences="none"))

    assert explainer.fitted_.relations is None
    assert (np.abs(deviation(explainer.explain(PEOPLE).frame)) > 1).any()


def test_what_follows_is_the_same_after_saving(tmp_path):
    from mcce import load

    explainer = fit()
    explainer.save(tmp_path / "bills.mcce")

    again = load(tmp_path / "bills.mcce", value).explain(PEOPLE)

    result = explainer.explain(PEOPLE)
    pd.testing.assert_frame_equal(again.frame, result.frame)
    pd.testing.assert_frame_equal(again.changes(), result.changes())


@pytest.mark.parametrize("error", [0.0, 0.01])
def test_of_two_formulas_for_a_column_the_second_moves_another_one(error):
    train = services(800, error=error)
    people = train[train["total"] < 1000].head(10)
    model = MCCE(lambda rows: rows["total"], (1500, 9e9), search="near", immutable=["age"])

    result = model.set_params(random_state=0).fit(train).explain(people)

    kinds = result.changes().set_index("feature")["kind"]
    assert len(result.frame) == len(people)
    assert set(kinds["paid"]) == set(kinds["total"]) == {"consequence"}
    for kind, off in deviations(result.frame).items():
        assert (off <= max(5 * error, 1e-6)).all(), kind
