"""One answer, whatever the block size, threads, order of people or company they are in."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import MCCE, Interval, McceWarning
from tables import cases

DESIRED = Interval(0.55, np.inf)
TINY = 1e-6


def answers(explainer, people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people)


def fitted(case, **settings):
    settings = {"n_samples": 25, "random_state": 1, "n_counterfactuals": 2} | settings
    explainer = MCCE(case.score, DESIRED, immutable=case.immutable, **settings)
    return explainer.fit(case.train)


def assert_same(one, other):
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)
    pd.testing.assert_frame_equal(one.measures, other.measures, check_exact=True)
    pd.testing.assert_frame_equal(one.people, other.people, check_exact=True)


DIVERSITY = st.sampled_from([None, 0.5, 1.0])


@given(
    cases(),
    st.sampled_from([{"memory": TINY}, {"n_jobs": 3}, {"memory": 0.02, "n_jobs": 2}]),
    DIVERSITY,
)
def test_blocks_and_threads_change_nothing(case, settings, diversity):
    plain = answers(fitted(case, diversity=diversity), case.people)

    other = answers(fitted(case, diversity=diversity, **settings), case.people)

    assert_same(plain, other)
    assert plain.n_evaluated == other.n_evaluated


@given(cases(), st.integers(0, 2**32 - 1), DIVERSITY)
def test_order_and_company_change_nothing(case, seed, diversity):
    explainer = fitted(case, diversity=diversity)
    everybody = answers(explainer, case.people)
    some = np.random.default_rng(seed).permutation(len(case.people))[: 1 + seed % 6]

    few = answers(explainer, case.people.iloc[some])

    pd.testing.assert_frame_equal(few.people, everybody.people.iloc[some], check_exact=True)
    for place, person in enumerate(some):
        mine = few.frame[few.owner == place]
        pd.testing.assert_frame_equal(mine, everybody.frame[everybody.owner == person])


@given(cases(), st.integers(1, 20), st.integers(0, 20))
def test_whoever_is_answered_with_few_samples_is_answered_with_more(case, n_samples, more):
    few = answers(fitted(case, n_samples=n_samples), case.people)
    many = answers(fitted(case, n_samples=n_samples + more), case.people)

    found = (few.people["status"] == "answered").to_numpy()
    assert (many.people["status"][found] == "answered").all()
    first_few = few.measures[few.measures.index.get_level_values("rank") == 1]
    first_many = many.measures[many.measures.index.get_level_values("rank") == 1]
    better = first_many.loc[first_few.index, ["sparsity", "gower"]].apply(tuple, axis=1)
    assert (better <= first_few[["sparsity", "gower"]].apply(tuple, axis=1)).all()


@given(cases())
def test_two_runs_with_one_seed_are_equal_to_the_bit(case):
    assert_same(answers(fitted(case), case.people), answers(fitted(case), case.people))


@given(cases(), st.integers(0, 2**32 - 1))
def test_the_order_of_training_rows_changes_nothing(case, seed):
    shuffled = case.train.sample(frac=1.0, random_state=seed)

    other = MCCE(case.score, DESIRED, immutable=case.immutable, n_samples=25, random_state=1)

    assert_same(
        answers(fitted(case, n_counterfactuals=1), case.people),
        answers(other.fit(shuffled), case.people),
    )


def test_another_seed_gives_other_answers(bank):
    people = bank[bank["salary"] < 45_000]
    score = lambda frame: frame["salary"] / 1000
    frames = [
        MCCE(score, (70, 200), immutable=["age"], n_samples=5, random_state=seed)
        .fit(bank)
        .explain(people)
        .frame
        for seed in (0, 1)
    ]

    assert not frames[0].equals(frames[1])


def test_without_a_seed_one_is_drawn_at_fit_and_kept(bank):
    explainer = MCCE(lambda f: f["salary"] / 1000, (70, 200), immutable=["age"]).fit(bank)
    people = bank[bank["salary"] < 45_000]

    again = MCCE(
        lambda f: f["salary"] / 1000, (70, 200), immutable=["age"], random_state=explainer.seed_
    )

    assert_same(explainer.explain(people), explainer.explain(people))
    assert_same(explainer.explain(people), again.fit(bank).explain(people))


@pytest.mark.parametrize("immutable", [[], ["age"], ["age", "sex"]])
def test_people_with_equal_immutables_share_questions(bank, immutable):
    calls = []

    def score(frame):
        calls.append(len(frame))
        return frame["salary"] / 1000

    explainer = MCCE(score, (85, 200), immutable=immutable, random_state=0).fit(bank)
    people = pd.concat([bank[bank["salary"] < 45_000]] * 2)
    calls.clear()

    result = explainer.explain(people)

    assert sum(calls) == len(people) + result.n_evaluated + len(result.frame)
    once = explainer.explain(people.iloc[: len(people) // 2])
    assert result.n_evaluated == once.n_evaluated
