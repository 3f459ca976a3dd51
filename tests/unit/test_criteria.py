"""The promises of every answer, over random tables, predictors, rules and searches."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from bank import bank, score
from mcce import MCCE, ExactSearch, Interval, Search, TreeChain
from mcce import constraints as c
from searches import altered, bounded, examples, explain, own_rows, texts
from tables import cases

DESIRED = Interval(0.55, np.inf, closed="left")

BEYOND = ["sparse", "balanced", "plausible", "near", "nearest"]


@st.composite
def searches(draw, beyond):
    """The paper's search, or another one, with any bounds."""
    bounds = {
        "max_sparsity": draw(st.none() | st.integers(1, 3)),
        "max_distance": draw(st.none() | st.sampled_from([0.1, 0.4])),
        "copies": draw(st.sampled_from(["allow", "never", "last"])),
    }
    if not beyond:
        ranks = [("sparsity", "distance"), ("distance",), ("distance", "sparsity")]
        return bounded("paper", rank_by=draw(st.sampled_from(ranks)), **bounds)
    kind = draw(st.sampled_from(["sampled", "exact"]))
    if kind == "exact":
        return ExactSearch(**bounds)
    name = draw(st.sampled_from(BEYOND))
    return Search(
        name,
        min_plausibility=draw(st.sampled_from([0.0, 0.05, 0.5])),
        extra_changes=draw(st.integers(0, 2)) if Search(name).extra_changes else 0,
        max_samples=draw(st.sampled_from([None, 60])),
        **bounds,
    )


@st.composite
def explained(draw, beyond=False):
    case, search = draw(cases()), draw(searches(beyond))
    chain = TreeChain(
        min_samples_leaf=draw(st.integers(1, 6)),
        condition_on_decision=draw(st.booleans()),
        visit_order=draw(st.sampled_from(["data", "correlation"])),
    )
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        generator=chain,
        search=search,
        n_samples=draw(st.integers(1, 40)),
        n_counterfactuals=draw(st.integers(1, 3)),
        diversity=None if isinstance(search, ExactSearch) else draw(st.sampled_from([None, 0.5])),
        random_state=draw(st.integers(0, 5)),
    )
    return case, explainer.fit(case.train), explain(explainer, case.people)


def assert_promised(case, explainer, result):
    """Valid, immutable features untouched, within bounds, none twice, everybody accounted for."""
    scores = case.score(result.frame)
    assert DESIRED.contains(scores).all()
    assert np.array_equal(scores, result.measures["score"].to_numpy())
    own = own_rows(result)[case.immutable]
    pd.testing.assert_frame_equal(result.frame[case.immutable], own, check_exact=True)
    assert texts(result.frame[case.immutable]) == texts(own)  # also tells 0.0 from -0.0
    assert result.frame.dtypes.equals(case.people.dtypes)
    search = explainer.search
    assert (result.measures["sparsity"] <= (search.max_sparsity or np.inf)).all()
    assert (result.measures["gower"] <= (search.max_distance or np.inf)).all()
    if search.copies == "never":
        assert not {*texts(case.train)} & {*texts(result.frame)}
    answers = list(zip(result.owner, texts(result.frame), strict=True))
    assert len(set(answers)) == len(answers)
    people = result.people
    assert people.index.equals(case.people.index.rename("factual"))
    assert ((people["reason"] != "") == (people["status"] == "no answer")).all()
    assert ((people["status"] == "answered") == (people["n_counterfactuals"] > 0)).all()
    assert people["n_counterfactuals"].sum() == len(result.frame) == len(result.measures)
    desired = DESIRED.contains(case.score(case.people))
    assert ((people["status"] == "already desired") == desired).all()
    assert len(result.changes()) == result.measures["sparsity"].sum()


@given(explained())
def test_answers_of_the_paper_s_search_keep_every_promise(work):
    assert_promised(*work)


@examples(0.6)
@given(explained(beyond=True))
def test_answers_of_other_searches_keep_every_promise(work):
    assert_promised(*work)


@given(explained())
def test_every_row_of_the_paper_s_search_is_on_the_manifold(work):
    case, explainer, result = work

    for name in set(case.train.columns) - set(case.immutable):
        seen, returned = case.train[name].astype(object), result.frame[name].astype(object)
        assert returned[returned.notna()].isin(seen[seen.notna()]).all()
        assert seen.isna().any() or not returned.isna().any()
    assert np.isfinite(explainer.log_likelihood(result.frame)).all()


@cache
def fitted(search):
    """An explainer of the bank's applicants."""
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search=search, random_state=1)
    return explainer.fit(bank(400, missing=False))


def within(before, after, *names):
    """How many of these features changed, for each answer."""
    return (before[list(names)] != after[list(names)]).sum(axis=1)


# A rule, and whether answers keep it.
RULES = {
    "only up": (c.only_up("salary"), lambda b, a: a["salary"] >= b["salary"]),
    "only down": (c.only_down("years"), lambda b, a: a["years"] <= b["years"]),
    "change": (c.change("age", at_most=5), lambda b, a: a["age"] <= b["age"] + 5),
    "between": (
        c.between("salary", 30, 60),
        lambda b, a: a["salary"].between(30, 60) | (a["salary"] == b["salary"]),
    ),
    "levels": (
        c.levels("housing", ["own", "rent"]),
        lambda b, a: a["housing"].isin(["own", "rent"]) | (a["housing"] == b["housing"]),
    ),
    "frozen": (
        c.frozen("education", where="years > 15"),
        lambda b, a: (a["education"] == b["education"]) | (b["years"] <= 15),
    ),
    "at most two": (c.max_changes(2), lambda b, a: within(b, a, *a.columns) <= 2),
    "at most one of two": (
        c.max_changes(1, ["salary", "years"]),
        lambda b, a: within(b, a, "salary", "years") <= 1,
    ),
    "together": (
        c.together("years", "housing"),
        lambda b, a: within(b, a, "years", "housing").isin([0, 2]),
    ),
    "relation": (c.relation("from 16 on", "years <= age - 16"), lambda _, a: a.years <= a.age - 16),
    "step": (
        c.step("salary", 7),
        lambda b, a: ((a["salary"] - b["salary"]).abs() >= 7) | (a["salary"] == b["salary"]),
    ),
    "weight": (c.weight("salary", 3.0), lambda _, a: a["salary"] > 0),
}


@examples(0.6)
@given(
    st.lists(st.sampled_from(sorted(RULES)), unique=True, max_size=4),
    st.sampled_from(["paper", "exact", *BEYOND]),
    st.integers(1, 2),
)
def test_no_answer_breaks_a_rule_and_nobody_loses_theirs(names, search, n_counterfactuals):
    rules = [RULES[name][0] for name in names]
    explainer = altered(fitted(search), n_counterfactuals=n_counterfactuals)
    people = bank(15, seed=1, missing=False)

    result = explain(explainer, people, constraints=rules)

    before = own_rows(result)
    assert (score(result.frame) >= 0.8).all()
    for name in names:
        assert RULES[name][1](before, result.frame).all(), name
    drawn = explain(altered(fitted("paper"), n_samples=100), people, constraints=rules)
    assert set(drawn.owner) <= set(result.owner)
