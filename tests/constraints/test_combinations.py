"""Constraints combined: none is ever broken, and no admissible candidate is overlooked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bank import HOUSING, score
from constrained import PEOPLE, TRAIN
from mcce import MCCE
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.constraints.limits import FactualLimits
from mcce.generate import blocks, generate

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


@st.composite
def listed(draw):
    kinds = [
        st.sampled_from(["only_up", "only_down", "not_up", "not_down"]).flatmap(
            lambda way: st.sampled_from(["salary", "years", "age"]).map(getattr(c, way))
        ),
        st.tuples(st.integers(10, 50), st.integers(0, 40)).map(
            lambda ends: c.between("salary", ends[0], ends[0] + ends[1])
        ),
        st.tuples(st.integers(0, 30), st.integers(0, 30)).map(
            lambda ends: c.change("years", at_least=-ends[0], at_most=ends[1])
        ),
        st.integers(0, 80).map(lambda share: c.change("salary", at_most=f"{share} %")),
        st.lists(st.sampled_from([*HOUSING, None]), max_size=3).map(
            lambda levels: c.levels("housing", levels)
        ),
        st.dictionaries(
            st.sampled_from([*HOUSING, None]), st.lists(st.sampled_from([*HOUSING, None]))
        ).map(lambda allowed: c.transitions("housing", allowed)),
        st.sampled_from(["only_up", "not_up"]).map(lambda way: getattr(c, way)("education")),
        st.sampled_from(["salary", "age", "housing"]).map(
            lambda name: c.frozen(name, where="years > 15")
        ),
        st.integers(1, 3).map(c.max_changes),
        st.just(c.together("salary", "years")),
        st.just(c.relation("works from 16 on", "years <= age - 16")),
        st.just(c.step("salary", 7)),
    ]
    chosen = draw(st.lists(st.sampled_from(range(len(kinds))), unique=True, max_size=5))
    return [draw(kinds[kind]) for kind in chosen]


@settings(deadline=None)
@given(listed(), st.integers(1, 3))
def test_no_answer_breaks_a_constraint_whatever_their_combination(constraints, n_counterfactuals):
    explainer = MCCE(
        score,
        (0.8, 10),
        immutable=["sex"],
        constraints=constraints,
        n_samples=40,
        n_counterfactuals=n_counterfactuals,
        random_state=1,
    ).fit(TRAIN)
    people = PEOPLE.iloc[:25]

    result = explainer.explain(people)

    rows = explainer.schema_.encode(people)
    bound = Constraints.bind(constraints, explainer.schema_)
    fresh = result.frame.reset_index(drop=True)
    assert not any(broken.any() for broken in bound.broken(rows, result.owner, fresh).values())
    assert (score(result.frame) >= 0.8).all()
    assert (result.frame["sex"].to_numpy() == people["sex"].to_numpy()[result.owner]).all()


@pytest.mark.slow
@settings(deadline=None)
@given(listed())
def test_whoever_has_an_admissible_candidate_has_an_answer(constraints):
    explainer = MCCE(
        score, (0.8, 10), immutable=["sex"], constraints=constraints, n_samples=30, random_state=2
    ).fit(TRAIN)
    people = PEOPLE.iloc[:15]
    result = explainer.explain(people)

    bound = Constraints.bind(constraints, explainer.schema_)
    rows = explainer.schema_.encode(people)
    personal = FactualLimits(bound, rows)
    declined = np.flatnonzero(score(people) < 0.8)
    admissible = set()
    for block in blocks(personal, declined, 30, 1.0):
        candidates = generate(explainer.generator_, personal, block, np.arange(30), explainer.seed_)
        person, draw = np.nonzero(np.ones(candidates.shape))
        chosen = candidates.select(person, draw)
        broken = bound.broken(rows, chosen.owner, chosen.frame)
        good = score(chosen.frame) >= 0.8
        for rows_broken in broken.values():
            good &= ~rows_broken
        admissible |= set(chosen.owner[good].tolist())

    assert set(result.owner.tolist()) == admissible


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_an_answer_under_constraints_does_not_depend_on_the_batch(seed):
    constraints = [c.only_up("salary"), c.frozen("age", where="years > 15"), c.step("years", 3)]
    explainer = MCCE(score, (0.8, 10), constraints=constraints, n_samples=40, random_state=1)
    explainer.fit(TRAIN)
    together = explainer.explain(PEOPLE)
    chosen = np.random.default_rng(seed).permutation(len(PEOPLE))[:7]

    alone = explainer.set_params(memory=1e-3, n_jobs=2).explain(PEOPLE.iloc[chosen])

    pd.testing.assert_frame_equal(
        alone.frame.sort_index(),
        together.frame.loc[
            np.sort(chosen)[np.isin(np.sort(chosen), together.frame.index.get_level_values(0))]
        ].sort_index(),
    )


@pytest.mark.parametrize("name", ["only_up", "only_down", "not_up", "not_down"])
def test_nobody_has_limits(name):
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], random_state=3).fit(TRAIN)
    bound = Constraints.bind([getattr(c, name)("education")], explainer.schema_)
    nobody = np.empty(0, dtype=np.int64)

    personal = FactualLimits(bound, explainer.schema_.encode(TRAIN.head(3)))
    limits = personal.limits(nobody, explainer.schema_.features)

    assert limits.first.size == 0
