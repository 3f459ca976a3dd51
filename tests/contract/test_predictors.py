"""Every kind of predictor explains every task it can do, and the library itself says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from counting_server import CountingServer
from loans import (
    DESIRED,
    assert_answers_valid,
    boxed,
    explain,
    loans,
    merit,
    numbered,
    numbers,
    same,
    target,
)
from mcce import Interval
from mcce.predictors import LightGBM, Onnx, Remote, Torch, XGBoost

TASKS = ["binary", "multiclass", "regression"]
CLASSES = {"binary": ["no", "yes"], "multiclass": ["bad", "fair", "good"], "regression": None}
# What is desired of a predictor whose labels are numbers.
NUMBERED = {"binary": 1, "multiclass": [1, 2], "regression": DESIRED["regression"]}
quiet_onnx = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@dataclass(frozen=True)
class Case:
    """A predictor, what is desired, the training rows, and the raw library's own verdict."""

    predictor: Any
    desired: Any
    frame: pd.DataFrame
    valid: Callable[[pd.DataFrame], Any]


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


def pipeline(task):
    frame = loans(gaps=True)
    last = LinearRegression() if task == "regression" else LogisticRegression(max_iter=1000)
    model = make_pipeline(encoder(), last).fit(frame, target(frame, task))
    return Case(model, DESIRED[task], frame, by_label(task, model.predict))


def categories(task):
    frame = boxed()
    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    model = kind(max_iter=10, categorical_features="from_dtype").fit(frame, target(frame, task))
    return Case(model, DESIRED[task], frame, by_label(task, model.predict))


def function(task):
    def predict(frame):
        return target(frame, task)

    return Case(predict, DESIRED[task], loans(gaps=True), by_label(task, predict))


def xgboost(task):
    library = pytest.importorskip("xgboost", reason="xgboost is not installed")
    kind = library.XGBRegressor if task == "regression" else library.XGBClassifier
    model = kind(n_estimators=10, enable_categorical=True, n_jobs=1)
    booster = model.fit(boxed(), numbered(boxed(), task)).get_booster()

    def raw(frame):
        return booster.predict(library.DMatrix(frame, enable_categorical=True))

    return Case(booster, NUMBERED[task], boxed(), by_number(task, raw)), model, XGBoost


def lightgbm(task):
    library = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    kind = library.LGBMRegressor if task == "regression" else library.LGBMClassifier
    model = kind(n_estimators=10, min_child_samples=3, verbose=-1, n_jobs=1)
    model.fit(boxed(), numbered(boxed(), task))
    booster = library.Booster(model_str=model.booster_.model_to_string())
    valid = by_number(task, booster.predict)
    return Case(booster, NUMBERED[task], boxed(), valid), model, LightGBM


def catboost(task):
    library = pytest.importorskip("catboost", reason="catboost is not installed")
    frame = loans(gaps=True, boxed=True).assign(job=loans(boxed=True)["job"])  # no gaps in levels
    kind = library.CatBoostRegressor if task == "regression" else library.CatBoostClassifier
    model = kind(iterations=10, verbose=False, allow_writing_files=False, thread_count=1)
    model.fit(frame, target(frame, task), cat_features=["sex", "job"])
    return Case(model, DESIRED[task], frame, by_label(task, model.predict))


def catboost_without_a_task(task):
    library = pytest.importorskip("catboost", reason="catboost is not installed")
    loss = {"binary": "Logloss", "multiclass": "MultiClass", "regression": "RMSE"}[task]
    settings = {"iterations": 5, "verbose": False, "allow_writing_files": False}
    settings |= {"loss_function": loss, "cat_features": ["sex", "job"], "thread_count": 1}
    frame = loans(boxed=True)
    model = library.CatBoost(settings).fit(frame, numbered(frame, task))
    kind = "RawFormulaVal" if task == "regression" else "Probability"
    valid = by_number(task, lambda rows: model.predict(rows, prediction_type=kind))
    return Case(model, NUMBERED[task], frame, valid)


def torch(task):
    library = pytest.importorskip("torch", reason="torch is not installed")
    frame = loans(gaps=True)
    encode = encoder().fit(frame)
    matrix = library.tensor(np.asarray(encode.transform(frame), dtype=np.float32))
    wanted = library.tensor(numbered(frame, task))
    library.manual_seed(0)
    n_outputs = len(CLASSES[task] or "1")
    net = library.nn.Sequential(
        library.nn.Linear(matrix.shape[1], 16), library.nn.ReLU(), library.nn.Linear(16, n_outputs)
    )
    loss = library.nn.CrossEntropyLoss()
    if task == "regression":
        loss, wanted = library.nn.MSELoss(), wanted.float().reshape(-1, 1)
    optimizer = library.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss(net(matrix), wanted).backward()
        optimizer.step()

    def raw(frame):
        with library.no_grad():
            return net(library.tensor(np.asarray(encode.transform(frame), np.float32))).numpy()

    output = "score" if task == "regression" else "logits"
    wrapped = Torch(net, output=output, classes=CLASSES[task], encode=encode.transform)
    return Case(wrapped, DESIRED[task], frame, by_number(task, raw))


def exported(task, **options):
    """A pipeline on mixed columns, and its ONNX session with one input per column."""
    reason = "onnxruntime and skl2onnx are not both installed"
    skl2onnx = pytest.importorskip("skl2onnx", reason=reason)
    runtime = pytest.importorskip("onnxruntime", reason=reason)
    frame = loans()
    tree = DecisionTreeRegressor if task == "regression" else DecisionTreeClassifier
    raw = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "job"]),
        ("passthrough", ["age", "salary", "owns"]),
    )
    model = make_pipeline(raw, tree(max_depth=5, random_state=0)).fit(frame, target(frame, task))
    types = skl2onnx.common.data_types
    kinds = {"f": types.FloatTensorType, "i": types.Int64TensorType, "b": types.Int64TensorType}
    inputs = [
        (name, kinds.get(dtype.kind, types.StringTensorType)([None, 1]))
        for name, dtype in frame.dtypes.items()
    ]
    made = skl2onnx.convert_sklearn(
        model, initial_types=inputs, options=options or None, target_opset=18
    )
    providers = ["CPUExecutionProvider"]
    return model, runtime.InferenceSession(made.SerializeToString(), providers=providers)


def onnx(task):
    options = {} if task == "regression" else {"zipmap": False}
    model, session = exported(task, **options)
    wrapped = session
    if task != "regression":
        wrapped = Onnx(session, output="probabilities", classes=CLASSES[task])
    return Case(wrapped, DESIRED[task], loans(), by_label(task, model.predict))


def remote_answer(task):
    def answer(rows):
        frame = pd.DataFrame(rows)
        frame["salary"] = frame["salary"].astype(float)
        if task == "regression":
            return merit(frame).tolist()
        return (np.array(CLASSES[task]) == target(frame, task)[:, None]).astype(float).tolist()

    return answer


@contextmanager
def remote(task):
    with CountingServer(remote_answer(task)) as server:
        output = "score" if task == "regression" else "probabilities"
        predictor = Remote(server.url, output=output, classes=CLASSES[task], batch_size=500)
        valid = by_label(task, lambda frame: target(frame, task))
        yield Case(predictor, DESIRED[task], loans(gaps=True), valid)


KINDS = {
    "pipeline": pipeline,
    "categories": categories,
    "function": function,
    "xgboost": lambda task: xgboost(task)[0],
    "lightgbm": lambda task: lightgbm(task)[0],
    "catboost": catboost,
    "plain_catboost": catboost_without_a_task,
    "torch": torch,
    "onnx": onnx,
    "remote": remote,
}


@quiet_onnx
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_valid_by_the_library_itself(kind, task):
    made = KINDS[kind](task)
    with nullcontext(made) if isinstance(made, Case) else made as case:
        kinds = task == "binary"
        assert_answers_valid(case.predictor, case.desired, case.frame, case.valid, kinds=kinds)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", [xgboost, lightgbm], ids=["xgboost", "lightgbm"])
def test_a_booster_explains_alike_by_both_its_interfaces_and_with_named_classes(library, task):
    case, model, wrapper = library(task)
    people = boxed()[~case.valid(boxed())].head(12)

    native = explain(case.predictor, case.desired, boxed(), people)

    same(native, explain(model, case.desired, boxed(), people))
    named = wrapper(case.predictor, classes=CLASSES[task])
    same(native, explain(named, DESIRED[task], boxed(), people))


@quiet_onnx
def test_a_pipeline_and_its_onnx_export_give_the_same_counterfactuals():
    model, session = exported("multiclass")  # its probabilities come as maps from class to number
    wrapped = Onnx(session, output="probabilities", classes=["good", "bad", "fair"])
    frame = loans()
    people = frame[target(frame, "multiclass") == "bad"].head(8)

    same(*(explain(one, ["fair", "good"], frame, people) for one in (model, wrapped)))
    swapped = model.predict_proba(frame)[:, [2, 0, 1]]
    np.testing.assert_allclose(wrapped.predict_proba(frame), swapped, atol=1e-6)
    assert wrapped.predict(frame).tolist() == model.predict(frame).tolist()


@quiet_onnx
def test_onnx_takes_one_matrix_of_floats_from_a_frame_or_an_array():
    reason = "onnxruntime and skl2onnx are not both installed"
    skl2onnx = pytest.importorskip("skl2onnx", reason=reason)
    runtime = pytest.importorskip("onnxruntime", reason=reason)
    frame = numbers()
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    tree.fit(frame.to_numpy(np.float32), target(frame, "binary"))
    inputs = [("given", skl2onnx.common.data_types.FloatTensorType([None, 4]))]
    made = skl2onnx.convert_sklearn(
        tree, initial_types=inputs, options={"zipmap": False}, target_opset=18
    )
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wrapped = Onnx(session, output="probabilities", classes=["no", "yes"])

    array = frame.to_numpy(float)
    assert_answers_valid(
        wrapped, "yes", frame, lambda rows: tree.predict(rows.to_numpy(np.float32)) == "yes"
    )
    assert wrapped.predict(array).tolist() == tree.predict(array).tolist()
