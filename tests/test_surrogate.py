"""The surrogate: its link, its quality, what it does not depend on, and when it is not followed."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from bank import bank, score
from mcce import MCCE, Interval
from mcce import surrogate as module
from mcce.surrogate import LEAST, MAX_ROWS, Surrogate, _logit, _quality
from searches import assert_same, explain

TRAIN, PEOPLE = bank(400, seed=1), bank(40, seed=2)
NUMBERS = TRAIN[["age", "salary", "years"]].fillna(30)


def fitted(predictor, desired=(0.9, 9.0), train=TRAIN, search="sparse", **more):
    return MCCE(predictor, desired, search=search, random_state=0, **more).fit(train)


def asking(explainer):
    """The same explainer without its surrogate."""
    twin = MCCE(**explainer.get_params(deep=False))
    twin.fitted_ = replace(explainer.fitted_, surrogate=None)
    return twin


def labels(n_classes):
    points = NUMBERS["salary"] + 2 * NUMBERS["years"]
    return np.array(["low", "mid", "top"])[np.digitize(points, [60, 110][: n_classes - 1])]


# The logit.


@given(st.floats(LEAST, 1 - LEAST))
def test_the_logit_is_right_to_thirty_bits(share):
    exact = math.log(Fraction(share) / (1 - Fraction(share)))

    assert abs(_logit(np.array([share]))[0] - exact) <= 2.0**-29


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_logit_never_falls(shares):
    ascending = np.sort(np.array(shares))

    assert (np.diff(_logit(ascending)) >= 0).all()


def test_neighbouring_shares_keep_their_order():
    shares = np.concatenate([c + np.arange(-500, 500) * 2.0**-50 for c in (0.01, 0.3, 0.5, 0.9)])

    logits = _logit(np.sort(shares))

    assert (np.diff(logits) >= 0).all()


def test_the_logit_is_finite_odd_and_zero_at_one_half():
    shares = np.array([0.0, 2.0**-20, 0.25, 0.5, 0.75, 1 - 2.0**-20, 1.0])

    logits = _logit(shares)

    assert np.isfinite(logits).all()
    assert logits[3] == 0
    assert np.array_equal(logits, -logits[::-1])
    assert logits[0] == logits[1]


# What is imitated.


def test_probabilities_are_imitated_by_their_logit():
    model = LogisticRegression(max_iter=1000).fit(NUMBERS, labels(2))

    surrogate = fitted(model, (0.6, 1.0), NUMBERS).surrogate_

    assert surrogate.link == "logit"
    assert surrogate.r2 > 0.9
    # Many probabilities are so close to 0 or 1 that they are clipped to one rank.
    assert surrogate.rank_agreement > 0.7


def test_scores_outside_of_zero_and_one_are_imitated_as_they_are():
    surrogate = fitted(lambda frame: 100 * score(frame), (90, 900)).surrogate_

    assert surrogate.link == "identity"
    assert math.isnan(surrogate.threshold)
    assert 1 < surrogate.error < 20


class Labels:
    """A classifier without probabilities."""

    classes_ = np.array([False, True])

    def predict(self, frame):
        return score(frame) > 0.8


def test_labels_without_probabilities_are_imitated_as_zero_and_one():
    explainer = fitted(Labels(), [True])
    surrogate = explainer.surrogate_
    predicted = surrogate.predict(explainer.schema_.encode(TRAIN).descent)

    assert surrogate.link == "label"
    believed = surrogate.margin(explainer.decision_, predicted) >= 0
    assert (believed == Labels().predict(TRAIN)).mean() > 0.95


def test_labels_by_a_threshold_are_imitated_by_probabilities():
    model = LogisticRegression(max_iter=1000).fit(NUMBERS, labels(2))
    surrogate = fitted(model, ["mid"], NUMBERS).surrogate_
    probability = model.predict_proba(NUMBERS)[:, 1]
    accepted = model.predict(NUMBERS) == "mid"

    assert surrogate.link == "logit"
    assert probability[~accepted].max() <= surrogate.threshold <= probability[accepted].min()


@pytest.mark.parametrize("desired", [["mid"], ["mid", "top"], ["top"]], ids=str)
def test_one_of_several_labels_is_imitated(desired):
    model = LogisticRegression(max_iter=5000).fit(NUMBERS, labels(3))
    explainer = fitted(model, desired, NUMBERS)
    surrogate = explainer.surrogate_

    predicted = surrogate.predict(explainer.schema_.encode(NUMBERS).descent)

    believed = surrogate.margin(explainer.decision_, predicted) >= 0
    assert (believed == np.isin(model.predict(NUMBERS), desired)).mean() > 0.9


def test_an_interval_with_two_ends_is_aimed_at_from_both_sides():
    explainer = fitted(score, (0.7, 0.8))
    surrogate, decision = explainer.surrogate_, explainer.decision_

    margin = surrogate.margin(decision, np.array([0.5, 0.7, 0.75, 0.8, 1.0]))

    assert (np.sign(margin.round(9)) == [-1, 0, 1, 0, -1]).all()
    result = explain(explainer, PEOPLE)
    scores = score(result.frame)
    assert ((scores >= 0.7) & (scores <= 0.8)).all()
    before = score(PEOPLE.loc[result.people.index[result.people["status"] == "answered"]])
    assert (before > 0.8).any()
    assert (before < 0.7).any()


def test_ends_that_a_probability_cannot_pass_do_not_count():
    model = LogisticRegression(max_iter=1000).fit(NUMBERS, labels(2))
    explainer = fitted(model, Interval(0.6, 1.0), NUMBERS)

    margin = explainer.surrogate_.margin(explainer.decision_, np.array([-50.0, 50.0]))

    assert margin[0] < 0 < margin[1]


# What it does not depend on.


def test_the_order_of_the_rows_does_not_matter():
    one = fitted(score)
    other = fitted(score, train=TRAIN.sample(frac=1, random_state=3))

    assert repr(one.surrogate_) == repr(other.surrogate_)
    codes = one.schema_.encode(PEOPLE).descent
    assert np.array_equal(one.surrogate_.predict(codes), other.surrogate_.predict(codes))
    assert one.surrogate_.r2 == other.surrogate_.r2
    assert one.surrogate_.error == other.surrogate_.error


def test_large_tables_are_subsampled(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 100)

    few = fitted(score)
    again = fitted(score, train=TRAIN.sample(frac=1, random_state=3))

    assert MAX_ROWS == 20_000
    assert few.surrogate_.n_rows == 100
    assert few.surrogate_.n_held_out == 17
    codes = few.schema_.encode(PEOPLE).descent
    assert np.array_equal(few.surrogate_.predict(codes), again.surrogate_.predict(codes))


# Its quality.


def test_quality_does_not_depend_on_the_unit():
    chance = np.random.default_rng(0)
    response = chance.normal(size=60)
    predicted = response + chance.normal(size=60) / 4

    r2, agreement, error = _quality(predicted, response)

    assert 0.8 < r2 < 1
    assert 0.8 < agreement < 1
    for exponent in (900, -900):
        unit = 2.0**exponent
        assert _quality(predicted * unit, response * unit) == (r2, agreement, error * unit)


def test_quality_of_what_does_not_vary_is_none():
    assert _quality(np.zeros(4), np.zeros(4)) == (0.0, 0.0, 0.0)


def test_very_large_scores_can_be_imitated():
    surrogate = fitted(lambda frame: score(frame) * 1e300, (0.9e300, np.inf)).surrogate_

    assert surrogate.is_good
    assert math.isfinite(surrogate.error)


def test_it_says_whether_it_leads():
    good = fitted(score).surrogate_

    assert "leads searches" in repr(good)
    assert "leads no search: r2 is below 0.25" in repr(replace(good, r2=0.1))
    assert "leads no search: these are too few" in repr(replace(good, n_held_out=20))


# When it is not followed.


def test_a_constant_predictor_has_none():
    explainer = fitted(lambda frame: np.full(len(frame), 0.3), (0.0, 1.0))

    assert explainer.surrogate_ is None


def test_a_table_of_few_rows_has_none():
    assert fitted(score, train=TRAIN.head(11)).surrogate_ is None
    assert fitted(score, train=TRAIN.head(40)).surrogate_ is not None


def test_one_measured_on_few_rows_leads_no_search():
    explainer = fitted(score, train=TRAIN.head(100), immutable=["sex"])

    assert explainer.surrogate_.r2 > 0.25
    assert not explainer.surrogate_.is_good
    assert_same(explain(explainer, PEOPLE), explain(asking(explainer), PEOPLE))


def wild(frame):
    """A share that depends on the whole row, and on nothing that could be learned."""
    texts = ["|".join(map(str, cells)) for cells in frame.to_numpy(dtype=object)]
    digests = [hashlib.blake2b(text.encode(), digest_size=4).digest() for text in texts]
    return np.array([int.from_bytes(digest, "big") / 2**32 for digest in digests])


@pytest.mark.parametrize("search", ["sparse", "balanced", "plausible", "near"])
def test_a_wild_predictor_is_noticed_and_asked_about_every_row(search):
    explainer = fitted(wild, (0.6, 1.0), search=search, immutable=["sex"])

    assert not explainer.surrogate_.is_good
    assert explainer.surrogate_.r2 < 0.1
    led, asked = explain(explainer, PEOPLE), explain(asking(explainer), PEOPLE)
    assert_same(led, asked)
    assert led.n_evaluated == asked.n_evaluated
    assert len(led.frame)


@pytest.mark.parametrize("kind", ["logistic", "tree", "forest"])
@pytest.mark.parametrize("search", ["sparse", "balanced"])
def test_what_a_surrogate_leads_to_is_valid_and_costs_few_rows(kind, search):
    model = {
        "logistic": LogisticRegression(max_iter=1000),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "forest": RandomForestClassifier(20, max_depth=4, random_state=0),
    }[kind].fit(NUMBERS, labels(2))
    explainer = fitted(model, (0.5, 1.0), NUMBERS, search)
    people = PEOPLE[["age", "salary", "years"]].fillna(30)

    led, asked = explain(explainer, people), explain(asking(explainer), people)

    assert explainer.surrogate_.is_good
    assert (model.predict_proba(led.frame)[:, 1] >= 0.5).all()
    pd.testing.assert_series_equal(led.people["status"], asked.people["status"])
    assert led.n_evaluated < asked.n_evaluated / 3
    assert led.measures["sparsity"].mean() <= asked.measures["sparsity"].mean() + 0.15


def test_one_that_knows_nothing_says_so():
    surrogate = Surrogate.unlearned()

    assert not surrogate.is_good
    assert np.array_equal(surrogate.predict(np.zeros((3, 2), dtype=np.int32)), [0.5, 0.5])
