"""Every kind of predictor explains every task it can do, and the library itself says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from loans import DESIRED, assert_answers_valid, explain, loans, numbered, numbers, same, target
from mcce import Interval, McceWarning
from mcce.predictors import LightGBM, Onnx, Torch, XGBoost
from mcce.predictors.desired import make_decision

TASKS = ["binary", "multiclass", "regression"]
CLASSES = {"binary": ["no", "yes"], "multiclass": ["bad", "fair", "good"], "regression": None}


def by_label(task, predict):
    """What the raw library says, from labels or, in regression, numbers."""
    if task == "regression":
        return lambda frame: Interval(*DESIRED[task]).contains(np.ravel(predict(frame)))
    return lambda frame: np.isin(np.ravel(predict(frame)), np.ravel(DESIRED[task]))


def by_number(task, predict):
    """What the raw library says, from probabilities in the order of the classes."""

    def valid(frame):
        answer = np.asarray(predict(frame))
        if task == "regression":
            return Interval(*DESIRED[task]).contains(answer.ravel())
        if answer.ndim == 1 or answer.shape[1] == 1:
            return answer.ravel() > 0.5
        return np.isin(np.array(CLASSES[task])[answer.argmax(axis=1)], np.ravel(DESIRED[task]))

    return valid


def encoder():
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "job"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "salary"]),
        ("passthrough", ["owns"]),
    )


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", ["linear", "forest", "hist"])
def test_a_pipeline_on_mixed_columns_with_missing_cells(model, task):
    frame = loans(gaps=True)
    regressors = {
        "linear": LinearRegression(),
        "forest": RandomForestRegressor(10, random_state=0),
        "hist": HistGradientBoostingRegressor(max_iter=10),
    }
    classifiers = {
        "linear": LogisticRegression(max_iter=1000),
        "forest": RandomForestClassifier(10, random_state=0),
        "hist": HistGradientBoostingClassifier(max_iter=10),
    }
    last = (regressors if task == "regression" else classifiers)[model]
    pipeline = make_pipeline(encoder(), last).fit(frame, target(frame, task))

    assert_answers_valid(pipeline, DESIRED[task], frame, by_label(task, pipeline.predict))


@pytest.mark.parametrize("task", TASKS)
def test_scikit_learn_boosting_on_categories_as_they_are(task):
    frame = loans(gaps=True, boxed=True)
    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    model = kind(max_iter=10, categorical_features="from_dtype").fit(frame, target(frame, task))

    assert_answers_valid(model, DESIRED[task], frame, by_label(task, model.predict))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_a_calibrated_classifier(task):
    frame = loans(gaps=True)
    model = CalibratedClassifierCV(make_pipeline(encoder(), LogisticRegression()), cv=3)
    model.fit(frame, target(frame, task))

    assert_answers_valid(model, DESIRED[task], frame, by_label(task, model.predict))


@pytest.mark.parametrize("desired", ["yes", None])
def test_a_classifier_with_a_threshold_of_its_own_decides_by_it(desired):
    frame = loans(gaps=True)
    inner = make_pipeline(encoder(), LogisticRegression())
    for model in (
        FixedThresholdClassifier(inner, threshold=0.8, pos_label="yes"),
        TunedThresholdClassifierCV(inner, scoring="accuracy", cv=3),
    ):
        model.fit(frame, target(frame, "binary"))

        result = assert_answers_valid(model, desired, frame, by_label("binary", model.predict))

        assert make_decision(model, desired).desired == ("yes",)
        if isinstance(model, FixedThresholdClassifier):
            assert (result.measures["score"] >= 0.8).all()


def test_a_threshold_at_the_end_of_a_pipeline_counts_too():
    frame = loans(gaps=True)
    last = FixedThresholdClassifier(LogisticRegression(), threshold=0.8, pos_label="yes")
    pipeline = make_pipeline(encoder(), last).fit(frame, target(frame, "binary"))

    result = assert_answers_valid(pipeline, None, frame, by_label("binary", pipeline.predict))

    assert (result.measures["score"] >= 0.8).all()
    assert make_decision(pipeline, (0.5, 1.0)).desired == Interval(0.5, 1.0)


@pytest.mark.parametrize("task", TASKS)
def test_xgboost_by_both_its_interfaces_on_categories_with_missing_cells(task):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    frame = loans(gaps=True, boxed=True)
    kind = xgboost.XGBRegressor if task == "regression" else xgboost.XGBClassifier
    model = kind(n_estimators=10, enable_categorical=True, n_jobs=1)
    model.fit(frame, numbered(frame, task))
    booster = model.get_booster()

    def raw(frame):
        return booster.predict(xgboost.DMatrix(frame, enable_categorical=True))

    desired = {"binary": 1, "multiclass": [1, 2]}.get(task, DESIRED[task])
    native = assert_answers_valid(booster, desired, frame, by_number(task, raw))
    named = XGBoost(booster, classes=CLASSES[task])
    same(native, assert_answers_valid(named, DESIRED[task], frame, by_number(task, raw)))
    same(native, assert_answers_valid(model, desired, frame, by_number(task, raw)))


@pytest.mark.parametrize("task", TASKS)
def test_lightgbm_by_both_its_interfaces_on_categories_with_missing_cells(task):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    frame = loans(gaps=True, boxed=True)
    kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
    model = kind(n_estimators=10, min_child_samples=3, verbose=-1, n_jobs=1)
    model.fit(frame, target(frame, task))
    booster = lightgbm.Booster(model_str=model.booster_.model_to_string())

    desired = {"binary": 1, "multiclass": [1, 2]}.get(task, DESIRED[task])
    native = assert_answers_valid(booster, desired, frame, by_number(task, booster.predict))
    named = LightGBM(booster, classes=CLASSES[task])
    same(
        native, assert_answers_valid(named, DESIRED[task], frame, by_number(task, booster.predict))
    )
    same(native, assert_answers_valid(model, DESIRED[task], frame, by_label(task, model.predict)))


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_catboost_on_strings_and_categories_as_they_are(task, boxed):
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    frame = loans(gaps=True, boxed=boxed)
    frame["job"] = loans(boxed=boxed)["job"]  # it refuses missing categories
    kind = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
    model = kind(iterations=10, verbose=False, allow_writing_files=False, thread_count=1)
    model.fit(frame, target(frame, task), cat_features=["sex", "job"])

    assert_answers_valid(model, DESIRED[task], frame, by_label(task, model.predict))


def module(n_columns: int, n_outputs: int):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(n_columns, 16), torch.nn.ReLU(), torch.nn.Linear(16, n_outputs)
    )


def trained(net, matrix, task, wanted):
    import torch

    given = torch.as_tensor(np.asarray(matrix, dtype=np.float32))
    labels = torch.tensor(np.array(wanted))
    loss = torch.nn.CrossEntropyLoss()
    if task == "regression":
        loss, labels = torch.nn.MSELoss(), labels.float().reshape(-1, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss(net(given), labels).backward()
        optimizer.step()
    return net


@pytest.mark.parametrize("task", TASKS)
def test_torch_on_numeric_columns(task):
    frame = numbers()
    net = module(4, {"binary": 2, "multiclass": 3}.get(task, 1))
    scaled = StandardScaler().fit(frame.to_numpy(float))
    import torch

    net = trained(net, scaled.transform(frame.to_numpy(float)), task, numbered(frame, task))
    shift = torch.nn.Linear(4, 4)
    shift.weight.data = torch.diag(torch.as_tensor(1 / scaled.scale_, dtype=torch.float32))
    shift.bias.data = torch.as_tensor(-scaled.mean_ / scaled.scale_, dtype=torch.float32)
    whole = torch.nn.Sequential(shift, net)

    def raw(frame):
        whole.eval()
        with torch.no_grad():
            return whole(torch.tensor(frame.to_numpy(np.float32))).numpy()

    if task == "regression":
        assert_answers_valid(
            Torch(whole, output="score"), DESIRED[task], frame, by_number(task, raw)
        )
        return
    wrapped = Torch(whole, output="logits", classes=CLASSES[task])
    logits = assert_answers_valid(wrapped, DESIRED[task], frame, by_number(task, raw))
    normed = torch.nn.Sequential(whole, torch.nn.Softmax(dim=1))
    wrapped = Torch(normed, output="probabilities", classes=CLASSES[task])
    same(logits, assert_answers_valid(wrapped, DESIRED[task], frame, by_number(task, raw)))


def test_torch_on_mixed_columns_with_an_encoder_in_front():
    import_torch = pytest.importorskip("torch", reason="torch is not installed")
    frame = loans(gaps=True)
    encode = encoder().fit(frame)
    matrix = np.asarray(encode.transform(frame))
    net = trained(module(matrix.shape[1], 2), matrix, "binary", numbered(frame, "binary"))

    def raw(frame):
        with import_torch.no_grad():
            given = np.asarray(encode.transform(frame), dtype=np.float32)
            return net(import_torch.tensor(given)).numpy()

    wrapped = Torch(net, output="logits", classes=["no", "yes"], encode=encode.transform)
    assert_answers_valid(wrapped, "yes", frame, by_number("binary", raw))


def session(model, frame, **options):
    """The model exported to ONNX, one input per column."""
    reason = "onnxruntime and skl2onnx are not both installed"
    skl2onnx = pytest.importorskip("skl2onnx", reason=reason)
    runtime = pytest.importorskip("onnxruntime", reason=reason)
    types = skl2onnx.common.data_types
    kinds = {"f": types.FloatTensorType, "i": types.Int64TensorType, "b": types.Int64TensorType}
    inputs = [
        (name, kinds.get(dtype.kind, types.StringTensorType)([None, 1]))
        for name, dtype in frame.dtypes.items()
    ]
    exported = skl2onnx.convert_sklearn(
        model, initial_types=inputs, options=options or None, target_opset=18
    )
    return runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def exportable(last):
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["sex", "job"]),
            ("passthrough", ["age", "salary", "owns"]),
        ),
        last,
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", ["tree", "linear"])
def test_a_pipeline_and_its_onnx_export_give_the_same_counterfactuals(model, task):
    frame = loans()
    tree = DecisionTreeRegressor if task == "regression" else DecisionTreeClassifier
    linear = LinearRegression() if task == "regression" else LogisticRegression(max_iter=5000)
    last = tree(max_depth=5, random_state=0) if model == "tree" else linear
    pipeline = exportable(last).fit(frame, target(frame, task))
    options = {} if task == "regression" else {"zipmap": False}
    exported = session(pipeline, frame, **options)

    def raw(frame):
        feed = {
            given.name: frame[[given.name]].to_numpy(
                {"tensor(float)": np.float32, "tensor(int64)": np.int64}.get(given.type, object)
            )
            for given in exported.get_inputs()
        }
        return exported.run(None, feed)[0]

    expected = assert_answers_valid(
        pipeline, DESIRED[task], frame, by_label(task, pipeline.predict)
    )
    wrapped = exported
    if task != "regression":
        wrapped = Onnx(exported, output="probabilities", classes=CLASSES[task])
    same(expected, assert_answers_valid(wrapped, DESIRED[task], frame, by_label(task, raw)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_onnx_answers_as_maps_from_class_to_probability_are_read():
    frame = loans()
    pipeline = exportable(DecisionTreeClassifier(max_depth=5, random_state=0))
    pipeline.fit(frame, target(frame, "multiclass"))
    exported = session(pipeline, frame)

    wrapped = Onnx(exported, output="probabilities", classes=["good", "bad", "fair"])

    np.testing.assert_allclose(
        wrapped.predict_proba(frame), pipeline.predict_proba(frame)[:, [2, 0, 1]], atol=1e-6
    )
    assert wrapped.predict(frame).tolist() == pipeline.predict(frame).tolist()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_onnx_takes_one_matrix_of_floats_and_a_frame_or_an_array():
    reason = "onnxruntime and skl2onnx are not both installed"
    skl2onnx = pytest.importorskip("skl2onnx", reason=reason)
    runtime = pytest.importorskip("onnxruntime", reason=reason)
    frame = numbers()
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    tree.fit(frame.to_numpy(np.float32), target(frame, "binary"))
    inputs = [("given", skl2onnx.common.data_types.FloatTensorType([None, 4]))]
    exported = runtime.InferenceSession(
        skl2onnx.convert_sklearn(
            tree, initial_types=inputs, options={"zipmap": False}, target_opset=18
        ).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    wrapped = Onnx(exported, output="probabilities", classes=["no", "yes"])

    def raw(frame):
        return exported.run(None, {"given": frame.to_numpy(np.float32)})[0]

    assert_answers_valid(wrapped, "yes", frame, by_label("binary", raw))
    array = frame.to_numpy(float)
    assert wrapped.predict(array).tolist() == tree.predict(array).tolist()


def test_a_predictor_that_rolls_dice_is_found_out():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    frame = numbers()
    net = torch.nn.Sequential(torch.nn.Dropout(0.4), torch.nn.Linear(4, 1))
    net[1].weight.data = torch.tensor([[0.0, 0.0, 0.05, 0.1]])
    net[1].bias.data.zero_()
    net.train()
    torch.manual_seed(0)

    def dicing(frame):
        with torch.no_grad():
            return net(torch.tensor(frame.to_numpy(np.float32))).numpy()

    people = frame[frame["salary"] < 8].head(12)
    with pytest.warns(McceWarning, match="The predictor is unstable"):
        unstable = explain(dicing, (0.8, 10.0), frame, people)
    assert unstable.n_unstable > 0
    stable = explain(Torch(net, output="score"), (0.8, 10.0), frame, people)
    assert stable.n_unstable == 0
    assert net.training
    assert net[0].training
    assert pd.notna(stable.measures["score"]).all()
