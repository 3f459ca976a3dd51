"""Cells that are equal but not identical: nobody's answer depends on who else has which."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from look_alikes import OTHER_NAN, Case, cases, fingerprints, score
from mcce import MCCE, McceWarning
from mcce.protocols import Capabilities, Draws, draw_keys, pick

SEARCHES = st.sampled_from(["paper", "fast", "balanced", "exact"])
TINY = 1e-6


def fitted(case: Case, **settings) -> MCCE:
    fixed = {"n_samples": 20, "n_counterfactuals": 2, "random_state": 1}
    explainer = MCCE(
        score, (0.8, 1), immutable=case.immutable, kinds=case.kinds, **fixed | settings
    )
    return explainer.fit(case.train)


def explained(explainer: MCCE, people: pd.DataFrame):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people)


def bits(frame: pd.DataFrame) -> list[tuple[bytes, ...]]:
    return list(zip(*(fingerprints(column) for _, column in frame.items()), strict=True))


def assert_same_for(person: int, alone, together) -> None:
    mine = together.owner == person
    assert bits(alone.frame) == bits(together.frame[mine])
    assert alone.people["status"].tolist() == [together.people["status"].iloc[person]]
    np.testing.assert_array_equal(alone.measures, together.measures[mine])


@given(cases(), SEARCHES, st.sampled_from([{}, {"memory": TINY}, {"n_jobs": 2}]))
def test_a_batch_gives_the_answers_that_each_person_gets_alone(case, search, settings):
    explainer = fitted(case, search=search)

    together = explained(fitted(case, search=search, **settings), case.people)

    for person in range(len(case.people)):
        assert_same_for(person, explained(explainer, case.people.iloc[[person]]), together)


@given(cases(), SEARCHES)
def test_immutable_cells_stay_the_same_in_type_and_bits(case, search):
    result = explained(fitted(case, search=search), case.people)

    own = case.people.iloc[result.owner]
    assert bits(result.frame[case.immutable]) == bits(own[case.immutable])
    assert (score(result.frame) >= 0.8).all()


@given(cases(), st.randoms(use_true_random=False))
def test_which_look_alike_is_drawn_does_not_depend_on_the_order_of_training_rows(case, chance):
    order = chance.sample(range(len(case.train)), len(case.train))
    shuffled = Case(case.train.iloc[order], case.people, case.immutable, case.kinds)

    answers = explained(fitted(case), case.people), explained(fitted(shuffled), case.people)

    assert bits(answers[0].frame) == bits(answers[1].frame)


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0]])
@pytest.mark.parametrize("immutable", [[], ["debt"]])
def test_people_with_zeros_of_both_signs_do_not_share_scores(zeros, immutable):
    train = pd.DataFrame({"debt": [-0.0, 0.0] * 16, "income": np.arange(32.0) // 4})
    people = pd.DataFrame({"debt": zeros, "income": [0.0, 0.0]})
    explainer = MCCE(
        lambda frame: frame["income"] / 10 + 0.3 * np.signbit(frame["debt"]),
        (0.4, 2),
        immutable=immutable,
        random_state=0,
    ).fit(train)

    together = explainer.explain(people)

    for person in range(2):
        alone = explainer.explain(people.iloc[[person]])
        assert_same_for(person, alone, together)


@dataclass
class Inventor:
    """A generator that draws zeros and missing values in a form that training does not have."""

    zero: float
    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        self.n_mutable_ = rows.schema.mutable.size
        return self

    def sample(self, given, keys, draws):
        table = pd.Series([self.zero, 1.0, 7.0, OTHER_NAN])
        codes = pick(draw_keys(keys, draws), 0, np.full((len(keys), draws.size), 4))
        return Draws(np.stack([codes] * self.n_mutable_), [table] * self.n_mutable_)


@pytest.mark.parametrize("own", [[0.0, -0.0, 5.0], [np.nan, OTHER_NAN, 5.0]])
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("known", [[1.0, 2.0], [0.0, np.nan], [-0.0, OTHER_NAN]])
def test_the_values_of_a_generator_do_not_make_people_share_scores(own, zero, known):
    train = pd.DataFrame({"debt": known * 4, "income": [1.0, 2.0] * 4})
    people = pd.DataFrame({"debt": own, "income": [3.0] * 3})
    explainer = MCCE(score, (0.7, 1), generator=Inventor(zero), n_samples=50, random_state=0)

    together = explained(explainer.fit(train), people)

    for person in range(3):
        assert_same_for(person, explained(explainer, people.iloc[[person]]), together)
