"""Judges of realism: strange rows score higher than usual ones, always the same way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import ParameterError, SchemaError
from mcce.metrics import Evaluator
from mcce_lab.baselines import NearestUnlike
from mcce_lab.metrics import judges
from mcce_lab.metrics.judges import JUDGES, Judges, detectability


def rows(n_rows, seed=0, gaps=True):
    """Two numbers that go together, one of them with gaps, a level that follows, and another."""
    chance = np.random.default_rng(seed)
    age = chance.normal(45, 10, n_rows).round()
    pay = 100 * age + chance.normal(0, 100, n_rows)
    if gaps:
        pay = np.where(chance.random(n_rows) < 0.1, np.nan, pay)
    return pd.DataFrame(
        {
            "age": age,
            "pay": pay,
            "old": np.where(age > 45, "yes", "no"),
            "sex": chance.choice(["f", "m"], n_rows),
        }
    )


@pytest.fixture(scope="module")
def evaluator():
    return Evaluator.fit(rows(400), immutable=["sex"])


@pytest.fixture(scope="module")
def judged(evaluator):
    return Judges.fit(rows(300, 1), evaluator)


# Numbers and levels, each usual alone, that do not go together.
STRANGE = pd.DataFrame({"age": [30.0], "pay": [6000.0], "old": ["yes"], "sex": ["f"]})


@pytest.fixture(autouse=True)
def small_forests(monkeypatch):
    """Enough trees to tell planted rows."""
    monkeypatch.setattr(judges, "N_DETECTING", 20)


def test_every_judge_ranks_a_planted_strange_row_above_usual_ones(judged):
    usual, strange = judged(rows(200, 2, gaps=False)), judged(STRANGE)

    assert tuple(usual.columns) == JUDGES
    above = (usual < strange.to_numpy()).mean()
    # A forest of random cuts hardly sees that usual values do not go together.
    assert above.drop("isolation").min() > 0.98
    assert above["isolation"] > 0.85


def test_a_row_is_the_stranger_the_farther_it_is_from_what_is_usual(judged):
    far = pd.concat([STRANGE.assign(pay=pay, old="no") for pay in (3000.0, 4000.0, 6000.0)])

    scores = judged(far)

    assert (scores.diff().iloc[1:] >= 0).all(axis=None)
    assert (scores.iloc[-1] > scores.iloc[0]).all()


def test_rows_keep_their_labels_and_order(judged):
    people = rows(5, 3).set_axis(list("vwxyz"))

    scores = judged(people)

    assert scores.index.tolist() == list("vwxyz")
    np.testing.assert_allclose(judged(people.iloc[::-1]).iloc[::-1], scores)


def test_the_answers_of_a_method_can_be_judged(judged):
    method = NearestUnlike(lambda frame: frame["age"], (50.0, 99.0)).fit(rows(400))
    result = method.explain(rows(400)[rows(400)["age"] < 50].head(7))

    scores = judged(result)

    assert len(scores) == 7
    np.testing.assert_allclose(scores, judged(result.frame.reset_index(drop=True)))


@pytest.mark.slow
def test_a_seed_decides_about_everything(evaluator):
    real, people = rows(80, 1), rows(20, 2)

    one, again, other = (
        Judges.fit(real, evaluator, random_state=seed)(people) for seed in (0, 0, 1)
    )

    pd.testing.assert_frame_equal(one, again)
    assert not again["isolation"].equals(other["isolation"])


def test_fewer_than_fifty_rows_are_an_error(evaluator):
    with pytest.raises(ParameterError, match="at least 50 real rows, got 49"):
        Judges.fit(rows(49), evaluator)
    assert np.isfinite(Judges.fit(rows(50), evaluator)(rows(400))).all(axis=None)


def test_other_columns_are_an_error(evaluator, judged):
    with pytest.raises(SchemaError, match="'pay'"):
        judged(rows(400).drop(columns="pay"))
    with pytest.raises(SchemaError, match="'pay'"):
        Judges.fit(rows(400).drop(columns="pay"), evaluator)


def test_missing_cells_and_unseen_levels_have_finite_scores(judged):
    odd = pd.DataFrame(
        {
            "age": [40.0, np.nan, 45.0],
            "pay": [np.nan, np.nan, 4500.0],
            "old": ["no", None, "maybe"],
            "sex": ["f", "m", "m"],
        }
    )

    scores = judged(odd)

    assert np.isfinite(scores).all(axis=None)
    # A missing pay is usual; a missing age never happened.
    assert (scores.iloc[1] > scores.iloc[0]).all()


def test_a_constant_column_and_equal_rows_are_no_error():
    train = rows(120, gaps=False).assign(fee=3.0)
    train = pd.concat([train.iloc[:60]] * 2, ignore_index=True)

    scores = Judges.fit(train, Evaluator.fit(train))(train.assign(fee=[3.0] * 119 + [4.0]))

    assert np.isfinite(scores).all(axis=None)


def test_a_level_that_no_real_row_has_is_strange_but_not_beyond_all_measure():
    train = rows(400, gaps=False).assign(job=["clerk", "judge"] * 200)
    real = rows(333, 1, gaps=False).assign(job="clerk")

    judged = Judges.fit(real, Evaluator.fit(train))
    usual, strange = (judged(real.assign(job=job))["pca_residual"] for job in ("clerk", "judge"))

    assert (usual < strange).all()
    assert strange.max() < 20


def test_real_rows_cannot_be_detected_among_real_rows(evaluator):
    assert 0.4 < detectability(rows(200, 5), rows(400, 6), evaluator) < 0.6


def test_torn_rows_are_detected(evaluator):
    torn = rows(200, 5)
    torn["old"] = np.where(torn["old"] == "yes", "no", "yes")

    assert detectability(torn, rows(400, 6), evaluator) > 0.98


def test_immutable_features_alone_are_not_detected(evaluator):
    women = rows(200, 5).assign(sex="f")

    assert 0.4 < detectability(women, rows(400, 6), evaluator) < 0.6


def test_detectability_is_deterministic_and_undefined_for_few_rows(evaluator):
    made, real = rows(60, 5), rows(100, 6)

    assert detectability(made, real, evaluator) == detectability(made, real, evaluator)
    assert np.isnan(detectability(made.head(19), real, evaluator))
    assert np.isnan(detectability(made, real.head(19), evaluator))
