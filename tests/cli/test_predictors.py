"""Black boxes by name: every kind of file, functions and servers."""

from __future__ import annotations

import pickle
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from bank_files import PREDICTOR, USAGE
from counting_server import CountingServer
from mcce.cli import main

NUMBERS = ["Duration", "CreditAmount", "Age"]


def fit_and_explain(predictor, *more, desired="0.5:", train="numbers.csv"):
    """Exit codes of fitting with a predictor, and of explaining people with it."""
    named = ["--predictor", predictor, *more, "--quiet"]
    fit = main(["fit", train, *named, "--desired", desired, "-o", "own.mcce"])
    command = ["explain", "own.mcce", train, *named, "-o", "own.csv", "--overwrite"]
    return fit, main([*command, "--tolerance", "1e-5"])


@pytest.fixture
def numbers(here):
    """Training rows of numbers alone, with labels."""
    train = pd.read_csv("train.csv")[NUMBERS].astype(float)
    train.to_csv("numbers.csv", index=False)
    return train, (train["Duration"] + train["CreditAmount"] / 200 < 40).astype(int)


def test_a_pickle_is_loaded_only_if_it_is_trusted(here, capsys):
    class Evil:
        def __reduce__(self):
            return open, (str(here / "pwned"), "w")

    (here / "model.pkl").write_bytes(pickle.dumps(joblib.load("model.joblib")))
    (here / "evil.pkl").write_bytes(pickle.dumps(Evil()))
    options = {"desired": "good", "train": "train.csv"}

    for name in ("model.joblib", "model.pkl", "evil.pkl"):
        assert fit_and_explain(name, **options) == (USAGE, USAGE)
        assert "--trust" in capsys.readouterr().err
    assert not (here / "pwned").exists()
    for name in ("model.joblib", "model.pkl"):
        assert fit_and_explain(name, "--trust", **options) == (0, 0)
        assert "runs the code in it" in capsys.readouterr().err


@pytest.mark.slow
def test_a_skops_file_needs_trust_for_types_it_does_not_know(numbers, capsys):
    io = pytest.importorskip("skops.io")
    from sklearn.preprocessing import FunctionTransformer

    X, y = numbers
    io.dump(LogisticRegression().fit(X / 100, y), "plain.skops")
    io.dump(FunctionTransformer(np.array_str), "unknown.skops")

    assert fit_and_explain("plain.skops", desired="1") == (0, 0)
    assert fit_and_explain("unknown.skops")[0] == USAGE
    assert "--trust" in capsys.readouterr().err
    assert fit_and_explain("unknown.skops", "--trust")[0] == PREDICTOR  # it is loaded now


def test_an_onnx_file(numbers, here):
    skl2onnx = pytest.importorskip("skl2onnx")
    X, y = numbers
    model = LogisticRegression().fit(X.to_numpy() / 100, y)
    kind = skl2onnx.common.data_types.DoubleTensorType([None, 3])
    options = {id(model): {"zipmap": False}}
    made = skl2onnx.convert_sklearn(model, initial_types=[("X", kind)], options=options)
    (here / "model.onnx").write_bytes(made.SerializeToString())
    classes = ["--class", "0", "--class", "1", "--output-is", "probabilities"]

    assert fit_and_explain("model.onnx")[0] == PREDICTOR  # labels or probabilities?
    assert fit_and_explain("model.onnx", *classes) == (0, 0)


def test_files_of_lightgbm(numbers):
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(*numbers)
    lightgbm.train({"objective": "binary", "verbose": -1}, data, 5).save_model("model.txt")

    assert fit_and_explain("model.txt", desired="1") == (0, 0)
    named = ["--class", "declined", "--class", "accepted"]
    assert fit_and_explain("model.txt", *named, desired="accepted") == (0, 0)


@pytest.mark.parametrize("suffix", ["ubj", "json"])
def test_files_of_xgboost(numbers, suffix):
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(*numbers), 5)
    booster.save_model(f"model.{suffix}")

    assert fit_and_explain(f"model.{suffix}") == (0, 0)


def test_files_of_catboost(numbers):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=5, verbose=False, allow_writing_files=False)
    model.fit(*numbers).save_model("model.cbm")

    assert fit_and_explain("model.cbm") == (0, 0)


def score(rows):
    return [1 - row["Duration"] / 72 for row in rows]


def test_a_server_and_its_secrets(explain, here):
    with CountingServer(score) as server:
        url = server.url.replace("127.0.0.1", "user:hush@127.0.0.1") + "?token=hush"
        limits = ["--rows-per-second", "20000", "--in-flight", "2"]
        assert fit_and_explain(url, *limits, desired="0.6:", train="train.csv") == (0, 0)
        (here / "own.mcce").rename("bank.mcce")
        assert explain("-o", "answers/", predictor=url) == 0

    assert "127.0.0.1" in (here / "answers/_manifest.json").read_text()
    written = [path for path in here.rglob("*") if path.is_file()]
    assert not [path for path in written if b"hush" in path.read_bytes()]


@pytest.mark.slow
def test_workers_split_the_limits_of_a_server(here):
    with CountingServer(score) as server:
        fit = ["fit", "train.csv", "--predictor", server.url, "--desired", "0.7:", "--quiet"]
        assert main([*fit, "-o", "own.mcce"]) == 0
        server.arrivals.clear()
        server.at_a_time.clear()
        command = ["explain", "own.mcce", "lake", "--key", "customer", "--predictor", server.url]
        limits = ["--rows-per-second", "200", "--in-flight", "2", "--workers", "2"]
        assert main([*command, *limits, "-o", "answers/"]) == 0

    # A request holds a tenth of a second's rows: here of the half that a worker may send.
    assert max(n_rows for _, n_rows in server.arrivals) == 10
    assert max(server.at_a_time) <= 2


def test_limits_that_cannot_hold_are_refused(here, capsys):
    wrong = [
        ("model.joblib", ["--rows-per-second", "200"], "are for servers, but the predictor is"),
        ("http://127.0.0.1/", ["--in-flight", "0"], "in_flight must be a whole number from 1"),
        ("http://x/", ["--in-flight", "3", "--workers", "4"], "at most --workers 3"),
        ("http://x/", ["--rows-per-second", "0.5", "--workers", "2"], "at most --workers 1"),
        ("http://x/", ["--rows-per-second", "5"], "with --workers"),
    ]
    for predictor, limits, text in wrong:
        shared = [] if predictor in ("model.joblib", "http://127.0.0.1/") else ["lake"]
        people = shared or ["people.csv"]
        command = ["explain", "bank.mcce", *people, "--key", "customer", "--trust", "-o", "new/"]
        assert main([*command, "--predictor", predictor, *limits]) == USAGE
        assert text in " ".join(capsys.readouterr().err.split())


def test_a_predictor_that_is_not_there_is_an_error(here, capsys):
    Path("broken.joblib").write_bytes(b"no pickle")
    Path("broken.py").write_text("def (", encoding="utf-8")
    Path("lost.py").write_text("import nowhere", encoding="utf-8")
    Path("reading.py").write_text("WEIGHTS = open('weights.txt').read()", encoding="utf-8")
    wrong = {
        "absent.joblib": (PREDICTOR, "no predictor file"),
        "no_such_module:score": (PREDICTOR, "cannot be imported"),
        "scoring:absent": (PREDICTOR, "cannot be imported"),
        "broken.joblib": (PREDICTOR, "cannot be loaded"),
        "broken:score": (PREDICTOR, "--debug"),
        "lost:score": (PREDICTOR, "--debug"),
        "reading:score": (PREDICTOR, "find its files by __file__"),
        "model.unknown": (USAGE, "is not clear"),
    }
    for name, (code, text) in wrong.items():
        assert fit_and_explain(name, "--trust", train="train.csv")[0] == code, name
        said = " ".join(capsys.readouterr().err.split())
        assert text in said
        if name in ("broken:score", "lost:score"):  # types are not to blame
            assert "--dtype" not in said
