"""The surrogate: what it imitates, its quality, what it depends on, and that it decides nothing."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from bank import bank, score
from mcce import MCCE, Interval
from searches import explain

NUMBERS = ["age", "salary", "years"]


@pytest.fixture(scope="module")
def train():
    return bank(400, seed=1)


@pytest.fixture(scope="module")
def people():
    return bank(40, seed=2)


def numbers_of(frame):
    return frame[NUMBERS].fillna(30)


def fitted(predictor, train, desired=(0.9, 9.0), search="sparse", **more):
    return MCCE(predictor, desired, search=search, random_state=0, **more).fit(train)


def believed(explainer, frame):
    """Whether the surrogate takes rows for accepted."""
    surrogate = explainer.surrogate_
    predicted = surrogate.predict(explainer.schema_.encode(frame).tree_codes)
    return surrogate.desired(explainer.decision_).margin(predicted) >= 0


def classifier(train, n_classes=2, model=None):
    """A model of two or three classes of the numbers of a bank, fitted; and its inputs."""
    numbers = numbers_of(train)
    points = numbers["salary"] + 2 * numbers["years"]
    labels = np.array(["low", "mid", "top"])[np.digitize(points, [60, 110][: n_classes - 1])]
    model = LogisticRegression(max_iter=1000) if model is None else model
    return model.fit(numbers, labels), numbers


# ---------------------------------------------------------------------------------------------
# What is imitated.


def test_probabilities_are_imitated_by_their_logit(train):
    model, numbers = classifier(train)

    explainer = fitted(model, numbers, Interval(0.6, 1.0))

    surrogate, edge = explainer.surrogate_, math.log(0.6 / 0.4)
    assert surrogate.link == "logit"
    assert surrogate.r2 > 0.9
    # Many probabilities are so close to 0 or 1 that they are clipped to one rank.
    assert surrogate.rank_agreement > 0.7
    # An end that a probability cannot pass does not count.
    asked = np.array([-50.0, edge - 1e-6, edge + 1e-6, 50.0])
    assert (surrogate.desired(explainer.decision_).margin(asked) > 0).tolist() == [
        False,
        False,
        True,
        True,
    ]


def test_scores_outside_of_zero_and_one_are_imitated_as_they_are(train):
    surrogate = fitted(lambda frame: 100 * score(frame), train, (90, 900)).surrogate_

    assert surrogate.link == "identity"
    assert math.isnan(surrogate.threshold)
    assert surrogate.error < 20


def test_a_linear_predictor_is_imitated_exactly_and_trees_by_trees(train):
    linear = fitted(lambda frame: numbers_of(frame)["salary"] / 50, train).surrogate_
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model, numbers = classifier(train, model=tree)
    stepped = fitted(model, numbers, Interval(0.6, 1.0)).surrogate_

    assert linear.effects
    assert linear.r2 > 0.9999
    assert not stepped.effects


class Labels:
    """A classifier without probabilities."""

    classes_ = np.array([False, True])

    def predict(self, frame):
        return score(frame) > 0.8


def test_labels_are_imitated_with_and_without_probabilities(train):
    model, numbers = classifier(train)
    probability, accepted = model.predict_proba(numbers)[:, 1], model.predict(numbers) == "mid"

    plain, by_threshold = fitted(Labels(), train, [True]), fitted(model, numbers, ["mid"])

    assert plain.surrogate_.link == "label"
    assert (believed(plain, train) == Labels().predict(train)).mean() > 0.95
    surrogate = by_threshold.surrogate_
    assert surrogate.link == "logit"
    assert probability[~accepted].max() <= surrogate.threshold <= probability[accepted].min()
    three, _ = classifier(train, n_classes=3)
    for desired in (["mid"], ["mid", "top"], ["top"]):
        found = believed(fitted(three, numbers, desired), numbers)
        assert (found == np.isin(three.predict(numbers), desired)).mean() > 0.9


def test_an_interval_with_two_ends_is_aimed_at_from_both_sides(train, people):
    explainer = fitted(score, train, (0.7, 0.8))

    margin = explainer.surrogate_.desired(explainer.decision_).margin(
        np.array([0.5, 0.7, 0.75, 0.8, 1.0])
    )

    assert (np.sign(margin.round(9)) == [-1, 0, 1, 0, -1]).all()
    result = explain(explainer, people)
    scores = score(result.frame)
    assert ((scores >= 0.7) & (scores <= 0.8)).all()
    before = score(people.loc[result.people.index[result.people["status"] == "answered"]])
    assert (before > 0.8).any()
    assert (before < 0.7).any()


# ---------------------------------------------------------------------------------------------
# What it depends on, and its quality.


@pytest.mark.parametrize(
    ("n_rows", "used"), [(400, (400, 67)), (20_500, (10_250, 1708))], ids=["few", "many"]
)
def test_the_order_of_the_rows_does_not_matter_and_of_very_many_some_are_enough(n_rows, used):
    train = numbers_of(bank(n_rows, seed=1))
    predictor = lambda frame: (frame["salary"] + frame["years"]).to_numpy() / 100

    one = fitted(predictor, train)
    other = fitted(predictor, train.sample(frac=1, random_state=3))

    codes = one.schema_.encode(train.head(50)).tree_codes
    assert np.array_equal(one.surrogate_.predict(codes), other.surrogate_.predict(codes))
    assert repr(one.surrogate_) == repr(other.surrogate_)
    assert (one.surrogate_.r2, one.surrogate_.error) == (
        other.surrogate_.r2,
        other.surrogate_.error,
    )
    assert (one.surrogate_.n_rows, one.surrogate_.n_held_out) == used


def test_quality_does_not_depend_on_the_unit(train):
    def quality(unit):
        predictor = lambda frame: score(frame) * unit
        surrogate = fitted(predictor, train, (0.9 * unit, np.inf)).surrogate_
        return surrogate.r2, surrogate.rank_agreement, surrogate.error / unit

    r2, agreement, error = quality(2.0**9)

    assert 0.8 < r2 < 1
    assert 0.8 < agreement < 1
    assert 0 < error < 0.2
    assert quality(2.0**900) == (r2, agreement, error)


# ---------------------------------------------------------------------------------------------
# Where it leads.


def test_constant_predictors_and_few_rows_have_none_and_people_get_answers_all_the_same(
    train, people
):
    constant = fitted(lambda frame: np.full(len(frame), 0.3), train, (0.0, 1.0))
    few = fitted(score, train.head(11), immutable=["sex"])

    result = explain(few, people)

    assert constant.surrogate_ is None
    assert few.surrogate_ is None
    assert len(result.frame)
    assert (score(result.frame) >= 0.9).all()


def wild(frame):
    """A share that depends on the whole row, and on nothing that could be learned."""
    texts = ["|".join(map(str, cells)) for cells in frame.to_numpy(dtype=object)]
    digests = [hashlib.blake2b(text.encode(), digest_size=4).digest() for text in texts]
    return np.array([int.from_bytes(digest, "big") / 2**32 for digest in digests])


@pytest.mark.parametrize("search", ["sparse", "near"])
def test_where_it_knows_nothing_more_rows_are_scored_and_people_get_answers(train, people, search):
    explainer = fitted(wild, train, (0.6, 1.0), search, immutable=["sex"])

    result = explain(explainer, people)

    assert explainer.surrogate_.r2 < 0.1
    assert (wild(result.frame) >= 0.6).all()
    assert (result.people["status"] != "no answer").all()


@pytest.mark.parametrize(
    ("model", "search"),
    [
        (LogisticRegression(max_iter=1000), "sparse"),
        (DecisionTreeClassifier(max_depth=4, random_state=0), "balanced"),
        (RandomForestClassifier(20, max_depth=4, random_state=0), "sparse"),
    ],
    ids=["logistic", "tree", "forest"],
)
def test_what_a_surrogate_leads_to_is_valid_and_costs_few_rows(train, people, model, search):
    model, numbers = classifier(train, model=model)
    explainer = fitted(model, numbers, (0.5, 1.0), search)

    result = explain(explainer, numbers_of(people))

    assert (model.predict_proba(result.frame)[:, 1] >= 0.5).all()
    assert (result.people["status"] != "no answer").all()
    assert result.n_evaluated < 15 * len(result.frame)
