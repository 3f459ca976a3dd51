"""A scorer behind HTTP, against a real server that fails, dawdles and talks nonsense."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from loans import assert_answers_valid, explain, loans, merit
from mcce import MCCE, ParameterError, PredictorError
from mcce.predictors import Remote
from mcce.predictors.desired import make_decision
from mcce.predictors.pacing import Pace


class Scorer(BaseHTTPRequestHandler):
    """Scores rows by merit; ``server.turns`` says what happens to the next requests instead."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((json.loads(body), dict(self.headers)))
        turn = self.server.turns.pop(0) if self.server.turns else self.server.always
        if callable(turn):
            turn = turn(json.loads(body))
        if turn == "hang up":
            self.connection.close()
            return
        if turn == "dawdle":
            self.server.released.wait(20)
        status, headers, body = turn if isinstance(turn, tuple) else (200, {}, turn)
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that went away is what the tests are about."""


def by_merit(request):
    frame = pd.DataFrame(request["instances"])
    return {"predictions": merit(frame.assign(salary=frame["salary"].astype(float))).tolist()}


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Quiet(("127.0.0.1", 0), Scorer)
    server.seen, server.turns, server.always = [], [], by_merit
    server.released = threading.Event()
    server.url = f"http://127.0.0.1:{server.server_address[1]}/score"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


X = pd.DataFrame({"x": [0.25, 0.5, 0.75]})


def remote(server, **settings):
    return Remote(server.url, **{"backoff": 0.0, "timeout": 5.0} | settings)


def test_a_remote_scorer_explains_as_the_function_behind_it_does(server):
    frame = loans(gaps=True)

    result = assert_answers_valid(remote(server), (0.5, 9.0), frame, lambda f: merit(f) >= 0.5)

    local = MCCE(merit, (0.5, 9.0), immutable=["sex", "age"], n_samples=200, random_state=0)
    local.set_params(n_counterfactuals=2)
    expected = local.fit(frame).explain(frame[merit(frame) < 0.5].head(12))
    pd.testing.assert_frame_equal(result.frame, expected.frame)
    pd.testing.assert_frame_equal(result.measures, expected.measures)


def test_a_server_that_fails_sometimes_gives_the_same_counterfactuals(server):
    frame = loans(gaps=True)
    people = frame[merit(frame) < 0.5].head(5)
    expected = explain(remote(server), (0.5, 9.0), frame, people)
    n_requests = len(server.seen)
    busy = (503, {"Retry-After": "0"}, "busy")
    server.turns = [busy, "hang up", (429, {}, "slowly"), by_merit, (500, {}, b""), by_merit, busy]

    result = explain(remote(server), (0.5, 9.0), frame, people)

    pd.testing.assert_frame_equal(result.frame, expected.frame)
    assert len(server.seen) == 2 * n_requests + 5


def test_rows_go_out_as_json_in_batches(server):
    server.always = lambda request: {"predictions": [0.5] * len(request["instances"])}
    rows = pd.DataFrame(
        {
            "whole": [2**53 + 1, -1, 0],
            "real": [0.1, np.nan, 1e-300],
            "word": pd.Categorical(["é", None, "b"]),
            "flag": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "when": pd.to_datetime(["2026-01-02T00:00:00", None, "2026-01-02T03:04:05"]),
            "span": pd.to_timedelta([90, None, 5], unit="min"),
        }
    )

    assert remote(server, batch_size=2).predict(rows).tolist() == [0.5] * 3

    sent = [request["instances"] for request, _ in server.seen]
    assert [len(batch) for batch in sent] == [2, 1]
    assert list(sent[0][0].values()) == [
        2**53 + 1,
        0.1,
        "é",
        True,
        True,
        "2026-01-02T00:00:00",
        "P0DT1H30M0S",
    ]
    assert list(sent[0][1].values()) == [-1, None, None, False, None, None, None]
    assert sent[1][0]["real"] == 1e-300


def test_rows_of_an_array_go_out_as_lists(server):
    server.always = lambda request: {"predictions": [row[0] for row in request["instances"]]}
    array = np.arange(40.0).reshape(20, 2)

    result = MCCE(remote(server), (20, 99), random_state=0).fit(array).explain(array[:2])

    assert (result.frame["x0"] >= 20).all()


def test_headers_are_sent_and_never_shown(server):
    predictor = remote(server, headers={"Authorization": "Bearer secret"})
    server.always = {"predictions": [0.1, 0.2, 0.3]}

    predictor.predict(X)

    sent = server.seen[0][1]
    assert sent["Authorization"] == "Bearer secret"
    assert sent["Content-Type"] == "application/json"
    assert "secret" not in repr(predictor)


def test_the_keys_of_request_and_response_may_be_others_or_none(server):
    server.turns = [{"scores": [1, 2, 3]}, [4, 5, 6]]

    assert remote(server, rows_key="rows", predictions_key="scores").predict(X).tolist() == [
        1,
        2,
        3,
    ]
    assert remote(server, rows_key=None, predictions_key=None).predict(X).tolist() == [4, 5, 6]
    assert server.seen[0][0] == {"rows": [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}]}
    assert server.seen[1][0] == [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}]


def test_probabilities_and_labels_are_read_as_such(server):
    many = remote(server, output="probabilities", classes=["a", "b", "c"])
    server.always = {"predictions": [[0.5, 0.25, 0.25], [0, 0, 1], [0, 1, 0]]}
    assert make_decision(many, ["b", "c"]).score(X).valid.tolist() == [False, True, True]
    two = remote(server, output="probabilities", classes=["no", "yes"])
    server.always = {"predictions": [0.25, 0.5, 0.75]}
    assert make_decision(two).score(X).score.tolist() == [0.25, 0.5, 0.75]
    labels = remote(server, output="labels")
    server.always = {"predictions": ["no", "yes", "no"]}
    assert make_decision(labels, "yes").score(X).valid.tolist() == [False, True, False]


def test_no_connection_is_tried_again_and_then_an_error(server):
    server.always = "hang up"

    with pytest.raises(
        PredictorError, match=r"did not respond \(attempts: 3, .*Check that it is running"
    ):
        make_decision(remote(server, retries=2), (0, 1)).score(X)

    assert len(server.seen) == 3


def test_nobody_there_is_an_error(server):
    gone = Remote("http://127.0.0.1:9/", retries=0, timeout=2.0)

    with pytest.raises(PredictorError, match="attempts: 1, last failure: ConnectionRefused"):
        gone.predict(X)


def test_a_slow_server_is_waited_for_no_longer_than_the_timeout(server):
    server.turns = ["dawdle"]
    server.always = {"predictions": [1, 2, 3]}

    assert remote(server, timeout=0.2).predict(X).tolist() == [1, 2, 3]

    server.always = "dawdle"
    with pytest.raises(PredictorError, match=r"TimeoutError: no complete response within 0\.2 s"):
        remote(server, timeout=0.2, retries=1).predict(X)


def test_attempts_are_further_apart_each_time_and_a_server_may_request_longer_waits(
    server, monkeypatch
):
    pauses = []
    monkeypatch.setattr(Pace, "pause", lambda _, seconds: pauses.append(seconds))
    busy = (503, {}, "busy")
    server.turns = [busy, busy, (429, {"Retry-After": "7"}, ""), (503, {"Retry-After": "900"}, "")]
    server.always = {"predictions": [1, 2, 3]}

    remote(server, backoff=0.5).predict(X)

    assert pauses == [0.5, 1.0, 7.0, 60.0]


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        ((400, {}, "no such column"), r"responded with 400 Bad Request\. Its body is not shown"),
        ((401, {}, ""), "responded with 401"),
        ((404, {}, ""), "responded with 404"),
        ((302, {"Location": "http://else.where/"}, ""), "302 Found.*Redirects are not followed"),
        ((307, {"Location": "/x"}, ""), "pass the final address"),
    ],
)
def test_a_refusal_is_an_error_at_once(server, turn, says):
    server.always = turn

    with pytest.raises(PredictorError, match=says):
        make_decision(remote(server), (0, 1)).score(X)

    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (b"<html>oops</html>", "must return JSON, got 17 bytes that are not"),
        ((200, {"Content-Type": "text/html; charset=x"}, b"<p>"), "got 3 bytes of text/html that"),
        ((200, {"Content-Type": "text/secret"}, b"<p>"), "got 3 bytes that are not"),
        (b"\xff\xfe", "must return JSON, got 2 bytes"),
        (b"", "must return JSON, got 0 bytes"),
        (b"[" * 100_000, "must return JSON, got 100000 bytes"),
        (b'{"predictions": [1, 2, ' + b"9" * 5000 + b"]}", "must return JSON"),
        (b'{"predictions": [1, 2, ' + b"9" * 400 + b"]}", "got a number too large for a float"),
        (b'{"predictions": [1, 2, 1e999]}', "got a number too large for a float for row 2"),
        (b'{"predictions": [1, 2, 3], "predictions": [4, 5, 6]}', "an object that has a key twice"),
        (b'{"predictions": [NaN, 1, 2]}', "NaN or Infinity, which JSON does not know"),
        (b'{"predictions": [1, 2, -Infinity]}', "NaN or Infinity, which JSON does not know"),
        ((200, {"Content-Encoding": "gzip"}, b""), "plain JSON, got a compressed response"),
        ([1, 2, 3], r"an object with the key 'predictions', got a list of length 3"),
        ({"error": "x"}, r"an object with the key 'predictions', got an object of length 1"),
        ({"predictions": 0.5}, "a list of predictions, got a fraction"),
        ({"predictions": [0.5]}, r"a list of 3 predictions, one per row, got 1"),
        ({"predictions": [0.5] * 4}, "a list of 3 predictions, one per row, got 4"),
        ({"predictions": [0.5, "0.5", 0.5]}, "one number per row, got a string for row 1"),
        ({"predictions": [0.5, None, 0.5]}, "one number per row, got null for row 1"),
        ({"predictions": [0.5, True, 0.5]}, "one number per row, got a boolean for row 1"),
        ({"predictions": [[0.5]] * 3}, r"one number per row, got a list of length 1 for row 0"),
    ],
)
def test_nonsense_is_described_without_quoting_it(server, response, says):
    server.always = response

    with pytest.raises(PredictorError, match=says):
        make_decision(remote(server), (0, 1)).score(X)

    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("response", "says"),
    [
        ([[0.5, 0.5], [0.5], [1, 0]], "2 numbers per row, got a list of length 1 for row 1"),
        ([[0.5, "b"], [0, 1], [1, 0]], "2 numbers per row, got a list of length 2 for row 0"),
        (
            [[0.5, 0.9], [0, 1], [1, 0]],
            "must add up to 1, which they do not for 1 of 3 rows, first at position 0",
        ),
        (
            [0.5, 1.5, 0.5],
            "outside of 0 and 1 as probabilities for 1 of 3 rows, first at position 1",
        ),
        ([0.5, [0.5, 0.5], 0.5], "predictions of one shape"),
    ],
)
def test_wrong_probabilities_are_an_error(server, response, says):
    server.always = {"predictions": response}
    predictor = remote(server, output="probabilities", classes=["no", "yes"])

    with pytest.raises(PredictorError, match=says):
        make_decision(predictor, "yes").score(X)


def test_one_number_is_not_enough_for_three_classes(server):
    server.always = {"predictions": [0.1, 0.2, 0.3]}

    with pytest.raises(PredictorError, match="3 numbers per row, got a fraction for row 0"):
        remote(server, output="probabilities", classes=["a", "b", "c"]).predict(X)


@pytest.mark.parametrize("other", [0.5, True, None, ["yes"]])
def test_a_label_must_be_one(server, other):
    server.always = {"predictions": ["no", other, "yes"]}

    with pytest.raises(PredictorError, match="one label per row, a string or whole number"):
        remote(server, output="labels").predict(X)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (pd.DataFrame({1: [0.5]}), r"columns \[1\] have other names"),
        (pd.DataFrame({"x": [0, {1}]}), "A set in row 1 of column 'x' cannot be written as JSON"),
        (pd.DataFrame({"x": [np.inf]}), "A float in row 0 of column 'x' cannot be written as"),
    ],
)
def test_rows_that_json_cannot_hold_are_an_error(server, rows, says):
    with pytest.raises(PredictorError, match=says):
        remote(server).predict(rows)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"url": None}, "http:// or https://, got NoneType"),
        ({"headers": ["Authorization"]}, "headers must map names to values, got list"),
        ({"headers": {"Content-Length": "3"}}, "'Content-Length' follows from the rows"),
        ({"headers": {"No name": "x"}}, "that of header 0 .* is not"),
        (
            {"headers": {"Token": "x\n"}},
            "value of the header 'Token' must be a string without line",
        ),
        ({"headers": {"Token": "\u20ac"}}, "value of the header 'Token' must be"),
        ({"headers": {"Token": 3}}, "value of the header 'Token' must be"),
        ({"proxy": "socks5://127.0.0.1:1"}, "proxy must be a web address that begins with http://"),
        ({"proxy": True}, "proxy must be .* got bool"),
        ({"max_bytes": 0}, "max_bytes must be a whole number of at least 1"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"retries": -1}, "retries must be"),
        ({"retries": 1.5}, "retries must be a whole number"),
        ({"timeout": 0}, "timeout must be a finite number"),
        ({"timeout": None}, "timeout must be"),
        ({"backoff": float("inf")}, "backoff must be a finite number"),
        ({"output": "logits"}, "output must be one of"),
        ({"classes": ["no", "yes"]}, 'but output is "score"'),
        ({"output": "probabilities"}, "needs classes"),
    ],
)
def test_settings_that_cannot_work_are_an_error(settings, says):
    with pytest.raises(ParameterError, match=says):
        Remote(**{"url": "http://127.0.0.1/"} | settings)
