"""The paper's four criteria, over random schemas, data, predictors and rules."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from mcce import MCCE, Interval, McceWarning, Schema, TreeChain
from searches import bounded
from tables import cases

DESIRED = Interval(0.55, np.inf, closed="left")


@st.composite
def explained(draw):
    case = draw(cases())
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
        n_samples=draw(st.integers(1, 40)),
        n_counterfactuals=draw(st.integers(1, 3)),
        search=bounded(
            max_sparsity=draw(st.none() | st.integers(0, 3)),
            copies=draw(st.sampled_from(["allow", "never"])),
            max_distance=draw(st.none() | st.sampled_from([0.1, 0.4])),
            rank_by=draw(
                st.sampled_from([("sparsity", "distance"), ("distance",), ("distance", "sparsity")])
            ),
        ),
        random_state=draw(st.integers(0, 5)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.fit(case.train).explain(case.people)
    return case, explainer, result


@given(explained())
def test_every_row_is_valid_by_a_fresh_call_on_the_returned_frame(work):
    case, _, result = work

    assert DESIRED.contains(case.score(result.frame)).all()
    assert np.array_equal(case.score(result.frame), result.measures["score"].to_numpy())


@given(explained())
def test_immutable_features_are_bit_equal_and_dtypes_kept(work):
    case, _, result = work

    own = case.people.iloc[result.owner][case.immutable].set_axis(result.frame.index)
    pd.testing.assert_frame_equal(result.frame[case.immutable], own, check_exact=True)
    assert result.frame.dtypes.equals(case.people.dtypes)


@given(explained())
def test_every_row_is_on_the_manifold(work):
    case, explainer, result = work

    for name in set(case.train.columns) - set(case.immutable):
        seen = case.train[name].astype(object)
        returned = result.frame[name].astype(object)
        assert returned[returned.notna()].isin(seen[seen.notna()]).all()
        assert seen.isna().any() or not returned.isna().any()
    assert np.isfinite(explainer.log_likelihood(result.frame)).all()


@given(explained())
def test_what_is_returned_is_the_best_of_all_candidates(work):
    case, explainer, result = work

    for person in range(len(case.people)):
        status = result.people["status"].iloc[person]
        row = case.people.iloc[[person]]
        if status == "already desired":
            assert DESIRED.contains(case.score(row)).all()
            expected = []
        elif explainer.n_desired_ == 0:
            expected = []
        else:
            expected = brute_force.best(explainer, row, case.train)
        assert brute_force.returned(result, person) == expected
        assert (status == "answered") == bool(expected)


@given(explained())
def test_everybody_is_accounted_for(work):
    case, explainer, result = work

    people = result.people
    assert len(people) == len(case.people)
    assert people.index.equals(case.people.index.rename("factual"))
    assert set(people["status"]) <= {"answered", "already desired", "no answer"}
    assert ((people["reason"] != "") == (people["status"] == "no answer")).all()
    assert people["n_counterfactuals"].sum() == len(result.frame) == len(result.measures)
    assert len(result.missing) == (people["status"] == "no answer").sum()
    if explainer.n_desired_:
        assert len(result.nearest_misses) == len(result.missing)
    changes = result.changes()
    assert explainer.search.tolerance == 0
    assert len(changes) == result.measures["sparsity"].sum()


@given(cases())
def test_training_rows_have_the_same_codes_when_they_come_again(case):
    rows = Schema.learn_rows(case.train, immutable=case.immutable)

    again = rows.schema.encode(case.train)

    assert np.array_equal(rows.exact, again.exact)
    assert np.array_equal(rows.descent, again.descent)
    pd.testing.assert_frame_equal(rows.frame, again.frame)
