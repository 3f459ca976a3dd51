"""Exact and guided searches for people whose own values training never held, by brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_row import best_of_all, drawable, every_row
from mcce import MCCE, ExactSearch, TreeChain
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.constraints.limits import FactualLimits
from mcce.generate import Block, generate
from searches import explain

RULES = [
    [],
    [c.only_down("debt")],
    [c.change("salary", at_most=2)],
    [c.step("debt", 1.5), c.only_up("salary")],
    [c.levels("job", ["b", "c"])],
    [c.frozen("debt"), c.max_changes(1)],
]


def score(frame):
    """Higher for every salary; a debt of exactly 2, or an unknown job, is worth nothing."""
    salary = frame["salary"].astype(float).fillna(-1.0)
    debt, job = frame["debt"].astype(float).fillna(2.0), frame["job"].astype(object)
    return salary / 5 + 0.4 * (debt != 2.0) + 0.3 * (job == "b").to_numpy()


def made(seed, missing):
    """A small table, and people with numbers, levels and missing values that it lacks."""
    chance = np.random.default_rng(seed)
    train = pd.DataFrame(
        {
            "age": chance.integers(0, 2, 16) * 10.0,
            "salary": chance.integers(0, 5, 16) * 1.0,
            "debt": chance.integers(0, 4, 16) * 1.0,
            "job": chance.choice(["a", "b", "c"], 16),
        }
    )
    if missing:
        train.loc[chance.random(16) < 0.3, "debt"] = np.nan
    own = {
        "age": [0.0, 10.0, 3.0, 10.0, 0.0],
        "salary": [0.5, 1.2, 0.0, np.nan, 1.75],
        "debt": [2.0, 2.5, np.nan, 1.9, 40.0],
        "job": ["a", "new", "c", None, "newer"],
    }
    return train, pd.DataFrame(own)


def explainer_of(seed, rules, missing, **settings):
    train, people = made(seed, missing)
    explainer = MCCE(
        score,
        (0.9, 9.0),
        immutable=["age"],
        constraints=rules or None,
        generator=TreeChain(min_samples_leaf=1 + seed % 6),
        random_state=seed % 5,
        **settings,
    )
    return explainer.fit(train), train, people


@pytest.mark.slow
@given(
    st.integers(0, 10**6),
    st.sampled_from(RULES),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["allow", "never", "last"]),
    st.integers(1, 3),
)
@settings(max_examples=60)
def test_the_fewest_and_then_the_nearest_changes(seed, rules, missing, keep, copies, n_wanted):
    search = ExactSearch(keep_unseen=keep, copies=copies)
    explainer, train, people = explainer_of(
        seed, rules, missing, search=search, n_counterfactuals=n_wanted
    )
    if not explainer.n_desired_:
        return
    result = explain(explainer, people)

    assert result.measures["proven"].all()
    for person, status in enumerate(result.people["status"]):
        if status == "already desired":
            continue
        ordered = best_without_copies(explainer, people, person, train)
        expected = [(n, gower) for n, _, gower in ordered[:n_wanted]]
        mine = result.measures[result.owner == person]
        got = mine[["sparsity", "gower"]].to_numpy()
        np.testing.assert_allclose(got, np.reshape(expected, (-1, 2)))
        reason = result.people["reason"].iloc[person]
        assert reason.startswith("proven: no row") == (not expected)


def best_without_copies(explainer, people, person, train):
    """All that a person might get; copies only where there is nothing else if they come last."""
    search = explainer.search
    if search.copies != "last":
        return best_of_all(explainer, people, person, train)[0]
    explainer.search = ExactSearch(keep_unseen=search.keep_unseen, copies="never")
    others = best_of_all(explainer, people, person, train)[0]
    explainer.search = search
    return others or best_of_all(explainer, people, person, train)[0]


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_guided_draws_are_the_rows_that_the_exact_search_lists(seed, rules):
    explainer, _, people = explainer_of(seed, rules, seed == 1, search="exact")
    rows = explainer.schema_.encode(people)
    constraints = Constraints.bind(rules, explainer.schema_)
    personal = FactualLimits(constraints, rows, whole=True, keep_unseen=True)
    everybody = np.arange(len(rows))

    drawn = generate(
        explainer.generator_, personal, Block(everybody, everybody), np.arange(20_000), 7, 0.5
    )

    for person in everybody:
        whose = np.full(20_000, person)
        got = {*map(tuple, drawn.select(whose, np.arange(20_000)).codes.T.tolist())}
        codes = every_row(explainer, rows, person)
        codes = codes[:, drawable(explainer, rows, person, codes)]
        assert got == {*map(tuple, codes.T.tolist())}


def nearest(frame):
    return 1.0 * (frame["salary"] == 2.0)


def stays(frame):
    return 1.0 * (((frame["salary"] == 1.9) | (frame["salary"] == 3.0)) & (frame["debt"] == 2.0))


@pytest.mark.parametrize("search", ["exact", "fast"])
@pytest.mark.parametrize(("predictor", "answer"), [(nearest, [2.0, 1.0]), (stays, [1.9, 2.0])])
def test_a_number_may_stay_or_become_the_nearest_one(search, predictor, answer):
    train = pd.DataFrame({"salary": [0.0, 1.0, 2.0, 3.0] * 5, "debt": [1.0, 2.0] * 10})
    leaf = TreeChain(min_samples_leaf=20)  # one leaf per feature: everything can be drawn
    explainer = MCCE(predictor, (1, 1), generator=leaf, search=search, random_state=0).fit(train)

    result = explain(explainer, pd.DataFrame({"salary": [1.9], "debt": [1.0]}))

    assert result.frame.to_numpy().tolist() == [answer]


@pytest.mark.parametrize("search", ["exact", "fast"])
def test_levels_and_missing_values_that_training_never_held_may_stay(search):
    train = pd.DataFrame({"salary": [0.0, 1.0] * 10, "job": ["a", "b"] * 10, "debt": [1.0] * 20})
    people = pd.DataFrame({"salary": [0.0] * 2, "job": ["new", None], "debt": [np.nan, 1.0]})
    explainer = MCCE(lambda frame: frame["salary"], (1, 1), search=search, random_state=0)

    result = explain(explainer.fit(train), people)

    pd.testing.assert_frame_equal(result.frame.reset_index(drop=True), people.assign(salary=1.0))
