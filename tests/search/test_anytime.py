"""An exact search whose time is up answers whoever the fast search would answer."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from bank import bank, score
from mcce import MCCE
from mcce.search.exact import ExactStage
from searches import explain


@pytest.fixture(scope="module")
def work():
    """A boosted predictor on twenty numbers, and new people whom it declines."""
    chance = np.random.default_rng(0)
    columns = [f"x{at}" for at in range(20)]
    train = pd.DataFrame(chance.normal(size=(800, 20)).round(2), columns=columns)
    accepted = train.iloc[:, :5].sum(axis=1) + chance.normal(size=800) > 1.5
    model = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(train, accepted)
    new = pd.DataFrame(chance.normal(size=(200, 20)).round(3), columns=columns)
    return model, train, new[model.predict_proba(new)[:, 1] < 0.3].head(30)


def stop_after(n_blocks):
    """A proof for which there is time for so many blocks of people only."""
    left, prove = [n_blocks], ExactStage._prove

    def short(stage, proofs, monitor):
        left[0] -= 1
        if left[0] < 0:
            monitor.stop()
        else:
            prove(stage, proofs, monitor)

    return patch.object(ExactStage, "_prove", short)


def assert_answered(predictor, desired, train, people, n_blocks):
    """Whoever the fast search answers has an answer, and so many of them are proven."""
    settings = {"random_state": 0, "memory": 1e-6}  # everybody in a block of their own
    fast = explain(MCCE(predictor, desired, search="fast", **settings).fit(train), people)
    exact = MCCE(predictor, desired, search="exact", max_seconds=600, **settings).fit(train)

    with stop_after(n_blocks):
        result = explain(exact, people)

    assert result.stopped
    assert set(fast.owner) <= set(result.owner)
    assert result.measures["proven"].sum() == n_blocks


def test_whoever_the_proof_does_not_reach_has_an_answer_from_draws(work):
    model, train, people = work

    assert_answered(model, (0.5, 1.0), train, people, 0)


def test_what_was_proven_before_the_time_was_up_is_marked():
    assert_answered(score, (0.8, 10), bank(400), bank(40, seed=1), 3)
