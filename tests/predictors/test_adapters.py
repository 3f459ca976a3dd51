"""The seam to other libraries: what is found, what is refused, and what boosters mean."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from loans import BOXED, lightgbm_model, loans, numbered, numbers, xgboost_model
from mcce import MCCE, ParameterError, PredictorError
from mcce.predictors import LightGBM, XGBoost
from mcce.predictors.adapters import adapt
from mcce.predictors.desired import make_decision


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost", reason="xgboost is not installed")


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm", reason="lightgbm is not installed")


@pytest.fixture(scope="module")
def catboost():
    return pytest.importorskip("catboost", reason="catboost is not installed")


def test_what_is_of_no_such_library_comes_back_as_it_is():
    for predictor in (len, object(), None, "model.pkl", MCCE(len)):
        assert adapt(predictor) is predictor


def test_a_library_is_loaded_neither_by_the_import_nor_by_another_predictor():
    code = (
        "import sys, pandas as pd, mcce\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "frame = pd.DataFrame({'x': range(20)})\n"
        "tree = DecisionTreeClassifier().fit(frame, frame['x'] > 9)\n"
        "for predictor, desired in ((tree, True), (lambda f: f['x'], (10, 20))):\n"
        "    mcce.MCCE(predictor, desired, random_state=0).fit(frame).explain(frame.head(2))\n"
        "libraries = {'torch', 'xgboost', 'lightgbm', 'onnxruntime', 'catboost'}\n"
        "assert not libraries & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_predictor_is_known_by_its_type_alone():
    class Booster:
        """Looks like a booster, but is nobody's."""

        def predict(self, frame):
            return frame["age"]

    predictor = Booster()

    assert make_decision(predictor, (0, 1)).predictor is predictor


@pytest.mark.parametrize("wrapper", [XGBoost, LightGBM])
def test_a_wrapper_takes_its_own_library_s_object_only(wrapper):
    with pytest.raises(PredictorError, match=r"Expected a .* Booster, got DataFrame"):
        wrapper(BOXED)


def test_the_repr_of_a_decision_says_what_is_called():
    booster = xgboost_model().get_booster()

    assert (
        repr(make_decision(booster))
        == "Decision(XGBoost.predict_proba[:, [1]] in Interval [0.5, 1.0])"
    )
    named = make_decision(XGBoost(booster, classes=["no", "yes"]), "yes")
    assert repr(named).startswith("Decision(XGBoost.predict in ['yes'], score")


def test_a_fitted_explainer_of_a_booster_can_be_pickled():
    for booster in (xgboost_model().get_booster(), lightgbm_model().booster_):
        explainer = MCCE(booster, 1, random_state=0).fit(BOXED)

        copy = pickle.loads(pickle.dumps(explainer))

        expected = explainer.explain(BOXED.head(5)).frame
        pd.testing.assert_frame_equal(copy.explain(BOXED.head(5)).frame, expected)


def test_training_data_that_are_an_array_reach_a_booster_as_an_array(xgboost, lightgbm):
    array = numbers().to_numpy(float)
    wanted = numbered(numbers(), "binary")
    data = xgboost.DMatrix(array, wanted)
    first = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 5)
    settings = {"objective": "binary", "verbose": -1, "num_threads": 1}
    second = lightgbm.train(settings, lightgbm.Dataset(array, wanted), 5)

    for booster, raw in (
        (first, lambda a: first.predict(xgboost.DMatrix(a))),
        (second, second.predict),
    ):
        result = MCCE(booster, 1, random_state=0).fit(array).explain(array[wanted == 0][:5])

        assert (raw(result.frame.to_numpy()) > 0.5).all()


@pytest.mark.parametrize(
    ("objective", "desired"),
    [("multi:softmax", [1, 2]), ("binary:hinge", 1), ("binary:logitraw", (0.0, 99.0))],
)
def test_a_booster_of_labels_or_margins_is_valid_by_them(xgboost, objective, desired):
    many = {"num_class": 3} if objective.startswith("multi") else {}
    wanted = numbered(BOXED, "multiclass" if many else "binary")
    data = xgboost.DMatrix(BOXED, wanted, enable_categorical=True)
    booster = xgboost.train({"objective": objective, "nthread": 1, **many}, data, 5)

    scored = make_decision(booster, desired).score(BOXED)

    raw = booster.predict(xgboost.DMatrix(BOXED, enable_categorical=True))
    expected = raw >= 0 if objective.endswith("raw") else np.isin(raw, desired)
    assert scored.valid.tolist() == expected.tolist()


def test_labels_of_a_booster_may_be_named(xgboost):
    data = xgboost.DMatrix(BOXED, numbered(BOXED, "multiclass"), enable_categorical=True)
    booster = xgboost.train({"objective": "multi:softmax", "num_class": 3, "nthread": 1}, data, 5)

    labels = XGBoost(booster, classes=["bad", "fair", "good"]).predict(BOXED)

    numbers = booster.predict(xgboost.DMatrix(BOXED, enable_categorical=True)).astype(int)
    assert labels.tolist() == np.array(["bad", "fair", "good"])[numbers].tolist()


def test_one_against_all_and_own_objectives_of_lightgbm(lightgbm):
    settings = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 3}
    data = lightgbm.Dataset(BOXED, numbered(BOXED, "multiclass"))
    each = lightgbm.train(settings | {"objective": "multiclassova", "num_class": 3}, data, 5)
    assert LightGBM(each).predict_proba(BOXED).tolist() == each.predict(BOXED).tolist()
    assert make_decision(each, [2]).score(BOXED).valid.any()

    def squared(scores, data):
        return scores - data.get_label(), np.ones_like(scores)

    own = lightgbm.train(
        settings | {"objective": squared}, lightgbm.Dataset(BOXED, numbered(BOXED, "binary")), 5
    )
    assert make_decision(own, (0.3, 9.0)).method == "predict"


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        (["a", "b", "c"], "names 3 labels.*has 2 classes"),
        (["a", "a"], "two or more different labels"),
        ("ab", "two or more different labels"),
        (["a"], "two or more different labels"),
        ([["a"], ["b"]], "two or more different labels"),
    ],
)
def test_class_names_that_do_not_fit_a_booster_are_an_error(classes, says):
    with pytest.raises(ParameterError, match=says):
        XGBoost(xgboost_model().get_booster(), classes=classes)
    with pytest.raises(ParameterError, match=says):
        LightGBM(lightgbm_model().booster_, classes=classes)


def test_a_label_that_a_booster_does_not_know_is_an_error():
    with pytest.raises(ParameterError, match=r"'yes', which is not among.*\[0, 1\]"):
        make_decision(xgboost_model().get_booster(), "yes")


def test_an_unfitted_model_of_a_library_is_an_error(xgboost, lightgbm, catboost):
    for model in (
        xgboost.XGBClassifier(),
        lightgbm.LGBMClassifier(),
        catboost.CatBoostClassifier(),
    ):
        with pytest.raises(PredictorError, match="without classes_: it is not fitted"):
            make_decision(model)
    for model in (xgboost.XGBRegressor(), lightgbm.LGBMRegressor(), catboost.CatBoostRegressor()):
        with pytest.raises(PredictorError, match=r"not fitted|CatBoostError"):
            make_decision(model, (0, 1)).score(BOXED)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_catboost_without_a_task_is_used_as_it_was_trained(catboost, task):
    frame = loans(boxed=True)
    loss = {"binary": "Logloss", "multiclass": "MultiClass", "regression": "RMSE"}[task]
    settings = {"iterations": 5, "verbose": False, "allow_writing_files": False}
    settings |= {"loss_function": loss, "cat_features": ["sex", "job"]}
    model = catboost.CatBoost(settings).fit(frame, numbered(frame, task))
    desired = (0.5, 9.0) if task == "regression" else [1]

    scored = make_decision(model, desired).score(frame)

    if task == "regression":
        assert scored.score.tolist() == model.predict(frame).tolist()
    else:
        probabilities = model.predict(frame, prediction_type="Probability")[:, 1]
        assert scored.score.tolist() == probabilities.tolist()
        labels = model.predict(frame, prediction_type="Class").ravel()
        assert scored.valid.tolist() == (labels == 1).tolist()
