"""One answer, whatever the blocks, threads, order of people or rows, and whoever else is asked."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bank import bank, score
from bills import bills, value
from mcce import MCCE, ExactSearch, Interval, Search, TreeChain
from mcce import constraints as c
from searches import altered, assert_same, bounded, examples, explain
from tables import cases

DESIRED = Interval(0.55, np.inf)
SETTINGS = [{"memory": 1e-6}, {"n_jobs": 3}, {"memory": 0.02, "n_jobs": 2}]
BEYOND = [
    Search(max_samples=60),
    Search("near", max_samples=60, min_plausibility=0, max_evaluations=5),
    bounded("paper", max_samples=40, copies="never", consequences="recompute"),
    ExactSearch(),
    ExactSearch(max_rows=1),
    ExactSearch(max_nodes=3),
]


def fitted(case, search="paper", **settings):
    n_samples = 25 if search == "paper" else 10
    settings = {"n_samples": n_samples, "random_state": 1, "n_counterfactuals": 2} | settings
    explainer = MCCE(case.score, DESIRED, immutable=case.immutable, search=search, **settings)
    return explainer.fit(case.train)


def assert_independent(explainer, people, seed, other_settings):
    """Some people in another order, and other blocks and threads, change nothing."""
    everybody = explain(explainer, people)
    some = np.random.default_rng(seed).permutation(len(people))[: 1 + seed % 6]

    few = explain(explainer, people.iloc[some])
    other = explain(altered(explainer, **other_settings), people)

    pd.testing.assert_frame_equal(few.people, everybody.people.iloc[some], check_exact=True)
    for place, person in enumerate(some):
        mine, theirs = few.owner == place, everybody.owner == person
        pd.testing.assert_frame_equal(few.frame[mine], everybody.frame[theirs], check_exact=True)
        pd.testing.assert_frame_equal(
            few.measures[mine], everybody.measures[theirs], check_exact=True
        )
    assert_same(other, everybody)
    assert other.n_evaluated == everybody.n_evaluated


@given(
    cases(),
    st.integers(0, 2**32 - 1),
    st.sampled_from(SETTINGS),
    st.sampled_from([None, 0.5, 1.0]),
)
def test_blocks_threads_order_and_company_change_nothing(case, seed, other, diversity):
    assert_independent(fitted(case, diversity=diversity), case.people, seed, other)


@examples(0.5)
@given(
    cases(max_rows=25),
    st.integers(0, 2**32 - 1),
    st.sampled_from(SETTINGS),
    st.sampled_from(BEYOND),
)
def test_nor_do_they_for_other_searches(case, seed, other, search):
    assert_independent(fitted(case, search), case.people, seed, other)


@cache
def applicants(search):
    explainer = MCCE(score, (0.9, 99), immutable=["sex"], search=search, random_state=0)
    return explainer.fit(bank(300, seed=1))


RULES = {
    "free": [],
    "change": [c.change("salary", at_most=20)],
    "tight": [c.between("salary", 0, 60), c.frozen("education"), c.max_changes(2)],
}


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("search", ["sparse", "balanced", "plausible", "near", "nearest", "exact"])
def test_nobody_depends_on_others_under_rules(search, rules):
    explainer, people = applicants(search), bank(12, seed=2)
    rule = {"constraints": RULES[rules]}
    whole = explain(explainer, people, **rule)

    turned = explain(altered(explainer, n_jobs=2, memory=0.01), people[::-1], **rule)
    alone = [explain(explainer, people.iloc[[at]], **rule).frame for at in range(len(people))]

    pd.testing.assert_frame_equal(turned.people.sort_index(), whole.people, check_exact=True)
    pd.testing.assert_frame_equal(turned.frame.sort_index(), whole.frame, check_exact=True)
    pd.testing.assert_frame_equal(pd.concat(alone), whole.frame, check_exact=True)


def test_people_who_share_their_draws_do_not_lend_each_other_what_follows():
    rules = [c.derived("total", "months * price")]
    explainer = MCCE(value, (2.0, 100), search="near", constraints=rules, random_state=0)
    explainer.set_params(n_counterfactuals=2).fit(bills(300))
    people = bills(8, seed=1).assign(age=40, plan="plus")

    together = explain(explainer, people).frame
    alone = [explain(explainer, people.iloc[[at]]).frame for at in range(len(people))]

    pd.testing.assert_frame_equal(pd.concat(alone), together, check_exact=True)


@pytest.mark.slow
@examples(0.6)
@given(cases(max_rows=25), st.integers(0, 2**32 - 1), st.sampled_from(["paper", *BEYOND[:3]]))
def test_the_order_of_training_rows_changes_nothing(case, seed, search):
    shuffled = case.train.sample(frac=1.0, random_state=seed)
    plain = explain(fitted(case, search), case.people)

    other = fitted(case, search).fit(shuffled)

    assert_same(explain(other, case.people), plain)


@examples(0.5)
@given(cases(), st.integers(1, 20), st.integers(0, 20))
def test_whoever_is_answered_with_few_samples_is_answered_no_worse_with_more(case, n, more):
    few = explain(fitted(case, n_samples=n, n_counterfactuals=1), case.people)
    many = explain(fitted(case, n_samples=n + more, n_counterfactuals=1), case.people)

    found = (few.people["status"] == "answered").to_numpy()
    assert (many.people["status"][found] == "answered").all()
    costs = ["sparsity", "gower"]
    better = many.measures.loc[few.measures.index, costs].apply(tuple, axis=1)
    assert (better <= few.measures[costs].apply(tuple, axis=1)).all()


def by_salary(frame):
    return frame["salary"] / 1000


def rich(**settings):
    return MCCE(by_salary, (70, 200), immutable=["age"], search="paper", **settings)


def test_a_seed_decides_and_without_one_it_is_drawn_at_fit_and_kept(bank):
    people = bank[bank["salary"] < 45_000]
    explainer = rich(n_samples=5).fit(bank)
    first = explainer.explain(people)

    assert_same(explainer.explain(people), first)
    again = rich(n_samples=5, random_state=explainer.seed_).fit(bank).explain(people)
    assert_same(again, first)
    other = rich(n_samples=5, random_state=explainer.seed_ + 1).fit(bank).explain(people)
    assert not other.frame.equals(first.frame)


def test_people_who_differ_in_immutable_features_have_draws_of_their_own(bank):
    person = bank[bank["salary"] < 45_000].head(1)
    people = pd.concat([person.assign(age=age) for age in range(20, 60)], ignore_index=True)
    one_leaf = TreeChain(min_samples_leaf=len(bank), condition_on_decision=False)
    explainer = rich(generator=one_leaf, n_samples=20, n_counterfactuals=3, random_state=0)

    result = explain(explainer.fit(bank), people)

    drawn = {tuple(result.frame.loc[label, "salary"]) for label in people.index}
    assert len(drawn) > 20


def test_people_with_equal_immutables_share_questions(bank):
    calls = []

    def counted(frame):
        calls.append(len(frame))
        return by_salary(frame)

    settings = {"search": "paper", "random_state": 0}
    explainer = MCCE(counted, (85, 200), immutable=["age"], **settings).fit(bank)
    people = pd.concat([bank[bank["salary"] < 45_000]] * 2)
    calls.clear()

    result = explainer.explain(people)

    assert sum(calls) == len(people) + result.n_evaluated + len(result.frame)
    once = explainer.explain(people.iloc[: len(people) // 2])
    assert result.n_evaluated == once.n_evaluated
