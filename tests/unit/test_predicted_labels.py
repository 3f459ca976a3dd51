"""Searches for labels: ``predict`` decides, and is called where probabilities do not tell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

import mcce
from bank import bank, score
from mcce import MCCE, McceWarning
from searches import altered, bounded, explain


class Counted:
    """A classifier by the score of the bank, which counts the rows of each method."""

    _estimator_type = "classifier"
    classes_ = np.array(["no", "yes"])

    def __init__(self, threshold=0.8):
        self.threshold = threshold
        self.forget()

    def forget(self):
        self.n_rows = {"predict": 0, "predict_proba": 0}

    def probabilities(self, frame):
        # Scores of this bank end at about two.
        yes = np.clip(score(frame) / 2, 0, 1)
        return np.column_stack([1 - yes, yes])

    def predict_proba(self, frame):
        self.n_rows["predict_proba"] += len(frame)
        return self.probabilities(frame)

    def accepts(self, frame):
        return self.probabilities(frame)[:, 1] >= self.threshold / 2

    def predict(self, frame):
        self.n_rows["predict"] += len(frame)
        return self.classes_[self.accepts(frame).astype(int)]


def fitted(predictor, search="balanced", desired=("yes",), train=None):
    settings = {"immutable": ["sex"], "random_state": 0, "search": search}
    explainer = MCCE(predictor, list(desired), **settings)
    explainer.fit(bank(300, seed=1) if train is None else train)
    predictor.forget()
    return explainer


# Answers of "near" lie where the labels change, so that more scores leave them open.
@pytest.mark.parametrize(
    ("name", "most"), [("paper", 0.1), ("sparse", 0.1), ("balanced", 0.1), ("near", 0.3)]
)
def test_labels_are_asked_for_people_and_answers_and_hardly_in_between(name, most):
    predictor, people = Counted(), bank(200, seed=2)

    result = explain(fitted(predictor, name), people)

    assert len(result.frame)
    assert predictor.accepts(result.frame).all()
    assert result.n_unstable == 0
    in_between = predictor.n_rows["predict"] - len(people) - len(result.frame)
    assert 0 <= in_between <= most * result.n_evaluated
    # The final call checks the default margin too, which the paper's search has not.
    n_confirmed = 0 if name == "paper" else len(result.frame)
    assert predictor.n_rows["predict_proba"] == len(people) + result.n_evaluated + n_confirmed


@pytest.mark.parametrize("name", ["paper", "balanced"])
def test_answers_for_labels_are_those_for_the_probability_that_decides_them(name):
    people = bank(40, seed=2)

    by_label = explain(fitted(Counted(), name), people)
    by_score = explain(
        fitted(Counted(), name).set_params(desired=(0.4, 1.0)).fit(bank(300, 1)), people
    )

    pd.testing.assert_frame_equal(by_label.frame, by_score.frame)


class Contrary(Counted):
    """Refuses whoever is not like a training row, whatever the probabilities."""

    def __init__(self, known):
        super().__init__()
        self.known = {tuple(map(str, row)) for row in known.to_numpy(dtype=object)}

    def accepts(self, frame):
        rows = frame.to_numpy(dtype=object)
        seen = np.array([tuple(map(str, row)) in self.known for row in rows], dtype=bool)
        return super().accepts(frame) & seen


class Odd(Counted):
    """Labels of some training rows contradict the probabilities."""

    def accepts(self, frame):
        return super().accepts(frame) & (frame["age"] % 7 != 0).to_numpy()


@pytest.mark.parametrize(
    "search",
    [
        pytest.param(bounded("paper", copies="allow"), id="paper"),
        pytest.param(
            bounded("balanced", copies="allow", max_samples=100),
            id="balanced",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_rows_that_probabilities_misjudge_are_no_answers_and_no_instability(search):
    train = pd.concat([bank(300, seed=1), bank(100, seed=2)], ignore_index=True)
    predictor, people = Contrary(train), bank(12, seed=2)
    explainer = fitted(predictor, search, train=train)

    result = explain(explainer, people)

    assert len(result.frame) > 0
    assert result.n_unstable == 0
    assert predictor.accepts(result.frame).all()
    some = people.iloc[[3, 11]]
    alone = explain(explainer, some).frame
    pd.testing.assert_frame_equal(alone, result.frame[result.frame.index.isin(alone.index)])


def test_labels_that_training_contradicts_are_asked_for_every_row():
    predictor = Odd()

    result = explain(fitted(predictor), bank(40, seed=2))

    assert predictor.n_rows["predict"] == predictor.n_rows["predict_proba"]
    assert len(result.frame)
    assert predictor.accepts(result.frame).all()


def test_a_proof_is_about_labels():
    predictor = Counted()

    explain(fitted(predictor, "exact"), bank(5, seed=2))

    assert predictor.n_rows["predict"] == predictor.n_rows["predict_proba"]


class Dicing(Counted):
    """Probabilities that differ from call to call, once it was fitted on."""

    chance = None

    def probabilities(self, frame):
        if self.chance is None:
            return super().probabilities(frame)
        yes = self.chance.random(len(frame))
        return np.column_stack([1 - yes, yes])


def test_a_predictor_that_is_unstable_is_still_reported():
    predictor = Dicing()
    explainer = fitted(predictor, "paper")
    predictor.chance = np.random.default_rng(0)

    with pytest.warns(McceWarning, match="The predictor is unstable"):
        result = explainer.explain(bank(40, seed=2))

    assert result.n_unstable > 0


@pytest.mark.parametrize("threshold", [0.3, 0.8])
def test_a_threshold_of_its_own_counts(threshold):
    frame = pd.DataFrame({"age": np.arange(300) % 37, "x": np.arange(300) % 50})
    target = np.where(frame["x"] + frame["age"] / 10 > 30, "yes", "no")
    target = np.where(np.random.default_rng(0).random(len(frame)) < 0.2, "no", target)
    inner = LogisticRegression(max_iter=1000)
    model = FixedThresholdClassifier(inner, threshold=threshold).fit(frame, target)
    explainer = MCCE(model, ["yes"], immutable=["age"], search="balanced", random_state=0)

    result = explain(explainer.fit(frame), frame.head(40))

    assert len(result.frame)
    assert (model.predict(result.frame) == "yes").all()
    assert (result.measures["score"] < threshold + 0.2).any()


class Three(Counted):
    """Three labels; the predicted one is the most probable."""

    classes_ = np.array(["no", "perhaps", "yes"])

    def probabilities(self, frame):
        yes = np.clip(score(frame) / 2, 0, 1)
        rest = (frame["age"].to_numpy(dtype=float) % 10) / 10
        return np.column_stack([(1 - yes) * rest, (1 - yes) * (1 - rest), yes])

    def predict(self, frame):
        self.n_rows["predict"] += len(frame)
        return self.classes_[self.probabilities(frame).argmax(axis=1)]


@pytest.mark.parametrize("desired", [["yes"], ["perhaps", "yes"]], ids=["one", "two"])
def test_the_most_probable_of_several_labels_is_known_without_asking(desired):
    predictor, people = Three(), bank(40, seed=2)

    result = explain(fitted(predictor, desired=desired), people)

    in_between = predictor.n_rows["predict"] - len(people) - len(result.frame)
    assert in_between <= 0.1 * result.n_evaluated
    assert len(result.frame)
    assert np.isin(predictor.predict(result.frame), desired).all()


def test_a_margin_counts_beside_the_label():
    search = bounded("balanced", margin=0.1)

    result = explain(fitted(Counted(1.0), search), bank(40, seed=2))

    assert len(result.frame) > 0
    assert (result.measures["score"] >= 0.55).all()


def test_a_loaded_explainer_decides_by_the_labels_of_the_predictor_it_is_given(tmp_path):
    path, people, stricter = tmp_path / "labels.mcce", bank(15, seed=2), Counted(1.0)
    explainer = fitted(Counted(0.8), bounded("balanced", max_samples=100))
    explainer.save(path)

    same = explain(mcce.load(path, Counted(0.8)), people)
    other = explain(mcce.load(path, stricter), people)

    pd.testing.assert_frame_equal(same.frame, explain(explainer, people).frame)
    assert len(other.frame) > 0
    assert other.n_unstable == 0
    assert stricter.accepts(other.frame).all()


def test_labels_are_valid_by_predict_even_where_the_probability_is_small():
    lenient = Counted(0.6)

    result = explain(altered(fitted(lenient, "paper"), n_samples=200), bank(40, seed=2))

    assert lenient.accepts(result.frame).all()
    assert (result.measures["score"] < 0.5).any()
