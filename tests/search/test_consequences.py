"""Columns that are computed from others follow them, and are no actions of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bills import bills, deviation, value
from mcce import MCCE, ParameterError, Search
from mcce import constraints as c
from searches import bounded

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TRAIN, PEOPLE = bills(400), bills(25, seed=1)
TOTAL = c.derived("total", "months * price")
HALF_A_CENT = 0.005 + 1e-9


def explain(search="near", people=PEOPLE, train=TRAIN, rules=(TOTAL,), **settings):
    """Counterfactuals of people with a low value."""
    explainer = MCCE(value, (2.0, 100), search=search, constraints=list(rules), random_state=0)
    return explainer.set_params(**settings).fit(train).explain(people)


def own_rows(result):
    return result.factuals.iloc[result.owner].reset_index(drop=True)


@pytest.mark.parametrize("search", ["sparse", "balanced", "near", "plausible", "fast"])
def test_no_answer_breaks_the_formula(search):
    result = explain(search)

    changes = result.changes()
    assert len(result.frame) > 10
    assert (np.abs(deviation(result.frame)) <= HALF_A_CENT).all()
    assert set(changes.loc[changes["feature"] == "total", "kind"]) == {"consequence"}
    assert set(changes.loc[changes["feature"] != "total", "kind"]) == {"action"}
    # Not only totals that training happens to hold.
    assert not result.frame["total"].isin(TRAIN["total"]).all()


def test_a_consequence_never_comes_alone():
    changes = explain("sparse").changes()

    for _, cells in changes.groupby(["factual", "rank"]):
        if (cells["kind"] == "consequence").any():
            assert cells["feature"].isin(["months", "price"]).any()


def test_a_person_keeps_their_own_deviation():
    odd = PEOPLE.assign(total=PEOPLE["total"] + 7.25)

    result = explain(people=odd)

    follows = (result.frame["total"].to_numpy() != own_rows(result)["total"]).to_numpy()
    assert follows.sum() > 5
    np.testing.assert_allclose(deviation(result.frame), 7.25, atol=HALF_A_CENT)


@pytest.mark.parametrize(
    ("dtype", "places"),
    [
        ("float64", 2),
        ("float32", 2),
        ("Float64", 2),
        ("int64", 0),
        ("int32", 0),
        ("Int64", 0),
        ("double[pyarrow]", 2),
        ("int64[pyarrow]", 0),
    ],
)
def test_the_column_keeps_its_dtype_and_its_decimal_places(dtype, places):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    train, people = (
        frame.assign(total=frame["total"].round(places).astype(dtype)) for frame in (TRAIN, PEOPLE)
    )

    result = explain(people=people, train=train)

    total = result.frame["total"]
    moved = total.to_numpy(float) != own_rows(result)["total"].to_numpy(float)
    single = 1e-3 if dtype == "float32" else 0.0
    new, old = deviation(result.frame), deviation(own_rows(result))
    off = np.minimum(np.abs(new), np.abs(new - old))
    assert total.dtype == people["total"].dtype
    assert moved.sum() > 5
    assert off[moved].max() <= 0.5 * 10.0**-places + 1e-9 + single
    numbers = total.to_numpy(float)
    assert np.abs(numbers.round(places) - numbers).max() <= single


def test_a_missing_total_follows_once_its_formula_is_known():
    train = TRAIN.assign(price=TRAIN["price"].mask(TRAIN["age"] < 25))
    train["total"] = (train["months"] * train["price"]).round(2)
    people = PEOPLE.assign(price=np.nan, total=np.nan)

    def known(frame):
        return frame["total"].fillna(0).to_numpy() / 1000

    rules = [TOTAL, c.frozen("months")]
    explainer = MCCE(known, (1.0, 100), search="near", constraints=rules, random_state=0)
    result = explainer.fit(train).explain(people)

    assert len(result.frame) > 5
    assert (np.abs(deviation(result.frame)) <= HALF_A_CENT).all()


def test_a_computed_value_stays_in_the_training_range():
    few = TRAIN[TRAIN["total"] < 3000]

    result = explain(people=PEOPLE[PEOPLE["total"] < 3000], train=few)

    assert len(result.frame)
    assert result.frame["total"].max() <= few["total"].max()


def test_an_immutable_total_rules_out_the_action_and_the_reason_says_so():
    def by_price(frame):
        return -frame["price"].to_numpy()

    explainer = MCCE(
        by_price,
        (-40, 0),
        search="near",
        immutable=["total", "months"],
        constraints=[TOTAL],
        random_state=0,
    ).fit(TRAIN)
    result = explainer.explain(PEOPLE[PEOPLE["price"] > 60])

    assert not len(result.frame)
    assert result.missing["reason"].str.contains(r"derived total \(immutable\)").any()


@pytest.mark.parametrize(
    ("rule", "obeyed"),
    [
        (
            c.frozen("total", where="age > 40"),
            lambda old, new: (old["age"] <= 40) | (old["total"] == new["total"]),
        ),
        (c.only_up("total"), lambda old, new: new["total"] >= old["total"]),
        (
            c.between("total", 1000, 4000),
            lambda old, new: (old["total"] == new["total"]) | new["total"].between(1000, 4000),
        ),
    ],
)
def test_rules_on_the_column_hold_for_consequences_too(rule, obeyed):
    result = explain(rules=[TOTAL, rule])

    old, new = own_rows(result), result.frame.reset_index(drop=True)
    assert len(new)
    assert obeyed(old, new).all()
    assert (np.abs(deviation(new)) <= HALF_A_CENT).all()


def test_columns_follow_each_other_in_order():
    def with_sum(frame):
        fee = frame["age"] / 10
        return frame.assign(fee=fee, sum=(frame["total"] + fee).round(2))

    def by_sum(frame):
        return frame["sum"].to_numpy(float) / 1000

    train, people = with_sum(TRAIN), with_sum(PEOPLE)
    rules = [c.derived("sum", "total + fee"), TOTAL]
    explainer = MCCE(by_sum, (3.0, 100), search="near", constraints=rules, random_state=0)
    result = explainer.fit(train).explain(people)

    frame, changes = result.frame, result.changes()
    assert len(frame) > 10
    assert (np.abs(deviation(frame)) <= HALF_A_CENT).all()
    assert (np.abs(frame["sum"] - frame["total"] - frame["fee"]) <= HALF_A_CENT).all()
    followed = changes.loc[changes["kind"] == "consequence", "feature"]
    assert set(followed) == {"total", "sum"}


@pytest.mark.parametrize("search", ["near", "fast"])
def test_nobody_depends_on_who_else_is_asked(search):
    explainer = MCCE(value, (2.0, 100), search=search, constraints=[TOTAL], random_state=0)
    explainer.fit(TRAIN)
    # The same columns but those of the formula, so that they share draws.
    people = PEOPLE.assign(age=40, plan="plus").iloc[:8]

    together = explainer.explain(people)

    for label in people.index:
        alone = explainer.explain(people.loc[[label]])
        expected = together.frame[together.frame.index.get_level_values("factual") == label]
        pd.testing.assert_frame_equal(alone.frame, expected)


def test_actions_are_counted_beside_changed_cells():
    result = explain("balanced")

    changes = result.changes()
    cells = changes.groupby(["factual", "rank"]).size()
    actions = changes[changes["kind"] == "action"].groupby(["factual", "rank"]).size()
    measures = result.measures
    assert (measures["n_actions"] == actions).all()
    assert (measures["sparsity"] == cells).all()
    assert (measures["n_actions"] < measures["sparsity"]).any()


def test_answers_can_be_compared_by_actions():
    by_cells = explain(Search.preset("near"))
    by_actions = explain(Search.preset("near", rank_by=("n_actions", "distance")))

    assert by_actions.measures["n_actions"].mean() <= by_cells.measures["n_actions"].mean()
    with pytest.raises(ParameterError, match="counts actions"):
        Search.preset("fast", rank_by=("n_actions", "distance"))
    with pytest.raises(ParameterError, match="n_targets=0"):
        Search.preset("near", rank_by=("distance",))


def test_redrawn_columns_are_actions_and_still_obey_the_formula():
    result = explain(Search.preset("near", consequences="redraw"))

    changes = result.changes()
    assert len(result.frame)
    assert (np.abs(deviation(result.frame)) <= HALF_A_CENT).all()
    assert set(changes["kind"]) == {"action"}
    assert result.frame["total"].isin([*TRAIN["total"], *PEOPLE["total"]]).all()


def test_the_papers_search_recomputes_nothing():
    assert Search.preset("paper").consequences == "none"
    assert Search.preset("fast").consequences == "recompute"
    with pytest.raises(ParameterError, match="consequences must be one of"):
        Search(consequences="maybe")


def test_several_answers_follow_too():
    result = explain(n_counterfactuals=3, diversity=0.5)

    assert result.measures.index.get_level_values("rank").max() == 3
    assert (np.abs(deviation(result.frame)) <= HALF_A_CENT).all()


@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 2**16),
    search=st.sampled_from(["sparse", "balanced", "near", "plausible", "fast"]),
    places=st.integers(0, 2),
    noise=st.sampled_from([0.0, 5.0]),
    frozen=st.sampled_from([(), ("months",), ("price", "plan")]),
)
def test_every_changed_cell_is_seen_in_training_or_follows(seed, search, places, noise, frozen):
    chance = np.random.default_rng(seed)
    train, people = bills(120, seed), bills(6, seed + 1)
    people["total"] = people["total"] + noise * chance.normal(size=len(people))
    train, people = (f.assign(total=f["total"].round(places)) for f in (train, people))
    rules = [TOTAL, *(c.frozen(name) for name in frozen)]

    result = explain(search, people, train, rules)

    old, new = own_rows(result), result.frame.reset_index(drop=True)
    for name in ("months", "price", "age", "plan"):
        assert (new[name].isin(train[name]) | (new[name] == old[name])).all()
    kept = np.abs(deviation(new) - deviation(old)) <= 0.5 * 10.0**-places + 1e-6
    exact = np.abs(deviation(new)) <= 0.5 * 10.0**-places + 1e-6
    assert (kept | exact).all()
    assert (
        new["total"]
        .between(train["total"].min(), train["total"].max())
        .where(new["total"] != old["total"], other=True)
        .all()
    )


@pytest.mark.parametrize("search", ["sparse", "near"])
def test_an_action_is_undone_together_with_what_follows_from_it(search):
    free = bounded(search, min_plausibility=0.0)
    explainer = MCCE(value, (2.0, 100), search=free, constraints=[TOTAL], random_state=0).fit(TRAIN)
    result = explainer.explain(PEOPLE)

    measured = explainer.robustness(result)

    assert (result.measures["sparsity"] > result.measures["n_actions"]).any()
    assert measured["valid"].all()
    assert measured["minimal"].all()
