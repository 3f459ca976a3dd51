"""The bank customer of the paper's introduction, as a reader would write it."""

from __future__ import annotations

import pandas as pd

import mcce
from bank import default_risk


def test_the_bank_customer_learns_what_would_have_got_her_the_loan(bank):
    granted = mcce.Interval(0.0, 0.1, closed="left")
    explainer = mcce.MCCE(
        default_risk, granted, immutable=["age", "sex"], n_counterfactuals=3, random_state=0
    ).fit(bank)
    customer = pd.DataFrame(
        {"age": [36], "sex": ["female"], "salary": [68_000], "defaulted_last_year": [True]},
        index=["customer"],
    )

    result = explainer.explain(customer)

    assert not granted.contains(default_risk(customer).to_numpy()).any()
    assert result.people.loc["customer", "status"] == "answered"
    assert granted.contains(default_risk(result.frame).to_numpy()).all()
    assert (result.frame["age"] == 36).all()
    assert (result.frame["sex"] == "female").all()
    best = result.frame.loc["customer", :].iloc[0]
    assert best["salary"] > 68_000
    assert result.frame.index.names == ["factual", "rank"]
    assert result.frame.dtypes.equals(customer.dtypes)
    changes = result.changes()
    assert changes.columns.tolist() == ["factual", "rank", "feature", "before", "after", "kind"]
    assert set(changes["feature"]) <= {"salary", "defaulted_last_year"}
    assert set(changes.loc[changes["feature"] == "salary", "before"]) == {68_000}


def test_she_can_be_shown_one_change_only(bank):
    explainer = mcce.MCCE(
        default_risk,
        mcce.Interval(0.0, 0.1, closed="left"),
        immutable=["age", "sex"],
        search=mcce.Search.preset("paper", max_sparsity=1),
        random_state=0,
    ).fit(bank)
    customer = pd.DataFrame(
        {"age": [36], "sex": ["female"], "salary": [80_000], "defaulted_last_year": [True]}
    )

    result = explainer.explain(customer)

    assert result.measures["sparsity"].tolist() == [1]
    assert result.changes()["feature"].tolist() == ["defaulted_last_year"]


def test_who_has_the_loan_already_is_reported_not_explained(bank):
    explainer = mcce.MCCE(default_risk, (0.0, 0.1), immutable=["age", "sex"], random_state=0).fit(
        bank
    )
    customer = pd.DataFrame(
        {"age": [50], "sex": ["male"], "salary": [95_000], "defaulted_last_year": [False]}
    )

    result = explainer.explain(customer)

    assert result.people["status"].tolist() == ["already desired"]
    assert result.frame.empty
    assert result.summary()["n_already_desired"].tolist() == [1]
    assert "1 already desired" in repr(result)
