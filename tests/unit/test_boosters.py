"""Native boosters and the models of their libraries: what is known of them, and what is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from loans import boxed, lightgbm_model, numbered, numbers, xgboost_model
from mcce import MCCE, ParameterError, PredictorError
from mcce.predictors import LightGBM, XGBoost, make_decision


@pytest.fixture
def xgboost():
    return pytest.importorskip("xgboost", reason="xgboost is not installed")


@pytest.fixture
def lightgbm():
    return pytest.importorskip("lightgbm", reason="lightgbm is not installed")


BOOSTERS = {
    "xgboost": (lambda: xgboost_model().get_booster(), XGBoost),
    "lightgbm": (lambda: lightgbm_model().booster_, LightGBM),
}


@pytest.mark.slow
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
    for wrapper in (XGBoost, LightGBM):
        with pytest.raises(PredictorError, match=r"Expected a .* Booster, got Booster"):
            wrapper(predictor)


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_fitted_explainer_of_a_booster_can_be_pickled(name):
    explainer = MCCE(BOOSTERS[name][0](), 1, random_state=0).fit(boxed())

    copy = pickle.loads(pickle.dumps(explainer))

    expected = explainer.explain(boxed().head(5)).frame
    pd.testing.assert_frame_equal(copy.explain(boxed().head(5)).frame, expected)


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
    ids=["softmax", "hinge", "margins"],
)
def test_a_booster_of_labels_or_margins_is_valid_by_them(xgboost, objective, desired):
    many = {"num_class": 3} if objective.startswith("multi") else {}
    wanted = numbered(boxed(), "multiclass" if many else "binary")
    data = xgboost.DMatrix(boxed(), wanted, enable_categorical=True)
    booster = xgboost.train({"objective": objective, "nthread": 1, **many}, data, 5)

    scored = make_decision(booster, desired).score(boxed())

    raw = booster.predict(data)
    expected = raw >= 0 if objective.endswith("raw") else np.isin(raw, desired)
    assert scored.valid.tolist() == expected.tolist()
    if many:
        names = np.array(["bad", "fair", "good"])
        labels = XGBoost(booster, classes=list(names)).predict(boxed())
        assert labels.tolist() == names[raw.astype(int)].tolist()


def test_one_against_all_and_own_objectives_of_lightgbm(lightgbm):
    settings = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 3}
    data = lightgbm.Dataset(boxed(), numbered(boxed(), "multiclass"))
    each = lightgbm.train(settings | {"objective": "multiclassova", "num_class": 3}, data, 5)
    assert LightGBM(each).predict_proba(boxed()).tolist() == each.predict(boxed()).tolist()
    assert make_decision(each, [2]).score(boxed()).valid.any()

    def squared(scores, data):
        return scores - data.get_label(), np.ones_like(scores)

    data = lightgbm.Dataset(boxed(), numbered(boxed(), "binary"))
    own = lightgbm.train(settings | {"objective": squared}, data, 5)
    assert make_decision(own, (0.3, 9.0)).method == "predict"


@pytest.mark.parametrize("name", BOOSTERS)
def test_labels_that_do_not_fit_a_booster_are_an_error(name):
    booster, wrapper = BOOSTERS[name][0](), BOOSTERS[name][1]

    for classes, says in [
        (["a", "b", "c"], "names 3 labels.*has 2 classes"),
        (["a", "a"], "two or more different labels"),
        ("ab", "two or more different labels"),
        ([["a"], ["b"]], "two or more different labels"),
    ]:
        with pytest.raises(ParameterError, match=says):
            wrapper(booster, classes=classes)
    with pytest.raises(ParameterError, match=r"'yes', which is not among.*\[0, 1\]"):
        make_decision(booster, "yes")


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_an_unfitted_model_of_a_library_is_an_error(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    prefix = {"xgboost": "XGB", "lightgbm": "LGBM", "catboost": "CatBoost"}[library]

    with pytest.raises(PredictorError, match="without classes_: it is not fitted"):
        make_decision(getattr(module, f"{prefix}Classifier")())
    regressor = getattr(module, f"{prefix}Regressor")()
    with pytest.raises(PredictorError, match=r"not fitted|CatBoostError"):
        make_decision(regressor, (0, 1)).score(boxed())
