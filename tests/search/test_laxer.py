"""A search that becomes laxer: rows tried in vain before do not count against the next ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE
from mcce.search import plan
from searches import bounded, explain


def table():
    rng = np.random.default_rng(0)
    group, income = rng.integers(0, 2, 1200), rng.integers(0, 100, 1200)
    income = np.where(group == 0, income // 2, income)
    others = {name: rng.integers(0, 40, 1200) for name in ("age", "months")}
    debt = income + rng.integers(-2, 3, 1200)
    return pd.DataFrame({"group": group, "income": income, "debt": debt} | others)


def score(frame):
    """By income; in one group never enough where debt is about as large, as it always is."""
    usual = (frame["income"] - frame["debt"]).abs() <= 20
    below = frame["income"].clip(upper=59) + (frame["age"] + frame["months"]) / 100
    return below.where((frame["group"] == 0) & usual, frame["income"].astype(np.float64))


@pytest.mark.parametrize("name", ["sparse", "plausible"])
def test_implausible_rows_are_believed_after_plausible_ones_failed(name, monkeypatch):
    monkeypatch.setattr(plan, "MAX_LAST_TRIES", plan.MAX_TRIES)
    train = table()
    search = bounded(name, min_plausibility=0.2, allow_implausible=True, max_samples=1000)
    settings = {"immutable": ["group"], "ignore_relations": True, "random_state": 0}
    model = MCCE(score, (60, 1000), search=search, **settings).fit(train)
    usual = model.plausibility(train).to_numpy().ravel() > 0.5
    people = train[(train["group"] == 0) & usual].head(6)

    result = explain(model, people)

    assert model.surrogate_.is_good
    assert len(result.frame) == 6
    assert not result.measures["plausible"].any()
