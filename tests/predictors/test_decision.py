"""The decision: what is desired, how the predictor is called, and what it may answer."""

from __future__ import annotations

import math
import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mcce import MCCE, Interval, ParameterError, PredictorError
from mcce.predictors.desired import make_decision

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
    assert Interval(-math.inf, math.inf, "neither").contains(scores).tolist() == [
        False,
        True,
        False,
    ]


def test_the_shortfall_is_the_way_to_the_interval():
    scores = np.array([-math.inf, -1.0, 0.5, 3.0, math.inf, math.nan])

    assert str(Interval(0, 1).shortfall(scores).tolist()) == "[inf, 1.0, 0.0, 2.0, inf, nan]"
    assert str(Interval(0, math.inf).shortfall(scores)[2:].tolist()) == "[0.0, 0.0, 0.0, nan]"
    assert Interval(-math.inf, 0).shortfall(scores)[0] == 0.0


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ((1.0, 0.5), r"\[1.0, 0.5\] is empty.*lower end first"),
        ((1, 1, "left"), r"\[1, 1\) is empty"),
        ((math.nan, 1.0), "low must be a number, got nan"),
        ((0.5, math.nan), "high must be a number, got nan"),
        (("0.5", 1.0), "low must be a number, got '0.5'"),
        ((0.5, None), "high must be a number, got None"),
        ((0, 1, "open"), "closed must be .* got 'open'"),
    ],
)
def test_an_interval_that_cannot_be_is_an_error(ends, says):
    with pytest.raises(ParameterError, match=says):
        Interval(*ends)


@pytest.mark.parametrize(
    ("desired", "says"),
    [
        (None, r"desired is required.*desired=\(0.5, 1.0\)"),
        ((0.5,), r"two numbers, got \(0.5,\)"),
        ((0.1, 0.2, 0.3), "two numbers"),
        (("yes", "no"), r"got \('yes', 'no'\). For labels, pass a list"),
        ((0.5, None), "two numbers"),
        ((True, False), "two numbers"),
        ((1.0, 0.5), "is empty"),
        ((0.5, math.nan), "must be a number"),
        ([0.5, 1.0], r"labels \[0.5, 1.0\].*pass a tuple of two numbers"),
        (0.5, r"labels \[0.5\].*pass a tuple"),
        ([], "at least one label"),
        (set(), "at least one label"),
        ([["yes"]], r"strings or numbers, got \['yes'\]"),
        ({"low": 0.5}, r"desired must be a tuple.*got \{'low': 0.5\}"),
        (pd.Interval(0, 1), "desired must be a tuple of two numbers, an mcce.Interval"),
        (np.array([0.5, 1.0]), "desired must be a tuple"),
    ],
)
def test_a_desired_that_cannot_be_is_an_error(desired, says):
    with pytest.raises(ParameterError, match=says):
        make_decision(score, desired)


def test_a_tuple_is_a_closed_interval():
    decision = make_decision(score, (0.25, np.float64(0.5)))

    assert decision.desired == Interval(0.25, 0.5)
    assert valid(decision) == [False, True, True, False]


@pytest.mark.parametrize("desired", ["yes", ["yes"], {"yes"}, np.str_("yes"), ["yes", "yes"]])
def test_labels_are_valid_by_what_a_callable_says(desired):
    decision = make_decision(lambda frame: np.where(frame["x"] > 1, "yes", "no"), desired)

    assert valid(decision) == [False, False, True, True]
    assert decision.score(X).score.tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", [object, str])
def test_a_label_may_be_any_string(dtype):
    labels = np.array(["\ud800", "a"], dtype=dtype)
    decision = make_decision(lambda frame: labels[(frame["x"] > 1).astype(int)], "\ud800")

    assert valid(decision) == [True, True, False, False]


@pytest.mark.parametrize("desired", [1, np.int64(1), [1.0], True, {1}])
@pytest.mark.parametrize("dtype", [int, bool, float, "uint8"])
def test_whole_labels_match_whatever_their_type(desired, dtype):
    decision = make_decision(lambda frame: (frame["x"] > 1).astype(dtype), desired)

    assert valid(decision) == [False, False, True, True]


def test_a_binary_classifier_is_scored_by_the_probability_of_its_second_class():
    decision = make_decision(logistic().fit(X, YES))

    assert (decision.method, decision.columns) == ("predict_proba", (1,))
    assert (
        repr(decision)
        == "Decision(LogisticRegression.predict_proba[:, [1]] in Interval [0.5, 1.0])"
    )
    assert valid(decision) == [False, False, True, True]


def test_another_class_may_be_scored():
    decision = make_decision(logistic().fit(X, YES), score_class="no")

    assert decision.columns == (0,)
    assert valid(decision) == [True, True, False, False]


def test_several_labels_are_valid_by_predict_and_scored_by_their_summed_probability():
    tree = DecisionTreeClassifier(random_state=0).fit(X, THREE)

    decision = make_decision(tree, ["c", "b"])

    assert decision.method == "predict_proba"
    assert valid(decision) == [False, True, True, True]
    assert decision.score(X).score.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert (
        repr(decision) == "Decision(DecisionTreeClassifier.predict in ['b', 'c'], "
        "score DecisionTreeClassifier.predict_proba[:, [1, 2]])"
    )


@pytest.mark.parametrize("desired", [["b", "c"], ["c", "b"], {"b", "c"}, ["c", "b", "c"]])
def test_the_order_and_the_number_of_times_a_label_is_named_do_not_matter(desired):
    decision = make_decision(DecisionTreeClassifier().fit(X, THREE), desired)

    assert (decision.desired, decision.columns) == (("b", "c"), (1, 2))


def test_a_margin_classifier_is_scored_by_its_margin():
    machine = LinearSVC().fit(X, YES)

    decision = make_decision(machine)

    assert decision.method == "decision_function"
    assert repr(decision) == "Decision(LinearSVC.decision_function in Interval (0.0, inf))"
    assert valid(decision) == (machine.predict(X) == "yes").tolist()
    assert make_decision(SVC().fit(X, YES)).method == "decision_function"
    assert make_decision(RidgeClassifier().fit(X, YES), "no").method == "predict"


def test_a_margin_classifier_takes_an_interval_of_margins():
    decision = make_decision(LinearSVC().fit(X, YES), Interval(-math.inf, 0), score_class="yes")

    assert valid(decision) == [True, True, False, False]


class Labeller:
    """A classifier that gives labels and nothing else."""

    _estimator_type = "classifier"
    classes_ = np.array([0, 1])

    def predict(self, frame):
        return (frame["x"] > 1).astype(int)


def test_a_classifier_with_labels_only_is_scored_by_them():
    decision = make_decision(Labeller())

    assert (decision.method, decision.desired) == ("predict", (1,))
    assert valid(decision) == [False, False, True, True]
    with pytest.raises(ParameterError, match=r"labels only.*its classes \[0, 1\] as desired"):
        make_decision(Labeller(), (0.5, 1.0))


def test_a_regressor_is_scored_by_predict():
    decision = make_decision(LinearRegression().fit(X, [0.0, 1.0, 2.0, 3.0]), (1.5, 9.0))

    assert decision.method == "predict"
    assert valid(decision) == [False, False, True, True]


def test_an_outlier_detector_is_scored_by_predict():
    decision = make_decision(IsolationForest(n_estimators=2).fit(X), 1)

    assert (decision.method, decision.desired) == ("predict", (1,))


def test_the_method_is_visible_in_the_explainer():
    explainer = MCCE(LinearSVC().fit(X, YES)).fit(X)

    assert explainer.decision_.method == "decision_function"
    assert MCCE(score, (0.5, 1)).fit(X).decision_.method == "call"


def test_a_pipeline_on_raw_columns_receives_raw_columns():
    encode = make_column_transformer((StandardScaler(), ["x"]), (OneHotEncoder(), ["sex"]))
    pipeline = make_pipeline(encode, logistic()).fit(ROWS, YES)

    decision = make_decision(pipeline, "yes")

    assert decision.method == "predict_proba"
    assert valid(decision, ROWS) == [False, False, True, True]


def test_a_search_over_pipelines_is_a_predictor_too():
    search = GridSearchCV(logistic(), {"C": [1.0]}, cv=2).fit(X, YES)

    assert make_decision(search).method == "predict_proba"


@pytest.mark.parametrize(
    ("labels", "desired", "score_class", "says"),
    [
        (THREE, None, None, r"3 classes \['a', 'b', 'c'\]. Name the desired ones"),
        (THREE, (0.5, 1.0), None, "3 classes"),
        (THREE, ["a", "z"], None, r"desired names 'z', which is not among.*\['a', 'b', 'c'\]"),
        (THREE, None, "z", "score_class names 'z'"),
        (THREE, ["a"], "b", r"score_class='b' needs an interval.*Leave score_class out"),
        (YES, [0.5, 1.0], None, "desired names 0.5.*pass a tuple of two numbers"),
        (YES, ["no", "yes"], None, "all classes of the predictor.*Leave one out"),
        ([0, 0, 1, 1], [0.0, 1.0], None, "all classes of the predictor"),
        ([0, 0, 1, 1], "1", None, r"'1', which is not among the predictor's classes \[0, 1\]"),
    ],
)
def test_labels_and_classes_that_do_not_go_together_are_an_error(
    labels, desired, score_class, says
):
    tree = DecisionTreeClassifier().fit(X, labels)

    with pytest.raises(ParameterError, match=says):
        make_decision(tree, desired, score_class=score_class)


def test_a_class_without_probabilities_cannot_be_scored():
    with pytest.raises(
        ParameterError, match=r"score_class='no' has no score. Pass the class as desired"
    ):
        make_decision(LinearSVC().fit(X, YES), score_class="no")


def test_a_regressor_takes_no_labels_and_no_score_class():
    regressor = LinearRegression().fit(X, [0.0, 1.0, 2.0, 3.0])

    with pytest.raises(ParameterError, match=r"labels \[2\], but the predictor is a regressor"):
        make_decision(regressor, 2)
    with pytest.raises(ParameterError, match="score_class is only for classifiers"):
        make_decision(regressor, (0, 1), score_class=1)


@pytest.mark.parametrize(
    ("predictor", "says"),
    [
        (None, "predictor must be a fitted estimator.*got NoneType"),
        ("model.pkl", "got str"),
        (StandardScaler(), "got StandardScaler"),
        (LogisticRegression, "is the class LogisticRegression. Pass a fitted instance"),
        (logistic(), "LogisticRegression is a classifier without classes_: it is not fitted"),
        (make_pipeline(StandardScaler(), logistic()), "without classes_"),
        (GridSearchCV(logistic(), {}), "without classes_"),
    ],
)
def test_what_is_no_fitted_predictor_is_an_error(predictor, says):
    with pytest.raises(PredictorError, match=says):
        make_decision(predictor)


def test_an_unfitted_regressor_is_an_error_when_it_is_called():
    with pytest.raises(
        PredictorError, match=r"not fitted.*Fit it first: mcce explains a predictor"
    ):
        make_decision(LinearRegression(), (0, 1)).score(X)


def test_a_predictor_with_several_outputs_is_an_error():
    both = MultiOutputClassifier(DecisionTreeClassifier()).fit(X, np.column_stack([YES, YES]))

    with pytest.raises(PredictorError, match=r"several outputs.*Wrap one of them"):
        make_decision(both)


@pytest.mark.parametrize(
    "answer",
    [
        lambda frame: (frame["x"] / 4).tolist(),
        lambda frame: frame["x"].set_axis([9, 9, 9, 9]) / 4,
        lambda frame: frame[["x"]].to_numpy() / 4,
        lambda frame: frame[["x"]] / 4,
        lambda frame: (frame["x"] / 4).astype("float32"),
        lambda frame: (frame["x"] / 4).astype("Float64"),
        lambda frame: (frame["x"] / 4).astype(object),
    ],
)
def test_scores_may_come_in_any_container_of_one_number_per_row(answer):
    assert make_decision(answer, (0.4, 1)).score(X).score.tolist() == [0.0, 0.25, 0.5, 0.75]


class Tensor:
    """Looks like a tensor that is still attached to its graph."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda frame: frame["x"].iloc[:3], r"shape \(4,\) for 4 rows, got shape \(3,\)"),
        (lambda frame: 0.5, r"got shape \(\)"),
        (lambda frame: None, r"got shape \(\)"),
        (lambda frame: np.zeros((4, 2)), r"got shape \(4, 2\). Select one column.*\[:, 1\]"),
        (lambda frame: np.full(4, np.nan), "NaN, null or masked for 4 of 4 rows, first at"),
        (lambda frame: ["no"] * 4, "must return numbers .* dtype <U2.*labels as desired"),
        (lambda frame: ["0.5"] * 4, "must return numbers"),
        (lambda frame: np.array([None] * 4), "masked for 4 of 4 rows"),
        (lambda frame: np.ones(4) * 1j, "must return numbers"),
        (lambda frame: [[1], [1, 2], [3], [4]], "list that NumPy cannot read"),
        (lambda frame: Tensor(), r"Tensor that NumPy cannot read \(RuntimeError\).*\.detach"),
    ],
)
def test_output_that_is_not_one_number_per_row_is_an_error(answer, says):
    with pytest.raises(PredictorError, match=says):
        make_decision(answer, (0, 1)).score(X)


def test_labels_must_be_one_per_row_too():
    with pytest.raises(PredictorError, match=r"shape \(4,\) for 4 rows, got shape \(1,\)"):
        make_decision(lambda frame: ["yes"], "yes").score(X)


def test_what_a_predictor_raises_is_kept_for_debugging_and_never_quoted():
    def broken(frame):
        raise KeyError("Kowalski")

    with pytest.raises(PredictorError, match="failed on 4 rows with a KeyError") as caught:
        make_decision(broken, (0, 1)).score(X)

    error = caught.value
    assert "Kowalski" not in "".join(traceback.format_exception(error))
    assert error.__cause__ is error.__context__ is None
    assert repr(error.original) == "KeyError('Kowalski')"
    assert "in broken" in "".join(traceback.format_exception(error.original))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.original) == (str(error), None)


def test_the_error_of_a_predictor_that_refuses_missing_values_names_the_columns():
    holes = ROWS.assign(sex=None, y=[1.0, np.nan, 1.0, 1.0])
    model = logistic().fit(X.assign(y=1.0), YES)

    with pytest.raises(PredictorError, match=r"missing values: \['y'\].*imputer"):
        make_decision(model).score(holes[["x", "y"]])
    with pytest.raises(PredictorError, match=r"missing values: \['y'\].*imputer"):
        make_decision(model).score(holes[["x", "y"]].iloc[[1]])
    with pytest.raises(PredictorError, match=r"trained on the columns \['x', 'y'\], but got"):
        make_decision(model).score(holes)


def test_an_empty_frame_is_scored_without_calling_the_predictor():
    def untouchable(frame):
        raise AssertionError("called with no rows")

    scored = make_decision(untouchable, (0, 1)).score(X.head(0))

    assert scored.score.shape == scored.valid.shape == (0,)
