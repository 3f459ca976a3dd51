"""Guided draws: own values are kept where the model could have drawn them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bank import bank, score
from forests import Halves, forest_of, limits_of, stays_of
from mcce import MCCE, Interval, McceWarning, ParameterError, TreeChain
from mcce import constraints as c
from mcce.candidates import Draws
from mcce.constraints.collection import Constraints
from mcce.constraints.limits import FactualLimits
from mcce.generate import Block, generate
from mcce.kernels import native, reference
from mcce.kernels.reference import Guide
from mcce.protocols import Capabilities
from searches import bounded
from tables import cases

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

DESIRED = Interval(0.55, np.inf)
TRAIN, PEOPLE = bank(400), bank(40, seed=1)


def draws_of(explainer, people, keep, n_draws, constraints=()):
    """Candidates of everybody, each a group of their own."""
    rows = explainer.schema_.encode(people)
    personal = FactualLimits(
        Constraints.bind(list(constraints), explainer.schema_), rows, whole=True
    )
    block = Block(np.arange(len(rows)), np.arange(len(rows)))
    return generate(explainer.generator_, personal, block, np.arange(n_draws), 5, keep)


def rows_drawn(candidates):
    """All draws as one frame."""
    people, draws = candidates.shape
    person, draw = np.repeat(np.arange(people), draws), np.tile(np.arange(draws), people)
    return candidates.select(person, draw).frame


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 0.8, 0.999]),
)
def test_guided_draws_are_equal_in_both_kernels(seed, n_draws, n_groups, by_set, limited, keep):
    chance = np.random.default_rng(seed)
    sizes, chain, given_codes, own = forest_of(chance, by_set, n_groups)
    keys = reference.person_keys(seed, given_codes[:1].T)
    limits = limits_of((4, n_groups), sizes, chain.responses, chance) if limited else None
    limits = limits and replace(limits, own=own)
    arguments = chain, given_codes, keys, chance.integers(0, 10**6, n_draws), limits

    guide = Guide(own, stays_of(own, chance), int(keep * 2**32))

    drawn = native.sample(*arguments, guide)

    assert np.array_equal(drawn, reference.sample(*arguments, guide))
    if not keep:
        assert np.array_equal(drawn, native.sample(*arguments))


@pytest.mark.parametrize("limited", [False, True])
def test_thousands_of_guided_draws_are_equal_too(limited):
    chance = np.random.default_rng(4)
    sizes, chain, given_codes, own = forest_of(chance, True, 3)
    keys = reference.person_keys(4, given_codes[:1].T)
    limits = limits_of((4, 3), sizes, chain.responses, chance) if limited else None
    limits = limits and replace(limits, own=own)
    arguments = chain, given_codes, keys, np.arange(5000), limits
    arguments += (Guide(own, stays_of(own, chance), 2**31),)

    assert np.array_equal(native.sample(*arguments), reference.sample(*arguments))


def test_an_own_value_that_the_leaf_holds_is_kept_as_often_as_requested():
    """One leaf of ten values: kept by decision in 70 %, and drawn in a tenth of the rest."""
    train = pd.DataFrame({"salary": np.arange(10)})
    generator = TreeChain(min_samples_leaf=10)
    explainer = MCCE(lambda f: f["salary"], (0, 99), generator=generator, random_state=0)
    explainer.fit(train)

    drawn = draws_of(explainer, train.iloc[[3]], 0.7, 20_000).comparison.codes[0, 0]

    assert abs((drawn == 3).mean() - (0.7 + 0.3 / 10)) < 0.01
    others = np.bincount(drawn[drawn != 3], minlength=10) / 20_000
    assert np.abs(np.delete(others, 3) - 0.03).max() < 0.006


def test_an_own_value_that_training_never_held_is_not_kept_by_the_leaf():
    train = pd.DataFrame({"salary": np.arange(0, 20, 2)})
    explainer = MCCE(lambda f: f["salary"], (0, 99), random_state=0).fit(train)

    candidates = draws_of(explainer, pd.DataFrame({"salary": [7]}), 0.9, 500)

    assert set(rows_drawn(candidates)["salary"]) <= set(train["salary"])


@given(cases(), st.sampled_from([0.5, 0.95]))
def test_the_model_could_have_drawn_every_guided_draw(case, keep):
    explainer = MCCE(case.score, DESIRED, immutable=case.immutable, random_state=1).fit(case.train)
    if not explainer.n_desired_:
        return
    candidates = draws_of(explainer, case.people, keep, 30)

    assert np.isfinite(explainer.log_likelihood(rows_drawn(candidates))).all()


def fitted(case, **settings):
    settings = {
        "search": bounded("fast", n_samples=25, max_samples=10_000),
        "n_counterfactuals": 2,
    } | settings
    explainer = MCCE(case.score, DESIRED, immutable=case.immutable, random_state=1, **settings)
    return explainer.fit(case.train)


def answers(explainer, people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people)


@pytest.mark.slow
@given(cases(), st.sampled_from([{"memory": 1e-6}, {"n_jobs": 3}]), st.integers(0, 2**32 - 1))
def test_blocks_threads_order_and_company_change_nothing(case, settings, seed):
    everybody = answers(fitted(case), case.people)
    some = np.random.default_rng(seed).permutation(len(case.people))[: 1 + seed % 6]

    other = answers(fitted(case, **settings), case.people)
    alone = answers(fitted(case), case.people.iloc[some])

    pd.testing.assert_frame_equal(everybody.frame, other.frame, check_exact=True)
    assert everybody.n_evaluated == other.n_evaluated
    for place, person in enumerate(some):
        mine, theirs = alone.owner == place, everybody.owner == person
        pd.testing.assert_frame_equal(
            alone.measures[mine].reset_index(drop=True),
            everybody.measures[theirs].reset_index(drop=True),
            check_exact=True,
        )


def test_only_people_who_are_equal_in_everything_share_guided_draws():
    people = PEOPLE.iloc[[0, 1, 0, 2]].reset_index(drop=True)
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], random_state=3).fit(TRAIN)
    rows = explainer.schema_.encode(people)
    none = Constraints(explainer.schema_)

    whole, shared = FactualLimits(none, rows, whole=True).group, FactualLimits(none, rows).group

    assert whole[0] == whole[2]
    assert len(set(whole.tolist())) == 3
    assert len(set(shared.tolist())) == people["sex"].nunique()


def test_guided_draws_keep_to_the_constraints():
    written = [c.only_up("salary"), c.frozen("education"), c.max_changes(3)]
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search="fast", constraints=written)
    result = explainer.set_params(random_state=3).fit(TRAIN).explain(PEOPLE)

    before = result.factuals.iloc[result.owner].reset_index(drop=True)
    after = result.frame.reset_index(drop=True)
    assert len(after)
    same = before["salary"].isna() & after["salary"].isna()
    assert ((after["salary"] >= before["salary"]) | same).all()
    assert (after["education"].astype(str) == before["education"].astype(str)).all()
    assert (result.measures["sparsity"] <= 3).all()


def test_guided_draws_need_fewer_changes_than_as_many_of_the_paper():
    settings = {"immutable": ["sex"], "random_state": 3, "n_samples": 100}
    plain = MCCE(score, (0.8, 10), **settings).fit(TRAIN).explain(PEOPLE)
    fast = MCCE(score, (0.8, 10), search="fast", **settings).fit(TRAIN).explain(PEOPLE)

    assert fast.measures["sparsity"].mean() < plain.measures["sparsity"].mean()


class Staying(Halves):
    """One that keeps everything it can, whatever the requested probability."""

    capabilities = Capabilities(guidance=True)

    def sample_guided(self, given, keys, draws, limits, guide):
        codes = self.sample(given, keys, draws).codes.copy()
        codes[0] = guide.own[0][:, None]
        return Draws(codes)


def test_a_generator_that_cannot_keep_own_values_is_named():
    train = pd.DataFrame({"a": [0, 1, 2, 3] * 5, "b": [0, 1] * 10})
    explainer = MCCE(lambda f: f["b"], (1, 1), generator=Halves(), search="fast").fit(train)

    with pytest.raises(
        ParameterError, match=r"generator Halves does not declare the capability 'guidance'"
    ):
        explainer.explain(train.iloc[[0]])


def test_a_generator_that_can_keep_own_values_is_called_to_keep_them():
    train = pd.DataFrame({"a": [0, 1, 2, 3] * 5, "b": [0, 1] * 10})
    explainer = MCCE(lambda f: f["b"], (1, 1), generator=Staying(), search="fast").fit(train)

    result = explainer.explain(train.iloc[[2]])

    assert result.frame.to_numpy().tolist() == [[2, 1]]
