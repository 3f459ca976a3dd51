"""The decision: what is desired, how the predictor is called, and which rows are valid."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mcce import MCCE, Interval, ParameterError, PredictorError
from mcce.predictors import make_decision
from mcce.predictors.decision import Decision

ROWS = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "sex": ["f", "m", "f", "m"]})
X = ROWS[["x"]]
YES = np.array(["no", "no", "yes", "yes"])
THREE = np.array(["a", "b", "c", "c"])


def logistic() -> LogisticRegression:
    return LogisticRegression(solver="liblinear", C=1000.0)


def score(frame):
    return frame["x"] / 4


def valid(decision, frame=X) -> list[bool]:
    return decision.score(frame).valid.tolist()


@pytest.mark.parametrize(
    ("closed", "inside"),
    [
        ("both", [True, True, True]),
        ("left", [True, True, False]),
        ("right", [False, True, True]),
        ("neither", [False, True, False]),
    ],
)
def test_the_ends_of_an_interval_are_open_or_closed(closed, inside):
    interval = Interval(0.0, 1.0, closed=closed)

    assert interval.contains(np.array([0.0, 0.5, 1.0])).tolist() == inside


def test_the_ends_of_an_interval_may_be_infinite():
    scores = np.array([-math.inf, 0.0, math.inf])

    assert Interval(0, math.inf).contains(scores).tolist() == [False, True, True]
    assert Interval(0, math.inf, "left").contains(scores).tolist() == [False, True, False]
    everything = Interval(-math.inf, math.inf, "neither")
    assert everything.contains(scores).tolist() == [False, True, False]


def test_the_shortfall_is_the_way_to_the_interval():
    scores = np.array([-math.inf, -1.0, 0.5, 3.0, math.inf, math.nan])

    def shortfall(low, high):
        return str(Decision(len, Interval(low, high), "call").shortfall(scores).tolist())

    assert shortfall(0, 1) == "[inf, 1.0, 0.0, 2.0, inf, nan]"
    assert shortfall(0, math.inf) == "[inf, 1.0, 0.0, 0.0, 0.0, nan]"
    assert shortfall(-math.inf, 0) == "[0.0, 0.0, 0.5, 3.0, inf, nan]"


def test_an_interval_that_cannot_be_is_an_error():
    for ends, says in [
        ((1.0, 0.5), r"\[1.0, 0.5\] is empty.*lower end first"),
        ((1, 1, "left"), r"\[1, 1\) is empty"),
        ((math.nan, 1.0), "low must be a number, got nan"),
        (("0.5", 1.0), "low must be a number, got '0.5'"),
        ((0.5, None), "high must be a number, got None"),
        ((0, 1, "open"), "closed must be .* got 'open'"),
    ]:
        with pytest.raises(ParameterError, match=says):
            Interval(*ends)


def test_a_desired_that_cannot_be_is_an_error():
    for desired, says in [
        (None, r"desired is required.*desired=\(0.5, 1.0\)"),
        ((0.1, 0.2, 0.3), "two numbers"),
        (("yes", "no"), r"got \('yes', 'no'\). For labels, pass a list"),
        ((True, False), "two numbers"),
        ((1.0, 0.5), "is empty"),
        ([0.5, 1.0], r"labels \[0.5, 1.0\].*pass a tuple of two numbers"),
        (0.5, r"labels \[0.5\].*pass a tuple"),
        ([], "at least one label"),
        ([["yes"]], r"strings or numbers, got \['yes'\]"),
        ({"low": 0.5}, r"desired must be a tuple.*got \{'low': 0.5\}"),
        (np.array([0.5, 1.0]), "desired must be a tuple"),
    ]:
        with pytest.raises(ParameterError, match=says):
            make_decision(score, desired)


def test_a_tuple_is_a_closed_interval():
    decision = make_decision(score, (0.25, np.float64(0.5)))

    assert decision.desired == Interval(0.25, 0.5)
    assert valid(decision) == [False, True, True, False]


@pytest.mark.parametrize("name", ["yes", "\ud800"], ids=["word", "surrogate"])
def test_labels_are_valid_by_what_a_callable_says(name):
    for desired in (name, [name], {name}, np.str_(name), [name, name]):
        decision = make_decision(lambda frame: np.where(frame["x"] > 1, name, "no"), desired)

        assert valid(decision) == [False, False, True, True]
        assert decision.score(X).score.tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", [int, bool, float, "uint8"])
def test_whole_labels_match_whatever_their_type(dtype):
    for desired in (1, np.int64(1), [1.0], True, {1}):
        decision = make_decision(lambda frame: (frame["x"] > 1).astype(dtype), desired)

        assert valid(decision) == [False, False, True, True]


def test_a_binary_classifier_is_scored_by_the_probability_of_its_second_class():
    model = logistic().fit(X, YES)

    decision = make_decision(model)

    assert repr(decision) == (
        "Decision(LogisticRegression.predict_proba[:, [1]] in Interval [0.5, 1.0])"
    )
    assert decision.score(X).score.tolist() == model.predict_proba(X)[:, 1].tolist()
    assert valid(decision) == [False, False, True, True]
    assert valid(make_decision(model, score_class="no")) == [True, True, False, False]


@pytest.mark.parametrize("desired", [["b", "c"], ["c", "b", "c"], {"b", "c"}])
def test_several_labels_are_valid_by_predict_and_scored_by_their_summed_probability(desired):
    tree = DecisionTreeClassifier(random_state=0).fit(X, THREE)

    decision = make_decision(tree, desired)

    assert decision.desired == ("b", "c")
    assert valid(decision) == [False, True, True, True]
    assert decision.score(X).score.tolist() == [0.0, 1.0, 1.0, 1.0]


def test_a_margin_classifier_is_scored_by_its_margin():
    machine = LinearSVC().fit(X, YES)

    decision = make_decision(machine)

    assert repr(decision) == "Decision(LinearSVC.decision_function in Interval (0.0, inf))"
    assert valid(decision) == (machine.predict(X) == "yes").tolist()
    assert make_decision(SVC().fit(X, YES)).method == "decision_function"
    assert make_decision(RidgeClassifier().fit(X, YES), "no").method == "predict"
    below = make_decision(machine, Interval(-math.inf, 0), score_class="yes")
    assert valid(below) == [True, True, False, False]


class Labeller:
    """A classifier that gives labels and nothing else."""

    _estimator_type = "classifier"
    classes_ = np.array([0, 1])

    def predict(self, frame):
        return (frame["x"] > 1).astype(int)


def test_a_classifier_with_labels_only_is_scored_by_them():
    assert valid(make_decision(Labeller())) == [False, False, True, True]
    with pytest.raises(ParameterError, match=r"labels only.*its classes \[0, 1\] as desired"):
        make_decision(Labeller(), (0.5, 1.0))


def test_other_estimators_are_scored_by_predict():
    regressor = make_decision(LinearRegression().fit(X, [0.0, 1.0, 2.0, 3.0]), (1.5, 9.0))
    detector = make_decision(IsolationForest(n_estimators=2).fit(X), 1)

    assert valid(regressor) == [False, False, True, True]
    assert (detector.method, detector.desired) == ("predict", (1,))


def test_pipelines_and_searches_over_them_are_predictors_too():
    encode = make_column_transformer((StandardScaler(), ["x"]), (OneHotEncoder(), ["sex"]))
    pipeline = make_pipeline(encode, logistic()).fit(ROWS, YES)
    search = GridSearchCV(logistic(), {"C": [1.0]}, cv=2).fit(X, YES)

    assert valid(make_decision(pipeline, "yes"), ROWS) == [False, False, True, True]
    assert make_decision(search).method == "predict_proba"


def people(n_rows=120):
    chance = np.random.default_rng(0)
    return pd.DataFrame({"x": chance.normal(size=n_rows), "z": chance.normal(size=n_rows)})


@pytest.mark.parametrize("desired", ["yes", None])
def test_a_classifier_with_a_threshold_of_its_own_decides_by_it(desired):
    frame = people()
    labels = np.where(frame["x"] + 0.5 * frame["z"] > 0, "yes", "no")
    fixed = FixedThresholdClassifier(logistic(), threshold=0.8, pos_label="yes")
    tuned = TunedThresholdClassifierCV(logistic(), scoring="accuracy", cv=3)
    for model in (fixed, tuned, make_pipeline(StandardScaler(), fixed)):
        model.fit(frame, labels)
        declined = frame[model.predict(frame) == "no"].head(5)

        result = MCCE(model, desired, n_samples=100, random_state=0).fit(frame).explain(declined)

        assert (model.predict(result.frame) == "yes").all()
        assert make_decision(model, desired).desired == ("yes",)
        if model is not tuned:
            assert (result.measures["score"] >= 0.8).all()
    assert make_decision(model, (0.5, 1.0)).desired == Interval(0.5, 1.0)


def test_labels_and_classes_that_do_not_go_together_are_an_error():
    for labels, desired, score_class, says in [
        (THREE, None, None, r"3 classes \['a', 'b', 'c'\]. Name the desired ones"),
        (THREE, (0.5, 1.0), None, "3 classes"),
        (THREE, ["a", "z"], None, r"desired names 'z', which is not among.*\['a', 'b', 'c'\]"),
        (THREE, None, "z", "score_class names 'z'"),
        (THREE, ["a"], "b", r"score_class='b' needs an interval.*Leave score_class out"),
        (YES, [0.5, 1.0], None, "desired names 0.5.*pass a tuple of two numbers"),
        (YES, ["no", "yes"], None, "all classes of the predictor.*Leave one out"),
        ([0, 0, 1, 1], [0.0, 1.0], None, "all classes of the predictor"),
        ([0, 0, 1, 1], "1", None, r"'1', which is not among the predictor's classes \[0, 1\]"),
    ]:
        tree = DecisionTreeClassifier().fit(X, labels)
        with pytest.raises(ParameterError, match=says):
            make_decision(tree, desired, score_class=score_class)
    regressor = LinearRegression().fit(X, [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match=r"labels \[2\], but the predictor is a regressor"):
        make_decision(regressor, 2)
    with pytest.raises(ParameterError, match="score_class is only for classifiers"):
        make_decision(regressor, (0, 1), score_class=1)
    with pytest.raises(ParameterError, match=r"score_class='no' has no score"):
        make_decision(LinearSVC().fit(X, YES), score_class="no")


def test_what_is_no_fitted_predictor_is_an_error():
    for predictor, says in [
        (None, "predictor must be a fitted estimator.*got NoneType"),
        ("model.pkl", "got str"),
        (StandardScaler(), "got StandardScaler"),
        (LogisticRegression, "is the class LogisticRegression. Pass a fitted instance"),
        (logistic(), "LogisticRegression is a classifier without classes_: it is not fitted"),
        (make_pipeline(StandardScaler(), logistic()), "without classes_"),
        (GridSearchCV(logistic(), {}), "without classes_"),
    ]:
        with pytest.raises(PredictorError, match=says):
            make_decision(predictor)
    with pytest.raises(PredictorError, match=r"not fitted.*Fit it first"):
        make_decision(LinearRegression(), (0, 1)).score(X)
    both = MultiOutputClassifier(DecisionTreeClassifier()).fit(X, np.column_stack([YES, YES]))
    with pytest.raises(PredictorError, match=r"several outputs.*Wrap one of them"):
        make_decision(both)


class Scorer:
    """Probabilities in three columns of the frame; a label by a function of them."""

    _estimator_type = "classifier"
    classes_ = np.array(["a", "b", "c"])

    def __init__(self, decide):
        self.decide = decide
        self.calls: list[tuple[str, int]] = []

    def predict_proba(self, frame):
        self.calls.append(("predict_proba", len(frame)))
        return frame[["a", "b", "c"]].to_numpy()

    def predict(self, frame):
        self.calls.append(("predict", len(frame)))
        return self.classes_[self.decide(frame[["a", "b", "c"]].to_numpy())]


def by_largest(numbers):
    return numbers.argmax(axis=1)


def by_threshold(numbers):
    return np.where(numbers[:, 0] >= 0.375, 0, 2)


def random_rows(n_rows, seed):
    """Probabilities in 64ths, with ties among them."""
    counts = np.random.default_rng(seed).multinomial(64, [1 / 3] * 3, n_rows)
    return pd.DataFrame(counts / 64, columns=["a", "b", "c"])


def rows_of(*first):
    """Rows with these probabilities of the first label."""
    return pd.DataFrame({"a": first}).assign(b=0.0, c=0.0)


@given(
    seed=st.integers(0, 10_000),
    case=st.sampled_from(
        [(by_largest, ["a"]), (by_largest, ["b", "c"]), (by_threshold, ["a"])],
    ),
    place=st.integers(0, 149),
)
def test_labels_that_follow_from_probabilities_are_those_of_predict(seed, case, place):
    decide, desired = case
    decision = make_decision(Scorer(decide), desired)
    scored, rule = decision.learn_rule(random_rows(300, seed))
    new = random_rows(150, seed + 1)
    by_rule = replace(decision, rule=rule)

    together, alone = by_rule.score(new), by_rule.score(new.iloc[[place]])

    expected = decision.score(new)
    assert rule is not None
    assert np.array_equal(scored.valid, decision.score(random_rows(300, seed)).valid)
    assert np.array_equal(together.score, expected.score)
    near = np.isclose(new["a"], 0.375, atol=0.05) & (decide is by_threshold)
    assert np.array_equal(together.valid | near, expected.valid | near)
    assert together.valid[place] == alone.valid[0]


def test_labels_are_asked_for_only_where_probabilities_leave_them_open():
    scorer = Scorer(by_threshold)
    decision = make_decision(scorer, ["a"])
    _, rule = decision.learn_rule(rows_of(0.125, 0.25, 0.5, 0.75))
    scorer.calls.clear()

    valid = replace(decision, rule=rule).score(rows_of(0.125, 0.25, 0.375, 0.5, 0.75)).valid

    assert valid.tolist() == [False, False, True, True, True]
    assert scorer.calls == [("predict_proba", 5), ("predict", 3)]


def test_there_is_nothing_to_learn_from_labels_that_do_not_follow_from_the_score():
    def swings(numbers):
        return np.where((numbers[:, 0] > 0.4) & (numbers[:, 0] < 0.7), 0, 2)

    for decide in (swings, lambda numbers: np.zeros(len(numbers), dtype=int)):
        assert make_decision(Scorer(decide), ["a"]).learn_rule(rows_of(0.2, 0.6, 0.8))[1] is None
    assert make_decision(lambda frame: frame["a"], (0.5, 1.0)).learn_rule(rows_of(0.2))[1] is None


def test_a_fresh_call_tells_misjudged_rows_from_unstable_ones():
    decision = make_decision(Scorer(by_threshold), ["a"])
    lower = make_decision(Scorer(lambda numbers: np.where(numbers[:, 0] > 0.2, 0, 2)), ["a"])
    by_rule = replace(decision, rule=lower.learn_rule(rows_of(0.125, 0.25))[1])

    # Above the ends, between them, below them, and valid.
    scored, misjudged = by_rule.confirm(rows_of(0.3125, 0.1875, 0.0625, 0.5), np.ones(4))

    assert scored.valid.tolist() == [False, False, False, True]
    assert misjudged.tolist() == [True, False, False, False]


def test_the_margin_is_how_far_the_desired_label_is_ahead():
    scorer = Scorer(by_largest)
    decision = make_decision(scorer, ["a"]).with_margin(0.25)
    frame = pd.DataFrame({"a": [0.5, 0.75], "b": [0.375, 0.125], "c": [0.125, 0.125]})

    scored, margins = decision.score_margins(frame)

    assert scored.valid.tolist() == [False, True]
    assert margins.tolist() == [0.125, 0.625]
    assert scorer.calls == [("predict_proba", 2), ("predict", 1)]


@pytest.mark.parametrize(("unit", "when"), [("D", date(2020, 1, 1)), ("s", datetime(2020, 1, 1))])
def test_labels_may_be_times(unit, when):
    class Dated(Scorer):
        classes_ = np.array(["2020", "2021", "2022"], dtype=f"datetime64[{unit}]")

    frame = random_rows(50, 3)

    scored = make_decision(Dated(by_largest), [when]).score(frame)

    assert np.array_equal(scored.valid, frame.to_numpy().argmax(axis=1) == 0)


def test_training_rows_are_scored_in_blocks_as_if_at_once(monkeypatch):
    frame = pd.DataFrame({"x": np.arange(50.0), "z": np.arange(50.0) % 7})
    model = logistic().fit(frame, np.where(frame["x"] > 24, "yes", "no"))
    whole = MCCE(model, "yes", random_state=0).fit(frame)
    monkeypatch.setattr("mcce.predictors.decision.FIT_ROWS_PER_CALL", 16)
    seen = []

    def scores(rows):
        seen.append(list(rows.index))
        return rows["x"] / 50

    parts = MCCE(model, "yes", random_state=0).fit(frame)
    MCCE(scores, (0.5, 1.0), random_state=0).fit(frame)

    pd.testing.assert_frame_equal(
        parts.explain(frame.head(5)).frame, whole.explain(frame.head(5)).frame
    )
    assert [len(index) for index in seen] == [16, 16, 16, 2]
    assert all(index[0] == 0 for index in seen)
    with pytest.raises(PredictorError):
        MCCE(lambda rows: rows["x"].where(rows["x"] < 40), (0.5, 1.0)).fit(frame)
