"""Black boxes by name: every kind of file, functions and servers."""

from __future__ import annotations

import json
import pickle
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.cli import main
from mcce.cli.failures import PREDICTOR, USAGE
from mcce.cli.predictors import PredictorChoice
from mcce.errors import MissingExtraError, ParameterError, PredictorError
from mcce.predictors.pacing import Pace

NUMBERS = ["Duration", "CreditAmount", "Age"]


def fit_and_explain(predictor, *more, train="numbers.csv"):
    """Exit codes of fitting with a predictor, and of explaining people with it."""
    named = ["--predictor", predictor, *[word for word in more if word != "--desired"]]
    fit = main(["fit", train, *named[:2], *more, "-o", "own.mcce", "--quiet"])
    further = [word for at, word in enumerate(more) if "--desired" not in (word, more[at - 1])]
    command = ["explain", "own.mcce", train, *named[:2], *further, "-o", "own.csv", "--quiet"]
    return fit, main([*command, "--overwrite", "--tolerance", "1e-5"])


@pytest.fixture
def numbers(here):
    """Training rows of numbers alone, with labels."""
    train = pd.read_csv("train.csv")[NUMBERS].astype(float)
    train.to_csv("numbers.csv", index=False)
    return train, (train["Duration"] + train["CreditAmount"] / 200 < 40).astype(int)


@pytest.mark.parametrize("name", ["model.joblib", "model.pkl"])
def test_a_pickle_is_loaded_only_if_it_is_trusted(here, capsys, name):
    model = joblib.load("model.joblib")
    if name == "model.pkl":
        (here / name).write_bytes(pickle.dumps(model))

    assert fit_and_explain(name, "--desired", "good", train="train.csv") == (USAGE, USAGE)
    assert "--trust" in capsys.readouterr().err
    assert fit_and_explain(name, "--trust", "--desired", "good", train="train.csv") == (0, 0)
    assert "runs the code in it" in capsys.readouterr().err


def test_a_refused_pickle_runs_nothing(here):
    class Evil:
        def __reduce__(self):
            return open, (str(here / "pwned"), "w")

    (here / "evil.pkl").write_bytes(pickle.dumps(Evil()))

    assert fit_and_explain("evil.pkl", "--desired", "0.5:")[0] == USAGE
    assert not (here / "pwned").exists()


def test_a_skops_file_needs_trust_for_types_it_does_not_know(numbers, here, capsys):
    io = pytest.importorskip("skops.io")
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import FunctionTransformer

    X, y = numbers
    io.dump(LogisticRegression().fit(X / 100, y), "plain.skops")
    io.dump(FunctionTransformer(np.array_str), "unknown.skops")

    assert fit_and_explain("plain.skops", "--desired", "1") == (0, 0)
    with pytest.raises(ParameterError, match="--trust"):
        PredictorChoice("unknown.skops").load()
    assert PredictorChoice("unknown.skops", trust=True).load() is not None


def test_an_onnx_file(numbers, here, capsys):
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.linear_model import LogisticRegression

    X, y = numbers
    model = LogisticRegression().fit(X.to_numpy() / 100, y)
    kind = skl2onnx.common.data_types.DoubleTensorType([None, 3])
    options = {id(model): {"zipmap": False}}
    made = skl2onnx.convert_sklearn(model, initial_types=[("X", kind)], options=options)
    (here / "model.onnx").write_bytes(made.SerializeToString())

    assert fit_and_explain("model.onnx", "--desired", "0.5:")[0] == PREDICTOR
    classes = ["--class", "0", "--class", "1", "--output-is", "probabilities"]
    assert main(["inspect", "own.mcce"]) != 0
    choice = PredictorChoice("model.onnx", classes=["0", "1"], output="probabilities").load()
    assert choice.predict_proba(X).shape == (300, 2)
    fitted = ["fit", "numbers.csv", "--predictor", "model.onnx", *classes, "--desired", "0.5:"]
    assert main([*fitted, "-o", "own.mcce"]) == 0


def test_files_of_lightgbm(numbers, here):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = numbers
    data = lightgbm.Dataset(X, y)
    lightgbm.train({"objective": "binary", "verbose": -1}, data, 5).save_model("model.txt")

    assert fit_and_explain("model.txt", "--desired", "1") == (0, 0)
    named = ["--class", "declined", "--class", "accepted", "--desired", "accepted"]
    assert fit_and_explain("model.txt", *named) == (0, 0)


@pytest.mark.parametrize("suffix", ["ubj", "json"])
def test_files_of_xgboost(numbers, here, suffix):
    xgboost = pytest.importorskip("xgboost")
    X, y = numbers
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, y), 5)
    booster.save_model(f"model.{suffix}")

    assert fit_and_explain(f"model.{suffix}", "--desired", "0.5:") == (0, 0)


def test_files_of_catboost(numbers, here):
    catboost = pytest.importorskip("catboost")
    X, y = numbers
    model = catboost.CatBoostClassifier(iterations=5, verbose=False, allow_writing_files=False)
    model.fit(X, y).save_model("model.cbm")

    assert fit_and_explain("model.cbm", "--desired", "0.5:") == (0, 0)


def test_a_server(here):
    class Scorer(BaseHTTPRequestHandler):
        def do_POST(self):
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
            scores = [1 - row["Duration"] / 72 for row in rows]
            body = json.dumps({"predictions": scores}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Scorer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/score"
        assert fit_and_explain(url, "--desired", "0.6:", train="train.csv") == (0, 0)
        limits = ["--rows-per-second", "20000", "--in-flight", "2"]
        assert fit_and_explain(url, *limits, "--desired", "0.6:", train="train.csv") == (0, 0)
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_has_limits_and_a_file_has_none(here, capsys):
    predictor = PredictorChoice("http://127.0.0.1/", rows_per_second=200.0, in_flight=3).load()

    assert (predictor.rows_per_second, predictor.in_flight) == (200.0, 3)
    limits = ["--rows-per-second", "200", "--trust", "--desired", "good"]
    assert fit_and_explain("model.joblib", *limits, train="train.csv") == (USAGE, USAGE)
    assert "are for servers, but the predictor is 'model.joblib'" in capsys.readouterr().err
    limits = ["--in-flight", "0", "--desired", "0.5:"]
    assert fit_and_explain("http://127.0.0.1/", *limits, train="train.csv") == (USAGE, USAGE)
    assert "in_flight must be a whole number of at least 1" in capsys.readouterr().err


def test_workers_split_the_limits_of_a_server():
    server = PredictorChoice("http://x/", rows_per_second=1000.0, in_flight=7)

    parts = [server.shared_by(n) for n in (1, 3, 7)]

    assert [part.rows_per_second for part in parts] == [1000.0, 333.0, 142.0]
    assert [part.in_flight for part in parts] == [7, 2, 1]
    assert PredictorChoice("http://x/", rows_per_second=0.5).shared_by(1).rows_per_second == 0.5
    assert PredictorChoice("model.joblib").shared_by(4) == PredictorChoice("model.joblib")


@pytest.mark.parametrize(
    ("limits", "n_workers", "text"),
    [
        ({"rows_per_second": 100.0}, 101, "--rows-per-second 100 .* at most --workers 100"),
        ({"rows_per_second": 0.5}, 2, "--rows-per-second 0.5 .* at most --workers 1"),
        ({"in_flight": 3}, 4, "--in-flight 3 .* among 4 workers, .* at most --workers 3"),
    ],
)
def test_a_limit_that_leaves_workers_nothing_is_refused(limits, n_workers, text):
    with pytest.raises(ParameterError, match=text):
        PredictorChoice("http://x/", **limits).shared_by(n_workers)


@given(st.floats(2.0, 3000.0), st.data())
def test_workers_together_send_no_second_more_than_the_rate(rate, data):
    n_workers = data.draw(st.integers(2, min(int(rate), 200)))
    part = PredictorChoice("http://x/", rows_per_second=rate).shared_by(n_workers)
    assert part.rows_per_second is not None

    sent, n_rows = sent_by_one(part.rows_per_second)

    # At worst the busiest seconds of all workers are the same one.
    most = max(n_rows * ((sent >= at) & (sent < at + 1.0)).sum() for at in sent)
    assert n_workers * most <= rate


def sent_by_one(rate):
    """When a worker that has much to do sends full requests in three seconds, and their rows."""
    now = [0.0]

    def wait(_, seconds):
        now[0] = max(now[0] + seconds, np.nextafter(now[0], np.inf))

    pace, sent = Pace(rate, clock=lambda: now[0], wait=wait), []
    n_rows = pace.n_rows(1000)
    while now[0] < 3.0:
        with pace.turn(n_rows):
            sent.append(now[0])
    return np.array(sent), n_rows


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("absent.joblib", PredictorError),
        ("no_such_module:score", PredictorError),
        ("scoring:absent", PredictorError),
        ("model.unknown", ParameterError),
        ("", ParameterError),
    ],
)
def test_a_predictor_that_is_not_there_is_an_error(here, name, error):
    with pytest.raises(error):
        PredictorChoice(name, trust=True).load()


def test_a_file_that_is_something_else_is_an_error(here):
    (here / "broken.joblib").write_bytes(b"no pickle")
    (here / "broken.ubj").write_bytes(b"no booster")

    with pytest.raises(PredictorError, match="cannot be loaded"):
        PredictorChoice("broken.joblib", trust=True).load()
    with pytest.raises((PredictorError, MissingExtraError)):
        PredictorChoice("broken.ubj").load()


@pytest.mark.parametrize("code", ["import nowhere", "def ("])
def test_types_are_not_blamed_for_a_module_that_cannot_be_imported(here, code, capsys):
    (here / "odd.py").write_text(code, encoding="utf-8")
    words = ["fit", "train.csv", "--predictor", "odd:score", "--desired", "0.5:", "-o", "odd.mcce"]

    assert main(words) == PREDICTOR

    said = capsys.readouterr().err
    assert "--debug" in said
    assert "--dtype" not in said
